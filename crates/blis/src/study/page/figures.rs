//! The figures of a study's page: which there are, and the data of each.

use super::compared;
use crate::page::{Figure, digits};
use crate::study::charts::quoted;
use crate::study::grids::heading;
use blis_core::SloClass;
use blis_core::math::float;
use blis_lab::Metric;
use blis_lab::study::{Findings, Study};
use blis_lab::verdict::{Effect, Verdict};
use blis_metrics::{Curves, SplitMs, SplitStats};
use blis_scenario::Row;

/// How the cells of a study are spread over a figure.
struct Layout {
    /// The factor whose levels have a colour or a row each.
    names: Option<usize>,
    /// The factor along the horizontal axis.
    swept: Option<usize>,
    /// The others: each combination of their levels is a panel.
    panels: Vec<usize>,
}

impl Layout {
    /// `sweeps` tells whether there is an axis for a swept field.
    fn of(study: &Study, sweeps: bool) -> Layout {
        let factors = study.factors.len();
        let arm = study.factors.iter().position(|name| name == "arm");
        let names = arm.or((factors > 0).then_some(0));
        let is_swept = |&last: &usize| Some(last) != names && study.factors[last] != "workload";
        let swept = factors.checked_sub(1).filter(is_swept).filter(|_| sweeps);
        let panels = (0..factors).filter(|&one| Some(one) != names && Some(one) != swept);
        Layout { names, swept, panels: panels.collect() }
    }

    fn about(&self, study: &Study, unit: &str) -> Vec<(&'static str, String)> {
        let panels = self.panels.iter().map(|&one| study.factors[one].clone());
        let panels: serde_json::Value = panels.collect();
        let mut about = vec![("unit", unit.to_owned()), ("panels", panels.to_string())];
        about.extend(self.names.map(|one| ("names", study.factors[one].clone())));
        about.extend(self.swept.map(|one| ("swept", study.factors[one].clone())));
        about
    }
}

/// A CSV with the factors of each cell before what `fields` says of it; cells without are left out.
fn by_cell(
    study: &Study,
    columns: impl IntoIterator<Item = String>,
    fields: impl Fn(usize) -> Option<Vec<String>>,
) -> Option<String> {
    let line = |factors: &[String], rest: Vec<String>| {
        let factors = factors.iter().map(|factor| quoted(factor));
        factors.chain(rest).collect::<Vec<_>>().join(",") + "\n"
    };
    let row = |(number, cell): (usize, &blis_lab::study::Cell)| {
        fields(number).map(|fields| line(&cell.levels, fields))
    };
    let rows: String = study.cells.iter().enumerate().filter_map(row).collect();
    (!rows.is_empty()).then(|| line(&study.factors, columns.into_iter().collect()) + &rows)
}

/// Each number that the study looks at, with intervals.
pub(super) fn numbers(study: &Study, findings: &Findings) -> Vec<Figure> {
    let layout = Layout::of(study, true);
    let one = |metric: &Metric| {
        let columns = ["mean", "low", "high"].map(str::to_owned);
        let csv = by_cell(study, columns, |cell| {
            let (mean, half_width) = findings.mean(cell, metric)?;
            let half_width = half_width.unwrap_or(0.0);
            Some([mean, mean - half_width, mean + half_width].map(digits).to_vec())
        })?;
        Some(Figure {
            kind: if layout.swept.is_some() { "sweep" } else { "interval" },
            title: heading(metric),
            file: metric.name(),
            csv,
            about: layout.about(study, &heading(metric)),
            wide: !layout.panels.is_empty(),
        })
    };
    study.metrics.iter().filter_map(one).collect()
}

/// The distributions of the time to first token: of all requests, and of each class.
pub(super) fn distributions(study: &Study, findings: &Findings) -> Vec<Figure> {
    let layout = Layout::of(study, false);
    let one = |class: Option<SloClass>| {
        let columns = (0..=100).map(|percent| format!("p{percent}"));
        let csv = by_cell(study, columns, |cell| {
            let curves: Vec<&Vec<f64>> = findings.rows[cell]
                .iter()
                .filter_map(|row| curves(row, class))
                .map(|curves| &curves.ttft_ms)
                .filter(|curve| curve.len() == 101)
                .collect();
            let mean = |percent: usize| mean(curves.iter().map(|curve| curve[percent]));
            (0..=100).map(|percent| mean(percent).map(digits)).collect()
        })?;
        Some(Figure {
            kind: "cdf",
            title: title(class).to_owned(),
            file: format!("ttft {}", title(class)),
            csv,
            about: layout.about(study, "time to first token, ms"),
            wide: !layout.panels.is_empty(),
        })
    };
    groups().filter_map(one).collect()
}

/// The parts of the time to first token, on average and at its 99th percentile.
pub(super) fn parts(study: &Study, findings: &Findings) -> Vec<Figure> {
    let layout = Layout::of(study, false);
    let several = findings.rows.iter().flatten().any(|row| row.report.classes.len() > 1);
    let one = |class: Option<SloClass>, name: &str, of: fn(&SplitStats) -> &SplitMs| {
        let columns = SplitMs::default().parts().map(|(part, _)| part.to_owned());
        let csv = by_cell(study, columns, |cell| {
            let splits: Vec<_> = findings.rows[cell]
                .iter()
                .filter_map(|row| split(row, class))
                .map(|split| of(split).parts())
                .collect();
            (0..6).map(|part| mean(splits.iter().map(|all| all[part].1)).map(digits)).collect()
        })?;
        Some(Figure {
            kind: "parts",
            title: format!("{}, {name}", title(class)),
            file: format!("parts {} {name}", title(class)),
            csv,
            about: layout.about(study, "ms"),
            wide: !layout.panels.is_empty(),
        })
    };
    let both =
        |class| [one(class, "mean", |split| &split.mean), one(class, "p99", |split| &split.p99)];
    groups().filter(|class| class.is_none() || several).flat_map(both).flatten().collect()
}

/// The effects of a verdict: a figure for each scale and unit, as these have no common axis.
pub(super) fn effects(name: &str, verdict: &Verdict) -> Vec<Figure> {
    let mut kinds: Vec<(&str, &str)> = Vec::new();
    for effect in verdict.effects.iter().filter(|effect| effect.estimate.is_some()) {
        if !kinds.contains(&(effect.scale.name(), effect.unit)) {
            kinds.push((effect.scale.name(), effect.unit));
        }
    }
    let figure = |(scale, unit): (&str, &str)| {
        let same = |effect: &&Effect| (effect.scale.name(), effect.unit) == (scale, unit);
        let rows: String = verdict.effects.iter().filter(same).map(effect_row).collect();
        let unit = if unit.is_empty() { scale.to_owned() } else { format!("{scale}, {unit}") };
        Figure {
            kind: "effect",
            title: "effect and what was asked".to_owned(),
            file: format!("effect {name} {scale}"),
            csv: format!("effect,mean,low,high,at_least,at_most\n{rows}"),
            about: vec![("unit", unit), ("scale", scale.to_owned())],
            wide: false,
        }
    };
    kinds.into_iter().map(figure).collect()
}

fn effect_row(effect: &Effect) -> String {
    let number = |value: Option<f64>| value.map(digits).unwrap_or_default();
    let found = effect.estimate;
    let fields = [
        quoted(&compared(effect)),
        number(found.map(|found| found.mean)),
        number(found.map(|found| found.low)),
        number(found.map(|found| found.high)),
        number(effect.at_least),
        number(effect.at_most),
    ];
    fields.join(",") + "\n"
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

fn mean(values: impl Iterator<Item = f64>) -> Option<f64> {
    let (sum, count) = values.fold((0.0, 0), |(sum, count), value| (sum + value, count + 1));
    (count > 0).then(|| sum / float(count))
}
