//! Why one request was slow: its life, compared with the same request alone on an idle instance.
//!
//! A scenario is run twice: once to find the request, once to watch it. Then the request is run
//! alone, with as much of its prompt cached as it found, and as its router expected. What it took
//! more than alone is split into causes by what its life says; the parts add up to its latency
//! exactly. The scenario is run once more with the request sent where the oracle of routing sends
//! it, and again where its router sends it with fresh signals, if that is elsewhere.

mod alone;
mod parts;

pub use parts::{Cause, Measure};

use crate::trial::run;
use alone::alone;
use blis_core::{InstanceId, Request, RequestId, Span, Time};
use blis_metrics::life::StepsOf;
use blis_metrics::{Fact, Life, Listener, Lives, Record, Status};
use blis_scenario::{Names, Plan, RunFailure, Trial};
use blis_sim::{Instead, Observer};
use std::collections::BTreeMap;

/// Which requests are asked about.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Which {
    /// The one of this name or number.
    Named(String),
    /// So many, the slowest first.
    Slowest(usize),
}

/// Why a request was slow.
#[derive(Clone, Debug, PartialEq)]
pub struct Answer {
    /// The name its trace gave it, else its number.
    pub name: String,
    /// Its story, without the name.
    pub record: Record<'static>,
    /// What it did.
    pub life: Life,
    /// What is asked about.
    pub measure: Measure,
    /// How long that took.
    pub took: Span,
    /// Its parts by cause, in ns; they add up to `took`. A part is negative if it took less than
    /// alone.
    pub parts: Vec<(Cause, i64)>,
    /// Where it would have gone with fresh signals, and how long it would have taken there, if that
    /// is elsewhere.
    pub elsewhere: Option<(InstanceId, Option<Span>)>,
    /// Where the oracle of routing sends it, and how long it takes there; `None` if there is one
    /// instance only, or an oracle routed the run.
    pub oracle: Option<(InstanceId, Option<Span>)>,
    /// What made it slow.
    pub cause: Cause,
}

impl Answer {
    /// The steps that are part of what is asked about: those it ran in, and the one that it waited
    /// for.
    pub fn steps(&self) -> impl Iterator<Item = &StepsOf> {
        let first = self.life.first_token.unwrap_or(Time::NEVER);
        self.life.steps.iter().filter(move |step| self.measure.covers_step(step.end, first))
    }
}

/// Runs `plan` and says why the requests that are asked about were slow; none if nobody is meant.
///
/// # Errors
/// If a run fails, or its observer stops it.
///
/// # Panics
/// If the parts of a latency do not add up to it.
pub fn why<O: Observer>(
    plan: &Plan,
    trial: Trial,
    measure: Measure,
    which: &Which,
    observe: impl Fn() -> O,
) -> Result<Vec<Answer>, RunFailure> {
    let trial = Trial { overrule: None, details: false, ..trial };
    let mut found = Found { measure, which, from: plan.warmup, slowest: Vec::new() };
    run(plan, trial, &mut [&mut found], None, &mut observe())?;
    let ids: Vec<RequestId> = found.slowest.iter().map(|&(_, id)| id).collect();
    let names = Names::with_requests();
    let lives = Lives::watching(ids.iter().copied());
    let mut watch = Watched { lives, names: names.clone(), seen: BTreeMap::new() };
    let detailed = Trial { details: true, ..trial };
    run(plan, detailed, &mut [&mut watch], Some(names), &mut observe())?;
    let mut answers = Vec::new();
    for id in ids {
        let seen = watch.seen.remove(&id).expect("the second run is the first");
        answers.push(answer(plan, trial, measure, seen, &mut observe())?);
    }
    Ok(answers)
}

fn answer(
    plan: &Plan,
    trial: Trial,
    measure: Measure,
    seen: Seen,
    observer: &mut dyn Observer,
) -> Result<Answer, RunFailure> {
    let Seen { request, ended } = seen;
    let (name, life, record) = ended.expect("it was found because it has ended");
    let real = record.cached_tokens.unwrap_or(0);
    let expected = record.expected_cached_tokens.unwrap_or(0).max(real);
    let as_found = alone(plan, &request, real)?;
    let as_expected =
        if expected == real { as_found.clone() } else { alone(plan, &request, expected)? };
    let chosen = record.instance;
    let mut sent = |instead: Instead| {
        let mut there = There { request: record.request, measure, instance: None, took: None };
        let overruled = Trial { overrule: Some((record.request, instead)), ..trial };
        run(plan, overruled, &mut [&mut there], None, observer)?;
        Ok::<_, RunFailure>(there.instance.map(|instance| (instance, there.took)))
    };
    let fresh = life.considered.as_ref().map(|considered| considered.fresh);
    let elsewhere = match fresh.filter(|&fresh| Some(fresh) != chosen) {
        Some(fresh) => sent(Instead::At(fresh))?,
        None => None,
    };
    let one = plan.instances == 1 || plan.oracles.routing;
    let oracle = if one { None } else { sent(Instead::Foreseen)? };
    let took = measure.of(&record).expect("it was found because it has one");
    let parts = parts::parts(measure, (&life, &record), &as_found, &as_expected);
    let sum: i64 = parts.iter().map(|&(_, nanos)| nanos).sum();
    assert_eq!(parts::nanos(took), sum, "the parts of {name} add up: {parts:?}");
    let sooner = elsewhere.and_then(|(_, there)| Some(parts::nanos(took) - parts::nanos(there?)));
    let cause = parts::cause(&parts, sooner);
    Ok(Answer { name, record, life, measure, took, parts, elsewhere, oracle, cause })
}

/// The name of a request in reports.
fn name(record: &Record<'_>) -> String {
    record.name.map_or_else(|| record.request.0.to_string(), str::to_owned)
}

/// Finds the requests that are asked about.
struct Found<'a> {
    measure: Measure,
    which: &'a Which,
    /// Requests that arrive earlier are not counted.
    from: Time,
    /// The slowest first.
    slowest: Vec<(Span, RequestId)>,
}

impl Listener for Found<'_> {
    fn hear(&mut self, _: Time, fact: &Fact<'_>) {
        let Fact::Closed { status: Status::Finished, record } = fact else { return };
        let Some(took) = self.measure.of(record) else { return };
        match self.which {
            Which::Named(wanted) => {
                if name(record) == *wanted {
                    self.slowest.push((took, record.request));
                }
            }
            Which::Slowest(most) if record.arrival >= self.from => {
                let mean = |took: Span| self.measure.rank(took, record);
                let key = (mean(took), record.request);
                let place = self.slowest.partition_point(|&(other, id)| {
                    (std::cmp::Reverse(other), id) < (std::cmp::Reverse(key.0), key.1)
                });
                self.slowest.insert(place, key);
                self.slowest.truncate(*most);
            }
            Which::Slowest(_) => {}
        }
    }
}

/// Watches the requests that were found.
struct Watched {
    lives: Lives,
    names: Names,
    seen: BTreeMap<RequestId, Seen>,
}

/// A request, and once it has ended its name and story.
struct Seen {
    request: Request,
    ended: Option<(String, Life, Record<'static>)>,
}

impl Listener for Watched {
    fn hear(&mut self, at: Time, fact: &Fact<'_>) {
        if let Fact::Arrived { request: id, .. } = *fact {
            let request = self.names.arrived(at);
            if self.lives.is_watched(id) {
                self.seen.insert(id, Seen { request, ended: None });
            }
        }
        if let Some(life) = self.lives.hear(at, fact)
            && let Fact::Closed { record, .. } = fact
            && let Some(seen) = self.seen.get_mut(&record.request)
        {
            seen.ended = Some((name(record), life, record.nameless()));
        }
    }
}

/// Hears where one request goes and how long it takes.
struct There {
    request: RequestId,
    measure: Measure,
    instance: Option<InstanceId>,
    took: Option<Span>,
}

impl Listener for There {
    fn hear(&mut self, _: Time, fact: &Fact<'_>) {
        if let Fact::Closed { record, .. } = fact
            && record.request == self.request
        {
            (self.instance, self.took) = (record.instance, self.measure.of(record));
        }
    }
}
