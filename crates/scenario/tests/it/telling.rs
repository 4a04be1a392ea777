//! All that a run tells, written down so that two runs can be compared to the byte.

use crate::harness::assert_clean;
use blis_core::Span;
use blis_metrics::{Fact, Report, Transcript};
use blis_scenario::{Plan, RunResult, Trial, run_scenario};
use blis_sim::{Outcome, Pace, Unobserved};

/// Everything that a run tells.
pub(crate) struct Told {
    facts: Transcript,
    pub(crate) report: Report,
    outcome: Outcome,
}

/// How a run is listened to.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Manner {
    pub(crate) pace: Pace,
    pub(crate) audit: bool,
    /// Whether how many cached tokens routers expect is told.
    pub(crate) expectations: bool,
    /// Time between samples, which are not told themselves.
    pub(crate) sample_interval: Option<Span>,
    /// Whether details are stated, which are not told themselves.
    pub(crate) details: bool,
}

/// What a run of `plan` tells.
#[track_caller]
pub(crate) fn told(plan: &Plan, manner: Manner) -> Told {
    let Manner { pace, audit, expectations, sample_interval, details } = manner;
    let forget = if expectations { without_reasons } else { without_expectations };
    let mut facts = Transcript::new(forget);
    let trial = Trial { pace, audit, sample_interval, details, ..Trial::new(plan.seed) };
    let result = run_scenario(plan, trial, &mut [&mut facts], None, &mut Unobserved)
        .unwrap_or_else(|failure| panic!("{failure}"));
    if audit {
        assert_clean(&result, plan);
    }
    let RunResult { mut report, mut outcome, .. } = result;
    report.mechanisms.clear();
    outcome.mechanisms.clear();
    if !expectations {
        (report.kv.phantom_hit_rate, report.kv.missed_hit_rate) = (None, None);
    }
    Told { facts, report, outcome }
}

/// Takes out why a router chose: how it justifies itself is not what happens.
fn without_reasons(fact: &mut Fact<'_>) {
    if let Fact::Routed { because, totals, .. } = fact {
        (*because, *totals) = ("", &[]);
    }
}

/// The same, and how many cached tokens a router expected.
fn without_expectations(fact: &mut Fact<'_>) {
    without_reasons(fact);
    match fact {
        Fact::Routed { expected_cached_tokens, .. } => *expected_cached_tokens = None,
        Fact::Closed { record, .. } => record.expected_cached_tokens = None,
        _ => {}
    }
}

/// Where two runs differ first, if they do.
pub(crate) fn difference(mut a: Told, mut b: Told) -> Option<String> {
    let rest = |told: &Told| format!("{:?}, {:?}", told.outcome, told.report);
    let (first, second) = (rest(&a), rest(&b));
    a.facts.difference(&mut b.facts).or_else(|| {
        let told = || format!("what the facts add up to:\n  {first}\n  {second}");
        (first != second).then(told)
    })
}
