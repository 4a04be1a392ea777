//! Evolution: strategies whose formulas are bred, raced on training workloads, and confirmed.
//!
//! The file is that of a search without parameters, with what may be bred instead, and with
//! workloads that are held out. Every genome is run on every training workload with the same seeds
//! and compared with the *baseline* seed by seed, as the points of a search are, under the same
//! constraints and guards. What is best there runs on workloads and seeds that nothing was chosen
//! by, audited, beside the baseline, references and an oracle. What is bred next follows from the
//! file and from rows, and finished runs are taken from the ledger, so an evolution that was killed
//! goes on.

mod confirm;
mod file;
mod race;
#[cfg(test)]
mod tests;

pub use blis_evolve::{Budget, Entrant, Raced};
pub use confirm::{Cell, CellSort, Findings};
pub use file::{read, read_text};

use crate::failure::Failure;
use crate::optimize::{self, Load, Search};
use crate::study::levels::Level;
use crate::trial::Runner;
use blis_evolve::{Genome, Space};
use blis_scenario::scenario::Plan;
use blis_scenario::yaml::Node;

/// An evolution, checked.
#[derive(Clone, Debug)]
pub struct Evolution {
    /// What is measured on training workloads; its hand-set point is the baseline.
    pub train: Search,
    /// The same on workloads that are held out.
    pub test: Search,
    /// What may be bred.
    pub space: Space,
    /// How hits are known: `precise` or `approximate`.
    pub knowledge: String,
    /// How much it may cost.
    pub budget: Budget,
    /// What the best is compared with besides the baseline.
    references: Vec<Level>,
}

/// An evolution that was read and checked, whose rates may be shares of saturations that nobody has
/// measured.
#[derive(Clone, Debug)]
pub struct Outline(Evolution);

impl Outline {
    /// The evolution as far as it is known.
    pub fn evolution(&self) -> &Evolution {
        &self.0
    }

    /// The evolution, with all rates known.
    ///
    /// # Errors
    /// The failure of the first measurement that failed.
    pub fn settle(self, runner: &Runner<'_>) -> Result<Evolution, Failure> {
        let Outline(evolution) = self;
        let train = optimize::Outline(evolution.train).settle(runner)?;
        let test = optimize::Outline(evolution.test).settle(runner)?;
        Ok(Evolution { train, test, ..evolution })
    }
}

impl Evolution {
    /// Breeds, races and confirms.
    ///
    /// # Errors
    /// The failure of the first run, in their order, that failed.
    pub fn run(&self, runner: &Runner<'_>) -> Result<Findings, Failure> {
        let raced = race::run(self, runner)?;
        confirm::confirm(self, raced, runner)
    }

    /// What is compared with the best besides the baseline.
    pub fn references(&self) -> Vec<&str> {
        self.references.iter().map(|reference| reference.name.as_str()).collect()
    }

    /// What entrant `one` sets in a scenario, as a strategy file has it.
    pub fn set(&self, one: usize, findings: &Findings) -> Node {
        let mut tree = Node::empty();
        set(&mut tree, &findings.raced.entrants[one].genome.settings(&self.space, &self.knowledge));
        tree
    }

    /// About how many runs it takes.
    pub fn trials(&self) -> usize {
        let (looks, bred) = self.budget.cost();
        let most = self.train.most_seeds();
        let tuned =
            self.references.iter().filter_map(|it| it.tuned.as_ref()).map(|it| 3 * it.calls);
        let train = self.train.loads.len() * (bred + 24 * most + tuned.sum::<usize>());
        looks + train + self.test.loads.len() * self.test.confirm * (5 + self.references.len())
    }

    /// `genome` in one line.
    pub fn text(&self, genome: &Genome) -> String {
        genome.text(&self.space)
    }

    /// The scenarios of `genome` on `loads`.
    fn plans(&self, genome: &Genome, loads: &[Load]) -> Result<Vec<Plan>, Failure> {
        let settings = genome.settings(&self.space, &self.knowledge);
        loads.iter().map(|load| load.plan_after(|tree| set(tree, &settings))).collect()
    }
}

/// Sets in `tree` what a genome sets.
fn set(tree: &mut Node, settings: &[(Vec<String>, String)]) {
    for (path, text) in settings {
        let steps: Vec<&str> = path.iter().map(String::as_str).collect();
        tree.set(&steps, Node::from_flag("evolve", text));
    }
}
