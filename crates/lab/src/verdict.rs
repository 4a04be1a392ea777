//! Verdicts: what runs say about the hypotheses of a study.
//!
//! [`Judge`] looks at the evidence after as many seeds as were fixed beforehand, answers what can
//! be answered and says when to stop. A claim is *confirmed* if the interval of its effect lies
//! where it says, *refuted* if it lies where it denies, *equivalent* if neither and both sides are
//! the same within 2 %, and *inconclusive* otherwise; levels are corrected for the looks and for
//! the number of hypotheses (see [`stats`](crate::stats)). There is no verdict if the mechanism
//! that a claim rests on never did anything, and none on latencies of runs that were too short or
//! overloaded. Every verdict has a sentence that says why.

mod contrast;
mod judge;
mod sentence;

pub(crate) use contrast::{EQUIVALENT, seen};
pub use contrast::{Effect, Scale};
pub use judge::Judge;
pub use sentence::{bound, number};

use crate::design::Design;
use crate::hypothesis::Hypothesis;
use crate::metric::Metric;
use contrast::Part;
use std::collections::BTreeSet;
use std::fmt;

/// The probability that any verdict of a study is wrong.
pub const ALPHA: f64 = 0.05;

/// The cells whose latencies `hypotheses` are about.
pub(crate) fn cells_of_latencies(hypotheses: &[Hypothesis], design: &Design) -> BTreeSet<usize> {
    let parts = hypotheses.iter().flat_map(|one| Part::all(&one.claim, design));
    parts.flat_map(|part| part.latencies_of(design)).collect()
}

/// What was found in the runs so far.
pub trait Evidence {
    /// The value of `metric` in the run of `cell` with seed number `seed`; `None` without a sample.
    fn value(&self, cell: usize, seed: usize, metric: &Metric) -> Option<f64>;

    /// Why the latencies of the runs of `cell` with the first `seeds` seeds say nothing.
    fn doubt(&self, _cell: usize, _seeds: usize) -> Doubt {
        Doubt::default()
    }
}

/// Why the latencies of runs say nothing.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Doubt {
    /// Requests came faster than they were served: the longer the run, the longer they wait.
    pub overloaded: bool,
    /// The runs did not come to a steady state.
    pub too_short: bool,
}

/// What the runs say.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// The claim holds.
    Confirmed,
    /// It does not.
    Refuted,
    /// Neither, and what it compares is the same within 2 %.
    Equivalent,
    /// What it compares is the same in every run: whatever it is about never did anything.
    NoEffect,
    /// It is about latencies of runs that did not come to a steady state.
    TooShort,
    /// It is about latencies of runs in which queues grow without bound.
    Overloaded,
    /// Nobody can tell.
    Inconclusive,
}

impl Outcome {
    /// All there are, in the order of reports.
    pub const ALL: [Outcome; 7] = [
        Outcome::Confirmed,
        Outcome::Refuted,
        Outcome::Equivalent,
        Outcome::NoEffect,
        Outcome::TooShort,
        Outcome::Overloaded,
        Outcome::Inconclusive,
    ];

    /// The word for it.
    pub const fn name(self) -> &'static str {
        match self {
            Outcome::Confirmed => "confirmed",
            Outcome::Refuted => "refuted",
            Outcome::Equivalent => "equivalent within 2 %",
            Outcome::NoEffect => "no effect",
            Outcome::TooShort => "too short",
            Outcome::Overloaded => "overloaded",
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
