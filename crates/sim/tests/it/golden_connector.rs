//! The CPU tier as vLLM's connector runs it, in tiny scenarios whose every nanosecond can be
//! checked by hand.
//!
//! The world of `golden_async`: a prompt of I tokens joins the queue 100 + I us after routing; the
//! GPU takes 1000 + 2 per prefill token + 3 per decoding request us for a step; the host takes 20
//! us to schedule, 99 and 1 per sequence to launch, 30 to process an output; a token leaves the
//! server 10 us later. Blocks hold 16 tokens. A transfer takes 40 us and then moves 0.026 blocks a
//! us: 78.462 us for one block, 155.385 for 3, 193.847 for 4.
//!
//! Most cases begin alike. Stream 7 asks with 65 tokens at 0 and is queued at 165. Turn 1 from 165:
//! launched 185..285, on the GPU 185..1315; copies of its 4 full blocks are ordered. Turn 2 from
//! 285 has nothing to schedule; the copies are submitted and begin at 1315. The step is processed
//! at 1345. A *wall* of 180 private tokens takes 12 blocks, so that blocks of stream 7 go.

use crate::harness::{Listed, Scenario, Told, prompted, request, small_world};
use crate::worlds::Hosted;
use blis_core::{Request, Span, Time};
use blis_kv::LinkSpeed;
use blis_metrics::Fanout;
use blis_sim::{End, KvTier, Pace, Reload, Unobserved};
use std::sync::Arc;

const MEASURED: LinkSpeed = LinkSpeed { base: Span::from_micros(40), blocks_per_us: 0.026 };
const SLOW: LinkSpeed = LinkSpeed { base: Span::from_micros(40), blocks_per_us: 0.001 };

const FOUR: u64 = 193_847;

/// So many blocks with a tier of 100 behind them, which is filled by `out`.
fn world(blocks: u32, out: LinkSpeed) -> Scenario {
    let mut scenario = small_world();
    scenario.latency = Arc::new(Hosted(scenario.latency, [20, 0, 99, 30]));
    scenario.offload = "vllm";
    scenario.engine.async_scheduling = true;
    scenario.engine.cache_on_allocation = true;
    scenario.engine.total_kv_blocks = blocks;
    scenario.engine.tier = Some(KvTier {
        blocks: 100,
        out,
        back: MEASURED,
        reload: Reload::Async,
        thrashing_window: Span::from_micros(1_000_000),
    });
    scenario
}

/// Asks with 65 tokens of stream 7.
fn asks(at: u64) -> Request {
    prompted(at, &[(7, 65)], 1)
}

/// Runs both ways, which must agree to the last fact.
fn run(scenario: &Scenario) -> Told {
    let told = scenario.run();
    let stepwise = scenario.paced(Pace::Stepwise).run();
    assert_eq!(told.facts, stepwise.facts, "fast-forward and stepwise agree");
    assert_eq!(told.outcome.end, End::Drained);
    told
}

/// When facts were stated that begin with `word`, and what they say.
fn said(told: &Told, word: &str) -> Vec<(Time, String)> {
    let facts = told.facts.iter().filter(|(_, _, fact)| fact.starts_with(word));
    facts.map(|(at, _, fact)| (*at, fact.clone())).collect()
}

/// The `n`-th fact that begins with `word` was stated at `when`, in us and ns, and says `what`.
#[track_caller]
fn nth(told: &Told, n: usize, word: &str, when: (u64, u64), what: &str) {
    let found = said(told, word);
    let (at, fact) = &found[n];
    let when = Time::from_nanos(when.0 * 1000 + when.1);
    assert!(*at == when && fact.contains(what), "{found:#?}");
}

/// TTFT of a request and its parts: gateway, queue, reload, prefill.
#[track_caller]
fn ttft(told: &Told, request: usize, parts: [u64; 4]) {
    let split = told.closed[request].split;
    let found = [split.gateway, split.queue, split.reload, split.prefill];
    assert_eq!(found, parts.map(Span::from_nanos), "request {request}");
}

/// The wall comes at 5000 and is queued at 5280, when the engine learns that the 4 copies are
/// there; it drops the blocks. Turn 1 from 5280: GPU 5300..6660, processed at 6690; its 11 full
/// blocks are copied as well. Stream 7 asks again at 10,000 and is queued at 10,165. Nothing else
/// is to be done: the copy back begins at once and is noticed when it is done, at 10,358.847. Then
/// 20 + 1002 + 30 for its last token.
#[test]
fn a_prompt_is_stored_as_it_is_computed_and_found_in_the_tier() {
    let requests = vec![asks(0), request(5000, 180, 1), asks(10_000)];
    let told = run(&world(12, MEASURED).with(requests));
    nth(&told, 0, "Offloading", (165, 0), "blocks: 4 ");
    nth(&told, 0, "Offloaded", (5280, 0), "blocks: 4, abandoned: 0, cpu_blocks: 4");
    nth(&told, 1, "Offloading", (5280, 0), "blocks: 11 ");
    nth(&told, 0, "Reloading", (10_165, 0), "blocks: 4, recent: 4, beside: true");
    nth(&told, 0, "Reloaded", (10_165, FOUR), "blocks: 4");
    ttft(&told, 2, [165_000, 0, FOUR, 1_052_000]);
    assert_eq!(told.found(), [0, 0, 64]);
    // Nothing of it is new, so nothing is stored.
    assert_eq!((said(&told, "Offloading").len(), told.count("Stalled")), (2, 0));
}

/// Before, but a request of 20 tokens decodes when stream 7 asks again. It is queued at 10,120.
///
/// - Turn 1 from 10,120: launched 10,140..10,240, GPU 10,140..11,180. Its one full block is to be
///   copied.
/// - Turn 2 from 10,240: launched by 10,360, GPU ..12,183. That copy will be done at 11,258.462.
///   Step 1 is processed at 11,210. Stream 7 was queued at 10,665.
/// - Turn 3 from 11,210: the copy back of 4 blocks is ordered, and begins with the launch at
///   11,230: done at 11,423.847. All is launched by 11,330: too early. GPU ..13,186. Step 2 is
///   processed at 12,213.
/// - Turn 4 from 12,213: launched by 12,333, which is when the engine sees that the copy is done;
///   it says so with the output of this step. GPU ..14,189. Step 3 is processed at 13,216, and with
///   it the engine learns of the copy out.
/// - Turn 5 from 13,216: GPU ..15,192. Step 4 is processed at 14,219.
/// - Turn 6 from 14,219: stream 7 joins, one token and one that decodes: 1005, GPU ..16,197.
/// - Turn 7 from 15,222: step 6 is processed at 16,227.
#[test]
fn a_request_waits_for_its_copies_outside_the_batch() {
    let requests = vec![asks(0), request(5000, 180, 1), request(10_000, 20, 12), asks(10_500)];
    let told = run(&world(12, MEASURED).with(requests));
    nth(&told, 0, "Reloading", (11_210, 0), "blocks: 4");
    nth(&told, 2, "Offloaded", (13_216, 0), "blocks: 1,");
    nth(&told, 0, "Reloaded", (14_219, 0), "blocks: 4");
    ttft(&told, 3, [165_000, 545_000, 3_009_000, 2_008_000]);
    // Twelve tokens, each 1003 after the one before, but for the step with stream 7 in it.
    let e2e = 11_210 + 11 * 1003 + 2 + 10 - 10_000;
    assert_eq!(told.closed[2].e2e, Some(Span::from_micros(e2e)));
}

/// 14 blocks, and copies out of 1000 us a block: those of stream 7 last from 1315 to 5355. The wall
/// is queued at 1780 and drops 2 of the 4 blocks, so its launch waits for the copy, from 1800 on:
/// GPU 5355..6715, launched by 5455. Stream 7 asks again and is queued at 2065; a request of 16
/// tokens is queued behind it at 2066.
///
/// - Turn 2 from 5455: the engine has not heard that the copies are done, which is told with the
///   wall's output. Stream 7 is passed over; the other one takes one of its 2 blocks. GPU
///   6715..7747. The wall is processed at 6745.
/// - Turn 3 from 6745: copies of 3 blocks back are ordered. They take blocks of the wall, which are
///   being copied out until 6715 + 40 + 11,000: the host waits until 17,755, and processes step 2
///   by 17,785. The copies back are there 155.385 after 17,755. Nothing else is under way then, so
///   the engine finds out at once. 20 + 1002 + 30.
#[test]
fn a_request_whose_copies_are_under_way_is_passed_over() {
    let requests = vec![asks(0), request(1500, 180, 1), asks(1900), request(1950, 16, 1)];
    let told = run(&world(14, SLOW).with(requests));
    nth(&told, 0, "Stalled", (1780, 0), "Span(3555000)");
    nth(&told, 2, "Scheduled", (5455, 0), "RequestId(3)");
    nth(&told, 0, "Offloaded", (6745, 0), "blocks: 4, abandoned: 0");
    nth(&told, 0, "Reloading", (6745, 0), "blocks: 3");
    nth(&told, 0, "Reloaded", (17_910, 385), "blocks: 3");
    ttft(&told, 2, [165_000, 4_680_000, 17_910_385 - 6_745_000, 1_052_000]);
    ttft(&told, 3, [116_000, 3_389_000, 0, 17_785_000 - 5_455_000]);
    assert_eq!(told.found(), [0, 0, 64, 0]);
}

/// 6 blocks, a host that takes no time, three requests of 24 tokens that are queued at 124 and have
/// 2 blocks each. Step 1 ends at 1268, and the k-th at 1268 + 1009 (k - 1). Step 10, which is
/// formed when step 8 is processed, at 8331, needs a third block for the first of them. The blocks
/// of the last are not free before step 9 is processed, nor are those of the second: all three are
/// preempted, and nothing is scheduled. At 9340 each has its ninth token, and the blocks are free:
/// the first two come back, with 2 blocks cached and one more to take.
///
/// Without a step in flight the last gives its blocks to both others at once.
#[test]
fn blocks_of_a_victim_are_free_when_its_step_in_flight_is_processed() {
    let requests = vec![request(0, 24, 20); 3];
    let mut scenario = world(6, MEASURED).with(requests);
    scenario.latency = small_world().latency;
    let told = run(&scenario);
    for (n, request) in [2, 1, 0].into_iter().enumerate() {
        let what =
            format!("request: RequestId({request}), instance: InstanceId(0), lost_tokens: 32");
        nth(&told, n, "Preempted", (8331, 0), &what);
    }
    for (n, request) in [0, 1].into_iter().enumerate() {
        let what = format!("RequestId({request}), instance: InstanceId(0), cached_tokens: 32");
        nth(&told, 3 + n, "Scheduled", (9340, 0), &what);
    }
    scenario.offload = "write-through";
    let other = run(&scenario);
    nth(&other, 0, "Preempted", (8331, 0), "RequestId(2)");
    assert_eq!(other.count("Preempted"), 1);
    (scenario.offload, scenario.engine.async_scheduling) = ("vllm", false);
    let synchronous = run(&scenario);
    nth(&synchronous, 0, "Preempted", (9340, 0), "RequestId(2)");
    assert_eq!(synchronous.count("Preempted"), 1);
}

#[test]
fn requests_that_preempt_each_other_for_ever_end_the_run_with_an_error() {
    let mut scenario = world(2, MEASURED);
    // Two begin together once a third is done. Nothing is left of chunks that fill no block.
    scenario.engine.long_prefill_token_threshold = 9;
    scenario.engine.cache_on_allocation = false;
    let requests = vec![request(0, 9, 1), request(10, 25, 2), request(30, 12, 8)];
    // The oracle looks for the first token of the third, which never comes.
    for routing in [false, true] {
        scenario.oracles.routing = routing;
        let mut source = Listed::new(requests.clone());
        let (config, nobody) = (scenario.config(), &mut Fanout::new(Vec::new()));
        let ran = blis_sim::run(config, &mut source, nobody, &mut Unobserved);
        let told = ran.expect_err("it never ends").to_string();
        assert!(told.starts_with("requests preempt each other for ever: 10"), "{told}");
    }
}
