//! What the gateway knows of the instances, and how old it is.
//!
//! Each replica of the gateway has a view of its own: it polls at its own phase, and knows of
//! nothing that another replica has sent until it sees it in an instance's queue. KV events reach
//! all of them.
//!
//! A router reads `InstanceView`s. Its own counts (`in_flight`, and what it sent since the last
//! poll) are always live; the rest is as of now, or as of the instance's last poll. Polls are not
//! events: an instance's state is captured when it is about to change, or when somebody looks, so
//! stale views cost per change and not per poll. What is seen live is read when somebody looks.

use crate::config::{Config, Freshness};
use crate::earliest::Earliest;
use crate::instance::Instance;
use crate::knowledge::{Events, Speculation};
use crate::live::{Ended, Live};
use blis_core::random::Purpose;
use blis_core::{Dice, InstanceId, RequestView, Span, Time};
use blis_kv::Shown;
use blis_metrics::Candidate;
use blis_policy::{InstanceView, Needs};

/// The views of all replicas of the gateway.
pub(crate) struct Boards {
    boards: Vec<Board>,
    /// What KV events tell; `None`: nobody listens.
    events: Option<Events>,
}

/// One replica's view of the cluster.
struct Board {
    /// Which replica.
    gateway: usize,
    block_size: u32,
    views: Vec<InstanceView>,
    /// Places of the views that have changed since its router was last asked; no more than there
    /// are views.
    changed: Vec<usize>,
    needs: Needs,
    /// Instances that have changed since their views were last brought up to date, each once.
    unread: Vec<usize>,
    is_unread: Vec<bool>,
    /// The polls of queues and batches, and those of KV memory; `None`: not stale, or not read.
    load_polls: Option<Polling>,
    kv_polls: Option<Polling>,
    /// When the blocks in use grow next, of instances whose memory is seen live.
    growth: Earliest,
    /// Requests sent to each instance since the start.
    sent: Vec<u64>,
    /// Requests that had joined each instance's queue as of its view.
    seen: Vec<u64>,
    /// What it takes for cached before events tell; `None`: nothing.
    speculation: Option<Speculation>,
}

struct Polling {
    interval: Span,
    /// When each instance is polled next.
    next: Earliest,
}

impl Boards {
    /// The views of a cluster whose instances are all idle.
    pub(crate) fn new(config: &Config) -> Boards {
        let Config { signals, policies, .. } = config;
        let needs = policies.admission_needs.or(policies.router_needs);
        let events = || Events::new(signals, config.homes().count(), config.block_size());
        Boards {
            boards: (0..policies.gateways.len())
                .map(|gateway| Board::new(config, gateway))
                .collect(),
            events: needs.events.then(events),
        }
    }

    /// Whether anybody looks into the prefix caches.
    pub(crate) fn has_events(&self) -> bool {
        self.events.is_some()
    }

    /// Whether instances have to tell what changes in their prefix caches.
    pub(crate) fn wants_changes(&self) -> bool {
        self.events.as_ref().is_some_and(Events::wants_changes)
    }

    /// What a replica knows, one view an instance, as of its last `look`.
    pub(crate) fn views(&self, gateway: usize) -> &[InstanceView] {
        &self.boards[gateway].views
    }

    /// Places of the views of a replica that may differ from when its router was last asked;
    /// `None`: any may.
    pub(crate) fn changed(&self, gateway: usize) -> Option<&[usize]> {
        let Board { changed, views, .. } = &self.boards[gateway];
        (self.events.is_none() && changed.len() < views.len()).then_some(changed)
    }

    /// The router of a replica has been asked.
    pub(crate) fn asked(&mut self, gateway: usize) {
        self.boards[gateway].changed.clear();
    }

    /// Brings all views of a request's replica up to what it may know at `now`, when it decides
    /// about the request.
    pub(crate) fn look(&mut self, instances: &[Instance], request: &Live, now: Time) {
        let board = &mut self.boards[request.gateway];
        if let Some(events) = &mut self.events {
            let prompt = request.request.content.prompt_blocks(board.block_size);
            events.show(prompt, instances, &mut board.views, now);
            if let Some(speculation) = &mut board.speculation {
                speculation.show(prompt, &mut board.views, now);
            }
        }
        board.look(instances, now);
    }

    /// What the replica that decides about a request would see if nothing were stale, and how that
    /// compares with what it sees.
    #[cold]
    pub(crate) fn compare(
        &mut self,
        instances: &[Instance],
        request: &Live,
        now: Time,
    ) -> (Vec<InstanceView>, Vec<Candidate>) {
        let board = &mut self.boards[request.gateway];
        let prompt = request.request.content.prompt_blocks(board.block_size);
        let (views, seen) = (board.views.clone(), board.seen.clone());
        let changed = std::mem::take(&mut board.changed);
        board.refresh(instances, now);
        let mut fresh = std::mem::replace(&mut board.views, views);
        (board.seen, board.changed) = (seen, changed);
        let mut candidates = Vec::new();
        for ((index, view), instance) in board.views.iter().enumerate().zip(instances) {
            let Shown { blocks, copied } = instance.cached(prompt);
            (fresh[index].cached_blocks, fresh[index].cached_cpu_blocks) = (blocks, copied);
            let age = |as_of: Option<Time>| as_of.map_or(Span::ZERO, |as_of| now.since(as_of));
            let load = (view.queue_depth, view.running, age(view.as_of));
            let memory = (view.kv_utilization, age(view.kv_as_of));
            let (waiting, running) = instance.requests();
            candidates.push(Candidate {
                instance: view.id,
                load: board.needs.reads_load().then_some(load),
                memory: board.needs.kv.then_some(memory),
                waiting,
                running,
                cached_tokens: blocks * board.block_size,
            });
        }
        if let (Some(speculation), Some(_)) = (&mut board.speculation, &self.events) {
            speculation.show(prompt, &mut fresh, now);
        }
        (fresh, candidates)
    }

    /// Captures the polls of an instance that are due before it changes at `now`.
    pub(crate) fn before_change(&mut self, index: usize, instance: &Instance, now: Time) {
        for board in &mut self.boards {
            board.poll(index, instance, now);
        }
    }

    /// Takes note of an instance that has changed.
    pub(crate) fn after_change(&mut self, index: usize, instance: &mut Instance, now: Time) {
        if let Some(events) = &mut self.events {
            events.publish(index, instance, now);
        }
        for board in &mut self.boards {
            board.after_change(index);
        }
    }

    /// A replica sent a request to `instance`, and expects `work` tokens of it to be computed.
    pub(crate) fn sent(
        &mut self,
        gateway: usize,
        instance: InstanceId,
        request: &RequestView<'_>,
        work: u64,
        now: Time,
    ) {
        let board = &mut self.boards[gateway];
        if let (Some(speculation), Some(_)) = (&mut board.speculation, &self.events) {
            speculation.sent(instance, request.prompt_blocks, now);
        }
        board.sent(instance, request, work);
    }

    /// What became of requests that a replica sent to `instance`.
    pub(crate) fn ended(&mut self, gateway: usize, instance: InstanceId, ended: Ended) {
        self.boards[gateway].ended(instance, ended);
    }

    /// A request of a replica was taken back before it reached `instance`.
    pub(crate) fn recalled(&mut self, gateway: usize, instance: InstanceId, ended: Ended) {
        self.boards[gateway].recalled(instance, ended);
    }
}

impl Board {
    fn new(config: &Config, gateway: usize) -> Board {
        let Config { signals, seed, .. } = *config;
        let needs = config.policies.admission_needs.or(config.policies.router_needs);
        let idle = |(id, home): (u32, usize)| InstanceView {
            pool: home,
            ..InstanceView::idle(InstanceId(id), config.pools[home].engine.total_kv_blocks)
        };
        let mut views: Vec<InstanceView> = (0..).zip(config.homes()).map(idle).collect();
        let polls = |freshness, read| match freshness {
            Freshness::Periodic { interval } if read => {
                Some(Polling::new(seed, gateway, views.len(), interval))
            }
            _ => None,
        };
        let load_polls = polls(signals.load, needs.reads_load());
        let kv_polls = polls(signals.kv, needs.reads_memory());
        for view in &mut views {
            view.as_of = load_polls.is_some().then_some(Time::ZERO);
            view.kv_as_of = kv_polls.is_some().then_some(Time::ZERO);
        }
        Board {
            gateway,
            block_size: config.block_size(),
            changed: Vec::new(),
            needs,
            unread: Vec::new(),
            is_unread: vec![false; views.len()],
            load_polls,
            kv_polls,
            growth: Earliest::new(views.len()),
            sent: vec![0; views.len()],
            seen: vec![0; views.len()],
            speculation: signals.speculation.map(|ttl| Speculation::new(ttl, views.len())),
            views,
        }
    }

    /// Brings all that is polled, or published as it changes, up to what may be known at `now`.
    /// Queue and batch are published as they change; blocks also change within a run of steps.
    fn look(&mut self, instances: &[Instance], now: Time) {
        let due = |polls: &Option<Polling>| polls.as_ref()?.first_due(now);
        while let Some(index) = due(&self.load_polls).or_else(|| due(&self.kv_polls)) {
            self.poll(index, &instances[index], now);
        }
        while let Some(index) = self.unread.pop() {
            self.is_unread[index] = false;
            if self.sees_load() {
                self.publish_load(index, &instances[index]);
            }
            if self.sees_memory() {
                self.publish_memory(index, &instances[index], now);
            }
        }
        while self.growth.time() < now {
            let index = self.growth.index();
            self.publish_blocks(index, &instances[index], now);
        }
        if self.needs.transfers && self.kv_polls.is_none() {
            for (index, instance) in instances.iter().enumerate() {
                self.publish_pending(index, instance, now);
            }
        }
    }

    /// Sees all instances as they are.
    fn refresh(&mut self, instances: &[Instance], now: Time) {
        for (index, instance) in instances.iter().enumerate() {
            self.publish_load(index, instance);
            self.publish_memory(index, instance, now);
            self.publish_pending(index, instance, now);
            (self.views[index].as_of, self.views[index].kv_as_of) = (None, None);
        }
    }

    /// Takes note of an instance that has changed.
    fn after_change(&mut self, index: usize) {
        let seen = self.sees_load() || self.sees_memory();
        if seen && !std::mem::replace(&mut self.is_unread[index], true) {
            self.unread.push(index);
        }
    }

    /// Whether queues and batches are seen live.
    fn sees_load(&self) -> bool {
        self.needs.reads_load() && self.load_polls.is_none()
    }

    /// Whether KV memory is seen live.
    fn sees_memory(&self) -> bool {
        self.needs.reads_memory() && self.kv_polls.is_none()
    }

    fn sent(&mut self, instance: InstanceId, request: &RequestView<'_>, work: u64) {
        let index = instance.index();
        self.sent[index] += 1;
        let view = self.change(index);
        view.in_flight += 1;
        view.in_flight_tokens += u64::from(request.input_tokens);
        view.unstarted_tokens += work;
        self.update_unseen(index);
    }

    fn ended(&mut self, instance: InstanceId, ended: Ended) {
        let view = self.change(instance.index());
        view.in_flight -= u32::try_from(ended.requests).expect("no more than are in flight");
        view.in_flight_tokens -= ended.tokens;
        view.unstarted_tokens -= ended.started_work;
    }

    fn recalled(&mut self, instance: InstanceId, ended: Ended) {
        self.sent[instance.index()] -= ended.requests;
        self.ended(instance, ended);
        self.update_unseen(instance.index());
    }

    fn poll(&mut self, index: usize, instance: &Instance, now: Time) {
        // Queue and batch have been as they are since their last change, which was polled first.
        if let Some(as_of) = self.load_polls.as_mut().and_then(|polls| polls.due(index, now)) {
            self.views[index].as_of = Some(as_of);
            self.publish_load(index, instance);
        }
        if let Some(as_of) = self.kv_polls.as_mut().and_then(|polls| polls.due(index, now)) {
            self.views[index].kv_as_of = Some(as_of);
            self.publish_memory(index, instance, as_of);
            if self.needs.transfers {
                self.publish_pending(index, instance, as_of);
            }
        }
    }

    /// The view of an instance, which is about to change.
    fn change(&mut self, index: usize) -> &mut InstanceView {
        if self.changed.len() < self.views.len() && self.changed.last() != Some(&index) {
            self.changed.push(index);
        }
        &mut self.views[index]
    }

    fn publish_load(&mut self, index: usize, instance: &Instance) {
        let classes = self.needs.classes;
        let view = self.change(index);
        (view.queue_depth, view.running) = instance.requests();
        if classes {
            view.waiting_by_class = instance.waiting_by_class();
        }
        self.seen[index] = instance.joined_from(self.gateway);
        self.update_unseen(index);
    }

    fn publish_memory(&mut self, index: usize, instance: &Instance, as_of: Time) {
        let view = self.change(index);
        view.cache_hit_rate = instance.cache_hit_rate();
        view.thrashing_rate = instance.thrashing_rate();
        self.publish_blocks(index, instance, as_of);
    }

    fn publish_blocks(&mut self, index: usize, instance: &Instance, as_of: Time) {
        let memory = instance.memory(as_of, self.block_size);
        let view = self.change(index);
        view.kv_utilization = memory.utilization;
        view.free_blocks = memory.free_blocks;
        if self.kv_polls.is_none() {
            self.growth.set(index, memory.until);
        }
    }

    fn publish_pending(&mut self, index: usize, instance: &Instance, now: Time) {
        self.change(index).pending_transfer_us = instance.pending_transfer(now).as_micros_f64();
    }

    fn update_unseen(&mut self, index: usize) {
        let unseen = self.sent[index] - self.seen[index];
        self.views[index].unseen = u32::try_from(unseen).expect("requests on the way fit u32");
    }
}

impl Polling {
    fn new(seed: u64, gateway: usize, instances: usize, interval: Span) -> Polling {
        let mut next = Earliest::new(instances);
        for (id, index) in (0..).zip(0..instances) {
            next.set(index, Time::ZERO + phase(seed, gateway, id, interval));
        }
        Polling { interval, next }
    }

    /// An instance that was polled by now and whose view does not show it yet.
    fn first_due(&self, now: Time) -> Option<usize> {
        (self.next.time() <= now).then(|| self.next.index())
    }

    /// When the instance was last polled, if its view does not show that poll yet; it will from now
    /// on.
    fn due(&mut self, index: usize, now: Time) -> Option<Time> {
        let next = self.next.get(index);
        if now < next {
            return None;
        }
        let more = now.since(next).as_nanos() / self.interval.as_nanos();
        let last = next + self.interval * more;
        self.next.set(index, last + self.interval);
        Some(last)
    }
}

/// Each replica polls each instance at its own phase of the interval, as independent scrapers do.
/// Groups of signals with the same interval are polled together.
fn phase(seed: u64, gateway: usize, id: u32, interval: Span) -> Span {
    let key = (gateway as u64) << 32 | u64::from(id);
    let share = Dice::new(seed, Purpose::SignalPhase, key).unit();
    Span::from_nanos_f64(share * blis_core::math::float(interval.as_nanos()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_replica_polls_each_instance_at_its_own_phase() {
        let interval = Span::from_micros(1_000);
        let mut phases: Vec<Span> = (0..3)
            .flat_map(|gateway| (0..5).map(move |id| phase(7, gateway, id, interval)))
            .collect();
        phases.sort_unstable();
        phases.dedup();
        assert_eq!(phases.len(), 15);
        assert!(phases.iter().all(|phase| *phase < interval));
    }
}
