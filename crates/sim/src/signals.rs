//! What the gateway knows of the instances, and how old it is.
//!
//! A router reads `InstanceView`s. Its own counts (`in_flight`, and what it sent since the last
//! poll) are always live; the rest is as of now, or as of the instance's last poll. Polls are not
//! events: an instance's state is captured when it is about to change, or when somebody looks, so
//! stale views cost per change and not per poll.

use crate::config::{Config, Freshness};
use crate::instance::{Gauges, Instance, Kit};
use crate::knowledge::Knowledge;
use crate::live::Slot;
use blis_core::random::Purpose;
use blis_core::{Dice, InstanceId, RequestView, Span, Time};
use blis_policy::{InstanceView, Needs};

/// The gateway's view of the cluster.
pub(crate) struct Board {
    views: Vec<InstanceView>,
    needs: Needs,
    /// The polls of queues and batches, and those of KV memory; `None`: not stale, or not read.
    load_polls: Option<Polling>,
    kv_polls: Option<Polling>,
    /// Requests sent to each instance since the start.
    sent: Vec<u64>,
    /// Requests that had joined each instance's queue as of its view.
    seen: Vec<u64>,
    /// What KV events tell; `None`: nobody listens.
    knowledge: Option<Knowledge>,
}

struct Polling {
    interval: Span,
    /// When each instance was first polled; every interval from then on.
    phases: Vec<Span>,
    /// The poll that each view shows; polls are counted from 1.
    shown: Vec<u64>,
}

/// What happened to the requests that the gateway sent to an instance.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Ended {
    /// Requests that have ended.
    pub(crate) requests: u64,
    /// Their prompt tokens.
    pub(crate) tokens: u64,
    /// Expected work of the requests whose first token has come.
    pub(crate) started_work: u64,
}

impl Board {
    /// The view of a cluster whose instances are all idle.
    pub(crate) fn new(config: &Config) -> Board {
        let Config { instances, signals, seed, .. } = *config;
        let needs = config.policies.admission_needs.or(config.policies.router_needs);
        let free = config.engine.total_kv_blocks;
        let polls = |freshness, read| match freshness {
            Freshness::Periodic { interval } if read => Some(Polling {
                interval,
                phases: (0..instances).map(|id| phase(seed, id, interval)).collect(),
                shown: vec![0; instances as usize],
            }),
            _ => None,
        };
        Board {
            views: (0..instances).map(|id| InstanceView::idle(InstanceId(id), free)).collect(),
            needs,
            load_polls: polls(signals.load, needs.reads_load()),
            kv_polls: polls(signals.kv, needs.reads_memory()),
            sent: vec![0; instances as usize],
            seen: vec![0; instances as usize],
            knowledge: needs
                .events
                .then(|| Knowledge::new(&signals, instances, config.engine.block_size)),
        }
    }

    /// Whether instances have to tell what changes in their prefix caches.
    pub(crate) fn wants_changes(&self) -> bool {
        self.knowledge.as_ref().is_some_and(Knowledge::wants_changes)
    }

    /// What the gateway knows, one view an instance, as of the last `look`.
    pub(crate) fn views(&self) -> &[InstanceView] {
        &self.views
    }

    /// Brings all views up to what the gateway may know at `now`, when it decides about a request.
    pub(crate) fn look(
        &mut self,
        instances: &mut [Instance],
        request: Slot,
        now: Time,
        kit: &mut Kit<'_>,
    ) {
        if let Some(knowledge) = &mut self.knowledge {
            let content = &kit.live.get(request).request.content;
            let prompt = content.prompt_blocks(kit.engine.block_size);
            knowledge.show(prompt, instances, &mut self.views, now);
        }
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
                if self.needs.kv && instance.catch_up(now, kit) {
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

    /// Captures the polls of an instance that are due before it changes at `now`.
    pub(crate) fn before_change(
        &mut self,
        index: usize,
        instance: &mut Instance,
        now: Time,
        kit: &mut Kit<'_>,
    ) {
        if self.is_stale() {
            self.poll(index, instance, now, kit);
        }
    }

    /// Whether any signal is polled.
    fn is_stale(&self) -> bool {
        self.load_polls.is_some() || self.kv_polls.is_some()
    }

    /// Takes note of an instance that has changed.
    pub(crate) fn after_change(&mut self, index: usize, instance: &mut Instance, now: Time) {
        if let Some(knowledge) = &mut self.knowledge {
            knowledge.publish(index, instance, now);
        }
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

    /// The gateway sent a request to `instance`, and expects `work` tokens of it to be computed.
    pub(crate) fn sent(
        &mut self,
        instance: InstanceId,
        request: &RequestView<'_>,
        work: u64,
        now: Time,
    ) {
        let index = instance.index();
        if let Some(knowledge) = &mut self.knowledge {
            knowledge.sent(instance, request.prompt_blocks, now);
        }
        self.sent[index] += 1;
        let view = &mut self.views[index];
        view.in_flight += 1;
        view.in_flight_tokens += u64::from(request.input_tokens);
        view.unstarted_tokens += work;
        self.update_unseen(index);
    }

    /// What became of requests that the gateway sent to `instance`.
    pub(crate) fn ended(&mut self, instance: InstanceId, ended: Ended) {
        let view = &mut self.views[instance.index()];
        view.in_flight -= u32::try_from(ended.requests).expect("no more than are in flight");
        view.in_flight_tokens -= ended.tokens;
        view.unstarted_tokens -= ended.started_work;
    }

    /// A request was taken back before it reached `instance`.
    pub(crate) fn recalled(&mut self, instance: InstanceId, ended: Ended) {
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
        self.seen[index] = gauges.joined;
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
    /// When the instance was last polled, if its view does not show that poll yet.
    fn due(&mut self, index: usize, now: Time) -> Option<Time> {
        let first = Time::ZERO + self.phases[index];
        if now < first {
            return None;
        }
        let before = now.since(first).as_nanos() / self.interval.as_nanos();
        if before + 1 == self.shown[index] {
            return None;
        }
        self.shown[index] = before + 1;
        Some(first + self.interval * before)
    }
}

/// Each instance is polled at its own phase of the interval, as independent scrapers are. Groups of
/// signals with the same interval are polled together.
fn phase(seed: u64, id: u32, interval: Span) -> Span {
    let share = Dice::new(seed, Purpose::SignalPhase, id.into()).unit();
    Span::from_nanos_f64(share * blis_core::math::float(interval.as_nanos()))
}
