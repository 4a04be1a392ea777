//! What the gateway knows of the instances, and how old it is.
//!
//! Each replica of the gateway has a view of its own: it polls at its own phase, and knows of
//! nothing that another replica has sent until it sees it in an instance's queue. KV events reach
//! all of them.
//!
//! A router reads `InstanceView`s. Its own counts (`in_flight`, and what it sent since the last
//! poll) are always live; the rest is as of now, or as of the instance's last poll. Polls are not
//! events: an instance's state is captured when it is about to change, or when somebody looks, so
//! stale views cost per change and not per poll.

use crate::config::{Config, Freshness};
use crate::instance::{Gauges, Instance, Kit};
use crate::knowledge::{Events, Speculation};
use crate::live::{Ended, Slot};
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
    /// Which replica, and whether it is the only one.
    gateway: usize,
    alone: bool,
    views: Vec<InstanceView>,
    needs: Needs,
    /// The polls of queues and batches, and those of KV memory; `None`: not stale, or not read.
    load_polls: Option<Polling>,
    kv_polls: Option<Polling>,
    /// Requests sent to each instance since the start.
    sent: Vec<u64>,
    /// Requests that had joined each instance's queue as of its view.
    seen: Vec<u64>,
    /// What it takes for cached before events tell; `None`: nothing.
    speculation: Option<Speculation>,
}

struct Polling {
    interval: Span,
    /// When each instance was first polled; every interval from then on.
    phases: Vec<Span>,
    /// The poll that each view shows; polls are counted from 1.
    shown: Vec<u64>,
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

    /// Whether instances have to tell what changes in their prefix caches.
    pub(crate) fn wants_changes(&self) -> bool {
        self.events.as_ref().is_some_and(Events::wants_changes)
    }

    /// What a replica knows, one view an instance, as of its last `look`.
    pub(crate) fn views(&self, gateway: usize) -> &[InstanceView] {
        &self.boards[gateway].views
    }

    /// Brings all views of a request's replica up to what it may know at `now`, when it decides
    /// about the request.
    pub(crate) fn look(
        &mut self,
        instances: &mut [Instance],
        request: Slot,
        now: Time,
        kit: &mut Kit<'_>,
    ) {
        let live = kit.live.get(request);
        let board = &mut self.boards[live.gateway];
        if let Some(events) = &mut self.events {
            let prompt = live.request.content.prompt_blocks(kit.engine.block_size);
            events.show(prompt, instances, &mut board.views, now);
            if let Some(speculation) = &mut board.speculation {
                speculation.show(prompt, &mut board.views, now);
            }
        }
        let gateway = live.gateway;
        if self.boards.len() > 1 && self.boards[gateway].kv_polls.is_some() {
            // Looking at an instance lets it catch up, so who polled it earlier comes first.
            for (index, instance) in instances.iter_mut().enumerate() {
                self.poll(index, instance, now, kit);
            }
        }
        self.boards[gateway].look(instances, now, kit);
    }

    /// What the replica that decides about a request would see if nothing were stale, and how that
    /// compares with what it sees.
    #[cold]
    pub(crate) fn compare(
        &mut self,
        instances: &mut [Instance],
        request: Slot,
        now: Time,
        kit: &mut Kit<'_>,
    ) -> (Vec<InstanceView>, Vec<Candidate>) {
        for (index, instance) in instances.iter_mut().enumerate() {
            self.before_change(index, instance, now, kit);
            if instance.catch_up(now, kit) {
                self.after_change(index, instance, now);
            }
        }
        let live = kit.live.get(request);
        let prompt = live.request.content.prompt_blocks(kit.engine.block_size);
        let board = &mut self.boards[live.gateway];
        let (views, seen) = (board.views.clone(), board.seen.clone());
        board.refresh(instances, now);
        let mut fresh = std::mem::replace(&mut board.views, views);
        board.seen = seen;
        let mut candidates = Vec::new();
        for ((index, view), instance) in board.views.iter().enumerate().zip(&*instances) {
            let Shown { blocks, copied } = instance.cached(prompt);
            (fresh[index].cached_blocks, fresh[index].cached_cpu_blocks) = (blocks, copied);
            let gauges = instance.gauges();
            let load = (view.queue_depth, view.running, now.since(view.as_of));
            let memory = (view.kv_utilization, now.since(view.kv_as_of));
            candidates.push(Candidate {
                instance: view.id,
                load: board.needs.reads_load().then_some(load),
                memory: board.needs.kv.then_some(memory),
                waiting: gauges.waiting,
                running: gauges.running,
                cached_tokens: blocks * kit.engine.block_size,
            });
        }
        if let (Some(speculation), Some(_)) = (&mut board.speculation, &self.events) {
            speculation.show(prompt, &mut fresh, now);
        }
        (fresh, candidates)
    }

    /// Captures the polls of an instance that are due before it changes at `now`.
    pub(crate) fn before_change(
        &mut self,
        index: usize,
        instance: &mut Instance,
        now: Time,
        kit: &mut Kit<'_>,
    ) {
        if self.boards[0].is_stale() {
            self.poll(index, instance, now, kit);
        }
    }

    /// Captures the polls of an instance by all replicas, in order of time.
    fn poll(&mut self, index: usize, instance: &mut Instance, now: Time, kit: &mut Kit<'_>) {
        if self.boards.len() > 1 {
            let due = |(number, board): (usize, &Board)| Some((board.kv_due(index, now)?, number));
            while let Some((_, first)) = self.boards.iter().enumerate().filter_map(due).min() {
                self.boards[first].poll(index, instance, now, kit);
            }
        }
        for board in &mut self.boards {
            board.poll(index, instance, now, kit);
        }
    }

    /// Takes note of an instance that has changed.
    pub(crate) fn after_change(&mut self, index: usize, instance: &mut Instance, now: Time) {
        if let Some(events) = &mut self.events {
            events.publish(index, instance, now);
        }
        for board in &mut self.boards {
            board.after_change(index, instance);
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
        let views: Vec<InstanceView> = (0..).zip(config.homes()).map(idle).collect();
        let instances = views.len();
        let polls = |freshness, read| match freshness {
            Freshness::Periodic { interval } if read => Some(Polling {
                interval,
                phases: views
                    .iter()
                    .map(|view| phase(seed, gateway, view.id.0, interval))
                    .collect(),
                shown: vec![0; instances],
            }),
            _ => None,
        };
        Board {
            gateway,
            alone: config.policies.gateways.len() == 1,
            needs,
            load_polls: polls(signals.load, needs.reads_load()),
            kv_polls: polls(signals.kv, needs.reads_memory()),
            sent: vec![0; instances],
            seen: vec![0; instances],
            speculation: signals.speculation.map(|ttl| Speculation::new(ttl, instances)),
            views,
        }
    }

    /// Brings all that is polled, or published as it changes, up to what may be known at `now`.
    fn look(&mut self, instances: &mut [Instance], now: Time, kit: &mut Kit<'_>) {
        if !self.needs.polls() {
            return;
        }
        let stale = self.is_stale();
        for (index, instance) in instances.iter_mut().enumerate() {
            if stale {
                self.poll(index, instance, now, kit);
            }
            // Queue and batch are published as they change; blocks also change within a stride.
            if self.needs.reads_memory() && self.kv_polls.is_none() {
                // Another replica may have let it catch up before.
                if self.needs.kv && (instance.catch_up(now, kit) || !self.alone) {
                    self.publish_blocks(index, &instance.gauges());
                }
                if self.needs.transfers {
                    self.publish_pending(index, instance, now);
                }
                self.views[index].kv_as_of = now;
            }
            if self.load_polls.is_none() {
                self.views[index].as_of = now;
            }
        }
    }

    /// Sees all instances as they are.
    fn refresh(&mut self, instances: &[Instance], now: Time) {
        for (index, instance) in instances.iter().enumerate() {
            let gauges = instance.gauges();
            self.publish_load(index, &gauges, instance);
            self.publish_memory(index, &gauges);
            self.publish_pending(index, instance, now);
            (self.views[index].as_of, self.views[index].kv_as_of) = (now, now);
        }
    }

    /// When KV memory was last polled, if its view does not show that poll yet.
    fn kv_due(&self, index: usize, now: Time) -> Option<Time> {
        self.kv_polls.as_ref()?.last(index, now).map(|(_, at)| at)
    }

    /// Whether any signal is polled.
    fn is_stale(&self) -> bool {
        self.load_polls.is_some() || self.kv_polls.is_some()
    }

    /// Takes note of an instance that has changed.
    fn after_change(&mut self, index: usize, instance: &Instance) {
        let load = self.needs.reads_load() && self.load_polls.is_none();
        let memory = self.needs.reads_memory() && self.kv_polls.is_none();
        if load || memory {
            let gauges = instance.gauges();
            if load {
                self.publish_load(index, &gauges, instance);
            }
            if memory {
                self.publish_memory(index, &gauges);
            }
        }
    }

    fn sent(&mut self, instance: InstanceId, request: &RequestView<'_>, work: u64) {
        let index = instance.index();
        self.sent[index] += 1;
        let view = &mut self.views[index];
        view.in_flight += 1;
        view.in_flight_tokens += u64::from(request.input_tokens);
        view.unstarted_tokens += work;
        self.update_unseen(index);
    }

    fn ended(&mut self, instance: InstanceId, ended: Ended) {
        let view = &mut self.views[instance.index()];
        view.in_flight -= u32::try_from(ended.requests).expect("no more than are in flight");
        view.in_flight_tokens -= ended.tokens;
        view.unstarted_tokens -= ended.started_work;
    }

    fn recalled(&mut self, instance: InstanceId, ended: Ended) {
        self.sent[instance.index()] -= ended.requests;
        self.update_unseen(instance.index());
        self.ended(instance, ended);
    }

    fn poll(&mut self, index: usize, instance: &mut Instance, now: Time, kit: &mut Kit<'_>) {
        // Queue and batch have been as they are since their last change, which was polled first.
        if let Some(as_of) = self.load_polls.as_mut().and_then(|polls| polls.due(index, now)) {
            self.views[index].as_of = as_of;
            self.publish_load(index, &instance.gauges(), instance);
        }
        if let Some(as_of) = self.kv_polls.as_mut().and_then(|polls| polls.due(index, now)) {
            instance.catch_up(as_of, kit);
            self.views[index].kv_as_of = as_of;
            self.publish_memory(index, &instance.gauges());
            if self.needs.transfers {
                self.publish_pending(index, instance, as_of);
            }
        }
    }

    fn publish_load(&mut self, index: usize, gauges: &Gauges, instance: &Instance) {
        let view = &mut self.views[index];
        view.queue_depth = gauges.waiting;
        view.running = gauges.running;
        if self.needs.classes {
            view.waiting_by_class = instance.waiting_by_class();
        }
        self.seen[index] = instance.joined_from(self.gateway);
        self.update_unseen(index);
    }

    fn publish_memory(&mut self, index: usize, gauges: &Gauges) {
        let view = &mut self.views[index];
        view.cache_hit_rate = gauges.cache_hit_rate;
        view.thrashing_rate = gauges.thrashing_rate;
        self.publish_blocks(index, gauges);
    }

    fn publish_blocks(&mut self, index: usize, gauges: &Gauges) {
        let view = &mut self.views[index];
        view.kv_utilization = gauges.kv_utilization;
        view.free_blocks = gauges.free_blocks;
    }

    fn publish_pending(&mut self, index: usize, instance: &Instance, now: Time) {
        self.views[index].pending_transfer_us = instance.pending_transfer(now).as_micros_f64();
    }

    fn update_unseen(&mut self, index: usize) {
        let unseen = self.sent[index] - self.seen[index];
        self.views[index].unseen = u32::try_from(unseen).expect("requests on the way fit u32");
    }
}

impl Polling {
    /// When the instance was last polled, if its view does not show that poll yet; it will from now
    /// on.
    fn due(&mut self, index: usize, now: Time) -> Option<Time> {
        let (number, at) = self.last(index, now)?;
        self.shown[index] = number;
        Some(at)
    }

    /// The number of the instance's last poll, and when it was, if its view does not show it yet.
    fn last(&self, index: usize, now: Time) -> Option<(u64, Time)> {
        let first = Time::ZERO + self.phases[index];
        if now < first {
            return None;
        }
        let before = now.since(first).as_nanos() / self.interval.as_nanos();
        let number = before + 1;
        (number != self.shown[index]).then(|| (number, first + self.interval * before))
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
