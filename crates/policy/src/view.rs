//! What policies may see. Everything here is a fact with a source and an age; nothing is an
//! intermediate result.

use blis_core::{InstanceId, RequestId, RequestView, SessionId, SloClass, Span, Time, math};

/// A value for each service class, by `SloClass::index`.
pub type PerClass<T> = [T; 5];
const _: () = assert!(SloClass::ALL.len() == 5, "a value for each class");

/// What the gateway knows of the cluster when it decides about a request.
#[derive(Clone, Copy, Debug)]
pub struct ClusterView<'a> {
    /// The instant of the decision.
    pub now: Time,
    /// The seed of the run's random choices, for policies whose own dice are keyed by more than a
    /// request.
    pub seed: u64,
    /// The instances to choose from, in order of their ids: all of them, or those that filters have
    /// left. Never empty.
    pub instances: &'a [InstanceView],
    /// Places of the instances that may look different from when the router was last asked, some
    /// perhaps twice; `None`: any may. How old a value is does not count.
    pub changed: Option<&'a [usize]>,
}

impl ClusterView<'_> {
    /// The mean of a number over all instances.
    pub(crate) fn mean(&self, of: impl Fn(&InstanceView) -> f64) -> f64 {
        self.instances.iter().map(of).sum::<f64>() / math::float(self.instances.len() as u64)
    }

    /// Fills `out`, which has a place for each instance, with what `of` makes of it.
    pub(crate) fn each<T>(&self, out: &mut [T], of: impl Fn(&InstanceView) -> T) {
        for (place, view) in out.iter_mut().zip(self.instances) {
            *place = of(view);
        }
    }
}

/// What a router knows about one instance.
///
/// It has three sources. The router's own counts are always live: `in_flight`, `in_flight_tokens`,
/// `unstarted_tokens` and `unseen`. KV events tell of `cached_blocks` and `cached_cpu_blocks`, some
/// time after the fact. The rest is polled: load as of `as_of`, memory as of `kv_as_of` (the last
/// poll, or now).
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct InstanceView {
    /// Which instance.
    pub id: InstanceId,
    /// Which pool it is of, counted from 0 in the order of the configuration: the instances of a
    /// pool are alike.
    pub pool: usize,
    /// When `queue_depth`, `running` and `waiting_by_class` were polled; `None`: they are live.
    pub as_of: Option<Time>,
    /// When the values of its memory were polled; `None`: they are live.
    pub kv_as_of: Option<Time>,
    /// Requests waiting in the instance's queue.
    pub queue_depth: u32,
    /// Requests in the running batch.
    pub running: u32,
    /// Of the requests waiting in the queue, those of each class, by `SloClass::index`.
    pub waiting_by_class: PerClass<u32>,
    /// Requests that this router sent there and that have not ended.
    pub in_flight: u32,
    /// Their prompt tokens.
    pub in_flight_tokens: u64,
    /// Prompt tokens, less those that it expected to be cached, of the requests that this router
    /// sent there and that have no first token yet.
    pub unstarted_tokens: u64,
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
    /// Leading full blocks of the prompt of the request in question that are cached there, as far
    /// as KV events have told.
    pub cached_blocks: u32,
    /// Blocks behind those that its CPU tier has, as far as KV events have told.
    pub cached_cpu_blocks: u32,
}

impl InstanceView {
    /// An instance where nothing has happened yet.
    pub fn idle(id: InstanceId, free_blocks: u32) -> InstanceView {
        InstanceView { id, free_blocks, ..InstanceView::default() }
    }

    /// The instance's load in requests. Each request counts once: waiting or running as polled, or
    /// sent since.
    pub fn load(&self) -> u32 {
        self.queue_depth + self.running + self.unseen
    }
}

/// What a policy reads besides the request itself. The host computes only what is declared.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[expect(clippy::struct_excessive_bools, reason = "one for each group of signals")]
pub struct Needs {
    /// `queue_depth`, `running`, `unseen`, `load()`.
    pub load: bool,
    /// `waiting_by_class`.
    pub classes: bool,
    /// `kv_utilization`, `free_blocks`.
    pub kv: bool,
    /// `cache_hit_rate`.
    pub hit_rate: bool,
    /// `pending_transfer_us`, `thrashing_rate`.
    pub transfers: bool,
    /// `cached_blocks`, `cached_cpu_blocks` of an instance, which KV events tell.
    pub events: bool,
    /// Answers as they come back.
    pub answers: bool,
    /// `cached_blocks` of a waiting request, which its engine looks up.
    pub cached: bool,
    /// Priorities: without a reader, a priority policy would change nothing.
    pub priority: bool,
    /// `session_live`.
    pub sessions: bool,
    /// `next_use`, which only an oracle has: the requests to come must be known beforehand.
    pub future: bool,
}

impl Needs {
    /// Nothing but the router's own counts.
    pub const NONE: Needs = Needs {
        load: false,
        classes: false,
        kv: false,
        hit_rate: false,
        transfers: false,
        events: false,
        answers: false,
        cached: false,
        priority: false,
        sessions: false,
        future: false,
    };

    /// What `self` or `other` reads.
    #[must_use]
    pub const fn or(self, other: Needs) -> Needs {
        Needs {
            load: self.load || other.load,
            classes: self.classes || other.classes,
            kv: self.kv || other.kv,
            hit_rate: self.hit_rate || other.hit_rate,
            transfers: self.transfers || other.transfers,
            events: self.events || other.events,
            answers: self.answers || other.answers,
            cached: self.cached || other.cached,
            priority: self.priority || other.priority,
            sessions: self.sessions || other.sessions,
            future: self.future || other.future,
        }
    }

    /// Whether the load of instances is read.
    pub const fn reads_load(self) -> bool {
        self.load || self.classes
    }

    /// Whether the memory of instances is read.
    pub const fn reads_memory(self) -> bool {
        self.kv || self.hit_rate || self.transfers
    }

    /// Whether anything is read that has to be looked at.
    pub const fn looks(self) -> bool {
        self.polls() || self.events
    }

    /// Whether any polled value is read at all.
    pub const fn polls(self) -> bool {
        self.reads_load() || self.reads_memory()
    }
}

/// Why a request is where it is: what the router expected when it chose. It travels with the
/// request, so that the engine's policies can tell what was promised.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Intent {
    /// Full prompt blocks that the router believed were cached there; `None` if it had no opinion.
    pub expected_hit_blocks: Option<u32>,
    /// What the instance was chosen for: the policy or scorer that made the difference.
    pub because: &'static str,
}

impl Intent {
    /// Of a request that nobody has routed yet.
    pub const NONE: Intent = Intent { expected_hit_blocks: None, because: "" };
}

/// An answer as the gateway sees it pass.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Answer {
    /// Which request.
    pub request: RequestId,
    /// Its service class.
    pub class: SloClass,
    /// Where it was served.
    pub instance: InstanceId,
    /// Its prompt length in tokens.
    pub input_tokens: u32,
    /// Prompt tokens that were cached, as the engine reports them.
    pub cached_tokens: u32,
    /// Arrival to first token.
    pub ttft: Span,
    /// Arrival to last token.
    pub e2e: Span,
    /// When the last token left.
    pub now: Time,
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
    /// What the router expected.
    pub intent: Intent,
    /// Full blocks of its prompt that are cached here now; only for those that need it (`cached`).
    pub cached_blocks: u32,
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
    /// Its priority when it was scheduled; higher is more important.
    pub priority: f64,
    /// What the router expected when it sent the request here.
    pub intent: Intent,
    /// Its session, if it is a round of one.
    pub session: Option<SessionId>,
    /// Whether another request of its session is waiting or running here; only for those that need
    /// it (`sessions`).
    pub session_live: bool,
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
    /// The first request of those to come, in order of arrival, that begins with the run and all
    /// before it. Only for those that need the `future`; for others, and if there is none, `None`.
    pub next_use: Option<RequestId>,
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
    use blis_core::{Content, Dice, Segment, StreamId, TenantId};
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
        WaitingView {
            request,
            enqueued: Time::ZERO,
            generated: 0,
            intent: Intent::NONE,
            cached_blocks: 0,
        }
    }

    /// Instances with these queue depths, otherwise idle.
    pub(crate) fn instances(queue_depths: &[u32]) -> Vec<InstanceView> {
        let view = |(id, queue_depth): (u32, &u32)| InstanceView {
            queue_depth: *queue_depth,
            in_flight: *queue_depth,
            ..InstanceView::idle(InstanceId(id), 1_000)
        };
        (0..).zip(queue_depths).map(view).collect()
    }

    /// A decision about `instances` at the start of a run.
    pub(crate) fn cluster(instances: &[InstanceView]) -> ClusterView<'_> {
        ClusterView { now: Time::ZERO, seed: 42, instances, changed: None }
    }

    /// The first use of a block by a standard request without a session.
    pub(crate) fn used() -> UseView {
        UseView {
            class: SloClass::Standard,
            priority: 0.0,
            intent: Intent::NONE,
            session: None,
            session_live: false,
            preempted: false,
            now: Time::ZERO,
            uses: 1,
            upto: 1,
            worth: 0.0,
            next_use: None,
        }
    }

    /// A running request like any other.
    pub(crate) fn running() -> RunningView {
        RunningView {
            class: SloClass::Standard,
            arrival: Time::ZERO,
            priority: 0.0,
            computed_tokens: 100,
            generated: 3,
            blocks: 7,
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
        let views = instances(queue_depths);
        scorer.score(&request(&prompt(blocks)), &cluster(&views), &mut scores);
        scores
    }
}
