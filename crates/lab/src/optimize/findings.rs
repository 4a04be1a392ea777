//! What a search found.

use super::number::{Number, Runs};
use super::{LEVEL, Search};
use crate::stats::{Estimate as Spread, estimate};
use crate::study::Paired;
use crate::study::findings::{Mean, mean};
use blis_core::SloClass;
use blis_optimize::Sensitivity;

/// What a search found.
#[derive(Clone, Debug, Default)]
pub struct Findings {
    /// The objectives at the hand-set point, on the seeds of the search.
    pub hand: Vec<Option<f64>>,
    /// All points that were measured, in order.
    pub calls: Vec<Call>,
    /// What is recommended: one point, or the front of several objectives; nothing if no point was
    /// legal.
    pub chosen: Vec<Chosen>,
    /// What it was compared with last, best first.
    pub rivals: Vec<Rival>,
    /// What was not recommended because it breaks a guard on fresh seeds: its call, and the guard.
    pub taken_back: Vec<(usize, String)>,
    /// What the hand-set point refuses and would serve without its gate.
    pub needless_refusals: Vec<Refusal>,
    /// For several objectives, what the front is worth.
    pub front: Option<Front>,
    /// What matters, for each objective; empty if there are too few or too many points to tell.
    pub sensitivities: Vec<Sensitivity>,
    /// The runs on fresh seeds: of the hand-set point, of what is recommended, and of what the
    /// control recommends.
    pub fresh: Vec<Runs>,
    /// What chance would have found.
    pub control: Option<Control>,
}

/// A measured point.
#[derive(Clone, Debug, PartialEq)]
pub struct Call {
    /// The strategy, by its number.
    pub candidate: usize,
    /// All of its parameters.
    pub settings: Vec<(String, String)>,
    /// The mean of each objective over the seeds; absent if a seed has no sample.
    pub means: Vec<Option<f64>>,
    /// How much worse than the hand-set point each objective is, seed by seed: the mean of the
    /// logarithms of ratios, or of differences. Infinite if a seed has no sample.
    pub scores: Vec<f64>,
    /// Whether the constraints were met as measured.
    pub feasible: bool,
    /// How many seeds it was run with: fewer than others if it was surely worse.
    pub seeds: usize,
    /// Why it was not run: its parameters are not legal together.
    pub refused: Option<String>,
}

/// A recommended point.
#[derive(Clone, Debug, PartialEq)]
pub struct Chosen {
    /// Which call it was.
    pub call: usize,
    /// The strategy, by its number.
    pub candidate: usize,
    /// All of its parameters.
    pub settings: Vec<(String, String)>,
    /// Whether it met the constraints.
    pub legal: bool,
}

/// A point that what is recommended was compared with last, on more seeds than others have.
#[derive(Clone, Debug, PartialEq)]
pub struct Rival {
    /// Which call it was.
    pub call: usize,
    /// How many seeds it was run with.
    pub seeds: usize,
    /// By how much its score is worse than that of what is recommended, on the seeds that both were
    /// run with; absent for a single one.
    pub worse: Option<Spread>,
    /// Whether it met the constraints on them.
    pub legal: bool,
}

/// Requests that are refused although they could be served.
#[derive(Clone, Debug, PartialEq)]
pub struct Refusal {
    /// In which workload; absent if the file has no list of them.
    pub workload: Option<String>,
    /// Of which class.
    pub class: SloClass,
    /// Which share of that class.
    pub refused: f64,
}

/// What the front of several objectives is worth.
#[derive(Clone, Debug, PartialEq)]
pub struct Front {
    /// The calls on it.
    pub points: Vec<usize>,
    /// The volume that it dominates, of the scores, below the worst legal call in each objective.
    pub hypervolume: f64,
    /// The volume that the hand-set point alone dominates.
    pub of_hand: f64,
}

/// What chance found with the same budget.
#[derive(Clone, Debug)]
pub struct Control {
    /// All points that were measured, in order.
    pub calls: Vec<Call>,
    /// What is recommended of them.
    pub chosen: Vec<Chosen>,
    /// For several objectives, what their front is worth.
    pub front: Option<Front>,
}

/// A constraint at a recommended point.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Outcome {
    /// The number that is bounded, on fresh seeds.
    pub value: Option<f64>,
    /// The bound, on fresh seeds.
    pub limit: Option<f64>,
    /// Whether it holds on average, and whether that is sure at 95 %.
    pub holds: Option<(bool, bool)>,
}

impl Call {
    /// Whether it was run with fewer than `seeds` seeds because it was surely worse.
    pub fn is_dropped(&self, seeds: usize) -> bool {
        self.refused.is_none() && self.seeds < seeds
    }

    /// Whether it met the constraints and has all numbers.
    pub fn is_usable(&self) -> bool {
        self.feasible && self.scores.iter().all(|score| score.is_finite())
    }
}

impl Findings {
    /// Whether a point that was measured met the constraints.
    pub fn is_feasible(&self) -> bool {
        self.chosen.iter().any(|chosen| chosen.legal)
    }

    /// The least score of the first objective among the legal ones of the first `count` of `calls`,
    /// with its mean.
    pub fn best(calls: &[Call], count: usize) -> Option<(f64, f64)> {
        let legal = calls.iter().take(count).filter(|call| call.is_usable());
        let best = legal.min_by(|a, b| a.scores[0].total_cmp(&b.scores[0]))?;
        Some((best.scores[0], best.means[0]?))
    }

    /// How many fresh seeds there are.
    pub fn fresh_seeds(&self) -> usize {
        self.fresh.first().and_then(|runs| runs.first()).map_or(0, Vec::len)
    }

    /// The values of `number` in cell `cell` of [`Findings::fresh`], one a seed; without those that
    /// have no sample.
    pub fn values(&self, cell: usize, number: &Number) -> Vec<f64> {
        number.values(&self.fresh[cell]).into_iter().flatten().collect()
    }

    /// Their mean, with its interval if there are several; `None` if there is no sample.
    pub fn mean(&self, cell: usize, number: &Number) -> Option<Mean> {
        mean(&self.values(cell, number), &number.metric)
    }

    /// How `number` in cell `cell` compares with that of the hand-set point; `None` for fewer than
    /// two seeds with both.
    pub fn paired(&self, cell: usize, number: &Number) -> Option<Paired> {
        self.between(cell, 0, number)
    }

    /// How `number` in cell `cell` compares with that in cell `other`.
    pub fn between(&self, cell: usize, other: usize, number: &Number) -> Option<Paired> {
        let both = self.beside(cell, other, number);
        let both: Vec<(f64, f64)> =
            both.filter_map(|(value, other)| Some((value?, other?))).collect();
        Paired::of(&both, LEVEL)
    }

    /// `number` with each fresh seed in cell `cell`, and in cell `other`.
    fn beside(
        &self,
        cell: usize,
        other: usize,
        number: &Number,
    ) -> impl Iterator<Item = (Option<f64>, Option<f64>)> {
        number.values(&self.fresh[cell]).into_iter().zip(number.values(&self.fresh[other]))
    }

    /// The number that constraint number `index` bounds, as a multiple of its bound, on fresh seeds
    /// in cell `cell`, with its interval; `None` without samples or for a bound of 0.
    pub fn share_of_bound(&self, search: &Search, index: usize, cell: usize) -> Option<Spread> {
        let constraint = &search.constraints[index];
        let share = self.beside(cell, 0, &constraint.number).map(|(value, hand)| {
            let limit = constraint.limit(if constraint.relative { hand? } else { 0.0 });
            Some(value? / limit).filter(|share| share.is_finite())
        });
        estimate(&share.collect::<Option<Vec<f64>>>()?, LEVEL)
    }

    /// How constraint number `index` fares on fresh seeds in cell `cell` of [`Findings::fresh`].
    pub fn outcome(&self, search: &Search, index: usize, cell: usize) -> Outcome {
        let constraint = &search.constraints[index];
        let number = &constraint.number;
        let both = self.beside(cell, 0, number).map(|(value, hand)| {
            let needed = if constraint.relative { hand? } else { hand.unwrap_or(0.0) };
            Some((value?, needed))
        });
        let both: Option<Vec<(f64, f64)>> = both.collect();
        let excesses: Option<Vec<f64>> = both
            .map(|both| both.iter().map(|&(value, hand)| constraint.excess(value, hand)).collect());
        let found = excesses.and_then(|excesses| estimate(&excesses, LEVEL));
        let hand = self.mean(0, number).map(|(mean, _)| mean);
        Outcome {
            value: self.mean(cell, number).map(|(mean, _)| mean),
            limit: if constraint.relative {
                hand.map(|hand| constraint.limit(hand))
            } else {
                Some(constraint.bound)
            },
            holds: found.map(|found| {
                let holds = found.mean <= 0.0;
                (holds, if holds { found.high <= 0.0 } else { found.low > 0.0 })
            }),
        }
    }
}
