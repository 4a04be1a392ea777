//! Other fits that the same measurements allow: what prediction intervals come from.

use super::judge::workloads;
use super::log::Run;
use super::{FitError, Options, fit_weighted};
use crate::profile::Profile;
use blis_core::Dice;
use blis_core::random::Purpose;

/// Slower or faster than this no server is by drift alone.
const SLOWEST: f64 = 2.0;

/// The `index`-th of the profiles that might as well be true.
///
/// Workloads get random weights (the Bayesian bootstrap: with a handful of them, drawing whole
/// workloads would leave terms without a single row), and the server is slower or faster throughout
/// by a random factor of standard deviation `drift` (see `judge::drift`). A function of `seed` and
/// `index` alone, so they may be made in any order.
///
/// # Errors
/// As `fit`.
pub fn resampled(
    runs: &[Run],
    options: &Options,
    drift: f64,
    seed: u64,
    index: u64,
) -> Result<Profile, FitError> {
    let mut dice = Dice::new(seed, Purpose::Sampling, index);
    let names = workloads(runs);
    let weights: Vec<f64> = names.iter().map(|_| dice.exponential()).collect();
    let factor = (1.0 + drift * dice.normal()).clamp(1.0 / SLOWEST, SLOWEST);
    let emphasis = |workload: &str| {
        let at = names.iter().position(|&name| name == workload);
        at.map_or(1.0, |at| weights[at])
    };
    Ok(fit_weighted(runs, options, &emphasis)?.scaled(factor)?)
}
