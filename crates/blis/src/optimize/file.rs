//! `--out`: the recommended strategy as a file, with where it comes from.

use crate::compare::change;
use crate::study::{entry, heading};
use blis_lab::optimize::{Chosen, Findings, LEVEL, Search};

/// The strategy file.
pub(super) fn text(search: &Search, findings: &Findings, chosen: &Chosen) -> String {
    let candidate = &search.points.candidates[chosen.candidate];
    let strategy = &candidate.strategy;
    let mut lines = vec![
        format!("Strategy `{}`, optimised: {}", candidate.name(), search.question),
        format!("Made by: {}", crate::command_line()),
    ];
    let (calls, seeds) = (findings.calls.len(), search.budget.seeds);
    lines.push(format!(
        "Search: {calls} points, {seeds} seeds each, engine {} with seed {}",
        search.budget.engine.name(),
        search.budget.seed
    ));
    for objective in &search.objectives {
        let metric = &objective.metric;
        let mean = |cell: usize| entry(metric, findings.fresh.mean(cell, metric));
        let paired = findings.fresh.paired(1, 0, metric, LEVEL);
        let change = paired.as_ref().map_or_else(|| "-".to_owned(), change);
        lines.push(format!(
            "{}, {} fresh seeds: {}; by hand {}; change {change}",
            heading(metric),
            findings.fresh.seeds(),
            mean(1),
            mean(0)
        ));
    }
    for constraint in &search.constraints {
        lines.push(format!("Under: {}", constraint.text));
    }
    // Nothing that a user writes may end the comment.
    let comment = |line: &String| format!("# {}\n", blis_lab::problem::visible(line));
    let header: String = lines.iter().map(comment).collect();
    header + &strategy.text(&format!("{}-optimised", strategy.name), &chosen.settings)
}
