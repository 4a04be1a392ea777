//! What the runs of a study gave.

use crate::interval::Interval;
use crate::metric::Metric;
use crate::row::Row;
use crate::stats::{Estimate, estimate};
use crate::verdict::{Doubt, Evidence, Verdict};
use blis_core::math::{exp, ln};
use blis_metrics::Saturation;

/// What the runs of a study gave.
#[derive(Clone, Debug)]
pub struct Findings {
    /// For each cell, the row of each seed.
    pub rows: Vec<Vec<Row>>,
    /// How much of each run was left out, in s, if the study says so.
    pub warmup: Option<f64>,
    /// What they say about the hypotheses, in the order of the study.
    pub verdicts: Vec<Verdict>,
}

/// How a number of one cell compares with that of another, seed by seed.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Paired {
    /// The first less the second.
    pub difference: Estimate,
    /// The first over the second, as a geometric mean; absent if a value is not positive.
    pub ratio: Option<Estimate>,
}

impl Findings {
    /// How many seeds there are.
    pub fn seeds(&self) -> usize {
        self.rows.first().map_or(0, Vec::len)
    }

    /// The values of `metric` in cell number `cell`, one a seed; without those that have no sample.
    pub fn values(&self, cell: usize, metric: &Metric) -> Vec<f64> {
        self.rows[cell].iter().filter_map(|row| metric.of(&row.report)).collect()
    }

    /// Their mean, with its interval if there are several; `None` if there is no sample.
    pub fn mean(&self, cell: usize, metric: &Metric) -> Option<(f64, Option<f64>)> {
        let values = self.values(cell, metric);
        match Interval::of(&values) {
            Some(interval) => Some((interval.mean, Some(interval.half_width))),
            None => values.first().map(|&value| (value, None)),
        }
    }

    /// How `metric` of `cell` compares with that of `other`, with intervals that leave out the
    /// truth with probability `level`; `None` for fewer than two seeds with both.
    pub fn paired(&self, cell: usize, other: usize, metric: &Metric, level: f64) -> Option<Paired> {
        let both =
            |(row, other): (&Row, &Row)| Some((metric.of(&row.report)?, metric.of(&other.report)?));
        let pairs: Vec<(f64, f64)> =
            self.rows[cell].iter().zip(&self.rows[other]).filter_map(both).collect();
        let differences: Vec<f64> = pairs.iter().map(|(value, other)| value - other).collect();
        let positive = pairs.iter().all(|&(value, other)| value > 0.0 && other > 0.0);
        let logs: Vec<f64> = pairs.iter().map(|(value, other)| ln(value / other)).collect();
        let ratio = estimate(&logs, level).filter(|_| positive).map(|found| Estimate {
            mean: exp(found.mean),
            low: exp(found.low),
            high: exp(found.high),
            ..found
        });
        Some(Paired { difference: estimate(&differences, level)?, ratio })
    }

    /// `rows` as evidence.
    pub(super) fn of(rows: &[Vec<Row>]) -> Rows<'_> {
        Rows { rows }
    }
}

/// Rows by cell and seed, as evidence.
pub(super) struct Rows<'a> {
    rows: &'a [Vec<Row>],
}

impl Evidence for Rows<'_> {
    fn value(&self, cell: usize, seed: usize, metric: &Metric) -> Option<f64> {
        metric.of(&self.rows[cell][seed].report)
    }

    fn doubt(&self, cell: usize, seed: usize) -> Doubt {
        let report = &self.rows[cell][seed].report;
        Doubt {
            overloaded: report.saturation == Some(Saturation::Overloaded),
            too_short: report.steady.is_too_short(),
        }
    }
}
