//! Where results go, and what happens when they cannot go there.

use crate::{Bench, Ran};
use std::fs::{self, File, Permissions};
use std::os::unix::fs::{FileTypeExt, MetadataExt, PermissionsExt, symlink};
use std::path::Path;
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
             output_tokens,cached_tokens,predicted_cached_tokens,gateway_us,queue_us,reload_us,\
         prefill_us,recompute_us,output_us,ttft_us,e2e_us,preemptions"
    );
    // Rows are written as requests end, so they are not in the order of arrival.
    let first = rows.lines().find(|row| row.starts_with("0,")).expect("a row of request 0");
    let fields: Vec<&str> = first.split(',').collect();
    assert_eq!(fields.len(), 21);
    assert_eq!(fields[..8], ["0", "1000000", "standard", "default", "", "0", "0", "finished"]);
    let us = |at: usize| fields[at].parse::<f64>().expect("a number");
    let parts: f64 = (12..18).map(us).sum();
    assert!((parts - us(18)).abs() < 1e-6, "the parts of {first} add up to its TTFT");
    assert_eq!(rows.lines().count(), 3);
    let results: serde_json::Value = serde_json::from_str(&bench.read("r.json")).expect("JSON");
    assert_eq!(results["completed_requests"], 3);
    assert_eq!(results["requests"][2]["requestID"], "request_2");
    assert_eq!(results["requests"][2]["handled_by"], "instance_0");
    assert_eq!(results["requests"][2]["status"], "finished");
    assert_eq!(results["end"], "drained");
}

#[test]
fn every_request_that_arrived_is_counted_and_has_a_row() {
    let bench = Bench::new();
    let ran = bench.blis(
        "run --num-requests 40 --rate 20 --horizon 1500000 --admission-latency 200000 \
         --admission-policy token-bucket[capacity=5000,refill-rate=1] --max-num-running-reqs 2 \
         --prompt-tokens-max 2000 --total-kv-blocks 80 --results-path r.json --quiet --format blis",
    );
    let block = ran.out.strip_prefix("=== Simulation Metrics ===\n").expect("the cluster's block");
    let end = block.find("\n}\n").expect("the closing brace stands alone") + 2;
    let printed: serde_json::Value = serde_json::from_str(&block[..end]).expect("JSON");
    let file: serde_json::Value = serde_json::from_str(&bench.read("r.json")).expect("JSON");
    assert_eq!((&printed["end"], &file["end"]), (&"horizon".into(), &"horizon".into()));
    let rows = file["requests"].as_array().expect("rows");
    let with = |status: &str| rows.iter().filter(|row| row["status"] == status).count() as u64;
    let mut sum = 0;
    for (key, status) in [
        ("rejected_requests", "rejected"),
        ("in_transit", "in-transit"),
        ("completed_requests", "finished"),
        ("dropped_unservable", "unservable"),
        ("still_queued", "queued"),
        ("still_running", "running"),
    ] {
        let count = printed[key].as_u64().expect(key);
        assert_eq!((file[key].as_u64(), with(status)), (Some(count), count), "{key}");
        sum += count;
    }
    let reached = sum - with("rejected") - with("in-transit");
    assert_eq!(printed["injected_requests"], reached, "as the Go program counts");
    assert_eq!((file["injected_requests"].as_u64(), rows.len() as u64), (Some(reached), sum));
    for status in ["rejected", "in-transit", "queued"] {
        assert!(with(status) > 0, "a test of something: {status}");
        let row = rows.iter().find(|row| row["status"] == status).expect("one");
        assert_eq!(row["e2e_ms"], 0.0, "scripts take it for granted: {row}");
        assert_eq!(row.get("handled_by").is_some(), status == "queued", "{row}");
    }
    let json = bench.blis(
        "run --num-requests 40 --rate 20 --horizon 1500000 --admission-latency 200000 \
         --admission-policy token-bucket[capacity=5000,refill-rate=1] --max-num-running-reqs 2 \
         --prompt-tokens-max 2000 --total-kv-blocks 80 --format json --quiet",
    );
    let json: serde_json::Value = serde_json::from_str(&json.out).expect("JSON");
    assert_eq!(json["cluster"]["injected_requests"], sum, "all that arrived");
}

#[test]
fn a_link_stays_a_link_and_a_file_keeps_its_mode() {
    let bench = Bench::new();
    let at = |name: &str| bench.path().join(name);
    fs::create_dir(at("far")).expect("a folder");
    bench.write("far/old.csv", "old");
    fs::set_permissions(at("far/old.csv"), Permissions::from_mode(0o640)).expect("its mode");
    symlink("far/old.csv", at("rows.csv")).expect("a link");
    symlink("far/new.json", at("all.json")).expect("a link");
    let ran = bench.blis("run --num-requests 3 --requests-out rows.csv --results-path all.json");
    assert_eq!((ran.code, ran.err.as_str()), (Some(0), ""));
    assert_eq!(bench.files(), ["all.json", "far", "rows.csv"]);
    for (link, target) in [("rows.csv", "far/old.csv"), ("all.json", "far/new.json")] {
        assert_eq!(fs::read_link(at(link)).expect("still a link"), Path::new(target));
        assert!(fs::symlink_metadata(at(target)).expect("is there").is_file());
    }
    assert_eq!(fs::metadata(at("far/old.csv")).expect("is there").mode() & 0o777, 0o640);
    assert_eq!(bench.read("far/old.csv").lines().count(), 4);
    assert_eq!(fs::read_dir(at("far")).expect("a folder").count(), 2, "nothing temporary is left");
    symlink("loop", at("loop")).expect("a link");
    let ran = bench.blis("run --num-requests 3 --requests-out loop");
    let error = "error: cannot write `loop`: Too many levels of symbolic links (os error 40)\n";
    assert_eq!((ran.code, ran.err.as_str(), ran.out.as_str()), (Some(3), error, ""));
}

#[test]
fn what_is_no_file_is_written_as_it_stands() {
    let bench = Bench::new();
    let at = |name: &str| bench.path().join(name);
    symlink("/dev/null", at("null")).expect("a link");
    let ran = bench.blis("run --num-requests 3 --requests-out null --results-path null");
    assert_eq!((ran.code, ran.err.as_str()), (Some(0), ""));
    assert_eq!(fs::read_link(at("null")).expect("still a link"), Path::new("/dev/null"));
    assert!(fs::metadata("/dev/null").expect("Linux has it").file_type().is_char_device());
    // Standard output is a file here: the rows come first, then the result, nothing is lost.
    symlink("/proc/self/fd/1", at("out")).expect("a link");
    let file = File::create(at("printed")).expect("a file");
    let mut command = bench.command("run --num-requests 3 --requests-out out --format blis");
    let ran = Ran::from(command.stdout(file).stderr(Stdio::piped()).output().expect("starts"));
    assert_eq!((ran.code, ran.err.as_str()), (Some(0), ""));
    let printed = bench.read("printed");
    assert!(printed.starts_with("request_id,arrival_us,"), "{printed}");
    assert_eq!(printed.lines().nth(4), Some("=== Simulation Metrics ==="));
    assert_eq!(bench.files(), ["null", "out", "printed"]);
}

#[test]
fn outputs_that_are_one_file_or_an_input_are_refused_before_the_run() {
    let bench = Bench::new();
    let at = |name: &str| bench.path().join(name);
    bench.write("s.yaml", "workload: {trace: t.jsonl}\n");
    bench.write("t.jsonl", "{\"arrival_us\":1,\"input_tokens\":5,\"output_tokens\":2}\n");
    bench.write("bundle.yaml", "scheduler: fcfs\n");
    bench.write("w.yaml", SPECIFICATION);
    bench.write("x", "kept");
    symlink("x", at("soft")).expect("a link");
    symlink("nothing", at("dangling")).expect("a link");
    fs::hard_link(at("x"), at("hard")).expect("a link");
    symlink(".", at("here")).expect("a link");
    let before = bench.files();
    let whole = at("new").display().to_string();
    for (first, second) in [
        ("new", "new"),
        ("new", "./new"),
        ("new", whole.as_str()),
        ("new", "here/new"),
        ("x", "soft"),
        ("x", "hard"),
        ("nothing", "dangling"),
    ] {
        let ran = bench.blis(&format!("run --results-path {first} --requests-out {second}"));
        let error =
            "error: --requests-out: it is also the file of `--results-path`; name another\n";
        assert_eq!((ran.code, ran.err.as_str(), ran.out.as_str()), (Some(2), error, ""));
    }
    for (args, input) in [
        ("s.yaml --results-path ./s.yaml", "s.yaml"),
        ("s.yaml --results-path here/t.jsonl", "t.jsonl"),
        ("--trace ./t.jsonl --results-path t.jsonl", "./t.jsonl"),
        ("--policy-config bundle.yaml --results-path bundle.yaml", "bundle.yaml"),
        ("--workload-spec w.yaml --results-path w.yaml", "w.yaml"),
    ] {
        let ran = bench.blis(&format!("run {args}"));
        let error =
            format!("error: --results-path: it is the input `{input}`; name another file\n");
        assert_eq!((ran.code, ran.err.as_str(), ran.out.as_str()), (Some(2), error.as_str(), ""));
    }
    assert_eq!((bench.files(), bench.read("x")), (before, "kept".to_owned()));
}

/// Files that name one another.
const FILES: [(&str, &str); 9] = [
    (
        "st.yaml",
        "question: q?\nbase: base.yaml\nseeds: 1\nmetrics: [completed]\n\
             arms: [{name: a}, {name: b, set: {strategy: ./strat.yaml}}]\n",
    ),
    (
        "se.yaml",
        "question: q?\nbase: base.yaml\nstrategy: ./strat.yaml\nobjective: ttft_mean\n\
             budget: {calls: 4, seeds: 1}\n",
    ),
    ("base.yaml", "latency: {model: ./p.yaml}\nworkload: {trace: t}\n"),
    ("s.yaml", "strategy: ./strat.yaml\nworkload: {trace: t}\n"),
    ("m.yaml", "model: ./c.json\nhardware: H100\nlatency: {model: roofline}\nslo: chat\n"),
    (
        "strat.yaml",
        "name: mine\nhelp: h\nparameters: {qd: {default: 1, min: 0, max: 9, help: h}}\n\
             set: {routing: {policy: weighted, scorers: 'qd:{qd}'}}\n",
    ),
    ("t", "{\"arrival_us\":1,\"input_tokens\":5,\"output_tokens\":2}\n"),
    ("p.yaml", include_str!("../../../scenario/profiles/llama-3.1-8b-h200-tp1.yaml")),
    (
        "c.json",
        r#"{"num_hidden_layers": 16, "hidden_size": 2048, "num_attention_heads": 32,
        "num_key_value_heads": 8, "intermediate_size": 8192, "vocab_size": 128256,
        "max_position_embeddings": 131072, "torch_dtype": "bfloat16"}"#,
    ),
];

/// Whatever a command reads, through whichever file names it, and whatever else it writes.
#[test]
fn no_output_writes_over_what_a_command_reads_or_writes_besides() {
    let bench = Bench::new();
    let at = |name: &str| bench.path().join(name);
    for (name, text) in FILES {
        bench.write(name, text);
    }
    symlink("t", at("soft")).expect("a link");
    fs::hard_link(at("t"), at("hard")).expect("a link");
    bench.write("old.db", "");
    fs::create_dir(at("runs")).expect("a folder");
    bench.write("runs/x.steps.csv", include_str!("../../../../data/h200/prefix80.steps.csv"));
    let input = |flag: &str, name: &str| format!("{flag}: it is the input `{name}`; name another");
    let also = |flag: &str, other: &str| format!("{flag}: it is also the file of `{other}`; name");
    let before = bench.files();
    for (args, message) in [
        ("study st.yaml --csv l.db --ledger l.db", also("--ledger", "--csv")),
        ("study st.yaml --csv l.db-wal --ledger l.db", also("--ledger", "--csv")),
        ("study st.yaml --plot old.db --ledger ./old.db", also("--ledger", "--plot")),
        ("study st.yaml --csv base.yaml", input("--csv", "base.yaml")),
        ("study st.yaml --plot strat.yaml", input("--plot", "./strat.yaml")),
        ("study st.yaml --report p.yaml", input("--report", "./p.yaml")),
        ("study st.yaml --report soft", input("--report", "t")),
        ("study st.yaml --csv hard", input("--csv", "t")),
        ("study st.yaml --csv x --plot ./x", also("--plot", "--csv")),
        ("study st.yaml --report x.md --report x.md", also("--report", "--report")),
        ("study st.yaml --ledger base.yaml", input("--ledger", "base.yaml")),
        ("compare s.yaml base.yaml --report strat.yaml", input("--report", "./strat.yaml")),
        ("explain st.yaml --report base.yaml", input("--report", "base.yaml")),
        ("run s.yaml --timeline strat.yaml", input("--timeline", "./strat.yaml")),
        ("run m.yaml --timeline c.json", input("--timeline", "./c.json")),
        ("run base.yaml --results-path p.yaml", input("--results-path", "./p.yaml")),
        ("capacity m.yaml --report c.json", input("--report", "./c.json")),
        ("optimize se.yaml --out strat.yaml", input("--out", "./strat.yaml")),
        ("optimize se.yaml --out x --report x", also("--report", "--out")),
        ("calibrate runs --out runs/x.steps.csv", input("--out", "runs/x.steps.csv")),
        ("export llm-d s.yaml --out strat.yaml", input("--out", "./strat.yaml")),
        ("trace generate s.yaml --out t", input("--out", "t")),
        ("trace convert t --out hard", input("--out", "t")),
    ] {
        let ran = bench.blis(args);
        assert_eq!((ran.code, ran.out.as_str()), (Some(2), ""), "{args}: {}", ran.err);
        assert!(ran.err.contains(&message), "{args}: {}\nnot: {message}", ran.err);
        assert_eq!(bench.files(), before, "{args}");
    }
    let ran = bench.blis("study st.yaml --csv base.yaml --plot strat.yaml --report t");
    assert_eq!(ran.err.lines().count(), 3, "all at once: {}", ran.err);
    for (name, text) in FILES {
        assert_eq!(bench.read(name), text, "{name}");
    }
}

const SPECIFICATION: &str = "
version: '2'
aggregate_rate: 10
num_requests: 3
clients:
  - id: c
    rate_fraction: 1
    arrival: {process: poisson}
    input_distribution: {type: constant, params: {value: 10}}
    output_distribution: {type: constant, params: {value: 5}}
";

#[test]
fn random_arrivals_beyond_ten_years_are_left_out_and_told() {
    let bench = Bench::new();
    // 9.9 years on average, so some of these runs take more than ten.
    let distribution = "{rate: 3.2e-7, num_requests: 100, arrival: poisson}";
    bench.write("s.yaml", format!("workload: {{distribution: {distribution}}}\n"));
    let ran = bench.blis("run s.yaml --replications 20 --format json");
    assert_eq!(ran.code, Some(0), "{}", ran.err);
    let value: serde_json::Value = serde_json::from_str(&ran.out).expect("JSON");
    let runs = value["replications"].as_array().expect("runs");
    let sent = |run: &serde_json::Value| run["cluster"]["injected_requests"].as_u64();
    let short: Vec<u64> = runs.iter().filter_map(sent).filter(|&sent| sent < 100).collect();
    assert!(!short.is_empty(), "a test of something");
    for sent in short {
        let warning = format!(
            "warning: only {sent} of 100 requests arrive within ten years; the others are left \
             out\n"
        );
        assert!(ran.err.contains(&warning), "{}", ran.err);
    }
}

#[test]
fn requests_of_the_warm_up_have_arrived() {
    let bench = Bench::new();
    let distribution = "{rate: 10, num_requests: 100}";
    bench.write("s.yaml", format!("warmup_s: 2\nworkload: {{distribution: {distribution}}}\n"));
    let ran = bench.blis("run s.yaml --format json");
    assert_eq!((ran.code, ran.err.contains("arrive")), (Some(0), false), "{}", ran.err);
    assert!(ran.json()["cluster"]["injected_requests"].as_u64() < Some(90));
}

#[test]
fn a_run_that_stops_at_the_limit_of_a_century_says_so() {
    let bench = Bench::new();
    let run = "run --beta-coeffs 1e9,1e9,1e9 --num-requests 20000 --rate 1e6";
    let warning = "warning: stopped after a hundred simulated years, the limit; the numbers cover \
        only that part\n";
    let ran = bench.blis(&format!("{run} --format json"));
    assert_eq!(ran.json()["run"]["end"], "horizon");
    assert!(ran.err.contains(warning), "{}", ran.err);
    assert!(bench.blis(&format!("{run} --format table")).out.contains("a hundred simulated years"));
    let ran = bench.blis(&format!("{run} --horizon 5000000"));
    assert!(!ran.err.contains(warning), "an end that was asked for: {}", ran.err);
}

#[test]
fn the_layout_for_scripts_has_its_sections_in_order() {
    let bench = Bench::new();
    let ran = bench.blis(
        "run --num-requests 4 --num-instances 2 --prefix-tokens 64 --trace-level decisions \
         --summarize-trace --fitness-weights throughput:1,p99_ttft:2 --format blis",
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
             --admission-policy token-bucket[capacity=9000,refill-rate=20000] {flags} \
             --format blis"
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
fn tables_fit_the_terminal_that_they_are_shown_on() {
    let bench = Bench::new();
    let shown = |columns: &str| {
        let mut command =
            bench.command("run --format table --num-requests 50 --workload orthogonal-slo");
        Ran::from(command.env("COLUMNS", columns).output().expect("starts")).out
    };
    let narrow = shown("50");
    assert!(narrow.lines().all(|line| line.chars().count() <= 50), "{narrow}");
    assert!(narrow.matches("critical").count() > 1, "each part says whose numbers: {narrow}");
    let wide = shown("200");
    assert_eq!(wide.matches("critical").count(), 1, "one part: {wide}");
}

#[test]
fn every_layout_of_a_result_can_be_printed() {
    let bench = Bench::new();
    for (layout, start) in [("markdown", "# 50 requests on"), ("html", "<!doctype html>")] {
        let ran = bench.blis(&format!("run --num-requests 50 --format {layout}"));
        assert!(ran.out.starts_with(start) && ran.code == Some(0), "{}", ran.out);
        assert!(ran.out.contains("TTFT breakdown, ms"), "{}", ran.out);
    }
}

#[test]
fn an_output_that_cannot_be_written_is_found_before_the_run() {
    let bench = Bench::new();
    // The workload would take for ever.
    let run = "run --num-requests 1000000000000 --rate 1e6";
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
    assert_eq!(ran.out.lines().nth(1), Some("Orders of waiting requests (`scheduler`)"));
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
    assert_eq!(
        ran.err,
        "error: --rate: a trace has its own arrivals; remove it, or use `speedup` or \
         `trace_limit`\n"
    );
    assert_eq!(ran.code, Some(2));
}

#[test]
fn who_gave_up_is_counted_in_every_layout() {
    let bench = Bench::new();
    let flags =
        "run --num-requests 60 --rate 40 --max-num-running-reqs 2 --patience-ms 800 --quiet";
    let files = "--results-path r.json --requests-out q.csv";
    let ran = bench.blis(&format!("{flags} {files} --format blis"));
    assert_eq!(ran.code, Some(0), "{}", ran.err);
    let abandoned = bench.read("q.csv").matches(",abandoned,").count() as u64;
    assert!(abandoned > 5 && abandoned < 60, "{abandoned} gave up");
    assert!(ran.out.contains(&format!("\"timed_out_requests\": {abandoned}")), "{}", ran.out);
    assert!(ran.out.contains(&format!("Timed Out Requests: {abandoned}\n")), "{}", ran.out);
    let file: serde_json::Value = serde_json::from_str(&bench.read("r.json")).expect("JSON");
    assert_eq!(file["timed_out_requests"], abandoned);
    let json = bench.blis(&format!("{flags} --format json --audit"));
    let value: serde_json::Value = serde_json::from_str(&json.out).expect("JSON");
    let cluster = &value["cluster"];
    assert_eq!(cluster["abandoned_requests"], abandoned);
    assert_eq!(value["classes"]["standard"]["abandoned_requests"], abandoned);
    assert_eq!(cluster["completed_requests"], 60 - abandoned);
    assert_eq!(value["mechanisms"]["clients.gave-up"], abandoned);
    let table = bench.blis(&format!("{flags} --format table"));
    assert!(table.out.contains(&format!("{abandoned} abandoned")), "{}", table.out);
}

#[test]
fn patience_without_end_and_a_single_gateway_change_no_byte() {
    let bench = Bench::new();
    let flags = "run --num-requests 60 --rate 40 --max-num-running-reqs 2 --num-instances 2 \
                 --routing-policy weighted --snapshot-refresh-interval 500000 --quiet \
                 --format blis";
    let plain = bench.blis(flags);
    let other = bench.blis(&format!("{flags} --patience-ms 315360000000 --num-gateways 1"));
    assert_eq!((plain.code, &plain.out), (Some(0), &other.out));
    let several = bench.blis(&format!("{flags} --num-gateways 3"));
    assert_ne!(plain.out, several.out, "the flag is read");
    for (bad, legal) in [("--patience-ms 0", "from 1e-6"), ("--num-gateways 0", "from 1 to 1000")] {
        let ran = bench.blis(&format!("{flags} {bad}"));
        assert_eq!(ran.code, Some(2), "{bad}");
        assert!(ran.err.contains(legal), "{}", ran.err);
    }
}

#[test]
fn a_run_of_flags_that_do_not_say_how_long_is_long_enough_to_be_steady() {
    let bench = Bench::new();
    bench.write("s.yaml", "cluster: {instances: 3}\n");
    let note = |requests: &str| {
        format!(
            "note: --num-requests is not given; {requests} were sent, for a steady state: two \
             minutes of arrivals and at least 500 for each instance\n"
        )
    };
    for (args, sent, told) in [
        ("--num-instances 3", 1_500, note("1,500")),
        ("--num-instances 3 --rate 20", 2_400, note("2,400")),
        ("--num-requests 40", 40, String::new()),
        (
            "--num-instances 1 --rate 64users",
            1_280,
            note("1,280").replace("two minutes of arrivals", "20 for each user"),
        ),
        ("--workload multi-turn-4x512 --rate 5", 8_000, String::new()),
        ("s.yaml", 100, String::new()),
        // A call of the Go program.
        (
            "--model meta-llama/llama-3.1-8b-instruct --tp 2 --quiet --num-requests 7",
            7,
            String::new(),
        ),
    ] {
        let ran = bench.blis(&format!("run {args} --format json"));
        assert_eq!(ran.json()["cluster"]["injected_requests"], sent, "{args}");
        assert_eq!(ran.err, told, "{args}");
    }
    let go = "run --model meta-llama/llama-3.1-8b-instruct --tp 2 --log error";
    let explicit = bench.blis(&format!("{go} --num-requests 100"));
    assert_eq!(bench.blis(go).out, explicit.out, "calls of the Go program are as long as there");
}

#[test]
fn the_defaults_that_the_help_names_are_those_of_a_run() {
    let bench = Bench::new();
    let help = bench.blis("run --help").out;
    let words = help.split_whitespace().collect::<Vec<_>>().join(" ");
    let engine = |args: &str| bench.blis(&format!("run --format json {args}")).json();
    let (large, small) = (engine(""), engine("--hardware L40S --tp 4"));
    for field in ["max_num_running_reqs", "max_num_scheduled_tokens"] {
        let [usual, less] = [&large, &small].map(|run| run["engine"][field].to_string());
        let default = format!("[default: the preset's: {usual}, or {less} on an A100 and");
        assert!(words.contains(&default), "{default}: {help}");
    }
    assert_eq!(large["engine"]["latency_model"], "coefficients");
    assert_eq!(small["engine"]["latency_model"], "roofline");
    let sent = format!("one instance gets {} requests", large["cluster"]["injected_requests"]);
    assert!(words.contains(&sent), "{sent}: {help}");
    assert!(words.contains("sessions per second where the workload has sessions"), "{help}");
}

#[test]
fn a_run_says_how_its_engine_is_set_and_what_a_rate_of_sessions_is_in_requests() {
    let bench = Bench::new();
    let run = bench.blis("run --workload multi-turn-4x512 --rate 5 --num-requests 80").out;
    let about = "token budget 8,192, at most 1,024 running, async scheduling; step times: fitted";
    assert!(run.contains(about), "{run}");
    assert!(run.contains("\n5 sessions/s of 4 requests each = 20 requests/s\n"), "{run}");
    let run = bench.blis("run --num-requests 20 --async-scheduling false").out;
    assert!(run.contains("synchronous scheduling") && !run.contains("sessions"), "{run}");
}
