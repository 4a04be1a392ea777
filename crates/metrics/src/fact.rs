//! Facts: everything that happens in a simulated cluster, in the words of the field.
//!
//! The world (`sim`) states facts; listeners (summaries, the audit, writers, tests) hear them. A
//! fact never asks for anything and a listener can never change the run. Facts of one instance come
//! in order of time, and so do the gateway's; between instances there is no promised order, because
//! undisturbed instances run ahead of being asked.

pub use crate::record::{Record, TtftSplit};

use blis_core::math::float;
use blis_core::{InstanceId, RequestId, SloClass, Span, Time};

/// Hears the facts of a run.
pub trait Listener {
    /// `fact` happened at `at`.
    fn hear(&mut self, at: Time, fact: &Fact<'_>);

    /// Whether it reads why requests were `Routed` as they were, or when blocks were `Evicted`.
    fn wants_details(&self) -> bool {
        true
    }
}

/// Something that happened.
#[derive(Clone, Debug, PartialEq)]
pub enum Fact<'a> {
    /// A client sent a request.
    Arrived {
        /// Which.
        request: RequestId,
        /// Its service class.
        class: SloClass,
        /// Its prompt length in tokens.
        input_tokens: u32,
        /// Which round of its session it is; 0 if it is the first or has no session.
        round: u32,
    },
    /// Admission let the request in. It may still turn it away once the router has chosen, which is
    /// told instead of `Routed`.
    Admitted {
        /// Which.
        request: RequestId,
    },
    /// What the router chose among. Stated before `Routed`, or before admission turned the request
    /// away after all, and only if details are wanted.
    Considered {
        /// Which.
        request: RequestId,
        /// Every instance, by id.
        candidates: &'a [Candidate],
        /// Each scorer's part of the total of each instance; empty if the router does not score.
        /// Instances that a filter left out have negative infinity.
        opinions: &'a [(&'static str, Vec<f64>)],
        /// Where it would go if all that the router reads were as of now.
        fresh: InstanceId,
    },
    /// The router chose an instance.
    Routed {
        /// Which.
        request: RequestId,
        /// Where it goes.
        instance: InstanceId,
        /// Prompt tokens that the router believes are cached there; `None` if it has no opinion.
        expected_cached_tokens: Option<u32>,
        /// The policy or scorer that made the difference; no more than the policy if no listener
        /// wants reasons.
        because: &'static str,
        /// The total score of each instance; empty if the router does not score.
        totals: &'a [f64],
    },
    /// The request joined an instance's waiting queue.
    Enqueued {
        /// Which.
        request: RequestId,
        /// Where.
        instance: InstanceId,
    },
    /// The request joined the running batch.
    Scheduled {
        /// Which.
        request: RequestId,
        /// Where.
        instance: InstanceId,
        /// Tokens found in the prefix cache.
        cached_tokens: u32,
        /// Tokens it has to catch up on: its prompt and, after a preemption, what it had generated.
        total_tokens: u32,
    },
    /// The request lost its blocks and went back to the queue, keeping its generated tokens, and
    /// the one that a step under way may bring.
    Preempted {
        /// Which.
        request: RequestId,
        /// Where.
        instance: InstanceId,
        /// Computed tokens whose KV was lost, those of a step that has not ended included.
        lost_tokens: u32,
        /// Whether its last token is on its way: then it does not wait again.
        ended: bool,
    },
    /// Cached blocks that nobody used were dropped to make room.
    Evicted {
        /// Where.
        instance: InstanceId,
        /// How many blocks.
        blocks: u32,
    },
    /// A copy of cached blocks to the CPU tier has begun, beside the steps.
    Offloading {
        /// Where.
        instance: InstanceId,
        /// How many blocks.
        blocks: u32,
    },
    /// Copies of blocks are in the CPU tier: a copy beside the steps is done, or one that a step
    /// waits for has begun.
    Offloaded {
        /// Where.
        instance: InstanceId,
        /// How many blocks.
        blocks: u32,
        /// Blocks that were dropped before their copy was done.
        abandoned: u32,
        /// Blocks that the tier holds now.
        cpu_blocks: u32,
        /// Whether the copy was made beside the steps.
        beside: bool,
    },
    /// Blocks of a request are being copied back from the CPU tier.
    Reloading {
        /// Whose.
        request: RequestId,
        /// Where.
        instance: InstanceId,
        /// How many blocks.
        blocks: u32,
        /// How many of them came to the tier only lately: thrashing.
        recent: u32,
        /// Whether the request waits for it on its own, while others run; otherwise the step does.
        beside: bool,
    },
    /// Blocks of a request that waited for them on its own have been copied back.
    Reloaded {
        /// Whose.
        request: RequestId,
        /// Where.
        instance: InstanceId,
        /// How many blocks.
        blocks: u32,
    },
    /// A request that waited for its blocks on its own gave way and is waiting in the queue again.
    Unloaded {
        /// Which.
        request: RequestId,
        /// Where.
        instance: InstanceId,
    },
    /// A step with prefill was formed. Stated only if details are wanted.
    Formed {
        /// Where.
        instance: InstanceId,
        /// Who computes how many tokens of its prompt, or after a preemption of prompt and output.
        chunks: &'a [(RequestId, u32)],
    },
    /// The step that begins now first waits so long for copies.
    Stalled {
        /// Where.
        instance: InstanceId,
        /// How long.
        span: Span,
    },
    /// The engine ran `count` equal steps, the last of which ended now.
    Steps {
        /// Where.
        instance: InstanceId,
        /// How many.
        count: u64,
        /// How long each took: since the step before it ended, or since it was scheduled if that
        /// was later.
        duration: Span,
        /// How long each was scheduled before that: an engine with asynchronous scheduling forms a
        /// step while the one before it computes.
        ahead: Span,
        /// How long each occupied the GPU, perhaps in part while the step before it lasted.
        gpu: Span,
        /// What each computed.
        batch: Batch,
        /// Blocks that running requests hold as the last of them ends, before any are freed.
        blocks_in_use: u32,
    },
    /// Tokens left the engine at `count` hand-outs, each `gap` after the one before of the same
    /// request. First tokens are not here.
    Tokens {
        /// Where.
        instance: InstanceId,
        /// Service class of the requests.
        class: SloClass,
        /// Whether the requests arrived before the warm-up was over.
        early: bool,
        /// Inter-token latency, between hand-outs.
        gap: Span,
        /// How many hand-outs.
        count: u64,
        /// How many tokens: as many, or more if drafts were accepted.
        tokens: u64,
    },
    /// The step that completed the prompt ended; the token leaves the server after output
    /// processing.
    FirstToken {
        /// Which.
        request: RequestId,
        /// Where.
        instance: InstanceId,
    },
    /// The request has all its tokens, but the step under way computes more for it: it was formed
    /// before anybody knew how much of a draft would be accepted. Stated before it is `Closed`.
    Overran {
        /// Which.
        request: RequestId,
        /// Where.
        instance: InstanceId,
    },
    /// The engine stopped running a request whose client had given up. What it had computed was for
    /// nobody; its full blocks stay in the prefix cache.
    Dropped {
        /// Which.
        request: RequestId,
        /// Where.
        instance: InstanceId,
        /// Tokens whose KV it had, cached ones included, and those of steps under way.
        computed_tokens: u32,
        /// Steps under way then; 0 if none of them computes for it.
        under_way: u32,
    },
    /// What an instance looked like at a sample instant, after all that happened before it. Stated
    /// for all instances at one instant, in order of their numbers, and only if samples are wanted.
    Sample {
        /// Where.
        instance: InstanceId,
        /// What its gauges showed.
        reading: Reading,
    },
    /// The request's story is over (or the run is). Stated exactly once for each request.
    Closed {
        /// How it ended.
        status: Status,
        /// Its story.
        record: Record<'a>,
    },
}

impl Fact<'_> {
    /// The instance where it happened; `None`: at the gateway.
    pub fn instance(&self) -> Option<InstanceId> {
        self.place().1
    }

    /// The request that it is about, and the instance where it happened; `None`: at the gateway.
    pub(crate) fn place(&self) -> (Option<RequestId>, Option<InstanceId>) {
        match *self {
            Fact::Arrived { request, .. }
            | Fact::Admitted { request }
            | Fact::Considered { request, .. }
            | Fact::Routed { request, .. } => (Some(request), None),
            Fact::Enqueued { request, instance }
            | Fact::Scheduled { request, instance, .. }
            | Fact::Preempted { request, instance, .. }
            | Fact::Reloading { request, instance, .. }
            | Fact::Reloaded { request, instance, .. }
            | Fact::Unloaded { request, instance }
            | Fact::FirstToken { request, instance }
            | Fact::Overran { request, instance }
            | Fact::Dropped { request, instance, .. } => (Some(request), Some(instance)),
            Fact::Evicted { instance, .. }
            | Fact::Offloading { instance, .. }
            | Fact::Offloaded { instance, .. }
            | Fact::Stalled { instance, .. }
            | Fact::Steps { instance, .. }
            | Fact::Tokens { instance, .. }
            | Fact::Formed { instance, .. }
            | Fact::Sample { instance, .. } => (None, Some(instance)),
            Fact::Closed { status, ref record } => {
                (Some(record.request), record.instance.filter(|_| status.is_at_instance()))
            }
        }
    }
}

/// What one step computes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Batch {
    /// Requests that catch up: on their prompts, or after a preemption on prompt and output.
    pub prefill_seqs: u32,
    /// Their tokens in this step.
    pub prefill_tokens: u32,
    /// Requests that generate their next token.
    pub decode_seqs: u32,
    /// Tokens of drafts that they verify beside it.
    pub draft_tokens: u32,
    /// Tokens of the two that are computed in vain: rejected, or of requests that have all theirs.
    pub wasted_tokens: u32,
    /// Requests running, including those that the token budget left out of this step.
    pub running: u32,
    /// Requests left waiting when the step was formed.
    pub waiting: u32,
}

impl Batch {
    /// All tokens that it computes.
    pub fn tokens(&self) -> u64 {
        [self.prefill_tokens, self.decode_seqs, self.draft_tokens].into_iter().map(u64::from).sum()
    }
}

/// An instance as the router saw it when it chose, and as it was.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Candidate {
    /// Which.
    pub instance: InstanceId,
    /// Requests waiting and running as the router saw them, and how old that was; `None` if it does
    /// not read them.
    pub load: Option<(u32, u32, Span)>,
    /// Share of the KV blocks in use as the router saw it, and how old that was; `None` if it does
    /// not read it.
    pub memory: Option<(f64, Span)>,
    /// Requests waiting there then.
    pub waiting: u32,
    /// Requests running there then.
    pub running: u32,
    /// Prompt tokens of the request in question that were in its prefix cache then.
    pub cached_tokens: u32,
}

/// What the gauges of an instance show at one instant.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Reading {
    /// Requests in the queue.
    pub waiting: u32,
    /// Requests that wait for blocks from the CPU tier on their own, or have them but no room.
    pub loading: u32,
    /// Requests in the batch.
    pub running: u32,
    /// Blocks that hold nothing.
    pub blocks_free: u32,
    /// Blocks that are cached and that nobody uses.
    pub blocks_cached: u32,
    /// Blocks that requests hold.
    pub blocks_in_use: u32,
    /// Blocks that the CPU tier holds, as far as the engine has noticed: it does once a step.
    pub cpu_blocks: u32,
    /// Transfers to the CPU tier that have begun and are not done.
    pub out_transfers: u32,
    /// Transfers from the CPU tier that have begun and are not done.
    pub back_transfers: u32,
    /// How long those to the GPU still take, and those that a step under way waits for later.
    pub pending_transfer: Span,
    /// Prompt tokens of the requests scheduled for the first time so far.
    pub prompt_tokens: u64,
    /// How many of them were cached.
    pub cached_tokens: u64,
    /// Share of the blocks copied out lately that came back soon; absent if none was copied.
    pub thrashing_rate: Option<f64>,
}

/// A reading as it is reported: what is written for a sample, in the order of its columns.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Gauges {
    /// Whole numbers, in the order of [`Gauges::COUNTS`].
    pub counts: [u32; 9],
    /// How long the transfers to the GPU still take.
    pub pending_transfer: Span,
    /// Shares, in the order of [`Gauges::SHARES`]; absent where nothing is shared.
    pub shares: [Option<f64>; 2],
}

impl Gauges {
    /// What the whole numbers are called.
    pub const COUNTS: [&'static str; 9] = [
        "waiting",
        "loading",
        "running",
        "blocks_free",
        "blocks_cached",
        "blocks_in_use",
        "cpu_blocks",
        "out_transfers",
        "back_transfers",
    ];
    /// What the time of pending transfers is called; it is reported in microseconds.
    pub const PENDING: &'static str = "pending_transfer_us";
    /// What the shares are called.
    pub const SHARES: [&'static str; 2] = ["hit_rate", "thrashing_rate"];
}

impl From<&Reading> for Gauges {
    fn from(reading: &Reading) -> Gauges {
        // Destructured without `..`, so that a new gauge makes this line decide about it.
        let &Reading {
            waiting,
            loading,
            running,
            blocks_free,
            blocks_cached,
            blocks_in_use,
            cpu_blocks,
            out_transfers,
            back_transfers,
            pending_transfer,
            prompt_tokens,
            cached_tokens,
            thrashing_rate,
        } = reading;
        let hit_rate = (prompt_tokens > 0).then(|| float(cached_tokens) / float(prompt_tokens));
        let counts = [
            waiting,
            loading,
            running,
            blocks_free,
            blocks_cached,
            blocks_in_use,
            cpu_blocks,
            out_transfers,
            back_transfers,
        ];
        Gauges { counts, pending_transfer, shares: [hit_rate, thrashing_rate] }
    }
}

/// How a request's story ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Status {
    /// All its tokens left the server.
    Finished,
    /// Admission refused it; the reason is the policy's word.
    Rejected(&'static str),
    /// It can never fit the KV memory of an instance.
    Unservable,
    /// Its client gave up before the first token left the server.
    Abandoned(Stage),
    /// The run ended while it was at the gateway or on the way to its instance.
    InTransit,
    /// The run ended while it was waiting.
    Queued,
    /// The run ended while it was running.
    Running,
}

/// Where a request was when its client gave up.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Stage {
    /// At the gateway, or on the way to its instance.
    Gateway,
    /// In the queue, perhaps after a preemption.
    Waiting,
    /// Waiting for blocks from the CPU tier on its own.
    Loading,
    /// In the running batch.
    Running,
}

impl Status {
    /// Whether the request was at its instance when it ended; otherwise it was at the gateway, or
    /// on the way.
    pub const fn is_at_instance(self) -> bool {
        match self {
            Status::Finished | Status::Queued | Status::Running => true,
            Status::Abandoned(stage) => !matches!(stage, Stage::Gateway),
            Status::Rejected(_) | Status::Unservable | Status::InTransit => false,
        }
    }

    /// Its word in reports.
    pub const fn name(self) -> &'static str {
        match self {
            Status::Finished => "finished",
            Status::Rejected(_) => "rejected",
            Status::Unservable => "unservable",
            Status::Abandoned(_) => "abandoned",
            Status::InTransit => "in-transit",
            Status::Queued => "queued",
            Status::Running => "running",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reading_is_reported_in_the_order_of_the_names() {
        let reading = Reading {
            waiting: 1,
            loading: 2,
            running: 3,
            blocks_free: 4,
            blocks_cached: 5,
            blocks_in_use: 6,
            cpu_blocks: 7,
            out_transfers: 8,
            back_transfers: 9,
            pending_transfer: Span::from_micros(10),
            prompt_tokens: 8,
            cached_tokens: 2,
            thrashing_rate: Some(0.5),
        };
        let gauges = Gauges::from(&reading);
        assert_eq!(gauges.counts, [1, 2, 3, 4, 5, 6, 7, 8, 9]);
        // Their names are those of the fields, in the same order.
        let fields = format!("{reading:?}");
        let at = |name: &str| fields.find(&format!("{name}:")).expect("a field");
        assert!(Gauges::COUNTS.map(at).is_sorted());
        assert_eq!(gauges.pending_transfer, Span::from_micros(10));
        assert_eq!(gauges.shares, [Some(0.25), Some(0.5)]);
        assert_eq!(Gauges::from(&Reading::default()).shares, [None, None]);
    }
}
