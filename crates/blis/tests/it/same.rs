//! Changes that must change nothing.

use crate::Bench;
use std::path::Path;

const SCENARIO: &str = "
cluster: {instances: 3}
engine: {total_kv_blocks: 2000, max_num_running_reqs: 20}
signals: {snapshot_refresh_interval_us: 5000}
admission: {policy: token-bucket, params: {capacity: 4000, refill-rate: 2000}}
routing: {policy: weighted, scorers: 'pa:3,qd:2,kv:2'}
scheduler: priority-fcfs
priority: slo-class
gateway: {admission_latency_us: 10, routing_latency_us: 20}
seed: 5
workload:
  distribution:
    rate: 50
    num_requests: 200
    prefix_tokens: 100
    prompt_tokens: {mean: 200, stdev: 50, min: 10, max: 900}
    output_tokens: {mean: 30, stdev: 10, min: 1, max: 99}
";

const FLAGS: &str = "--num-instances 3 --total-kv-blocks 2000 --max-num-running-reqs 20 \
    --snapshot-refresh-interval 5000 --admission-policy token-bucket --token-bucket-capacity 4000 \
    --token-bucket-refill-rate 2000 --routing-policy weighted --routing-scorers pa:3,qd:2,kv:2 \
    --scheduler priority-fcfs --priority-policy slo-class --admission-latency 10 --routing-latency 20 \
    --seed 5 --rate 50 --num-requests 200 --prefix-tokens 100 --prompt-tokens 200 \
    --prompt-tokens-stdev 50 --prompt-tokens-min 10 --prompt-tokens-max 900 --output-tokens 30 \
    --output-tokens-stdev 10 --output-tokens-min 1 --output-tokens-max 99";

fn bench() -> Bench {
    let bench = Bench::new();
    bench.write("s.yaml", SCENARIO);
    bench
}

#[test]
fn a_scenario_written_as_flags_and_as_a_file() {
    let bench = bench();
    let file = bench.blis("run s.yaml --format json").json();
    let flags = bench.blis(&format!("run --format json {FLAGS}")).json();
    assert_eq!(file, flags);
    assert_eq!(file["cluster"]["injected_requests"], 200);
    assert!(file["cluster"]["rejected_requests"].as_u64() > Some(0), "the bucket was at work");
}

#[test]
fn flags_win_over_the_file() {
    let bench = bench();
    let ran = bench.blis("run s.yaml --format json --num-requests=9");
    assert_eq!(ran.json()["cluster"]["injected_requests"], 9);
}

#[test]
fn a_policy_bundle_is_like_the_flags_it_stands_for() {
    let bench = bench();
    bench.write(
        "bundle.yaml",
        "admission: {policy: token-bucket, token_bucket_capacity: 9000}
routing:
  policy: weighted
  scorers: [{name: queue-depth, weight: 1.0}]
priority: {policy: constant}
scheduler: fcfs
",
    );
    let bundle =
        bench.blis("run --num-instances 2 --policy-config bundle.yaml --format json").json();
    let flags = bench.blis(
        "run --num-instances 2 --admission-policy token-bucket --token-bucket-capacity 9000 \
         --routing-policy weighted --routing-scorers qd:1 --format json",
    );
    assert_eq!(bundle, flags.json());
    let over = bench.blis("run --policy-config bundle.yaml --scheduler sjf --format json").json();
    assert_ne!(over["run"]["scenario_hash"], bundle["run"]["scenario_hash"]);
}

#[test]
fn listeners_and_pace_and_a_late_horizon() {
    let bench = bench();
    bench.write("warm.yaml", format!("warmup_s: 2\n{SCENARIO}"));
    let listeners = "--audit --stepwise --quiet --requests-out=r.csv --results-path=r.json \
        --timeline=t.csv";
    for file in ["s.yaml", "warm.yaml"] {
        let plain = bench.blis(&format!("run {file} --format json")).json();
        for extra in listeners.split_whitespace() {
            let ran = bench.blis(&format!("run {file} --format json {extra}")).json();
            assert_eq!(plain, ran, "{file} {extra}");
        }
    }
    let plain = bench.blis("run s.yaml --format json").json();
    let mut late = bench.blis("run s.yaml --format json --horizon 100000000000").json();
    let mut never = bench.blis("run s.yaml --format json --horizon 9223372036854775807").json();
    assert_eq!(plain, never, "beyond ten years is never");
    // The horizon is part of the scenario, so only its hash may differ.
    late["run"]["scenario_hash"] = never["run"]["scenario_hash"].take();
    never["run"]["scenario_hash"] = late["run"]["scenario_hash"].clone();
    assert_eq!(late, never);
}

#[test]
fn replications_do_not_depend_on_the_number_of_jobs() {
    let bench = bench();
    let run = |jobs: u32| {
        bench.blis(&format!("run s.yaml --format json --replications 6 --jobs {jobs}")).json()
    };
    let one = run(1);
    assert_eq!(one, run(2));
    assert_eq!(one, run(4));
    let seeds: Vec<u64> = one["replications"]
        .as_array()
        .expect("a list")
        .iter()
        .map(|run| run["run"]["seed"].as_u64().expect("a seed"))
        .collect();
    assert_eq!(seeds, [5, 6, 7, 8, 9, 10]);
    let third = bench.blis("run s.yaml --format json --seed 7").json();
    assert_eq!(one["replications"][2], third, "a replication is a run with that seed");
}

#[test]
fn another_policy_on_a_flag_drops_the_settings_of_the_one_in_the_file() {
    let bench = bench();
    let replaced = bench.blis("run s.yaml --format json --routing-policy round-robin");
    assert!(replaced.json()["kv"].get("phantom_hit_rate").is_none(), "round-robin expects nothing");
    let kept = bench.blis("run s.yaml --format json --routing-policy weighted").json();
    assert_eq!(kept, bench.blis("run s.yaml --format json").json());
    let open = bench.blis("run s.yaml --format json --admission-policy always-admit").json();
    assert_eq!(open["cluster"]["rejected_requests"], 0);
}

#[test]
fn every_shipped_scenario_passes_the_audit() {
    let bench = Bench::new();
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../scenarios");
    let files = std::fs::read_dir(&folder).expect("the folder is there");
    let mut seen = 0;
    for file in files {
        let path = file.expect("an entry").path();
        let ran = bench.blis(&format!("run {} --audit --format json --quiet", path.display()));
        assert_eq!(ran.json()["run"]["end"], "drained", "{}", path.display());
        seen += 1;
    }
    assert!(seen > 0);
}
