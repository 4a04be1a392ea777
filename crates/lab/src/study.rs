//! Studies: a question, arms that differ in what is asked about, and the runs that answer it.
//!
//! A study file has a base scenario, arms (patches on it), optionally workloads (patches too) and
//! values to sweep; every combination is a *cell*, and every cell is run with every seed. All cells
//! are sent the same requests for the same seed, as far as they have the same workload. Hypotheses
//! are judged as seeds come in; when all are answered, or no seed is left, the study is done.
//! Everything is checked before anything runs.

mod answer;
pub(crate) mod arms;
mod capacity;
mod cells;
mod compare;
pub(crate) mod file;
pub(crate) mod findings;
pub(crate) mod gates;
pub mod json;
pub(crate) mod lengths;
pub(crate) mod levels;
pub(crate) mod patch;
mod predictions;
mod recorded;
mod setup;

pub use crate::design::{Design, Factor, Warmup};
pub use answer::{Answer, Empty, Place, Ranked, Regret, Unsettled};
pub use arms::Component;
pub use compare::{Sides, compare};
pub use file::{
    Form, form, json_schema, read, read_text, read_with_baseline, scenario_of, warmup_flag,
};
pub use findings::{Capacities, Findings, Mean, Paired};
pub use gates::NeedlessGate;
pub use lengths::Lengths;
pub use setup::Stated;

use crate::capacity::Question;
use crate::design;
use crate::failure::Failure;
use crate::hypothesis::Hypothesis;
use crate::metric::Metric;
use crate::trial::Runner;
use crate::verdict::{ALPHA, Judge};
use blis_scenario::Files;
use blis_scenario::problems::Problems;
use blis_scenario::row::Row;
use blis_scenario::scenario::{Checked, Oracles, Plan};
use blis_scenario::strategy::{self, Choice};
use blis_scenario::yaml::Node;
use levels::{Choices, Tuning};

/// A study, checked and ready to run.
#[derive(Clone, Debug)]
pub struct Study {
    /// What it asks.
    pub question: String,
    /// The names of the factors that its cells differ in, in the order of the file.
    pub factors: Vec<String>,
    /// What its cells differ in.
    pub design: Design,
    /// Its cells, in the order of the file.
    pub cells: Vec<Cell>,
    /// The first seed that each cell is run with; those after it count up.
    pub first_seed: u64,
    /// After how many seeds hypotheses are judged first.
    pub seeds: usize,
    /// The most seeds that each cell is run with.
    pub max_seeds: usize,
    /// How much of each run is left out.
    pub warmup: Warmup,
    /// Whether runs are as long as written, however long it takes to be steady.
    pub as_written: bool,
    /// What to look at.
    pub metrics: Vec<Metric>,
    /// What it predicts.
    pub hypotheses: Vec<Hypothesis>,
    /// What must hold at the capacity of a cell, if that is looked for.
    pub capacity: Option<Question>,
    /// What a reader should know besides: paragraphs of Markdown, with empty lines between them.
    pub discussion: Option<String>,
    /// The parts that arms are put together from.
    pub components: Vec<Component>,
    levels: Vec<Choices>,
    base: Node,
    /// What was read from the files that its scenarios name.
    files: Files,
}

/// A study that was read and checked, whose rates may be shares of saturations that nobody has
/// measured.
#[derive(Clone, Debug)]
pub struct Outline {
    study: Study,
    cells: Vec<Checked>,
}

impl Outline {
    /// The study as far as it is known: rates that are shares of saturation are not.
    pub fn study(&self) -> &Study {
        &self.study
    }

    /// The scenarios of its cells, whose rates may be shares of saturations.
    pub fn cells(&self) -> &[Checked] {
        &self.cells
    }

    /// The cells whose strategies are to be tuned, the one in which each is, and how many points
    /// are tried there.
    pub(crate) fn untuned(&self) -> Vec<Untuned> {
        let Outline { study, .. } = self;
        let Some(arm) = study.design.factor("arm") else { return Vec::new() };
        let untuned = |cell: usize| {
            let mut levels = study.design.levels(cell);
            let Tuning { calls, at } = study.levels[arm].levels[levels[arm]].tuned.as_ref()?;
            for (level, factor) in levels.iter_mut().zip(&study.design.factors) {
                let swept = !matches!(factor.name.as_str(), "arm" | "workload");
                let home = factor.levels.iter().position(|name| Some(name) == at.as_ref());
                *level = home.filter(|_| swept).unwrap_or(*level);
            }
            Some(Untuned { cell, home: study.design.cell(&levels), calls: *calls })
        };
        (0..study.cells.len()).filter_map(untuned).collect()
    }

    /// The scenario of `cell` as it is written.
    pub(crate) fn tree(&self, cell: usize) -> &Node {
        &self.study.cells[cell].tree
    }

    /// Gives `cell` this strategy.
    pub(crate) fn tune(&mut self, cell: usize, strategy: Node) -> Result<(), Problems> {
        let Outline { study, cells } = self;
        let Cell { levels, plan, tuned, tree, .. } = &mut study.cells[cell];
        tree.set(&[strategy::FIELD], strategy.clone());
        cells[cell] = patch::resolve(tree, levels, &study.files)?;
        *plan = cells[cell].plan().clone();
        *tuned = Some(strategy);
        Ok(())
    }

    /// The study, with all rates known, if no arm is to be tuned: see [`crate::tune`].
    ///
    /// # Errors
    /// The failure of the first measurement that failed.
    pub(crate) fn settle(self, runner: &Runner<'_>) -> Result<Study, Failure> {
        let Outline { mut study, cells } = self;
        let plans = runner.settle_all(cells)?;
        for (cell, plan) in study.cells.iter_mut().zip(plans) {
            cell.plan = plan;
        }
        Ok(study)
    }
}

/// A cell whose strategy is to be tuned.
pub(crate) struct Untuned {
    pub(crate) cell: usize,
    /// The cell in which parameters are searched.
    pub(crate) home: usize,
    /// How many points are tried.
    pub(crate) calls: usize,
}

/// One combination of arm, workload and swept values.
#[derive(Clone, Debug)]
pub struct Cell {
    /// The level of each of the study's factors.
    pub levels: Vec<String>,
    /// The scenario.
    pub plan: Plan,
    /// Whether its arm, workload or swept values say what is left out of its runs.
    pub own_warmup: bool,
    /// The strategy with the parameters that were found for it, if its arm is tuned.
    tuned: Option<Node>,
    tree: Node,
}

impl Study {
    /// How many runs it takes at least, with those that find the warm-up.
    pub fn trials(&self) -> usize {
        let pilots = usize::from(self.warmup == Warmup::Auto);
        self.cells.len() * (self.seeds + pilots + self.trials_of_capacity())
    }

    /// What an arm or a workload is there for.
    pub fn tests(&self, factor: &str, level: usize) -> Option<&str> {
        let factor = self.levels.iter().find(|one| one.name == factor)?;
        factor.levels[level].tests.as_deref()
    }

    /// The names of the components that the arm at `level` is put together from.
    pub fn with(&self, level: usize) -> Vec<&str> {
        let names = |arms: &Choices| {
            let with = arms.levels[level].with.clone();
            with.into_iter().map(|index| self.components[index].name.as_str()).collect()
        };
        self.arms().map(names).unwrap_or_default()
    }

    fn arms(&self) -> Option<&Choices> {
        self.levels.iter().find(|factor| factor.name == "arm")
    }

    /// The names of the components of the arm of a cell at these levels.
    pub(crate) fn components_at(&self, levels: &[usize]) -> Vec<&str> {
        let arm = self.design.factor("arm").map(|index| levels[index]);
        arm.map(|arm| self.with(arm)).unwrap_or_default()
    }

    /// The scenario of the cell at these levels, with only those components of its arm whose bits
    /// are set in `mask`.
    pub(crate) fn plan_with(
        &self,
        levels: &[usize],
        mask: u32,
        warmup: Option<f64>,
    ) -> Result<Checked, Problems> {
        let mut tree = self.base.clone();
        for (factor, &level) in self.levels.iter().zip(levels) {
            let mut level = factor.levels[level].clone();
            if factor.name == "arm" {
                let all = level.with.iter().enumerate();
                let kept = all.filter(|(bit, _)| mask >> bit & 1 == 1);
                level.with = kept.map(|(_, &index)| index).collect();
            }
            level.apply(&mut tree, &self.components);
        }
        let Cell { own_warmup: own, tuned, .. } = &self.cells[self.design.cell(levels)];
        if let Some(strategy) = tuned {
            tree.set(&[strategy::FIELD], strategy.clone());
        }
        if let Some(seconds) = warmup.filter(|_| !own) {
            tree.set(&["warmup_s"], Node::from_flag("warmup", &seconds.to_string()));
        }
        let name = format!("subset {mask:b} of the components");
        patch::heard(tree, |tree| patch::resolve(tree, std::slice::from_ref(&name), &self.files))
    }

    /// The scenario of `cell` with this warm-up.
    pub fn plan(&self, cell: usize, warmup: Option<f64>) -> Plan {
        self.cells[cell].plan_from(warmup)
    }

    /// The scenario of `cell` as it is written, where these oracles decide.
    pub(crate) fn plan_foreseen(&self, cell: usize, oracles: Oracles) -> Result<Checked, Problems> {
        let Cell { levels, tree, .. } = &self.cells[cell];
        let mut tree = tree.clone();
        tree.set(&["oracles"], Node::list_from_flag("oracles", &oracles.fields()));
        patch::resolve(&tree, levels, &self.files)
    }

    /// The first seed unless a file says another; those after it count up.
    pub const FIRST_SEED: u64 = design::FIRST_SEED;

    /// The first `count` seeds that it is run with.
    pub fn first_seeds(&self, count: usize) -> Vec<u64> {
        (self.first_seed..).take(count).collect()
    }

    /// Runs it on `runner` until its hypotheses are answered.
    ///
    /// # Errors
    /// The failure of the first run, in their order, that failed.
    pub fn run(&self, runner: &Runner<'_>) -> Result<Findings, Failure> {
        let lengths = self.lengths(runner)?;
        self.judge(lengths, runner)
    }

    /// Runs its cells at these lengths, or longer, until its hypotheses are answered.
    ///
    /// # Errors
    /// The failure of the first run, in their order, that failed.
    pub fn judge(&self, mut lengths: Lengths, runner: &Runner<'_>) -> Result<Findings, Failure> {
        let rows = self.first_look(&mut lengths, runner)?;
        let plans = self.plans(&lengths);
        let subjects = self.subjects()?;
        let mut climb = self.climb(&subjects, runner)?;
        let capacities = vec![Vec::new(); subjects.len()];
        let looks = (self.seeds, self.max_seeds);
        let mut judge = Judge::new(&self.hypotheses, &self.design, looks, ALPHA);
        let mut found = Findings { rows, lengths, verdicts: Vec::new(), capacities };
        while let Some(seeds) = judge.next_look() {
            // Cells that only answered claims are about need no more.
            let asked: Vec<usize> = judge.asked().into_iter().collect();
            let open: Vec<Plan> = asked.iter().map(|&cell| plans[cell].clone()).collect();
            let new = self.first_seeds(seeds).split_off(found.seeds());
            for (&cell, more) in asked.iter().zip(by_plan(&open, &new, runner)?) {
                found.rows[cell].extend(more);
            }
            if let Some(climb) = &mut climb {
                let known = found.capacities.iter().map(Vec::len).max().unwrap_or(0);
                let new = self.first_seeds(seeds).split_off(known);
                for (&cell, more) in asked.iter().zip(climb.capacities(&asked, &new)?) {
                    found.capacities[cell].extend(more);
                }
            }
            judge.look(&self.evidence(&found));
        }
        found.verdicts = judge.finish();
        Ok(found)
    }

    /// The rows of each cell in the seeds of the first look; runs that are too short are made
    /// longer, as far as that is allowed.
    fn first_look(
        &self,
        lengths: &mut Lengths,
        runner: &Runner<'_>,
    ) -> Result<Vec<Vec<Row>>, Failure> {
        let seeds = self.first_seeds(self.seeds);
        let mut rows: Vec<Vec<Row>> = vec![Vec::new(); self.cells.len()];
        // Without pilots one seed tells most of those that are too short, and costs less.
        let first = if self.warmup == Warmup::Auto { seeds.len() } else { 1.min(seeds.len()) };
        for count in [first, seeds.len()] {
            let mut open: Vec<usize> = (0..rows.len()).collect();
            while !open.is_empty() {
                let all = self.plans(lengths);
                runner.watch.compares(&all);
                let plans: Vec<Plan> = open.iter().map(|&cell| all[cell].clone()).collect();
                let new = &seeds[rows[open[0]].len()..count];
                for (&cell, found) in open.iter().zip(by_plan(&plans, new, runner)?) {
                    rows[cell].extend(found);
                }
                open = self.lengthen(lengths, &rows);
                for &cell in &open {
                    rows[cell].clear();
                }
            }
        }
        Ok(rows)
    }

    /// What to leave out of each run as it is written, in s; `None`: what the scenarios say. With
    /// `auto`, one run of each cell tells how long it takes to settle, and the longest counts for
    /// all but those whose arm, workload or swept values say it themselves.
    ///
    /// # Errors
    /// The failure of the first run, in their order, that failed.
    pub fn settle(&self, runner: &Runner<'_>) -> Result<Option<f64>, Failure> {
        let silent = Study { hypotheses: Vec::new(), ..self.clone() };
        Ok(silent.lengths(runner)?.warmup)
    }

    /// The rows of some cells in the first `seeds` seeds, with this warm-up.
    ///
    /// # Errors
    /// The failure of the first run, in their order, that failed.
    ///
    /// # Panics
    /// If there is no such cell.
    pub fn rows(
        &self,
        cells: &[usize],
        seeds: usize,
        warmup: Option<f64>,
        runner: &Runner<'_>,
    ) -> Result<Vec<Vec<Row>>, Failure> {
        let plans: Vec<Plan> = cells.iter().map(|&cell| self.plan(cell, warmup)).collect();
        by_plan(&plans, &self.first_seeds(seeds), runner)
    }
}

impl Cell {
    /// The strategy with the parameters that were found for it, if its arm is tuned.
    pub fn tuned(&self) -> Option<String> {
        let Choice { name, params } = Choice::read(self.tuned.as_ref()?).ok()?;
        let params: Vec<String> =
            params.iter().map(|(name, value)| format!("{name}={value}")).collect();
        Some(if params.is_empty() { name } else { format!("{name}[{}]", params.join(",")) })
    }

    /// Its scenario with this warm-up, unless it has its own.
    pub(crate) fn plan_from(&self, warmup: Option<f64>) -> Plan {
        match warmup.filter(|_| !self.own_warmup) {
            None => self.plan.clone(),
            Some(seconds) => self.plan.warmed(seconds),
        }
    }
}

/// The rows of each of `plans`, by seed.
pub(crate) fn by_plan(
    plans: &[Plan],
    seeds: &[u64],
    runner: &Runner<'_>,
) -> Result<Vec<Vec<Row>>, Failure> {
    let trials: Vec<(&Plan, u64)> =
        plans.iter().flat_map(|plan| seeds.iter().map(move |&seed| (plan, seed))).collect();
    let mut rows = runner.rows(&trials)?.into_iter();
    Ok(plans.iter().map(|_| rows.by_ref().take(seeds.len()).collect()).collect())
}

#[cfg(test)]
mod tests;
