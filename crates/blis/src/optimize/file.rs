//! `--out`: the recommended strategy as a file, with where it comes from.

use super::{heading, workloads};
use crate::compare::change;
use crate::study::entry;
use blis_lab::optimize::{Chosen, Findings, Number, Search};

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
    lines.extend(workloads::named(search).map(|names| format!("Workloads: {names}")));
    let told = |number: &Number| {
        let mean = |cell: usize| entry(&number.metric, findings.mean(cell, number));
        let paired = findings.paired(1, number);
        let change = paired.as_ref().map_or_else(|| "-".to_owned(), change);
        let (seeds, name) = (findings.fresh_seeds(), heading(number));
        format!("{name}, {seeds} fresh seeds: {}; by hand {}; change {change}", mean(1), mean(0))
    };
    for objective in &search.objectives {
        lines.push(told(&objective.number));
        if objective.number.workload.is_none() {
            lines.extend(workloads::each(search, objective.number.metric).iter().map(told));
        }
    }
    for constraint in &search.constraints {
        lines.push(format!("Under: {}", constraint.text));
    }
    // Nothing that a user writes may end the comment.
    let comment = |line: &String| format!("# {}\n", blis_scenario::problem::visible(line));
    let header: String = lines.iter().map(comment).collect();
    header + &strategy.text(&format!("{}-optimised", strategy.name), &chosen.settings)
}
