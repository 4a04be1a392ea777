//! Tests of the race: what wins, and what may not.

use super::{Findings, read_text};
use crate::optimize::Number;
use crate::trial::{Runner, Unwatched};
use crate::{Ledger, Metric};

/// More than the cluster can serve, so that refusing would pay.
const OVERLOAD: &str = "
question: does a gate win by refusing?
base: {cluster: {instances: 2}, latency: {model: constant, step_us: 10000}, \
engine: {total_kv_blocks: 400}, workload: {preset: orthogonal-slo, rate: 90, num_requests: 300}}
baseline: least-loaded
workloads: [{name: overload}]
held_out: [{name: fresh, set: {workload: {rate: 100}}}]
objective: ttft_p99
evolve: {gate: true, parts: {scheduler: [fcfs]}}
budget: {population: 8, generations: 3, seeds: 2, climbs: 2}
confirm: {seeds: 3}
";

fn found(text: &str, ledger: Option<&Ledger>) -> Findings {
    let runner = Runner::new(0, ledger, &Unwatched).expect("a ledger");
    let outline = read_text("e.yaml", text).unwrap_or_else(|problems| panic!("{problems}"));
    let evolution = outline.settle(&runner).expect("legal");
    evolution.run(&runner).expect("runs")
}

#[test]
fn a_gate_that_refuses_does_not_win() {
    let refused = |findings: &Findings, cell: usize| {
        let number = Number::of_all(Metric::parse("refused_share").expect("known"));
        findings.held_out.values(cell, &number).iter().sum::<f64>()
    };
    let findings = found(OVERLOAD, None);
    let gated = findings.raced.entrants.iter().filter(|one| one.genome.gate.is_some()).count();
    assert!(gated > 0, "gates were bred");
    assert!(refused(&findings, 1) <= 0.0, "what is best refuses nobody");
    let lost: Vec<&str> = findings.overloaded.iter().map(|(_, name)| name.as_str()).collect();
    assert_eq!((findings.winner, &lost[..]), (None, &["fresh"; 3][..]), "and does not keep up");
    // Without the guard, refusing is what wins.
    let text = OVERLOAD.replace("objective:", "guards: {refused: false}\nobjective:");
    let findings = found(&text, None);
    assert!(refused(&findings, 1) > 0.0, "the loophole is there");
    assert!(findings.winner.is_some(), "who refuses keeps up");
}

#[test]
fn the_line_of_the_winner_leads_to_a_random_formula_and_generations_never_get_worse() {
    let calm = OVERLOAD.replace("rate: 90", "rate: 20").replace("rate: 100", "rate: 20");
    let findings = found(&calm, None);
    let entrants = &findings.raced.entrants;
    let mut one = findings.winner.expect("one is recommended");
    while let Some(parent) = entrants[one].parent {
        assert!(parent < one && entrants[parent].generation <= entrants[one].generation);
        one = parent;
    }
    assert_eq!(entrants[one].change, "random");
    assert_eq!(findings.raced.best.len(), 3);
    let size = |one: usize| blis_core::math::float(entrants[one].genome.size() as u64);
    let scores: Vec<f64> =
        findings.raced.best.iter().map(|&one| entrants[one].score + 0.002 * size(one)).collect();
    assert!(scores.windows(2).all(|pair| pair[1] <= pair[0] + 1e-12), "{scores:?}");
}

#[test]
fn what_breaks_a_constraint_on_held_out_workloads_is_not_recommended() {
    let bounded = OVERLOAD
        .replace("rate: 90,", "rate: 20,")
        .replace("objective:", "constraints: [ttft_mean <= 1000]\nobjective:");
    let findings = found(&bounded.replace("{rate: 100}", "{rate: 20}"), None);
    assert!(findings.winner.is_some() && findings.taken_back.is_empty(), "it holds there too");
    let findings = found(&bounded.replace("{rate: 100}", "{rate: 400}"), None);
    assert_eq!(findings.winner, None);
    assert!(findings.raced.entrants[findings.raced.finalists[0]].legal, "it held in training");
    let text = "ttft_mean @ fresh <= 1000";
    assert!(findings.taken_back.len() == 3 && findings.taken_back.iter().all(|it| it.1 == text));
}

#[test]
fn a_recommendation_names_the_workloads_whose_runs_are_too_short_to_tell() {
    for (rate, growing) in [(5, &[][..]), (25, &["fresh"][..])] {
        let text = OVERLOAD.replace("rate: 90", "rate: 5").replace("8, generations: 3", "4");
        let findings = found(&text.replace("rate: 100", &format!("rate: {rate}")), None);
        assert!(findings.winner.is_some() && findings.overloaded.is_empty(), "{rate}");
        assert_eq!(findings.growing, growing, "{rate}");
    }
}

#[test]
fn a_constraint_may_name_a_workload_of_either_list() {
    let read = |constraint: &str| {
        let line = format!("constraints: ['{constraint}']\nobjective:");
        read_text("e.yaml", &OVERLOAD.replace("objective:", &line))
    };
    for (constraint, trained, held_out) in [
        ("e2e_mean @ overload <= 90000", 1, 0),
        ("e2e_mean @ fresh <= 90000", 0, 1),
        ("e2e_mean <= 90000", 1, 1),
    ] {
        let outline = read(constraint).unwrap_or_else(|problems| panic!("{problems}"));
        let found =
            [&outline.evolution().train, &outline.evolution().test].map(|it| it.constraints.len());
        assert_eq!(found, [trained, held_out], "{constraint}");
    }
    let unknown = read("e2e_mean @ nowhere <= 90000").expect_err("no such workload");
    assert_eq!(unknown.iter().count(), 1, "{unknown}");
}

#[test]
fn what_is_wrong_with_held_out_workloads_is_named_so_and_all_is_told_at_once() {
    let text = OVERLOAD
        .replace("baseline: least-loaded\n", "")
        .replace("question: does a gate win by refusing?\n", "")
        .replace("held_out: [{name: fresh,", "held_out: [{");
    let found = read_text("e.yaml", &text).expect_err("three things are missing").to_string();
    for part in ["`baseline` is missing", "`question` is missing", "held_out[0]"] {
        assert!(found.contains(part), "{found}");
    }
    assert!(!found.contains("workloads["), "{found}");
}
