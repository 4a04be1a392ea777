//! Several replicas of the gateway: what each of them does not know of the others.

use crate::harness::{Scenario, Told, prompted, request, small_world};
use crate::worlds::in_random_worlds;
use blis_core::{Dice, Request, Span};
use blis_metrics::Status;
use blis_sim::Signals;
use proptest::prelude::*;

/// `requests` requests, one of 12 prefixes of 480 tokens each, as the dice fall; one every
/// `gap_us`.
fn prefixes(requests: u64, gap_us: u64) -> Vec<Request> {
    (0..requests)
        .map(|n| {
            let mut dice = Dice::new(3, blis_core::random::Purpose::Sampling, n);
            let stream = dice.below(12) as u64;
            prompted(n * gap_us, &[(stream, 480), (u64::MAX, 20)], 2)
        })
        .collect()
}

/// Four instances under `weighted` with these scorers.
fn scored(scorers: &'static str, gateways: u32) -> Scenario {
    let mut scenario = small_world();
    (scenario.routing, scenario.scorers) = ("weighted", Some(scorers));
    (scenario.instances, scenario.gateways) = (4, gateways);
    scenario
}

fn cached_tokens(told: &Told) -> u64 {
    told.closed.iter().filter_map(|ended| ended.cached).map(u64::from).sum()
}

/// The approximate index knows what its own replica sent. The more replicas, the more of them have
/// to send a prefix somewhere before they know where it is: each of them spreads it anew.
#[test]
fn approximate_prefix_knowledge_is_diluted_by_replicas() {
    let cached =
        |gateways| cached_tokens(&scored("pa:1", gateways).with(prefixes(120, 4_000)).run());
    let by_replicas: Vec<u64> = [1, 3, 8].into_iter().map(cached).collect();
    assert!(by_replicas.is_sorted_by(|more, fewer| more > fewer), "{by_replicas:?}");
    // One replica computes 12 prefixes once; with eight, nearly all instances have to compute all.
    let all = 120 * 480;
    assert_eq!(by_replicas[0], all - 12 * 480);
    assert!(by_replicas[2] < all - 30 * 480, "{by_replicas:?}");
}

/// KV events reach every replica, late or not: where only they are asked, it makes no difference
/// how many there are, to the last fact.
#[test]
fn precise_prefix_knowledge_is_the_same_for_all_replicas() {
    for delay in [0, 2_500] {
        let told = |gateways| {
            let mut scenario = scored("pp:1", gateways).with(prefixes(120, 1_000));
            scenario.signals.event_delay = Span::from_micros(delay);
            scenario.run()
        };
        let (one, eight) = (told(1), told(8));
        assert_eq!(one.facts, eight.facts, "a delay of {delay} us");
        assert!(cached_tokens(&eight) > 100 * 480 / 2, "{}", cached_tokens(&eight));
    }
}

/// What a replica takes for cached before events tell, it alone does.
#[test]
fn speculation_is_a_replicas_own() {
    let cached = |gateways| {
        let mut scenario = scored("pp:1", gateways).with(prefixes(120, 300));
        scenario.signals.event_delay = Span::from_micros(1_000_000);
        scenario.signals.speculation = Some(Span::from_micros(1_000_000));
        cached_tokens(&scenario.run())
    };
    assert!(cached(8) < cached(1), "{} and {}", cached(8), cached(1));
}

/// A request each ms that takes about 22 of them, on four instances with so many places each.
fn steady_stream(scenario: &Scenario, gateways: u32, places: u32) -> Told {
    let mut scenario = Scenario { gateways, instances: 4, ..scenario.clone() };
    scenario.engine.max_num_running_reqs = places;
    scenario.with((0..2_000).map(|n| request(n * 1_000, 64, 20)).collect()).run()
}

/// How long all requests of such a stream wait together, in ms.
fn waited(scenario: &Scenario, gateways: u32) -> f64 {
    let told = steady_stream(scenario, gateways, 8);
    let sum: Span = told.closed.iter().map(|ended| ended.split.queue).sum();
    sum.as_millis_f64()
}

/// A router that balances by its own counts sees all there is if it is the only one: 24 places are
/// enough for 22 requests. One of eight sees an eighth, and requests wait for a place in one
/// instance while there are some in another; who waits for no more than the end of a step waits
/// less than 2 ms.
#[test]
fn counts_of_what_was_sent_are_blind_to_other_replicas() {
    let scorers = Some("token-load:1");
    let own = Scenario { routing: "weighted", scorers, ..small_world() };
    let for_a_place = |gateways: u32| {
        let told = steady_stream(&own, gateways, 6);
        told.closed.iter().filter(|ended| ended.split.queue > Span::from_micros(2_000)).count()
    };
    let (alone, several) = (for_a_place(1), for_a_place(8));
    assert!(several > 100 && several > 3 * alone, "{several} and {alone}");
}

/// A stale view adds what was sent since the poll and does not know what has ended since, so that
/// an instance looks best just after it was polled, and one gateway floods it until the next poll
/// of another. Replicas poll at phases of their own and flood different instances at a time.
#[test]
fn stale_replicas_do_not_flood_the_same_instance() {
    let mut stale = Scenario { routing: "least-loaded", ..small_world() };
    stale.signals = Signals::periodic(Span::from_micros(50_000));
    let (alone, several) = (waited(&stale, 1), waited(&stale, 8));
    assert!(several < 0.7 * alone, "{several} ms and {alone} ms");
    stale.signals = Signals::IMMEDIATE;
    let fresh = waited(&stale, 8);
    assert!(fresh < 0.7 * several, "{fresh} ms and {several} ms");
}

/// A gate counts for its own replica: two buckets let in twice as much.
#[test]
fn each_replica_has_a_gate_of_its_own() {
    let admitted = |gateways| {
        let mut scenario = small_world();
        scenario.gateways = gateways;
        scenario.admission = "token-bucket[capacity=1000,refill-rate=1]";
        let requests = (0..200).map(|n| request(n * 10, 50, 1)).collect();
        let told = scenario.with(requests).run();
        assert_eq!(told.outcome.mechanisms["admission.admitted"], {
            told.closed.iter().filter(|ended| ended.status == Status::Finished).count() as u64
        });
        told.outcome.mechanisms["admission.admitted"]
    };
    assert_eq!([admitted(1), admitted(2), admitted(5)], [20, 40, 100]);
}

/// What mechanisms did is summed over replicas.
#[test]
fn firings_of_all_replicas_are_counted() {
    let told = scored("pa:2,qd:1", 3).with(prefixes(120, 1_000)).run();
    assert_eq!(told.outcome.mechanisms["routing.sent"], 120);
    assert!(told.outcome.mechanisms["prefix-affinity.swayed"] > 20);
}

/// A router that has neither a memory nor a view chooses the same whichever replica it is in: how
/// many there are changes nothing, to the last fact.
#[test]
fn replicas_change_nothing_where_nothing_is_known_or_remembered() {
    let coverage = in_random_worlds(200, |world| {
        let (routing, scorers, admission) = ("random", None, "always-admit");
        let world = Scenario { admission, routing, scorers, ..world.clone() };
        let told = Scenario { gateways: 1, ..world.clone() }.run();
        let several = Scenario { gateways: 4, ..world }.run();
        prop_assert_eq!(&told.facts, &several.facts);
        Ok(several)
    });
    assert!(coverage.queue > 50 && coverage.several_instances > 50, "{coverage:?}");
}
