//! The verdicts of a study, for people.

use crate::report::grid::folded;
use crate::report::table::bold;
use blis_lab::hypothesis::Hypothesis;
use blis_lab::study::{Findings, Study};
use blis_lab::verdict::Verdict;

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

/// A list for a Markdown page; empty if there are none.
pub(super) fn markdown(study: &Study, findings: &Findings) -> String {
    if study.hypotheses.is_empty() {
        return String::new();
    }
    let one = |(hypothesis, verdict): (&Hypothesis, &Verdict)| {
        let Hypothesis { name, text, because, .. } = hypothesis;
        let because = because.as_ref().map(|text| format!(" Because {text}.")).unwrap_or_default();
        format!("- **{}** {name}: `{text}`.{because} {}.\n", verdict.outcome.name(), verdict.why)
    };
    let all: String = study.hypotheses.iter().zip(&findings.verdicts).map(one).collect();
    format!("## Verdicts\n\nThe study is {CAUTION}.\n\n{all}")
}
