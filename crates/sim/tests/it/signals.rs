//! What a router is shown.

use crate::harness::{Scenario, prompted, request, small_world};
use blis_core::{Dice, InstanceId, RequestView, Span};
use blis_kv::LinkSpeed;
use blis_policy::{Choice, ClusterView, InstanceView, Router};
use blis_sim::{KvTier, Reload, Signals};
use std::sync::mpsc::{Sender, channel};

/// Sends everything to instance 0 and tells what it was shown.
struct Teller(Sender<Vec<InstanceView>>);

impl Router for Teller {
    fn route(&mut self, _: &RequestView<'_>, cluster: &ClusterView<'_>, _: &mut Dice) -> Choice {
        self.0.send(cluster.instances.to_vec()).expect("the test listens");
        Choice::because("teller", InstanceId(0))
    }
}

fn shown(signals: Signals) -> Vec<Vec<InstanceView>> {
    let requests = (0..40).map(|n| request(n * 900, 64, 6)).collect();
    let mut world = small_world().with(requests);
    (world.instances, world.signals) = (2, signals);
    shown_in(&world)
}

fn shown_in(world: &Scenario) -> Vec<Vec<InstanceView>> {
    let (teller, shown) = channel();
    world.run_routed_by(Box::new(Teller(teller)));
    shown.iter().collect()
}

#[test]
fn an_instance_that_was_never_used_has_all_its_blocks_and_nothing_else() {
    let stale = Signals::periodic(Span::from_micros(5_000));
    for signals in [Signals::IMMEDIATE, stale] {
        for views in shown(signals) {
            let idle = &views[1];
            assert_eq!((idle.free_blocks, idle.load(), idle.in_flight), (1_000, 0, 0));
            assert!(idle.kv_utilization.abs() < f64::EPSILON);
        }
    }
}

#[test]
fn load_counts_what_was_sent_and_has_not_ended_once() {
    let views = shown(Signals::IMMEDIATE);
    assert!(views.iter().all(|views| views[0].load() == views[0].in_flight));
    assert!(views.iter().any(|views| views[0].queue_depth > 0 || views[0].unseen > 0));
    assert!(views.iter().any(|views| views[0].running > 1 && views[0].free_blocks < 1_000));
}

/// An engine that waits for blocks from its CPU tier is not idle. Prompts of one stream are copied
/// out as another comes, and take 1 ms a block to come back.
#[test]
fn load_counts_requests_that_wait_for_their_blocks() {
    let requests = (0..40).map(|n| prompted(n * 2_500, &[(n % 2, 65)], 1)).collect();
    let mut world = small_world().with(requests);
    world.engine.total_kv_blocks = 6;
    world.offload = "write-through";
    let speed = |blocks_per_us| LinkSpeed { base: Span::ZERO, blocks_per_us };
    world.engine.tier = Some(KvTier {
        blocks: 20,
        out: speed(f64::INFINITY),
        back: speed(0.001),
        reload: Reload::Async,
        thrashing_window: Span::ZERO,
    });
    let views = shown_in(&world);
    assert!(views.iter().all(|views| views[0].load() == views[0].in_flight));
    let loads = |views: &&Vec<InstanceView>| {
        views[0].running == 0 && views[0].queue_depth > 0 && views[0].pending_transfer_us > 0.0
    };
    assert!(views.iter().filter(loads).count() > 10, "a test of something");
}

#[test]
fn a_stale_view_is_as_old_as_its_last_poll_and_knows_what_was_sent_since() {
    let interval = Span::from_micros(5_000);
    let views = shown(Signals::periodic(interval));
    let mut ages = 0;
    for (number, views) in (0_u64..).zip(&views) {
        let now = blis_core::Time::from_micros(number * 900);
        assert!(now.since(views[0].as_of) <= interval, "polled within the interval");
        assert!(views[0].load() >= views[0].in_flight, "nobody is forgotten");
        ages += u32::from(views[0].as_of < now);
    }
    assert!(ages > 20, "views were stale {ages} times");
}

/// Long answers are taken in runs of steps; a sample lands a part of one. Neither fresh nor stale
/// views may tell.
#[test]
fn samples_do_not_change_what_a_router_is_shown() {
    let requests = (0..30).map(|n| request(n * 9_100, 64, 60)).collect();
    let mut world = small_world().with(requests);
    world.instances = 2;
    let stale = Signals::periodic(Span::from_micros(5_000));
    for signals in [Signals::IMMEDIATE, stale] {
        world.signals = signals;
        let plain = shown_in(&world);
        for micros in [70, 1_003, 9_000] {
            let sample_interval = Some(Span::from_micros(micros));
            let sampled = shown_in(&Scenario { sample_interval, ..world.clone() });
            assert_eq!(format!("{plain:?}"), format!("{sampled:?}"), "{signals:?}, {micros} us");
        }
    }
}
