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
    assert!(ran.err.contains("the cluster is too slow"), "{}", ran.err);
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
        let ran = bench.blis("run --workload-spec w.yaml --format json");
        assert_eq!((ran.code, ran.err), (Some(0), format!("warning: {warning}\n")));
    }
    bench.write("w.yaml", spec(20_000_000, amounts));
    let ran = bench.blis("run --workload-spec w.yaml");
    assert_eq!((ran.code, ran.err.as_str()), (Some(0), ""), "all 50 arrive");
    let ran = bench.blis("run --workload-spec w.yaml --horizon 1000000");
    assert_eq!((ran.code, ran.err.as_str()), (Some(0), ""), "the horizon was asked for");
    let ran = bench.blis("run --workload-spec w.yaml --horizon 10 --format json");
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

/// What a terminal would obey.
fn is_obeyed(c: char) -> bool {
    (c.is_control() && !matches!(c, '\n' | '\t')) || c == '\u{202e}'
}

#[test]
fn names_are_shown_and_never_obeyed() {
    let bench = Bench::new();
    let name = "a\\e[2J\\u202e<script>alert(1)</script>";
    let clients = spec(9_000_000, "aggregate_rate: 5\nnum_requests: 4\n");
    let tenants = format!("    tenant_id: \"{name}\"\n");
    bench.write("w.yaml", clients + &tenants);
    bench.write("s.yaml", format!("name: \"{name}\"\nworkload: {{spec: w.yaml}}\n"));
    for format in ["table", "json", "blis", "markdown", "html"] {
        let ran = bench.blis(&format!("run s.yaml --format {format}"));
        assert_eq!(ran.code, Some(0), "{}", ran.err);
        assert!(!(ran.out + &ran.err).contains(is_obeyed), "{format}");
    }
    for recorded in ["run s.yaml --quiet --trace-out", "trace generate s.yaml --out"] {
        let shown = bench.blis(&format!("{recorded} /dev/stdout"));
        let lines = shown.out.lines().filter(|line| line.starts_with("{\"id\""));
        let tenant =
            |line| serde_json::from_str::<serde_json::Value>(line).expect("JSON")["tenant"].clone();
        let tenants: Vec<_> = lines.map(tenant).collect();
        assert_eq!(
            tenants,
            vec!["a\u{1b}[2J\u{202e}<script>alert(1)</script>"; 4],
            "{}",
            shown.out
        );
        assert!(!shown.out.contains(is_obeyed), "{}", shown.out);
    }
    bench.write(
        "study.yaml",
        format!(
            "question: \"{name}\"\nbase: s.yaml\narms: [{{name: \"{name}\"}}, {{name: b}}]\n\
             seeds: 2\nmetrics: [ttft_p99]\n"
        ),
    );
    // What stands between marks of code is no tag.
    let tags = |page: &str| page.split("```").step_by(2).any(|part| part.contains("<script>alert"));
    for format in ["table", "markdown", "html", "json"] {
        let study = format!("study study.yaml --no-ledger --quiet --format {format}");
        let ran = bench.blis(&format!("{study} --report p.md --report p.html --plot p.svg"));
        assert_eq!(ran.code, Some(0), "{}", ran.err);
        assert!(!ran.out.contains(is_obeyed), "{format}: {}", ran.out);
        let is_page = matches!(format, "markdown" | "html");
        assert!(!is_page || !tags(&ran.out), "{format}: {}", ran.out);
    }
    for page in bench.files().iter().filter(|name| name.starts_with('p')) {
        let text = bench.read(page);
        assert!(!text.contains(is_obeyed) && !tags(&text), "{page}: {text}");
    }
}

#[test]
fn no_cell_of_a_table_for_spreadsheets_is_a_formula() {
    let bench = Bench::new();
    let clients = spec(9_000_000, "aggregate_rate: 5\nnum_requests: 4\n");
    bench.write("w.yaml", clients + "    tenant_id: \"=HYPERLINK('x')\"\n");
    let ran = bench.blis("run --workload-spec w.yaml --requests-out rows.csv");
    assert_eq!(ran.code, Some(0), "{}", ran.err);
    let rows = bench.read("rows.csv");
    let cells = || rows.lines().skip(1).flat_map(|row| row.split(','));
    assert_eq!(cells().filter(|cell| *cell == "'=HYPERLINK('x')").count(), 4, "{rows}");
    assert!(!cells().any(|cell| cell.starts_with(['=', '@', '+'])), "{rows}");
}

#[test]
fn work_without_bound_is_refused_before_it_begins_unless_it_is_asked_for() {
    let bench = Bench::new();
    let samples = "run --rate 0.001 --num-requests 50 --num-instances 4 --timeline t.csv \
                   --timeline-interval-ms 0.001";
    for (line, told) in [
        (samples, "error: timeline: "),
        ("run --num-requests 3000000 --perfetto t.json", "--perfetto: the events of 3000000"),
        ("run --num-instances 100000 --num-gateways 1000", "1000 gateways that each know 100000"),
    ] {
        let ran = bench.blis(line);
        assert_eq!((ran.code, ran.out.as_str()), (Some(2), ""), "{}", ran.err);
        assert!(ran.err.contains(told) && ran.err.contains("(`--max-gb`)"), "{}", ran.err);
        assert_eq!(bench.files(), [""; 0]);
    }
    let few = "run --rate 1 --num-requests 50 --timeline t.csv --timeline-interval-ms 1";
    assert_eq!(bench.blis(&format!("{few} --max-gb 1")).code, Some(0));
}

#[test]
fn a_flag_with_one_value_is_given_once() {
    let bench = Bench::new();
    for twice in [
        "--rate 1 --rate 2",
        "--format json --format table",
        "--strategy precise --strategy precise",
    ] {
        let ran = bench.blis(&format!("run --num-requests 3 {twice}"));
        assert_eq!((ran.code, ran.out.as_str()), (Some(2), ""), "{twice}: {}", ran.err);
    }
}

#[test]
fn hypotheses_that_cannot_be_told_apart_or_cannot_hold_are_refused() {
    let bench = Bench::new();
    let claim = "claim: ttft_p99(b) < ttft_p99(a)";
    for (hypotheses, told) in [
        (format!("{{name: x, {claim}}}, {{name: x, {claim}}}"), "found `x` twice; rename one"),
        (format!("{{{claim}, in: [calm, calm]}}"), "found `calm` twice; remove one"),
        (format!("{{{claim}, predict: -200%}}"), "no change below `-100%`"),
    ] {
        let study = format!(
            "question: q\nbase: {{workload: {{distribution: {{rate: 1, num_requests: 3}}}}}}\n\
             arms: [{{name: a}}, {{name: b}}]\nworkloads: [{{name: calm}}, {{name: wild}}]\n\
             metrics: [ttft_p99]\nseeds: 2\nhypotheses: [{hypotheses}]\n"
        );
        bench.write("s.yaml", study);
        let ran = bench.blis("study s.yaml --no-ledger");
        assert_eq!((ran.code, ran.out.as_str()), (Some(2), ""), "{}", ran.err);
        assert!(ran.err.contains(told), "{}\nnot: {told}", ran.err);
    }
}
