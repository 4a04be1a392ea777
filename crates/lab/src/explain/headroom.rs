//! What is left on the table: an arm with oracles in place of its policies, and the floor below.
//!
//! Two different things, which must not be mixed up. What an arm with oracles *reaches* is what an
//! informed policy has reached: somebody cleverer might do better. The *floor* is what no policy
//! can go below; it may be out of reach for everybody. What is left on the table is between the
//! two.

use crate::failure::Failure;
use crate::metric::Metric;
use crate::stats::{Estimate, estimate};
use crate::study::{Findings, Paired, Study, by_plan};
use crate::trial::Runner;
use blis_core::SloClass;
use blis_core::math::float;
use blis_metrics::{Latency, Report, Section};
use blis_scenario::Trial;
use blis_scenario::pool;
use blis_scenario::problems::Problems;
use blis_scenario::row::Row;
use blis_scenario::run::requests;
use blis_scenario::scenario::{Checked, Oracles, Plan};
use blis_sim::Floors;

/// Intervals leave out the truth with this probability, each by itself.
const LEVEL: f64 = 0.05;
const CLASSES: usize = SloClass::ALL.len();

/// An arm with each of the oracles and with all of them, checked and ready to run.
#[derive(Clone, Debug)]
pub struct Headroom {
    arm: Plan,
    informed: Vec<(Oracles, Checked)>,
    seeds: Vec<u64>,
}

/// What was reached, and the floor.
#[derive(Clone, Debug)]
pub struct Reached {
    /// The oracles of each row; none for the arm itself, which is the first.
    pub oracles: Vec<Oracles>,
    findings: Findings,
    /// The floor of each seed, as far as it has numbers.
    floors: Vec<Report>,
}

/// What an arm with oracles reaches.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Gap {
    /// Which decisions they take.
    pub oracles: Oracles,
    /// The mean over seeds.
    pub mean: f64,
    /// How it compares with the arm, seed by seed; absent for fewer than two seeds.
    pub change: Option<Paired>,
}

impl Headroom {
    /// That of the arm of `study` in `cell`; `None` if oracles decide there already.
    ///
    /// # Errors
    /// If the arm makes no legal scenario with oracles.
    pub fn of(
        study: &Study,
        cell: usize,
        seeds: usize,
        warmup: Option<f64>,
    ) -> Result<Option<Headroom>, Problems> {
        let arm = study.plan(cell, warmup);
        if arm.oracles.any() {
            return Ok(None);
        }
        // With one instance there is nothing to route.
        let routing = arm.instances > 1;
        let one = [
            Oracles { routing, ..Oracles::NONE },
            Oracles { evict: true, ..Oracles::NONE },
            Oracles { scheduler: true, ..Oracles::NONE },
            Oracles { routing, ..Oracles::ALL },
        ];
        let mut informed = Vec::new();
        for oracles in one.into_iter().filter(|oracles| oracles.any()) {
            informed.push((oracles, study.plan_foreseen(cell, oracles)?));
        }
        Ok(Some(Headroom { arm, informed, seeds: study.first_seeds(seeds) }))
    }

    /// How many runs it takes.
    pub fn trials(&self) -> usize {
        self.seeds.len() * self.informed.len()
    }

    /// Runs it, where `arm` has the rows of the arm itself.
    ///
    /// # Errors
    /// The failure of the first run, in their order, that failed.
    pub fn run(&self, arm: &[Row], runner: &Runner<'_>) -> Result<Reached, Failure> {
        let (mut oracles, mut plans) = (Vec::new(), Vec::new());
        for (one, checked) in &self.informed {
            oracles.push(*one);
            let plan = runner.settle(checked.clone())?;
            plans.push(plan.warmed(self.arm.warmup.as_secs_f64()));
        }
        let mut rows = vec![arm.to_vec()];
        rows.extend(by_plan(&plans, &self.seeds, runner)?);
        let floors = pool::each(runner.jobs, &self.seeds, |&seed| floor(&self.arm, seed))?;
        Ok(Reached {
            oracles: std::iter::once(Oracles::NONE).chain(oracles).collect(),
            findings: Findings { rows, ..Findings::default() },
            floors: floors.into_iter().collect::<Result<_, _>>()?,
        })
    }
}

impl Reached {
    /// What is reached of `metric`, the arm first; `None` if it has no sample somewhere.
    pub fn gaps(&self, metric: &Metric) -> Option<Vec<Gap>> {
        let gap = |(row, &oracles): (usize, &Oracles)| {
            let (mean, _) = self.findings.mean(row, metric)?;
            let change = self.findings.paired(row, 0, metric, LEVEL).filter(|_| row > 0);
            Some(Gap { oracles, mean, change })
        };
        self.oracles.iter().enumerate().map(gap).collect()
    }

    /// The interval of what is reached of `metric` in a row; absent for fewer than two seeds.
    pub fn interval(&self, row: usize, metric: &Metric) -> Option<Estimate> {
        estimate(&self.findings.values(row, metric), LEVEL)
    }

    /// What no policy can go below, for numbers that have a floor; absent for fewer than two seeds.
    pub fn floor(&self, metric: &Metric) -> Option<Estimate> {
        let values: Option<Vec<f64>> = self
            .floors
            .iter()
            .filter(|_| has_floor(metric))
            .map(|report| metric.of(report))
            .collect();
        estimate(&values?, LEVEL)
    }

    /// The hit rate of an endless cache that all instances share: a mean over seeds.
    pub fn endless_hit_rate(&self) -> Option<f64> {
        let values: Option<Vec<f64>> =
            self.floors.iter().map(|report| report.kv.hit_rate).collect();
        let values = values.filter(|values| !values.is_empty())?;
        Some(values.iter().sum::<f64>() / float(values.len() as u64))
    }

    /// Whether the arm, and the arm with oracles, have served whatever was sent. If not, their
    /// latencies are of the others, and the floor is of all.
    pub fn all_served(&self) -> bool {
        let all = |row: &Row| row.report.cluster.completed == row.report.cluster.offered;
        self.findings.rows.iter().flatten().all(all)
    }
}

/// Whether there is something that no policy can go below.
pub(crate) fn has_floor(metric: &Metric) -> bool {
    let name = metric.name();
    let what = name.rsplit('.').next().unwrap_or_default();
    what.starts_with("ttft_") || what.starts_with("e2e_")
}

/// The floor of a run, as a report with latencies and the hit rate of an endless cache.
pub(crate) fn floor(plan: &Plan, seed: u64) -> Result<Report, Failure> {
    let trial = Trial::new(seed);
    let mut floors = Floors::new(plan.engine, plan.gateway, plan.latency.clone());
    let mut latencies: [[Vec<u64>; 2]; CLASSES + 1] = Default::default();
    let (mut cached, mut prompted) = (0, 0);
    let most = u64::from(plan.engine.total_kv_blocks) * u64::from(plan.engine.block_size);
    requests(plan, trial, |request| {
        // The last generated token is never written to the KV cache.
        let (input, output) = (request.content.prompt_tokens(), request.output_tokens);
        if u64::from(input) + u64::from(output) - 1 > most {
            // It is refused, whatever the policy.
            return;
        }
        let floor = floors.next(request);
        if request.arrival < plan.warmup {
            return;
        }
        for group in [CLASSES, request.class.index()] {
            latencies[group][0].push(floor.ttft.as_nanos());
            latencies[group][1].push(floor.e2e.as_nanos());
        }
        cached += u64::from(floor.cached_tokens);
        prompted += u64::from(input);
    })?;
    let section = |[ttft, e2e]: &[Vec<u64>; 2]| Section {
        ttft: Latency::of_nanos(ttft),
        e2e: Latency::of_nanos(e2e),
        ..Section::default()
    };
    let of_class = |class: SloClass| (class, section(&latencies[class.index()]));
    let mut report = Report {
        cluster: section(&latencies[CLASSES]),
        classes: SloClass::ALL.map(of_class).into(),
        ..Report::default()
    };
    report.kv.hit_rate = (prompted > 0).then(|| float(cached) / float(prompted));
    Ok(report)
}
