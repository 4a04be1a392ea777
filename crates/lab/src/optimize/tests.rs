//! Whole searches on a small cluster: what they ask for, resume, recommend and refuse.

mod safety;
mod workloads;

use super::file::search;
use super::{Findings, Search};
use crate::Failure;
use crate::ledger::Ledger;
use crate::trial::{self, Elsewhere, Runner, Watch};
use blis_scenario::yaml;
use blis_scenario::{Draft, RunFailure, Saturations};
use std::sync::atomic::{AtomicUsize, Ordering};

/// Small and fast, and its parameters matter: a queue forms, and prefixes are shared.
const SEARCH: &str = "
question: which weights?
base:
  cluster: {instances: 3}
  workload: {preset: orthogonal-slo, rate: 320, num_requests: 400}
strategy: slo-compound
parameters: [pa, qd, gate]
objective: critical.ttft_p99
constraints: ['tokens_per_sec >= 0.5 * baseline']
budget: {calls: 14, seeds: 2}
confirm: {seeds: 3}
";

fn read(text: &str) -> Result<Search, String> {
    let tree = yaml::read_text("s.yaml", text).expect("well-formed");
    let outline = search(&tree).map_err(|problem| problem.to_string())?;
    outline.settle(&Runner::default()).map_err(|failure| failure.to_string())
}

fn run(text: &str, runner: &Runner<'_>, control: bool) -> Findings {
    read(text).expect("legal").run(runner, control).expect("it runs")
}

/// Stops after so many trials, and counts those that were finished.
struct Limit {
    most: usize,
    finished: AtomicUsize,
}

impl Watch for Limit {
    fn go_on(&self) -> bool {
        self.finished.load(Ordering::Relaxed) < self.most
    }

    fn finished(&self) {
        self.finished.fetch_add(1, Ordering::Relaxed);
    }
}

#[test]
fn a_search_asks_for_the_same_points_however_many_run_at_a_time() {
    let alone = run(SEARCH, &Runner { jobs: 1, ..Runner::default() }, false);
    let together = run(SEARCH, &Runner { jobs: 4, ..Runner::default() }, false);
    assert_eq!(alone.calls, together.calls);
    assert_eq!(alone.chosen, together.chosen);
    assert!(alone.calls.len() >= 14, "and those with parameters put back");
    let scores: Vec<f64> = alone.calls.iter().map(|call| call.scores[0]).collect();
    assert!(scores[0].abs() <= 0.0, "the hand-set point is the first, and its own measure");
    let differ = scores[1..].iter().filter(|score| score.abs() > 1e-6).count();
    assert!(differ > 6, "the parameters matter: {scores:?}");
    assert_eq!(alone.fresh.len(), 2);
}

#[test]
fn a_search_that_was_stopped_goes_on_from_the_ledger() {
    let folder = tempfile::tempdir().expect("a folder");
    let ledger = Ledger::open(&folder.path().join("l.sqlite")).expect("a ledger");
    let runner = Runner { jobs: 2, ledger: Some(&ledger), ..Runner::default() };
    let limit = Limit { most: 23, finished: AtomicUsize::new(0) };
    let stopped =
        read(SEARCH).expect("legal").run(&Runner { watch: &limit, ..runner.clone() }, false);
    assert!(matches!(stopped, Err(Failure::Run(RunFailure::Interrupted))));
    assert!(limit.finished.load(Ordering::Relaxed) >= 23);
    let resumed = run(SEARCH, &runner, false);
    let whole = run(SEARCH, &Runner::default(), false);
    assert_eq!(resumed.calls, whole.calls);
    assert_eq!(resumed.chosen, whole.chosen);
    // Now everything is finished: an audit would run it again, but nothing else does.
    let none = Limit { most: usize::MAX, finished: AtomicUsize::new(0) };
    let again = run(SEARCH, &Runner { watch: &none, ..runner }, false);
    assert_eq!(again.calls, whole.calls);
}

#[test]
fn every_engine_spends_its_budget_and_no_more() {
    for (engine, calls) in [("random", 14), ("sobol", 14), ("grid", 14), ("nsga2", 14), ("gp", 14)]
    {
        let text = SEARCH.replace("seeds: 2}", &format!("seeds: 1, engine: {engine}}}"));
        let found = run(&text, &Runner::default(), false);
        // A grid of three parameters with two steps has eight points, and the hand-set one is none.
        // Two weights that are both 0 are as good as two equal ones, which leaves six.
        let expected = if engine == "grid" { 7 } else { calls };
        let put_back = found.calls.len() - expected;
        assert!(put_back <= 2 * 3, "{engine}: {put_back}");
        assert_eq!(found.chosen.len(), 1, "{engine}");
        assert!(found.calls[found.chosen[0].call].is_usable(), "{engine}");
        assert!(found.calls.iter().all(|call| call.refused.is_none()), "{engine}");
    }
}

#[test]
fn several_objectives_have_a_front_that_nothing_measured_dominates() {
    let text = SEARCH.replace(
        "objective: critical.ttft_p99",
        "objective: critical.ttft_p99\nmaximise: sheddable.completed",
    );
    let found = run(&text, &Runner::default(), true);
    let front = found.front.as_ref().expect("two objectives");
    assert!(!front.points.is_empty());
    assert!(front.hypervolume >= front.of_hand);
    for &on in &front.points {
        let on = &found.calls[on].scores;
        let better = |call: &&super::Call| {
            let pairs = || call.scores.iter().zip(on);
            call.is_usable() && pairs().all(|(a, b)| a <= b) && pairs().any(|(a, b)| a < b)
        };
        assert!(!found.calls.iter().any(|call| better(&call)));
    }
    let control = found.control.expect("it was asked for");
    assert_eq!(control.calls.len(), 14);
    let cells = 1 + found.chosen.len() + control.chosen.len();
    assert_eq!(found.fresh.len(), cells, "all of both fronts are confirmed");
}

#[test]
fn a_strategy_is_a_choice_too_and_each_has_its_own_parameters() {
    let text = SEARCH
        .replace("strategy: slo-compound", "strategy: [slo-compound, round-robin, pa4qd3]")
        .replace("parameters: [pa, qd, gate]", "parameters: {gate: {min: 2, max: 64}, qd: }");
    let found = run(&text, &Runner::default(), false);
    let mut chosen: Vec<usize> = found.calls.iter().map(|call| call.candidate).collect();
    chosen.sort_unstable();
    chosen.dedup();
    assert_eq!(chosen, [0, 1, 2], "all are tried");
    for call in found.calls.iter().filter(|call| call.candidate == 0) {
        let gate = call.settings.iter().find(|(name, _)| name == "gate").expect("a gate");
        let gate: f64 = gate.1.parse().expect("a number");
        assert!((2.0..=64.0).contains(&gate));
        assert_eq!(call.settings[0], ("pa".to_owned(), "4".to_owned()), "what is not free stays");
    }
}

#[test]
fn a_share_of_saturation_is_measured_once_and_means_the_same_rate_for_all() {
    let text = SEARCH.replace("rate: 320", "rate: 90%");
    let search = read(&text).expect("legal");
    let hand = &search.points.candidates[0].hand;
    let of = |base: &yaml::Node| {
        Draft::from_tree(search.points.tree(base, 0, hand)).plan().expect("legal")
    };
    let settled = of(&search.loads[0].base);
    assert_eq!(settled.saturation, None, "nothing is left to measure");
    let tree = yaml::read_text("s.yaml", &text).expect("well-formed");
    let asked = of(tree.field("base").expect("a base"));
    assert!(asked.saturation.is_some());
    assert_eq!(format!("{:?}", settled.workload), format!("{:?}", asked.workload));
}

#[test]
fn what_is_written_as_a_strategy_means_the_point_that_was_found() {
    let search = read(SEARCH).expect("legal");
    let candidate = &search.points.candidates[0];
    let mut settings = candidate.hand.clone();
    settings[0].1 = "7.123456789012345".to_owned();
    settings[2].1 = "31.5".to_owned();
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("best.yaml");
    std::fs::write(&path, candidate.strategy.text("best", &settings)).expect("it can be written");
    let plan = |strategy: String| {
        let mut tree = search.loads[0].base.clone();
        blis_scenario::strategy::choose(&mut tree, yaml::Node::from_flag("strategy", &strategy));
        Draft::from_tree(tree).plan().expect("legal").identity
    };
    let found = Draft::from_tree(search.points.tree(&search.loads[0].base, 0, &settings));
    let found = found.plan().expect("legal").identity;
    assert_eq!(plan(path.to_string_lossy().into_owned()), found);
    assert_ne!(plan("slo-compound".to_owned()), found);
}

#[test]
fn mistakes_are_told_with_their_place_before_anything_runs() {
    for (from, to, message) in [
        ("[pa, qd, gate]", "[pa, qq]", "s.yaml:7:18: parameters: unknown parameter `qq`"),
        ("[pa, qd, gate]", "{pa: {min: -1}}", "s.yaml:7:24: parameters.pa: found `-1`; legal"),
        ("[pa, qd, gate]", "{pa: {min: 3, max: 2}}", "there is nothing between"),
        ("[pa, qd, gate]", "{pa: 3}", "parameters.pa: legal: `{min: ..., max: ...}`"),
        ("[pa, qd, gate]", "[]", "nothing can be searched here"),
        ("strategy: slo-compound", "strategy: slo-compond", "unknown strategy `slo-compond`"),
        ("strategy: slo-compound", "strategy: []", "strategy: missing; name"),
        ("strategy: slo-compound", "strategy: 'slo-compound[gate=0]'", "`gate` is `0`; legal"),
        ("objective: critical.ttft_p99", "objective: ttft", "s.yaml:8:12: objective: unknown"),
        ("objective: critical.ttft_p99", "", "there is no objective"),
        ("0.5 * baseline", "0.5 * base", "s.yaml:9:15: constraints[0]: found `base`"),
        ("seeds: 2}", "seeds: 2, engine: bo}", "budget.engine: unknown engine `bo`"),
        ("calls: 14, seeds: 2}", "calls: 7, engine: grid}", "the coarsest grid has 8 points"),
        ("calls: 14", "calls: 3", "budget.calls: found `3`; legal: a whole number from 4"),
        ("instances: 3", "instances: 0", "cluster.instances: found `0`"),
    ] {
        let text = SEARCH.replace(from, to);
        assert_ne!(text, SEARCH, "{from}");
        let found = read(&text).expect_err(message);
        assert!(found.contains(message), "{found}\nnot: {message}");
    }
}

#[test]
fn trials_that_are_run_elsewhere_lead_to_the_same_findings() {
    let folder = tempfile::tempdir().expect("a folder");
    let ledger = Ledger::open(&folder.path().join("l.sqlite")).expect("a ledger");
    let runner = Runner { jobs: 1, ledger: Some(&ledger), ..Runner::default() };
    let search = read(SEARCH).expect("legal");
    let mut rounds = 0;
    let findings = loop {
        let elsewhere = Elsewhere::default();
        match search.run(&Runner { watch: &elsewhere, ..runner.clone() }, false) {
            Ok(findings) => break findings,
            Err(Failure::Run(RunFailure::Interrupted)) => {}
            Err(failure) => panic!("{failure}"),
        }
        let needed = elsewhere.needed();
        assert!(!needed.is_empty(), "whatever stops it is needed");
        for (key, document) in needed {
            let known = Saturations::default();
            let read = trial::read("trial", &document, &known, &mut blis_sim::Unobserved);
            let (plan, seed) = read.expect("a legal trial");
            assert_eq!(trial::Key::of(&plan, seed), key);
            let row = trial::row(&plan, seed, false, &mut blis_sim::Unobserved).expect("a row");
            ledger.record(&key, &plan, &row).expect("it is kept");
        }
        rounds += 1;
    };
    assert!(rounds > 3, "what is asked next depends on what was measured");
    assert_eq!(findings.calls, run(SEARCH, &Runner::default(), false).calls);
}

/// A bucket that may let in nearly nobody: by far the most of its range is hopeless.
const BUCKET: &str = "
name: bucket
help: A bucket of tokens before weighted routing
parameters:
  refill: {default: 20000, min: 200, max: 200000, kind: log, help: Prompt tokens a second}
  qd: {default: 1, min: 0.1, max: 1, help: Weight of queue depth}
set:
  routing: {policy: weighted, scorers: 'pa:1,qd:{qd}'}
  admission: 'token-bucket[capacity=5000,refill-rate={refill}]'
";

#[test]
fn racing_leaves_out_only_what_is_surely_worse_and_recommends_the_same() {
    let folder = tempfile::tempdir().expect("a folder");
    let strategy = folder.path().join("bucket.yaml");
    std::fs::write(&strategy, BUCKET).expect("it can be written");
    let text = |budget: &str| {
        let strategy = strategy.display();
        format!(
            "
question: how many to let in?
base:
  cluster: {{instances: 2}}
  workload: {{preset: orthogonal-slo, rate: 160, num_requests: 200}}
strategy: '{strategy}'
parameters: [refill, qd]
maximise: goodput_per_sec
budget: {{calls: 28, engine: sobol, {budget}}}
confirm: {{seeds: 2}}
"
        )
    };
    let counted = |budget: &str| {
        let search = read(&text(budget)).expect("legal");
        let watch = Limit { most: usize::MAX, finished: AtomicUsize::new(0) };
        let runner = Runner { watch: &watch, ..Runner::default() };
        let found = search.run(&runner, false).expect("it runs");
        (found, watch.finished.into_inner())
    };
    let (all, of_all) = counted("seeds: 3, racing: false");
    assert!(all.calls.iter().all(|call| call.seeds == 3), "every point with every seed");

    let (raced, runs) = counted("seeds: 3");
    let dropped: Vec<_> = raced.calls.iter().filter(|call| call.is_dropped(3)).collect();
    assert!((4..24).contains(&dropped.len()), "{} were left out", dropped.len());
    assert!(dropped.iter().all(|call| call.seeds == 1));
    assert!(runs <= of_all - 2 * dropped.len(), "two runs less for each");
    for (raced, all) in raced.calls.iter().zip(&all.calls) {
        assert_eq!(raced.settings, all.settings, "this engine does not learn");
        assert!(raced.is_dropped(3) || raced == all, "what is left is measured as before");
    }
    assert_eq!(raced.chosen[0].settings, all.chosen[0].settings);

    // With more seeds than decided about them, each is worse than what is recommended.
    let more = read(&text("seeds: 8")).expect("legal");
    let goodput = |settings: &[(String, String)]| -> Vec<f64> {
        let found = more.measure_at(settings, &Runner::default()).expect("it runs");
        found.objectives[0].iter().map(|value| value.expect("some are served")).collect()
    };
    let best = goodput(&raced.chosen[0].settings);
    for call in dropped {
        let pairs = best.iter().zip(goodput(&call.settings));
        let gains: Vec<f64> = pairs.map(|(best, left_out)| best - left_out).collect();
        let gain = crate::stats::estimate(&gains, 0.05).expect("eight seeds");
        assert!(gain.low > 0.0, "{:?} may be as good: {gain:?}", call.settings);
    }
}

#[test]
fn an_objective_without_a_sample_is_refused_and_not_answered() {
    let search = read(&SEARCH.replace("critical.ttft_p99", "batch.ttft_p99")).expect("legal");
    let found = search.run(&Runner::default(), false);
    let Err(Failure::Run(RunFailure::Input(problem))) = found else {
        panic!("there are no batch requests")
    };
    let told = problem.to_string();
    assert!(told.contains("objective: no run of the hand-set point has a `batch.ttft_p99`"));
}

#[test]
fn the_exported_page_of_a_search_has_a_row_for_every_point_that_was_run() {
    let folder = tempfile::tempdir().expect("a folder");
    let ledger = Ledger::open(&folder.path().join("ledger.db")).expect("a ledger");
    let found = run(SEARCH, &Runner { ledger: Some(&ledger), ..Runner::default() }, true);
    let page = crate::ledger::export(&ledger.studies().expect("it reads"));
    let rows: Vec<&str> = page.lines().filter(|line| line.starts_with("| ")).collect();
    let of = |name: &str| rows.iter().filter(|row| row.starts_with(&format!("| {name}"))).count();
    // The hand-set point is the first call; nothing stands for those that were no legal scenario.
    let legal = found.calls.iter().filter(|call| call.seeds > 0).count();
    assert!(legal > 8, "{legal}");
    assert_eq!((of("by hand"), of("gp ")), (1, legal - 1), "{page}");
    assert_eq!((of("fresh: by hand"), of("fresh: recommended"), of("fresh: at random")), (1, 1, 1));
    assert_eq!(of("0 "), 0, "{page}");
}
