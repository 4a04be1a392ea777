//! Where results go, and what happens when they cannot go there.

use crate::{Bench, Ran};
use std::fs::File;
use std::process::Stdio;

#[test]
fn the_result_files_appear_whole_under_their_names() {
    let bench = Bench::new();
    let ran = bench.blis("run --num-requests 3 --requests-out r.csv --results-path r.json");
    assert_eq!((ran.code, ran.err.as_str()), (Some(0), ""));
    assert_eq!(bench.files(), ["r.csv", "r.json"]);
    let rows = bench.read("r.csv");
    let (header, rows) = rows.split_once('\n').expect("a header");
    assert_eq!(
        header,
        "request_id,arrival_us,class,tenant,session_id,round,instance,status,input_tokens,\
             output_tokens,cached_tokens,predicted_cached_tokens,queue_us,reload_us,ttft_us,e2e_us,\
         preemptions"
    );
    // Rows are written as requests end, so they are not in the order of arrival.
    let first = rows.lines().find(|row| row.starts_with("0,")).expect("a row of request 0");
    let fields: Vec<&str> = first.split(',').collect();
    assert_eq!(fields.len(), 17);
    assert_eq!(fields[..8], ["0", "1000000", "standard", "default", "", "0", "0", "finished"]);
    assert_eq!(rows.lines().count(), 3);
    let results: serde_json::Value = serde_json::from_str(&bench.read("r.json")).expect("JSON");
    assert_eq!(results["completed_requests"], 3);
    assert_eq!(results["requests"][2]["requestID"], "request_2");
    assert_eq!(results["requests"][2]["handled_by"], "instance_0");
}

#[test]
fn the_layout_for_scripts_has_its_sections_in_order() {
    let bench = Bench::new();
    let ran = bench.blis(
        "run --num-requests 4 --num-instances 2 --prefix-tokens 64 --trace-level decisions \
         --summarize-trace --fitness-weights throughput:1,p99_ttft:2",
    );
    assert_eq!((ran.code, ran.err.as_str()), (Some(0), ""));
    let headings: Vec<&str> = ran.out.lines().filter(|line| line.starts_with("===")).collect();
    assert_eq!(
        headings,
        [
            "=== Simulation Metrics ===",
            "=== Simulation Metrics ===",
            "=== Simulation Metrics ===",
            "=== Fitness Evaluation ===",
            "=== KV Cache Metrics ===",
            "=== Trace Summary ===",
        ]
    );
    let block = ran.out.split("=== Simulation Metrics ===\n").nth(3).expect("the cluster's block");
    let end = block.find("\n}\n").expect("the closing brace stands alone") + 2;
    let object: serde_json::Value = serde_json::from_str(&block[..end]).expect("JSON");
    let keys: Vec<&String> = object.as_object().expect("an object").keys().collect();
    assert_eq!(keys[..4], ["instance_id", "completed_requests", "still_queued", "still_running"]);
    assert_eq!(object["instance_id"], "cluster");
    assert!(ran.out.ends_with(
        "Total Decisions: 4
  Admitted: 4
  Rejected: 0
Unique Targets: 2
Target Distribution:
  instance_0: 2
  instance_1: 2
"
    ));
}

#[test]
fn the_layout_for_scripts_counts_priority_inversions() {
    let bench = Bench::new();
    let count = |flags: &str| {
        let ran = bench.blis(&format!(
            "run --num-requests 200 --rate 50 --output-tokens-stdev 500 --total-kv-blocks 2000 \
             --admission-policy token-bucket[capacity=9000,refill-rate=20000] {flags}"
        ));
        let line = ran.out.lines().find(|line| line.starts_with("Priority Inversions: "));
        let number = line.expect("there are rejections, so the section is printed");
        number["Priority Inversions: ".len()..].parse::<u64>().expect("a count")
    };
    assert_eq!(count("--priority-policy constant"), 0, "equal priorities are never inverted");
    assert!(count("--priority-policy slo-class --scheduler priority-fcfs") > 0);
}

#[test]
fn the_table_fits_100_columns_and_has_no_colour_in_a_pipe() {
    let bench = Bench::new();
    for args in [
        "run --format table --num-instances 3 --num-requests 50",
        "run --format table --num-instances 20 --num-requests 50",
        "run --format table --replications 3 --num-requests 50",
        "run --format table --total-kv-blocks 1 --num-requests 5",
        "run --format table --beta-coeffs 1e9,1e9,1e9 --num-requests 1000 --rate 1e6",
    ] {
        let ran = bench.blis(args);
        assert!(!ran.out.is_empty() && !ran.out.contains('\x1b'), "{args}");
        for line in ran.out.lines() {
            assert!(line.chars().count() <= 100, "{args}: {line}");
        }
    }
}

#[test]
fn an_output_that_cannot_be_written_is_found_before_the_run() {
    let bench = Bench::new();
    // The workload would take for ever.
    let run = "run --num-requests 1000000000000";
    let ran = bench.blis(&format!("{run} --results-path none/r.json"));
    assert_eq!(
        ran.err,
        "error: cannot write `none/r.json`: No such file or directory (os error 2)\n"
    );
    assert_eq!((ran.code, ran.out.as_str()), (Some(3), ""));
    let ran = bench.blis(&format!("{run} --results-path ok.json --requests-out ."));
    assert_eq!(ran.err, "error: cannot write `.`: it is a directory\n");
    assert_eq!((ran.code, ran.out.as_str()), (Some(3), ""));
    assert_eq!(bench.files(), Vec::<String>::new(), "nothing is left behind");
}

#[test]
fn a_full_disk_is_an_error() {
    let bench = Bench::new();
    let full = || File::options().write(true).open("/dev/full").expect("Linux has it");
    let run = |args: &str| {
        let mut command = bench.command(args);
        Ran::from(command.stdout(full()).stderr(Stdio::piped()).output().expect("starts"))
    };
    let message = "error: cannot write to standard output: No space left on device (os error 28)\n";
    for args in ["run --num-requests 3", "policies", "--help", "--version", "completions bash"] {
        let ran = run(args);
        assert_eq!((ran.code, ran.err.as_str()), (Some(3), message), "{args}");
    }
    let ran = bench.blis("run --num-requests 3 --requests-out /dev/full");
    assert_eq!(ran.err, "error: cannot write `/dev/full`: No space left on device (os error 28)\n");
    assert_eq!((ran.code, ran.out.as_str()), (Some(3), ""));
}

#[test]
fn a_reader_that_leaves_is_no_error() {
    let bench = Bench::new();
    for args in ["run --num-requests 3", "policies", "--help", "completions zsh"] {
        let (reader, writer) = std::io::pipe().expect("a pipe");
        drop(reader);
        let mut command = bench.command(args);
        let ran =
            Ran::from(command.stdout(writer).stderr(Stdio::piped()).output().expect("starts"));
        assert_eq!((ran.code, ran.err.as_str()), (Some(0), ""), "{args}");
    }
}

#[test]
fn policies_are_listed_in_every_layout() {
    let bench = Bench::new();
    let ran = bench.blis("policies order");
    assert_eq!(ran.out.lines().next(), Some("Orders of waiting requests (`scheduler`)"));
    let ran = bench.blis("policies --format json");
    let kinds: serde_json::Value = serde_json::from_str(&ran.out).expect("JSON");
    assert_eq!(kinds[0]["kind"], "admission");
    assert!(bench.blis("policies --format markdown").out.starts_with("# Policies\n"));
}

#[test]
fn a_trace_keeps_its_names() {
    let bench = Bench::new();
    bench.write(
        "t.jsonl",
        r#"{"id":"a,1","arrival_us":0,"prompt":[["s",40]],"output_tokens":2,"tenant":"t","session":"s"}
{"arrival_us":1.5,"input_tokens":9,"output_tokens":1,"class":"batch","session":"s","round":1}
"#,
    );
    bench.write("s.yaml", "workload: {trace: t.jsonl}\n");
    let ran = bench.blis("run s.yaml --format json --audit --requests-out r.csv");
    let value = ran.json();
    assert_eq!(value["classes"]["batch"]["completed_requests"], 1);
    assert_eq!(value["tenants"]["t"]["completed_requests"], 1);
    assert_eq!(value, bench.blis("run --trace t.jsonl --format json").json());
    let rows = bench.read("r.csv");
    let starts = |start: &str| rows.lines().any(|row| row.starts_with(start));
    assert!(starts("\"a,1\",0,standard,t,s,0,0,finished,40,2,0,,"), "{rows}");
    assert!(starts("1,1.5,batch,default,s,1,0,finished,9,1,0,,"), "{rows}");
    let ran = bench.blis("run --trace t.jsonl --rate 5");
    assert_eq!(ran.err, "error: --rate: a trace has its own arrivals; remove it\n");
    assert_eq!(ran.code, Some(2));
}
