//! The search: seeds until the capacity is known well enough, then the points around it.

use super::climb::{Climb, rung};
use super::curve::Curve;
use super::hunt::End;
use super::{Answer, Findings, Found, Search, Slo, Vary};
use crate::design::{FIRST_SEED, PILOT_SEED};
use crate::failure::Failure;
use crate::ledger::Experiment;
use crate::stats::{Estimate, Sequence, estimate};
use crate::trial::Runner;
use crate::verdict::{ALPHA, number};
use blis_core::math::ln;
use std::collections::{BTreeMap, BTreeSet};

/// Seeds and level at which the search has stopped.
pub(super) struct Stopped {
    pub(super) seeds: Vec<u64>,
    pub(super) level: f64,
    /// By subject and seed.
    values: Vec<Vec<Option<f64>>>,
}

impl Search {
    /// About how many runs it takes at least.
    pub fn trials(&self) -> usize {
        const OF_A_HUNT: usize = 12;
        const OF_A_SEED: usize = 12;
        self.subjects.len() * (OF_A_HUNT + self.question.seeds * OF_A_SEED)
    }

    /// Searches.
    ///
    /// # Errors
    /// The failure of the first run, in their order, that failed.
    pub fn run(&self, runner: &Runner<'_>) -> Result<Findings, Failure> {
        let mut climb = Climb::new(&self.question, &self.subjects, runner);
        climb.about = Some(self.about());
        climb.pilot()?;
        climb.leave_out_the_dear();
        let stopped = self.seeds(&mut climb)?;
        let mut answers = Vec::new();
        for number in 0..self.subjects.len() {
            answers.push(self.answer(number, &mut climb, &stopped)?);
        }
        let ratios = (0..answers.len()).map(|number| ratio(&stopped, number)).collect();
        Ok(Findings {
            answers,
            ratios,
            warmup: climb.warmup,
            stretch: climb.stretch,
            requests: climb.requests,
            trials: climb.trials,
            seeds: stopped.seeds,
            level: stopped.level,
        })
    }

    /// What the ledger is told about its trials.
    fn about(&self) -> Experiment {
        let slo: Vec<&str> = self.question.slo.iter().map(|slo| slo.text.as_str()).collect();
        let vary = self.question.vary.name();
        let question = format!("{} at which {}", extreme(vary), slo.join(" and "));
        let mut lines = vec![question.clone()];
        lines.extend(self.subjects.iter().map(|one| format!("{}\t{}", one.name, one.plan.hash())));
        let mut metrics: Vec<String> = Vec::new();
        for slo in &self.question.slo {
            for reference in slo.comparison.references() {
                let name = reference.metric.name();
                if !metrics.contains(&name) {
                    metrics.push(name);
                }
            }
        }
        Experiment {
            key: Experiment::key_of(&lines),
            name: format!("capacity of {}", self.name),
            question,
            factors: vec!["strategy".to_owned(), vary.to_owned()],
            metrics,
        }
    }

    /// Adds seeds until every capacity is known well enough.
    fn seeds(&self, climb: &mut Climb<'_>) -> Result<Stopped, Failure> {
        let sequence = Sequence::new(self.question.seeds, self.question.max_seeds, 1, ALPHA);
        let mut stopped = Stopped {
            seeds: Vec::new(),
            level: sequence.level(0, 1),
            values: vec![Vec::new(); self.subjects.len()],
        };
        let all: Vec<usize> = (0..self.subjects.len()).collect();
        for (look, &count) in sequence.looks().iter().enumerate() {
            let new = (FIRST_SEED..).take(count).skip(stopped.seeds.len()).collect::<Vec<u64>>();
            let found = climb.capacities(&all, &new)?;
            for (values, found) in stopped.values.iter_mut().zip(found) {
                values.extend(found);
            }
            stopped.seeds.extend(new);
            stopped.level = sequence.level(look, 1);
            let narrow = |values: &Vec<Option<f64>>| {
                let known: Vec<f64> = values.iter().flatten().copied().collect();
                // Half an instance more or less is no other number of instances.
                let least = if self.question.vary == Vary::Instances { 0.5 } else { 0.0 };
                estimate(&known, stopped.level).is_none_or(|found| {
                    let narrow = (self.question.precision * found.mean).max(least);
                    found.high - found.low <= 2.0 * narrow
                })
            };
            if stopped.values.iter().all(narrow) {
                break;
            }
        }
        Ok(stopped)
    }

    fn answer(
        &self,
        number: usize,
        climb: &mut Climb<'_>,
        stopped: &Stopped,
    ) -> Result<Answer, Failure> {
        let values = stopped.values[number].clone();
        let known: Vec<f64> = values.iter().flatten().copied().collect();
        let (end, dear) = (climb.ends[number], climb.dear[number]);
        let mut answer = Answer {
            name: self.subjects[number].name.clone(),
            found: Found::Capacity,
            estimate: estimate(&known, stopped.level),
            values,
            safe: None,
            points: Vec::new(),
            doubts: Vec::new(),
        };
        if dear && climb.is_found(end) {
            answer.found = Found::TooDear { at: climb.axis.value(rung(end)) };
            return Ok(answer);
        }
        if !climb.is_found(end) || known.is_empty() {
            answer.found = self.nothing(number, end, climb)?;
            return Ok(answer);
        }
        let mut curve =
            Curve { slo: &self.question.slo, number, climb, stopped, points: BTreeMap::new() };
        let rungs: Vec<i64> = known.iter().map(|&value| curve.climb.axis.rung(value)).collect();
        let least = rungs.iter().copied().min().unwrap_or_default();
        let most = rungs.iter().copied().max().unwrap_or_default();
        let safe = curve.safe(least, most)?;
        let mean = answer.estimate.map_or(known[0], |found| found.mean);
        curve.shape(mean, safe)?;
        answer.safe = safe.map(|rung| curve.climb.axis.value(rung));
        answer.doubts = curve.doubts(safe);
        answer.points = curve.points.into_values().collect();
        let missing = answer.values.iter().filter(|value| value.is_none()).count();
        if missing > 0 {
            answer.doubts.push(format!("{missing} seeds without a capacity are left out"));
        }
        Ok(answer)
    }

    /// Why there is no capacity.
    fn nothing(&self, subject: usize, end: End, climb: &mut Climb<'_>) -> Result<Found, Failure> {
        let at = climb.axis.value(rung(end));
        if matches!(end, End::Unlimited(_)) {
            return Ok(Found::Unlimited { at });
        }
        let spot = (subject, rung(end), PILOT_SEED);
        climb.visit(&BTreeSet::from([spot]))?;
        let why = |slo: &Slo| {
            let row = climb.row(spot)?;
            let fails = slo.slack(row).is_none_or(|slack| slack < 0.0);
            let found = slo.value(row).map_or_else(
                || "no run has a sample of it".to_owned(),
                |value| format!("it is {}{} there", number(value), slo.unit()),
            );
            fails.then(|| format!("`{}`: {found}", slo.text))
        };
        let why = self.question.slo.iter().find_map(why);
        let why = why.unwrap_or_else(|| "the cluster is overloaded".to_owned());
        Ok(Found::Never { at, why })
    }
}

/// Which of the values is wanted.
fn extreme(vary: &str) -> String {
    if vary == "rate" { "the highest rate".to_owned() } else { format!("the fewest {vary}") }
}

/// The capacity of subject `number` over that of the first.
fn ratio(stopped: &Stopped, number: usize) -> Option<Estimate> {
    if number == 0 {
        return None;
    }
    let pairs = stopped.values[number].iter().zip(&stopped.values[0]);
    let logs: Vec<f64> =
        pairs.filter_map(|(value, first)| Some(ln((*value)? / (*first)?))).collect();
    estimate(&logs, stopped.level).map(Estimate::exp)
}
