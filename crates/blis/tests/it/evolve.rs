//! Evolutions, from the command line to the strategy file.

use super::Bench;
use super::ledger::killed;
use std::path::Path;

const EVOLVE: &str = "\
question: which router?
base: {cluster: {instances: 3}, latency: {model: constant, step_us: 4000}, \
engine: {total_kv_blocks: 600}, workload: {preset: multi-turn-4x512, rate: 40, num_requests: 40}}
baseline: round-robin
workloads: [{name: busy}, {name: calm, set: {workload: {rate: 25}}}]
held_out: [{name: fresh, set: {workload: {rate: 35}}}]
objective: ttft_p99
evolve: {gate: true, priority: true, parts: {scheduler: [fcfs, priority-fcfs]}}
budget: {population: 4, generations: 3, seeds: 2, climbs: 2}
confirm: {seeds: 3}
references: [{name: LMetric, set: {strategy: lmetric}}, \
{name: tuned, tuned: {strategy: seeds-3-2-2, budget: 4}}]
";

#[test]
fn what_is_bred_is_a_strategy_that_runs_and_the_same_seed_gives_the_same_bytes() {
    let bench = Bench::new();
    bench.write("e.yaml", EVOLVE);
    let ran = bench.blis("evolve e.yaml --no-ledger --out best.yaml");
    assert_eq!(ran.code, Some(0), "{}", ran.err);
    for part in ["recommended", "LMetric", "oracle router", "floor", "What each change gained"] {
        assert!(ran.out.contains(part), "no `{part}` in {}", ran.out);
    }
    let file = bench.read("best.yaml");
    assert!(file.contains("# Made by: blis evolve e.yaml"), "{file}");
    let run = bench.blis("run --strategy best.yaml --num-requests 50 --num-instances 3");
    assert_eq!(run.code, Some(0), "{}", run.err);
    let again = bench.blis("evolve e.yaml --no-ledger --jobs 1 --out best.yaml");
    assert_eq!(again.out, ran.out);
    let other = bench.blis("evolve e.yaml --no-ledger --seed 7");
    assert_ne!(other.out, ran.out, "another seed breeds others");
}

#[test]
fn where_the_queue_grows_for_as_long_as_requests_come_nothing_is_recommended() {
    let bench = Bench::new();
    let (alone, _) = EVOLVE.split_once("references").expect("they come last");
    let small =
        alone.replace("generations: 3, seeds: 2, climbs: 2", "generations: 1, seeds: 2, climbs: 1");
    let workload = "preset: orthogonal-slo, rate: 90, num_requests: 300";
    let small = small.replace("preset: multi-turn-4x512, rate: 40, num_requests: 40", workload);
    let small = small.replace("step_us: 4000", "step_us: 20000").replace("rate: 35", "rate: 200");
    bench.write("e.yaml", small);
    let ran = bench.blis("evolve e.yaml --no-ledger --out best.yaml");
    assert_eq!(ran.code, Some(1), "{}{}", ran.out, ran.err);
    let words = ran.out.split_whitespace().collect::<Vec<_>>().join(" ");
    for told in ["overloaded on the held-out workload `fresh`", "lower their rates"] {
        assert!(words.contains(told), "no `{told}` in {words}");
    }
    assert!(ran.err.contains("check failed: no strategy that was bred keeps up"), "{}", ran.err);
    assert_eq!(bench.files(), ["e.yaml"], "no strategy was written");
}

#[test]
fn kills_at_any_moment_change_nothing_that_an_evolution_says() {
    let bench = Bench::new();
    let (alone, _) = EVOLVE.split_once("references").expect("they come last");
    bench.write("e.yaml", alone.replace("generations: 3", "generations: 2"));
    let args =
        |ledger: &str| format!("evolve e.yaml --quiet --format json --jobs 1 --ledger {ledger}");
    let mut expected = None;
    killed(
        &bench,
        3,
        args,
        |_| {},
        |ran, name| {
            assert_eq!(ran.code, Some(0), "{}", ran.err);
            let expected = expected.get_or_insert_with(|| ran.out.clone());
            assert_eq!(ran.out, *expected, "{name}");
        },
    );
}

#[test]
fn the_file_that_ships_runs_in_small() {
    let bench = Bench::new();
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/evolve-router.yaml");
    let text = std::fs::read_to_string(file).expect("it ships");
    let mut small = text.clone();
    for (from, to) in [
        ("num_requests: 4000", "num_requests: 100"),
        (", num_requests: 8000", ""),
        ("warmup_s: 3", "warmup_s: 0"),
        ("population: 24, generations: 5", "population: 6, generations: 2, climbs: 2"),
        ("seeds: 10", "seeds: 2"),
        ("budget: 40}", "budget: 4}"),
        // So few requests and formulas keep to no tight bound.
        ("<= 1 * baseline", "<= 9 * baseline"),
        ("<= 1.1 * baseline", "<= 9 * baseline"),
    ] {
        assert!(small.contains(from), "the file has `{from}`");
        small = small.replace(from, to);
    }
    bench.write("e.yaml", small);
    let ran = bench.blis("evolve e.yaml --no-ledger --out best.yaml");
    assert_eq!(ran.code, Some(0), "{}", ran.err);
    assert!(bench.read("best.yaml").contains("formula"));
}

#[test]
fn what_is_wrong_with_an_evolution_is_said_before_anything_runs() {
    let bench = Bench::new();
    for (from, to, message) in [
        ("baseline: round-robin\n", "", "field `baseline` is missing"),
        ("baseline: round-robin", "baseline: round-robbin", "did you mean `round-robin`"),
        ("held_out:", "heldout:", "did you mean `held_out`"),
        ("[{name: fresh, set: {workload: {rate: 35}}}]", "[]", "held_out"),
        ("{gate: true", "{signals: [waitin], gate: true", "did you mean `waiting`"),
        ("{gate: true", "{signals: [input_tokens], gate: true", "no legal score"),
        ("{gate: true", "{knowledge: exact, gate: true", "unknown knowledge `exact`"),
        ("scheduler: [fcfs", "schedule: [fcfs", "did you mean `scheduler`"),
        ("[fcfs, priority-fcfs]", "[fcfs, priority-fcsf]", "did you mean `priority-fcfs`"),
        ("[fcfs, priority-fcfs]", "[fcfs, 'sjf[agin=1]']", "unknown parameter `agin`"),
        ("climbs: 2}", "climbs: 2, parsimony: 1.5}", "a number from 0 to 0.99"),
        ("climbs: 2}", "climbs: 2, parsimony: -0.1}", "a number from 0 to 0.99"),
        ("strategy: seeds-3-2-2, budget", "strategy: round-robin, budget", "nothing to tune"),
        ("objective: ttft_p99", "objective: [ttft_p99, e2e_p99]", "one objective"),
    ] {
        bench.write("e.yaml", EVOLVE.replace(from, to));
        let ran = bench.blis("evolve e.yaml --no-ledger");
        assert_eq!(ran.code, Some(2), "{message}: {}", ran.err);
        assert!(ran.err.contains(message), "{message}: {}", ran.err);
    }
    let wrong = [("round-robin\n", "round-robbin\n"), ("{gate", "{signals: [waitin, lod], gate")];
    let wrong = wrong.into_iter().chain([("[fcfs, priority-fcfs]", "[fsfc, priority-fcsf]")]);
    bench.write("e.yaml", wrong.fold(EVOLVE.to_owned(), |text, (from, to)| text.replace(from, to)));
    let ran = bench.blis("evolve e.yaml --no-ledger");
    for name in ["round-robbin", "waitin", "lod", "fsfc", "priority-fcsf"] {
        assert!(ran.err.contains(&format!("`{name}`")), "all at once: {}", ran.err);
    }
}
