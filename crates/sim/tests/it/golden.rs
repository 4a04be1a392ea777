//! Tiny scenarios whose every timestamp can be checked by hand.
//!
//! The world of `small_world`: a prompt of I tokens joins the queue 100 + I us after routing; a
//! step takes 1000 + 2 per prefill token + 3 per decoding request us; a token leaves the server 10
//! us after its step.

use crate::harness::{Ended, Scenario, Told, prompted, request, small_world};
use blis_core::{Ending, Request, Source, Span, TenantId, Time};
use blis_metrics::Status;
use blis_sim::{End, Pace, Prefill};
use std::error::Error;

/// Runs a scenario both ways, which must agree, and returns what was told.
fn run(scenario: &Scenario) -> Told {
    let told = scenario.run();
    let stepwise = scenario.paced(Pace::Stepwise).run();
    assert_eq!(told.closed, stepwise.closed, "fast-forward and stepwise agree");
    assert_eq!(told.outcome, stepwise.outcome);
    told
}

fn check(scenario: &Scenario, ttft_us: &[u64], e2e_us: &[u64]) -> Told {
    let told = run(scenario);
    assert_eq!(told.ttfts_us(), ttft_us, "TTFT");
    assert_eq!(told.e2es_us(), e2e_us, "E2E");
    assert_eq!(told.outcome.end, End::Drained);
    told
}

fn us(micros: u64) -> Span {
    Span::from_micros(micros)
}

/// Ingress 100 + 100 = 200. Prefill step 1000 + 2*100 = 1200, ends at 1400, token out at 1410.
/// Four decode steps of 1003: 1400 + 4012 = 5412, out at 5422.
#[test]
fn one_request_alone() {
    let told = check(&small_world().with(vec![request(0, 100, 5)]), &[1410], &[5422]);
    let Ended { split, .. } = told.closed[0];
    assert_eq!((split.gateway, split.queue), (us(200), us(0)));
    assert_eq!((split.prefill, split.output), (us(1200), us(10)));
    assert_eq!(told.outcome.ended_at, Time::from_micros(5422));
}

/// A single output token: the step that completes the prompt is the last. 200 + 1200 + 10.
#[test]
fn the_first_token_comes_out_of_the_step_that_completes_the_prompt() {
    check(&small_world().with(vec![request(0, 100, 1)]), &[1410], &[1410]);
}

/// Both queue at 200 (same instant), and share one prefill step: 1000 + 2*200 = 1400, ends at 1600.
/// Two decode steps of 1000 + 2*3 = 1006: 3612. Tokens leave 10 later.
#[test]
fn two_requests_that_join_at_one_instant_share_every_step() {
    let requests = vec![request(0, 100, 3), request(0, 100, 3)];
    check(&small_world().with(requests), &[1610; 2], &[3622; 2]);
}

/// The first: queued at 200, prefill 200..1400, decode 1400..2403. The second arrives at 1500,
/// queued at 1700, in the middle of that step; it joins the step at 2403, which takes 1000 + 3 +
/// 2*100 = 1203 and ends at 3606: TTFT 3606 + 10 - 1500 = 2116. The first has its tokens at 1400,
/// 2403, 3606: done at 3616. The second decodes alone
/// 3606..4609: E2E 4619 - 1500 = 3119.
#[test]
fn a_request_that_arrives_during_a_step_joins_the_next() {
    let requests = vec![request(0, 100, 3), request(1500, 100, 2)];
    let told = check(&small_world().with(requests), &[1410, 2116], &[3616, 3119]);
    assert_eq!(told.closed[1].split.queue, us(703));
}

/// Queued exactly at the instant a step ends (arrival 1200, + 200 = 1400): it is part of the step
/// that begins then, which takes 1000 + 3 + 200 = 1203, to 2603: TTFT 2613 - 1200 = 1413.
#[test]
fn a_request_that_joins_at_a_step_boundary_is_part_of_the_next_step() {
    let requests = vec![request(0, 100, 2), request(1200, 100, 1)];
    check(&small_world().with(requests), &[1410, 1413], &[2613, 1413]);
}

/// Budget 2048: a prompt of 3000 queues at 3100 and takes two steps, 1000 + 2*2048 = 5096 (to 8196)
/// and 1000 + 2*952 = 2904 (to 11100): TTFT 11110. One decode step: 12103 + 10.
#[test]
fn a_prompt_longer_than_the_budget_is_chunked_across_two_steps() {
    check(&small_world().with(vec![request(0, 3000, 2)]), &[11_110], &[12_113]);
}

/// Threshold 64: a prompt of 150 queues at 250; chunks of 64, 64, 22: 1128 + 1128 + 1044 = 3300, to
/// 3550.
#[test]
fn the_long_prefill_threshold_caps_each_chunk() {
    let mut scenario = small_world().with(vec![request(0, 150, 1)]);
    scenario.engine.long_prefill_token_threshold = 64;
    check(&scenario, &[3560], &[3560]);
}

/// As in `a_request_that_arrives_during_a_step_joins_the_next`, but the step at 2403 computes the
/// second's prompt only: 1000 + 2*100 = 1200, to 3603. Then both decode: 1006, to 4609.
#[test]
fn with_separate_prefill_decodes_wait_while_a_prompt_is_computed() {
    let requests = vec![request(0, 100, 3), request(1500, 100, 2)];
    let mut scenario = small_world().with(requests);
    scenario.engine.prefill = Prefill::Separate;
    check(&scenario, &[1410, 2113], &[4619, 3119]);
}

/// Budget 2048: two prompts of 1500 queue at 1600. Mixed, the first step has 548 tokens of the
/// second: 5096, to 6696, and the rest takes 2904. Uncut, each has a step of 4000, to 5600 and
/// 9600. A prompt that is longer than the budget is cut all the same.
#[test]
fn with_whole_prefill_a_prompt_waits_for_a_step_that_has_room_for_it() {
    let mut scenario = small_world().with(vec![request(0, 1500, 1), request(0, 1500, 1)]);
    check(&scenario, &[6706, 9610], &[6706, 9610]);
    scenario.engine.prefill = Prefill::Whole;
    check(&scenario, &[5610, 9610], &[5610, 9610]);
    scenario.requests = vec![request(0, 3000, 2)];
    check(&scenario, &[11_110], &[12_113]);
}

/// Both prompts: 64 shared tokens (4 blocks) and 36 own. The first: 200 + 1200 + 10. The second
/// arrives at 10,000 when the first is done: it hits 4 blocks and computes 36 tokens: queued
/// 10,200, step 1072, TTFT 200 + 1072 + 10.
#[test]
fn a_shared_prefix_is_not_computed_again() {
    let shared = |at| prompted(at, &[(7, 64), (u64::MAX, 36)], 1);
    let told =
        check(&small_world().with(vec![shared(0), shared(10_000)]), &[1410, 1282], &[1410, 1282]);
    assert_eq!((told.closed[0].cached, told.closed[1].cached), (Some(0), Some(64)));
}

/// The same prompt of 96 tokens (6 full blocks) again: the last token must be computed, so the last
/// block does not hit: 5 blocks, 80 tokens, are cached and 16 computed. Queued at +196, step 1000 +
/// 32 = 1032: TTFT 1238.
#[test]
fn a_prompt_that_is_cached_whole_still_computes_its_last_block() {
    let same = |at| prompted(at, &[(7, 96)], 1);
    let told = check(
        &small_world().with(vec![same(0), same(10_000)]),
        &[196 + 1192 + 10, 1238],
        &[196 + 1192 + 10, 1238],
    );
    assert_eq!(told.closed[1].cached, Some(80));
}

/// A prompt of 97 tokens that is cached whole computes exactly its last token: 6 blocks hit, step
/// 1002.
#[test]
fn a_full_prompt_hit_computes_one_token() {
    let same = |at| prompted(at, &[(7, 97)], 1);
    let told = run(&small_world().with(vec![same(0), same(10_000)]));
    assert_eq!(told.closed[1].cached, Some(96));
    assert_eq!(told.ttfts_us()[1], 197 + 1002 + 10);
}

/// Eight prompts of 2,048 shared tokens and 32 own ones, which arrive together and queue at 2180,
/// with a budget of 8,192. If blocks are cached once they are computed, the first step computes
/// three prompts and 1952 tokens of a fourth, 8192 in all: 17,384, to 19,564. The second computes
/// the 128 that the fourth lacks, and the own tokens of four that find the prefix: 256, 1512, to
/// 21,076. If they are cached once they are allocated, the first computes the prefix, and all
/// others find it in the same step: 2080 + 7 * 32 = 2304 tokens, 5608, to 7788.
#[test]
fn requests_of_one_step_share_a_new_prefix_if_blocks_are_cached_once_allocated() {
    let prompt = || prompted(0, &[(7, 2048), (u64::MAX, 32)], 1);
    let mut scenario = small_world().with(vec![prompt(); 8]);
    scenario.engine.total_kv_blocks = 2000;
    scenario.engine.max_num_scheduled_tokens = 8192;
    let computed = [[19_574; 3].as_slice(), &[21_086; 5]].concat();
    assert_eq!(
        check(&scenario, &computed, &computed).found(),
        [0, 0, 0, 0, 2048, 2048, 2048, 2048]
    );
    scenario.engine.cache_on_allocation = true;
    let told = check(&scenario, &[7798; 8], &[7798; 8]);
    assert_eq!(told.found(), [[0].as_slice(), &[2048; 7]].concat());
}

/// Generated tokens are cached too: a second round that repeats prompt and answer of the first hits
/// them. Round 1: 40 prompt + 25 generated tokens, of which 24 are in the cache: 64 tokens, 4
/// blocks. Round 2 asks with 100 tokens of the same stream: 64 cached, 36 computed: queued at +200,
/// step 1072, TTFT 1282.
#[test]
fn a_second_round_hits_what_the_first_generated() {
    let mut first = prompted(0, &[(7, 40)], 25);
    first.content =
        blis_core::Content::new(first.content.segments().to_vec(), blis_core::StreamId(7));
    let told = run(&small_world().with(vec![first, prompted(100_000, &[(7, 100)], 1)]));
    assert_eq!(told.closed[1].cached, Some(64));
    assert_eq!(told.ttfts_us()[1], 1282);
}

/// What a running request has generated is found too. The first (40 tokens, queued at 140, prefill
/// 1080 to 1220) generates a token every 1003. The second asks for 80 tokens of the same stream at
/// 100,000: at 100,180, in the middle of a step, the first has computed 40 + 98 tokens, so all of
/// the second's 4 full blocks before its last token are there.
#[test]
fn a_prompt_hits_what_a_running_request_has_generated() {
    let mut first = prompted(0, &[(7, 40)], 200);
    first.content =
        blis_core::Content::new(first.content.segments().to_vec(), blis_core::StreamId(7));
    let told = run(&small_world().with(vec![first, prompted(100_000, &[(7, 80)], 1)]));
    assert_eq!(told.closed[1].cached, Some(64));
}

/// 4 blocks of 16; two requests of 24 prompt tokens (2 blocks each) and 16 output tokens, that
/// arrive together. Queued at 124. Prefill of 48 tokens: 1096, to 1220. Each has room for 32
/// tokens: 8 more decode steps of 1006 bring both to 32 computed tokens and 9 generated ones, at
/// 1220 + 8048 = 9268. The next token needs a third block each and none is left: the second is
/// preempted. Both its blocks are full and stay cached until the first needs one: the deepest, its
/// second, is evicted. The first goes on alone with 7 steps of 1003, to 9268 + 7021 = 16,289, and
/// finishes: E2E 16,299. It leaves 2 cached blocks and a free one. The second resumes at 16,289
/// with 24 + 9 = 33 tokens to catch up on: its first block (16 tokens) is still cached, 17 are
/// computed: 1034, to 17,323, which brings token 10. It needs two more blocks for that, the free
/// one and one that is evicted from the first's. Then 6 steps of 1003, to 23,341: E2E 23,351. Both
/// had their first token at 1220: TTFT 1230 stands.
#[test]
fn a_preempted_request_keeps_its_tokens_and_computes_the_rest_again() {
    let mut scenario = small_world().with(vec![request(0, 24, 16), request(0, 24, 16)]);
    scenario.engine.total_kv_blocks = 4;
    let told = check(&scenario, &[1230, 1230], &[16_299, 23_351]);
    assert_eq!((told.closed[0].preemptions, told.closed[1].preemptions), (0, 1));
    assert_eq!(told.closed[1].output_tokens, 16);
    assert_eq!((told.count("Preempted"), told.count("Evicted")), (1, 2));
}

/// Two prompts of 40 tokens (3 blocks) in a pool of 5: with the whole prompt reserved the second
/// waits until the first is done. First: queued 140, step 1080, to 1220. Second: step 1080 from
/// 1220, to 2300.
#[test]
fn a_prompt_that_does_not_fit_waits_until_blocks_are_free() {
    let mut scenario = small_world().with(vec![request(0, 40, 1), request(0, 40, 1)]);
    scenario.engine.total_kv_blocks = 5;
    check(&scenario, &[1230, 2310], &[1230, 2310]);
}

/// A prompt of 100 tokens and 61 more needs 10 blocks for the 160 tokens whose KV is kept: with 9
/// it is refused on arrival, with 10 it is served.
#[test]
fn a_request_that_can_never_fit_is_refused_on_arrival() {
    let mut scenario = small_world().with(vec![request(0, 100, 61)]);
    scenario.engine.total_kv_blocks = 9;
    let told = run(&scenario);
    assert_eq!(told.closed[0].status, Status::Unservable);
    assert_eq!(told.outcome.end, End::Drained);
    scenario.engine.total_kv_blocks = 10;
    assert_eq!(run(&scenario).closed[0].status, Status::Finished);
}

/// One place in the batch. Prompts of 300, 200 and 100 tokens arrive together and queue at 400, 300
/// and 200, so the shortest starts at once (200..1400). Then, by prompt length, 200 (1400..2800)
/// goes before 300 (2800..4400); in order of joining it is the same here, but a fourth of 10 tokens
/// that joins at 1310 overtakes both: 1400..2420.
#[test]
fn sjf_lets_the_shortest_prompt_go_first() {
    let mut scenario = small_world().with(vec![
        request(0, 300, 1),
        request(0, 200, 1),
        request(0, 100, 1),
        request(1200, 10, 1),
    ]);
    scenario.engine.max_num_running_reqs = 1;
    scenario.order = "sjf";
    let second = 1400 + 1020;
    let expected = [second + 1400 + 1600 + 10, second + 1400 + 10, 1410, second + 10 - 1200];
    check(&scenario, &expected, &expected);
}

/// Admission takes 50 us and routing 30: everything is 80 later, and counts as gateway time.
#[test]
fn gateway_delays_add_to_the_time_to_first_token() {
    let mut scenario = small_world().with(vec![request(0, 100, 1)]);
    scenario.gateway.admission_latency = us(50);
    scenario.gateway.routing_latency = us(30);
    let told = check(&scenario, &[1490], &[1490]);
    assert_eq!(told.closed[0].split.gateway, us(280));
}

/// A horizon of 3000 us cuts the run of `one_request_alone`: tokens at 1400 and 2403, then it is
/// still running.
#[test]
fn the_horizon_ends_a_run_and_says_where_everyone_was() {
    let mut scenario = small_world().with(vec![request(0, 100, 5), request(2950, 100, 1)]);
    scenario.horizon = Some(Time::from_micros(3000));
    let told = run(&scenario);
    assert_eq!(told.outcome.end, End::Horizon);
    assert_eq!(told.outcome.ended_at, Time::from_micros(3000));
    let left: Vec<_> =
        told.closed.iter().map(|ended| (ended.status, ended.output_tokens)).collect();
    assert_eq!(left, [(Status::Running, 2), (Status::InTransit, 0)]);
}

/// A client that asks again `THINK` after each answer, and `THINK` after each refusal.
struct Client {
    rounds: u32,
}

const THINK: Span = Span::from_micros(500);

impl Source for Client {
    fn next_request(&mut self) -> Result<Option<Request>, Box<dyn Error + Send + Sync>> {
        self.rounds -= 1;
        Ok((self.rounds == 2).then(|| request(0, 100, 2)))
    }

    fn is_closed_loop(&self) -> bool {
        true
    }

    fn follow_up(&mut self, ended: &Request, _ending: Ending, at: Time) -> Option<Request> {
        let again = Request { arrival: at + THINK, round: ended.round + 1, ..request(0, 100, 2) };
        (ended.round < 2).then_some(again)
    }

    fn expected(&self) -> Option<u64> {
        None
    }

    fn tenant_name(&self, _tenant: TenantId) -> String {
        String::new()
    }
}

/// Each round takes 200 + 1200 + 1003 + 10 = 2413, as `one_request_alone` with two tokens; the next
/// comes 500 later: arrivals at 0, 2913 and 5826, and the last token leaves at 8239. The three
/// prompts are one stream here: 6 blocks, 96 tokens, hit from the second round on, so that its
/// prefill is 1008 instead of 1200: 2221, arrivals at 0, 2913 and 5634, last token at 7855.
#[test]
fn a_closed_loop_client_asks_again_after_the_answer_and_some_thought() {
    let told = small_world().run_with(&mut Client { rounds: 3 });
    assert_eq!(told.e2es_us(), [2413, 2221, 2221]);
    let arrivals: Vec<Time> = told
        .facts
        .iter()
        .filter(|(_, _, fact)| fact.starts_with("Arrived"))
        .map(|&(at, _, _)| at)
        .collect();
    assert_eq!(arrivals, [0, 2913, 5634].map(Time::from_micros));
    assert_eq!(told.outcome.ended_at, Time::from_micros(7855));
}

/// A refused client thinks as long and asks again: refusals at 0, 500 and 1000.
#[test]
fn a_closed_loop_client_hears_of_refusals() {
    let told =
        Scenario { admission: "reject-all", ..small_world() }.run_with(&mut Client { rounds: 3 });
    assert_eq!(told.count("Rejected"), 3);
    assert_eq!(told.outcome.ended_at, Time::from_micros(1000));
}
