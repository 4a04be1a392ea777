//! Capacity: the highest rate, or the fewest instances, at which a scenario meets its SLOs.
//!
//! Every seed has a capacity of its own: the rate at which its run stops to meet the SLOs, found by
//! bisection on a fixed ladder of rates. The requests of a seed are the same at every rate but for
//! the gaps between them, so the numbers of one seed change smoothly with the rate, and those of
//! two strategies belong together. The mean over seeds, with its interval, is the capacity; what is
//! *safe* is the highest rung at which the means over all seeds meet the SLOs with confidence. A
//! run that does not keep up meets nothing. See decision 17.
//!
//! [`Search`] is what `blis capacity` runs; studies ask for the capacities of their cells through
//! the same climb. Rows come from a [`Runner`](crate::Runner), so that a search that was killed
//! goes on where it stopped.

mod axis;
mod climb;
mod curve;
mod findings;
mod hunt;
mod points;
mod search;
mod slo;
#[cfg(test)]
mod tests;

pub(crate) use climb::Climb;
pub use findings::{Answer, Findings, Found, Judged, Point, Standing};
pub use slo::Slo;

use crate::design::Warmup;
use crate::failure::Failure;
use crate::metric::Metric;
use crate::trial::Runner;
use blis_scenario::problem::Problem;
use blis_scenario::scenario::{Checked, Draft, Plan, Workload};
use blis_workload::Rate;
use serde::Deserialize;

/// What is varied.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Vary {
    /// Arrivals a second: the more the better.
    #[default]
    Rate,
    /// Engine instances: the fewer the better.
    Instances,
}

impl Vary {
    /// How it is spelled.
    pub const fn name(self) -> &'static str {
        match self {
            Vary::Rate => "rate",
            Vary::Instances => "instances",
        }
    }

    /// The metric that a search over it finds.
    pub const fn metric(self) -> Metric {
        match self {
            Vary::Rate => Metric::CAPACITY,
            Vary::Instances => Metric::FEWEST_INSTANCES,
        }
    }
}

/// What is asked of every subject.
#[derive(Clone, Debug)]
pub struct Question {
    /// What must hold; all of it.
    pub slo: Vec<Slo>,
    /// What is varied.
    pub vary: Vary,
    /// How many seeds are run at least.
    pub seeds: usize,
    /// The most seeds.
    pub max_seeds: usize,
    /// Half the width, as a share of the capacity, at which its interval is narrow enough.
    pub precision: f64,
    /// How much of each run is left out; `Auto` is found by a pilot run at the capacity.
    pub warmup: Warmup,
    /// Runs that are too short to be steady are made longer, up to this many requests.
    pub most_requests: u64,
}

impl Question {
    /// The question with this SLO and what is usual otherwise.
    pub fn new(slo: Vec<Slo>, vary: Vary) -> Question {
        Question {
            slo,
            vary,
            seeds: 5,
            max_seeds: 20,
            precision: 0.02,
            warmup: Warmup::Auto,
            most_requests: 50_000,
        }
    }
}

/// GPUs that can be rented.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Rent {
    /// An hour of one of them.
    pub dollars: f64,
    /// How many there are, if not as many as wanted.
    pub most: Option<u32>,
}

/// A scenario whose capacity is wanted.
#[derive(Clone, Debug)]
pub struct Subject {
    /// What it is called.
    pub name: String,
    /// The scenario as it stands, with what it varies at the start.
    pub plan: Plan,
    /// What its GPUs cost, if that was asked for.
    pub rent: Option<Rent>,
    draft: Draft,
}

impl Subject {
    /// Whether there are GPUs for so many instances.
    pub fn has_gpus_for(&self, instances: f64) -> bool {
        let gpus = instances * f64::from(self.plan.shared().gpus());
        self.rent.and_then(|rent| rent.most).is_none_or(|most| gpus <= f64::from(most))
    }

    /// The scenario in `draft`, whose plan is `plan`.
    ///
    /// # Errors
    /// If it has nothing that could be varied.
    pub fn new(name: &str, mut draft: Draft, plan: &Plan, vary: Vary) -> Result<Subject, Problem> {
        let subject =
            |draft| Subject { name: name.to_owned(), plan: plan.clone(), rent: None, draft };
        let Workload::Mix(mix) = &plan.workload else {
            if vary == Vary::Instances {
                return Ok(subject(draft));
            }
            let message = "a trace has its own arrivals, whose rate cannot be varied; use `--vary \
                           instances`, or give a workload with a rate";
            return Err(Problem::of_file("workload.trace", message));
        };
        if mix.clients.iter().any(|one| one.sessions.as_ref().is_some_and(|s| s.single)) {
            let message = "clients with a single session have no rate; give a workload whose \
                           sessions begin at a rate";
            return Err(Problem::of_file("workload", message));
        }
        if vary == Vary::Rate && mix.has_users() {
            let message = "users send as fast as they are answered, so there is no rate to vary; \
                           use `--vary instances`, or give a rate";
            return Err(Problem::of_file("workload", message));
        }
        // A share of saturation would grow with the instances.
        if let (Vary::Instances, Rate::Steady(rate)) = (vary, &mix.rate) {
            draft.set_amount("--vary instances", "rate", &rate.to_string());
        }
        Ok(subject(draft))
    }

    /// Whether its rate counts sessions rather than requests.
    pub fn counts_sessions(&self) -> bool {
        matches!(&self.plan.workload, Workload::Mix(mix) if mix.has_sessions())
    }
}

/// A search that was checked, whose rates may be shares of saturations that nobody has measured.
#[derive(Clone, Debug)]
pub struct Outline {
    /// The search as far as it is known.
    pub search: Search,
    /// The scenario of each subject.
    pub checked: Vec<Checked>,
}

impl Outline {
    /// The search, with all rates known.
    ///
    /// # Errors
    /// The failure of the first measurement that failed.
    pub fn settle(self, runner: &Runner<'_>) -> Result<Search, Failure> {
        let Outline { mut search, checked } = self;
        for (subject, checked) in search.subjects.iter_mut().zip(checked) {
            let plan = runner.settle(checked)?;
            let Subject { name, draft, rent, .. } = subject;
            let settled = Subject::new(name, draft.clone(), &plan, search.question.vary)?;
            *subject = Subject { rent: *rent, ..settled };
        }
        Ok(search)
    }
}

/// A search for the capacities of subjects that are compared with the first.
#[derive(Clone, Debug)]
pub struct Search {
    /// What it is called, e.g. in the ledger.
    pub name: String,
    /// What is asked.
    pub question: Question,
    /// Whose capacity is wanted.
    pub subjects: Vec<Subject>,
}
