//! Verdicts: what runs say about the hypotheses of a study.
//!
//! [`Judge`] looks at the evidence after as many seeds as were fixed beforehand, answers what can
//! be answered and says when to stop. A claim is *confirmed* if the interval of its effect lies
//! where it says, *refuted* if it lies where it denies, and *inconclusive* otherwise; levels are
//! corrected for the looks and for the number of hypotheses (see [`stats`](crate::stats)). There
//! is no verdict if the mechanism that a claim rests on never did anything. Every verdict has a
//! sentence that says why.

mod contrast;
mod judge;
mod sentence;

pub(crate) use contrast::seen;
pub use contrast::{Effect, Scale};
pub use judge::Judge;
pub use sentence::{bound, number};

use crate::metric::Metric;
use std::fmt;

/// The probability that any verdict of a study is wrong.
pub const ALPHA: f64 = 0.05;

/// What was found in the runs so far.
pub trait Evidence {
    /// The value of `metric` in the run of `cell` with seed number `seed`; `None` without a sample.
    fn value(&self, cell: usize, seed: usize, metric: &Metric) -> Option<f64>;

    /// What makes the numbers of that run doubtful.
    fn doubt(&self, cell: usize, seed: usize) -> Doubt;
}

/// What makes the numbers of a run doubtful.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Doubt {
    /// Requests came faster than they were served.
    pub overloaded: bool,
    /// The run never came to a steady state, or its mean is not sure by itself.
    pub too_short: bool,
}

/// What the runs say.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// The claim holds.
    Confirmed,
    /// It does not.
    Refuted,
    /// Nobody can tell.
    Inconclusive,
}

impl Outcome {
    /// The word for it.
    pub const fn name(self) -> &'static str {
        match self {
            Outcome::Confirmed => "confirmed",
            Outcome::Refuted => "refuted",
            Outcome::Inconclusive => "inconclusive",
        }
    }
}

/// What is said about a hypothesis.
#[derive(Clone, Debug, PartialEq)]
pub struct Verdict {
    /// What the runs say.
    pub outcome: Outcome,
    /// Why, in one sentence.
    pub why: String,
    /// After how many seeds it was clear, or how many there were.
    pub seeds: usize,
    /// The two-sided level at which it was tested last.
    pub level: f64,
    /// The effects that it claims something about, with intervals at that level.
    pub effects: Vec<Effect>,
    /// Which of them the verdict hangs on: the closest, clearest or least clear one.
    pub telling: usize,
}

impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.outcome.name(), self.why)
    }
}

#[cfg(test)]
mod tests;
