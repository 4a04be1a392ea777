//! Studies: a question, arms that differ in what is asked about, and the runs that answer it.
//!
//! A study file has a base scenario, arms (patches on it), optionally workloads (patches too) and
//! values to sweep; every combination is a *cell*, and every cell is run with every seed. All cells
//! are sent the same requests for the same seed, as far as they have the same workload. Everything
//! is checked before anything runs.

mod file;

pub use file::read;

use crate::interval::Interval;
use crate::metric::Metric;
use crate::pool::run_all;
use crate::run::{RunFailure, RunResult, Trial};
use crate::scenario::Plan;
use blis_sim::{Observer, Pace};

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
    /// For each cell, the run of each seed.
    pub runs: Vec<Vec<RunResult>>,
}

impl Study {
    /// How many runs it takes.
    pub fn trials(&self) -> usize {
        self.cells.len() * self.seeds.len()
    }

    /// Runs it, at most `jobs` runs at a time (0: one for each core). `observe` gives each run its
    /// observer.
    ///
    /// # Errors
    /// The failure of the first run, in their order, that failed.
    pub fn run<O: Observer>(
        &self,
        jobs: usize,
        audit: bool,
        observe: impl Fn() -> O + Sync,
    ) -> Result<Findings, RunFailure> {
        let pace = Pace::FastForward;
        let trial =
            |&seed: &u64| Trial { seed, pace, audit, sample_interval: None, overrule: None };
        let trials: Vec<(&Plan, Trial)> = self
            .cells
            .iter()
            .flat_map(|cell| self.seeds.iter().map(move |seed| (&cell.plan, trial(seed))))
            .collect();
        let results = run_all(&trials, jobs, |_| observe())?;
        let mut results = results.into_iter();
        let mut cell = || results.by_ref().take(self.seeds.len()).collect();
        Ok(Findings { runs: self.cells.iter().map(|_| cell()).collect() })
    }
}

impl Findings {
    /// The values of `metric` in cell number `cell`, one a seed; without those that have no sample.
    pub fn values(&self, cell: usize, metric: &Metric) -> Vec<f64> {
        self.runs[cell].iter().filter_map(|run| metric.of(&run.report)).collect()
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
