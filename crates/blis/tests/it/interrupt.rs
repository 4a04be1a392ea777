//! Ctrl-C shows what there is.

use crate::{Bench, Ran};
use std::process::{Command, Stdio};

#[test]
fn one_interrupt_gives_the_part_that_was_simulated() {
    let bench = Bench::new();
    let ran = interrupted(&bench, "--format json --requests-out rows.csv");
    let value: serde_json::Value = serde_json::from_str(&ran.out).expect("JSON");
    assert_eq!(value["run"]["end"], "interrupted");
    assert_eq!(bench.files(), ["rows.csv"]);
}

#[test]
fn half_a_result_never_passes_for_a_whole_one() {
    let bench = Bench::new();
    let ran = interrupted(&bench, "--format blis --quiet --results-path r.json");
    let block = ran.out.strip_prefix("=== Simulation Metrics ===\n").expect("the cluster's block");
    let end = block.find("\n}\n").expect("the closing brace stands alone") + 2;
    let object: serde_json::Value = serde_json::from_str(&block[..end]).expect("JSON");
    assert_eq!(object["end"], "interrupted");
    let file: serde_json::Value = serde_json::from_str(&bench.read("r.json")).expect("JSON");
    assert_eq!(file["end"], "interrupted");
}

/// An endless run that was interrupted once; its own note is checked.
fn interrupted(bench: &Bench, args: &str) -> Ran {
    let mut command = bench.command(&format!(
        "run --num-requests 300000000 --rate 1 --output-tokens 5 --output-tokens-stdev 0 {args}"
    ));
    let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("starts");
    // The file is opened after the handler is installed, so from then on a signal is heard.
    while bench.files().is_empty() {
        assert!(child.try_wait().expect("a child").is_none(), "it ended by itself");
        std::thread::yield_now();
    }
    let signal = Command::new("kill").args(["-INT", &child.id().to_string()]).status();
    assert!(signal.expect("kill runs").success());
    let ran = Ran::from(child.wait_with_output().expect("ends"));
    assert_eq!(ran.code, Some(130));
    assert_eq!(ran.err, "interrupted: the numbers cover only the simulated part\n");
    ran
}
