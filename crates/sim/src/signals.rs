//! What the gateway knows of the instances, and how old it is.
//!
//! A router reads `InstanceView`s. Its own counts (`in_flight`, and what it sent since the last
//! poll) are always live; the rest is as of now, or as of the instance's last poll. Polls are not
//! events: an instance's state is captured when it is about to change, or when somebody looks, so
//! stale views cost per change and not per poll.

use crate::config::{Config, Signals};
use crate::instance::{Gauges, Instance, Kit};
use blis_core::random::Purpose;
use blis_core::{Dice, InstanceId, Span, Time};
use blis_policy::{InstanceView, Needs};

/// The gateway's view of the cluster.
pub(crate) struct Board {
    views: Vec<InstanceView>,
    needs: Needs,
    polling: Option<Polling>,
    /// Requests sent to each instance since the start.
    sent: Vec<u64>,
    /// Requests that had joined each instance's queue as of its view.
    seen: Vec<u64>,
}

struct Polling {
    interval: Span,
    /// When each instance was first polled; every interval from then on.
    phases: Vec<Span>,
    /// The poll that each view shows; polls are counted from 1.
    shown: Vec<u64>,
}

impl Board {
    /// The view of a cluster whose instances are all idle.
    pub(crate) fn new(config: &Config) -> Board {
        let Config { instances, signals, seed, .. } = *config;
        let needs = config.policies.admission_needs.or(config.policies.router_needs);
        let view = |id| InstanceView {
            id: InstanceId(id),
            as_of: Time::ZERO,
            queue_depth: 0,
            running: 0,
            in_flight: 0,
            unseen: 0,
            kv_utilization: 0.0,
            free_blocks: config.engine.total_kv_blocks,
            cache_hit_rate: 0.0,
            pending_transfer_us: 0.0,
            thrashing_rate: 0.0,
        };
        let polling = match signals {
            Signals::Periodic { interval } if needs.any() => Some(Polling {
                interval,
                phases: (0..instances).map(|id| phase(seed, id, interval)).collect(),
                shown: vec![0; instances as usize],
            }),
            _ => None,
        };
        Board {
            views: (0..instances).map(view).collect(),
            needs,
            polling,
            sent: vec![0; instances as usize],
            seen: vec![0; instances as usize],
        }
    }

    /// What the gateway knows, one view an instance, as of the last `look`.
    pub(crate) fn views(&self) -> &[InstanceView] {
        &self.views
    }

    /// Brings all views up to what the gateway may know at `now`.
    pub(crate) fn look(&mut self, instances: &mut [Instance], now: Time, kit: &mut Kit<'_>) {
        if !self.needs.any() {
            return;
        }
        for (index, instance) in instances.iter_mut().enumerate() {
            if self.polling.is_some() {
                self.poll(index, instance, now, kit);
            } else {
                // Queue and batch are published as they change; blocks also change within a stride.
                if self.needs.kv && instance.catch_up(now, kit) {
                    self.publish_kv(index, &instance.gauges());
                }
                if self.needs.transfers {
                    self.publish_pending(index, instance, now);
                }
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
        if self.polling.is_some() {
            self.poll(index, instance, now, kit);
        }
    }

    /// Takes note of an instance that has changed.
    pub(crate) fn after_change(&mut self, index: usize, instance: &Instance) {
        if self.polling.is_none() && self.needs.any() {
            self.publish(index, &instance.gauges());
        }
    }

    /// The gateway sent a request to `instance`.
    pub(crate) fn sent(&mut self, instance: InstanceId) {
        let index = instance.index();
        self.sent[index] += 1;
        self.views[index].in_flight += 1;
        self.update_unseen(index);
    }

    /// `count` requests that the gateway sent to `instance` have ended.
    pub(crate) fn ended(&mut self, instance: InstanceId, count: u64) {
        let count = u32::try_from(count).expect("no more than are in flight");
        self.views[instance.index()].in_flight -= count;
    }

    fn poll(&mut self, index: usize, instance: &mut Instance, now: Time, kit: &mut Kit<'_>) {
        let polling = self.polling.as_mut().expect("asked only when polling");
        let first = Time::ZERO + polling.phases[index];
        if now < first {
            return;
        }
        let before = now.since(first).as_nanos() / polling.interval.as_nanos();
        if before + 1 == polling.shown[index] {
            return;
        }
        polling.shown[index] = before + 1;
        let as_of = first + polling.interval * before;
        instance.catch_up(as_of, kit);
        self.views[index].as_of = as_of;
        self.publish(index, &instance.gauges());
        if self.needs.transfers {
            self.publish_pending(index, instance, as_of);
        }
    }

    fn publish_pending(&mut self, index: usize, instance: &Instance, now: Time) {
        self.views[index].pending_transfer_us = instance.pending_transfer(now).as_micros_f64();
    }

    fn publish(&mut self, index: usize, gauges: &Gauges) {
        let view = &mut self.views[index];
        view.queue_depth = gauges.waiting;
        view.running = gauges.running;
        view.cache_hit_rate = gauges.cache_hit_rate;
        view.thrashing_rate = gauges.thrashing_rate;
        self.seen[index] = gauges.joined;
        self.publish_kv(index, gauges);
        self.update_unseen(index);
    }

    fn publish_kv(&mut self, index: usize, gauges: &Gauges) {
        let view = &mut self.views[index];
        view.kv_utilization = gauges.kv_utilization;
        view.free_blocks = gauges.free_blocks;
    }

    fn update_unseen(&mut self, index: usize) {
        let unseen = self.sent[index] - self.seen[index];
        self.views[index].unseen = u32::try_from(unseen).expect("requests on the way fit u32");
    }
}

/// Each instance is polled at its own phase of the interval, as independent scrapers are.
fn phase(seed: u64, id: u32, interval: Span) -> Span {
    let share = Dice::new(seed, Purpose::SignalPhase, id.into()).unit();
    Span::from_nanos_f64(share * blis_core::math::float(interval.as_nanos()))
}
