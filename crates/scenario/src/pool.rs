//! A pool of workers that runs many trials at once, with results in the order of the trials.

use crate::run::{RunFailure, RunResult, run_scenario};
use crate::scenario::{Plan, Trial};
use blis_sim::Observer;
use rayon::prelude::*;
use rayon::{ThreadPool, ThreadPoolBuilder};
use std::num::NonZero;
use std::thread::available_parallelism;

/// Runs `plan` once for each of `trials`, at most `jobs` at a time (0: one for each core). The
/// results are in the order of `trials` and do not depend on `jobs`. `observe` gives each trial its
/// observer.
///
/// # Errors
/// If the system cannot start a thread; else the failure of the first trial, in their order, that
/// failed.
///
/// # Panics
/// If a trial panics.
pub fn replicate<O: Observer>(
    plan: &Plan,
    trials: &[Trial],
    jobs: usize,
    observe: impl Fn(&Trial) -> O + Sync,
) -> Result<Vec<RunResult>, RunFailure> {
    let run = |trial: &Trial| run_scenario(plan, *trial, &mut [], None, &mut observe(trial));
    each(jobs, trials, run)?.into_iter().collect()
}

/// `work` done on each of `items`, at most `jobs` at a time (0: one for each core), begun and with
/// results in the order of the items.
///
/// # Errors
/// If the system cannot start a thread.
///
/// # Panics
/// If the work panics.
pub fn each<T: Sync, R: Send>(
    jobs: usize,
    items: &[T],
    work: impl Fn(&T) -> R + Send + Sync,
) -> Result<Vec<R>, RunFailure> {
    let threads = threads(jobs, items.len());
    if threads == 1 {
        // A worker of another pool would begin other work of that pool while it waits for this one.
        return Ok(items.iter().map(work).collect());
    }
    let pool = start(ThreadPoolBuilder::new().num_threads(threads))?;
    // Taken one by one: of a stretch that a worker has begun, an idle one could take nothing.
    let work = |(index, item)| (index, work(item));
    let done = || items.iter().enumerate().par_bridge().map(work).collect();
    let mut done: Vec<(usize, R)> = pool.install(done);
    done.sort_unstable_by_key(|&(index, _)| index);
    Ok(done.into_iter().map(|(_, result)| result).collect())
}

/// As many threads as there is work for, and no more than `jobs` (0: one for each core).
pub fn threads(jobs: usize, trials: usize) -> usize {
    let most = match jobs {
        0 => available_parallelism().map_or(1, NonZero::get),
        jobs => jobs,
    };
    most.min(trials).max(1)
}

fn start(builder: ThreadPoolBuilder) -> Result<ThreadPool, RunFailure> {
    builder.build().map_err(|error| RunFailure::Threads(error.to_string()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn there_are_no_more_threads_than_trials() {
        for (jobs, trials, expected) in [(1_024, 2, 2), (2, 1_000, 2), (4, 0, 1), (0, 1, 1)] {
            assert_eq!(threads(jobs, trials), expected, "{jobs} jobs, {trials} trials");
        }
        assert!(threads(0, 100_000) >= 1);
    }

    #[test]
    fn one_job_at_a_time_is_done_where_it_was_asked_for() {
        let here = std::thread::current().id();
        let done = each(1, &[1, 2, 3], |&item| (item, std::thread::current().id()));
        assert_eq!(done.expect("no thread is started"), [(1, here), (2, here), (3, here)]);
    }

    #[test]
    fn a_thread_that_cannot_start_is_told() {
        let builder = ThreadPoolBuilder::new().num_threads(1).stack_size(1 << 60);
        let failure = start(builder).expect_err("nobody has an exabyte");
        assert!(matches!(failure, RunFailure::Threads(_)), "{failure}");
        assert!(failure.to_string().starts_with("cannot start worker threads: "), "{failure}");
    }
}
