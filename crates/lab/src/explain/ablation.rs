//! Running an arm with subsets of its components.

use super::shares::{Shares, Subsets};
use crate::failure::Failure;
use crate::metric::Metric;
use crate::study::{Study, by_plan};
use crate::trial::Runner;
use blis_scenario::problems::{Problems, every};
use blis_scenario::row::Row;
use blis_scenario::scenario::Checked;

/// Which arm is asked about, and where.
#[derive(Clone, Debug, PartialEq)]
pub struct Question {
    /// The level of each factor of the study; that of `arm` is the one that is explained.
    pub levels: Vec<usize>,
    /// How many seeds each subset is run with.
    pub seeds: usize,
    /// What is left out of each run, in s.
    pub warmup: Option<f64>,
}

/// An arm with subsets of its components, checked and ready to run.
#[derive(Clone, Debug)]
pub struct Ablation {
    /// The names of the components.
    pub components: Vec<String>,
    subsets: Subsets,
    plans: Vec<Checked>,
    seeds: Vec<u64>,
}

impl Ablation {
    /// The ablation of an arm of `study`; `None` if the arm is not put together from components.
    ///
    /// # Errors
    /// If a subset makes no legal scenario.
    pub fn of(study: &Study, question: &Question) -> Result<Option<Ablation>, Problems> {
        let components: Vec<String> =
            study.components_at(&question.levels).iter().map(|&name| name.to_owned()).collect();
        if components.is_empty() {
            return Ok(None);
        }
        let subsets = Subsets::of(components.len());
        let plan = |&mask: &u32| study.plan_with(&question.levels, mask, question.warmup);
        let plans = every(subsets.masks().iter().map(plan))?;
        let seeds = study.first_seeds(question.seeds);
        Ok(Some(Ablation { components, subsets, plans, seeds }))
    }

    /// How many runs it takes.
    pub fn trials(&self) -> usize {
        self.plans.len() * self.seeds.len()
    }

    /// The rows of each subset, by seed.
    ///
    /// # Errors
    /// The failure of the first run, in their order, that failed.
    pub fn run(&self, runner: &Runner<'_>) -> Result<Vec<Vec<Row>>, Failure> {
        let settle = |checked: &Checked| runner.settle(checked.clone());
        let plans = self.plans.iter().map(settle).collect::<Result<Vec<_>, _>>()?;
        by_plan(&plans, &self.seeds, runner)
    }

    /// What the components do to `metric` in `rows`; `None` if it has no sample in a run, or for
    /// fewer than two seeds.
    pub fn shares(&self, rows: &[Vec<Row>], metric: &Metric) -> Option<Shares> {
        let value = |row: &Row| metric.of_run(row);
        let values: Option<Vec<Vec<f64>>> =
            rows.iter().map(|rows| rows.iter().map(value).collect()).collect();
        self.subsets.shares(&values?)
    }
}
