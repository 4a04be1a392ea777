//! Ctrl-C and SIGTERM end every command, and show what there is.

use crate::{Bench, Ran};
use std::io::Write;
use std::process::{Child, Command, Stdio};

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
    send(&child, "-INT");
    let ran = Ran::from(child.wait_with_output().expect("ends"));
    assert_eq!(ran.code, Some(130));
    assert_eq!(ran.err, "interrupted: the numbers cover only the simulated part\n");
    ran
}

fn send(child: &Child, signal: &str) {
    let signal = Command::new("kill").args([signal, &child.id().to_string()]).status();
    assert!(signal.expect("kill runs").success());
}

/// All of them wait for the end of a file that has none.
#[test]
fn every_command_ends_when_it_is_told_to() {
    let bench = Bench::new();
    let commands = [
        "run /dev/stdin",
        "study /dev/stdin",
        "optimize /dev/stdin",
        "explain /dev/stdin",
        "compare /dev/stdin",
        "capacity /dev/stdin",
        "export vllm /dev/stdin",
        "trial",
    ];
    let start = |command: &str, signal: &str| {
        let mut command = bench.command(command);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().expect("starts");
        let mut pipe = child.stdin.take().expect("a pipe");
        // More than a pipe holds, so that it has begun to read.
        pipe.write_all(&vec![b'\n'; 200_000]).expect("it reads");
        send(&child, signal);
        (child, pipe)
    };
    let both = |command: &'static str| {
        ["-INT", "-TERM"].map(|signal| (command, signal, start(command, signal)))
    };
    let started: Vec<_> = commands.into_iter().flat_map(both).collect();
    for (command, signal, (child, pipe)) in started {
        let ran = Ran::from(child.wait_with_output().expect("ends"));
        let told = (ran.code, ran.err.as_str(), ran.out.as_str());
        assert_eq!(told, (Some(130), "error: interrupted\n", ""), "{command}, {signal}");
        drop(pipe);
    }
}

#[test]
fn a_validation_under_way_ends_when_it_is_told_to() {
    let bench = Bench::new();
    let data = concat!(env!("CARGO_MANIFEST_DIR"), "/../../data/h200");
    let mut command = bench.command(&format!("validate {data}"));
    let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("starts");
    while !listens(&child) {
        assert!(child.try_wait().expect("a child").is_none(), "it ended by itself");
        std::thread::yield_now();
    }
    send(&child, "-INT");
    let ran = Ran::from(child.wait_with_output().expect("ends"));
    let told = (ran.code, ran.err.as_str(), ran.out.as_str());
    assert_eq!(told, (Some(130), "error: interrupted\n", ""));
}

/// Whether SIGINT has a handler by now.
fn listens(child: &Child) -> bool {
    let status = std::fs::read_to_string(format!("/proc/{}/status", child.id()));
    let status = status.unwrap_or_default();
    let caught = status.lines().find_map(|line| line.strip_prefix("SigCgt:"));
    let caught = caught.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok());
    caught.unwrap_or(0) & (1 << 1) != 0
}

#[test]
fn an_interrupt_among_counterfactuals_keeps_the_run() {
    let bench = Bench::new();
    let mut command = bench.command(
        "run --num-requests 5000 --rate 20 --num-instances 4 --counterfactual-k 3 \
         --counterfactual-sample 5000 --quiet --format json --requests-out rows.csv",
    );
    let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("starts");
    // The rows have their name once the run itself is over.
    while !bench.files().contains(&"rows.csv".to_owned()) {
        assert!(child.try_wait().expect("a child").is_none(), "it ended by itself");
        std::thread::yield_now();
    }
    send(&child, "-TERM");
    let ran = Ran::from(child.wait_with_output().expect("ends"));
    let note = "interrupted: no decision was taken otherwise\n";
    assert_eq!((ran.code, ran.err.as_str()), (Some(130), note));
    let whole: serde_json::Value = serde_json::from_str(&ran.out).expect("JSON");
    assert_eq!(whole["cluster"]["completed_requests"], 5000);
}
