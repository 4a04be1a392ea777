//! What the runs of a study gave.

use super::Study;
use super::lengths::{Lengths, are_too_short, load};
use crate::interval::Interval;
use crate::metric::Metric;
use crate::stats::{Estimate, estimate};
use crate::verdict::{Doubt, Evidence, Verdict};
use blis_core::math::ln;
use blis_metrics::Saturation;
use blis_scenario::row::Row;

/// What the runs of a study gave.
#[derive(Clone, Debug, Default)]
pub struct Findings {
    /// For each cell, the row of each seed.
    pub rows: Vec<Vec<Row>>,
    /// How long runs were, and what was left out of them.
    pub lengths: Lengths,
    /// What they say about the hypotheses, in the order of the study.
    pub verdicts: Vec<Verdict>,
    /// For each cell, the capacity of each seed, if the study asks for it.
    pub capacities: Capacities,
}

/// Capacities by cell and seed; empty if nobody asks.
pub type Capacities = Vec<Vec<Option<f64>>>;

/// How a number of one cell compares with that of another, seed by seed.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Paired {
    /// The first less the second.
    pub difference: Estimate,
    /// The first over the second, as a geometric mean; absent if a value is not positive.
    pub ratio: Option<Estimate>,
}

impl Findings {
    /// How many seeds there are in the cell that has most.
    pub fn seeds(&self) -> usize {
        self.rows.iter().map(Vec::len).max().unwrap_or(0)
    }

    /// The values of `metric` in cell number `cell`, one a seed; without those that have no sample.
    pub fn values(&self, cell: usize, metric: &Metric) -> Vec<f64> {
        self.values_of(cell, metric, self.rows[cell].len())
    }

    fn values_of(&self, cell: usize, metric: &Metric, seeds: usize) -> Vec<f64> {
        (0..seeds).filter_map(|seed| self.value(cell, seed, metric)).collect()
    }

    /// The value of `metric` in the run of `cell` with seed number `seed`.
    pub fn value(&self, cell: usize, seed: usize, metric: &Metric) -> Option<f64> {
        if metric.is_searched() {
            return self.capacities.get(cell)?.get(seed).copied().flatten();
        }
        metric.of_run(&self.rows[cell][seed])
    }

    /// Whether no run of `cell` has a request that counts: all of them arrive in the warm-up.
    pub fn is_empty(&self, cell: usize) -> bool {
        self.rows[cell].iter().all(|row| row.report.cluster.offered == 0)
    }

    /// Their mean, with its interval if there are several; `None` if there is no sample.
    pub fn mean(&self, cell: usize, metric: &Metric) -> Option<Mean> {
        self.mean_of(cell, metric, self.rows[cell].len())
    }

    /// The same of the first `seeds` seeds.
    pub(super) fn mean_of(&self, cell: usize, metric: &Metric, seeds: usize) -> Option<Mean> {
        mean(&self.values_of(cell, metric, seeds), metric)
    }

    /// How `metric` of `cell` compares with that of `other`, with intervals that leave out the
    /// truth with probability `level`; `None` for fewer than two seeds with both.
    pub fn paired(&self, cell: usize, other: usize, metric: &Metric, level: f64) -> Option<Paired> {
        let seeds = self.rows[cell].len().min(self.rows[other].len());
        self.paired_of([cell, other], metric, seeds, level)
    }

    /// The same of two cells in the first `seeds` seeds.
    pub(super) fn paired_of(
        &self,
        [cell, other]: [usize; 2],
        metric: &Metric,
        seeds: usize,
        level: f64,
    ) -> Option<Paired> {
        let both = |seed| Some((self.value(cell, seed, metric)?, self.value(other, seed, metric)?));
        Paired::of(&(0..seeds).filter_map(both).collect::<Vec<_>>(), level)
    }
}

/// A mean over seeds, with the ends of its interval if there are several.
pub type Mean = (f64, Option<(f64, f64)>);

/// The mean of `values` of `metric`; `None` if there is none.
pub(crate) fn mean(values: &[f64], metric: &Metric) -> Option<Mean> {
    match Interval::of(values, metric.is_ratio()) {
        Some(Interval { mean, low, high }) => Some((mean, Some((low, high)))),
        None => values.first().map(|&value| (value, None)),
    }
}

impl Paired {
    /// How the first of each of `pairs` compares with the second.
    pub(crate) fn of(pairs: &[(f64, f64)], level: f64) -> Option<Paired> {
        let differences: Vec<f64> = pairs.iter().map(|(value, other)| value - other).collect();
        let positive = pairs.iter().all(|&(value, other)| value > 0.0 && other > 0.0);
        let logs: Vec<f64> = pairs.iter().map(|(value, other)| ln(value / other)).collect();
        let ratio = estimate(&logs, level).filter(|_| positive).map(Estimate::exp);
        Some(Paired { difference: estimate(&differences, level)?, ratio })
    }
}

impl Study {
    /// Whether the cluster kept up; `-` if nobody knows.
    pub fn load(&self, found: &Findings, cell: usize) -> &'static str {
        self.load_in(&found.rows[cell], cell).map_or("-", Saturation::name)
    }

    /// What was found so far, as evidence.
    pub(super) fn evidence<'a>(&'a self, found: &'a Findings) -> Found<'a> {
        Found { study: self, found }
    }
}

/// The findings of a study, as evidence.
pub(super) struct Found<'a> {
    study: &'a Study,
    found: &'a Findings,
}

impl Evidence for Found<'_> {
    fn value(&self, cell: usize, seed: usize, metric: &Metric) -> Option<f64> {
        self.found.value(cell, seed, metric)
    }

    /// Only of requests that come at a steady rate: other scenarios are what they are. Whether runs
    /// are too short is told by the seeds that decided how long they are.
    fn doubt(&self, cell: usize, seeds: usize) -> Doubt {
        let Found { study, found } = self;
        let rows = &found.rows[cell][..seeds];
        let asked = study.cells[cell].plan.steady_requests().is_some();
        let first = &rows[..seeds.min(study.seeds)];
        Doubt {
            overloaded: asked && load(rows) == Some(Saturation::Overloaded),
            too_short: asked && study.wants_steady() && are_too_short(first),
        }
    }
}
