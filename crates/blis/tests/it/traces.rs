//! `blis trace convert` and `generate`: traces in, traces out.

use crate::{Bench, Ran};
use std::fs::File;
use std::io::Write;
use std::process::{Command, Stdio};

const MOONCAKE: &str = "\
{\"timestamp\": 0, \"input_length\": 1100, \"output_length\": 20, \"hash_ids\": [0, 1, 2]}
{\"timestamp\": 500, \"input_length\": 1200, \"output_length\": 30, \"hash_ids\": [0, 1, 3]}
{\"timestamp\": 500, \"input_length\": 40, \"output_length\": 1, \"hash_ids\": [9]}
{\"timestamp\": 90500, \"input_length\": 600, \"output_length\": 7, \"hash_ids\": [0, 4]}
";

const AZURE: &str = "\
TIMESTAMP,ContextTokens,GeneratedTokens
2023-11-16 18:17:03.9799600,4808,10
2023-11-16 18:17:04.0319600,3180,0
2023-11-16 18:17:05.9799600,10,8
";

const CLOSED: &str = "\
{\"id\":\"a\",\"arrival_us\":5,\"input_tokens\":40,\"output_tokens\":3,\"session\":\"s\"}
{\"after\":\"a\",\"think_ms\":2.5,\"input_tokens\":50,\"output_tokens\":3,\"session\":\"s\",\"round\":1}
{\"arrival_us\":100,\"input_tokens\":60,\"output_tokens\":3,\"tenant\":\"t\",\"deadline_ms\":70}
";

#[track_caller]
fn done(ran: &Ran, note: &str) {
    assert_eq!((ran.code, ran.err.as_str(), ran.out.as_str()), (Some(0), note, ""));
}

#[track_caller]
fn refused(bench: &Bench, args: &str, message: &str) {
    let ran = bench.blis(args);
    let error = format!("error: {message}\n");
    assert_eq!((ran.code, ran.err, ran.out), (Some(2), error, String::new()), "{args}");
}

/// A trace of so many short requests.
fn many(requests: u32) -> String {
    let row = |i| format!("{{\"arrival_us\":{i},\"input_tokens\":9,\"output_tokens\":1}}\n");
    (0..requests).map(row).collect::<Vec<_>>().concat()
}

/// What `inspect` finds, without where it was found.
fn inspected(bench: &Bench, args: &str) -> serde_json::Value {
    let ran = bench.blis(&format!("trace inspect {args} --format json"));
    assert_eq!((ran.code, ran.err.as_str()), (Some(0), ""));
    let mut value: serde_json::Value = serde_json::from_str(&ran.out).expect("JSON");
    for key in ["file", "format", "skipped"] {
        value.as_object_mut().expect("an object").remove(key);
    }
    value
}

#[test]
fn a_converted_trace_holds_the_same_requests() {
    let bench = Bench::new();
    bench.write("m.jsonl", MOONCAKE);
    bench.write("a.csv", AZURE);
    bench.write("c.jsonl", CLOSED);
    let ran = bench.blis("trace convert m.jsonl --out m.native");
    done(&ran, "mooncake trace: 4 rows read, 4 written\n");
    let ran = bench.blis("trace convert a.csv --out a.native");
    let skipped = "1 skipped (1 without output tokens)";
    done(&ran, &format!("azure trace: 3 rows read, 2 written, {skipped}\n"));
    done(&bench.blis("trace convert c.jsonl --out c.native --quiet"), "");
    for (from, to) in [("m.jsonl", "m.native"), ("a.csv", "a.native"), ("c.jsonl", "c.native")] {
        assert_eq!(inspected(&bench, from), inspected(&bench, to), "{from}");
        // Streams that belong to one request get other names once, and keep them.
        done(&bench.blis(&format!("trace convert {to} --out again --quiet")), "");
        done(&bench.blis("trace convert again --out same --quiet"), "");
        assert_eq!(bench.read("again"), bench.read("same"), "{to}");
        assert_eq!(inspected(&bench, from), inspected(&bench, "same"), "{from}");
    }
    let text = bench.read("a.native");
    let lines: Vec<&str> = text.lines().map(str::trim_end).collect();
    assert_eq!(lines[0], "{\"rows\":2}");
    let second = "{\"id\":\"1\",\"arrival_us\":2000000,\"prompt\":";
    assert!(lines[2].starts_with(second), "{}", lines[2]);
}

#[test]
fn a_part_of_a_trace_is_cut_sampled_and_sped_up() {
    let bench = Bench::new();
    bench.write("m.jsonl", MOONCAKE);
    let ran = bench.blis("trace convert m.jsonl --out o --start 0.5 --end 90 --speedup 2");
    done(&ran, "mooncake trace: 4 rows read, 2 written, 2 left out\n");
    let found = inspected(&bench, "m.jsonl --start 0.4 --speedup 2");
    assert_eq!((&found["requests"], &found["arrivals"]["first_s"]), (&3.into(), &0.05.into()));
    assert_eq!(found["arrivals"]["last_s"], 45.05);
    done(&bench.blis("trace convert m.jsonl --out o --limit 3 --quiet"), "");
    assert_eq!(inspected(&bench, "o")["requests"], 3);
    bench.write("many", many(1_000));
    let kept = |flags: &str| inspected(&bench, &format!("many {flags}"))["requests"].clone();
    let quarter = kept("--sample 0.25");
    assert!((200..300).contains(&quarter.as_u64().expect("a count")), "{quarter}");
    assert_eq!(quarter, kept("--sample 0.25 --sample-seed 0"));
    let ran = bench.blis("trace convert many --out o --sample 0.25 --sample-seed 9 --quiet");
    done(&ran, "");
    assert_ne!(bench.read("o").lines().nth(1), bench.read("many").lines().next());
}

/// The same part of a trace, read by a run and converted before.
#[test]
fn a_run_reads_the_same_part_as_a_conversion() {
    let bench = Bench::new();
    bench.write("m.jsonl", MOONCAKE);
    bench.blis("trace convert m.jsonl --out o --start 0.4 --end 90 --speedup 4 --sample 0.9");
    let run = |flags: &str| {
        let args = format!("run {flags} --requests-out rows.csv --format blis");
        (bench.blis(&args).out, bench.read("rows.csv"))
    };
    let part = "--trace-start 0.4 --trace-end 90 --speedup 4 --trace-sample 0.9";
    let direct = run(&format!("--trace m.jsonl --trace-format mooncake {part}"));
    assert_eq!(direct, run("--trace o"));
    assert_eq!(direct.1.lines().count(), 3, "a header and two requests: {}", direct.1);
    assert_ne!(direct, run("--trace m.jsonl --trace-limit 2"));
    let message = "--speedup: it only applies to traces; remove it, or set `workload.trace`";
    refused(&bench, "run --speedup 2", message);
}

#[test]
fn standard_input_and_output_are_traces_too() {
    let bench = Bench::new();
    bench.write("m.jsonl", MOONCAKE);
    let piped = |args: &str| {
        let input = File::open(bench.path().join("m.jsonl")).expect("it is there");
        Ran::from(bench.command(args).stdin(input).output().expect("it starts"))
    };
    let ran = piped("trace convert - --out -");
    assert_eq!(ran.code, Some(0), "{}", ran.err);
    assert_eq!(ran.out.lines().count(), 4, "what goes to a pipe has no header: {}", ran.out);
    bench.blis("trace convert m.jsonl --out file");
    let file = bench.read("file");
    assert_eq!(file.split_once('\n').map(|(_, rows)| rows), Some(ran.out.as_str()));
    let shown = piped("trace inspect -");
    assert!(
        shown.out.starts_with("standard input: 4 requests in 90.5 s, mooncake"),
        "{}",
        shown.out
    );
}

#[test]
fn a_generated_trace_runs_as_the_workload_it_was_made_from() {
    let bench = Bench::new();
    let flags = "--rate 30 --num-requests 150 --prefix-tokens 64 --seed 3";
    let ran = bench.blis(&format!("trace generate --out t.jsonl {flags}"));
    done(&ran, "150 requests written, seed 3\n");
    let run = |workload: &str| {
        let args = format!("run {workload} --requests-out rows.csv --format blis");
        (bench.blis(&args).out, bench.read("rows.csv"))
    };
    assert_eq!(run(flags), run("--seed 3 --trace t.jsonl"));
}

#[test]
fn rounds_that_wait_for_answers_are_written_as_such() {
    let bench = Bench::new();
    bench.write(
        "w.yaml",
        "
version: '2'
aggregate_rate: 10
num_requests: 90
clients:
  - id: talk
    rate_fraction: 1
    arrival: {process: poisson}
    input_distribution: {type: constant, params: {value: 100}}
    output_distribution: {type: constant, params: {value: 20}}
    reasoning:
      multi_turn: {max_rounds: 3, think_time_us: 400000, context_growth: accumulate,
                   closed_loop: true}
",
    );
    let ran = bench.blis("trace generate --workload-spec w.yaml --out t.jsonl");
    done(&ran, "90 requests written, seed 42\n");
    let text = bench.read("t.jsonl");
    let second = text.lines().nth(2).expect("a second round");
    assert!(second.starts_with("{\"id\":\"1\",\"after\":\"0\",\"think_ms\":400,"), "{second}");
    let found = inspected(&bench, "t.jsonl");
    assert_eq!((&found["follow_ups"], &found["sessions"]["sessions"]), (&60.into(), &30.into()));
    assert_eq!(found["sessions"]["gaps"]["p50_ms"], 400.0);
    // The same clients on the same cluster: only the names of the requests differ.
    let rows = |workload: &str| {
        bench.blis(&format!("run {workload} --requests-out rows.csv"));
        let text = bench.read("rows.csv");
        let row = |row: &str| row.split_once(',').map(|(_, rest)| rest.to_owned());
        text.lines().map(row).collect::<Vec<_>>()
    };
    assert_eq!(rows("--workload-spec w.yaml"), rows("--trace t.jsonl"));
}

#[test]
fn with_and_without_rows_a_closed_loop_gives_the_same_numbers() {
    let bench = Bench::new();
    bench.write("c.jsonl", CLOSED);
    let plain = bench.blis("run --trace c.jsonl --format json").json();
    assert_eq!(plain["cluster"]["injected_requests"], 3, "the follow-up was sent");
    for extra in ["--requests-out r.csv", "--results-path r.json", "--trace-out t.jsonl"] {
        let ran = bench.blis(&format!("run --trace c.jsonl --format json {extra}"));
        assert_eq!(plain, ran.json(), "{extra}");
    }
}

#[test]
fn what_does_not_fit_together_is_refused() {
    let bench = Bench::new();
    bench.write("m.jsonl", MOONCAKE);
    let is_input = "--out: it is the input `m.jsonl`; name another file";
    refused(&bench, "trace convert m.jsonl --out ./m.jsonl", is_input);
    refused(&bench, "trace generate --trace m.jsonl --out m.jsonl", is_input);
    refused(
        &bench,
        "run --trace m.jsonl --trace-out m.jsonl",
        &is_input.replace("--out", "--trace-out"),
    );
    let same = "--trace-out: it is also the file of `--requests-out`; name another";
    refused(&bench, "run --requests-out x --trace-out x", same);
    let many = "--trace-out: it applies to one run; remove `--replications`";
    refused(&bench, "run --replications 2 --trace-out x", many);
    let seed = "--sample-seed: it needs `--sample`";
    refused(&bench, "trace inspect m.jsonl --sample-seed 1", seed);
    assert_eq!(bench.files(), ["m.jsonl"], "nothing was written");
}

#[test]
fn values_out_of_range_are_refused_with_what_is_legal() {
    let bench = Bench::new();
    bench.write("m.jsonl", MOONCAKE);
    for (flags, message) in [
        ("--speedup 0", "--speedup: found `0`; legal: a number from 0.000001 to 1000000"),
        ("--speedup nan", "--speedup: found `NaN`; legal: a number from 0.000001 to 1000000"),
        ("--start -1", "--start: found `-1`; legal: a number from 0 to 315360000 s (ten years)"),
        ("--end inf", "--end: found `inf`; legal: a number from 0 to 315360000 s (ten years)"),
        ("--start 5 --end 5", "--end: found `5 s`; legal: more than 5 s, where the slice begins"),
        ("--sample 1.5", "--sample: found `1.5`; legal: a number above 0 and up to 1"),
        ("--limit 0", "--limit: found `0`; legal: 1 or more requests"),
        (
            "--from mooncak",
            "--from: unknown format `mooncak`, did you mean `mooncake`?; known: `native`, \
             `mooncake`, `azure`, `burstgpt`, `tracev2`, `legacy-csv`, `h200`",
        ),
    ] {
        refused(&bench, &format!("trace inspect m.jsonl {flags}"), message);
        refused(&bench, &format!("trace convert m.jsonl --out o {flags}"), message);
    }
    let nothing = "m.jsonl:5:1: no requests: the edit leaves none of the 4 rows that were read";
    refused(&bench, "trace convert m.jsonl --out o --start 100", nothing);
    assert_eq!(bench.files(), ["m.jsonl"], "nothing was written");
}

#[test]
fn files_that_are_not_there_or_no_traces_are_refused() {
    let bench = Bench::new();
    let missing = "none: cannot read: No such file or directory (os error 2); check the name";
    refused(&bench, "trace inspect none", missing);
    refused(&bench, "trace convert none --out o", missing);
    bench.write("bad.jsonl", "{\"arrival_us\":1,\"input_tokens\":5,\"output_tokens\":0}\n");
    let ran = bench.blis("trace convert bad.jsonl --out o");
    let error = "error: bad.jsonl:1:50: field `output_tokens`: found 0; legal: a whole number \
                 from 1 to 4294967295\n";
    assert_eq!((ran.code, ran.err.as_str()), (Some(2), error));
    let folder = ".: cannot read: this is a directory; name a trace file";
    refused(&bench, "trace inspect .", folder);
    refused(&bench, "trace convert . --out o", folder);
    assert_eq!(bench.files(), ["bad.jsonl"], "nothing was written");
}

#[test]
fn outputs_that_fail_are_errors_and_readers_that_leave_are_not() {
    let bench = Bench::new();
    bench.write("many", many(20_000));
    let blis = env!("CARGO_BIN_EXE_blis");
    let shell = |line: &str| {
        let mut shell = Command::new("bash");
        shell.current_dir(bench.path()).args(["-c", &format!("set -o pipefail; {line}")]);
        Ran::from(shell.output().expect("bash is there"))
    };
    for command in ["trace convert many --out -", "trace generate --num-requests 9000 --out -"] {
        let ran = shell(&format!("{blis} {command} | head -n 1"));
        assert_eq!((ran.code, ran.err.as_str()), (Some(0), ""), "{command}");
        let ran = shell(&format!("{blis} {command} > /dev/full"));
        let full =
            "error: cannot write to standard output: No space left on device (os error 28)\n";
        assert_eq!((ran.code, ran.err.as_str()), (Some(3), full), "{command}");
    }
    for command in ["trace inspect many", "workloads"] {
        assert_eq!(shell(&format!("{blis} {command} > /dev/full")).code, Some(3), "{command}");
    }
    for command in ["trace convert many --out /dev/full", "run --trace-out /dev/full"] {
        let ran = bench.blis(command);
        let full = "error: cannot write `/dev/full`: No space left on device (os error 28)\n";
        assert_eq!((ran.code, ran.err.as_str()), (Some(3), full), "{command}");
    }
    assert_eq!(bench.files(), ["many"]);
}

#[test]
fn a_source_that_breaks_off_leaves_no_output() {
    let bench = Bench::new();
    let mut child = bench
        .command("trace convert - --out o")
        .stdin(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("it starts");
    let mut input = child.stdin.take().expect("it is piped");
    input.write_all(MOONCAKE.as_bytes()).expect("it is read");
    input.write_all(b"{\"timestamp\": 90500, \"inp").expect("it is read");
    drop(input);
    let ran = Ran::from(child.wait_with_output().expect("it ends"));
    assert_eq!(ran.code, Some(2), "{}", ran.err);
    assert!(ran.err.starts_with("error: standard input:5:"), "{}", ran.err);
    assert!(bench.files().is_empty(), "{:?}", bench.files());
}
