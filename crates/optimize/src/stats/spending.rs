//! Looking at a study while it runs: how strict each look must be.
//!
//! Who looks after every few seeds and stops when the answer pleases is wrong far more often than
//! one time in twenty. Here the looks are fixed beforehand, and each may spend a part of the whole
//! error (Lan and `DeMets` 1983): at a share t of the most seeds, alpha ln(1 + (e - 1) t) is spent,
//! the function that stays nearest to Pocock's equally strict looks. From the joint distribution of
//! the looks, which is that of a sum that grows, follows the two-sided level of each.

use blis_core::math::normal;
use blis_core::math::{exp, float, ln};
use std::f64::consts::{E, PI};

/// Points of the grid on which the density of the sum is kept; odd, for Simpson's rule.
const POINTS: usize = 161;

/// The two-sided level at which to test at each of `looks` (numbers of seeds, ascending; the last
/// is the most that are run), so that all of them together are wrong with probability `alpha`.
///
/// # Panics
/// If there is no look, the numbers do not ascend, or `alpha` is not between 0 and 1.
pub fn nominal_levels(looks: &[usize], alpha: f64) -> Vec<f64> {
    assert!(0.0 < alpha && alpha < 1.0, "a level of {alpha}");
    assert!(looks.is_sorted_by(|a, b| a < b), "looks in order");
    let most = float(*looks.last().expect("at least one look") as u64);
    let shares: Vec<f64> = looks.iter().map(|&n| float(n as u64) / most).collect();
    boundaries(&shares, alpha).into_iter().map(|bound| 2.0 * normal::below(-bound)).collect()
}

/// How many standard errors from zero the sum must be at each share of the information.
fn boundaries(shares: &[f64], alpha: f64) -> Vec<f64> {
    let spent = |share: f64| alpha * ln(1.0 + (E - 1.0) * share);
    let mut density: Option<Density> = None;
    let mut before = 0.0;
    let mut bounds = Vec::new();
    for &share in shares {
        let spend = spent(share) - spent(before);
        let root = share.sqrt();
        let step = (share - before).sqrt();
        let leaves = |bound: f64| match &density {
            None => 2.0 * normal::below(-bound),
            Some(density) => density.leaving(bound * root, step),
        };
        let (mut low, mut high) = (0.0, 20.0);
        for _ in 0..40 {
            let middle = 0.5 * (low + high);
            if leaves(middle) > spend { low = middle } else { high = middle }
        }
        let bound = 0.5 * (low + high);
        density = Some(Density::after(density.as_ref(), bound * root, step));
        bounds.push(bound);
        before = share;
    }
    bounds
}

/// The density of the sum where all looks so far went on.
struct Density {
    /// It is zero beyond this on both sides.
    edge: f64,
    values: Vec<f64>,
}

impl Density {
    /// That within `edge`, after a step of standard deviation `step` from `before`, or from zero.
    fn after(before: Option<&Density>, edge: f64, step: f64) -> Density {
        let at = |x: f64| match before {
            None => bell(x / step) / step,
            Some(before) => before.integral(|from| bell((x - from) / step) / step),
        };
        let values = (0..POINTS).map(|i| at(point(i, edge))).collect();
        Density { edge, values }
    }

    /// The probability of being beyond `edge` after a step of standard deviation `step`.
    fn leaving(&self, edge: f64, step: f64) -> f64 {
        self.integral(|from| {
            normal::below((from - edge) / step) + normal::below((-edge - from) / step)
        })
    }

    /// The integral of `f` under this density, by Simpson's rule.
    fn integral(&self, f: impl Fn(f64) -> f64) -> f64 {
        let weight = |i: usize| match i {
            0 => 1.0,
            i if i == POINTS - 1 => 1.0,
            i if i % 2 == 1 => 4.0,
            _ => 2.0,
        };
        let terms = self.values.iter().enumerate();
        let sum: f64 = terms.map(|(i, value)| weight(i) * value * f(point(i, self.edge))).sum();
        sum * 2.0 * self.edge / (3.0 * float(POINTS as u64 - 1))
    }
}

fn point(index: usize, edge: f64) -> f64 {
    edge * (2.0 * float(index as u64) / float(POINTS as u64 - 1) - 1.0)
}

fn bell(x: f64) -> f64 {
    exp(-0.5 * x * x) / (2.0 * PI).sqrt()
}

#[cfg(test)]
mod tests {
    use super::*;
    use blis_core::Dice;
    use blis_core::random::Purpose;

    /// Published bounds of this spending function at five equal looks, alpha 0.05, two-sided.
    #[test]
    fn five_looks_have_the_published_bounds() {
        let found = boundaries(&[0.2, 0.4, 0.6, 0.8, 1.0], 0.05);
        for (bound, published) in found.iter().zip([2.438, 2.427, 2.410, 2.397, 2.386]) {
            assert!((bound - published).abs() < 0.002, "{found:?}");
        }
    }

    #[test]
    fn one_look_spends_everything() {
        assert!((nominal_levels(&[7], 0.05)[0] - 0.05).abs() < 1e-9);
    }

    #[test]
    fn all_looks_together_are_wrong_as_often_as_they_may() {
        let looks = [5, 8, 12, 18, 27, 40];
        let levels = nominal_levels(&looks, 0.05);
        let bounds: Vec<f64> = levels.iter().map(|p| -normal::quantile(0.5 * p)).collect();
        let wrong = |bounds: &[f64], key: u64| {
            let mut dice = Dice::new(1, Purpose::Sampling, key);
            let (mut n, mut sum) = (0, 0.0);
            looks.iter().zip(bounds).any(|(&look, bound)| {
                sum += (n..look).map(|_| dice.normal()).sum::<f64>();
                n = look;
                sum.abs() > bound * float(n as u64).sqrt()
            })
        };
        let count = |bounds: &[f64]| (0..100_000).filter(|&key| wrong(bounds, key)).count();
        let found = count(&bounds);
        assert!((4_862..=5_138).contains(&found), "{found} of 100,000; 5,000 expected");
        let naive = count(&[1.959_964; 6]);
        assert!(naive > 15_000, "{naive} of 100,000 if nothing is corrected");
    }
}
