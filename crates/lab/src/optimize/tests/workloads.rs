//! Searches over several workloads: what is a mean, what must hold in each, what stays the same.

use super::{Limit, SEARCH, read, run};
use crate::Failure;
use crate::ledger::Ledger;
use crate::metric::Metric;
use crate::optimize::{Number, Search, search};
use crate::trial::Runner;
use blis_core::math::{exp, ln};
use blis_scenario::{Row, RunFailure};
use std::sync::atomic::{AtomicUsize, Ordering};

const CALM: &str = "{name: calm, set: {workload: {rate: 160}}}";
const FULL: &str = "{name: full house, set: {cluster: {instances: 2}}}";

/// [`SEARCH`] on two workloads, shorter.
fn text() -> String {
    let short = SEARCH.replace("num_requests: 400", "num_requests: 250");
    let short = short.replace("calls: 14", "calls: 8");
    format!("{short}workloads: [{CALM}, {FULL}]\n")
}

fn number(search: &Search, text: &str) -> Number {
    let names: Vec<String> = search.workloads().into_iter().map(str::to_owned).collect();
    Number::parse(text, &names).expect("legal")
}

#[test]
fn what_names_no_workload_is_the_geometric_mean_over_all_seed_by_seed() {
    let search = read(&text()).expect("legal");
    assert_eq!(search.workloads(), ["calm", "full house"]);
    let found = search.run(&Runner::default(), false).expect("it runs");
    let [all, calm, full] = ["", " @ calm", " @ full house"]
        .map(|place| found.values(1, &number(&search, &format!("critical.ttft_p99{place}"))));
    assert_eq!(all.len(), 3, "one value a fresh seed");
    for ((all, calm), full) in all.iter().zip(&calm).zip(&full) {
        assert!((all - (calm * full).sqrt()).abs() < 1e-9 * all, "{all} {calm} {full}");
        assert!((calm / full - 1.0).abs() > 0.05, "the workloads differ: {calm} {full}");
    }
    // A score is the mean of the logarithms of ratios, so of those over seeds and over workloads.
    let hand = found.hand[0].expect("samples");
    assert!(found.calls[0].means[0].is_some_and(|mean| (mean - hand).abs() <= 0.0));
    let differ = found.calls[1..].iter().filter(|call| call.scores[0].abs() > 1e-6).count();
    assert!(differ > 3, "the parameters matter");
}

#[test]
fn shares_have_an_arithmetic_mean_and_counts_none() {
    let shares = text().replace("objective: critical.ttft_p99", "maximise: hit_rate");
    let search = read(&shares).expect("legal");
    let runs = search.runs_of_hand();
    let of = |place: &str| number(&search, &format!("hit_rate{place}")).values(&runs)[0];
    let [all, calm, full] = ["", " @ calm", " @ full house"].map(|at| of(at).expect("a sample"));
    assert!((all - f64::midpoint(calm, full)).abs() < 1e-12 && all > 0.0, "{all} {calm} {full}");
    let counts = text().replace("objective: critical.ttft_p99", "maximise: completed");
    let message = read(&counts).expect_err("a count");
    assert!(message.contains("maximise: `completed` is a count, which has no mean"), "{message}");
    assert!(message.contains("e.g. `completed @ calm`"), "{message}");
    read(&counts.replace("maximise: completed", "maximise: completed @ calm")).expect("legal");
    read(&counts.replace(&format!(", {FULL}"), "")).expect("of one workload there is no mean");
}

#[test]
fn a_constraint_must_hold_in_each_workload_or_in_the_one_it_names() {
    let search = read(&text()).expect("legal");
    let texts: Vec<&str> = search.constraints.iter().map(|one| one.text.as_str()).collect();
    let each =
        ["calm", "full house"].map(|name| format!("tokens_per_sec @ {name} >= 0.5 * baseline"));
    assert_eq!(texts, each);
    // Twice the tokens are too many for the calm workload, whoever else serves them.
    let strict = |place: &str| {
        let bound = format!("tokens_per_sec{place} >= 1.5 * baseline");
        text().replace("tokens_per_sec >= 0.5 * baseline", &bound)
    };
    for place in ["", " @ calm"] {
        let found = run(&strict(place), &Runner::default(), false);
        assert!(found.calls.iter().all(|call| !call.feasible), "{place}");
    }
    let slack = text().replace("tokens_per_sec >= 0.5", "tokens_per_sec @ calm >= 0.5");
    let search = read(&slack).expect("legal");
    assert_eq!(search.constraints.len(), 1);
    let found = search.run(&Runner::default(), false).expect("it runs");
    let outcome = found.outcome(&search, 0, 1);
    let calm = number(&search, "tokens_per_sec @ calm");
    assert_eq!(outcome.value, found.mean(1, &calm).map(|(mean, _)| mean), "that workload's");
    assert_eq!(outcome.holds, Some((true, true)));
}

#[test]
fn one_workload_in_a_list_equals_none() {
    let plain = SEARCH.replace("rate: 320", "rate: 300");
    let listed = format!("{SEARCH}workloads: [{{name: it, set: {{workload: {{rate: 300}}}}}}]\n");
    let (plain, listed) =
        (run(&plain, &Runner::default(), true), run(&listed, &Runner::default(), true));
    assert_eq!(plain.calls, listed.calls);
    assert_eq!(plain.chosen, listed.chosen);
    let rows = |runs: &Vec<Vec<Row>>| runs[0].iter().map(Row::text).collect::<Vec<_>>();
    assert_eq!(
        plain.fresh.iter().map(rows).collect::<Vec<_>>(),
        listed.fresh.iter().map(rows).collect::<Vec<_>>()
    );
}

#[test]
fn a_search_on_several_workloads_that_was_stopped_goes_on_with_the_same_trials() {
    let folder = tempfile::tempdir().expect("a folder");
    let open = |name: &str| Ledger::open(&folder.path().join(name)).expect("a ledger");
    let (cut, whole) = (open("cut.db"), open("whole.db"));
    let keys = |ledger: &Ledger| {
        let entries = ledger.entries(u64::MAX).expect("it can be read");
        entries.into_iter().map(|entry| entry.key).collect::<Vec<String>>()
    };
    let runner = |ledger| Runner { jobs: 1, ledger: Some(ledger), ..Runner::default() };
    let mut stops = 0;
    let resumed = loop {
        // What is taken from the ledger counts too.
        let limit = Limit { most: 9 + 9 * stops, finished: AtomicUsize::new(0) };
        let limited = Runner { watch: &limit, ..runner(&cut) };
        match read(&text()).expect("legal").run(&limited, false) {
            Ok(found) => break found,
            Err(Failure::Run(RunFailure::Interrupted)) => stops += 1,
            Err(failure) => panic!("{failure}"),
        }
        assert!(limit.finished.load(Ordering::Relaxed) >= 9 * stops);
    };
    assert!(stops > 2, "it was stopped {stops} times");
    let once = run(&text(), &runner(&whole), false);
    assert_eq!(resumed.calls, once.calls);
    assert_eq!(resumed.chosen, once.chosen);
    assert_eq!(keys(&cut), keys(&whole));
}

#[test]
fn a_share_of_saturation_is_that_of_each_workload() {
    let text = text().replace("workload: {rate: 160}", "workload: {rate: 50%}");
    let text = text.replace("base:\n", "base:\n  engine: {preset: vllm-a100}\n");
    let text = text.replace("rate: 320", "rate: 100%");
    let search = read(&text).expect("legal");
    let hand = &search.points.candidates[0].hand;
    let rate = |load: &crate::optimize::Load| {
        let plan = load.plan(&search.points, 0, hand).expect("legal");
        assert_eq!(plan.saturation, None, "nothing is left to measure");
        match plan.workload {
            blis_scenario::scenario::Workload::Mix(mix) => format!("{:?}", mix.rate),
            trace @ blis_scenario::scenario::Workload::Trace { .. } => panic!("{trace:?}"),
        }
    };
    let number = |text: String| -> f64 {
        let digits = text.trim_start_matches("Steady(").trim_end_matches(')');
        digits.parse().expect("a steady rate")
    };
    let (calm, full) = (number(rate(&search.loads[0])), number(rate(&search.loads[1])));
    // Half of what three instances keep up with, and all of what two do.
    assert!((calm / full - 0.75).abs() < 0.05, "{calm} {full}");
    assert_eq!(search.notes.len(), 2, "{:?}", search.notes);
    assert!(
        search.notes[1].starts_with("full house: this cluster saturates"),
        "{:?}",
        search.notes
    );
}

#[test]
fn workloads_have_fronts_too() {
    let text = text().replace(
        "objective: critical.ttft_p99",
        "objective: [critical.ttft_p99 @ calm, critical.ttft_p99 @ full house]",
    );
    let search = read(&text).expect("legal");
    assert_eq!(search.metrics().len(), 1, "one metric, two numbers");
    let found = search.run(&Runner::default(), true).expect("it runs");
    let front = found.front.as_ref().expect("two objectives");
    assert!(!front.points.is_empty());
    assert_eq!(found.sensitivities.len(), 2);
    assert!(found.fresh.iter().all(|runs| runs.len() == 2));
    let object = super::super::json::object(&search, &found);
    let fresh = &object["recommended"][0]["fresh"];
    let same = &fresh["critical.ttft_p99 @ full house"];
    assert!(same.is_object());
    assert_eq!(fresh["workloads"]["full house"]["critical.ttft_p99"], *same);
}

#[test]
fn mistakes_in_workloads_are_told_before_anything_runs() {
    let each = "tokens_per_sec >= 0.5";
    for (from, to, message) in [
        (
            "critical.ttft_p99",
            "critical.ttft_p99 @ clam",
            "objective: unknown workload `clam`, did you mean `calm`?; known: `calm`, `full house`",
        ),
        (each, "tokens_per_sec @ full >= 0.5", "constraints[0]: unknown workload `full`"),
        (each, "tokens_per_sec @ >= 0.5", "constraints[0]: unknown workload ``"),
        ("name: full house", "name: calm", "workloads[1].name: found `calm` twice"),
        ("instances: 2", "instances: 0", "cluster.instances: found `0`"),
        ("instances: 2", "instances: 0", "(in the workload full house)"),
        ("cluster: {instances: 2}", "oracles: [routing]", "oracles: oracles cannot be deployed"),
        (
            "cluster: {instances: 2}}",
            "}, with: [x]",
            "workloads[1].with[0]: found `x`, but there are no `components:`",
        ),
        (
            "cluster: {instances: 2}",
            "scheduler: fcfs",
            "workloads[1].set.scheduler: policies come from `strategy`",
        ),
        ("cluster: {instances: 2}", "strategy: precise", "workloads[1].set.strategy: policies"),
        ("cluster: {instances: 2}", "seed: 7", "workloads[1].set.seed: a search sets its own"),
        ("name: calm, ", "", "field `name` is missing"),
        ("name: calm, ", "name: calm, sets: 1, ", "unknown field `sets`"),
    ] {
        let changed = text().replace(from, to);
        assert_ne!(changed, text(), "{from}");
        let found = read(&changed).expect_err(message);
        assert!(found.contains(message), "{found}\nnot: {message}");
    }
    let none = SEARCH.replace("critical.ttft_p99", "critical.ttft_p99 @ calm");
    let found = read(&none).expect_err("no workloads");
    assert!(found.contains("there are no workloads; remove `@ calm`"), "{found}");
    let oracles = SEARCH.replace("base:\n", "base:\n  oracles: [evict]\n");
    let found = read(&oracles).expect_err("oracles");
    assert!(found.contains("s.yaml:4:12: oracles: oracles cannot"), "{found}");
}

#[test]
fn an_engine_outside_is_told_means_over_workloads_and_each_constraint() {
    let search = read(&text()).expect("legal");
    let space = search.space();
    assert_eq!(space["workloads"], serde_json::json!(["calm", "full house"]));
    assert_eq!(space["constraints"].as_array().map(Vec::len), Some(2));
    let hand: Vec<(String, String)> = search.points.candidates[0].hand.clone();
    let free: Vec<_> = hand
        .into_iter()
        .filter(|(name, _)| ["pa", "qd", "gate"].contains(&name.as_str()))
        .collect();
    let found = search.measure_at(&free, &Runner::default()).expect("it runs");
    assert_eq!(found.excesses.len(), 2);
    assert!(found.excesses.iter().all(|excess| (excess + 0.5).abs() < 1e-9), "{found:?}");
    let runs = search.runs_of_hand();
    let metric = Metric::parse("critical.ttft_p99").expect("known");
    let logs = runs.iter().map(|rows| ln(metric.of(&rows[0].report).expect("a sample")));
    let mean = exp(logs.sum::<f64>() / 2.0);
    let told = found.objectives[0][0].expect("a sample");
    assert!((told - mean).abs() < 1e-9 * mean, "{told} {mean}");
}

impl Search {
    /// The runs of the hand-set point.
    fn runs_of_hand(&self) -> crate::optimize::Runs {
        let plans = self.plans(0, &self.points.candidates[0].hand).expect("legal");
        let runs = search::by_point(&[plans], &self.seeds(), &Runner::default());
        runs.expect("they run").remove(0)
    }
}
