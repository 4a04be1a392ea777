//! A pool of workers that runs many trials at once, with results in the order of the trials.

use crate::run::{RunFailure, RunResult, Trial, run_scenario};
use crate::scenario::Plan;
use blis_sim::Observer;
use rayon::prelude::*;

/// Runs `plan` once for each of `trials`, at most `jobs` at a time (0: one for each core). The
/// results are in the order of `trials` and do not depend on `jobs`. `observe` gives each trial its
/// observer.
///
/// # Errors
/// The failure of the first trial, in their order, that failed.
///
/// # Panics
/// If a trial panics, or the system cannot start a thread.
pub fn replicate<O: Observer>(
    plan: &Plan,
    trials: &[Trial],
    jobs: usize,
    observe: impl Fn(&Trial) -> O + Sync,
) -> Result<Vec<RunResult>, RunFailure> {
    let pool = rayon::ThreadPoolBuilder::new()
        .num_threads(jobs)
        .build()
        .expect("the system can start worker threads");
    let results: Vec<Result<RunResult, RunFailure>> = pool.install(|| {
        trials
            .par_iter()
            .map(|trial| run_scenario(plan, *trial, &mut [], None, &mut observe(trial)))
            .collect()
    });
    results.into_iter().collect()
}
