//! `blis trial`: one trial, JSON in, JSON out, so that any engine can run trials anywhere.

use crate::failure::Failure;
use crate::interrupt::Interruptible;
use crate::output;
use blis_lab::trial;
use blis_scenario::{Problem, Saturations};
use std::io::{self, Read};

/// The most bytes of a document that are read; more are refused by their number.
const LARGEST: u64 = (8 << 20) + 1;

/// Runs the trial on standard input and prints its row.
pub(crate) fn trial() -> Result<(), Failure> {
    const NAME: &str = "standard input";
    let mut bytes = Vec::new();
    let read = io::stdin().lock().take(LARGEST).read_to_end(&mut bytes);
    read.map_err(|error| Failure::Io(format!("{NAME}: cannot read: {error}")))?;
    let text = String::from_utf8(bytes).map_err(|error| {
        let at = error.utf8_error().valid_up_to();
        Problem::of_file(NAME, format!("not a text file: byte {at} is not UTF-8"))
    })?;
    let (plan, seed) = trial::read(NAME, &text, &Saturations::default(), &mut Interruptible)?;
    let row = trial::row(&plan, seed, false, &mut Interruptible)?;
    output::print(&format!("{}\n", row.text()))
}
