//! What would have been: routing decisions taken otherwise, one at a time.
//!
//! A router that takes the best score never regrets anything by its own scores. So a decision is
//! judged by what happens: the whole run is simulated again with one request sent elsewhere, and
//! everybody after it decides as they then would. The regret of a decision is how much sooner its
//! request would have had its first token at the best of the places tried.

use crate::trial::run;
use blis_core::random::Purpose;
use blis_core::{Dice, InstanceId, RequestId, Span, Time, math};
use blis_metrics::{Fact, Listener, Status};
use blis_scenario::Trial;
use blis_scenario::pool;
use blis_scenario::run::RunFailure;
use blis_scenario::scenario::Plan;
use blis_sim::{Instead, Observer};

/// How much is tried.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Options {
    /// Alternatives of each decision (>= 1).
    pub alternatives: usize,
    /// Decisions, drawn at random from all whose requests finished.
    pub sample: usize,
    /// Runs at a time; 0: one for each core.
    pub jobs: usize,
}

/// A routing decision, and what else was there.
#[derive(Clone, Debug, PartialEq)]
pub struct Decision {
    /// About whom.
    pub request: RequestId,
    /// When.
    pub at: Time,
    /// Where it went.
    pub chosen: InstanceId,
    /// What made the difference.
    pub because: &'static str,
    /// Total score of the chosen instance, if the router scores.
    pub score: Option<f64>,
    /// The other instances, best score first, with their scores; without scores, in random order.
    pub alternatives: Vec<(InstanceId, Option<f64>)>,
    /// Each scorer's part of the score of every instance, if the run states details.
    pub opinions: Vec<(&'static str, Vec<f64>)>,
    /// Where it would have gone if nothing had been stale, if the run states details.
    pub fresh: Option<InstanceId>,
}

/// Hears every routing decision and keeps the best alternatives of each.
#[derive(Debug)]
pub struct DecisionLog {
    /// In order of time.
    pub decisions: Vec<Decision>,
    /// What is stated just before a decision.
    considered: (Vec<(&'static str, Vec<f64>)>, Option<InstanceId>),
    most: usize,
    instances: u32,
    seed: u64,
}

impl DecisionLog {
    /// A log with at most `most` alternatives of each decision in a cluster of `instances`.
    pub fn new(most: usize, instances: u32, seed: u64) -> DecisionLog {
        DecisionLog { decisions: Vec::new(), considered: (Vec::new(), None), most, instances, seed }
    }

    fn alternatives(
        &self,
        request: RequestId,
        chosen: InstanceId,
        totals: &[f64],
    ) -> Vec<(InstanceId, Option<f64>)> {
        let mut others: Vec<InstanceId> =
            (0..self.instances).map(InstanceId).filter(|&other| other != chosen).collect();
        if totals.is_empty() {
            let mut dice = Dice::new(self.seed, Purpose::Sampling, request.0);
            for last in (1..others.len()).rev() {
                others.swap(last, dice.below(last + 1));
            }
        } else {
            others.sort_by(|a, b| totals[b.index()].total_cmp(&totals[a.index()]));
        }
        others.truncate(self.most);
        others.into_iter().map(|other| (other, totals.get(other.index()).copied())).collect()
    }
}

impl Listener for DecisionLog {
    fn hear(&mut self, at: Time, fact: &Fact<'_>) {
        if let Fact::Considered { opinions, fresh, .. } = *fact {
            self.considered = (opinions.to_vec(), Some(fresh));
        }
        if let Fact::Routed { request, instance, because, totals, .. } = *fact {
            let (opinions, fresh) = std::mem::take(&mut self.considered);
            self.decisions.push(Decision {
                request,
                at,
                chosen: instance,
                because,
                score: totals.get(instance.index()).copied(),
                alternatives: self.alternatives(request, instance, totals),
                opinions,
                fresh,
            });
        }
    }
}

/// What became of the requests of a run.
#[derive(Clone, Debug, Default)]
struct Stories {
    /// Time to first token of each finished request, by id.
    ttfts: Vec<Option<Span>>,
}

impl Stories {
    fn of(&self, request: RequestId) -> Option<Span> {
        self.ttfts.get(index(request)).copied().flatten()
    }

    fn finished(&self) -> u64 {
        self.ttfts.iter().flatten().count() as u64
    }

    fn mean_ms(&self) -> f64 {
        let finished = self.ttfts.iter().flatten();
        let (sum, count) = finished.fold((0.0, 0_u64), |(sum, n), t| (sum + millis(*t), n + 1));
        sum / math::float(count.max(1))
    }
}

impl Listener for Stories {
    fn hear(&mut self, _: Time, fact: &Fact<'_>) {
        if let Fact::Closed { status: Status::Finished, record } = fact {
            let index = index(record.request);
            if self.ttfts.len() <= index {
                self.ttfts.resize(index + 1, None);
            }
            self.ttfts[index] = record.ttft;
        }
    }
}

/// A decision that was tried otherwise.
#[derive(Clone, Debug, PartialEq)]
pub struct Tried {
    /// The decision, with the alternatives that were tried.
    pub decision: Decision,
    /// Time to first token of its request as it was, in ms.
    pub ttft_ms: f64,
    /// The same at each alternative; `None` if it did not finish there.
    pub alternative_ttft_ms: Vec<Option<f64>>,
    /// How the mean time to first token of all requests would have changed, in ms.
    pub mean_change_ms: Vec<f64>,
}

impl Tried {
    /// How much sooner the first token would have come at the best place, in ms; 0 if the choice
    /// was that.
    pub fn regret_ms(&self) -> f64 {
        let best = self.alternative_ttft_ms.iter().flatten().copied().fold(self.ttft_ms, f64::min);
        self.ttft_ms - best
    }

    /// The same by the router's own scores: how much better the best alternative was thought.
    pub fn score_regret(&self) -> Option<f64> {
        let scores = self.decision.alternatives.iter().filter_map(|(_, score)| *score);
        let best = scores.fold(f64::NEG_INFINITY, f64::max);
        self.decision.score.map(|score| (best - score).max(0.0))
    }
}

/// What a sample of decisions tells.
#[derive(Clone, Debug, PartialEq)]
pub struct Regret {
    /// The decisions that were tried otherwise, in order of time.
    pub tried: Vec<Tried>,
    /// Decisions of the run.
    pub decisions: usize,
    /// Requests that finished in it.
    pub finished: u64,
}

impl Regret {
    /// Share of decisions for which another place was better.
    pub fn share(&self) -> Option<f64> {
        let worse = self.tried.iter().filter(|tried| tried.regret_ms() > 0.0).count();
        let all = self.tried.len();
        (all > 0).then(|| math::float(worse as u64) / math::float(all as u64))
    }

    /// Mean, 90th percentile and greatest regret in ms; `None` without decisions.
    pub fn summary(&self) -> Option<(f64, f64, f64)> {
        let mut regrets: Vec<f64> = self.tried.iter().map(Tried::regret_ms).collect();
        regrets.sort_by(f64::total_cmp);
        let greatest = *regrets.last()?;
        let mean = regrets.iter().sum::<f64>() / math::float(regrets.len() as u64);
        let rank = (regrets.len() * 9).div_ceil(10).max(1) - 1;
        Some((mean, regrets[rank], greatest))
    }

    /// The greatest regret by the router's own scores; `None` if it does not score.
    pub fn greatest_score_regret(&self) -> Option<f64> {
        self.tried.iter().filter_map(Tried::score_regret).reduce(f64::max)
    }
}

/// Runs `plan` with `seed`, then a sample of its decisions otherwise.
///
/// # Errors
/// If a run fails, or its observer stops it.
///
/// # Panics
/// If a run panics.
pub fn regret<O: Observer>(
    plan: &Plan,
    trial: Trial,
    options: &Options,
    observe: impl Fn() -> O + Sync,
) -> Result<Regret, RunFailure> {
    let mut log = DecisionLog::new(options.alternatives, plan.instances, trial.seed);
    let mut stories = Stories::default();
    run(plan, trial, &mut [&mut log, &mut stories], None, &mut observe())?;
    let decisions = log.decisions.len();
    let sampled = sample(log.decisions, &stories, options.sample, trial.seed);
    let others: Vec<(RequestId, InstanceId)> = sampled
        .iter()
        .flat_map(|d| d.alternatives.iter().map(|(other, _)| (d.request, *other)))
        .collect();
    let elsewhere = pool::each(options.jobs, &others, |&(request, other)| {
        let trial = Trial { overrule: Some((request, Instead::At(other))), ..trial };
        let mut stories = Stories::default();
        run(plan, trial, &mut [&mut stories], None, &mut observe())?;
        Ok::<_, RunFailure>((stories.of(request), stories.mean_ms()))
    })?;
    let mut elsewhere = elsewhere.into_iter();
    let mut tried = Vec::new();
    for decision in sampled {
        let ttft_ms = millis(stories.of(decision.request).expect("sampled because it finished"));
        let mut alternative_ttft_ms = Vec::new();
        let mut mean_change_ms = Vec::new();
        for result in elsewhere.by_ref().take(decision.alternatives.len()) {
            let (own, mean) = result?;
            alternative_ttft_ms.push(own.map(millis));
            mean_change_ms.push(mean - stories.mean_ms());
        }
        tried.push(Tried { decision, ttft_ms, alternative_ttft_ms, mean_change_ms });
    }
    Ok(Regret { tried, decisions, finished: stories.finished() })
}

/// At most `most` of the decisions whose requests finished and had another place to go, each with
/// the same chance.
fn sample(decisions: Vec<Decision>, stories: &Stories, most: usize, seed: u64) -> Vec<Decision> {
    let told = |d: &Decision| stories.of(d.request).is_some() && !d.alternatives.is_empty();
    let mut drawn: Vec<(u64, Decision)> = decisions
        .into_iter()
        .filter(told)
        .map(|d| (Dice::new(seed ^ 1, Purpose::Sampling, d.request.0).bits(), d))
        .collect();
    drawn.sort_by_key(|(lot, decision)| (*lot, decision.request));
    drawn.truncate(most);
    drawn.sort_by_key(|(_, decision)| decision.request);
    drawn.into_iter().map(|(_, decision)| decision).collect()
}

fn index(request: RequestId) -> usize {
    usize::try_from(request.0).expect("requests fit the memory")
}

fn millis(span: Span) -> f64 {
    span.as_micros_f64() / 1e3
}
