//! `blis validate --format table`: for people, within 100 columns.

use super::Found;
use crate::calibrate::signed;
use crate::report::table::{bold, grouped, plain, table};
use blis_lab::validate::{Cell, Compared};

/// What was found.
pub(super) fn text(found: &Found) -> String {
    let mut parts: Vec<String> = found.compared.iter().map(workload).collect();
    parts.push(format!("{}\n{}\n", found.basis, summary(found)));
    parts.join("\n")
}

/// How many intervals hold, and how far fits to single workloads are off.
pub(super) fn summary(found: &Found) -> String {
    let mut parts = Vec::new();
    let coverage = &found.coverage;
    if coverage.cells > 0 {
        parts.push(format!(
            "{} of {} measured numbers are within their 90 % intervals; {} intervals are no wider \
             than\ntwice the spread of repeated runs and 10 %",
            coverage.covered, coverage.cells, coverage.narrow
        ));
    }
    let near = found.transfer.iter().filter(|one| one.e2e_mean.abs() <= 0.1).count();
    if !found.transfer.is_empty() {
        parts.push(format!(
            "fitted to one workload and to pure steps measured apart, {near} of {} predictions of \
             another\nworkload's E2E mean are within 10 %",
            found.transfer.len()
        ));
    }
    parts.join("\n\n")
}

/// One line about a workload.
pub(super) fn headline(compared: &Compared) -> String {
    let steps = compared.steps.map_or_else(String::new, |steps| {
        let (mean, total) = (100.0 * steps.mean_absolute, signed(steps.total));
        format!("steps off by {mean:.1} % on average, {total} together; ")
    });
    format!(
        "{} requests; {steps}cached tokens as measured for {:.1} % of them",
        grouped(compared.measured.len() as u64),
        100.0 * compared.cached_equal
    )
}

fn workload(compared: &Compared) -> String {
    let mut rows = table(&[
        "ms",
        "predicted",
        "from",
        "to",
        "measured",
        "error",
        "inside",
        "second run",
        "spread",
    ]);
    for cell in compared.cells.iter().filter(|cell| is_shown(cell)) {
        rows.add_row(row(cell));
    }
    let head = bold(&compared.workload);
    let line = headline(compared).replacen("; cached", ";\ncached", 1);
    format!("{head}: {line}\n\n{}\n", rows.trim_fmt())
}

/// Whether there is something to say: no preemptions, as predicted, are not worth a row.
pub(super) fn is_shown(cell: &Cell) -> bool {
    cell.measured > 0.0 || cell.predicted > 0.0
}

/// What is said about a number, in the order of the columns.
pub(super) fn row(cell: &Cell) -> Vec<String> {
    let share = |value: Option<f64>| value.map_or_else(|| "-".to_owned(), signed);
    let inside = match cell.is_covered() {
        None => "-",
        Some(true) => "yes",
        Some(false) => "no",
    };
    vec![
        cell.quantity.name(),
        plain(Some(cell.predicted)),
        plain(cell.interval.map(|(low, _)| low)),
        plain(cell.interval.map(|(_, high)| high)),
        plain(Some(cell.measured)),
        share(cell.error()),
        inside.to_owned(),
        plain(cell.repeat),
        share(cell.spread()),
    ]
}
