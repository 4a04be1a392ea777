//! What was measured at a point, and what that says beside the hand-set point.

use super::constraint::Constraint;
use super::guard::{self, Guard};
use super::number::{Number, Runs};
use super::{Objective, Search};
use blis_core::math::ln;
use blis_optimize::{Measured, Observation, Point};

/// The values of some metrics, one a seed, where a run has a sample.
type Values = Vec<Vec<Option<f64>>>;

/// With so many seeds two standard errors are asked for, not one.
const SURE: usize = 4;

/// What was measured at a point.
#[derive(Clone, Debug)]
pub(crate) struct Sample {
    pub(crate) objectives: Values,
    constraints: Values,
    guards: Values,
}

/// What points are compared with: the hand-set point, and what must hold beside it.
pub(crate) struct Hand {
    pub(crate) sample: Sample,
    pub(crate) guards: Vec<Guard>,
}

impl Search {
    /// What a point gives that cannot be run.
    pub(crate) fn no_sample(&self, hand: &Hand) -> Sample {
        let none = |count| vec![vec![None]; count];
        Sample {
            objectives: none(self.objectives.len()),
            constraints: none(self.constraints.len()),
            guards: none(hand.guards.len()),
        }
    }

    /// What `runs` of a point give.
    pub(crate) fn sample(&self, runs: &Runs, guards: &[Guard]) -> Sample {
        let values = |number: &Number| number.values(runs);
        Sample {
            objectives: self.objectives.iter().map(|objective| values(&objective.number)).collect(),
            constraints: self.constraints.iter().map(|bound| values(&bound.number)).collect(),
            guards: guards.iter().map(|guard| guard.values(runs)).collect(),
        }
    }

    /// What an engine is told about `point`. Requests are the same at every point, so most of what
    /// differs between seeds goes when each is compared with the hand-set point's run of that seed.
    pub(crate) fn observation(&self, point: Point, sample: &Sample, hand: &Hand) -> Observation {
        let by_hand = &hand.sample.objectives;
        let objectives = self.objectives.iter().zip(&sample.objectives).zip(by_hand);
        let objectives = objectives.map(|((objective, values), hand)| {
            measured(&paired(values, hand, |value, hand| objective.score(value, hand)))
        });
        let objectives = objectives.collect();
        Observation { point, objectives, constraints: self.excesses(sample, hand) }
    }

    /// By how much `sample` breaks each constraint, and of each kind the guard that it breaks most:
    /// at most 0 where they hold.
    pub(crate) fn excesses(&self, sample: &Sample, hand: &Hand) -> Vec<Measured> {
        let worst = guard::kinds(&hand.guards).map(|kind| {
            let guards =
                kind.map(|at| hand.guards[at].excess(&sample.guards[at], &hand.sample.guards[at]));
            let worst = guards.max_by(|a, b| a.mean.total_cmp(&b.mean));
            worst.expect("a kind has a guard")
        });
        self.constraint_excesses(sample, hand).chain(worst).collect()
    }

    /// By how much `sample` breaks the constraint or guard that it breaks most, or 0.
    pub(crate) fn harm(&self, sample: &Sample, hand: &Hand) -> f64 {
        let constraints = self.constraint_excesses(sample, hand);
        let constraints = constraints.map(|excess| cautious(excess, sample.seeds()));
        constraints.fold(hand.guarded(sample), f64::max)
    }

    /// By how much `sample` breaks each constraint.
    fn constraint_excesses(&self, sample: &Sample, hand: &Hand) -> impl Iterator<Item = Measured> {
        let by_hand = &hand.sample.constraints;
        let constraints = self.constraints.iter().zip(&sample.constraints).zip(by_hand);
        let excess = |((constraint, values), hand): ((&Constraint, &Vec<_>), &Vec<_>)| {
            let excess = |value, hand: Option<f64>| constraint.excess(value, hand.unwrap_or(0.0));
            measured(&paired(values, hand, excess))
        };
        constraints.map(excess)
    }
}

impl Hand {
    /// The most by which `sample`, perhaps of some workloads only, surely breaks a guard, or 0.
    pub(crate) fn guarded(&self, sample: &Sample) -> f64 {
        let orders = guard::orders(&self.guards);
        let values = sample.guards.iter().zip(&self.sample.guards);
        let guards = self.guards.iter().zip(values);
        let guards = guards.map(|(guard, (own, hand))| guard.sure_excess(own, hand, orders));
        guards.fold(0.0, f64::max)
    }
}

impl Sample {
    /// How many seeds it is of.
    pub(crate) fn seeds(&self) -> usize {
        self.objectives.first().map_or(0, Vec::len)
    }

    /// Adds what further seeds gave.
    pub(crate) fn extend(&mut self, more: Sample) {
        let Sample { objectives, constraints, guards } = more;
        let own = self.objectives.iter_mut().chain(&mut self.constraints).chain(&mut self.guards);
        let more = objectives.into_iter().chain(constraints).chain(guards);
        own.zip(more).for_each(|(own, more)| own.extend(more));
    }

    /// The mean of each objective over the first `seeds` seeds; `None` if one has no sample.
    pub(crate) fn means(&self, seeds: usize) -> Vec<Option<f64>> {
        let mean = |values: &Vec<Option<f64>>| {
            let all: Option<Vec<f64>> = values.iter().take(seeds).copied().collect();
            all.map(|values| Measured::of(&values).mean)
        };
        self.objectives.iter().map(mean).collect()
    }
}

impl Objective {
    /// How much worse `value` is than the hand-set point's: the logarithm of the ratio where only
    /// ratios mean something, else the difference.
    pub fn score(&self, value: f64, hand: Option<f64>) -> f64 {
        let sign = if self.maximise { -1.0 } else { 1.0 };
        if self.number.metric.is_ratio() {
            let hand = hand.filter(|hand| *hand > 0.0).unwrap_or(1.0);
            return if value > 0.0 { sign * ln(value / hand) } else { f64::NAN };
        }
        sign * (value - hand.unwrap_or(0.0))
    }
}

/// What `score` makes of the value of each seed and the hand-set point's value, which is left out
/// for all seeds if one of them has none. A seed without a sample gives no number.
pub(crate) fn paired(
    values: &[Option<f64>],
    hand: &[Option<f64>],
    score: impl Fn(f64, Option<f64>) -> f64,
) -> Vec<f64> {
    let paired = hand.iter().all(Option::is_some);
    let scores = values.iter().zip(hand).map(|(value, hand)| match value {
        Some(value) => score(*value, hand.filter(|_| paired)),
        None => f64::NAN,
    });
    scores.collect()
}

/// By how much a constraint is broken, with standard errors on top where they are known: of many
/// formulas that are tried, some keep to it by chance. A few seeds, which do not tell the error
/// well, must not shut out what is good, so caution comes with more of them.
fn cautious(excess: Measured, seeds: usize) -> f64 {
    let errors = if seeds < SURE { 1.0 } else { 2.0 };
    excess.mean + errors * excess.variance.unwrap_or(0.0).sqrt()
}

/// Their mean; infinite if one of them is no number.
fn measured(scores: &[f64]) -> Measured {
    if scores.iter().any(|score| !score.is_finite()) {
        return Measured { mean: f64::INFINITY, variance: None };
    }
    Measured::of(scores)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_constraint_holds_with_a_standard_error_to_spare_and_with_more_seeds_with_two() {
        let broken = |excesses: &[f64]| cautious(measured(excesses), excesses.len()) > 0.0;
        assert!(!broken(&[-0.01]), "with one seed it is not known");
        assert!(broken(&[-0.03, 0.01]) && !broken(&[-0.03, -0.01]));
        assert!(broken(&[-0.04, 0.0, -0.04, 0.0]) && !broken(&[-0.04, 0.0, -0.04, -0.02]));
        assert!(!broken(&[0.0; 4]), "as the baseline");
        assert!(broken(&[f64::NAN]), "without a sample");
    }
}
