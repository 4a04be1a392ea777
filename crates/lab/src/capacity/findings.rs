//! What a search for capacities has found.

use crate::stats::Estimate;
use crate::verdict::Effect;

/// What a search has found.
#[derive(Clone, Debug)]
pub struct Findings {
    /// For each subject, in their order.
    pub answers: Vec<Answer>,
    /// The capacity of each subject over that of the first, seed by seed; `None` for the first, and
    /// where one of them has none.
    pub ratios: Vec<Option<Estimate>>,
    /// The seeds.
    pub seeds: Vec<u64>,
    /// How much of each run was left out, in s, if not what the scenarios say.
    pub warmup: Option<f64>,
    /// How many times as long as the scenarios say runs were.
    pub stretch: u64,
    /// How many requests a run at the capacity had.
    pub requests: u64,
    /// How many runs it took.
    pub trials: usize,
    /// The probability that an interval leaves out the truth.
    pub level: f64,
}

/// What was found about one subject.
#[derive(Clone, Debug)]
pub struct Answer {
    /// What it is called.
    pub name: String,
    /// Whether there is a capacity.
    pub found: Found,
    /// The capacity of each seed.
    pub values: Vec<Option<f64>>,
    /// Their mean, with its interval.
    pub estimate: Option<Estimate>,
    /// The hardest rung at which the SLOs hold with confidence.
    pub safe: Option<f64>,
    /// What was seen at rungs with all seeds, easiest first.
    pub points: Vec<Point>,
    /// What whoever reads it must know.
    pub doubts: Vec<String>,
}

/// Whether there is a capacity.
#[derive(Clone, Debug, PartialEq)]
pub enum Found {
    /// There is.
    Capacity,
    /// The SLOs are not even met here.
    Never {
        /// The easiest value that was tried.
        at: f64,
        /// What is not met there.
        why: String,
    },
    /// By one run it takes about so much, which costs far more than the cheapest does.
    TooDear {
        /// How much.
        at: f64,
    },
    /// They are met even here.
    Unlimited {
        /// The hardest value that was tried.
        at: f64,
    },
}

/// What was seen at one rung.
#[derive(Clone, Debug)]
pub struct Point {
    /// The rate, or the number of instances.
    pub value: f64,
    /// What is said about each SLO.
    pub slo: Vec<Judged>,
    /// How many runs there are.
    pub runs: usize,
    /// How many of them did not keep up.
    pub unstable: usize,
    /// How many of them were too short to be steady.
    pub short: usize,
    /// The share of the offered requests that were completed.
    pub completed: Option<f64>,
    /// What all that comes to.
    pub standing: Standing,
}

/// What is said about an SLO.
#[derive(Clone, Debug)]
pub struct Judged {
    /// Whether it holds; `None`: nobody can tell.
    pub holds: Option<bool>,
    /// The number that is bounded, with its interval.
    pub effect: Effect,
}

/// How a rung is judged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Standing {
    /// All SLOs hold with confidence, and all runs kept up and were long enough.
    Meets,
    /// An SLO does not hold, with confidence.
    Misses,
    /// Most runs did not keep up.
    Saturated,
    /// Nobody can tell.
    Unclear,
    /// All SLOs hold, but more than a quarter of the runs were too short to be steady.
    TooShort,
}

impl Standing {
    /// The word for it.
    pub const fn name(self) -> &'static str {
        match self {
            Standing::Meets => "meets",
            Standing::Misses => "misses",
            Standing::Saturated => "overloaded",
            Standing::Unclear => "unclear",
            Standing::TooShort => "too short",
        }
    }
}

impl Point {
    /// Whether the cluster kept up in all runs.
    pub fn is_stable(&self) -> bool {
        self.unstable == 0
    }
}
