//! Bad input is refused before anything runs, with the place, the value and what is legal.

use crate::{Bench, Ran};
use std::process::Command;

/// `blis run args` must be refused with exactly this error, and must write nothing.
#[track_caller]
pub(crate) fn refused(args: &str, error: &str) {
    let bench = Bench::new();
    let ran = bench.blis(&format!("run --requests-out rows.csv --results-path all.json {args}"));
    assert_eq!(ran.err, format!("error: {error}\n"), "{args}");
    assert_eq!((ran.code, ran.out.as_str()), (Some(2), ""), "{args}");
    assert_eq!(bench.files(), Vec::<String>::new(), "{args} left something behind");
}

/// A scenario file with this text must be refused with exactly this error.
#[track_caller]
fn file_refused(text: impl AsRef<[u8]>, error: &str) {
    let bench = Bench::new();
    bench.write("s.yaml", text);
    let ran = bench.blis("run s.yaml");
    assert_eq!(ran.err, format!("error: {error}\n"));
    assert_eq!((ran.code, ran.out.as_str()), (Some(2), ""));
}

#[test]
fn numbers_on_flags() {
    let rate = "legal: a number from 1e-9 to 1e9 (requests per second), a percentage of the \
                cluster's saturation such as `90%`, or users such as `64 users`";
    for bad in
        ["0", "-1", "NaN", "inf", "-inf", "1e308", "1e-12", "x", "0x10", "1_000", "5ms", "1,5"]
    {
        refused(&format!("--rate {bad}"), &format!("--rate: found `{bad}`; {rate}"));
    }
    refused("--rate=", &format!("--rate: found ``; {rate}"));
    refused(
        "--admission-latency 9223372036854775807",
        "--admission-latency: found `9223372036854775807`; legal: a whole number from 0 to \
         315360000000000",
    );
    refused(
        "--routing-latency 1e30",
        "--routing-latency: found `1e30`; legal: a whole number from 0 to 315360000000000",
    );
    refused("--horizon -5", "--horizon: found `-5`; legal: a whole number, at least 1");
    refused("--horizon 0", "--horizon: found `0`; legal: a whole number, at least 1");
    refused("--seed -1", "--seed: found `-1`; legal: a whole number, not negative");
    refused(
        "--num-requests 1.5",
        "--num-requests: found `1.5`; legal: a whole number from 0 to 1000000000000",
    );
    refused(
        "--num-requests 0",
        "--num-requests: a workload needs a number of requests or a horizon; give one of them",
    );
    refused(
        "--prompt-tokens-stdev -1",
        "--prompt-tokens-stdev: found `-1`; legal: a number from 0 to 1073741824",
    );
    refused("--alpha-coeffs 1,2", "--alpha-coeffs: found 2 numbers; legal: three (microseconds)");
    refused(
        "--beta-coeffs 1,-2,3",
        "--beta-coeffs: found `-2`; legal: a number from 0 to 1e9 (microseconds)",
    );
    refused(
        "--reserve-full-prompt maybe",
        "--reserve-full-prompt: found `maybe`; legal: `true` or `false`",
    );
}

#[test]
fn sizes_on_flags() {
    let blocks = "legal: a whole number from 1 to 2147483648";
    for bad in ["0", "-1", "1000000000000", "9223372036854775807", "99999999999999999999999"] {
        refused(
            &format!("--total-kv-blocks {bad}"),
            &format!("--total-kv-blocks: found `{bad}`; {blocks}"),
        );
    }
    refused(
        "--block-size 65537",
        "--block-size-in-tokens: found `65537`; legal: a whole number from 1 to 65536",
    );
    refused(
        "--num-instances 1000000",
        "--num-instances: found `1000000`; legal: a whole number from 1 to 100000",
    );
    refused(
        "--max-num-running-reqs 0",
        "--max-num-running-reqs: found `0`; legal: a whole number from 1 to 1000000",
    );
}

#[test]
fn names_on_flags() {
    refused(
        "--routing-policy wieghted",
        "--routing-policy: unknown routing policy `wieghted`, did you mean `weighted`?; known: \
         `always-busiest`, `cache-aware`, `consistent-hash`, `epoch-adaptive`, `kv-adaptive`, \
         `least-loaded`, `power-of-two`, `random`, `round-robin`, `session-affinity`, `weighted`",
    );
    refused(
        "--routing-policy weighted --routing-scorers pa:3,queue-deth:2",
        "--routing-scorers: unknown scorer `queue-deth`, did you mean `queue-depth`?; known: \
         `active-request`, `cost-benefit`, `dynamo-kv`, `formula`, `kv-pressure`, `kv-pressure-slo`, \
         `kv-utilization`, `least-harm`, `lmetric`, `load-balance`, `no-hit-lru`, \
         `precise-prefix`, `predicted-latency`, `prefix-affinity`, `queue`, `queue-depth`, \
         `running-requests`, `session`, `slo-headroom`, `token-load`",
    );
    refused(
        "--routing-scorers pa:3",
        "--routing-scorers: `scorers` is given, but routing policy `round-robin` does not read it; \
         `weighted` does",
    );
    refused(
        "--routing-policy weighted --lru-capacity 0",
        "--lru-capacity: scorer `prefix-affinity`: `lru-capacity` is `0`; legal: `auto` or a whole \
         number from 1 to 100000000",
    );
    refused(
        "--routing-policy weighted --routing-scorers qd:1 --lru-capacity 5",
        "--lru-capacity: `lru-capacity` is given, but none of the scorers `qd:1` reads it; add \
         `prefix-affinity` to them",
    );
    refused(
        "--admission-policy token-bucket[capcity=3]",
        "--admission-policy: admission policy `token-bucket`: unknown parameter `capcity`; known: \
         `capacity`, `refill-rate`",
    );
    refused(
        "--admission-policy token-bucket --token-bucket-capacity 0",
        "--token-bucket-capacity: admission policy `token-bucket`: `capacity` is `0`; legal: a \
         number from 1 to 1000000000",
    );
    refused(
        "--scheduler fcsf",
        "--scheduler: unknown order `fcsf`, did you mean `fcfs`?; known: `cache-first`, `edf`, \
         `fcfs`, `formula`, `priority-fcfs`, `reverse-priority`, `sjf`",
    );
    refused(
        "--priority-policy slo-class",
        "--priority-policy: `priority` is given, but none of scheduler `fcfs`, preempt `tail` and \
         evict `lru` reads it; give the scheduler `priority-fcfs`",
    );
    refused(
        "--admission-policy all-of",
        "--admission-policy: admission policy `all-of`: `all-of` needs members; write e.g. \
         `all-of(slo-gated[threshold=8]; kv-gate)`",
    );
    refused(
        "--fitness-weights p99_ttf:1",
        "--fitness-weights: unknown key `p99_ttf`, did you mean `p99_ttft`?; known: `mean_e2e`, \
         `mean_ttft`, `p50_e2e`, `p50_ttft`, `p99_e2e`, `p99_ttft`, `throughput`, `tokens_per_sec`",
    );
    refused(
        "--fitness-weights throughput:-1",
        "--fitness-weights: found `-1` for `throughput`; legal: a number from 0 to 1e6",
    );
}

#[test]
fn what_does_not_exist_yet_is_refused_and_what_has_no_effect_is_not() {
    refused(
        "--kv-event-delay 5",
        "--kv-event-delay: is set, but no policy reads KV events; add a scorer that does, e.g. \
         `precise-prefix`",
    );
    refused(
        "--counterfactual-k 3 --replications 2",
        "--counterfactual-k: it applies to one run; remove `--replications`",
    );
    refused(
        "--latency-model rofline",
        "--latency-model: found `rofline`, did you mean `roofline`?; legal: `coefficients`, \
         `constant`, `operators`, `profile`, `roofline` (`blackbox` is an alias of `coefficients`), a \
         profile that ships (`h200-vllm-0.26-llama-3.1-8b`, `llama-3.1-8b-h200-tp1`), or the path \
         of one (`FILE.yaml`)",
    );
    refused(
        "--workload chatbo",
        "--workload: unknown preset `chatbo`, did you mean `chatbot`?; known: `orthogonal-slo`, \
         `orthogonal-slo-32`, `bursts-32`, `independent`, `multi-turn-4x512`, `mixed-slo-multi-turn`, \
         `rag-4096`, `agentic-2048`, `saas-150x6000`, `chatbot`, `summarization`, `contentgen`, \
         `multidoc`",
    );
    let bench = Bench::new();
    let harmless = "--kv-cpu-blocks 0 --kv-offload-threshold 0.9 --kv-transfer-bandwidth 100 \
                    --kv-transfer-base-latency 0 --kv-reload blocking --counterfactual-k 0";
    let plain = bench.blis("run --num-requests 3 --format blis");
    let same = bench.blis(&format!("run --num-requests 3 --format blis {harmless}"));
    assert_eq!((same.code, same.out), (Some(0), plain.out));
}

#[test]
fn flags_that_contradict_one_another() {
    refused(
        "--trace a --workload-spec b",
        "--trace: `--workload-spec` is given as well; keep exactly one of the two",
    );
    refused("--summarize-trace", "--summarize-trace: it needs `--trace-level decisions`");
    let bench = Bench::new();
    let ran = bench.blis("run --replications 2 --requests-out rows.csv");
    assert_eq!(ran.err, "error: --requests-out: it applies to one run; remove `--replications`\n");
    assert_eq!(ran.code, Some(2));
}

#[test]
fn lengths_that_contradict_one_another_or_another_workload() {
    refused(
        "--prompt-tokens 9000",
        "--prompt-tokens: found `9000`; legal: at most 7000, the default of `--prompt-tokens-max`",
    );
    refused(
        "--prompt-tokens 900 --prompt-tokens-max 800",
        "--prompt-tokens: found `900`; legal: at most 800, the value of `--prompt-tokens-max`",
    );
    refused(
        "--output-tokens 1",
        "--output-tokens: found `1`; legal: at least 2, the default of `--output-tokens-min`",
    );
    refused(
        "--prompt-tokens-min 9000",
        "--prompt-tokens-min: found `9000`; legal: at most 7000, the default of \
         `--prompt-tokens-max`",
    );
    refused(
        "--output-tokens-max 100",
        "--output-tokens-max: found `100`; legal: at least 512, the default of `--output-tokens`",
    );
    let alien = "it applies to the workload `distribution`, but the workload is";
    refused(
        "--prompt-tokens 9 --workload-spec w.yaml",
        &format!("--prompt-tokens: {alien} `spec`; remove it"),
    );
    refused(
        "--prompt-tokens 9 --trace t.jsonl",
        &format!("--prompt-tokens: {alien} `trace`; remove it"),
    );
}

#[test]
fn workloads_that_take_more_than_ten_years() {
    let legal = "legal: a rate at which all requests arrive within ten years, or a horizon";
    refused(
        "--rate 1e-9 --num-requests 10",
        &format!("--rate: found 10 requests at 0.000000001 requests per second; {legal}"),
    );
    refused(
        "--rate 0.01 --num-requests 4000000",
        &format!("--rate: found 4000000 requests at 0.01 requests per second; {legal}"),
    );
    refused(
        "--num-requests 1000000000000",
        &format!("--num-requests: found 1000000000000 requests at 1 requests per second; {legal}"),
    );
    file_refused(
        "workload: {distribution: {rate: 1e-9}}\n",
        &format!(
            "s.yaml:1:33: workload.distribution.rate: found 100 requests at 0.000000001 requests \
             per second; {legal}"
        ),
    );
    let ran = Bench::new().blis("run --rate 1e-9 --num-requests 10 --horizon 1000 --quiet");
    assert_eq!((ran.code, ran.err.as_str()), (Some(0), ""), "the horizon ends it");
}

#[test]
fn weights_of_the_fitness() {
    let of = |what: &str| format!("--fitness-weights: {what}");
    for bad in ["NaN", "inf", "1e7", "-1", "x"] {
        refused(
            &format!("--fitness-weights throughput:{bad}"),
            &of(&format!("found `{bad}` for `throughput`; legal: a number from 0 to 1e6")),
        );
    }
    refused(
        "--fitness-weights throughput:1,throughput:2",
        &of("`throughput` is given twice; keep one"),
    );
    refused(
        "--fitness-weights throughput:0,p99_ttft:0",
        &of("all weights are 0; legal: at least one above 0"),
    );
}

#[test]
fn a_summary_that_no_one_would_see() {
    for format in ["json", "table"] {
        refused(
            &format!("--trace-level decisions --summarize-trace --format {format}"),
            "--summarize-trace: only the format `blis` prints it; add `--format blis`",
        );
    }
}

#[test]
fn empty_paths_are_blamed_on_their_flag() {
    let bench = Bench::new();
    for name in ["--trace", "--workload-spec"] {
        let ran = bench.blis(&format!("run {name}="));
        assert_eq!(ran.err, format!("error: {name}: found ``; legal: the path of a file\n"));
        assert_eq!((ran.code, ran.out.as_str()), (Some(2), ""));
    }
    for name in ["--policy-config", "--results-path", "--requests-out"] {
        let ran = bench.blis(&format!("run {name}="));
        let error = format!("error: a value is required for '{name} <FILE>' but none was supplied");
        assert_eq!((ran.code, ran.err.lines().next()), (Some(2), Some(error.as_str())));
    }
    let ran = Ran::from(bench.command("run").arg("").output().expect("starts"));
    let error = "error: a value is required for '[SCENARIO]' but none was supplied";
    assert_eq!((ran.code, ran.err.lines().next()), (Some(2), Some(error)));
}

#[test]
fn hidden_characters_are_shown_and_long_values_are_cut() {
    let bench = Bench::new();
    let run = |flag: &str, value: &str| {
        Ran::from(bench.command("run").args([flag, value]).output().expect("starts"))
    };
    let ran = run("--rate", "a\n\u{202e}b\u{1b}[31m");
    assert_eq!(
        ran.err,
        "error: --rate: found `a\\n\\u{202e}b\\u{1b}[31m`; legal: a number from 1e-9 to 1e9 \
         (requests per second), a percentage of the cluster's saturation such as `90%`, or \
         users such as `64 users`\n"
    );
    assert_eq!(ran.code, Some(2));
    let cut = format!("`{}...`", "x".repeat(80));
    for flag in ["--seed", "--scheduler", "--fitness-weights", "--workload", "--routing-policy"] {
        let ran = run(flag, &"x".repeat(5_000));
        assert!(ran.err.contains(&cut) && ran.err.len() < 400, "{flag}: {}", ran.err);
        assert_eq!(ran.code, Some(2));
    }
    let ran =
        Ran::from(bench.command("run").arg("no\u{1b}\u{202e}.yaml").output().expect("starts"));
    assert_eq!(
        ran.err,
        "error: no\\u{1b}\\u{202e}.yaml: cannot read: No such file or directory (os error 2); \
         check the name\n"
    );
    let ran = Ran::from(bench.command("run").arg("--\u{1b}[31m").output().expect("starts"));
    assert!(!ran.err.contains('\u{1b}') && ran.code == Some(2), "{}", ran.err);
}

#[test]
fn unknown_flags_and_commands() {
    let bench = Bench::new();
    let ran = bench.blis("run --num-instance 3");
    assert!(
        ran.err.starts_with("error: unexpected argument '--num-instance' found"),
        "{}",
        ran.err
    );
    assert!(ran.err.contains("a similar argument exists: '--num-instances'"), "{}", ran.err);
    assert_eq!((ran.code, ran.out.as_str()), (Some(2), ""));
    let ran = bench.blis("runn");
    assert!(ran.err.contains("a similar subcommand exists: 'run'"), "{}", ran.err);
    assert_eq!(ran.code, Some(2));
    assert_eq!(bench.blis("run --jobs -1").code, Some(2));
    let ran = bench.blis("policies rooting");
    assert!(ran.err.starts_with("error: unknown kind `rooting`, did you mean `routing`?"));
    assert_eq!(ran.code, Some(2));
}

#[test]
fn scenario_files() {
    file_refused(
        "cluster:\n  instanses: 3\n",
        "s.yaml:2:3: cluster.instanses: unknown field `instanses`, did you mean `instances`?; \
         known: `instances`, `gateways`",
    );
    file_refused(
        "cluster: {instances: many}\n",
        "s.yaml:1:22: cluster.instances: found `many`; legal: a whole number from 1 to 100000",
    );
    file_refused("seed: 1\nseed: 2\n", "s.yaml:2:1: field `seed` is given twice; keep one");
    file_refused("", "s.yaml: the file is empty; write at least one field");
    file_refused(b"\x7fELF\x02\xff", "s.yaml: not a text file: byte 5 is not UTF-8");
    file_refused("cluster: [", "s.yaml:1:10: malformed YAML: unclosed bracket '['");
    file_refused(
        "cluster:\n\tinstances: 3\n",
        "s.yaml:2:2: malformed YAML: tabs disallowed within this context (block indentation)",
    );
    file_refused(
        "workload: {spec: w.yaml}\n",
        "w.yaml: cannot read: No such file or directory (os error 2); check the name",
    );
    refused(
        "no.yaml",
        "no.yaml: cannot read: No such file or directory (os error 2); check the name",
    );
    refused("/", "/: cannot read: this is a directory; name a YAML file in it");
    refused("--trace /", "/: not a regular file; name a trace file");
    for device in ["/dev/zero", "/dev/null"] {
        let error = format!("{device}: cannot read: neither a file nor a pipe; name a YAML file");
        refused(device, &error);
        refused(&format!("--workload-spec {device}"), &error);
        refused(&format!("--policy-config {device}"), &error);
        let error = format!("{device}: not a regular file; name a trace file");
        refused(&format!("--trace {device}"), &error);
    }
    let bench = Bench::new();
    bench.write("a", "");
    let ran = bench.blis("run a/s.yaml");
    let error = "error: a/s.yaml: cannot read: Not a directory (os error 20); check the name\n";
    assert_eq!((ran.code, ran.err.as_str()), (Some(2), error));
    refused(
        "--policy-config no.yaml",
        "no.yaml: cannot read: No such file or directory (os error 2); check the name",
    );
}

#[test]
fn all_mistakes_of_a_scenario_and_of_the_flags_beside_it_are_told_in_one_run() {
    let bench = Bench::new();
    let text = "cluster: {instanses: 4}
engine: {total_kv_blocks: none}
admission: {policy: token-bucket, params: {capacity: 0}}
scheduler: fcsf
workload: {trace: no-such-trace.jsonl}
";
    bench.write("s.yaml", text);
    let ran = bench.blis("run s.yaml --seed x");
    assert_eq!(
        ran.err,
        "error: --seed: found `x`; legal: a whole number, not negative
error: s.yaml:1:11: cluster.instanses: unknown field `instanses`, did you mean `instances`?; \
         known: `instances`, `gateways`
error: s.yaml:2:27: engine.total_kv_blocks: found `none`; legal: a whole number from 1 to \
         2147483648
error: s.yaml:3:54: admission.params.capacity: admission policy `token-bucket`: `capacity` is \
         `0`; legal: a number from 1 to 1000000000
error: s.yaml:4:12: scheduler: unknown order `fcsf`, did you mean `fcfs`?; known: `cache-first`, \
         `edf`, `fcfs`, `formula`, `priority-fcfs`, `reverse-priority`, `sjf`
error: no-such-trace.jsonl: cannot read: No such file or directory (os error 2); check the name
"
    );
    assert_eq!((ran.code, ran.out.as_str()), (Some(2), ""));
}

#[test]
fn a_study_with_mistakes_is_refused_before_its_saturation_is_measured() {
    let bench = Bench::new();
    let text = "question: does it matter?
base: {cluster: {instances: 200}, workload: {preset: chatbot, rate: 90%}}
arms:
  - {name: base}
  - {name: other, set: {scheduler: fcsf}}
  - {name: third, set: {engine: {block_sise: 32}}}
metrics: [ttft_p98]
hypotheses: [{claim: ttft_p99(third) < ttft_p99(bse)}]
";
    bench.write("s.yaml", text);
    let ran = bench.blis("study s.yaml");
    // Measuring would say so, and leave a ledger behind.
    let told: Vec<&str> = ran.err.lines().filter(|line| line.starts_with("error: ")).collect();
    assert_eq!(told.len(), 4, "{}", ran.err);
    assert!(told[0].starts_with("error: s.yaml:5:36: scheduler: unknown order `fcsf`"));
    assert!(told[0].ends_with(" (in the case other)"), "{}", told[0]);
    assert!(told[1].starts_with("error: s.yaml:6:46: engine.block_sise: unknown field"));
    assert!(told[2].starts_with("error: s.yaml:7:11: metrics[0]: unknown number `ttft_p98`"));
    assert!(told[3].starts_with("error: s.yaml:8:22: hypotheses[0].claim: unknown arm `bse`"));
    let excerpt = "  ttft_p99(third) < ttft_p99(bse)\n                             ^^^\n";
    assert!(ran.err.ends_with(excerpt), "{}", ran.err);
    assert_eq!(ran.err.lines().count(), 6, "{}", ran.err);
    assert_eq!((ran.code, ran.out.as_str()), (Some(2), ""));
    assert_eq!(bench.files(), ["s.yaml"]);
}

#[test]
fn policy_bundles_and_traces() {
    let bench = Bench::new();
    bench.write("bundle.yaml", "routing:\n  polcy: weighted\n");
    let ran = bench.blis("run --policy-config bundle.yaml");
    assert_eq!(
        ran.err,
        "error: bundle.yaml:2:3: routing.polcy: unknown field `polcy`, did you mean `policy`?; \
         known: `policy`, `scorers`\n"
    );
    assert_eq!(ran.code, Some(2));
    bench.write(
        "t.jsonl",
        "{\"arrival_us\":1,\"input_tokens\":5,\"output_tokens\":2}\n{\"arrival\n",
    );
    let ran = bench.blis("run --trace t.jsonl");
    assert!(ran.err.starts_with("error: t.jsonl:2:"), "{}", ran.err);
    assert_eq!((ran.code, ran.out.as_str()), (Some(2), ""));
}

#[test]
fn a_pipe_is_read_and_an_endless_one_is_not_read_to_its_end() {
    let bench = Bench::new();
    let pipe = bench.path().join("pipe");
    assert!(Command::new("mkfifo").arg(&pipe).status().expect("mkfifo runs").success());
    let run = |source: &str| {
        let mut writer = Command::new("sh");
        let writer = writer.current_dir(bench.path()).arg("-c").arg(format!("{source} > pipe"));
        let mut writer = writer.spawn().expect("sh starts");
        let ran = bench.blis("run pipe --num-requests 3 --quiet --format json");
        writer.wait().expect("it ends");
        ran
    };
    assert_eq!(run("echo 'cluster: {instances: 2}'").json()["instances"][1]["steps"], 2);
    let ran = run("yes 2> none");
    let error = "error: pipe: the file has more than 8388608 bytes; at most 8388608 are read\n";
    assert_eq!((ran.code, ran.err.as_str()), (Some(2), error));
}

#[test]
fn requests_that_never_fit_are_counted_and_fail_the_check() {
    let bench = Bench::new();
    let ran = bench.blis("run --total-kv-blocks 1 --num-requests 7 --format blis");
    assert_eq!(
        ran.out,
        "=== Simulation Metrics ===
{
  \"instance_id\": \"cluster\",
  \"completed_requests\": 0,
  \"still_queued\": 0,
  \"still_running\": 0,
  \"injected_requests\": 7,
  \"rejected_requests\": 0,
  \"in_transit\": 0,
  \"total_input_tokens\": 0,
  \"total_output_tokens\": 0,
  \"vllm_estimated_duration_s\": 7,
  \"responses_per_sec\": 0,
  \"tokens_per_sec\": 0,
  \"preemption_count\": 0,
  \"dropped_unservable\": 7,
  \"end\": \"drained\"
}
=== Anomaly Counters ===
Priority Inversions: 0
HOL Blocking Events: 0
Rejected Requests: 0
Dropped Unservable: 7
"
    );
    assert_eq!(
        ran.err,
        "warning: 7 requests can never fit the KV memory of an instance; raise \
         `--total-kv-blocks` or shorten the prompts\n"
    );
    assert_eq!(ran.code, Some(0), "as the Go program");
    let drafts = "--num-speculative-tokens 4 --acceptance-rate 0.5 --format json";
    let ran = bench.blis(&format!("run --total-kv-blocks 1 --num-requests 7 {drafts}"));
    assert!(ran.err.contains("or use shorter drafts (`--num-speculative-tokens`)"), "{}", ran.err);
    let ran = bench.blis("run --total-kv-blocks 1 --num-requests 7 --format json --quiet");
    let value: serde_json::Value = serde_json::from_str(&ran.out).expect("JSON");
    assert_eq!(value["cluster"]["unservable_requests"], 7);
    assert!(value["cluster"].get("ttft_mean_ms").is_none(), "no sample, no key");
    assert_eq!((ran.code, ran.err.as_str()), (Some(1), ""));
}
