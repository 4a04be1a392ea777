//! Racing: points that are surely worse after their first seed are run with no others.
//!
//! One seed says nothing about its own noise, but the points that were run with all seeds do: how
//! much scores differ between seeds of one point is much the same at all of them. A point is
//! *hopeless* if, by that noise, it is worse in every objective than a point that is known better,
//! or breaks a constraint. It is told with the noise of one seed, so a model gives it less weight.

use crate::history::{Measured, Observation};
use blis_core::math::float;

/// So many standard errors are no chance any more.
const SURE: f64 = 3.0;
/// With fewer differences between seeds the noise is not known.
const FEWEST: f64 = 8.0;

/// The noise of one seed, by objective and by constraint, as seen so far.
#[derive(Clone, Debug)]
pub struct Noise {
    objectives: Vec<Scatter>,
    constraints: Vec<Scatter>,
}

/// Squares of differences from the mean of a point, and how many of them are free.
#[derive(Clone, Copy, Debug, Default)]
struct Scatter {
    squares: f64,
    freedom: f64,
}

impl Scatter {
    fn add(&mut self, measured: &Measured, seeds: usize) {
        let n = float(seeds as u64);
        if let (Some(variance), true) = (measured.variance, seeds > 1) {
            self.squares += variance * n * (n - 1.0);
            self.freedom += n - 1.0;
        }
    }

    /// The variance of one seed; `None` if it is not known well enough.
    fn variance(&self) -> Option<f64> {
        (self.freedom >= FEWEST).then(|| self.squares / self.freedom)
    }
}

impl Noise {
    /// Nothing is known yet.
    pub fn of(objectives: usize, constraints: usize) -> Noise {
        Noise {
            objectives: vec![Scatter::default(); objectives],
            constraints: vec![Scatter::default(); constraints],
        }
    }

    /// Learns from a point that was run with so many seeds.
    pub fn learn(&mut self, found: &Observation, seeds: usize) {
        let objectives = self.objectives.iter_mut().zip(&found.objectives);
        let constraints = self.constraints.iter_mut().zip(&found.constraints);
        objectives.chain(constraints).for_each(|(scatter, one)| scatter.add(one, seeds));
    }

    /// Whether a point that was run with one seed is hopeless beside `known`, points that met the
    /// constraints with so many seeds.
    pub fn is_hopeless(&self, found: &Observation, known: &[Observation], seeds: usize) -> bool {
        let surely = |excess: f64, variance: Option<f64>| {
            variance.is_some_and(|variance| excess > SURE * variance.sqrt())
        };
        let mut constraints = found.constraints.iter().zip(&self.constraints);
        if constraints.any(|(one, scatter)| surely(one.mean, scatter.variance())) {
            return true;
        }
        let both = 1.0 + 1.0 / float(seeds.max(1) as u64);
        known.iter().any(|better| {
            let pairs = found.objectives.iter().zip(&better.objectives);
            pairs.zip(&self.objectives).all(|((one, other), scatter)| {
                surely(one.mean - other.mean, scatter.variance().map(|v| v * both))
            })
        })
    }

    /// What was measured with one seed, with the noise that this has.
    pub fn doubted(&self, found: Observation) -> Observation {
        let with = |all: Vec<Measured>, scatters: &[Scatter]| {
            let one = |(one, scatter): (Measured, &Scatter)| Measured {
                variance: scatter.variance().filter(|_| one.mean.is_finite()).or(one.variance),
                ..one
            };
            all.into_iter().zip(scatters).map(one).collect()
        };
        Observation {
            objectives: with(found.objectives, &self.objectives),
            constraints: with(found.constraints, &self.constraints),
            ..found
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::space::Point;

    fn seen(objectives: &[f64], constraints: &[f64], variance: Option<f64>) -> Observation {
        let measured = |all: &[f64]| all.iter().map(|&mean| Measured { mean, variance }).collect();
        Observation {
            point: Point { values: Vec::new() },
            objectives: measured(objectives),
            constraints: measured(constraints),
        }
    }

    /// After four points with three seeds each, whose scores differ by 0.1 between seeds.
    fn noise() -> Noise {
        let mut noise = Noise::of(2, 1);
        let best = seen(&[0.0, 0.0], &[-1.0], Some(0.01 / 3.0));
        for _ in 0..3 {
            noise.learn(&best, 3);
            let worst = seen(&[9.0, 9.0], &[9.0], None);
            assert!(!noise.is_hopeless(&worst, std::slice::from_ref(&best), 3));
        }
        noise.learn(&best, 3);
        noise
    }

    #[test]
    fn a_point_is_hopeless_if_it_is_worse_in_everything_or_surely_illegal() {
        let (noise, best) = (noise(), [seen(&[0.0, 0.0], &[-1.0], Some(0.003))]);
        let hopeless = |scores: &[f64], excess: f64| {
            noise.is_hopeless(&seen(scores, &[excess], None), &best, 3)
        };
        // Three standard errors are 3 x 0.1 x sqrt(1 + 1/3) = 0.346.
        assert!(hopeless(&[0.35, 0.35], -1.0));
        assert!(!hopeless(&[0.35, 0.34], -1.0), "perhaps as good in one of them");
        assert!(!hopeless(&[9.0, -0.1], -1.0), "a front has room for it");
        assert!(hopeless(&[-1.0, -1.0], 0.31), "what is illegal cannot be good");
        assert!(!hopeless(&[-1.0, -1.0], 0.29));
        assert!(!noise.is_hopeless(&seen(&[9.0, 9.0], &[0.0], None), &[], 3), "worse than whom?");
    }

    #[test]
    fn what_one_seed_says_has_the_noise_of_one_seed() {
        let found = noise().doubted(seen(&[1.0, f64::INFINITY], &[0.5], None));
        let variance = found.objectives[0].variance.expect("it is known");
        assert!((variance - 0.01).abs() < 1e-9, "{variance}");
        assert_eq!(found.objectives[1].variance, None, "there is no number to doubt");
        assert!(found.constraints[0].variance.is_some());
    }
}
