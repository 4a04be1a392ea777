//! What was asked and told: the only state that an engine has.
//!
//! Everything an engine does next follows from its settings and from what it was told, in order. So
//! a search is resumed by telling it all observations again; nothing else is stored.

use crate::model::Samples;
use crate::space::{Point, Space, SpaceError};

/// What is searched for, and where.
#[derive(Clone, Debug, PartialEq)]
pub struct Problem {
    /// What may be chosen.
    pub space: Space,
    /// How many quantities are minimised, at least one.
    pub objectives: usize,
    /// How many quantities must be at most 0.
    pub constraints: usize,
}

/// A measured quantity.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Measured {
    /// The value, or the mean of repetitions. Not finite means that there is none: the point counts
    /// as bad as the worst one.
    pub mean: f64,
    /// Variance of `mean` as an estimate: 0 if it is exact, absent if it is not known.
    pub variance: Option<f64>,
}

/// What was measured at a point.
#[derive(Clone, Debug, PartialEq)]
pub struct Observation {
    /// Where.
    pub point: Point,
    /// Quantities to minimise.
    pub objectives: Vec<Measured>,
    /// Quantities to keep at or below 0.
    pub constraints: Vec<Measured>,
}

/// Why an observation was refused.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum TellError {
    /// The point is not of the space.
    #[error(transparent)]
    Point(#[from] SpaceError),
    /// Too many or too few numbers.
    #[error("the problem has {expected} {what}, but {found} were told")]
    Count {
        /// `objectives` or `constraints`.
        what: &'static str,
        /// As many as the problem has.
        expected: usize,
        /// As many as were told.
        found: usize,
    },
    /// A variance below 0, infinite or not a number.
    #[error("a variance of `{0}` was told; legal: a finite number from 0, or none")]
    Variance(f64),
}

/// All observations, and the points that are out for measurement.
#[derive(Clone, Debug)]
pub struct History {
    problem: Problem,
    observations: Vec<Observation>,
    units: Vec<Vec<f64>>,
    pending: Vec<Vec<f64>>,
}

impl Measured {
    /// A value without noise.
    pub fn exact(value: f64) -> Measured {
        Measured { mean: value, variance: Some(0.0) }
    }

    /// A value with noise of unknown size.
    pub fn noisy(value: f64) -> Measured {
        Measured { mean: value, variance: None }
    }

    /// The mean of independent repetitions. Fewer than two say nothing about the noise.
    pub fn of(repetitions: &[f64]) -> Measured {
        let n = blis_core::math::float(repetitions.len() as u64);
        let mean = repetitions.iter().sum::<f64>() / n;
        let squares: f64 = repetitions.iter().map(|x| (x - mean) * (x - mean)).sum();
        let variance = (repetitions.len() > 1).then(|| squares / (n - 1.0) / n);
        Measured { mean, variance }
    }
}

impl Observation {
    /// One objective and no constraint.
    pub fn of(point: Point, objective: Measured) -> Observation {
        Observation { point, objectives: vec![objective], constraints: Vec::new() }
    }

    /// Whether all constraints were met as measured.
    pub fn is_feasible(&self) -> bool {
        self.constraints.iter().all(|constraint| constraint.mean <= 0.0)
    }
}

impl History {
    /// Nothing told yet.
    ///
    /// # Panics
    /// If the problem has no objective.
    pub fn new(problem: Problem) -> History {
        assert!(problem.objectives > 0, "a search needs an objective");
        History { problem, observations: Vec::new(), units: Vec::new(), pending: Vec::new() }
    }

    /// What is searched for.
    pub fn problem(&self) -> &Problem {
        &self.problem
    }

    /// What was told, in order.
    pub fn observations(&self) -> &[Observation] {
        &self.observations
    }

    /// Adds an observation.
    ///
    /// # Errors
    /// If the point or the numbers do not fit the problem.
    pub fn tell(&mut self, observation: Observation) -> Result<(), TellError> {
        let unit = self.problem.space.unit(&observation.point)?;
        let counts = [
            ("objectives", self.problem.objectives, observation.objectives.len()),
            ("constraints", self.problem.constraints, observation.constraints.len()),
        ];
        for (what, expected, found) in counts {
            if expected != found {
                return Err(TellError::Count { what, expected, found });
            }
        }
        let all = observation.objectives.iter().chain(&observation.constraints);
        for variance in all.filter_map(|measured| measured.variance) {
            if !(variance.is_finite() && variance >= 0.0) {
                return Err(TellError::Variance(variance));
            }
        }
        if let Some(index) = self.pending.iter().position(|pending| near(pending, &unit)) {
            self.pending.remove(index);
        }
        self.observations.push(observation);
        self.units.push(unit);
        Ok(())
    }

    /// Notes that the point at `unit` is out for measurement, and returns it.
    pub(crate) fn expect(&mut self, unit: &[f64]) -> Point {
        let point = self.problem.space.point(unit);
        // What comes back is the point, so its own coordinates are what is waited for.
        let unit = self.problem.space.unit(&point).expect("a point of this space");
        self.pending.push(unit);
        point
    }

    /// Snapped coordinates of what was told.
    pub(crate) fn units(&self) -> &[Vec<f64>] {
        &self.units
    }

    /// Coordinates of what is out for measurement.
    pub(crate) fn pending(&self) -> &[Vec<f64>] {
        &self.pending
    }

    /// How many points were asked for or told.
    pub(crate) fn known(&self) -> usize {
        self.units.len() + self.pending.len()
    }

    /// Whether the point at `unit` was told or is out for measurement.
    pub(crate) fn is_known(&self, unit: &[f64]) -> bool {
        self.units.iter().chain(&self.pending).any(|known| near(known, unit))
    }

    /// The coordinates of what was told, one after the other.
    pub(crate) fn inputs(&self) -> Vec<f64> {
        self.units.iter().flatten().copied().collect()
    }

    /// Objective `index`, with the worst value where there is none.
    pub(crate) fn objective(&self, index: usize) -> Samples {
        self.samples(|observation| observation.objectives[index])
    }

    /// Constraint `index`, with the worst value where there is none.
    pub(crate) fn constraint(&self, index: usize) -> Samples {
        self.samples(|observation| observation.constraints[index])
    }

    fn samples(&self, of: impl Fn(&Observation) -> Measured) -> Samples {
        let measured: Vec<Measured> = self.observations.iter().map(of).collect();
        let finite = measured.iter().map(|m| m.mean).filter(|mean| mean.is_finite());
        let worst = finite.fold(f64::NEG_INFINITY, f64::max);
        let worst = if worst.is_finite() { worst } else { 1.0 };
        let value = |m: &Measured| if m.mean.is_finite() { m.mean } else { worst };
        Samples {
            values: measured.iter().map(value).collect(),
            variances: measured
                .iter()
                .map(|m| if m.mean.is_finite() { m.variance } else { None })
                .collect(),
        }
    }
}

/// Whether two vectors of coordinates stand for the same point, up to rounding.
pub(crate) fn near(a: &[f64], b: &[f64]) -> bool {
    a.iter().zip(b).all(|(x, y)| (x - y).abs() < 1e-9)
}
