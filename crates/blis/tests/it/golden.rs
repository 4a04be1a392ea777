//! Whole results of a run that can be worked out by hand.

use crate::Bench;

/// Every step takes 1 ms and nothing else takes any time. Two requests of 32 prompt tokens arrive
/// at 1 s and 2 s, each alone: the first token comes after one step, the last after three.
const BY_HAND: &str = "
latency: {model: constant, step_us: 1000}
engine: {preset: vllm-a100}
slo: {standard: {ttft_ms: 1, e2e_ms: 2.5}}
workload:
  distribution:
    num_requests: 2
    prompt_tokens: {mean: 32, stdev: 0}
    output_tokens: {mean: 3, stdev: 0}
";

fn bench() -> Bench {
    let bench = Bench::new();
    bench.write("s.yaml", BY_HAND);
    bench
}

#[test]
fn the_numbers_are_those_worked_out_by_hand() {
    let value = bench().blis("run s.yaml --format json --audit").json();
    let keys: Vec<&String> = value.as_object().expect("an object").keys().collect();
    let sections = [
        "run",
        "cluster",
        "classes",
        "tenants",
        "instances",
        "kv",
        "routing",
        "decomposition",
        "mechanisms",
        "steady",
        "engine",
    ];
    assert_eq!(keys, sections);
    for (pointer, expected) in [
        ("/run/simulated_seconds", 2.003),
        ("/cluster/injected_requests", 2.0),
        ("/cluster/completed_requests", 2.0),
        ("/cluster/total_input_tokens", 64.0),
        ("/cluster/total_output_tokens", 6.0),
        ("/cluster/responses_per_sec", 2.0 / 2.003),
        ("/cluster/goodput_per_sec", 0.0),
        ("/cluster/slo_attainment", 0.0),
        ("/cluster/ttft_mean_ms", 1.0),
        ("/cluster/itl_p99_ms", 1.0),
        ("/classes/standard/e2e_p50_ms", 3.0),
        ("/tenants/default/completed_requests", 2.0),
        ("/instances/0/steps", 6.0),
        ("/instances/0/peak_blocks_in_use", 3.0),
        ("/kv/hit_rate", 0.0),
        ("/routing/sent/0", 2.0),
        ("/decomposition/mean_ms/prefill", 1.0),
        ("/decomposition/p99_ms/queue", 0.0),
    ] {
        let found = value.pointer(pointer).and_then(serde_json::Value::as_f64).expect(pointer);
        assert!((found - expected).abs() < 1e-9, "{pointer}: {found}, expected {expected}");
    }
    assert!(value["kv"].get("phantom_hit_rate").is_none(), "round-robin expects nothing");
}

#[test]
fn the_table_shows_them() {
    let out = bench().blis("run s.yaml --format table").out;
    let (before, rest) = out.split_once(" in ").expect("the wall time");
    let (_, after) = rest.split_once("real time)").expect("the speed");
    insta::assert_snapshot!(format!("{before}{after}"), @"
    2 requests on 1 instance of meta-llama/llama-3.1-8b-instruct (H100, tp 2)
    admission always-admit, routing round-robin, scheduler fcfs, priority constant
    token budget 2,048, at most 256 running, synchronous scheduling; step times: constant
    2.0 simulated seconds, 14 events, seed 42, scenario bf5c6c536287335f

    2 completed, 1.00 requests/s offered, 1.00 served, 3.00 tokens/s, 0.00 good requests/s

    latency, ms  mean   p50   p90   p95   p99   max
    ───────────────────────────────────────────────
    TTFT         1.00  1.00  1.00  1.00  1.00  1.00
    ITL          1.00  1.00  1.00  1.00  1.00  1.00
    E2E          3.00  3.00  3.00  3.00  3.00  3.00

    class     offered  admitted  completed  good/s  SLO met  TTFT p50, ms  TTFT p99, ms  E2E p99, ms
    ────────────────────────────────────────────────────────────────────────────────────────────────
    standard        2         2          2    0.00    0.0 %          1.00          1.00         3.00

    TTFT breakdown, ms  gateway  queue  reload  prefill  recompute  output  total
    ─────────────────────────────────────────────────────────────────────────────
    mean                   0.00   0.00    0.00     1.00       0.00    0.00   1.00
    p99                    0.00   0.00    0.00     1.00       0.00    0.00   1.00

    KV memory: 132,139 blocks per instance, at most 0.0 % in use, 0 preemptions
    KV cache: hit rate 0.0 %, 0 blocks evicted

    instance  requests   busy  running  waiting  peak blocks  TTFT p99, ms  E2E p99, ms
    ───────────────────────────────────────────────────────────────────────────────────
    0                2  0.3 %     1.00     0.00            3          1.00         3.00
    ");
}
