//! Searches, from the command line to the strategy file.

use super::Bench;

const SEARCH: &str = "\
question: which weights?
base: {cluster: {instances: 3}, workload: {preset: orthogonal-slo, rate: 320, num_requests: 400}}
strategy: slo-compound
parameters: [pa, qd, gate]
objective: critical.ttft_p99
constraints: ['tokens_per_sec >= 0.5 * baseline']
budget: {calls: 12, seeds: 2}
confirm: {seeds: 3}
";

fn bench() -> Bench {
    let bench = Bench::new();
    bench.write("s.yaml", SEARCH);
    bench
}

#[test]
fn a_search_prints_tables_and_writes_a_strategy_that_runs() {
    let bench = bench();
    let ran = bench.blis("optimize s.yaml --control --out best.yaml");
    assert_eq!(ran.code, Some(0), "{}", ran.err);
    for part in ["by hand", "found at random", "fresh seeds", "importance", "so far"] {
        assert!(ran.out.contains(part), "no `{part}` in {}", ran.out);
    }
    assert!(ran.out.lines().all(|line| line.chars().count() <= 100), "{}", ran.out);
    let file = bench.read("best.yaml");
    assert!(file.contains("# Made by: blis optimize s.yaml --control --out best.yaml"), "{file}");
    let run = bench.blis("run --strategy best.yaml --num-requests 50");
    assert_eq!(run.code, Some(0), "{}", run.err);
    let again = bench.blis("optimize s.yaml --control");
    assert_eq!(again.out, ran.out, "what is finished gives the same");
}

#[test]
fn the_json_has_every_call_and_the_fresh_values() {
    let ran = bench().blis("optimize s.yaml --no-ledger --format json");
    let all: serde_json::Value = serde_json::from_str(&ran.out).expect("JSON");
    assert_eq!(all["calls"].as_array().map(Vec::len), Some(12));
    let fresh = &all["recommended"][0]["fresh"]["critical.ttft_p99"];
    assert_eq!(fresh["values"].as_array().map(Vec::len), Some(3), "{fresh}");
    assert_eq!(all["fresh_seeds"], serde_json::json!([44, 45, 46]), "none of the search's");
}

#[test]
fn a_mistake_in_a_constraint_is_pointed_at() {
    let bench = bench();
    bench.write("bad.yaml", SEARCH.replace("0.5 * baseline", "0.5 * base"));
    let ran = bench.blis("optimize bad.yaml");
    assert_eq!(ran.code, Some(2));
    assert!(ran.err.contains("bad.yaml:6:15: constraints[0]: found `base`"), "{}", ran.err);
    assert!(ran.err.contains("^^^^"), "{}", ran.err);
    assert!(!bench.files().contains(&".blis".to_owned()), "nothing was begun");
}
