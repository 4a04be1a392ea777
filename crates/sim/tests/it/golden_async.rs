//! Tiny scenarios of asynchronous scheduling, and of the host, whose every timestamp can be checked
//! by hand.
//!
//! The world of `small_world`: a prompt of I tokens joins the queue 100 + I us after routing; the
//! GPU takes 1000 + 2 per prefill token + 3 per decoding request us for a step; a token leaves the
//! server 10 us after its step has been processed. `Hosted` adds a host: so long to schedule, to
//! launch (and 1 us a sequence), to process an output.

use crate::harness::{Scenario, Told, request, small_world};
use crate::worlds::Hosted;
use blis_core::{Request, SloClass, Span, Time};
use blis_latency::{HostTime, StepShape, StepTime};
use blis_sim::{End, Pace};
use std::sync::Arc;

/// A world with asynchronous scheduling and a host that takes so long to schedule, launch and
/// update.
fn ahead([schedule, launch, update]: [u64; 3]) -> Scenario {
    let mut scenario = small_world();
    scenario.latency = Arc::new(Hosted(scenario.latency, [schedule, 0, launch, update]));
    scenario.engine.async_scheduling = true;
    scenario
}

/// A world with asynchronous scheduling and a host that takes no time.
fn free() -> Scenario {
    let mut scenario = small_world();
    scenario.engine.async_scheduling = true;
    scenario
}

/// Runs a scenario both ways, which must agree, and checks TTFT and E2E.
fn check(scenario: &Scenario, ttft_us: &[u64], e2e_us: &[u64]) -> Told {
    let told = scenario.run();
    let stepwise = scenario.paced(Pace::Stepwise).run();
    assert_eq!(told.facts, stepwise.facts, "fast-forward and stepwise agree");
    assert_eq!(told.ttfts_us(), ttft_us, "TTFT");
    assert_eq!(told.e2es_us(), e2e_us, "E2E");
    assert_eq!(told.outcome.end, End::Drained);
    told
}

/// How many facts at that time contain all of `words`.
fn at(told: &Told, micros: u64, words: &[&str]) -> usize {
    let matches = |(at, _, fact): &&(Time, u32, String)| {
        *at == Time::from_micros(micros) && words.iter().all(|word| fact.contains(word))
    };
    told.facts.iter().filter(matches).count()
}

/// Queued at 200. Schedule 20, launch 100, update 30.
///
/// - Turn 1 from 200: launched 220..320, the GPU computes step 1 220..1420. No step to wait for.
/// - Turn 2 from 320: launched 340..440, step 2 on the GPU 1420..2423. Step 1 is done at 1420 and
///   processed at 1450: the first token.
/// - Turn 3 from 1450: launched 1470..1570, step 3 2423..3426. Step 2 is processed at 2453.
/// - Turn 4 from 2453: the third and last token is on its way, nothing to schedule. Step 3 is
///   processed at 3456.
///
/// A synchronous engine takes 20 + 1200 + 30 for the first step and 20 + 1003 + 30 for the others:
/// 1450, 2503, 3556.
#[test]
fn one_request_alone_overlaps_the_host_with_the_gpu() {
    let mut scenario = ahead([20, 99, 30]).with(vec![request(0, 100, 3)]);
    let told = check(&scenario, &[1460], &[3466]);
    let split = told.closed[0].split;
    assert_eq!(split.prefill, Span::from_micros(1250));
    scenario.engine.async_scheduling = false;
    check(&scenario, &[1460], &[3566]);
}

/// As above, but a second request joins the queue at 700, during step 1. Turn 2, in which step 2
/// was formed, lasts until 1450; so it is part of step 3.
///
/// - Turn 3 from 1450: one token of the first and 100 of the second, 1203 on the GPU, 2423..3626;
///   launched 1470..1571. Step 2 is processed at 2453.
/// - Turn 4 from 2453: two tokens, 1006, 3626..4632. Step 3 is processed at 3656: the first token
///   of the second, 3666 - 500.
/// - Turn 5 from 3656: the first is to generate its fifth, 1003, 4632..5635. Step 4 is processed at
///   4662: the second has both tokens, 4672 - 500.
/// - Turn 6 from 4662: nothing. Step 5 is processed at 5665.
///
/// A synchronous engine schedules it at 1450 too, but in its second step: TTFT 2713 - 500.
#[test]
fn what_arrives_during_a_step_joins_the_step_after_the_next() {
    let requests = vec![request(0, 100, 5), request(500, 100, 2)];
    let mut scenario = ahead([20, 99, 30]).with(requests);
    let told = check(&scenario, &[1460, 3166], &[5675, 4172]);
    assert_eq!(told.closed[1].split.queue, Span::from_micros(750));
    scenario.engine.async_scheduling = false;
    assert_eq!(scenario.run().ttfts_us(), [1460, 2213]);
}

/// Schedule 100, launch 1500, update 60: a turn takes 1660, longer than 1003 on the GPU.
///
/// - Turn 1 from 200: launched 300..1800; the GPU has 1200 to do from 300 on, and is done with the
///   launch: 1800.
/// - Turn 2 from 1800: launched 1900..3400. Step 1 has long been done; its token is handed out when
///   step 2 is launched and step 1 processed: 3460.
/// - Turn 3 from 3460: launched 3560..5060, step 2 processed at 5120.
/// - Turn 4 from 5120: launched 5220..6720, step 3 processed at 6780.
/// - Turn 5 from 6780: nothing. Step 4 was done at 6720, it is processed at 6840.
#[test]
fn a_slow_host_sets_the_pace() {
    let scenario = ahead([100, 1499, 60]).with(vec![request(0, 100, 4)]);
    let told = check(&scenario, &[3470], &[6850]);
    assert_eq!(at(&told, 6780, &["Tokens", "gap: Span(1660000)"]), 1);
    assert_eq!(at(&told, 6840, &["Tokens", "gap: Span(60000)"]), 1);
}

/// With 40 tokens to generate the same rhythm is kept: tokens at 3460 + 1660 n for n < 39, and the
/// last one 60 after those: 3460 + 38 * 1660 + 60 = 66,600.
#[test]
fn the_pace_of_a_slow_host_is_kept_over_many_steps() {
    check(&ahead([100, 1499, 60]).with(vec![request(0, 100, 40)]), &[3470], &[66_610]);
}

/// A host that takes 100 to launch a step that only decodes, and 5000 for one with prefill.
#[derive(Debug)]
struct SlowPrefill(Arc<dyn StepTime>);

impl StepTime for SlowPrefill {
    fn predict(&self, shape: &StepShape) -> Span {
        self.0.predict(shape)
    }

    fn host(&self, shape: &StepShape) -> HostTime {
        let micros = if shape.only_decodes() { 100 } else { 5000 };
        HostTime { launch: Span::from_micros(micros), ..HostTime::default() }
    }

    fn ingress(&self, input_tokens: u32) -> Span {
        self.0.ingress(input_tokens)
    }

    fn output(&self, seqs: u32) -> Span {
        self.0.output(seqs)
    }

    fn context_free(&self) -> bool {
        true
    }
}

/// The first is queued at 200, the second at 5250.
///
/// - Turn 1 from 200: prefill, launched 200..5200, done at 5200.
/// - Turn 2 from 5200: decode, launched 5200..5300, on the GPU 5200..6203. Step 1 at 5300.
/// - Turn 3 from 5300: decode and prefill, launched 5300..10,300. Step 2 is done at 6203, but its
///   token is handed out when step 3 is launched: 10,300. Step 3 is done then, too.
/// - Turn 4 from 10,300: the only token of the second is on its way, so it is not in step 4, though
///   it is still running: 1003, 10,300..11,303, launched until 10,400. Step 3 at 10,400: both.
/// - Turn 5 from 10,400: the last token of the first, 11,303..12,306. Step 4 at 11,303.
/// - Turn 6 from 11,303: nothing. Step 5 at 12,306.
#[test]
fn the_launch_of_a_prefill_delays_the_tokens_of_the_step_before() {
    let requests = vec![request(0, 100, 5), request(5050, 100, 1)];
    let mut scenario = free().with(requests);
    scenario.latency = Arc::new(SlowPrefill(scenario.latency));
    let told = check(&scenario, &[5310, 5360], &[12_316, 5360]);
    assert_eq!(at(&told, 10_300, &["Tokens", "gap: Span(5000000)"]), 1);
    let without_the_second = ["Steps", "prefill_tokens: 0, decode_seqs: 1,", "running: 2"];
    assert_eq!(at(&told, 11_303, &without_the_second), 1);
}

/// 4 blocks of 16, prompts of 3 blocks. The first is queued at 140, computes 140..1220 and its
/// second and last token 1220..2223. That step was formed at 140, so at 1220 the first has nothing
/// left to be scheduled for. Its blocks are free when its last token has been processed, at 2223,
/// and only then does the second begin: 2223..3303.
#[test]
fn blocks_are_free_when_the_last_token_has_been_processed() {
    let mut scenario = free().with(vec![request(0, 40, 2), request(0, 40, 1)]);
    scenario.engine.total_kv_blocks = 4;
    check(&scenario, &[1230, 3313], &[2233, 3313]);
}

/// 4 blocks of 16, two requests of 24 prompt tokens and 16 output tokens: each has room for 32
/// tokens, which 8 decode steps fill. Queued at 124, prefill of 48 tokens to 1220, then steps of
/// 1006 to 9268, when the ninth token comes. The next step is formed when the eighth comes, at
/// 8262: there is no block for it, and the second is preempted, with its ninth token on its way,
/// which it gets at 9268. From then on all is as without asynchronous scheduling: the first goes on
/// alone with 7 steps of 1003 to 16,289. The second comes back then, with 24 + 9 tokens of which 16
/// are cached: 1034, to 17,323, then 6 steps of 1003 to 23,341.
#[test]
fn a_preempted_request_gets_the_token_of_the_step_in_flight() {
    let mut scenario = free().with(vec![request(0, 24, 16), request(0, 24, 16)]);
    scenario.engine.total_kv_blocks = 4;
    let told = check(&scenario, &[1230, 1230], &[16_299, 23_351]);
    let preempted = ["Preempted", "RequestId(1)", "lost_tokens: 32", "ended: false"];
    assert_eq!(at(&told, 8262, &preempted), 1);
    assert_eq!(at(&told, 9268, &["Tokens", "count: 2"]), 1);
    assert_eq!(at(&told, 16_289, &["Scheduled", "cached_tokens: 16, total_tokens: 33"]), 1);
}

/// The same, but the second has 9 tokens to generate. When it is preempted its last token is on its
/// way: it loses its blocks, gets the token at 9268 and does not wait again.
#[test]
fn a_request_that_is_preempted_before_its_last_token_does_not_come_back() {
    let mut scenario = free().with(vec![request(0, 24, 16), request(0, 24, 9)]);
    scenario.engine.total_kv_blocks = 4;
    let told = check(&scenario, &[1230, 1230], &[16_299, 9278]);
    assert_eq!(at(&told, 8262, &["Preempted", "RequestId(1)", "ended: true"]), 1);
    assert_eq!(told.closed[1].preemptions, 1);
    assert_eq!(told.count("Scheduled"), 2);
}

/// vLLM's `--scheduling-policy priority`. 4 blocks; a sheddable request of 24 + 16 tokens is queued
/// at 124, a critical one at 624, and the host takes no time.
///
/// - Step 1 takes 1048, to 1172, and step 2 1003, to 2175. The critical request is part of step 3:
///   1051, to 3226. From then on a step takes 1006: step k ends at 3226 + 1006 (k - 3).
/// - Step 10, which is formed when step 8 is processed, at 8256, needs a third block for the
///   sheddable one. It is the least important itself, so it goes, and nobody behind it is scheduled
///   either. Step 9 is under way: at 9262 it gives each a token, their ninth and seventh.
/// - The critical one goes on alone from 9262: its eighth token at 10,265, the last at 10,265 + 8 *
///   1003 = 18,289. The sheddable one has lost one of its 2 full blocks and computes 17 tokens:
///   1034, to 19,323. Six more tokens: 25,341.
#[test]
fn who_gives_way_with_a_step_in_flight_gets_its_token_and_stops_those_behind_it() {
    let of = |class, request| Request { class, ..request };
    let requests = vec![
        of(SloClass::Sheddable, request(0, 24, 16)),
        of(SloClass::Critical, request(500, 24, 16)),
    ];
    let mut scenario = free().with(requests);
    scenario.engine.total_kv_blocks = 4;
    (scenario.order, scenario.priority) = ("priority-fcfs", "slo-class");
    scenario.preempt = "lowest-priority";
    let told = check(&scenario, &[1182, 2736], &[25_351, 17_799]);
    assert_eq!(at(&told, 8256, &["Preempted", "RequestId(0)", "lost_tokens: 32"]), 1);
    assert_eq!(at(&told, 9262, &["Steps", "decode_seqs: 2"]), 1);
    assert_eq!(at(&told, 10_265, &["Steps", "decode_seqs: 1"]), 1);
    assert_eq!(told.count("Preempted"), 1);
}
