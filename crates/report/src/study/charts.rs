//! The charts of a study.

use super::answer;
use crate::chart::{Axis, Chart, Form, Mark, Point, Scale};
use crate::text::heading;
use blis_core::SloClass;
use blis_core::math::float;
use blis_lab::Metric;
use blis_lab::study::{Answer, Cell, Findings, Study};
use blis_metrics::{Curves, SplitMs, SplitStats};
use blis_scenario::Row;

/// All distributions together have about so many points, or a page gets too large.
const MOST_POINTS: usize = 8_000;

/// How to read a distribution.
const OF_CURVES: &str = "The share of requests that had their first token within a time; each \
                         percentile is the mean over seeds.";

/// The number `metric` in each cell. Along a swept field it has a line for each arm and a panel for
/// each workload; without one, a row for each arm and a colour for each workload.
pub fn chart(study: &Study, findings: &Findings, metric: &Metric) -> Option<Chart> {
    let design = &study.design;
    let (arm, workload) = (design.factor("arm"), design.factor("workload"));
    let is_swept = |factor: &usize| ![workload, arm].contains(&Some(*factor));
    let swept: Vec<usize> = (0..design.factors.len()).filter(is_swept).collect();
    let levels = |cell: &Cell, factors: &[usize]| {
        factors.iter().map(|&one| cell.levels[one].clone()).collect::<Vec<_>>().join(", ")
    };
    let point = |(number, cell): (usize, &Cell)| {
        let (mean, interval) = findings.mean(number, metric)?;
        let point = |at: String| match interval {
            Some((low, high)) => Point::named(at, mean).between(low, high),
            None => Point::named(at, mean),
        };
        let Some((&along, others)) = swept.split_last() else {
            let at = levels(cell, arm.or(workload).as_slice());
            let series = levels(cell, arm.and(workload).as_slice());
            return Some(point(at).of(series));
        };
        let apart: Vec<usize> = arm.into_iter().chain(others.iter().copied()).collect();
        let place = levels(cell, workload.as_slice());
        let point = point(levels(cell, &[along]));
        // Without arms there is room for the workloads in one panel.
        Some(if apart.is_empty() {
            point.of(place)
        } else {
            point.of(levels(cell, &apart)).on(place)
        })
    };
    let points = study.cells.iter().enumerate().filter_map(point).collect();
    let along = swept.last().map(|&along| study.factors[along].clone());
    let form = if along.is_some() { Form::Lines } else { Form::Rows };
    let axes = [
        Axis::new(along.unwrap_or_default(), Scale::Names),
        Axis::new(heading(metric), Scale::Fit),
    ];
    Chart::new(heading(metric), form, axes, points)
}

/// How far each arm is from the best one, the safest first: a field for each workload.
pub(super) fn distances(study: &Study, found: &Answer) -> Option<Chart> {
    let cases = answer::cases(study, found);
    if cases.len() < 2 {
        return None;
    }
    let mut points = Vec::new();
    for regret in &found.regrets {
        for (case, places) in &cases {
            let Some(lost) = found.worst(regret.arm, places.iter().copied()) else { continue };
            let (value, label) = match lost.times {
                _ if !lost.overloaded.is_empty() => (None, "overloaded"),
                Some((times, _)) => (Some(times.mean), ""),
                None if !lost.unsettled.is_empty() => (None, "not settled"),
                None => (None, "-"),
            };
            let point = Point::named(answer::arm(study, regret.arm), 0.0).of(case).labelled(label);
            points.push(Point { value, ..point });
        }
    }
    let title = format!("{} of each arm as a multiple of the best one's", found.metric.name());
    let axes = [Axis::new("arm", Scale::Names), Axis::new("1 is the best", Scale::Fit)];
    let several = cases.iter().any(|(_, places)| places.len() > 1);
    let worst = if several { "Each field is the worst of its cases. " } else { "" };
    let note = format!(
        "{worst}Overloaded: this arm does not keep up, and another does. Arms whose runs are too \
         short to tell count with what they show."
    );
    Some(Chart::new(title, Form::Grid, axes, points)?.noted(&note))
}

/// What a cell is called in charts that tell arms apart: its arm, and everything else.
fn placed(study: &Study, cell: &Cell) -> (String, String) {
    let factors = study.factors.iter().zip(&cell.levels);
    let own = study.factors.iter().position(|name| name == "arm").unwrap_or(0);
    let name = cell.levels.get(own).cloned().unwrap_or_else(|| "all".to_owned());
    let others = factors.enumerate().filter(|(index, _)| *index != own);
    let said = |(_, (factor, level)): (usize, (&String, &String))| match factor.as_str() {
        "arm" | "workload" => level.clone(),
        // Of a swept field, the last step of its path says which.
        path => format!("{} {level}", path.rsplit('.').next().unwrap_or(path)),
    };
    (name, others.map(said).collect::<Vec<_>>().join(", "))
}

/// The distributions of the time to first token: of all requests, and of each class.
pub(super) fn distributions(study: &Study, findings: &Findings) -> Vec<Chart> {
    let curves_of = |row: &Row| groups().filter(|class| curves(row, *class).is_some()).count();
    let all: usize = findings.rows.iter().filter_map(|rows| rows.first().map(curves_of)).sum();
    let step = (101 * all).div_ceil(MOST_POINTS).max(1);
    let is_shown = move |percent: &usize| percent.is_multiple_of(step) || *percent >= 99;
    let of_class = |class: Option<SloClass>| {
        let points = study.cells.iter().zip(&findings.rows).flat_map(|(cell, rows)| {
            let (name, panel) = placed(study, cell);
            let curves: Vec<&Vec<f64>> = rows
                .iter()
                .filter_map(|row| curves(row, class))
                .map(|curves| &curves.ttft_ms)
                .filter(|curve| curve.len() == 101)
                .collect();
            let point = move |percent: usize| {
                let at = mean(curves.iter().map(|curve| curve[percent]))?;
                Some(Point::at(at, float(percent as u64) / 100.0).marked(Mark::None))
            };
            let points = (0..=100).filter(is_shown).filter_map(point);
            points.map(|point| point.of(&name).on(&panel)).collect::<Vec<_>>()
        });
        let axes = [Axis::new("TTFT, ms", Scale::Fit), Axis::new("share", Scale::Zero)];
        let title = format!("TTFT distribution, {}", title(class));
        Chart::new(title, Form::Lines, axes, points.collect()).map(|chart| chart.noted(OF_CURVES))
    };
    groups().filter_map(of_class).collect()
}

/// The parts of the time to first token, on average and at its 99th percentile.
pub(super) fn breakdowns(study: &Study, findings: &Findings) -> Vec<Chart> {
    let several = findings.rows.iter().flatten().any(|row| row.report.classes.len() > 1);
    let one = |class: Option<SloClass>, name: &str, of: fn(&SplitStats) -> &SplitMs| {
        let points = study.cells.iter().zip(&findings.rows).flat_map(|(cell, rows)| {
            let (at, panel) = placed(study, cell);
            let splits = rows.iter().filter_map(|row| split(row, class));
            let splits: Vec<_> = splits.map(|split| of(split).parts()).collect();
            let names = SplitMs::default().parts().map(|(part, _)| part);
            let part = |(index, part): (usize, &str)| {
                let value = mean(splits.iter().map(|all| all[index].1))?;
                Some(Point::named(&at, value).of(part).on(&panel))
            };
            names.into_iter().enumerate().filter_map(part).collect::<Vec<_>>()
        });
        let axes = [Axis::new("", Scale::Names), Axis::new("ms", Scale::Zero)];
        let title = format!("TTFT breakdown, {}, {name}", title(class));
        Chart::new(title, Form::Bars, axes, points.collect())
    };
    let both =
        |class| [one(class, "mean", |split| &split.mean), one(class, "p99", |split| &split.p99)];
    groups().filter(|class| class.is_none() || several).flat_map(both).flatten().collect()
}

/// All requests, then each class.
fn groups() -> impl Iterator<Item = Option<SloClass>> {
    std::iter::once(None).chain(SloClass::ALL.map(Some))
}

fn title(class: Option<SloClass>) -> &'static str {
    class.map_or("all requests", SloClass::name)
}

fn curves(row: &Row, class: Option<SloClass>) -> Option<&Curves> {
    let curves = row.report.curves.as_ref()?;
    match class {
        None => Some(&curves.cluster),
        Some(class) => curves.classes.iter().find(|(one, _)| *one == class).map(|(_, found)| found),
    }
}

fn split(row: &Row, class: Option<SloClass>) -> Option<&SplitStats> {
    let all = &row.report.decomposition;
    match class {
        None => all.cluster.as_ref(),
        Some(class) => all.classes.iter().find(|(one, _)| *one == class).map(|(_, found)| found),
    }
}

/// The mean of `values`; `None` if there is none.
pub(super) fn mean(values: impl Iterator<Item = f64>) -> Option<f64> {
    let (sum, count) = values.fold((0.0, 0), |(sum, count), value| (sum + value, count + 1));
    (count > 0).then(|| sum / float(count))
}
