//! Studies: a question, arms that differ in what is asked about, and the runs that answer it.
//!
//! A study file has a base scenario, arms (patches on it), optionally workloads (patches too) and
//! values to sweep; every combination is a *cell*, and every cell is run with every seed. All cells
//! are sent the same requests for the same seed, as far as they have the same workload. Everything
//! is checked before anything runs.

pub(crate) mod design;
mod file;

pub use design::{Design, Factor};
pub use file::read;

use crate::interval::Interval;
use crate::metric::Metric;
use crate::row::Row;
use crate::run::RunFailure;
use crate::scenario::Plan;
use crate::trial::{Runner, Watch};

/// A study, checked and ready to run.
#[derive(Clone, Debug)]
pub struct Study {
    /// What it asks.
    pub question: String,
    /// The fields that differ between its cells, in the order of the file.
    pub factors: Vec<String>,
    /// Its cells, in the order of the file.
    pub cells: Vec<Cell>,
    /// The seeds that each cell is run with.
    pub seeds: Vec<u64>,
    /// What to look at.
    pub metrics: Vec<Metric>,
}

/// One combination of arm, workload and swept values.
#[derive(Clone, Debug)]
pub struct Cell {
    /// The level of each of the study's factors.
    pub levels: Vec<String>,
    /// The scenario.
    pub plan: Plan,
}

/// What the runs of a study gave.
#[derive(Clone, Debug)]
pub struct Findings {
    /// For each cell, the row of each seed.
    pub rows: Vec<Vec<Row>>,
}

impl Study {
    /// How many runs it takes.
    pub fn trials(&self) -> usize {
        self.cells.len() * self.seeds.len()
    }

    /// Runs it on `runner`.
    ///
    /// # Errors
    /// The failure of the first run, in their order, that failed.
    pub fn run(&self, runner: &Runner<'_>, watch: &dyn Watch) -> Result<Findings, RunFailure> {
        let trials = self.all_trials();
        let mut rows = runner.rows(&trials, watch)?.into_iter();
        let mut cell = || rows.by_ref().take(self.seeds.len()).collect();
        Ok(Findings { rows: self.cells.iter().map(|_| cell()).collect() })
    }

    /// The scenario and the seed of each run, cell by cell.
    pub fn all_trials(&self) -> Vec<(&Plan, u64)> {
        let seeds = |cell| self.seeds.iter().map(move |&seed| (cell, seed));
        self.cells.iter().flat_map(|cell| seeds(&cell.plan)).collect()
    }
}

impl Findings {
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
}
