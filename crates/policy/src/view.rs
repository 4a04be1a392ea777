//! What policies may see. Everything here is a fact with a source and an age; nothing is an
//! intermediate result.

use blis_core::{InstanceId, RequestView, SessionId, SloClass, Time};

/// What a router knows about one instance.
///
/// `in_flight` and `unseen` are the router's own counts and always live; the other values are as of
/// `as_of` (now, or the last poll).
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct InstanceView {
    /// Which instance.
    pub id: InstanceId,
    /// When the polled values were true; never in the future.
    pub as_of: Time,
    /// Requests waiting in the instance's queue.
    pub queue_depth: u32,
    /// Requests in the running batch.
    pub running: u32,
    /// Requests that this router sent there and that have not ended.
    pub in_flight: u32,
    /// Requests that this router sent there and that had not joined the queue as of `as_of`.
    pub unseen: u32,
    /// Share of the KV blocks that running requests hold, 0..=1. Idle cached blocks count as free.
    pub kv_utilization: f64,
    /// Blocks that no running request holds.
    pub free_blocks: u32,
    /// Share of prompt tokens found in the prefix cache since the start, 0..=1 (0 before the
    /// first).
    pub cache_hit_rate: f64,
    /// How long the copies from the CPU tier that were under way as of `as_of` still take, in us.
    pub pending_transfer_us: f64,
    /// Share of the blocks copied to the CPU tier lately that were copied back soon after, 0..=1.
    pub thrashing_rate: f64,
}

impl InstanceView {
    /// The instance's load in requests. Each request counts once: waiting or running as polled, or
    /// sent since.
    pub fn load(&self) -> u32 {
        self.queue_depth + self.running + self.unseen
    }
}

/// Which of the polled values a policy reads. The host computes only what is declared.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[expect(clippy::struct_excessive_bools, reason = "one for each group of signals")]
pub struct Needs {
    /// `queue_depth`, `running`, `unseen`, `load()`.
    pub load: bool,
    /// `kv_utilization`, `free_blocks`.
    pub kv: bool,
    /// `cache_hit_rate`.
    pub hit_rate: bool,
    /// `pending_transfer_us`, `thrashing_rate`.
    pub transfers: bool,
}

impl Needs {
    /// Nothing but the router's own counts.
    pub const NONE: Needs = Needs { load: false, kv: false, hit_rate: false, transfers: false };

    /// What `self` or `other` reads.
    #[must_use]
    pub const fn or(self, other: Needs) -> Needs {
        Needs {
            load: self.load || other.load,
            kv: self.kv || other.kv,
            hit_rate: self.hit_rate || other.hit_rate,
            transfers: self.transfers || other.transfers,
        }
    }

    /// Whether any polled value is read at all.
    pub const fn any(self) -> bool {
        self.load || self.kv || self.hit_rate || self.transfers
    }
}

/// A request in an instance's queue, for priority and order.
#[derive(Clone, Copy, Debug)]
pub struct WaitingView<'a> {
    /// The request.
    pub request: RequestView<'a>,
    /// When it joined this queue.
    pub enqueued: Time,
    /// Tokens it has generated before a preemption.
    pub generated: u32,
}

/// A running request, for choosing whom to preempt. Listed in running order, oldest first.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RunningView {
    /// Service class.
    pub class: SloClass,
    /// When the client sent it.
    pub arrival: Time,
    /// Its priority when it was scheduled; higher is more important.
    pub priority: f64,
    /// Tokens whose KV it holds.
    pub computed_tokens: u32,
    /// Tokens it has generated.
    pub generated: u32,
    /// KV blocks it holds.
    pub blocks: u32,
}

/// The use of a run of cached blocks that has just ended, for the evictor.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct UseView {
    /// Service class of the request that used it.
    pub class: SloClass,
    /// Its session, if it is a round of one.
    pub session: Option<SessionId>,
    /// Whether it was preempted, and so will come back.
    pub preempted: bool,
    /// When the use ended.
    pub now: Time,
    /// How many requests have used the run since it was computed.
    pub uses: u32,
    /// Blocks from the start of the prompt to the end of the run.
    pub upto: u32,
    /// What the run was worth before.
    pub worth: f64,
}

/// The KV memory of an engine, for the offloader.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MemoryView {
    /// All blocks.
    pub total: u32,
    /// Blocks that requests hold.
    pub in_use: u32,
    /// Cached blocks that nobody uses.
    pub idle: u32,
}

/// Small views for the tests of policies.
#[cfg(test)]
pub(crate) mod examples {
    use super::*;
    use crate::contract::Scorer;
    use blis_core::random::Purpose;
    use blis_core::{Content, Dice, RequestId, Segment, StreamId, TenantId};
    use std::sync::LazyLock;

    /// A prompt of full blocks of 16 tokens, each named by the stream it is of.
    pub(crate) fn prompt(blocks: &[u64]) -> Content {
        let segment = |&stream: &u64| Segment { stream: StreamId(stream), tokens: 16 };
        Content::new(blocks.iter().map(segment), StreamId(u64::MAX))
    }

    /// A prompt without a block.
    pub(crate) static NOTHING: LazyLock<Content> = LazyLock::new(|| prompt(&[]));

    /// A standard request with this prompt.
    pub(crate) fn request(prompt: &Content) -> RequestView<'_> {
        let prompt_blocks = prompt.prompt_blocks(16);
        RequestView {
            id: RequestId(0),
            arrival: Time::ZERO,
            input_tokens: prompt.prompt_tokens(),
            prompt_blocks,
            class: SloClass::Standard,
            tenant: TenantId(0),
            session: None,
            round: 0,
            attempt: 0,
            deadline: None,
        }
    }

    /// A request with a prompt of `input_tokens` in a queue.
    pub(crate) fn waiting(input_tokens: u32) -> WaitingView<'static> {
        let request = RequestView { input_tokens, ..request(&NOTHING) };
        WaitingView { request, enqueued: Time::ZERO, generated: 0 }
    }

    /// Instances with these queue depths, otherwise idle.
    pub(crate) fn instances(queue_depths: &[u32]) -> Vec<InstanceView> {
        let view = |(id, queue_depth): (u32, &u32)| InstanceView {
            id: InstanceId(id),
            as_of: Time::ZERO,
            queue_depth: *queue_depth,
            running: 0,
            in_flight: *queue_depth,
            unseen: 0,
            kv_utilization: 0.0,
            free_blocks: 1_000,
            cache_hit_rate: 0.0,
            pending_transfer_us: 0.0,
            thrashing_rate: 0.0,
        };
        (0..).zip(queue_depths).map(view).collect()
    }

    /// The first use of a block by a standard request without a session.
    pub(crate) fn used() -> UseView {
        UseView {
            class: SloClass::Standard,
            session: None,
            preempted: false,
            now: Time::ZERO,
            uses: 1,
            upto: 1,
            worth: 0.0,
        }
    }

    /// The routing dice of request `key`.
    pub(crate) fn dice(key: u64) -> Dice {
        Dice::new(42, Purpose::Routing, key)
    }

    /// What `scorer` gives instances with these queue depths.
    pub(crate) fn scores(
        scorer: &mut dyn Scorer,
        blocks: &[u64],
        queue_depths: &[u32],
    ) -> Vec<f64> {
        let mut scores = vec![f64::NAN; queue_depths.len()];
        scorer.score(&request(&prompt(blocks)), &instances(queue_depths), &mut scores);
        scores
    }
}
