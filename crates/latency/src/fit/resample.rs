//! Other fits that the same measurements allow: what prediction intervals come from.

use crate::profile::term::TERMS;
use crate::profile::{Profile, ProfileError};
use blis_core::Dice;
use blis_core::random::Purpose;

/// Slower or faster than this no server is by drift alone.
const SLOWEST: f64 = 2.0;

/// How far machines of one kind are apart, as a share, where a profile knows of no more: two H200s
/// differ by 2.0 % in the steps of the older server (`data/h200`, the repeats), and by 2.1 % in
/// vLLM's that only decode (`data/vllm`, `data/vllm-held-out`).
const MACHINES: f64 = 0.02;

/// Hosts are slow and fast by turns of seconds, so requests see more than the mean of a run. With
/// so many times the drift of whole runs, intervals of leave-one-out hold 90 % of the measured
/// values.
const TURNS: f64 = 1.5;

/// The same profile with a host that is slower or faster throughout, as hosts are.
fn on_another_host(profile: &Profile, dice: &mut Dice) -> Result<Profile, ProfileError> {
    match &profile.parameters().host {
        None => Ok(profile.clone()),
        Some(host) => profile.with_slower_host(slower(dice, TURNS * host.drift)),
    }
}

/// The `index`-th of the profiles that might as well be true: its coefficients vary as their
/// covariance says, none gets negative, and the server is slower or faster throughout by a random
/// factor of about `drift` (see `judge::drift`). A function of `seed` and `index` alone, so they
/// may be made in any order.
///
/// # Errors
/// If a coefficient becomes illegal.
pub fn varied(
    profile: &Profile,
    drift: f64,
    seed: u64,
    index: u64,
) -> Result<Profile, ProfileError> {
    let mut dice = Dice::new(seed, Purpose::Sampling, index);
    let mut parameters = profile.parameters().clone();
    let root = root(&parameters.covariance);
    let draws: Vec<f64> = root.iter().map(|_| dice.normal()).collect();
    let change = |row: &[f64]| row.iter().zip(&draws).map(|(cell, draw)| cell * draw).sum::<f64>();
    let changes: Vec<f64> = root.iter().map(|row| change(row)).collect();
    let (terms, sizes) = changes.split_at(TERMS.min(changes.len()));
    for (value, change) in parameters.terms_us.iter_mut().zip(terms) {
        *value = (*value + change).max(0.0);
    }
    for ((_, value), change) in parameters.sizes_us.iter_mut().zip(sizes) {
        *value = (*value + change).max(0.0);
    }
    let factor = slower(&mut dice, drift);
    on_another_host(&Profile::new(parameters)?.scaled(factor)?, &mut dice)
}

/// By how much a server that was not measured is slower. A drift is known from a handful of
/// workloads, which would make for longer tails than those of a normal draw; but it also holds what
/// the fits are unsure of, which resampling adds once more.
fn slower(dice: &mut Dice, drift: f64) -> f64 {
    let drift = drift.max(MACHINES);
    (1.0 + drift * dice.normal()).clamp(1.0 / SLOWEST, SLOWEST)
}

/// The lower triangle whose product with its transpose is `square`; columns of coefficients without
/// variance are 0.
fn root(square: &[Vec<f64>]) -> Vec<Vec<f64>> {
    let side = square.len();
    let mut root = vec![vec![0.0; side]; side];
    for i in 0..side {
        for j in 0..=i {
            let before: f64 = (0..j).map(|k| root[i][k] * root[j][k]).sum();
            let left = square[i][j] - before;
            root[i][j] = if i == j {
                left.max(0.0).sqrt()
            } else if root[j][j] > 1e-9 * square[j][j].sqrt() && root[j][j] > 0.0 {
                left / root[j][j]
            } else {
                0.0
            };
        }
    }
    root
}
