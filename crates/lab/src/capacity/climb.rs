//! Climbing: runs at rungs of the ladder, and the capacity of each seed that follows from them.

use super::axis::Axis;
use super::hunt::{End, Hunt};
use super::{Question, Slo, Subject, Vary};
use crate::design::{PILOT_SEED, Warmup};
use crate::failure::Failure;
use crate::hypothesis::Relation;
use crate::ledger::{Experiment, PlannedCell};
use crate::trial::Runner;
use blis_core::math::pow;
use blis_metrics::Saturation;
use blis_scenario::row::Row;
use blis_scenario::scenario::{Plan, Workload};
use blis_workload::Rate;
use std::collections::{BTreeMap, BTreeSet};

/// Percentiles of fewer requests are those of a handful.
const LEAST_REQUESTS: u64 = 1_000;

/// A subject, a rung and a seed.
pub(super) type Spot = (usize, i64, u64);

/// Machines that cost so many times as much as the cheapest are left out after the pilot.
const MOST_DEAR: f64 = 2.0;

/// Runs at rungs, and what has been found so far.
pub(crate) struct Climb<'a> {
    question: &'a Question,
    subjects: &'a [Subject],
    runner: &'a Runner<'a>,
    pub(super) axis: Axis,
    /// How many times as long as the scenarios say runs are.
    pub(super) stretch: u64,
    /// What is left out of each run, in s; `None`: what the scenarios say.
    pub(super) warmup: Option<f64>,
    /// Where the pilot's hunts have ended.
    pub(super) ends: Vec<End>,
    /// Which subjects cost far more than the cheapest, by the pilot.
    pub(super) dear: Vec<bool>,
    /// What the ledger is told about its trials.
    pub(super) about: Option<Experiment>,
    /// The ledger's numbers of subjects at rungs, which are others after they were forgotten.
    cells: BTreeMap<(usize, i64, usize), usize>,
    epoch: usize,
    plans: BTreeMap<(usize, i64), Plan>,
    rows: BTreeMap<Spot, Row>,
    /// How many requests the longest of the pilot's runs had.
    pub(super) requests: u64,
    /// The runs that were asked for, those included that turned out to be too short.
    pub(super) trials: usize,
}

impl<'a> Climb<'a> {
    /// A climb of `subjects` that has not begun.
    pub(crate) fn new(
        question: &'a Question,
        subjects: &'a [Subject],
        runner: &'a Runner<'a>,
    ) -> Climb<'a> {
        let warmup = match question.warmup {
            Warmup::Seconds(seconds) => Some(seconds),
            Warmup::Given | Warmup::Auto => None,
        };
        Climb {
            question,
            subjects,
            runner,
            axis: Axis::new(question.vary, question.precision),
            stretch: 1,
            warmup,
            ends: Vec::new(),
            dear: vec![false; subjects.len()],
            about: None,
            cells: BTreeMap::new(),
            epoch: 0,
            plans: BTreeMap::new(),
            rows: BTreeMap::new(),
            requests: 0,
            trials: 0,
        }
    }

    /// Finds out, with a seed of its own, where the capacities are about, how long runs must be and
    /// how much of them to leave out; the same for all subjects, so that they can be compared.
    pub(crate) fn pilot(&mut self) -> Result<(), Failure> {
        let mut hunts: Vec<Hunt> =
            self.subjects.iter().map(|subject| Hunt::from(self.start(subject))).collect();
        loop {
            let wanted: Vec<(usize, u64, Hunt)> = hunts
                .iter()
                .enumerate()
                .map(|(number, hunt)| (number, PILOT_SEED, *hunt))
                .collect();
            self.ends = self.hunts(wanted)?;
            let Some(factor) = self.longer() else { break };
            self.stretch *= factor;
            self.forget();
            hunts = self.ends.iter().map(|end| Hunt::near(rung(*end))).collect();
        }
        self.requests = self.pilots().map(|row| row.report.cluster.offered).max().unwrap_or(0);
        if self.question.warmup == Warmup::Auto {
            let cuts = self.pilots().filter_map(|row| row.report.steady.warmup_s);
            // To the millisecond, so that it can be written down.
            let longest = (cuts.fold(0.0, f64::max) * 1e3).ceil() / 1e3;
            self.warmup = Some(longest);
            if longest > 0.0 {
                self.forget();
            }
        }
        Ok(())
    }

    /// Leaves out subjects that cost far more than the cheapest, or take more GPUs than there are:
    /// more seeds would not make them an offer.
    pub(crate) fn leave_out_the_dear(&mut self) {
        let price = |(subject, end): (&Subject, &End)| {
            let rent = subject.rent?;
            let instances = self.axis.value(rung(*end));
            let gpus = instances * f64::from(subject.plan.shared().gpus());
            let there = self.is_found(*end) && subject.has_gpus_for(instances);
            Some(if there { gpus * rent.dollars } else { f64::INFINITY })
        };
        let prices: Vec<Option<f64>> = self.subjects.iter().zip(&self.ends).map(price).collect();
        let cheapest = prices.iter().flatten().copied().fold(f64::INFINITY, f64::min);
        let dear = |price: &Option<f64>| price.is_some_and(|price| price > MOST_DEAR * cheapest);
        self.dear = prices.iter().map(dear).collect();
    }

    /// The capacity of each of the subjects `asked` with each seed; `None` where there is none.
    pub(crate) fn capacities(
        &mut self,
        asked: &[usize],
        seeds: &[u64],
    ) -> Result<Vec<Vec<Option<f64>>>, Failure> {
        let mut wanted = Vec::new();
        for &number in asked {
            let end = self.ends[number];
            if self.is_found(end) && !self.dear[number] {
                wanted.extend(seeds.iter().map(|&seed| (number, seed, Hunt::near(rung(end)))));
            }
        }
        let ends = self.hunts(wanted.clone())?;
        let mut found: BTreeMap<(usize, u64), Option<f64>> = BTreeMap::new();
        for ((number, seed, _), end) in wanted.into_iter().zip(ends) {
            found.insert((number, seed), self.crossing(number, seed, end));
        }
        let of = |&number: &usize| {
            seeds.iter().map(|&seed| found.get(&(number, seed)).copied().flatten()).collect()
        };
        Ok(asked.iter().map(of).collect())
    }

    /// Whether a hunt has found something.
    pub(super) fn is_found(&self, end: End) -> bool {
        match end {
            End::Between(_) => true,
            // One instance is enough: there is nothing harder.
            End::Unlimited(_) => self.question.vary == Vary::Instances,
            End::Never(_) => false,
        }
    }

    /// Runs what is missing of `spots`.
    pub(super) fn visit(&mut self, spots: &BTreeSet<Spot>) -> Result<(), Failure> {
        let missing: Vec<Spot> =
            spots.iter().filter(|spot| !self.rows.contains_key(spot)).copied().collect();
        for &(number, rung, _) in &missing {
            if !self.plans.contains_key(&(number, rung)) {
                let plan = self.plan(&self.subjects[number], rung)?;
                self.plans.insert((number, rung), plan);
            }
        }
        self.name(&missing)?;
        let trials: Vec<(&Plan, u64)> = missing
            .iter()
            .map(|&(number, rung, seed)| (&self.plans[&(number, rung)], seed))
            .collect();
        let rows = self.runner.rows(&trials)?;
        self.trials += missing.len();
        self.rows.extend(missing.into_iter().zip(rows));
        Ok(())
    }

    /// The row of a run that was visited.
    pub(super) fn row(&self, spot: Spot) -> Option<&Row> {
        self.rows.get(&spot)
    }

    /// Tells the ledger, before they run, whose trials these are.
    fn name(&mut self, spots: &[Spot]) -> Result<(), Failure> {
        let (Some(about), Some(ledger)) = (&self.about, self.runner.ledger) else { return Ok(()) };
        let mut cells = Vec::new();
        for &(number, rung, seed) in spots {
            let next = self.cells.len();
            let cell = *self.cells.entry((number, rung, self.epoch)).or_insert(next);
            let value = self.axis.value(rung).to_string();
            cells.push(PlannedCell {
                number: cell,
                levels: vec![self.subjects[number].name.clone(), value],
                plan: &self.plans[&(number, rung)],
                seeds: vec![seed],
            });
        }
        Ok(ledger.record_cells(about, &cells)?)
    }

    /// Lengths or warm-ups have changed: all scenarios are others.
    fn forget(&mut self) {
        self.epoch += 1;
        self.plans.clear();
        self.rows.clear();
    }

    /// Where a subject stands as it is written.
    fn start(&self, subject: &Subject) -> i64 {
        let value = match (self.question.vary, &subject.plan.workload) {
            (Vary::Instances, _) => f64::from(subject.plan.instances),
            (Vary::Rate, Workload::Mix(mix)) => match mix.rate {
                Rate::Steady(rate) => rate,
                Rate::Shaped(_) | Rate::Users(_) => 1.0,
            },
            (Vary::Rate, Workload::Trace { .. }) => 1.0,
        };
        self.axis.rung(value)
    }

    /// The scenario of `subject` at `rung`.
    fn plan(&self, subject: &Subject, rung: i64) -> Result<Plan, Failure> {
        let mut draft = subject.draft.clone();
        let value = self.axis.value(rung).to_string();
        match self.question.vary {
            Vary::Rate => draft.set_amount("--vary rate", "rate", &value),
            Vary::Instances => draft.set("--vary instances", "cluster.instances", &value),
        }
        if self.stretch > 1 {
            if let Workload::Mix(mix) = &subject.plan.workload
                && let Some(requests) = mix.num_requests
            {
                let text = (requests * self.stretch).to_string();
                draft.set_amount("--vary", "num_requests", &text);
            }
            if let Some(horizon) = subject.plan.horizon {
                let micros = horizon.as_nanos() / 1_000 * self.stretch;
                draft.set("--vary", "horizon_us", &micros.to_string());
            }
        }
        if let Some(seconds) = self.warmup {
            draft.set("--warmup", "warmup_s", &seconds.to_string());
        }
        self.runner.settle(draft.resolve()?)
    }

    /// Lets hunts go on side by side until all have ended.
    fn hunts(&mut self, mut hunts: Vec<(usize, u64, Hunt)>) -> Result<Vec<End>, Failure> {
        let mut ends: Vec<Option<End>> = vec![None; hunts.len()];
        while ends.iter().any(Option::is_none) {
            let open = hunts.iter().zip(&ends).filter(|(_, end)| end.is_none());
            let spots: BTreeSet<Spot> =
                open.map(|((number, seed, hunt), _)| (*number, hunt.next(), *seed)).collect();
            self.visit(&spots)?;
            for ((number, seed, hunt), end) in hunts.iter_mut().zip(&mut ends) {
                if end.is_none() {
                    let row = &self.rows[&(*number, hunt.next(), *seed)];
                    *end = hunt.tell(meets(&self.question.slo, row), &self.axis);
                }
            }
        }
        Ok(ends.into_iter().flatten().collect())
    }

    /// The rows at which the pilot's hunts have ended.
    fn pilots(&self) -> impl Iterator<Item = &Row> {
        let spot = |(number, end): (usize, &End)| self.rows.get(&(number, rung(*end), PILOT_SEED));
        self.ends.iter().enumerate().filter(|(_, end)| self.is_found(**end)).filter_map(spot)
    }

    /// Whether it replays a trace: its length is part of the question.
    pub(super) fn is_trace(&self) -> bool {
        self.subjects.iter().any(|one| matches!(one.plan.workload, Workload::Trace { .. }))
    }

    /// By how much runs must be longer; `None` if they are long enough, or cannot be longer.
    fn longer(&self) -> Option<u64> {
        if self.is_trace() {
            return None;
        }
        let fewest = self.pilots().map(|row| row.report.cluster.offered).min()?.max(1);
        let most = self.pilots().map(|row| row.report.cluster.offered).max()?.max(1);
        let short = self.pilots().any(is_short);
        let factor = if fewest < LEAST_REQUESTS {
            LEAST_REQUESTS.div_ceil(fewest).next_power_of_two()
        } else if short {
            2
        } else {
            return None;
        };
        (most * factor <= self.question.most_requests).then_some(factor)
    }

    /// The capacity of a subject with a seed, whose hunt has ended so.
    fn crossing(&self, number: usize, seed: u64, end: End) -> Option<f64> {
        let End::Between(low) = end else {
            return self.is_found(end).then(|| self.axis.value(rung(end)));
        };
        let below = self.axis.value(low);
        if self.question.vary == Vary::Instances {
            return Some(below);
        }
        let room = |rung: i64| self.rows.get(&(number, rung, seed)).and_then(|row| self.room(row));
        // Between rungs the room is about a straight line over the logarithm of the rate. What
        // stops to keep up does so at once.
        let share = match (room(low), room(low + 1)) {
            (Some(here), Some(beyond)) if here >= 0.0 && beyond < 0.0 => here / (here - beyond),
            _ => 0.5,
        };
        let factor = self.axis.value(low + 1) / below;
        Some(below * pow(factor, share.clamp(0.0, 1.0)))
    }

    /// The least room that an SLO leaves in a run.
    fn room(&self, row: &Row) -> Option<f64> {
        let slacks = self.question.slo.iter().map(|slo| slo.slack(row));
        slacks
            .collect::<Option<Vec<f64>>>()
            .map(|all| all.into_iter().fold(f64::INFINITY, f64::min))
    }
}

/// The rung at which a hunt has ended.
pub(super) fn rung(end: End) -> i64 {
    let (End::Between(rung) | End::Unlimited(rung) | End::Never(rung)) = end;
    rung
}

/// Whether a run keeps up and meets all of `slo`.
fn meets(slo: &[Slo], row: &Row) -> bool {
    let holds = |slo: &Slo| {
        slo.slack(row).is_some_and(|slack| match slo.comparison.relation {
            Relation::Below | Relation::Above => slack > 0.0,
            _ => slack >= 0.0,
        })
    };
    is_stable(row) && slo.iter().all(holds)
}

/// Whether the cluster kept up, as far as the run can tell.
pub(super) fn is_stable(row: &Row) -> bool {
    matches!(row.report.saturation, None | Some(Saturation::Stable))
}

/// Whether a run is too short to tell.
pub(super) fn is_short(row: &Row) -> bool {
    matches!(row.report.saturation, None | Some(Saturation::Growing))
        || row.report.steady.is_too_short()
}
