//! `--out`: the recommended strategy as a file, with where it comes from.

use blis_lab::optimize::{Chosen, Findings, Number, Search};
use blis_report::search::{NONE_MET, by_workload, heading, shown_change};
use blis_report::text::entry;
use blis_scenario::problem::visible;

/// The strategy file.
pub(super) fn text(search: &Search, findings: &Findings, chosen: &Chosen) -> String {
    let candidate = &search.points.candidates[chosen.candidate];
    let strategy = &candidate.strategy;
    let mut lines = vec![
        format!("Strategy `{}`, optimised: {}", candidate.name(), search.question),
        format!("Made by: {}", crate::command_line()),
    ];
    if !findings.is_feasible() {
        lines.push(format!("Not to be used: {NONE_MET}"));
    }
    let (calls, seeds) = (findings.calls.len(), search.budget.seeds);
    lines.push(format!(
        "Search: {calls} points, {seeds} seeds each, engine {} with seed {}",
        search.budget.engine.name(),
        search.budget.seed
    ));
    let names = search.workloads();
    lines.extend((!names.is_empty()).then(|| format!("Workloads: {}", names.join(", "))));
    let told = |number: &Number| {
        let mean = |cell: usize| entry(&number.metric, findings.mean(cell, number));
        let (seeds, name) = (findings.fresh_seeds(), heading(number));
        let change = shown_change(findings, 1, number);
        format!("{name}, {seeds} fresh seeds: {}; by hand {}; change {change}", mean(1), mean(0))
    };
    for objective in &search.objectives {
        lines.push(told(&objective.number));
        if objective.number.workload.is_none() {
            lines.extend(by_workload(search, objective.number.metric).iter().map(told));
        }
    }
    lines.extend(search.constraints.iter().map(|it| format!("Under: {}", it.text)));
    // Nothing that a user writes may end the comment.
    let comment = |line: &String| format!("# {}\n", visible(line));
    let header: String = lines.iter().map(comment).collect();
    header + &strategy.text(&format!("{}-optimised", strategy.name), &chosen.settings)
}
