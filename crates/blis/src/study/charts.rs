//! The numbers of a study for other programs and as a drawing.

use super::grids::{columns, heading};
use crate::report::plot::{Chart, Line};
use blis_lab::Metric;
use blis_lab::study::{Findings, Study};

/// A line for each combination of all factors but the last, a point for each level of that one.
pub(super) fn chart(study: &Study, findings: &Findings, metric: &Metric) -> Chart {
    let others = study.factors.len().saturating_sub(1);
    let columns = columns(study);
    let point = |cell: usize| {
        findings.mean(cell, metric).map(|(mean, half_width)| (mean, half_width.unwrap_or(0.0)))
    };
    let line = |first: usize| Line {
        name: study.cells[first].levels[..others].join(", "),
        points: (first..first + columns.len()).map(point).collect(),
    };
    Chart {
        title: format!("{} by {}", heading(metric), study.factors.join(", ")),
        x: study.factors.last().cloned().unwrap_or_default(),
        lines: (0..study.cells.len()).step_by(columns.len()).map(line).collect(),
        levels: columns,
    }
}

/// One row a run: the levels of its cell, its seed, and every number that was asked for.
pub(super) fn rows(study: &Study, findings: &Findings) -> String {
    let names = study.metrics.iter().map(Metric::name);
    let factors = study.factors.iter().map(|factor| quoted(factor));
    let header: Vec<String> = factors.chain(["seed".to_owned()]).chain(names).collect();
    let mut lines = vec![header.join(",")];
    for (number, (cell, rows)) in study.cells.iter().zip(&findings.rows).enumerate() {
        for (seed, row) in rows.iter().enumerate() {
            let levels = cell.levels.iter().map(|level| quoted(level));
            let shown = |metric: &Metric| {
                let value = findings.value(number, seed, metric);
                value.map_or_else(String::new, |value| value.to_string())
            };
            let numbers = study.metrics.iter().map(shown);
            let fields: Vec<String> =
                levels.chain([row.run.seed.to_string()]).chain(numbers).collect();
            lines.push(fields.join(","));
        }
    }
    lines.join("\n") + "\n"
}

/// A field of a CSV.
pub(crate) fn quoted(text: &str) -> String {
    if text.contains([',', '"', '\n', '\r']) {
        format!("\"{}\"", text.replace('"', "\"\""))
    } else {
        text.to_owned()
    }
}
