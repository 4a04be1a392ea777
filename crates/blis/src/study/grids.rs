//! The tables of a study.

use crate::report::grid::Grid;
use crate::report::table::{grouped, percent, plain};
use blis_core::SloClass;
use blis_core::math::count;
use blis_lab::Metric;
use blis_lab::study::{self, Findings, Study};

/// The title of the table by class.
const BY_CLASS: &str = "requests by class, a run";
/// Tables by class of more rows than this are left to `--format json`.
const MOST_CLASS_ROWS: usize = 64;

/// All tables: the numbers that were asked for, what arms are made of, and what became of the
/// requests of each class, unless that is very long.
pub(super) fn all(study: &Study, findings: &Findings) -> Vec<Grid> {
    let mut grids = every(study, findings);
    grids.retain(|grid| grid.title != BY_CLASS || grid.rows.len() <= MOST_CLASS_ROWS);
    grids
}

/// All tables, however long.
pub(super) fn every(study: &Study, findings: &Findings) -> Vec<Grid> {
    let mut grids = numbers(study, findings);
    grids.extend(made_of(study));
    grids.extend(by_class(study, findings));
    grids
}

/// The numbers that were asked for.
fn numbers(study: &Study, findings: &Findings) -> Vec<Grid> {
    match study.factors.len() {
        0 | 1 => vec![by_metric(study, findings)],
        _ => pivots(study, findings),
    }
}

/// All that is measured: what arms are made of is told elsewhere.
pub(super) fn measured(study: &Study, findings: &Findings) -> Vec<Grid> {
    let by_class = by_class(study, findings).filter(|grid| grid.rows.len() <= MOST_CLASS_ROWS);
    numbers(study, findings).into_iter().chain(by_class).collect()
}

/// One row a cell, one column a number.
fn by_metric(study: &Study, findings: &Findings) -> Grid {
    let factors = study.factors.iter().cloned();
    let metrics = study.metrics.iter().map(heading);
    let header = factors.chain(metrics).chain(["load".to_owned()]).collect();
    let row = |(number, cell): (usize, &study::Cell)| {
        let numbers =
            study.metrics.iter().map(|metric| entry(metric, findings.mean(number, metric)));
        let levels = cell.levels.iter().cloned();
        levels.chain(numbers).chain([findings.load(number).to_owned()]).collect()
    };
    let rows = study.cells.iter().enumerate().map(row).collect();
    Grid { title: String::new(), header, rows }
}

/// One table a number: a column for each level of the last factor, a row for each combination of
/// the others.
fn pivots(study: &Study, findings: &Findings) -> Vec<Grid> {
    let (last, others) = study.factors.split_last().expect("there are several factors");
    let names = columns(study);
    let pivot = |title: String, entry: &dyn Fn(usize) -> String| {
        // The last step of a path says enough.
        let short = last.rsplit('.').next().unwrap_or(last);
        let corner = format!("{} \\ {short}", others.join(", "));
        let header = std::iter::once(corner).chain(names.iter().cloned()).collect();
        let row = |first: usize| {
            let name = study.cells[first].levels[..others.len()].join(", ");
            std::iter::once(name).chain((first..first + names.len()).map(entry)).collect()
        };
        let rows = (0..study.cells.len()).step_by(names.len()).map(row).collect();
        Grid { title, header, rows }
    };
    let number = |metric: &Metric| {
        pivot(heading(metric), &|cell| entry(metric, findings.mean(cell, metric)))
    };
    let mut grids: Vec<Grid> = study.metrics.iter().map(number).collect();
    grids.push(pivot("load".to_owned(), &|cell| findings.load(cell).to_owned()));
    grids
}

/// Which components each arm has, and what it is there for; none if arms are not made of any.
fn made_of(study: &Study) -> Option<Grid> {
    let arms = &study.design.factors[study.design.factor("arm")?];
    let all: Vec<usize> = (0..arms.levels.len()).collect();
    if all.iter().all(|&arm| study.with(arm).is_empty() && study.tests(arm).is_none()) {
        return None;
    }
    let components: Vec<String> =
        study.components.iter().map(|component| component.name.clone()).collect();
    let header = std::iter::once("arm".to_owned())
        .chain(components.iter().cloned())
        .chain(["tests".to_owned()])
        .collect();
    let row = |&arm: &usize| {
        let with = study.with(arm);
        let stated = arm < arms.stated;
        let mark = |name: &String| match (stated, with.contains(&name.as_str())) {
            (true, true) => "yes".to_owned(),
            (true, false) => "-".to_owned(),
            // A reference has a part of what its arm has.
            (false, _) => String::new(),
        };
        let name = &arms.levels[arm];
        let name = if stated { format!("{}. {name}", arm + 1) } else { name.clone() };
        std::iter::once(name)
            .chain(components.iter().map(mark))
            .chain([study.tests(arm).unwrap_or_default().to_owned()])
            .collect()
    };
    let rows = all.iter().map(row).collect();
    Some(Grid { title: "arms".to_owned(), header, rows })
}

/// What became of the requests of each class: offered, admitted, completed and in time, together.
fn by_class(study: &Study, findings: &Findings) -> Option<Grid> {
    let classes: Vec<SloClass> = SloClass::ALL
        .into_iter()
        .filter(|class| {
            let reports = findings.rows.iter().flatten().map(|row| &row.report);
            reports.flat_map(|report| &report.classes).any(|(other, _)| other == class)
        })
        .collect();
    if study.factors.is_empty() {
        return None;
    }
    let names = ["offered", "admitted", "completed", "goodput_per_sec", "slo_attainment"];
    let header = [study.factors.join(", "), "class".to_owned()]
        .into_iter()
        .chain(names.map(|name| name.replace("_per_sec", ", /s").replace('_', " ")))
        .collect();
    let mut rows = Vec::new();
    for (number, cell) in study.cells.iter().enumerate() {
        for class in &classes {
            let value = |name: &str| {
                let metric = Metric::parse(&format!("{}.{name}", class.name()));
                let metric = metric.expect("every class has these numbers");
                entry(&metric, findings.mean(number, &metric).map(|(mean, _)| (mean, None)))
            };
            let labels = [cell.levels.join(", "), class.name().to_owned()];
            rows.push(labels.into_iter().chain(names.map(value)).collect());
        }
    }
    Some(Grid { title: BY_CLASS.to_owned(), header, rows })
}

/// The levels of the last factor.
fn columns(study: &Study) -> Vec<String> {
    let others = study.factors.len().saturating_sub(1);
    let first = &study.cells[0].levels;
    let same = |cell: &&study::Cell| cell.levels[..others] == first[..others];
    let level = |cell: &study::Cell| cell.levels.get(others).cloned().unwrap_or_default();
    study.cells.iter().take_while(same).map(level).collect()
}

/// The name of a number and its unit.
pub(crate) fn heading(metric: &Metric) -> String {
    titled(metric.name(), metric.unit())
}

/// `name` with its unit, if it has one.
pub(crate) fn titled(name: String, unit: &str) -> String {
    if unit.is_empty() { name } else { format!("{name}, {unit}") }
}

/// A mean with its half-width, short enough for a table.
pub(crate) fn entry(metric: &Metric, mean: Option<(f64, Option<f64>)>) -> String {
    let share = metric.name().ends_with("rate") || metric.name().ends_with("attainment");
    // Several columns of means and intervals have to fit a line.
    let show = |value: f64| match value {
        value if share => percent(Some(value)),
        value if value >= 99.95 => grouped(count(value)),
        value => plain(Some(value)),
    };
    match mean {
        None => "-".to_owned(),
        // Counts that no seed has need no interval.
        Some((mean, Some(half_width))) if mean != 0.0 || half_width != 0.0 => {
            let half_width = show(half_width);
            format!("{} ±{half_width}", show(mean).trim_end_matches(" %"))
        }
        Some((mean, _)) => show(mean),
    }
}
