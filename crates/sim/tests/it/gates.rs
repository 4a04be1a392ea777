//! What admission gates, orders, priorities and evictors that look beyond one request do to a
//! run. Every promise has its control: the same run without the mechanism.

use crate::harness::{Ended, Scenario, Told, prompted, request, small_world};
use blis_core::random::Purpose;
use blis_core::{Dice, Request, SloClass, Span, math};
use blis_metrics::{Stage, Status};
use blis_sim::Pace;

fn of(class: SloClass, request: Request) -> Request {
    Request { class, ..request }
}

fn rejections(told: &Told, reason: &'static str) -> usize {
    told.closed.iter().filter(|ended| ended.status == Status::Rejected(reason)).count()
}

/// One request at a time, so that the order is all that matters.
fn one_by_one(requests: Vec<Request>) -> Scenario {
    let mut scenario = small_world().with(requests);
    scenario.engine.max_num_running_reqs = 1;
    scenario
}

#[test]
fn every_gate_closes_in_an_overloaded_cluster_and_stays_open_in_an_idle_one() {
    let batch = |arrival, prompt| of(SloClass::Batch, request(arrival, prompt, 50));
    let idle: Vec<Request> = (0..40).map(|at| batch(at * 250_000, 100)).collect();
    let flood = (0..600).map(|at| batch(10_000_000 + at * 1_000, 1_000));
    let overloaded: Vec<Request> = idle.iter().cloned().chain(flood).collect();
    for (admission, reason) in [
        ("slo-gated", "slo-gated"),
        ("slo-gated[statistic=mean]", "slo-gated"),
        ("kv-gate", "kv-gate"),
        ("kv-gate[at=cluster]", "kv-gate"),
        ("ttft-budget", "ttft-budget"),
        ("burst-throttle", "burst-throttle"),
        ("session-backpressure", "session-backpressure"),
        ("probabilistic", "probabilistic"),
        ("latency-slo", "latency-slo"),
        ("all-of(kv-gate; session-backpressure)", "kv-gate"),
        ("any-of(session-backpressure; kv-gate)", "kv-gate"),
    ] {
        let run = |requests: &Vec<Request>| {
            let mut scenario = small_world().with(requests.clone());
            scenario.engine.total_kv_blocks = 500;
            Scenario { instances: 2, admission, ..scenario }.run()
        };
        assert_eq!(rejections(&run(&idle), reason), 0, "{admission}");
        let told = run(&overloaded);
        let turned_away = rejections(&told, reason);
        assert!((1..600).contains(&turned_away), "{admission}: {turned_away} of 640");
        let counted = told.outcome.mechanisms.get(&format!("{reason}.rejected"));
        assert_eq!(counted, Some(&(turned_away as u64)), "{admission}");
    }
}

#[test]
fn a_gate_after_routing_turns_away_only_where_memory_is_short() {
    let requests = vec![
        request(0, 300, 200),
        of(SloClass::Batch, request(50_000, 60, 2)),
        of(SloClass::Batch, request(100_000, 60, 2)),
    ];
    let statuses = |admission| {
        let mut scenario = small_world().with(requests.clone());
        scenario.engine.total_kv_blocks = 40;
        // Round robin sends the second to an idle instance and the third to the full one.
        let told = Scenario { instances: 2, admission, ..scenario }.run();
        told.closed.iter().map(|ended| ended.status).collect::<Vec<_>>()
    };
    let (done, refused) = (Status::Finished, Status::Rejected("kv-gate"));
    assert_eq!(statuses("kv-gate[free-share=0.5]"), [done, done, refused]);
    assert_eq!(statuses("kv-gate[free-share=0.5,at=cluster]"), [done, done, done]);
}

#[test]
fn a_gate_after_routing_sees_memory_as_it_is_when_the_request_is_routed() {
    let mut scenario =
        small_world().with(vec![request(0, 300, 200), of(SloClass::Batch, request(1_000, 60, 2))]);
    scenario.engine.total_kv_blocks = 40;
    let refused = |routing_latency| {
        let mut scenario = scenario.clone();
        scenario.gateway.routing_latency = Span::from_micros(routing_latency);
        let told = Scenario { admission: "kv-gate[free-share=0.5]", ..scenario }.run();
        rejections(&told, "kv-gate")
    };
    // The first request takes its blocks 400 us after it is routed: in the second case after the
    // other one was admitted, and before that is routed.
    assert_eq!([refused(0), refused(10_000)], [1, 1]);
}

#[test]
fn edf_meets_more_deadlines_than_fcfs() {
    // Each takes about 1.2 ms; the later ones are in more of a hurry.
    let due = |arrival, ms: u64| Request {
        deadline: Some(Span::from_micros(ms * 1_000)),
        ..request(arrival, 100, 1)
    };
    let requests: Vec<Request> = (0..8).map(|at| due(at, 12 - at)).collect();
    let met = |order| {
        let told = Scenario { order, ..one_by_one(requests.clone()) }.run();
        let in_time = |(ended, request): (&Ended, &Request)| ended.e2e <= request.deadline;
        told.closed.iter().zip(&requests).filter(|pair| in_time(*pair)).count()
    };
    assert_eq!([met("edf"), met("fcfs")], [8, 5]);
}

/// A request with a cold prompt, among many whose prefix is cached by the one before all.
fn cold_among_warm() -> Vec<Request> {
    let warm = |arrival| prompted(arrival, &[(7, 320), (u64::MAX, 16)], 4);
    let mut requests = vec![warm(0), request(1_000, 336, 4)];
    requests.extend((0..200).map(|at| warm(2_000 + at * 3_000)));
    requests
}

#[test]
fn cache_first_overtakes_for_as_long_as_the_patience_and_no_longer() {
    // Router and engine agree on what is cached.
    for (order, patience) in [
        ("cache-first[by=cached,patience=0.1]", 100_000),
        ("cache-first[by=cached,patience=0.3]", 300_000),
        ("cache-first[by=expected,patience=0.1]", 100_000),
    ] {
        let mut scenario = one_by_one(cold_among_warm());
        (scenario.routing, scenario.scorers) = ("weighted", Some("pa:1"));
        let ttft = |order| Scenario { order, ..scenario.clone() }.run().ttfts_us()[1];
        let (found, fcfs) = (ttft(order), ttft("fcfs"));
        assert!(fcfs < 10_000, "{fcfs} us in turn");
        assert!((patience..patience + 10_000).contains(&found), "{order}: {found} us");
    }
}

/// At 95 % of what one instance can serve, clustered: nine in ten requests are critical.
fn clustered_arrivals() -> Vec<Request> {
    const SERVICE_US: f64 = 1_200.0;
    let (mut now, shape) = (0.0, 1.0 / 9.0);
    let arrival = |number: u64| {
        now += Dice::new(3, Purpose::Arrival, number).gamma(shape) / shape * SERVICE_US / 0.95;
        let class =
            if number.is_multiple_of(10) { SloClass::Sheddable } else { SloClass::Critical };
        of(class, request(math::count(now), 100, 1))
    };
    (0..8_000).map(arrival).collect()
}

#[test]
fn at_95_percent_load_slo_tiered_bounds_the_wait_of_sheddable_requests_and_slo_class_does_not() {
    let requests = clustered_arrivals();
    // The longest time to first token of sheddable and of critical requests, in us.
    let longest = |order, priority| {
        let told = Scenario { order, priority, ..one_by_one(requests.clone()) }.run();
        [SloClass::Sheddable, SloClass::Critical].map(|class| {
            let of_class = requests.iter().zip(told.ttfts_us());
            of_class.filter(|(request, _)| request.class == class).map(|(_, us)| us).max().unwrap()
        })
    };
    let fcfs = longest("fcfs", "constant").into_iter().max().unwrap();
    let [tiered, critical] =
        longest("priority-fcfs", "slo-tiered[age-weight=100,grace-sheddable=20]");
    let [strict, _] = longest("priority-fcfs", "slo-class");
    // Whoever arrives later than the grace and the difference of the bases over the age weight
    // stays behind: 20 ms + 9/100 s. Who came before that is served within the longest wait that
    // the same work causes in order of arrival.
    let bound = 110_000 + fcfs;
    assert!(tiered <= bound, "{tiered} us, more than {bound}");
    assert!(strict > 2 * bound, "{strict} us: without aging they starve");
    assert!(critical < fcfs, "{critical} us: it still helps the critical ones ({fcfs})");
}

#[test]
fn what_the_router_counts_on_outlives_prompts_that_nobody_expects() {
    let shared = |arrival| prompted(arrival, &[(7, 160), (u64::MAX, 16)], 2);
    let mut requests = vec![shared(0), shared(1_000_000)];
    requests.extend((2..7).map(|second| request(second * 1_000_000, 160, 2)));
    requests.push(shared(7_000_000));
    let found = |evict, scorers| {
        let mut scenario = small_world().with(requests.clone());
        scenario.engine.total_kv_blocks = 44;
        (scenario.routing, scenario.scorers) = ("weighted", Some(scorers));
        Scenario { evict, ..scenario }.run().found()[7]
    };
    assert_eq!(found("intent-aware", "pa:1"), 160);
    assert_eq!(found("intent-aware[routed=0]", "pa:1"), 0, "without the credit");
    assert_eq!(found("intent-aware", "qd:1"), 0, "a router without an opinion gives none");
    assert_eq!(found("lru", "pa:1"), 0);
}

#[test]
fn requests_wait_at_the_gateway_until_the_cluster_has_room_and_classes_go_in_turn() {
    let classes = [SloClass::Batch, SloClass::Batch, SloClass::Critical, SloClass::Batch];
    let requests = (0..).zip(classes).map(|(at, class)| of(class, request(at * 100, 100, 3)));
    let admission = "flow-control[detector=requests,max-concurrency=1,ttl=0.02]";
    let scenario = Scenario { admission, ..small_world().with(requests.collect()) };
    let told = scenario.run();
    assert_eq!(told.facts, scenario.paced(Pace::Stepwise).run().facts, "at both paces");
    let end = |ended: &Ended| ended.e2e.map(|e2e| Span::from_micros(100 * ended.request) + e2e);
    let mut order: Vec<&Ended> = told.closed.iter().collect();
    order.sort_by_key(|ended| end(ended));
    let order: Vec<u64> = order.iter().map(|ended| ended.request).collect();
    assert_eq!(order, [0, 2, 1, 3], "one at a time, the critical one first");
    let by_request = |id: u64| told.closed.iter().find(|ended| ended.request == id);
    let waits = [0, 1, 2, 3].map(|id| by_request(id).expect("it ended").split.gateway);
    assert!(waits[0] < waits[2] && waits[2] < waits[1] && waits[1] < waits[3], "{waits:?}");
    let first = by_request(0).and_then(|ended| ended.e2e).expect("it finished");
    let tick = Span::from_micros(1_000);
    let left = Span::from_micros(200) + waits[2];
    assert!(left <= first + tick + waits[0], "within a millisecond: {left:?}");
    assert_eq!(told.outcome.mechanisms["flow-control.held"], 3);
}

#[test]
fn whoever_waits_at_the_gateway_for_too_long_is_turned_away_and_the_impatient_leave() {
    let patient = |at| of(SloClass::Batch, request(at, 100, 3));
    let impatient = Request { patience: Some(Span::from_micros(2_000)), ..patient(20) };
    let requests = vec![request(0, 1_000, 200), patient(10), impatient];
    let admission = "flow-control[detector=requests,max-concurrency=1,ttl=0.005]";
    let scenario = Scenario { admission, ..small_world().with(requests) };
    let told = scenario.run();
    let statuses: Vec<Status> = told.closed.iter().map(|ended| ended.status).collect();
    let wanted =
        [Status::Finished, Status::Rejected("flow-control"), Status::Abandoned(Stage::Gateway)];
    assert_eq!(statuses, wanted);
    assert_eq!(told.outcome.mechanisms["flow-control.expired"], 1);
}
