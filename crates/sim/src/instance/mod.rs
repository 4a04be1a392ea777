//! One engine: its waiting queue, its running batch, its KV pool, and the steps it takes.
//!
//! There is no prefill and no decode phase. Each running request has computed some tokens and has a
//! goal to catch up with; a step gives every request a chunk of what it lacks. A request that
//! reaches its goal generates a token, which is the next goal. `step.rs` forms batches, `land.rs`
//! lands their effects; this file holds the state.

mod admit;
mod clock;
mod connector;
mod flight;
mod glide;
mod land;
mod leave;
mod plan;
mod queue;
mod running;
mod sample;
mod step;
mod stride;
mod tier;

use crate::config::{self, Engine, Oracles, Pace, Policies};
use crate::future::{Future, Stretch};
use crate::live::{Ended, LiveRequests, Place, Slot};
use crate::oracle::Work;
use blis_core::{Blocks, InstanceId, Request, RequestId, SessionId, Span, Time};
use blis_kv::{Change, Judged, Pool, Shown, Table, Use};
use blis_latency::StepTime;
use blis_metrics::{Fact, Listener};
use blis_policy::{Answer, PerClass, UseView};
use flight::InFlight;
use plan::BatchPlan;
use queue::{Queue, Rules};
use running::{Running, RunningBatch};
use std::collections::{BTreeMap, VecDeque};
use std::vec::Drain;
use stride::Stride;
use tier::TierState;

/// A pool with no more runs than this is checked after every step when auditing.
const SHORT_BOOKS: usize = 32;

/// One engine.
#[derive(Clone)]
pub(crate) struct Instance {
    id: InstanceId,
    /// The place of its pool among the pools.
    home: usize,
    /// Whether its latency model looks at more than sums of contexts.
    spread: bool,
    queue: Queue,
    running: RunningBatch,
    pool: Pool,
    tier: Option<Box<TierState>>,
    /// The steps under way; `None` while idle.
    stride: Option<Stride>,
    /// Requests that have joined the queue since the start, by the replica that sent them.
    joined: Vec<u64>,
    /// Prompt tokens of requests scheduled for the first time, and how many of them were cached.
    prompt_tokens: u64,
    cached_tokens: u64,
    /// The share of the latter; polled more often than it changes.
    cache_hit_rate: f64,
    /// Steps since the pool was last checked, when auditing.
    unchecked: usize,
    /// Running requests whose blocks are full: each needs another before the next step.
    full: Vec<usize>,
    /// The latest turn of the queue that was scheduled.
    latest_turn: u64,
    /// How many requests of each session are here, if somebody wants to know.
    sessions: BTreeMap<SessionId, u32>,
    /// Requests whose clients have given up, in that order.
    leaving: Vec<Slot>,
    /// What the step under way computes.
    plan: BatchPlan,
    /// The steps before that whose output has not been processed.
    in_flight: InFlight,
    /// What each stage of a pipeline takes: used for a moment and kept for its memory.
    spans: Vec<Span>,
    /// Running requests that are due: used for a moment and kept for its memory.
    due: Vec<usize>,
}

/// What an instance works with: the run's rules, the live requests and the listener.
pub(crate) struct Kit<'a> {
    /// The pools of the cluster, and which of them the instance at work is of.
    pub(crate) pools: &'a [config::Pool],
    pub(crate) home: usize,
    /// The engine and the latency model of that pool.
    pub(crate) engine: &'a Engine,
    pub(crate) latency: &'a dyn StepTime,
    pub(crate) policies: &'a Policies,
    /// Decisions that oracles take.
    pub(crate) oracles: Oracles,
    /// What an oracle knows.
    pub(crate) future: Option<&'a mut Future>,
    pub(crate) pace: Pace,
    /// Seed of the run's random choices.
    pub(crate) seed: u64,
    pub(crate) unseen: Unseen,
    /// The run ends no later than this, so nothing is planned beyond it.
    pub(crate) horizon: Time,
    pub(crate) audit: bool,
    pub(crate) live: &'a mut LiveRequests,
    pub(crate) listener: &'a mut dyn Listener,
    pub(crate) tally: &'a mut Tally,
    /// Finished requests and when their last tokens left, for a source that wants to hear of them.
    pub(crate) finished: Option<&'a mut Vec<(Request, Time)>>,
    /// Answers by replica of the gateway, for policies there that want to see them.
    pub(crate) answers: Option<&'a mut Vec<VecDeque<Answer>>>,
    /// What became of requests, by replica of the gateway.
    pub(crate) ended: &'a mut [Ended],
    /// Whether the evictor wants to know which sessions are live.
    pub(crate) sessions: bool,
}

impl<'a> Kit<'a> {
    /// An instance of the pool `home` goes to work, by the engine and the latency model of its
    /// pool. Whatever the world asks of an instance begins with this.
    #[inline]
    fn serve(&mut self, home: usize) {
        if home != self.home {
            let config::Pool { engine, latency, .. } = &self.pools[home];
            (self.home, self.engine, self.latency) = (home, engine, &**latency);
        }
    }

    /// What orders a queue.
    fn rules(&self) -> Rules<'a> {
        Rules {
            priority: &*self.policies.priority,
            order: &*self.policies.order,
            block_size: self.engine.block_size,
            cached: self.policies.engine_needs.cached,
            oracle: self
                .oracles
                .scheduler
                .then_some(Work { engine: self.engine, latency: self.latency }),
        }
    }
}

/// What nobody would notice, so that it may be done in a cheaper way.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Unseen {
    /// The listener wants no details.
    pub(crate) details: bool,
    /// When blocks are evicted: nor does anybody look into the prefix caches between two events.
    pub(crate) evictions: bool,
    /// What is in blocks that only one request can have.
    pub(crate) contents: bool,
}

/// Counts of a run.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Tally {
    pub(crate) arrived: u64,
    pub(crate) closed: u64,
    pub(crate) events: u64,
    /// Requests scheduled after somebody who joined their queue later.
    pub(crate) overtaken: u64,
    /// Preemptions of others than the last of the batch.
    pub(crate) spared_last: u64,
    /// Requests that lost their blocks since the last token.
    pub(crate) in_vain: u64,
    /// Steps for which `StepTime::beyond` was not 0, and all its bits.
    pub(crate) beyond_steps: u64,
    pub(crate) beyond: u32,
    /// When the last token left the server.
    pub(crate) last_output: Time,
}

/// The KV memory of an instance, as it shows it to whoever polls it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Memory {
    /// Blocks that requests hold.
    pub(crate) in_use: u32,
    /// The share of all that they are.
    pub(crate) utilization: f64,
    /// Blocks that nobody holds.
    pub(crate) free_blocks: u32,
    /// Until when this is so, if nothing happens before.
    pub(crate) until: Time,
}

impl Instance {
    pub(crate) fn new(
        id: InstanceId,
        home: usize,
        config::Pool { engine, latency, .. }: &config::Pool,
        gateways: usize,
    ) -> Instance {
        let copies = engine.tier.map_or(0, |tier| tier.blocks);
        Instance {
            id,
            home,
            spread: latency.wants_spread(),
            queue: Queue::default(),
            running: RunningBatch::default(),
            pool: Pool::with_tier(engine.total_kv_blocks, copies),
            tier: engine.tier.as_ref().map(|tier| Box::new(TierState::new(tier))),
            stride: None,
            joined: vec![0; gateways],
            prompt_tokens: 0,
            cached_tokens: 0,
            cache_hit_rate: 0.0,
            unchecked: 0,
            full: Vec::new(),
            latest_turn: 0,
            sessions: BTreeMap::new(),
            leaving: Vec::new(),
            plan: BatchPlan::default(),
            in_flight: InFlight::default(),
            spans: Vec::new(),
            due: Vec::new(),
        }
    }

    /// How many requests are there and do not run, and how many run.
    pub(crate) fn requests(&self) -> (u32, u32) {
        // Whoever waits for blocks from the CPU tier has not left the queue for others to see.
        let loads = self.tier.as_ref().map_or(0, |tier| tier.loads());
        (count(self.queue.len() + loads), count(self.running.len()))
    }

    /// Its KV memory as of `now`, which is not before its last change. The steps of a run take
    /// blocks when they end, which is told here without landing them.
    pub(crate) fn memory(&self, now: Time, block_size: u32) -> Memory {
        let (mut growth, mut until) = (0, Time::NEVER);
        if let Some(stride) = self.stride.as_ref().filter(|stride| stride.planned() > 1) {
            let mut passed = stride.done();
            if stride.boundary(passed + 1) < now {
                passed = stride.boundaries_before(now).min(stride.planned() - 1);
                growth = self.running.growth(passed - stride.done(), block_size);
            }
            if passed + 1 < stride.planned() {
                until = stride.boundary(passed + 1);
            }
        }
        let in_use = self.pool.in_use() + growth;
        Memory {
            in_use,
            utilization: share(in_use.into(), self.pool.total().into()),
            free_blocks: self.pool.available() - growth,
            until,
        }
    }

    /// The share of prompt tokens that were cached so far.
    pub(crate) fn cache_hit_rate(&self) -> f64 {
        self.cache_hit_rate
    }

    /// The share of the blocks copied to the CPU tier lately that were copied back soon after.
    pub(crate) fn thrashing_rate(&self) -> f64 {
        self.tier.as_ref().and_then(|tier| tier.thrashing_rate()).unwrap_or(0.0)
    }

    /// The place of its pool among the pools.
    pub(crate) fn home(&self) -> usize {
        self.home
    }

    /// How many requests of that replica of the gateway have joined the queue since the start.
    pub(crate) fn joined_from(&self, gateway: usize) -> u64 {
        self.joined[gateway]
    }

    /// From now on, changes of the prefix cache are kept.
    pub(crate) fn tell_changes(&mut self) {
        self.pool.tell_changes();
    }

    /// Takes what has changed in the prefix cache since the last time, if anything has.
    pub(crate) fn changes(&mut self) -> Option<Drain<'_, Change>> {
        self.pool.take_changes()
    }

    /// What is cached of `prompt` now. Steps that are taken at once change nothing of it.
    pub(crate) fn cached(&self, prompt: Blocks<'_>) -> Shown {
        let hit = self.pool.lookup(prompt);
        Shown { blocks: hit.blocks, copied: hit.copied }
    }

    /// How many requests of each class are in the queue.
    pub(crate) fn waiting_by_class(&self) -> PerClass<u32> {
        self.queue.by_class()
    }

    /// How long the copies from the CPU tier that are under way at `now` still take.
    pub(crate) fn pending_transfer(&self, now: Time) -> Span {
        self.tier.as_ref().map_or(Span::ZERO, |tier| tier.backlog(now))
    }

    /// A request joins the queue. Returns when the next step boundary is due, which is now if the
    /// engine is idle.
    pub(crate) fn enqueue(&mut self, slot: Slot, now: Time, kit: &mut Kit<'_>) -> Time {
        kit.serve(self.home);
        // What has ended is stated first, so that an instance's facts are in order of time.
        self.catch_up(now, kit);
        let live = kit.live.get_mut(slot);
        live.place = Place::Waiting;
        live.enqueued = now;
        live.split.gateway = now.since(live.request.arrival);
        self.joined[live.gateway] += 1;
        let request = live.request.id;
        kit.listener.hear(now, &Fact::Enqueued { request, instance: self.id });
        if let Some(session) = live.request.session.filter(|_| kit.sessions) {
            *self.sessions.entry(session).or_default() += 1;
        }
        self.queue.join(slot, &kit.rules(), &self.pool, kit.live, now);
        match &mut self.stride {
            Some(stride) => stride.end_after(now),
            None => now,
        }
    }

    /// The steps under way end, their effects land, and the next begin. Returns when those end;
    /// `NEVER`: idle.
    pub(crate) fn boundary(&mut self, now: Time, kit: &mut Kit<'_>) -> Time {
        kit.serve(self.home);
        self.land(now, kit);
        let next = self.begin(now, kit);
        self.check(kit);
        next
    }

    /// Lands the effects of the steps that ended before `now`, without ending the steps under way.
    /// Returns whether there were any.
    pub(crate) fn catch_up(&mut self, now: Time, kit: &mut Kit<'_>) -> bool {
        let Some(stride) = &self.stride else { return false };
        if stride.planned() == 1 {
            return false;
        }
        let passed = stride.boundaries_before(now).min(stride.planned() - 1);
        let behind = passed > stride.done();
        if behind {
            kit.serve(self.home);
            let foretold = kit.audit.then(|| self.memory(now, kit.engine.block_size).in_use);
            self.pass(passed, kit);
            let same = foretold.is_none_or(|blocks| blocks == self.pool.in_use());
            assert!(same, "{:?} foretold {foretold:?} blocks in use at {now}", self.id);
        }
        behind
    }

    /// A request of this session leaves for good; returns whether another one is here.
    fn leave_session(&mut self, session: SessionId) -> bool {
        let Some(here) = self.sessions.get_mut(&session) else { return false };
        *here -= 1;
        let live = *here > 0;
        if !live {
            self.sessions.remove(&session);
        }
        live
    }

    /// The slots and generated tokens of the batch, for closing the books of a run that ended
    /// early.
    pub(crate) fn batch(&mut self) -> impl Iterator<Item = (Slot, u32)> + '_ {
        self.running.settle_all();
        let handed_out = |(index, running): (usize, &Running)| {
            (running.slot, running.generated - self.awaited(index))
        };
        self.running.iter().enumerate().map(handed_out)
    }

    /// What this engine has of the prompt of a request, and of what it had generated before it was
    /// preempted, is needed later than an oracle thought, so the oracle is asked again.
    pub(crate) fn judge_again(&mut self, slot: Slot, now: Time, kit: &mut Kit<'_>) {
        kit.serve(self.home);
        let (live, block_size) = (kit.live.get(slot), kit.engine.block_size);
        let content = &live.request.content;
        let known = (content.prompt_tokens() + live.generated) / block_size;
        let mut table = self.pool.claim(self.pool.lookup(content.blocks(block_size, known)));
        release(&mut self.pool, &mut table, slot, Released::Done { session_live: false }, now, kit);
    }

    /// Whether the engine has something to do and is not doing it: a broken invariant.
    pub(crate) fn is_stuck(&self) -> bool {
        let loads = self.tier.as_ref().is_some_and(|tier| tier.has_loads());
        let works = loads || !(self.queue.is_empty() && self.running.is_empty());
        self.stride.is_none() && works
    }

    /// Checks the pool's books: after every step while they are short, and later as often as a walk
    /// over them costs little beside the steps taken.
    fn check(&mut self, kit: &Kit<'_>) {
        if !kit.audit {
            return;
        }
        self.unchecked += 1;
        let runs = self.pool.runs();
        if runs <= SHORT_BOOKS || self.unchecked >= 4 * runs {
            self.unchecked = 0;
            let running = self.running.iter().map(|running| &running.table);
            let loads = self.tier.iter().flat_map(|tier| tier.tables());
            self.pool.check(running.chain(loads));
            self.pool.check_worths();
        }
    }
}

/// Why blocks are given back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Released {
    /// Their request has finished.
    Done {
        /// Whether another request of its session is waiting or running here.
        session_live: bool,
    },
    /// Their request will want them again.
    ComesBack,
}

/// Gives the blocks of a request back; the evictor says what they are worth.
fn release(
    pool: &mut Pool,
    table: &mut Table,
    slot: Slot,
    why: Released,
    now: Time,
    kit: &mut Kit<'_>,
) {
    let live = kit.live.get(slot);
    let request = &live.request;
    let judge = |Use { uses, upto, worth }: Use, next_use: Option<RequestId>| {
        let worth = kit.policies.evict.worth(&UseView {
            class: request.class,
            priority: live.priority,
            intent: live.intent,
            session: request.session,
            session_live: why == Released::Done { session_live: true },
            preempted: why == Released::ComesBack,
            now,
            uses,
            upto,
            worth: f64::from_bits(worth),
            next_use,
        });
        assert!(worth >= 0.0 && worth.is_finite(), "a worth is a number, not negative");
        // Numbers that are not negative are ordered as their bits are; -0.0 must not be one.
        (worth + 0.0).to_bits()
    };
    let Some(future) = &mut kit.future else {
        pool.release(table, |ended| judge(ended, None));
        return;
    };
    if why == Released::ComesBack {
        future.come_again(request.id, &request.content, table.shared());
    }
    future.look(request.content.blocks(kit.engine.block_size, table.shared()));
    pool.release_cut(table, |ended| {
        let Stretch { from, next_use } = future.before(ended.upto);
        Judged { worth: judge(ended, next_use), from }
    });
}

/// `part` of `whole`; 0 of nothing.
fn share(part: u64, whole: u64) -> f64 {
    if whole == 0 { 0.0 } else { blis_core::math::float(part) / blis_core::math::float(whole) }
}

fn count(n: usize) -> u32 {
    u32::try_from(n).expect("requests of one instance fit u32")
}
