//! The parts of a latency by cause, and which of them is to blame.
//!
//! All that a request took alone is its own. What it took more is split by what it did then:
//! waiting, reloading, catching up after a preemption, and running. The step that is under way when
//! a request joins the queue counts as one of its own. A step is host time (the GPU has nothing to
//! do), a stall for copies, and computing. What the steps computed longer than
//! alone is put down to the prefill and the decodes of the others in them, in proportion to their
//! tokens.

use blis_core::{Span, Time};
use blis_metrics::life::StepsOf;
use blis_metrics::{Batch, Doing, Life, Record, Stretch};

/// What is asked about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Measure {
    /// Time to first token.
    Ttft,
    /// Time to the last token.
    E2e,
    /// Time from the first token to the last; the slowest have the longest mean between tokens.
    Itl,
}

impl Measure {
    /// Its name.
    pub const fn name(self) -> &'static str {
        match self {
            Measure::Ttft => "TTFT",
            Measure::E2e => "E2E",
            Measure::Itl => "mean ITL",
        }
    }

    /// How long it is; `None` if the request has none.
    pub fn of(self, record: &Record<'_>) -> Option<Span> {
        match self {
            Measure::Ttft => record.ttft,
            Measure::E2e => record.e2e,
            Measure::Itl if record.output_tokens < 2 => None,
            Measure::Itl => Some(record.e2e? - record.ttft?),
        }
    }

    /// What requests are compared by.
    pub(super) fn rank(self, took: Span, record: &Record<'_>) -> Span {
        match self {
            Measure::Itl => Span::from_nanos(took.as_nanos() / u64::from(record.output_tokens - 1)),
            _ => took,
        }
    }

    /// Whether a step that ended then is part of it.
    pub(super) fn covers_step(self, end: Time, first_token: Time) -> bool {
        match self {
            Measure::Ttft => end <= first_token,
            Measure::E2e => true,
            Measure::Itl => end > first_token,
        }
    }

    fn covers(self, stretch: &Stretch, first_token: Time) -> bool {
        match self {
            Measure::Ttft => stretch.to <= first_token,
            Measure::E2e => true,
            Measure::Itl => stretch.from >= first_token,
        }
    }
}

/// What a part of a latency is due to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Cause {
    /// What the request takes alone on an idle instance.
    Own,
    /// Decisions of the gateway.
    Gateway,
    /// Waiting for its turn behind others.
    Queue,
    /// Waiting for blocks from the CPU tier.
    Reload,
    /// Being preempted: waiting again, and computing again.
    Preemption,
    /// Prefill of others in its steps.
    Prefill,
    /// Decodes of others in its steps.
    Batch,
    /// The host, while the GPU had nothing to do, and on the way out.
    Host,
    /// Computing what the router believed to be cached.
    Phantom,
    /// A choice that the router made because its signals were stale. It is no part of its own: it
    /// led to others.
    Stale,
}

impl Cause {
    /// Its name.
    pub const fn name(self) -> &'static str {
        match self {
            Cause::Own => "own work",
            Cause::Gateway => "gateway",
            Cause::Queue => "queue",
            Cause::Reload => "reload",
            Cause::Preemption => "preemption",
            Cause::Prefill => "prefill of others",
            Cause::Batch => "decodes of others",
            Cause::Host => "host",
            Cause::Phantom => "phantom hit",
            Cause::Stale => "stale routing",
        }
    }
}

/// The greatest part; a stale choice if the request would have been sooner elsewhere by at least
/// half of it.
pub(super) fn cause(parts: &[(Cause, i64)], sooner_elsewhere: Option<i64>) -> Cause {
    let least = (Cause::Own, i64::MIN);
    let most = parts.iter().fold(least, |most, part| if part.1 > most.1 { *part } else { most });
    let stale = sooner_elsewhere.is_some_and(|sooner| sooner > 0 && 2 * sooner >= most.1);
    if stale && most.0 != Cause::Own { Cause::Stale } else { most.0 }
}

/// The parts of what the request took, given what it does alone with the blocks that it found, and
/// with those that its router expected.
pub(super) fn parts(
    measure: Measure,
    lived: (&Life, &Record<'_>),
    as_found: &(Life, Record<'static>),
    as_expected: &(Life, Record<'static>),
) -> Vec<(Cause, i64)> {
    let took = Tally::of(measure, lived.0);
    let alone = Tally::of(measure, &as_found.0);
    let [found, expected] = [as_found, as_expected].map(|it| measure.of(&it.1).map_or(0, nanos));
    let computing = took.computing - alone.computing;
    let others = took.prefill + took.decodes;
    let prefill = if others == 0 { 0 } else { shared(computing, took.prefill, others) };
    // The way in takes as long alone; the way out is longer behind the tokens of others.
    let ingress = took.ingress - alone.ingress;
    let output = match measure {
        Measure::Ttft | Measure::E2e => {
            nanos(lived.1.split.output) - nanos(as_found.1.split.output)
        }
        Measure::Itl => 0,
    };
    vec![
        (Cause::Own, expected + ingress),
        (Cause::Gateway, took.gateway - alone.gateway),
        (Cause::Queue, took.queue - alone.queue),
        (Cause::Reload, took.reload - alone.reload),
        (Cause::Preemption, took.preemption - alone.preemption),
        (Cause::Prefill, prefill),
        (Cause::Batch, computing - prefill),
        (Cause::Host, took.host - alone.host + output),
        (Cause::Phantom, found - expected),
    ]
}

/// `whole` times `part / all`.
fn shared(whole: i64, part: i64, all: i64) -> i64 {
    let share = i128::from(whole) * i128::from(part) / i128::from(all);
    i64::try_from(share).expect("a share is no more than the whole")
}

/// A span in whole nanoseconds that can be subtracted from.
pub(super) fn nanos(span: Span) -> i64 {
    i64::try_from(span.as_nanos()).expect("no run lasts 292 years")
}

/// Where the time of a life went, in ns.
#[derive(Clone, Copy, Debug, Default)]
struct Tally {
    gateway: i64,
    ingress: i64,
    queue: i64,
    reload: i64,
    preemption: i64,
    host: i64,
    computing: i64,
    /// What of that went to the prefill and the decodes of others, by their share of the tokens.
    prefill: i64,
    decodes: i64,
}

impl Tally {
    fn of(measure: Measure, life: &Life) -> Tally {
        let mut tally = Tally::default();
        let first_token = life.first_token.unwrap_or(Time::NEVER);
        let covered = life.stretches.iter().filter(|it| measure.covers(it, first_token));
        for stretch in covered {
            let span = nanos(stretch.span());
            match stretch.doing {
                _ if stretch.preempted => tally.preemption += span,
                Doing::Gateway => tally.gateway += span,
                Doing::Ingress => tally.ingress += span,
                // Whoever comes while a step is under way waits for it like those in it.
                Doing::Waiting => tally.queue += tally.ran(stretch, &life.steps),
                Doing::Reloading => tally.reload += span,
                // Between steps the host prepares the next one.
                Doing::Prefill | Doing::Decode => tally.host += tally.ran(stretch, &life.steps),
            }
        }
        tally
    }

    /// Adds the steps in a stretch; returns how much of it was between steps.
    fn ran(&mut self, stretch: &Stretch, steps: &[StepsOf]) -> i64 {
        let mut left = nanos(stretch.span());
        for step in steps {
            let whole = step.duration * step.count;
            let (from, to) = (step.begin().max(stretch.from), step.end.min(stretch.to));
            if to <= from {
                continue;
            }
            let (span, whole) = (nanos(to.since(from)), nanos(whole));
            left -= span;
            let busy = nanos(step.gpu * step.count).min(whole - nanos(step.stall));
            let stall = shared(span, nanos(step.stall), whole);
            let computing = shared(span, busy, whole);
            self.reload += stall;
            self.computing += computing;
            self.host += span - stall - computing;
            let Batch { prefill_tokens, decode_seqs, .. } = step.batch;
            let own_decode = u32::from(stretch.doing == Doing::Decode).min(decode_seqs);
            let all = (prefill_tokens + decode_seqs).into();
            self.prefill += shared(computing, (prefill_tokens - step.own_tokens).into(), all);
            self.decodes += shared(computing, (decode_seqs - own_decode).into(), all);
        }
        left
    }
}
