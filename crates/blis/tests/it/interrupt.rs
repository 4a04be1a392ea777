//! Ctrl-C shows what there is.

use crate::{Bench, Ran};
use std::process::{Command, Stdio};

#[test]
fn one_interrupt_gives_the_part_that_was_simulated() {
    let bench = Bench::new();
    let mut command = bench.command(
        "run --num-requests 1000000000000 --rate 1 --output-tokens 5 --output-tokens-stdev 0 \
         --format json --requests-out rows.csv",
    );
    let child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("starts");
    // The file is opened after the handler is installed, so from then on a signal is heard.
    while bench.files().is_empty() {
        std::thread::yield_now();
    }
    let signal = Command::new("kill").args(["-INT", &child.id().to_string()]).status();
    assert!(signal.expect("kill runs").success());
    let ran = Ran::from(child.wait_with_output().expect("ends"));
    assert_eq!(ran.code, Some(130));
    assert_eq!(ran.err, "interrupted: the numbers are those of the part that was simulated\n");
    let value: serde_json::Value = serde_json::from_str(&ran.out).expect("JSON");
    assert_eq!(value["run"]["end"], "interrupted");
    assert_eq!(bench.files(), ["rows.csv"]);
}
