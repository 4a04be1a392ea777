//! Trials: a scenario and a seed in, a row out.
//!
//! Studies and searches ask a [`Runner`] for the rows of the trials that they need. It runs each of
//! them once, several at a time, and gives the rows in the order of the trials.

use crate::pool;
use crate::row::Row;
use crate::run::{RunFailure, Trial, run_scenario};
use crate::scenario::Plan;
use blis_sim::{End, Observer, Pace};
use std::collections::BTreeMap;

/// The row of `plan` with `seed`.
///
/// # Errors
/// If the run gives nothing that can be believed: its workload cannot be read, its observer stops
/// it, or an invariant is broken.
pub fn row(
    plan: &Plan,
    seed: u64,
    audit: bool,
    observer: &mut dyn Observer,
) -> Result<Row, RunFailure> {
    let pace = Pace::FastForward;
    let trial = Trial { seed, pace, audit, sample_interval: None, curves: true };
    let result = run_scenario(plan, trial, &mut [], None, observer)?;
    result.check()?;
    match result.outcome.end {
        End::Interrupted => Err(RunFailure::Interrupted),
        _ => Ok(Row::of(plan, &result)),
    }
}

/// Runs trials.
#[derive(Clone, Copy, Debug, Default)]
pub struct Runner {
    /// At most so many at a time; 0: one for each core.
    pub jobs: usize,
    /// Whether every invariant is checked along the way.
    pub audit: bool,
}

impl Runner {
    /// The rows of `trials`, in their order, which do not depend on how many run at a time. Trials
    /// that mean the same are run once. `observe` gives each trial its observer.
    ///
    /// # Errors
    /// If the system cannot start a thread; else the failure of the first trial, in their order,
    /// that failed.
    ///
    /// # Panics
    /// If a trial panics.
    pub fn rows<O: Observer>(
        &self,
        trials: &[(&Plan, u64)],
        observe: impl Fn() -> O + Sync,
    ) -> Result<Vec<Row>, RunFailure> {
        let (first, numbers) = distinct(trials);
        let rows = pool::each(self.jobs, &first, |&(plan, seed)| {
            row(plan, seed, self.audit, &mut observe())
        })?;
        let rows = rows.into_iter().collect::<Result<Vec<Row>, RunFailure>>()?;
        Ok(numbers.into_iter().map(|number| rows[number].clone()).collect())
    }
}

/// The trials that differ in what they mean, and for each trial the number of its equal there.
fn distinct<'a>(trials: &[(&'a Plan, u64)]) -> (Vec<(&'a Plan, u64)>, Vec<usize>) {
    let mut known = BTreeMap::new();
    let mut first = Vec::new();
    let mut number = |&(plan, seed): &(&'a Plan, u64)| {
        *known.entry((plan.canonical(), seed)).or_insert_with(|| {
            first.push((plan, seed));
            first.len() - 1
        })
    };
    let numbers = trials.iter().map(&mut number).collect();
    (first, numbers)
}
