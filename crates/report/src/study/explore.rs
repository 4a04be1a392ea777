//! What the explorer of a page works on: every metric of every class, in every run.

use super::charts::mean;
use crate::text::{concat, is_share};
use blis_core::SloClass;
use blis_core::math::{count, float, ln};
use blis_lab::study::{Findings, Study};
use blis_lab::{Interval, Metric};
use blis_metrics::{OverTime, metric};
use blis_scenario::Row;
use serde_json::{Value, json};

/// Values are logarithms, in steps from the least to the greatest: three digits of 64 each.
const DIGITS: &str = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz-_";
/// The first two numbers of three digits mean that there is no value, and that it is 0.
const STEPS: u64 = 64 * 64 * 64 - 3;

/// The metrics of the study, those of each class, then all others, the less asked for the later.
/// Those that are 0 or absent everywhere are left out. `Null` if there is nothing to choose from.
pub(super) fn data(study: &Study, findings: &Findings) -> Value {
    if study.factors.is_empty() {
        return Value::Null;
    }
    let table = metric::all().filter_map(|one| Metric::parse(one.name).ok());
    let of_classes = |metric: &Metric| SloClass::ALL.map(|class| metric.of_class(class));
    let mut all: Vec<Metric> = study.metrics.clone();
    let asked = study.metrics.iter().flat_map(of_classes).flatten();
    let others: Vec<Metric> = table.collect();
    let classes = others.iter().flat_map(of_classes).flatten();
    for metric in asked.chain(others.iter().copied()).chain(classes) {
        if !all.contains(&metric) {
            all.push(metric);
        }
    }
    let seeds = findings.seeds();
    let metric = |(place, metric): (usize, &Metric)| {
        let value = |run: usize| {
            let (cell, seed) = (run / seeds, run % seeds);
            findings.rows[cell].get(seed).and_then(|_| findings.value(cell, seed, metric))
        };
        let runs: Vec<Option<f64>> = (0..seeds * study.cells.len()).map(value).collect();
        let mut told = json!({
            "name": metric.name(),
            "unit": metric.unit(),
            "about": metric.about(),
            "asked": place < study.metrics.len(),
            "ratio": metric.is_ratio(),
            "share": is_share(metric),
            "less": metric.less_is_better(),
        });
        told.as_object_mut()?.append(packed(&runs)?.as_object_mut()?);
        Some(told)
    };
    let cells = 0..study.cells.len();
    json!({
        "factors": study.factors,
        "levels": study.design.factors.iter().map(|one| &one.levels).collect::<Vec<_>>(),
        "classes": SloClass::ALL.map(SloClass::name),
        "load": cells.map(|cell| study.load(findings, cell)).collect::<Vec<_>>(),
        "seeds": seeds,
        "student": (2..=seeds).map(student).collect::<Vec<_>>(),
        "digits": DIGITS,
        "metrics": all.iter().enumerate().filter_map(metric).collect::<Vec<_>>(),
        "over_time": over_time(findings),
    })
}

/// What each cell was like in the course of its runs, as means over seeds. `Null` if nobody knows.
fn over_time(findings: &Findings) -> Value {
    const SERIES: [(&str, Pick); 3] = [
        ("TTFT mean, ms", |one, part| *one.ttft_ms.get(part)?),
        ("requests waiting", |one, part| one.waiting.get(part).copied()),
        ("requests running", |one, part| one.running.get(part).copied()),
    ];
    let runs = |rows: &Vec<Row>| {
        let curves = rows.iter().filter_map(|row| row.report.curves.as_ref()?.over_time.clone());
        curves.collect::<Vec<OverTime>>()
    };
    let cells: Vec<Vec<OverTime>> = findings.rows.iter().map(runs).collect();
    if cells.iter().any(Vec::is_empty) {
        return Value::Null;
    }
    let series = |(name, pick): (&str, Pick)| {
        let part = |place: usize| {
            let (runs, part) = (&cells[place / OverTime::PARTS], place % OverTime::PARTS);
            mean(runs.iter().filter_map(|one| pick(one, part)))
        };
        let parts: Vec<Option<f64>> = (0..cells.len() * OverTime::PARTS).map(part).collect();
        let mut series = packed(&parts)?;
        series["name"] = name.into();
        Some(series)
    };
    let seconds = |runs: &Vec<OverTime>| mean(runs.iter().map(|one| one.seconds));
    json!({
        "parts": OverTime::PARTS,
        "seconds": cells.iter().map(seconds).collect::<Vec<_>>(),
        "series": SERIES.into_iter().filter_map(series).collect::<Vec<_>>(),
    })
}

/// A number of a part of a run.
type Pick = fn(&OverTime, usize) -> Option<f64>;

/// Values as text, and how to read it; `None` if none is above 0.
fn packed(values: &[Option<f64>]) -> Option<Value> {
    let above = || values.iter().flatten().copied().filter(|&value| value > 0.0);
    let least = above().reduce(f64::min)?;
    let step = ln(above().fold(least, f64::max) / least) / float(STEPS);
    let values = concat(values, |value| written(*value, least, step));
    Some(json!({"least": ln(least), "step": step, "values": values}))
}

/// A value as three digits.
fn written(value: Option<f64>, least: f64, step: f64) -> String {
    let code = match value {
        None => 0,
        Some(value) if value <= least => u64::from(value > 0.0) + 1,
        Some(value) => 2 + count((ln(value / least) / step).round()),
    };
    let digit =
        |place: u64| char::from(DIGITS.as_bytes()[usize::try_from(code / place % 64).unwrap_or(0)]);
    [64 * 64, 64, 1].map(digit).iter().collect()
}

/// How many standard errors wide half the interval of a mean over so many seeds is.
fn student(seeds: usize) -> f64 {
    let count = float(seeds as u64);
    let far = (count * (count - 1.0) / 2.0).sqrt();
    // Values whose mean is 0 and whose standard error is 1.
    let values: Vec<f64> = [far, -far].into_iter().chain(vec![0.0; seeds - 2]).collect();
    Interval::of(&values, false).map_or(0.0, |interval| interval.high)
}

#[cfg(test)]
mod tests {
    use super::*;
    use blis_core::math::exp;

    #[test]
    fn intervals_are_as_wide_as_students() {
        for (seeds, expected) in [(2, 12.706), (5, 2.776), (40, 2.023)] {
            assert!((student(seeds) - expected).abs() < 5e-4, "{seeds}: {}", student(seeds));
        }
    }

    #[test]
    fn three_digits_say_a_value_to_four_digits_of_its_own() {
        let (least, most) = (0.2, 4e5);
        let step = ln(most / least) / float(STEPS);
        for value in [least, 0.333, 300.0, 123_456.7, most] {
            let digits = written(Some(value), least, step);
            let digit = |letter| DIGITS.find(letter).expect("a digit");
            let code = digits.chars().fold(0, |code, letter| 64 * code + digit(letter) as u64);
            let read = least * exp(float(code - 2) * step);
            assert!(digits.len() == 3 && (read / value - 1.0).abs() < 5e-5, "{value}: {read}");
        }
        assert_eq!([None, Some(0.0)].map(|value| written(value, least, step)), ["000", "001"]);
    }
}
