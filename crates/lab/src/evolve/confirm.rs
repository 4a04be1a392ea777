//! What the best is worth: on workloads and seeds that nothing was chosen by, beside others.

use super::{Evolution, Raced, set};
use crate::explain::headroom;
use crate::failure::Failure;
use crate::optimize::guard::{self, Guard};
use crate::optimize::points::Points;
use crate::optimize::search::by_point;
use crate::optimize::{self, Budget, Load, Runs, Search};
use crate::study::lengths::load;
use crate::study::levels::Level;
use crate::trial::Runner;
use blis_metrics::Saturation;
use blis_scenario::pool;
use blis_scenario::row::Row;
use blis_scenario::scenario::{Oracles, Plan};
use blis_scenario::strategy;
use blis_scenario::yaml::Node;

/// So many of the best are confirmed.
const CONFIRMED: usize = 3;
/// Seeds of each point when a reference is tuned.
const TUNING_SEEDS: usize = 2;

/// What an evolution found.
#[derive(Clone, Debug)]
pub struct Findings {
    /// All that was bred.
    pub raced: Raced,
    /// The entrant that is recommended; absent if none keeps to the guards.
    pub winner: Option<usize>,
    /// Entrants that do harm on held-out workloads, with the constraint or guard that they break.
    pub taken_back: Vec<(usize, String)>,
    /// Entrants whose latencies on a held-out workload grow with the runs, and the workload.
    pub overloaded: Vec<(usize, String)>,
    /// The held-out workloads on which the runs of what is recommended are too short to tell.
    pub growing: Vec<String>,
    /// The runs on held-out workloads and fresh seeds.
    pub held_out: optimize::Findings,
    /// What each cell of them is.
    pub cells: Vec<Cell>,
}

/// What was run on held-out workloads.
#[derive(Clone, Debug, PartialEq)]
pub struct Cell {
    /// What it is called.
    pub name: String,
    /// What sort it is of.
    pub sort: CellSort,
}

/// What sort of strategy a cell has.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CellSort {
    /// The baseline.
    Baseline,
    /// An entrant; the first of them is what is recommended.
    Bred(usize),
    /// Another strategy, with its parameters if they were tuned.
    Reference(Option<String>),
    /// What knows more than a policy can, or the floor that no policy goes below.
    Bound,
}

/// Runs the best of `raced` beside the baseline, the references and bounds.
pub(super) fn confirm(
    evolution: &Evolution,
    raced: Raced,
    runner: &Runner<'_>,
) -> Result<Findings, Failure> {
    let (test, mut cells) = (&evolution.test, Vec::new());
    let mut add = |name: String, sort| cells.push(Cell { name, sort });
    let mut plans = vec![test.plans_by_hand()?];
    add(format!("baseline {}", test.points.candidates[0].name()), CellSort::Baseline);
    for (place, &one) in raced.finalists.iter().take(CONFIRMED).enumerate() {
        plans.push(evolution.plans(&raced.entrants[one].genome, &test.loads)?);
        add(format!("bred {}", place + 1), CellSort::Bred(one));
    }
    let bred = plans.len();
    for reference in &evolution.references {
        let (tuned, found) = evolution.reference(reference, runner)?;
        plans.push(found);
        add(reference.name.clone(), CellSort::Reference(tuned));
    }
    if let Some(found) = evolution.foreseen(&raced) {
        plans.push(found);
        add("oracle router".to_owned(), CellSort::Bound);
    }
    let seeds = test.fresh_seeds();
    let labels: Vec<_> = cells.iter().map(|cell| cell.name.clone()).enumerate().collect();
    test.note(runner, &labels, &plans, &seeds)?;
    // What is recommended is audited, whether it is known already or not.
    let audited = Runner { audit: true, ..runner.clone() };
    let mut fresh = by_point(&plans[..bred], &seeds, &audited)?;
    fresh.extend(by_point(&plans[bred..], &seeds, runner)?);
    if headroom::has_floor(&test.objectives[0].number.metric) {
        fresh.push(floors(&plans[0], &seeds, runner)?);
        cells.push(Cell { name: "floor".to_owned(), sort: CellSort::Bound });
    }
    let held_out = optimize::Findings { fresh, ..optimize::Findings::default() };
    let (taken_back, overloaded, growing) = (Vec::new(), Vec::new(), Vec::new());
    let mut findings =
        Findings { raced, winner: None, taken_back, overloaded, growing, held_out, cells };
    findings.choose(test, &plans);
    Ok(findings)
}

impl Findings {
    /// Chooses the best that keeps up with held-out workloads and to constraints and guards there,
    /// and puts it first. Constraints that fail by no more than chance are let pass.
    fn choose(&mut self, test: &Search, plans: &[Vec<Plan>]) {
        let guards = test.guards_on(&self.held_out.fresh[0]);
        let orders = guard::orders(&guards);
        for at in 1..self.cells.len() {
            let CellSort::Bred(one) = self.cells[at].sort else { break };
            let fresh = &self.held_out.fresh;
            let harms = |it: &&Guard| {
                it.sure_excess(&it.values(&fresh[at]), &it.values(&fresh[0]), orders) > 0.0
            };
            let fails = |&index: &usize| {
                self.held_out.outcome(test, index, at).holds == Some((false, true))
            };
            let constraint = (0..test.constraints.len()).find(fails);
            let broken = constraint.map(|index| &test.constraints[index].text);
            match broken.or_else(|| guards.iter().find(harms).map(|guard| &guard.text)) {
                Some(text) => self.taken_back.push((one, text.clone())),
                None if !self.raced.entrants[one].legal => {}
                None => {
                    let piling = |least| piling(test, &plans[at], &fresh[at], least);
                    if let Some(load) = piling(Saturation::Overloaded).pop() {
                        self.overloaded.push((one, load));
                        continue;
                    }
                    (self.winner, self.growing) = (Some(one), piling(Saturation::Growing));
                    self.held_out.fresh[1..=at].rotate_right(1);
                    self.cells[1..=at].rotate_right(1);
                    return;
                }
            }
        }
    }
}

/// The workloads on which requests pile up in `runs` like this or worse, if latencies are measured:
/// those grow with the length of the runs.
fn piling(test: &Search, plans: &[Plan], runs: &Runs, least: Saturation) -> Vec<String> {
    let latency = test.objectives[0].number.metric.is_latency();
    let grows =
        |at: &usize| plans[*at].steady_requests().is_some() && load(&runs[*at]) >= Some(least);
    let name = |at: usize| test.loads[at].name.clone().unwrap_or_else(|| "base".to_owned());
    (0..runs.len()).filter(|_| latency).filter(grows).map(name).collect()
}

impl Evolution {
    /// The scenarios of `reference` on held-out workloads, and its parameters if it is to be tuned:
    /// on the training workloads, for the same objective, under the same guards.
    fn reference(
        &self,
        reference: &Level,
        runner: &Runner<'_>,
    ) -> Result<(Option<String>, Vec<Plan>), Failure> {
        let plans = |strategy: Option<&Node>| {
            let plan = |load: &Load| {
                load.plan_after(|tree| {
                    reference.apply(tree, &[]);
                    if let Some(strategy) = strategy {
                        strategy::choose(tree, strategy.clone());
                    }
                })
            };
            self.test.loads.iter().map(plan).collect::<Result<Vec<Plan>, Failure>>()
        };
        let (Some(tuning), Some((_, named))) = (&reference.tuned, reference.own.first()) else {
            return Ok((None, plans(None)?));
        };
        let points = Points::read(&Node::empty(), Some(named), None)?;
        let budget = Budget { calls: tuning.calls, seeds: TUNING_SEEDS, ..self.train.budget };
        let name = format!("{}-{}", self.train.name, reference.name);
        let train = self.train.clone();
        let search = Search { name, points, budget, confirm: TUNING_SEEDS, ..train };
        let found = search.run(runner, false)?;
        let Some(best) = found.chosen.first() else { return Ok((None, plans(None)?)) };
        let settings = best.settings.iter().map(|(name, value)| format!("{name}={value}"));
        let tree = search.points.tree(&Node::empty(), best.candidate, &best.settings);
        let tuned = settings.collect::<Vec<_>>().join(", ");
        Ok((Some(tuned), plans(tree.field(strategy::FIELD))?))
    }

    /// The scenarios of the best with an oracle that routes; `None` where there can be none.
    fn foreseen(&self, raced: &Raced) -> Option<Vec<Plan>> {
        let genome = &raced.entrants[*raced.finalists.first()?].genome;
        let settings = genome.settings(&self.space, &self.knowledge);
        let oracles = Oracles { routing: true, ..Oracles::NONE }.fields();
        let plan = |load: &Load| {
            let foreseen = load.plan_after(|tree| {
                set(tree, &settings);
                tree.set(&["oracles"], Node::list_from_flag("oracles", &oracles));
            });
            foreseen.ok()
        };
        self.test.loads.iter().map(plan).collect()
    }
}

/// The floors below the runs of `plans`, as runs.
fn floors(plans: &[Plan], seeds: &[u64], runner: &Runner<'_>) -> Result<Runs, Failure> {
    let of = |plan: &Plan| {
        let floor =
            |&seed: &u64| Ok(Row { report: headroom::floor(plan, seed)?, ..Row::default() });
        pool::each(runner.jobs, seeds, floor)?.into_iter().collect()
    };
    plans.iter().map(of).collect()
}
