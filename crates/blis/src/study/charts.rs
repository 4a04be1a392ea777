//! The numbers of a study for other programs and as a drawing.

use super::grids::heading;
use crate::report::dots::{Dots, Row};
use crate::report::plot::{Chart, Panel};
use blis_lab::Metric;
use blis_lab::study::{Design, Findings, Study};

/// A drawing of `metric`. Along a swept field it has a line for each arm, and a panel for each
/// workload; without one, a row for each arm and a colour for each workload.
pub(super) fn drawing(study: &Study, findings: &Findings, metric: &Metric) -> String {
    let parts = Parts::of(&study.design);
    match parts.swept.split_last() {
        Some((&across, others)) => along(study, findings, metric, (across, others, &parts)).svg(),
        None => by_arm(study, findings, metric, &parts).svg(),
    }
}

/// Which factors are what.
struct Parts {
    workload: Option<usize>,
    arm: Option<usize>,
    swept: Vec<usize>,
}

impl Parts {
    fn of(design: &Design) -> Parts {
        let (workload, arm) = (design.factor("workload"), design.factor("arm"));
        let is_swept = |factor: &usize| ![workload, arm].contains(&Some(*factor));
        Parts { workload, arm, swept: (0..design.factors.len()).filter(is_swept).collect() }
    }
}

/// A line for each combination of `others` and the arm, a point for each level of `across`.
fn along(
    study: &Study,
    findings: &Findings,
    metric: &Metric,
    (across, others, parts): (usize, &[usize], &Parts),
) -> Chart {
    let mut told_apart: Vec<usize> = parts.arm.into_iter().chain(others.iter().copied()).collect();
    // Without arms there is room for the workloads in one panel.
    let panels = if told_apart.is_empty() { None } else { parts.workload };
    if panels.is_none() {
        told_apart.extend(parts.workload);
    }
    let panel_levels = levels(&study.design, panels.as_slice());
    let line_levels = levels(&study.design, &told_apart);
    let places = levels(&study.design, &[across]);
    let panel = |outer: &Vec<usize>| {
        let line = |inner: &Vec<usize>| {
            let at = |place: &Vec<usize>| {
                let parts = [(panels.as_slice(), outer), (&told_apart, inner), (&[across], place)];
                point(findings, cell(&study.design, &parts), metric)
            };
            places.iter().map(at).collect()
        };
        let lines = line_levels.iter().map(line).collect();
        Panel { name: name(&study.design, panels.as_slice(), outer), lines }
    };
    Chart {
        title: heading(metric),
        x: study.factors[across].clone(),
        levels: study.design.factors[across].levels.clone(),
        lines: line_levels.iter().map(|at| name(&study.design, &told_apart, at)).collect(),
        panels: panel_levels.iter().map(panel).collect(),
    }
}

/// A row for each arm, or for each workload if there are no arms, and a colour for each workload.
fn by_arm(study: &Study, findings: &Findings, metric: &Metric, parts: &Parts) -> Dots {
    let design = &study.design;
    let (of_rows, of_series) = match parts.arm {
        Some(arm) => (Some(arm), parts.workload),
        None => (parts.workload, None),
    };
    let series = levels(design, of_series.as_slice());
    let row = |at: &Vec<usize>| Row {
        name: name(design, of_rows.as_slice(), at),
        reference: of_rows.is_some_and(|factor| at[0] >= design.factors[factor].stated),
        points: series
            .iter()
            .map(|one| {
                let parts = [(of_rows.as_slice(), at), (of_series.as_slice(), one)];
                point(findings, cell(design, &parts), metric)
            })
            .collect(),
    };
    Dots {
        title: heading(metric),
        x: "mean over seeds with its 95 % interval".to_owned(),
        rows: levels(design, of_rows.as_slice()).iter().map(row).collect(),
        series: series.iter().map(|at| name(design, of_series.as_slice(), at)).collect(),
    }
}

/// All combinations of levels of `factors`; one empty combination if there are none.
fn levels(design: &Design, factors: &[usize]) -> Vec<Vec<usize>> {
    let mut all = vec![Vec::new()];
    for &factor in factors {
        let count = design.factors[factor].levels.len();
        let more = |one: &Vec<usize>| -> Vec<Vec<usize>> {
            (0..count).map(|level| [&one[..], &[level]].concat()).collect()
        };
        all = all.iter().flat_map(more).collect();
    }
    all
}

/// The cell with these levels of these factors.
fn cell(design: &Design, parts: &[(&[usize], &Vec<usize>)]) -> usize {
    let mut all = vec![0; design.factors.len()];
    for (factors, levels) in parts {
        for (&factor, &level) in factors.iter().zip(levels.iter()) {
            all[factor] = level;
        }
    }
    design.cell(&all)
}

fn name(design: &Design, factors: &[usize], levels: &[usize]) -> String {
    let names = factors.iter().zip(levels);
    let names: Vec<&str> =
        names.map(|(&factor, &level)| design.factors[factor].levels[level].as_str()).collect();
    names.join(", ")
}

fn point(findings: &Findings, cell: usize, metric: &Metric) -> Option<(f64, f64)> {
    findings.mean(cell, metric).map(|(mean, half_width)| (mean, half_width.unwrap_or(0.0)))
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
