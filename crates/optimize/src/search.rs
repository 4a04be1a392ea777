//! Finds the place that promises most: an even spread of candidates, then climbing from the best.
//!
//! Numbers climb along gradients, whole numbers and choices step by step, in turns, until neither
//! gains. Places that are already known are never proposed.

use crate::acquire::Acquisition;
use crate::history::near;
use crate::kind::{Kind, middle_of};
use crate::lbfgs::{self, Limits};
use crate::sobol::Sobol;
use crate::space::Space;
use blis_core::Dice;
use blis_core::math::float;

/// How hard to search.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Effort {
    /// Candidates spread over the space.
    pub spread: usize,
    /// Candidates around each incumbent.
    pub around: usize,
    /// Candidates that are climbed from.
    pub climbs: usize,
}

/// A search in one space.
pub(crate) struct Search<'a> {
    /// The space.
    pub space: &'a Space,
    /// Places never to propose.
    pub known: Vec<Vec<f64>>,
    /// Places near which good ones are likely.
    pub incumbents: Vec<Vec<f64>>,
    /// How hard to search.
    pub effort: Effort,
    /// Seed of the spread.
    pub seed: u64,
}

#[derive(Clone, Debug)]
struct Candidate {
    unit: Vec<f64>,
    value: f64,
}

/// Whole numbers with more values than this climb along gradients before they step.
const FINE: u64 = 12;

/// Turns of climbing and stepping.
const TURNS: usize = 4;

impl Search<'_> {
    /// The most promising place that is not known; `None` if there is none left.
    pub(crate) fn best(&self, acquisition: &Acquisition, dice: &mut Dice) -> Option<Vec<f64>> {
        let mut candidates: Vec<Candidate> = self
            .candidates(dice)
            .into_iter()
            .filter(|unit| !self.is_known(unit))
            .map(|unit| Candidate { value: acquisition.value(&unit), unit })
            .collect();
        candidates.sort_by(|a, b| b.value.total_cmp(&a.value));
        let mut starts: Vec<Candidate> = Vec::new();
        for candidate in candidates {
            if starts.len() == self.effort.climbs {
                break;
            }
            if !starts.iter().any(|start| close(&start.unit, &candidate.unit)) {
                starts.push(candidate);
            }
        }
        let mut best: Option<Candidate> = None;
        for start in starts {
            let climbed = self.climb(acquisition, start);
            if best.as_ref().is_none_or(|best| climbed.value > best.value) {
                best = Some(climbed);
            }
        }
        best.map(|best| best.unit)
    }

    fn is_known(&self, unit: &[f64]) -> bool {
        self.known.iter().any(|known| near(known, unit))
    }

    fn candidates(&self, dice: &mut Dice) -> Vec<Vec<f64>> {
        let sobol = Sobol::new(self.space.len(), self.seed);
        let mut units: Vec<Vec<f64>> =
            (0..self.effort.spread as u64).map(|index| sobol.point(index)).collect();
        for incumbent in &self.incumbents {
            for step in 0..self.effort.around {
                let reach = [0.2, 0.05, 0.01][step % 3];
                units.push(self.perturbed(incumbent, reach, dice));
            }
        }
        for unit in &mut units {
            self.space.snap(unit);
        }
        units
    }

    /// A neighbour: numbers move by about `reach`, choices and whole numbers now and then by one.
    fn perturbed(&self, unit: &[f64], reach: f64, dice: &mut Dice) -> Vec<f64> {
        let dims = float(self.space.len() as u64);
        let dimensions = self.space.dimensions().iter().zip(unit);
        dimensions
            .map(|(dimension, &u)| {
                let moves = dice.unit() < (2.0 / dims).max(0.3);
                match &dimension.kind {
                    Kind::Choice { options } if moves || u < 0.0 => {
                        middle_of(dice.below(options.len()), options.len())
                    }
                    Kind::Choice { .. } => u,
                    _ if !moves => u,
                    kind => {
                        let cell = kind.levels().map_or(0.0, |levels| 1.0 / float(levels));
                        (u + dice.normal() * reach.max(cell)).clamp(0.0, 1.0)
                    }
                }
            })
            .collect()
    }

    fn climb(&self, acquisition: &Acquisition, start: Candidate) -> Candidate {
        let mut best = start;
        for turn in 0..TURNS {
            let before = best.value;
            let climbed = self.climb_numbers(acquisition, &best.unit);
            if climbed.value > best.value && !self.is_known(&climbed.unit) {
                best = climbed;
            }
            let stepped = self.step_once_each(acquisition, &mut best);
            let gained = best.value - before > 1e-6 * (1.0 + before.abs());
            if !stepped || (turn > 0 && !gained) {
                break;
            }
        }
        best
    }

    /// Follows the gradient of the dimensions that move without steps, or in fine ones.
    fn climb_numbers(&self, acquisition: &Acquisition, unit: &[f64]) -> Candidate {
        let free: Vec<usize> = (0..self.space.len())
            .filter(|&j| {
                let kind = &self.space.dimensions()[j].kind;
                let fine = !kind.is_choice() && kind.levels().is_none_or(|n| n > FINE);
                fine && self.space.exists(unit, j)
            })
            .collect();
        let mut full = unit.to_vec();
        let mut slope = vec![0.0; full.len()];
        let start: Vec<f64> = free.iter().map(|&j| unit[j]).collect();
        let (low, high) = (vec![0.0; free.len()], vec![1.0; free.len()]);
        let limits = Limits { evaluations: 40, gain: 1e-8 };
        if !free.is_empty() {
            let found = lbfgs::minimise(&start, &low, &high, limits, |x, gradient| {
                for (&j, &u) in free.iter().zip(x) {
                    full[j] = u;
                }
                let value = acquisition.value_and_gradient(&full, &mut slope);
                for (slot, &j) in gradient.iter_mut().zip(&free) {
                    *slot = -slope[j];
                }
                if value.is_nan() { f64::INFINITY } else { -value }
            });
            for (&j, &u) in free.iter().zip(&found) {
                full[j] = u;
            }
        }
        self.space.snap(&mut full);
        Candidate { value: acquisition.value(&full), unit: full }
    }

    /// Tries other values of each whole number and choice, one dimension at a time; whether one was
    /// better.
    fn step_once_each(&self, acquisition: &Acquisition, best: &mut Candidate) -> bool {
        let mut gained = false;
        for j in 0..self.space.len() {
            if !self.space.exists(&best.unit, j) {
                continue;
            }
            for u in other_values(&self.space.dimensions()[j].kind, best.unit[j]) {
                let mut unit = best.unit.clone();
                unit[j] = u;
                // A choice may bring dimensions into being: they begin at the middle.
                self.space.snap(&mut unit);
                if near(&unit, &best.unit) || self.is_known(&unit) {
                    continue;
                }
                let value = acquisition.value(&unit);
                if value > best.value {
                    *best = Candidate { unit, value };
                    gained = true;
                }
            }
        }
        gained
    }
}

/// Coordinates of other values: all of a few, else those some steps away.
fn other_values(kind: &Kind, now: f64) -> Vec<f64> {
    let Some(levels) = kind.levels() else { return Vec::new() };
    if kind.is_choice() || levels <= FINE {
        return kind.coordinates();
    }
    let cell = 1.0 / float(levels);
    let mut others = Vec::new();
    let mut steps = 1.0;
    while steps * cell < 0.5 && steps < 300.0 {
        others.extend([now - steps * cell, now + steps * cell]);
        steps *= 2.0;
    }
    others.retain(|u| (0.0..=1.0).contains(u));
    others
}

/// Whether two starts would climb the same hill.
fn close(a: &[f64], b: &[f64]) -> bool {
    let furthest = a.iter().zip(b).map(|(x, y)| (x - y).abs()).fold(0.0, f64::max);
    furthest < 0.02
}

/// A place of the space that is not known, tried at random; `None` if none is found.
pub(crate) fn unknown_place(
    space: &Space,
    is_known: impl Fn(&[f64]) -> bool,
    dice: &mut Dice,
) -> Option<Vec<f64>> {
    let tries = space.size(1 << 12).map_or(1 << 10, |size| 40 * size + 100);
    (0..tries).find_map(|_| {
        let mut unit: Vec<f64> = (0..space.len()).map(|_| dice.unit()).collect();
        space.snap(&mut unit);
        (!is_known(&unit)).then_some(unit)
    })
}
