//! Points: what all seeds together say at one rung.

use super::climb::{is_short, is_stable};
use super::{Judged, Point, Slo, Standing};
use crate::metric::Metric;
use crate::verdict::{Evidence, seen};
use blis_core::math::float;
use blis_scenario::row::Row;

/// The rows of one rung, as evidence.
struct Rows<'a>(&'a [&'a Row]);

impl Evidence for Rows<'_> {
    fn value(&self, _: usize, seed: usize, metric: &Metric) -> Option<f64> {
        metric.of_run(self.0[seed])
    }
}

/// Judges the runs at `value`, one a seed, at this two-sided level. Where they are as long as they
/// should be, `fixed`, none is too short.
pub(super) fn judge(value: f64, slo: &[Slo], rows: &[&Row], level: f64, fixed: bool) -> Point {
    let evidence = Rows(rows);
    // That all hold is wrong only if each of them is. That one fails is wrong if any is.
    let shared = level / float(slo.len().max(1) as u64);
    let one = |slo: &Slo| {
        let (holds, effect) = seen(&slo.comparison, &evidence, rows.len(), level);
        let fails = seen(&slo.comparison, &evidence, rows.len(), shared).0 == Some(false);
        let holds = if fails { Some(false) } else { holds.filter(|holds| *holds) };
        Judged { holds, effect }
    };
    let judged: Vec<Judged> = slo.iter().map(one).collect();
    let unstable = rows.iter().filter(|row| !is_stable(row)).count();
    let short = rows.iter().filter(|row| !fixed && is_short(row)).count();
    let offered: u64 = rows.iter().map(|row| row.report.cluster.offered).sum();
    let completed: u64 = rows.iter().map(|row| row.report.cluster.completed).sum();
    let all = judged.iter().all(|one| one.holds == Some(true) && one.effect.missing == 0);
    let standing = if 2 * unstable > rows.len() {
        Standing::Saturated
    } else if judged.iter().any(|one| one.holds == Some(false)) {
        Standing::Misses
    } else if !all || unstable > 0 {
        Standing::Unclear
    } else if short > rows.len() / 4 {
        Standing::TooShort
    } else {
        Standing::Meets
    };
    Point {
        value,
        slo: judged,
        runs: rows.len(),
        unstable,
        short,
        completed: (offered > 0).then(|| float(completed) / float(offered)),
        standing,
    }
}
