//! Results in their layouts. Each file here turns a finished run into text; none of them decides
//! anything about the run, and none writes anything by itself.

pub(crate) mod counterfactual;
pub(crate) mod dots;
pub(crate) mod fitness;
pub(crate) mod grid;
pub(crate) mod inversions;
pub(crate) mod json;
pub(crate) mod picture;
pub(crate) mod plot;
pub(crate) mod requests;
pub(crate) mod results;
pub(crate) mod scale;
pub(crate) mod sections;
pub(crate) mod table;
pub(crate) mod timeline;

use blis_scenario::{Plan, RunResult};
use fitness::Fitness;

/// A finished run and all that a report may say about it.
pub(crate) struct Finished<'a> {
    /// The scenario.
    pub(crate) plan: &'a Plan,
    /// The run.
    pub(crate) result: &'a RunResult,
    /// Seconds on the clock; absent where only the simulation matters.
    pub(crate) wall_seconds: Option<f64>,
    /// CPU seconds.
    pub(crate) cpu_seconds: Option<f64>,
    /// Priority inversions, where they were counted.
    pub(crate) inversions: Option<u64>,
    /// The score, if one was asked for.
    pub(crate) fitness: Option<Fitness>,
}
