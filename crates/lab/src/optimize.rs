//! Searches: which parameters of a strategy, or which strategy, serve a workload best.
//!
//! A search file has a base scenario, optionally workloads (patches on it), strategies whose
//! parameters are free within their ranges, numbers to minimise or maximise, and constraints. Every
//! point is run on every workload with the same seeds, so on the same requests, and compared with
//! the *hand-set point*, the first strategy as it stands, seed by seed. What is recommended is run
//! again on fresh seeds beside the hand-set point: the best of many measured values is a lucky one.
//! What is asked next follows from the file and from what was measured, and finished runs are taken
//! from the ledger, so a search that was killed goes on.

mod conclude;
mod constraint;
pub(crate) mod file;
mod findings;
pub(crate) mod guard;
pub mod json;
mod load;
mod named;
mod number;
mod outside;
pub(crate) mod points;
mod recommend;
pub(crate) mod sample;
pub(crate) mod search;
#[cfg(test)]
mod tests;

pub use blis_optimize::{Influence, Plateau, Sensitivity};
pub use constraint::Constraint;
pub use file::{json_schema, read, read_text};
pub use findings::{Call, Chosen, Control, Findings, Front, Outcome, Refusal, Rival};
pub use guard::{Group, Guard, Guards};
pub use number::{Number, Runs};
pub use outside::Measures;
pub use points::{Candidate, Points};

use crate::failure::Failure;
use crate::trial::Runner;
use blis_metrics::SloTargets;
use blis_scenario::yaml::Node;
use blis_scenario::{Files, Saturations};

/// The probability that an interval of a report leaves out the truth.
pub const LEVEL: f64 = 0.05;

/// A search, checked and ready to run.
#[derive(Clone, Debug)]
pub struct Search {
    /// What it is called: the name of its file.
    pub name: String,
    /// What it asks.
    pub question: String,
    /// What is made small or large.
    pub objectives: Vec<Objective>,
    /// What must hold.
    pub constraints: Vec<Constraint>,
    /// What no recommendation may do.
    pub guards: Guards,
    /// How much it may cost.
    pub budget: Budget,
    /// How many fresh seeds the outcome is run with.
    pub confirm: usize,
    /// What may be chosen.
    pub points: Points,
    /// What every point is run on.
    pub loads: Vec<Load>,
    /// What the user should know about the scenario.
    pub notes: Vec<String>,
    /// What a reader should know besides: paragraphs of Markdown, with empty lines between them.
    pub discussion: Option<String>,
}

/// The base scenario, or what one of the workloads of the file makes of it.
#[derive(Clone, Debug)]
pub struct Load {
    /// The name of the workload; absent if the file has no list of them.
    pub name: Option<String>,
    base: Node,
    /// What is known of saturations.
    saturations: Saturations,
    /// What was read from the files that it names.
    files: Files,
    /// What its classes were promised, once it is settled.
    slo: SloTargets,
}

/// A search that was read and checked, whose rates may be shares of saturations that nobody has
/// measured.
#[derive(Clone, Debug)]
pub struct Outline(pub(crate) Search);

impl Outline {
    /// The search as far as it is known: rates that are shares of saturation are not.
    pub fn search(&self) -> &Search {
        &self.0
    }

    /// The search, with all rates known.
    ///
    /// # Errors
    /// The failure of the first measurement that failed.
    pub fn settle(self, runner: &Runner<'_>) -> Result<Search, Failure> {
        let Outline(mut search) = self;
        let mut notes = Vec::new();
        for load in &mut search.loads {
            notes.push(load.settle(&search.points, runner)?);
        }
        search.notes = file::told_once(&search.loads, &notes);
        Ok(search)
    }
}

/// A number that is made small or large.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Objective {
    /// The number.
    pub number: Number,
    /// Whether more is better.
    pub maximise: bool,
}

/// How much a search may cost, and how it looks.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Budget {
    /// How many points are measured, the hand-set one among them.
    pub calls: usize,
    /// How many seeds each is measured with.
    pub seeds: usize,
    /// Who says which.
    pub engine: Engine,
    /// The engine's own seed.
    pub seed: u64,
    /// How many points are asked for at a time, once the engine learns.
    pub batch: usize,
    /// Whether points that are surely worse after their first seed are run with no others.
    pub racing: bool,
}

/// Who says which points are measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Engine {
    /// Gaussian processes.
    Gp,
    /// Chance.
    Random,
    /// An even spread.
    Sobol,
    /// All points of a grid.
    Grid,
    /// An evolving population, for thousands of cheap points.
    Nsga2,
}

impl Engine {
    /// All engines.
    pub const ALL: [Engine; 5] =
        [Engine::Gp, Engine::Random, Engine::Sobol, Engine::Grid, Engine::Nsga2];

    /// How it is called.
    pub fn name(self) -> &'static str {
        match self {
            Engine::Gp => "gp",
            Engine::Random => "random",
            Engine::Sobol => "sobol",
            Engine::Grid => "grid",
            Engine::Nsga2 => "nsga2",
        }
    }
}
