//! `blis trace`: inspects, converts and generates traces.

mod convert;
pub(crate) mod file;
mod generate;
mod input;
mod inspect;

use crate::args::{TraceArgs, TraceCommand};
use crate::failure::Failure;
use crate::target::Target;
use std::path::{Path, PathBuf};

/// Does what `args` ask for.
pub(crate) fn trace(args: &TraceArgs) -> Result<(), Failure> {
    match &args.command {
        TraceCommand::Inspect(args) => inspect::inspect(args),
        TraceCommand::Convert(args) => convert::convert(args),
        TraceCommand::Generate(args) => generate::generate(args),
    }
}

/// Where `--out` goes; refused if it is one of `inputs`.
pub(crate) fn target(out: &Path, inputs: &[PathBuf]) -> Result<Target, Failure> {
    if out == Path::new("-") {
        return Ok(Target::stdout());
    }
    let target = Target::of(out)?;
    match inputs.iter().find(|input| target.is_input(input)) {
        Some(input) => {
            let input = input.display();
            Err(Failure::Input(format!("--out: it is the input `{input}`; name another file")))
        }
        None => Ok(target),
    }
}
