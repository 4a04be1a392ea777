//! Samples of the instances at regular instants.

use crate::harness::{Scenario, prompted, request, small_world};
use crate::relations::same_facts;
use crate::worlds::in_random_worlds;
use blis_core::{InstanceId, Span, Time};
use blis_kv::LinkSpeed;
use blis_metrics::Reading;
use blis_sim::{KvTier, Pace, Reload};
use proptest::prelude::*;
use std::cell::Cell;

/// Intervals that meet step boundaries and others that do not.
fn sampled(world: &Scenario) -> Scenario {
    let intervals = [50_000, 333_333, 1_000_000, 77_777_777].map(Span::from_nanos);
    let choice = usize::try_from(world.seed % 4).expect("small");
    Scenario { sample_interval: Some(intervals[choice]), ..world.clone() }
}

#[test]
fn samples_are_the_same_stepwise_and_at_once() {
    let (samples, loading, moving) = (Cell::new(0), Cell::new(0), Cell::new(0));
    let coverage = in_random_worlds(500, |world| {
        let world = sampled(world);
        let (fast, slow) = (world.run(), world.paced(Pace::Stepwise).run());
        same_facts(&fast, &slow, Time::NEVER)?;
        for (fast, slow) in fast.samples.iter().zip(&slow.samples) {
            prop_assert_eq!(fast, slow);
        }
        prop_assert_eq!(fast.samples.len(), slow.samples.len());
        samples.set(samples.get() + fast.samples.len());
        for (_, _, reading) in &fast.samples {
            loading.set(loading.get() + u32::from(reading.loading > 0));
            moving
                .set(moving.get() + u32::from(reading.out_transfers + reading.back_transfers > 0));
        }
        Ok(fast)
    });
    coverage.guard(0.05);
    assert!(samples.get() > 20_000, "only {} samples", samples.get());
    let rare = (loading.get(), moving.get());
    assert!(rare.0 > 150 && rare.1 > 500, "loading and moving in only {rare:?} samples");
}

#[test]
fn samples_change_nothing_but_are_told() {
    let coverage = in_random_worlds(400, |world| {
        let (plain, sampled) = (world.run(), sampled(world).run());
        same_facts(&plain, &sampled, Time::NEVER)?;
        prop_assert_eq!(&plain.closed, &sampled.closed);
        prop_assert_eq!(&plain.outcome, &sampled.outcome);
        prop_assert!(plain.samples.is_empty());
        Ok(sampled)
    });
    coverage.guard(0.05);
}

#[test]
fn samples_come_in_order_of_time_and_instance_from_the_start_to_the_end() {
    in_random_worlds(200, |world| {
        let world = sampled(world);
        let told = world.run();
        let interval = world.sample_interval.expect("set").as_nanos();
        let instants = (0..=told.outcome.ended_at.as_nanos() / interval).map(|n| n * interval);
        let expected: Vec<(Time, InstanceId)> = instants
            .flat_map(|at| (0..world.size()).map(move |id| (Time::from_nanos(at), InstanceId(id))))
            .collect();
        let found: Vec<_> = told.samples.iter().map(|&(at, id, _)| (at, id)).collect();
        prop_assert_eq!(found, expected);
        Ok(told)
    });
}

/// Ingress 200, prefill 200..1400, decode steps of 1003 end at 2403, 3406, 4409 and 5412. A prompt
/// of 100 tokens takes 7 blocks of 16, with room for 12 more tokens: enough. The run ends at 5422
/// when the last token leaves. At 1400 the prefill has not ended: a sample shows what was before.
#[test]
fn a_sample_shows_what_was_before_its_instant() {
    let mut scenario = small_world().with(vec![request(0, 100, 5)]);
    scenario.sample_interval = Some(Span::from_micros(200));
    let told = scenario.run();
    let at = |micros: u64| {
        let sample = told.samples.iter().find(|(at, _, _)| *at == Time::from_micros(micros));
        sample.expect("a sample").2
    };
    let idle = Reading { blocks_free: 1000, ..Reading::default() };
    let running = Reading {
        running: 1,
        blocks_free: 993,
        blocks_in_use: 7,
        prompt_tokens: 100,
        ..Reading::default()
    };
    for (micros, reading) in [(0, idle), (200, idle), (400, running), (1400, running)] {
        assert_eq!(at(micros), reading, "at {micros}");
    }
    assert_eq!(at(5400), running);
    assert_eq!(told.samples.last().map(|(at, _, _)| *at), Some(Time::from_micros(5400)));
}

/// Write-through over a link of 0.05 blocks a us and 100 us base. The prompt of 48 tokens (3
/// blocks) queues at 148, prefill 1096 to 1244: finished, and its 3 blocks are copied out from then
/// on: 100 + 60, done at 1404. Nothing runs then, so nobody notices before the next request, which
/// queues at 2000 + 148: the copies are in the tier from 2148 on.
#[test]
fn a_link_is_occupied_until_its_transfers_are_done_and_the_tier_has_what_was_noticed() {
    let speed = LinkSpeed { base: Span::from_micros(100), blocks_per_us: 0.05 };
    let mut scenario = small_world().with(vec![request(0, 48, 1), request(2000, 48, 1)]);
    scenario.offload = "write-through";
    scenario.engine.tier = Some(KvTier {
        blocks: 10,
        out: speed,
        back: speed,
        reload: Reload::Blocking,
        thrashing_window: Span::ZERO,
    });
    scenario.sample_interval = Some(Span::from_micros(4));
    let told = scenario.run();
    let moving: Vec<Time> = told
        .samples
        .iter()
        .filter(|(at, _, reading)| reading.out_transfers > 0 && *at < Time::from_micros(2000))
        .map(|&(at, _, _)| at)
        .collect();
    // It begins at 1244, so it is not there before that instant; it is done at 1404, not before.
    assert_eq!(moving.first(), Some(&Time::from_micros(1248)));
    assert_eq!(moving.last(), Some(&Time::from_micros(1404)));
    let first = told.samples.iter().find(|(_, _, reading)| reading.cpu_blocks > 0);
    let (at, _, reading) = first.expect("copies land");
    assert_eq!((*at, reading.cpu_blocks), (Time::from_micros(2152), 3));
}

/// A burst of requests with long prompts on an engine that another request keeps busy: those that
/// load are neither waiting in the queue nor running, and a sample says so.
#[test]
fn a_request_that_loads_is_counted_once() {
    let speed = LinkSpeed { base: Span::from_micros(100), blocks_per_us: 0.001 };
    let again = |at| prompted(at, &[(7, 65)], 1);
    let other = |at| prompted(at, &[(8, 100)], 1);
    let mut scenario = small_world().with(vec![again(0), other(5_000), again(10_000)]);
    scenario.offload = "on-evict";
    scenario.engine.total_kv_blocks = 8;
    scenario.engine.tier = Some(KvTier {
        blocks: 10,
        out: LinkSpeed { base: Span::ZERO, blocks_per_us: f64::INFINITY },
        back: speed,
        reload: Reload::Async,
        thrashing_window: Span::ZERO,
    });
    scenario.sample_interval = Some(Span::from_micros(500));
    let told = scenario.run();
    let loading: Vec<Reading> =
        told.samples.iter().map(|&(_, _, r)| r).filter(|r| r.loading > 0).collect();
    assert!(!loading.is_empty());
    for reading in loading {
        assert_eq!((reading.waiting, reading.loading, reading.running), (0, 1, 0));
        assert_eq!((reading.back_transfers, reading.out_transfers), (1, 0));
        assert!(reading.pending_transfer > Span::ZERO);
    }
}
