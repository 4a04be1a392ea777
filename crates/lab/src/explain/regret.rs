//! What routing decisions were worth: a sample of them taken otherwise, over the seeds of an arm.
//!
//! Two questions, with two answers. *Was the choice right?* Sent to the runner-up instead, when
//! would the request and all others have had their first tokens? That is a mean with a sign: above
//! 0, the choice was right on the whole. *How much would hindsight have gained?* At the best of the
//! places tried, if it was better: never below 0, luck included, because the best of several runs
//! is also the luckiest.

use crate::counterfactual::{self, Options, Regret, Tried};
use crate::failure::Failure;
use crate::stats::{Estimate, estimate};
use blis_core::math::float;
use blis_scenario::Trial;
use blis_scenario::scenario::Plan;
use blis_sim::Observer;
use std::collections::BTreeMap;

/// Intervals leave out the truth with this probability, each by itself.
const LEVEL: f64 = 0.05;

/// What a sample of the decisions of an arm was worth.
#[derive(Clone, Debug, PartialEq)]
pub struct Decisions {
    /// Decisions of all runs.
    pub taken: usize,
    /// All that were tried otherwise.
    pub all: Worth,
    /// By what made the difference, the most frequent first.
    pub reasons: Vec<(String, Worth)>,
}

/// What some decisions were worth. Latencies are in ms a decision.
#[derive(Clone, Debug, PartialEq)]
pub struct Worth {
    /// How many were tried otherwise.
    pub tried: usize,
    /// Share of them for which a place that was tried was better for the request.
    pub better_elsewhere: f64,
    /// How much later the request's first token comes at the runner-up.
    pub own: Option<Mean>,
    /// How much later the first tokens of all others come, added up, if it goes there.
    pub others: Option<Mean>,
    /// How much sooner its first token comes at the best place; 0 if it went there.
    pub regret: Mean,
    /// How much sooner the first tokens of all requests come, added up, at the place that is best
    /// for all; 0 if it went there.
    pub regret_of_all: Mean,
    /// The greatest regret by the router's own scores; absent if it does not score.
    pub score_regret: Option<f64>,
}

/// A mean over seeds.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Mean {
    /// The mean.
    pub mean: f64,
    /// Its interval; absent for fewer than two seeds.
    pub interval: Option<Estimate>,
}

/// Tries a sample of the routing decisions of `plan` otherwise, `sample` of them in all of `seeds`;
/// `None` if there is nowhere else to go. `observe` gives each run its observer.
///
/// # Errors
/// If a run fails.
///
/// # Panics
/// If a run panics.
pub fn decisions<O: Observer>(
    plan: &Plan,
    seeds: &[u64],
    options: &Options,
    observe: impl Fn() -> O + Sync,
) -> Result<Option<Decisions>, Failure> {
    let each = Options { sample: options.sample.div_ceil(seeds.len().max(1)), ..*options };
    let mut found = Vec::new();
    for &seed in seeds {
        let trial = Trial::new(seed);
        found.push(counterfactual::regret(plan, trial, &each, &observe)?);
    }
    Ok(of(&found))
}

/// What decisions in several seeds were worth.
fn of(found: &[Regret]) -> Option<Decisions> {
    let all = worth(found, |_| true)?;
    let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
    for tried in found.iter().flat_map(|regret| &regret.tried) {
        *counts.entry(tried.decision.because).or_default() += 1;
    }
    let mut reasons: Vec<(&str, usize)> = counts.into_iter().collect();
    reasons.sort_by_key(|&(because, count)| (std::cmp::Reverse(count), because));
    let reason = |(because, _): (&str, usize)| {
        let worth = worth(found, |tried| tried.decision.because == because)?;
        Some((because.to_owned(), worth))
    };
    let reasons = reasons.into_iter().filter_map(reason).collect();
    Some(Decisions { taken: found.iter().map(|regret| regret.decisions).sum(), all, reasons })
}

/// What the decisions that `counts` were worth; `None` if there is none.
fn worth(found: &[Regret], counts: impl Fn(&Tried) -> bool) -> Option<Worth> {
    let runs: Vec<(f64, Vec<&Tried>)> = found
        .iter()
        .map(|run| (float(run.finished), run.tried.iter().filter(|one| counts(one)).collect()))
        .collect();
    let each = || runs.iter().flat_map(|(_, tried)| tried);
    let tried = each().count();
    let better = each().filter(|one| one.regret_ms() > 0.0).count();
    let mean = |of: &dyn Fn(&Tried, f64) -> Option<f64>| {
        let of_run = |(finished, tried): &(f64, Vec<&Tried>)| {
            let values: Vec<f64> = tried.iter().filter_map(|one| of(one, *finished)).collect();
            (!values.is_empty()).then(|| values.iter().sum::<f64>() / float(values.len() as u64))
        };
        Mean::of(&runs.iter().filter_map(of_run).collect::<Vec<f64>>())
    };
    let own = |one: &Tried| Some(one.alternative_ttft_ms.first().copied().flatten()? - one.ttft_ms);
    let all = |one: &Tried, finished: f64, place: usize| one.mean_change_ms[place] * finished;
    let best = |one: &Tried, finished: f64| {
        let changes = (0..one.mean_change_ms.len()).map(|place| all(one, finished, place));
        -changes.fold(0.0, f64::min)
    };
    Some(Worth {
        tried,
        better_elsewhere: float(better as u64) / float(tried as u64),
        own: mean(&|one, _| own(one)),
        others: mean(&|one, finished| Some(all(one, finished, 0) - own(one)?)),
        regret: mean(&|one, _| Some(one.regret_ms()))?,
        regret_of_all: mean(&|one, finished| Some(best(one, finished)))?,
        score_regret: each().filter_map(|one| one.score_regret()).reduce(f64::max),
    })
}

impl Mean {
    /// That of the values of several seeds; `None` if there are none.
    fn of(values: &[f64]) -> Option<Mean> {
        let mean = values.iter().sum::<f64>() / float(values.len() as u64);
        (!values.is_empty()).then(|| Mean { mean, interval: estimate(values, LEVEL) })
    }

    /// Whether it is clearly above or below 0; 0 if that is not sure.
    pub fn sign(&self) -> i8 {
        match self.interval {
            Some(Estimate { low, .. }) if low > 0.0 => 1,
            Some(Estimate { high, .. }) if high < 0.0 => -1,
            _ => 0,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::counterfactual::Decision;
    use blis_core::{InstanceId, RequestId, Time};

    /// A decision for a request whose first token came after 10 ms, and what it would have been
    /// elsewhere.
    fn tried(because: &'static str, elsewhere: f64, of_all: f64) -> Tried {
        Tried {
            decision: Decision {
                request: RequestId(0),
                at: Time::ZERO,
                chosen: InstanceId(0),
                because,
                score: Some(0.75),
                alternatives: vec![(InstanceId(1), Some(0.5))],
                opinions: Vec::new(),
                fresh: None,
            },
            ttft_ms: 10.0,
            alternative_ttft_ms: vec![Some(elsewhere)],
            mean_change_ms: vec![of_all / 100.0],
        }
    }

    fn run(tried: Vec<Tried>) -> Regret {
        Regret { tried, decisions: 50, finished: 100 }
    }

    #[test]
    fn the_runner_up_is_judged_by_its_mean_and_hindsight_by_its_gains() {
        let found = of(&[
            run(vec![tried("a", 14.0, 5.0), tried("b", 8.0, -6.0)]),
            run(vec![tried("a", 16.0, 9.0), tried("a", 13.0, 1.0)]),
        ])
        .expect("decisions were tried");
        let Worth { tried, better_elsewhere, own, others, regret, regret_of_all, score_regret } =
            found.all;
        assert_eq!((found.taken, tried, better_elsewhere), (100, 4, 0.25));
        let mean = |of: Option<Mean>| of.expect("known").mean;
        // By run: own (4 - 2) / 2 and (6 + 3) / 2; others (1 - 4) / 2 and (3 - 2) / 2.
        assert!((mean(own) - 2.75).abs() < 1e-9, "{own:?}");
        assert!((mean(others) - (-0.5)).abs() < 1e-9, "{others:?}");
        assert!((regret.mean - 0.5).abs() < 1e-9 && (regret_of_all.mean - 1.5).abs() < 1e-9);
        assert_eq!(score_regret, Some(0.0), "by its own scores a router never regrets");
        assert_eq!(own.map(|own| own.sign()), Some(0), "two seeds are not sure of anything");
    }

    #[test]
    fn reasons_are_told_apart_the_most_frequent_first() {
        let runs = [run(vec![tried("b", 9.0, 0.0)]), run(vec![tried("a", 11.0, 0.0); 2])];
        let found = of(&runs).expect("decisions were tried");
        let names: Vec<(&str, usize)> =
            found.reasons.iter().map(|(name, worth)| (name.as_str(), worth.tried)).collect();
        assert_eq!(names, [("a", 2), ("b", 1)]);
        assert_eq!(found.reasons[1].1.own.map(|own| own.mean), Some(-1.0));
        assert_eq!(found.reasons[1].1.own.and_then(|own| own.interval), None, "one seed");
    }

    #[test]
    fn nothing_is_said_where_nothing_could_be_tried() {
        assert_eq!(of(&[run(Vec::new())]), None);
    }
}
