//! The lives of requests: what each did from its arrival to its end, stretch by stretch.
//!
//! [`Lives`] hears the facts of a run and gives the [`Life`] of each request as it ends. It keeps
//! only requests that have not ended. For the few that are watched it also keeps the steps that
//! they ran in, who was scheduled while they waited, and what their router considered. Chunks and
//! what routers considered are known only if the run states details.

use crate::fact::{Batch, Candidate, Fact, Record};
use blis_core::{InstanceId, RequestId, Span, Time};
use std::collections::{BTreeMap, BTreeSet, VecDeque};

/// What a request does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Doing {
    /// Waits for the decisions of the gateway.
    Gateway,
    /// Is on its way from the gateway to the queue of its instance.
    Ingress,
    /// Waits in the queue.
    Waiting,
    /// Waits for its blocks from the CPU tier, while others run.
    Reloading,
    /// Runs, and computes its prompt or catches up after a preemption.
    Prefill,
    /// Runs, and generates.
    Decode,
}

impl Doing {
    /// Its word in reports.
    pub const fn name(self) -> &'static str {
        match self {
            Doing::Gateway => "gateway",
            Doing::Ingress => "ingress",
            Doing::Waiting => "waiting",
            Doing::Reloading => "reload",
            Doing::Prefill => "prefill",
            Doing::Decode => "decode",
        }
    }

    /// Whether it is in the batch.
    pub const fn is_running(self) -> bool {
        matches!(self, Doing::Prefill | Doing::Decode)
    }
}

/// A time in which a request does one thing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stretch {
    /// What.
    pub doing: Doing,
    /// From when on.
    pub from: Time,
    /// Until when.
    pub to: Time,
    /// Whether a preemption made it necessary, or made it be for nothing.
    pub preempted: bool,
}

impl Stretch {
    /// How long it is.
    pub fn span(&self) -> Span {
        self.to.since(self.from)
    }
}

/// Equal steps that a request ran in, or waited for.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct StepsOf {
    /// When the last of them ended.
    pub end: Time,
    /// How many.
    pub count: u64,
    /// How long each took.
    pub duration: Span,
    /// How long each occupied the GPU.
    pub gpu: Span,
    /// How long it waited for copies.
    pub stall: Span,
    /// What each computed.
    pub batch: Batch,
    /// Tokens that the request caught up on in it.
    pub own_tokens: u32,
    /// The greatest prefill of another request in it.
    pub largest: Option<(RequestId, u32)>,
}

impl StepsOf {
    /// When the first of them began, or was ended by the one before.
    pub fn begin(&self) -> Time {
        self.end - self.duration * self.count
    }
}

/// A request that was scheduled while another waited.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ahead {
    /// Which.
    pub request: RequestId,
    /// Tokens that it had to compute.
    pub tokens: u32,
    /// Whether it joined the queue later, and overtook.
    pub overtook: bool,
}

/// What the router of a request chose among.
#[derive(Clone, Debug, PartialEq)]
pub struct Considered {
    /// When it chose.
    pub at: Time,
    /// Every instance, by id.
    pub candidates: Vec<Candidate>,
    /// Each scorer's part of the total of each instance.
    pub opinions: Vec<(&'static str, Vec<f64>)>,
    /// Where the request would have gone if nothing had been stale.
    pub fresh: InstanceId,
    /// What made the difference.
    pub because: &'static str,
}

/// What a request did.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Life {
    /// From arrival to end, without gaps. The last ends when the engine has all tokens; their way
    /// out of the server is not part of it.
    pub stretches: Vec<Stretch>,
    /// When the step ended that gave the first token.
    pub first_token: Option<Time>,
    /// Requests that were waiting and running at its instance when it joined the queue.
    pub found: (u32, u32),
    /// Those scheduled while it waited; only if it is watched.
    pub ahead: Vec<Ahead>,
    /// The one that was under way when it joined the queue, and the steps it ran in, in order; only
    /// if it is watched.
    pub steps: Vec<StepsOf>,
    /// What its router chose among; only if it is watched and scored.
    pub considered: Option<Considered>,
    /// Tokens that it has to catch up on.
    left: u32,
    /// Whether it has to because of a preemption.
    preempted: bool,
}

impl Life {
    /// From `at` on it does something else. A stretch of no length is left out.
    fn turn(&mut self, at: Time, doing: Doing) {
        self.end(at);
        let preempted = self.preempted && doing != Doing::Decode;
        self.stretches.push(Stretch { doing, from: at, to: at, preempted });
    }

    fn end(&mut self, at: Time) {
        if let Some(last) = self.stretches.last_mut() {
            last.to = at;
        }
        self.stretches.pop_if(|last| last.from == last.to);
    }

    fn doing(&self) -> Option<Doing> {
        self.stretches.last().map(|stretch| stretch.doing)
    }

    /// Its prompt is computed, or it has caught up.
    fn catch_up(&mut self, at: Time) {
        if self.doing() == Some(Doing::Prefill) {
            self.preempted = false;
            self.turn(at, Doing::Decode);
        }
    }

    fn preempt(&mut self, at: Time) {
        if let Some(last) = self.stretches.last_mut() {
            last.preempted |= last.doing == Doing::Prefill;
        }
        self.preempted = true;
        self.turn(at, Doing::Waiting);
    }

    fn first_token(&mut self, at: Time) {
        self.first_token = Some(at);
        match self.doing() {
            Some(Doing::Prefill) => self.catch_up(at),
            Some(other) => self.turn(at, other),
            None => {}
        }
    }

    /// The stretches before the first token, or all if there is none.
    pub fn before_first_token(&self) -> impl Iterator<Item = &Stretch> {
        let until = self.first_token.unwrap_or(Time::NEVER);
        self.stretches.iter().filter(move |stretch| stretch.to <= until)
    }

    /// Every nanosecond of the record is in one stretch.
    fn check(&self, record: &Record<'_>) {
        let output = record.split.output;
        let sum = |spans: &mut dyn Iterator<Item = Span>| spans.sum::<Span>() + output;
        if let Some(ttft) = record.ttft {
            let lived = sum(&mut self.before_first_token().map(Stretch::span));
            let (request, split) = (record.request, record.split.total());
            assert!(lived == ttft && split == ttft, "{request:?}: {lived}, {split} of {ttft}");
        }
        if let Some(e2e) = record.e2e {
            let lived = sum(&mut self.stretches.iter().map(Stretch::span));
            assert_eq!(lived, e2e, "the life of {:?} adds up", record.request);
        }
    }
}

/// Who is at an instance.
#[derive(Clone, Debug, Default)]
struct Place {
    waiting: BTreeSet<RequestId>,
    running: BTreeSet<RequestId>,
    /// Watched requests there.
    watched: BTreeSet<RequestId>,
    /// The chunks of each step with prefill that has not ended.
    formed: VecDeque<Vec<(RequestId, u32)>>,
    /// When steps that have not ended began to wait for copies, and how long they did.
    stalls: VecDeque<(Time, Span)>,
}

impl Place {
    fn leave(&mut self, request: RequestId) {
        self.waiting.remove(&request);
        self.running.remove(&request);
        self.watched.remove(&request);
    }
}

/// Hears the facts of a run and gives the lives of its requests.
#[derive(Clone, Debug, Default)]
pub struct Lives {
    open: BTreeMap<RequestId, Life>,
    places: Vec<Place>,
    watched: BTreeSet<RequestId>,
}

impl Lives {
    /// Lives of all requests, with more about those that are watched.
    pub fn watching(watched: impl IntoIterator<Item = RequestId>) -> Lives {
        Lives { watched: watched.into_iter().collect(), ..Lives::default() }
    }

    /// Whether more is kept of this request.
    pub fn is_watched(&self, request: RequestId) -> bool {
        self.watched.contains(&request)
    }

    /// `fact` happened at `at`. Returns the life of a request that has ended.
    ///
    /// # Panics
    /// If the life does not add up to the latencies of its record.
    pub fn hear(&mut self, at: Time, fact: &Fact<'_>) -> Option<Life> {
        match *fact {
            Fact::Arrived { request, .. } => {
                self.open.entry(request).or_default().turn(at, Doing::Gateway);
            }
            Fact::Considered { request, candidates, opinions, fresh } => {
                let (candidates, opinions) = (candidates.to_vec(), opinions.to_vec());
                let watched = self.watched.contains(&request);
                if let Some(life) = self.open.get_mut(&request).filter(|_| watched) {
                    let considered = Considered { at, candidates, opinions, fresh, because: "" };
                    life.considered = Some(considered);
                }
            }
            Fact::Routed { request, because, .. } => {
                let life = self.open.get_mut(&request)?;
                life.turn(at, Doing::Ingress);
                if let Some(considered) = &mut life.considered {
                    considered.because = because;
                }
            }
            Fact::Enqueued { request, instance } => self.enqueued(at, request, instance),
            Fact::Scheduled { request, instance, cached_tokens, total_tokens } => {
                self.scheduled(at, request, instance, total_tokens - cached_tokens);
            }
            Fact::Preempted { request, instance, .. } => {
                self.open.get_mut(&request)?.preempt(at);
                self.moved(request, instance, Doing::Waiting);
            }
            Fact::Reloading { request, beside: true, .. } => {
                self.open.get_mut(&request)?.turn(at, Doing::Reloading);
            }
            Fact::Unloaded { request, .. } => {
                self.open.get_mut(&request)?.turn(at, Doing::Waiting);
            }
            Fact::Formed { instance, chunks } => {
                self.place(instance).formed.push_back(chunks.to_vec());
            }
            Fact::Stalled { instance, span } => self.place(instance).stalls.push_back((at, span)),
            Fact::Steps { instance, .. } => self.steps(at, instance, fact),
            Fact::FirstToken { request, .. } => self.open.get_mut(&request)?.first_token(at),
            Fact::Closed { ref record, .. } => return self.closed(at, record),
            Fact::Admitted { .. }
            | Fact::Evicted { .. }
            | Fact::Offloading { .. }
            | Fact::Offloaded { .. }
            | Fact::Reloading { .. }
            | Fact::Reloaded { .. }
            | Fact::Tokens { .. }
            | Fact::Overran { .. }
            | Fact::Dropped { .. }
            | Fact::Sample { .. } => {}
        }
        None
    }

    fn place(&mut self, instance: InstanceId) -> &mut Place {
        if self.places.len() <= instance.index() {
            self.places.resize_with(instance.index() + 1, Place::default);
        }
        &mut self.places[instance.index()]
    }

    /// A request is waiting or running now.
    fn moved(&mut self, request: RequestId, instance: InstanceId, doing: Doing) {
        let place = self.place(instance);
        place.waiting.remove(&request);
        place.running.remove(&request);
        let set = if doing.is_running() { &mut place.running } else { &mut place.waiting };
        set.insert(request);
    }

    fn enqueued(&mut self, at: Time, request: RequestId, instance: InstanceId) {
        let watched = self.watched.contains(&request);
        let place = self.place(instance);
        let count = |set: &BTreeSet<RequestId>| u32::try_from(set.len()).unwrap_or(u32::MAX);
        let found = (count(&place.waiting), count(&place.running));
        let before: Vec<RequestId> =
            if watched { place.waiting.iter().copied().collect() } else { Vec::new() };
        place.watched.extend(watched.then_some(request));
        self.moved(request, instance, Doing::Waiting);
        let Some(life) = self.open.get_mut(&request) else { return };
        life.turn(at, Doing::Waiting);
        life.found = found;
        // Overtaken unless they turn out to have been there before.
        let ahead = |request| Ahead { request, tokens: 0, overtook: false };
        life.ahead = before.into_iter().map(ahead).collect();
    }

    fn scheduled(&mut self, at: Time, request: RequestId, instance: InstanceId, tokens: u32) {
        self.moved(request, instance, Doing::Prefill);
        let watched = self.place(instance).watched.clone();
        for other in watched.into_iter().filter(|other| *other != request) {
            let Some(life) = self.open.get_mut(&other) else { continue };
            // Waiting for the first time; who comes before it later is part of a preemption.
            if life.doing() != Some(Doing::Waiting) || life.preempted {
                continue;
            }
            match life.ahead.iter_mut().find(|ahead| ahead.request == request) {
                Some(ahead) => ahead.tokens += tokens,
                None => life.ahead.push(Ahead { request, tokens, overtook: true }),
            }
        }
        let Some(life) = self.open.get_mut(&request) else { return };
        life.turn(at, Doing::Prefill);
        life.left = tokens;
        // Those that were waiting and are still waiting were overtaken.
        life.ahead.retain(|ahead| ahead.tokens > 0);
    }

    fn steps(&mut self, at: Time, instance: InstanceId, fact: &Fact<'_>) {
        let Fact::Steps { count, duration, ahead, gpu, batch, .. } = *fact else { return };
        let begun = at - duration * count - ahead;
        let place = self.place(instance);
        let own = |&mut (since, span): &mut (Time, Span)| since <= begun && span <= duration;
        let stall = place.stalls.pop_front_if(own).map_or(Span::ZERO, |(_, span)| span);
        let prefills = batch.prefill_tokens > 0;
        let chunks = place.formed.pop_front_if(|_| prefills).unwrap_or_default();
        for request in place.watched.clone() {
            let own = |&(other, tokens): &(RequestId, u32)| (other == request).then_some(tokens);
            let others = chunks.iter().filter(|(other, _)| *other != request);
            let steps = StepsOf {
                end: at,
                count,
                duration,
                gpu,
                stall,
                batch,
                own_tokens: chunks.iter().find_map(own).unwrap_or(0),
                largest: others.max_by_key(|(_, tokens)| *tokens).copied(),
            };
            if let Some(life) = self.open.get_mut(&request) {
                let last = life.stretches.last();
                let waits_for = |last: &Stretch| steps.begin() < last.from && !last.preempted;
                if last.is_some_and(|last| last.doing.is_running() || waits_for(last)) {
                    life.steps.push(steps);
                }
            }
        }
        for (request, tokens) in chunks {
            let Some(life) = self.open.get_mut(&request) else { continue };
            if life.stretches.last().is_none_or(|last| last.from > begun) {
                // It was preempted after the step had begun.
                continue;
            }
            life.left = life.left.saturating_sub(tokens);
            if life.left == 0 {
                life.catch_up(at);
            }
        }
    }

    fn closed(&mut self, at: Time, record: &Record<'_>) -> Option<Life> {
        if let Some(instance) = record.instance {
            self.place(instance).leave(record.request);
        }
        let mut life = self.open.remove(&record.request)?;
        life.end(at);
        life.check(record);
        Some(life)
    }
}
