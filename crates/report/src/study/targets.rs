//! Which arms meet the targets of a study: its claims that bound a number of one arm.

use super::answer::arm;
use crate::model::Block;
use crate::text::listed;
use blis_lab::Metric;
use blis_lab::hypothesis::{Expr, Hypothesis};
use blis_lab::study::{Findings, Study};
use blis_lab::verdict::{Outcome, number};

/// Of a claim that is a target: its arm misses it.
const MISSED: [Outcome; 2] = [Outcome::Refuted, Outcome::Overloaded];

/// What a target is, and how each arm that it is claimed of fares.
type Target = (String, Vec<(usize, Outcome)>);

/// The targets of the study, in the order of its claims.
fn targets(study: &Study, findings: &Findings) -> Vec<Target> {
    let mut targets: Vec<Target> = Vec::new();
    for (hypothesis, verdict) in study.hypotheses.iter().zip(&findings.verdicts) {
        let Some((target, level)) = target(study, hypothesis) else { continue };
        let found = (level, verdict.outcome);
        match targets.iter_mut().find(|(known, _)| *known == target) {
            Some((_, arms)) => arms.push(found),
            None => targets.push((target, vec![found])),
        }
    }
    targets
}

/// How many targets the arm surely misses.
pub(super) fn missed(study: &Study, findings: &Findings, level: usize) -> usize {
    let targets = targets(study, findings);
    let found = targets.iter().flat_map(|(_, arms)| arms).filter(|(arm, _)| *arm == level);
    found.filter(|(_, outcome)| MISSED.contains(outcome)).count()
}

/// A line for each target, and what it takes to meet them; none if no claim is one.
pub(super) fn lines(study: &Study, findings: &Findings) -> Option<Block> {
    let targets = targets(study, findings);
    let lines = targets.iter().map(|(target, arms)| {
        let with = |is: &dyn Fn(Outcome) -> bool| {
            let arms = arms.iter().filter(|(_, outcome)| is(*outcome));
            listed(arms.map(|&(level, _)| Some(arm(study, level).to_owned())))
        };
        let parts = [
            ("met by ", with(&|it| it == Outcome::Confirmed)),
            ("missed by ", with(&|it| it == Outcome::Refuted)),
            ("missed for overload by ", with(&|it| it == Outcome::Overloaded)),
            ("open for ", with(&is_open)),
        ];
        let parts = parts.iter().filter(|(_, arms)| !arms.is_empty());
        let parts: Vec<String> = parts.map(|(what, arms)| format!("{what}{arms}")).collect();
        format!("Target {target}: {}.", parts.join("; "))
    });
    let lines: Vec<String> = lines.chain(instances(study, findings)).collect();
    (!lines.is_empty()).then_some(Block::List(lines))
}

/// How many instances each arm needs, if the study asks for that and cells differ in nothing else.
fn instances(study: &Study, findings: &Findings) -> Option<String> {
    let metric = Metric::FEWEST_INSTANCES;
    if !study.metrics.contains(&metric) || study.factors != ["arm"] {
        return None;
    }
    let needed = |cell: usize| {
        let values = findings.values(cell, &metric);
        let most = values.iter().copied().reduce(f64::max);
        let most = most.filter(|_| values.len() == findings.rows[cell].len());
        format!("{} {}", study.cells[cell].levels[0], most.map_or("unknown".to_owned(), number))
    };
    let all = listed((0..study.cells.len()).map(|cell| Some(needed(cell))));
    let here = study.cells.first()?.plan.instances;
    Some(format!("Instances needed with every seed: {all}. This study has {here}."))
}

fn is_open(outcome: Outcome) -> bool {
    outcome != Outcome::Confirmed && !MISSED.contains(&outcome)
}

/// The bound without the arm that it is claimed of, and that arm.
fn target(study: &Study, hypothesis: &Hypothesis) -> Option<(String, usize)> {
    let factor = study.design.factor("arm")?;
    let mut claim = hypothesis.claim.clone();
    let [part] = &mut claim.parts[..] else { return None };
    part.right.constant()?;
    let Expr::Value(reference) = &mut part.left else { return None };
    let level = reference.levels[factor].take()?;
    Some((claim.text(&study.design), level))
}
