//! Minimisation in a box with gradients: projected L-BFGS.
//!
//! Small and smooth problems of a few dozen variables: kernel parameters, and the continuous part
//! of an acquisition function. Coordinates at a bound whose gradient points outwards stand still; a
//! step is projected to the box and shortened until it descends enough.

use crate::cholesky::dot;

/// When to stop.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Limits {
    /// Most evaluations of the function.
    pub evaluations: usize,
    /// Least improvement of an accepted step, relative to 1 + |value|.
    pub gain: f64,
}

/// Pairs of steps and gradient changes that are remembered.
const MEMORY: usize = 8;

/// Share of the linear prediction that a step must achieve.
const ARMIJO: f64 = 1e-4;

/// The place of the least value of `f` that is reached from `start` within `low..=high`.
///
/// `f` writes the gradient to its second argument
/// and may return infinity where it is not defined, but not at the start.
pub(crate) fn minimise(
    start: &[f64],
    low: &[f64],
    high: &[f64],
    limits: Limits,
    mut f: impl FnMut(&[f64], &mut [f64]) -> f64,
) -> Vec<f64> {
    let n = start.len();
    let project = |x: &mut [f64]| {
        for i in 0..n {
            x[i] = x[i].clamp(low[i], high[i]);
        }
    };
    let mut x = start.to_vec();
    project(&mut x);
    let mut gradient = vec![0.0; n];
    let mut value = f(&x, &mut gradient);
    let mut evaluations = 1;
    let mut memory = Memory::default();
    let mut trial_gradient = vec![0.0; n];
    while evaluations < limits.evaluations {
        let free: Vec<bool> = (0..n)
            .map(|i| !(x[i] <= low[i] && gradient[i] > 0.0 || x[i] >= high[i] && gradient[i] < 0.0))
            .collect();
        let mut direction = memory.direction(&gradient, &free);
        let mut slope = dot(&direction, &gradient);
        if slope >= 0.0 {
            memory = Memory::default();
            direction = memory.direction(&gradient, &free);
            slope = dot(&direction, &gradient);
        }
        if slope.is_nan() || slope >= -1e-14 {
            break;
        }
        let mut step = 1.0;
        let mut accepted = None;
        while evaluations < limits.evaluations {
            let mut trial: Vec<f64> = (0..n).map(|i| x[i] + step * direction[i]).collect();
            project(&mut trial);
            let trial_value = f(&trial, &mut trial_gradient);
            evaluations += 1;
            let moved: Vec<f64> = (0..n).map(|i| trial[i] - x[i]).collect();
            if trial_value <= value + ARMIJO * dot(&moved, &gradient) {
                accepted = Some((trial, trial_value, moved));
                break;
            }
            step *= if trial_value.is_finite() {
                shrink(slope * step, trial_value - value)
            } else {
                0.1
            };
            if step < 1e-10 {
                break;
            }
        }
        let Some((trial, trial_value, moved)) = accepted else { break };
        let change: Vec<f64> = (0..n).map(|i| trial_gradient[i] - gradient[i]).collect();
        memory.remember(moved, change);
        let gain = value - trial_value;
        x = trial;
        value = trial_value;
        gradient.copy_from_slice(&trial_gradient);
        if gain < limits.gain * (1.0 + value.abs()) {
            break;
        }
    }
    x
}

/// By how much to shorten a step: to the minimum of the parabola through what is known.
fn shrink(slope: f64, rise: f64) -> f64 {
    (-0.5 * slope / (rise - slope)).clamp(0.1, 0.5)
}

/// Recent steps, oldest first.
#[derive(Default)]
struct Memory {
    pairs: Vec<Pair>,
}

struct Pair {
    step: Vec<f64>,
    change: Vec<f64>,
    rho: f64,
}

impl Memory {
    fn remember(&mut self, step: Vec<f64>, change: Vec<f64>) {
        let curvature = dot(&step, &change);
        // Without positive curvature the pair would make the next direction climb.
        if curvature > 1e-10 * dot(&change, &change) && curvature > 0.0 {
            if self.pairs.len() == MEMORY {
                self.pairs.remove(0);
            }
            self.pairs.push(Pair { step, change, rho: 1.0 / curvature });
        }
    }

    /// Minus the inverse Hessian times the gradient, over the free coordinates.
    fn direction(&self, gradient: &[f64], free: &[bool]) -> Vec<f64> {
        let masked = |v: &mut [f64]| {
            for (x, &free) in v.iter_mut().zip(free) {
                if !free {
                    *x = 0.0;
                }
            }
        };
        let mut q: Vec<f64> = gradient.iter().map(|g| -g).collect();
        masked(&mut q);
        let mut factors = vec![0.0; self.pairs.len()];
        for (factor, pair) in factors.iter_mut().zip(&self.pairs).rev() {
            *factor = pair.rho * dot(&pair.step, &q);
            add(&mut q, -*factor, &pair.change);
        }
        // Without memory, a step is at most as long as one unit.
        let scale = match self.pairs.last() {
            Some(pair) => 1.0 / (pair.rho * dot(&pair.change, &pair.change)),
            None => 1.0 / dot(&q, &q).sqrt().max(1.0),
        };
        for x in &mut q {
            *x *= scale;
        }
        for (factor, pair) in factors.iter().zip(&self.pairs) {
            let back = pair.rho * dot(&pair.change, &q);
            add(&mut q, factor - back, &pair.step);
        }
        masked(&mut q);
        q
    }
}

fn add(to: &mut [f64], factor: f64, what: &[f64]) {
    for (x, y) in to.iter_mut().zip(what) {
        *x += factor * y;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIMITS: Limits = Limits { evaluations: 500, gain: 1e-14 };

    fn rosenbrock(x: &[f64], gradient: &mut [f64]) -> f64 {
        let (a, b) = (1.0 - x[0], x[1] - x[0] * x[0]);
        gradient[0] = -2.0 * a - 400.0 * x[0] * b;
        gradient[1] = 200.0 * b;
        a * a + 100.0 * b * b
    }

    #[test]
    fn a_curved_valley_is_followed_to_its_end() {
        let found = minimise(&[-1.2, 1.0], &[-5.0; 2], &[5.0; 2], LIMITS, rosenbrock);
        assert!(rosenbrock(&found, &mut [0.0; 2]) < 1e-10, "{found:?}");
        assert!((found[0] - 1.0).abs() < 1e-4 && (found[1] - 1.0).abs() < 1e-4, "{found:?}");
    }

    #[test]
    fn a_minimum_outside_the_box_is_found_on_its_edge() {
        let found = minimise(&[-1.2, 0.4], &[-5.0; 2], &[0.5, 5.0], LIMITS, rosenbrock);
        assert!((found[0] - 0.5).abs() < 1e-6 && (found[1] - 0.25).abs() < 1e-4, "{found:?}");
        let value = rosenbrock(&found, &mut [0.0; 2]);
        assert!((value - 0.25).abs() < 1e-6, "{found:?}");
    }

    #[test]
    fn places_where_the_function_is_infinite_are_left_again() {
        let f = |x: &[f64], gradient: &mut [f64]| {
            gradient[0] = 1.0 - 1.0 / x[0];
            if x[0] <= 0.0 { f64::INFINITY } else { x[0] - blis_core::math::ln(x[0]) }
        };
        let found = minimise(&[30.0], &[-100.0], &[100.0], LIMITS, f);
        assert!((found[0] - 1.0).abs() < 1e-5, "{found:?}");
    }

    #[test]
    fn evaluations_are_limited() {
        let mut calls = 0;
        let limits = Limits { evaluations: 7, gain: 0.0 };
        minimise(&[-1.2, 1.0], &[-5.0; 2], &[5.0; 2], limits, |x, g| {
            calls += 1;
            rosenbrock(x, g)
        });
        assert_eq!(calls, 7);
    }
}
