//! Inputs that were made to hurt: each was found by attacking the program.

use crate::Bench;

/// A specification whose only client is there until `end_us`, on top of `more`.
fn spec(end_us: u64, more: &str) -> String {
    format!(
        "version: 2\n{more}clients:\n  - rate_fraction: 1\n    arrival: {{process: constant}}
    input_distribution: {{type: constant, params: {{value: 9}}}}
    output_distribution: {{type: constant, params: {{value: 3}}}}
    lifecycle: {{windows: [{{start_us: 0, end_us: {end_us}}}]}}\n"
    )
}

#[test]
fn a_cluster_without_a_saturation_is_refused_and_breaks_nothing() {
    let bench = Bench::new();
    let slow = "gateway:\n  admission_latency_us: 315360000000000\n  \
                routing_latency_us: 315360000000000\n\
                workload: {distribution: {rate: 90%, num_requests: 5}}\n";
    bench.write("s.yaml", slow);
    let ran = bench.blis("run s.yaml");
    assert_eq!((ran.code, ran.out.as_str()), (Some(2), ""));
    let told = "error: s.yaml:4:33: workload.distribution.rate: ";
    assert!(ran.err.starts_with(told), "{}", ran.err);
    assert!(
        ran.err.contains("a rate at which all requests arrive within ten years"),
        "{}",
        ran.err
    );
}

#[test]
fn whoever_gets_fewer_requests_than_asked_for_is_told() {
    let bench = Bench::new();
    let amounts = "aggregate_rate: 5\nnum_requests: 50\n";
    for (end_us, warning) in [
        (1, "no request arrives: the workload ends before its first"),
        (1_100_000, "only 5 of 50 requests arrive: no client is active after them"),
    ] {
        bench.write("w.yaml", spec(end_us, amounts));
        let ran = bench.blis("run --workload-spec w.yaml");
        assert_eq!((ran.code, ran.err), (Some(0), format!("warning: {warning}\n")));
    }
    bench.write("w.yaml", spec(20_000_000, amounts));
    let ran = bench.blis("run --workload-spec w.yaml");
    assert_eq!((ran.code, ran.err.as_str()), (Some(0), ""), "all 50 arrive");
    let ran = bench.blis("run --workload-spec w.yaml --horizon 1000000");
    assert_eq!((ran.code, ran.err.as_str()), (Some(0), ""), "the horizon was asked for");
    let ran = bench.blis("run --workload-spec w.yaml --horizon 10");
    let warning = "warning: no request arrives: the workload ends before its first\n";
    assert_eq!((ran.code, ran.err.as_str()), (Some(0), warning));
}

#[test]
fn measured_chunks_are_never_written_over() {
    let bench = Bench::new();
    std::fs::create_dir(bench.path().join("data")).expect("it can be made");
    let lengths = r#"{"0": {"input_tokens": "{9: 1}", "output_tokens": "{3: 1}"}}"#;
    let files =
        [("data/chunk-0-trace.csv", "0,5,1,Gamma\n"), ("data/chunk-0-dataset.json", lengths)];
    for (name, text) in files {
        bench.write(name, text);
    }
    bench.write("w.yaml", "version: 2\nnum_requests: 9\nservegen_data: {path: data}\n");
    for (name, text) in files {
        for (args, flag) in [
            ("run --workload-spec w.yaml --trace-out", "--trace-out"),
            ("run --workload-spec w.yaml --requests-out", "--requests-out"),
            ("trace generate --workload-spec w.yaml --out", "--out"),
        ] {
            let ran = bench.blis(&format!("{args} {name}"));
            let error = format!("error: {flag}: it is the input `{name}`; name another file\n");
            assert_eq!((ran.code, ran.err), (Some(2), error));
            assert_eq!(bench.read(name), text);
        }
    }
    let ran = bench.blis("run --workload-spec w.yaml --trace-out data/chunk-1-trace.csv");
    assert_eq!(ran.code, Some(0), "what is not read may be written");
}

#[test]
fn a_trace_that_cannot_say_what_clients_do_is_written_with_a_note() {
    let bench = Bench::new();
    let retry = |words: &str| {
        let multi_turn = format!("{{max_rounds: 2, closed_loop: true{words}}}");
        let amounts = "aggregate_rate: 5\nnum_requests: 4\n";
        spec(9_000_000, amounts) + &format!("    reasoning: {{multi_turn: {multi_turn}}}\n")
    };
    let written = "4 requests written, seed 42\n";
    bench.write("w.yaml", retry(", on_rejection: retry, retry_after_us: 5, retries: 2"));
    let ran = bench.blis("trace generate --workload-spec w.yaml --out t.jsonl");
    let note = "note: retries are not written: when the trace is replayed, rejected clients give \
        up\n";
    assert_eq!((ran.code, ran.err), (Some(0), format!("{note}{written}")));
    bench.write("w.yaml", retry(""));
    let ran = bench.blis("trace generate --workload-spec w.yaml --out t.jsonl");
    assert_eq!((ran.code, ran.err.as_str()), (Some(0), written));
}
