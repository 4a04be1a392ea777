//! The verdicts of a study, for people.

use crate::report::grid::folded;
use crate::report::table::bold;
use blis_lab::hypothesis::Hypothesis;
use blis_lab::study::{Findings, Study};
use blis_lab::verdict::{Outcome, Scale, Verdict, number};

/// What all verdicts have in common.
pub(super) const CAUTION: &str =
    "wrong about any of them with a probability of at most 5 %, looks included";

/// A paragraph a hypothesis; empty if there are none.
pub(super) fn text(study: &Study, findings: &Findings) -> String {
    if study.hypotheses.is_empty() {
        return String::new();
    }
    let one = |(hypothesis, verdict): (&Hypothesis, &Verdict)| {
        let Hypothesis { name, text, because, .. } = hypothesis;
        let because = because.as_ref().map(|because| folded(&format!("because {because}"), 4, 4));
        let because = because.map(|text| text + "\n").unwrap_or_default();
        let head = folded(&format!("{} {name}: {text}", verdict.outcome.name()), 0, 4);
        let rest = head.strip_prefix(verdict.outcome.name()).unwrap_or_default();
        let why = folded(&verdict.why, 4, 4);
        format!("{}{rest}\n{because}{why}\n", bold(verdict.outcome.name()))
    };
    let all: String = study.hypotheses.iter().zip(&findings.verdicts).map(one).collect();
    format!("{} ({CAUTION})\n{all}", bold("verdicts"))
}

/// The effect that a verdict hangs on, with its interval.
pub(super) fn effect(verdict: &Verdict) -> String {
    let Some(effect) = verdict.effects.get(verdict.telling) else { return "-".to_owned() };
    let Some(found) = effect.estimate else { return "too few samples".to_owned() };
    let times = if effect.scale == Scale::Ratio { "x " } else { "" };
    let unit = if effect.unit.is_empty() { String::new() } else { format!(" {}", effect.unit) };
    let (mean, low, high) = (number(found.mean), number(found.low), number(found.high));
    format!("{times}{mean} ({low} to {high}){unit}")
}

/// How many verdicts there are of each kind, in words.
pub(super) fn tally(outcomes: &[Outcome]) -> String {
    let kinds = [Outcome::Confirmed, Outcome::Refuted, Outcome::Inconclusive];
    let count = |kind: Outcome| outcomes.iter().filter(|outcome| **outcome == kind).count();
    let parts = kinds.map(|kind| (count(kind), kind.name()));
    let told: Vec<String> = parts
        .iter()
        .filter(|(count, _)| *count > 0)
        .map(|(count, name)| format!("{count} {name}"))
        .collect();
    if told.is_empty() { "nothing claimed".to_owned() } else { told.join(", ") }
}
