//! A run that was recorded with `--trace-out`, and the same run again from the trace.

use crate::Bench;

const CLUSTER: &str = "
cluster: {instances: 3}
engine: {total_kv_blocks: 2500, max_num_running_reqs: 12}
signals: {snapshot_refresh_interval_us: 5000}
routing: {policy: weighted, scorers: 'pa:3,qd:2,kv:2'}
scheduler: priority-fcfs
priority: slo-class
gateway: {admission_latency_us: 10, routing_latency_us: 20}
slo: {critical: {ttft_ms: 60}, standard: {e2e_ms: 900}}
seed: 11
";

/// Tenants whose order by name, in the file and by first arrival all differ.
const GROUPS: &str = "
version: '2'
aggregate_rate: 60
num_requests: 300
clients:
  - id: c
    tenant_id: tenant-10
    slo_class: critical
    rate_fraction: 0.2
    arrival: {process: gamma, cv: 2}
    prefix_group: system
    prefix_length: 200
    input_distribution: {type: gaussian, params: {mean: 150, std_dev: 60, min: 10, max: 500}}
    output_distribution: {type: exponential, params: {mean: 40}}
  - id: a
    tenant_id: tenant-9
    slo_class: batch
    rate_fraction: 0.5
    arrival: {process: poisson}
    prefix_group: system
    prefix_length: 200
    input_distribution: {type: gaussian, params: {mean: 300, std_dev: 60, min: 10, max: 500}}
    output_distribution: {type: exponential, params: {mean: 60}}
  - id: b
    tenant_id: '\"quoted, name\"'
    slo_class: standard
    rate_fraction: 0.3
    arrival: {process: constant}
    input_distribution: {type: constant, params: {value: 80}}
    output_distribution: {type: constant, params: {value: 30}}
";

fn conversations(more: &str) -> String {
    format!(
        "
version: '2'
aggregate_rate: 8
num_requests: 160
clients:
  - id: talk
    tenant_id: people
    slo_class: standard
    rate_fraction: 1
    arrival: {{process: poisson}}
    prefix_group: system
    prefix_length: 100
    input_distribution: {{type: gaussian, params: {{mean: 120, std_dev: 40, min: 5, max: 300}}}}
    output_distribution: {{type: exponential, params: {{mean: 50}}}}
    reasoning:
      multi_turn: {{max_rounds: 4, think_time_us: 300000, context_growth: accumulate{more}}}
"
    )
}

/// Runs `workload` and its recording on the same cluster, and compares everything that they say.
/// Gives the rows of the requests.
#[track_caller]
fn replayed(workload: &str, flags: &str) -> Vec<Vec<String>> {
    let bench = Bench::new();
    bench.write("cluster.yaml", CLUSTER);
    bench.write("workload.yaml", workload);
    let run = |flags: &str| {
        let ran = bench.blis(&format!("run cluster.yaml --quiet {flags}"));
        assert_eq!(ran.code, Some(0), "{}", ran.err);
        ran
    };
    let recorded = format!("--workload-spec workload.yaml {flags}");
    let again = format!("--trace t.jsonl {flags}");
    let first = run(&format!("{recorded} --format json --trace-out t.jsonl --requests-out a.csv"));
    let second = run(&format!("{again} --format json --requests-out b.csv"));
    assert_eq!(bench.read("a.csv"), bench.read("b.csv"));
    let json = |ran: &crate::Ran| {
        let mut value = ran.json();
        value["run"].as_object_mut().expect("an object").remove("scenario_hash");
        serde_json::to_string(&value).expect("JSON")
    };
    assert_eq!(json(&first), json(&second), "in this order, too");
    let plain = run(&format!("{recorded} --format json"));
    assert_eq!(json(&first), json(&plain), "recording changes nothing");
    let blis = |flags: &str| run(&format!("{flags} --format blis")).out;
    assert_eq!(blis(&recorded), blis(&again));
    let table = |flags: &str| without_clock(&run(&format!("{flags} --format table")).out);
    assert_eq!(table(&recorded), table(&again));
    // What was replayed and recorded again is the same trace.
    run(&format!("{again} --trace-out u.jsonl"));
    let rows = |name: &str| bench.read(name).lines().count();
    assert_eq!(rows("t.jsonl"), rows("u.jsonl"));
    let csv = bench.read("a.csv");
    csv.lines().skip(1).map(|row| row.split(',').map(str::to_owned).collect()).collect()
}

/// A table without the wall time and the scenario's hash, and however its lines are broken. A trace
/// has no rate of sessions.
fn without_clock(table: &str) -> String {
    let lines = table.lines().filter(|line| !line.contains(" sessions/s"));
    let words: Vec<&str> = lines.flat_map(str::split_whitespace).collect();
    let text = words.join(" ");
    let (before, rest) = text.split_once(" in ").expect("the wall time");
    let (_, rest) = rest.split_once("real time)").expect("the speed");
    let (middle, rest) = rest.split_once("scenario ").expect("the hash");
    let (_, after) = rest.split_once(' ').expect("more");
    format!("{before}{middle}{after}")
}

#[test]
fn clients_with_shared_prefixes_classes_and_tenants() {
    let rows = replayed(GROUPS, "");
    assert_eq!(rows.len(), 300);
    assert!(rows.iter().any(|row| row[10].parse::<u32>().is_ok_and(|cached| cached > 0)));
}

#[test]
fn conversations_whose_rounds_come_whatever_happens() {
    let rows = replayed(&conversations(""), "");
    assert_eq!(rows.len(), 160);
    assert!(rows.iter().any(|row| row[5] == "3"), "fourth rounds");
}

#[test]
fn clients_that_wait_for_answers_and_ask_again_when_they_are_turned_away() {
    let closed = ", closed_loop: true, on_rejection: retry, retry_after_us: 20000, retries: 3";
    let bucket = "--admission-policy token-bucket[capacity=900,refill-rate=1500]";
    let rows = replayed(&conversations(closed), bucket);
    let rejected = rows.iter().filter(|row| row[7] == "rejected").count();
    assert!(rejected > 20, "{rejected} rejections");
    let mut rounds: Vec<(&String, &String)> = rows.iter().map(|row| (&row[4], &row[5])).collect();
    rounds.sort();
    let sent = rounds.len();
    rounds.dedup();
    assert!(sent > rounds.len() + 10, "retries are requests of their own");
    assert!(rows.iter().any(|row| row[5] == "2"), "third rounds");
}

#[test]
fn clients_that_ask_again_at_the_very_instant_of_the_answer() {
    // So many that an instance goes on with others at that instant; nothing takes time but steps.
    let workload = conversations(", closed_loop: true")
        .replace("think_time_us: 300000", "think_time_us: 0")
        .replace("aggregate_rate: 8", "aggregate_rate: 200");
    replayed(&workload, "--latency-model constant --admission-latency 0 --routing-latency 0");
}

#[test]
fn a_shipped_workload_with_agents_in_closed_loops() {
    let bench = Bench::new();
    let preset = bench.blis("workloads agentic-2048");
    let text = preset.out.replace("num_requests: 20000", "num_requests: 500");
    let slo = "\nslo: agentic\n";
    assert!(text.contains(slo), "the test takes its targets out: a trace has none");
    let rows = replayed(&text.replace(slo, "\n"), "--total-kv-blocks 20000");
    assert_eq!(rows.len(), 500);
}

#[test]
fn a_horizon_cuts_the_recording_where_it_cuts_the_run() {
    let rows = replayed(GROUPS, "--horizon 2500000");
    assert!(rows.len() < 200, "{} requests arrived", rows.len());
    assert!(rows.iter().any(|row| row[7] != "finished"), "some are left over");
}

#[test]
fn consistent_hashes_of_sessions_and_prefixes_point_to_the_same_instances_again() {
    let closed = conversations(", closed_loop: true");
    let mut spread = 0;
    for workload in [GROUPS, &conversations(""), &closed] {
        for key in ["session", "prefix"] {
            let rows = replayed(workload, &format!("--routing-policy consistent-hash[key={key}]"));
            let instances: std::collections::BTreeSet<&String> =
                rows.iter().map(|row| &row[6]).collect();
            spread += usize::from(instances.len() > 1);
        }
    }
    assert!(spread >= 4, "{spread} of 6 use several instances");
}

#[test]
fn belady_knows_the_requests_of_a_trace() {
    let rows = replayed(GROUPS, "--evict belady --total-kv-blocks 600");
    assert_eq!(rows.len(), 300);
}
