//! All that a run tells, written down so that two runs can be compared to the byte.

use crate::harness::assert_clean;
use blis_core::{Span, Time};
use blis_metrics::{Fact, Listener, Report};
use blis_scenario::{Plan, RunResult, Trial, run_scenario};
use blis_sim::{Outcome, Pace, Unobserved};
use std::collections::BTreeMap;

/// Everything that a run tells.
pub(crate) struct Told {
    /// Facts, a run of steps step by step, by time and then by who states them.
    facts: Vec<(Time, u32, String)>,
    /// Blocks in use at the end of steps. A run of steps tells only its last.
    blocks: BTreeMap<(Time, u32), u32>,
    pub(crate) report: Report,
    outcome: Outcome,
}

/// How a run is listened to.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Manner {
    pub(crate) pace: Pace,
    pub(crate) audit: bool,
    /// Whether how many cached tokens routers expect is told.
    pub(crate) expectations: bool,
    /// Time between samples, which are not told themselves.
    pub(crate) sample_interval: Option<Span>,
    /// Whether details are stated, which are not told themselves.
    pub(crate) details: bool,
}

/// What a run of `plan` tells.
#[track_caller]
pub(crate) fn told(plan: &Plan, manner: Manner) -> Told {
    let Manner { pace, audit, expectations, sample_interval, details } = manner;
    let mut scribe = Scribe {
        facts: Vec::new(),
        blocks: BTreeMap::new(),
        steps: (0, 1, Span::ZERO),
        expectations,
    };
    let trial = Trial { pace, audit, sample_interval, details, ..Trial::new(plan.seed) };
    let result = run_scenario(plan, trial, &mut [&mut scribe], None, &mut Unobserved)
        .unwrap_or_else(|failure| panic!("{failure}"));
    if audit {
        assert_clean(&result, plan);
    }
    let RunResult { mut report, mut outcome, .. } = result;
    report.mechanisms.clear();
    outcome.mechanisms.clear();
    if !expectations {
        (report.kv.phantom_hit_rate, report.kv.missed_hit_rate) = (None, None);
    }
    scribe.facts.sort_by_key(|&(at, lane, _)| (at, lane));
    Told { facts: scribe.facts, blocks: scribe.blocks, report, outcome }
}

/// Writes facts down.
struct Scribe {
    facts: Vec<(Time, u32, String)>,
    blocks: BTreeMap<(Time, u32), u32>,
    /// Who stated the last run of steps, how many and how long: its tokens come right after it.
    steps: (u32, u64, Span),
    expectations: bool,
}

impl Listener for Scribe {
    fn hear(&mut self, at: Time, fact: &Fact<'_>) {
        if let Fact::Sample { .. } | Fact::Considered { .. } | Fact::Formed { .. } = fact {
            return;
        }
        let mut fact = fact.clone();
        let lane = lane(&fact);
        if let Fact::Routed { because, totals, .. } = &mut fact {
            // How a router justifies itself is not what happens.
            (*because, *totals) = ("", &[]);
        }
        match &mut fact {
            Fact::Routed { expected_cached_tokens, .. } if !self.expectations => {
                *expected_cached_tokens = None;
            }
            Fact::Closed { record, .. } if !self.expectations => {
                record.expected_cached_tokens = None;
            }
            _ => {}
        }
        if let Fact::Steps { count, duration, blocks_in_use, .. } = &mut fact {
            self.steps = (lane, *count, *duration);
            self.blocks.insert((at, lane), std::mem::take(blocks_in_use));
        } else if !matches!(fact, Fact::Tokens { .. }) || self.steps.0 != lane {
            self.steps = (lane, 1, Span::ZERO);
        }
        let (_, count, duration) = self.steps;
        if let Fact::Steps { count: n, .. } | Fact::Tokens { count: n, .. } = &mut fact {
            *n /= count;
        }
        let text = format!("{fact:?}");
        let ends = (0..count).rev().map(|back| at - duration * back);
        self.facts.extend(ends.map(|at| (at, lane, text.clone())));
    }
}

/// 0 for the gateway, else the number of the instance: each tells in order of time.
fn lane(fact: &Fact<'_>) -> u32 {
    fact.instance().map_or(0, |instance| instance.0 + 1)
}

/// Where two runs differ first, if they do.
pub(crate) fn difference(a: &Told, b: &Told) -> Option<String> {
    if let Some((a, b)) = a.facts.iter().zip(&b.facts).find(|(a, b)| a != b) {
        return Some(format!("the first fact that differs:\n  {a:?}\n  {b:?}"));
    }
    let differs = |(place, blocks): &(&(Time, u32), &u32)| {
        b.blocks.get(place).is_some_and(|other| other != *blocks)
    };
    if let Some((place, blocks)) = a.blocks.iter().find(differs) {
        return Some(format!("blocks at {place:?}: {blocks} and {}", b.blocks[place]));
    }
    let rest =
        |told: &Told| format!("{} facts, {:?}, {:?}", told.facts.len(), told.outcome, told.report);
    let (a, b) = (rest(a), rest(b));
    (a != b).then(|| format!("what the facts add up to:\n  {a}\n  {b}"))
}
