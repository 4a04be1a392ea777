//! What a router is shown.

use crate::harness::{Scenario, prompted, request, small_world};
use crate::worlds::in_random_worlds;
use blis_core::{Dice, InstanceId, RequestView, Span};
use blis_kv::LinkSpeed;
use blis_policy::{Choice, ClusterView, InstanceView, Router};
use blis_sim::{Freshness, KvTier, Reload, Signals};
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
    world.run_routed_by(Box::new(Teller(teller)), true);
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
        let as_of = views[0].as_of.expect("it is polled");
        assert!(now.since(as_of) <= interval, "polled within the interval");
        assert!(views[0].load() >= views[0].in_flight, "nobody is forgotten");
        ages += u32::from(as_of < now);
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

/// Checks that instances look as they did unless it is told that they may not, and tells how many
/// have not changed.
struct Watcher {
    last: Vec<InstanceView>,
    unchanged: Sender<usize>,
}

impl Router for Watcher {
    fn route(&mut self, _: &RequestView<'_>, cluster: &ClusterView<'_>, _: &mut Dice) -> Choice {
        let ageless = |view: &InstanceView| InstanceView { as_of: None, kv_as_of: None, ..*view };
        let views: Vec<InstanceView> = cluster.instances.iter().map(ageless).collect();
        if let Some(changed) = cluster.changed.filter(|_| !self.last.is_empty()) {
            let same = |place: &usize| !changed.contains(place);
            let same: Vec<usize> = (0..views.len()).filter(same).collect();
            for &place in &same {
                assert_eq!(views[place], self.last[place], "instance {place} at {}", cluster.now);
            }
            self.unchanged.send(same.len()).expect("the test listens");
        }
        self.last = views;
        Choice::because("watcher", InstanceId(0))
    }
}

#[test]
fn an_instance_looks_as_it_did_unless_the_router_is_told_otherwise() {
    let (unchanged, told) = channel();
    let coverage = in_random_worlds(800, |world| {
        if world.admission == "always-admit" && !world.oracles.routing {
            let watcher = Watcher { last: Vec::new(), unchanged: unchanged.clone() };
            world.run_routed_by(Box::new(watcher), false);
        }
        Ok(world.run())
    });
    coverage.guard(0.05);
    let unchanged: usize = told.try_iter().sum();
    assert!(unchanged > 500, "{unchanged} instances had not changed");
}

/// One prompt again and again: what each decision is shown to be cached at instance 0.
fn cached(signals: Signals) -> Vec<u32> {
    let requests = (0..40).map(|n| prompted(n * 900, &[(7, 16 * 5 + 1)], 3)).collect();
    let mut world = small_world().with(requests);
    world.signals = signals;
    let mut cached = Vec::new();
    for views in shown_in(&world) {
        cached.push(views[0].cached_blocks);
        assert!(views[1..].iter().all(|view| view.cached_blocks == 0), "nobody else has it");
    }
    cached
}

#[test]
fn kv_events_arrive_as_late_as_their_delay() {
    let now = cached(Signals::IMMEDIATE);
    let first = now.iter().position(|&blocks| blocks == 5).expect("it is cached some time");
    assert!(first > 0 && now[..first].iter().all(|&blocks| blocks == 0), "{now:?}");
    for decisions in [1, 4, 20] {
        let event_delay = Span::from_micros(900 * decisions);
        let late = cached(Signals { event_delay, ..Signals::IMMEDIATE });
        let shift = usize::try_from(decisions).expect("small");
        assert_eq!(late[shift..], now[..now.len() - shift], "by {decisions} decisions");
        assert!(late[..shift].iter().all(|&blocks| blocks == 0));
    }
}

#[test]
fn a_prompt_that_was_just_sent_counts_as_cached_while_speculation_lasts() {
    let event_delay = Span::from_micros(900 * 10);
    let late = Signals { event_delay, ..Signals::IMMEDIATE };
    let told = cached(late);
    let bold = cached(Signals { speculation: Some(Span::from_micros(901)), ..late });
    assert_eq!(bold[0], 0, "nobody has sent anything");
    assert!(bold[1..].iter().all(|&blocks| blocks == 5), "{bold:?}");
    // If the last prompt was sent longer ago, only events tell.
    let timid = cached(Signals { speculation: Some(Span::from_micros(900)), ..late });
    assert_eq!(timid, told);
}

#[test]
fn queues_and_memory_may_be_polled_at_different_times() {
    let load = Freshness::Periodic { interval: Span::from_micros(2_000) };
    let kv = Freshness::Periodic { interval: Span::from_micros(50_000) };
    let views = shown(Signals { load, kv, ..Signals::IMMEDIATE });
    let older = views.iter().filter(|views| views[0].kv_as_of < views[0].as_of).count();
    assert!(older > 20, "memory was polled before the queue in {older} of {} views", views.len());
    let fresh = shown(Signals { load, ..Signals::IMMEDIATE });
    assert!(fresh.iter().all(|views| views[0].kv_as_of.is_none() && views[0].as_of.is_some()));
}
