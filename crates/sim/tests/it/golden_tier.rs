//! The CPU tier in tiny scenarios whose every nanosecond can be checked by hand.
//!
//! The world of `small_world`: a prompt of I tokens joins the queue 100 + I us after routing; a
//! step takes 1000 + 2 per prefill token + 3 per decoding request us; a token leaves the server 10
//! us after its step. Blocks hold 16 tokens. The links have a base of 40 us and move 0.026 blocks a
//! us, as measured on an H200; a transfer of n blocks alone takes, rounded up to nanoseconds:
//!
//! | blocks | us |
//! |---|---|
//! | 1 | 40 + 38.462 = 78.462 |
//! | 2 | 40 + 76.924 = 116.924 |
//! | 4 | 40 + 153.847 = 193.847 |
//! | 8 | 40 + 307.693 = 347.693 |
//!
//! Most cases begin alike. Stream 7 asks with 65 tokens at 0: 5 blocks, 4 of them full, which stay
//! cached. A *wall* of 180 private tokens at 5000 takes all 12 blocks, so that the 4 go: queued at
//! 5280, prefill 1360, done at 6640. It leaves 11 cached blocks and a free one.

use crate::harness::{Ended, Scenario, Told, prompted, request, small_world};
use blis_core::{Request, Span, Time};
use blis_kv::LinkSpeed;
use blis_sim::{End, KvTier, Pace, Preemption, Reload};

const MEASURED: LinkSpeed = LinkSpeed { base: Span::from_micros(40), blocks_per_us: 0.026 };
const FREE: LinkSpeed = LinkSpeed { base: Span::ZERO, blocks_per_us: f64::INFINITY };

const ONE: u64 = 78_462;
const TWO: u64 = 116_924;
const FOUR: u64 = 193_847;
const EIGHT: u64 = 347_693;

/// 12 blocks with a tier of 100 behind them.
fn world(offload: &'static str, reload: Reload, out: LinkSpeed) -> Scenario {
    let mut scenario = small_world();
    scenario.offload = offload;
    scenario.engine.total_kv_blocks = 12;
    scenario.engine.tier = Some(KvTier {
        blocks: 100,
        out,
        back: MEASURED,
        reload,
        thrashing_window: Span::from_micros(1_000_000),
    });
    scenario
}

/// Asks with 65 tokens of a stream.
fn asks(stream: u64, at: u64) -> Request {
    prompted(at, &[(stream, 65)], 1)
}

/// 180 tokens of nobody else's: all 12 blocks.
fn wall(at: u64) -> Request {
    request(at, 180, 1)
}

/// Runs both ways, which must agree to the last fact.
fn run(scenario: &Scenario) -> Told {
    let told = scenario.run();
    let stepwise = scenario.paced(Pace::Stepwise).run();
    assert_eq!(told.facts, stepwise.facts, "fast-forward and stepwise agree");
    assert_eq!(told.outcome.end, End::Drained);
    told
}

/// Microseconds and nanoseconds.
fn span(micros: u64, nanos: u64) -> Span {
    Span::from_nanos(micros * 1000 + nanos)
}

fn ttft(told: &Told, request: usize) -> Span {
    told.closed[request].ttft.expect("it has a first token")
}

fn e2e(told: &Told, request: usize) -> Span {
    told.closed[request].e2e.expect("it finished")
}

/// What was said at an instant, of facts that begin with `word`.
fn said(told: &Told, word: &str) -> Vec<(Time, String)> {
    let facts = told.facts.iter().filter(|(_, _, fact)| fact.starts_with(word));
    facts.map(|(at, _, fact)| (*at, fact.clone())).collect()
}

fn at(micros: u64, nanos: u64) -> Time {
    Time::ZERO + span(micros, nanos)
}

/// A fact that begins with `word` was stated once, at `when`, and says `what`.
#[track_caller]
fn once(told: &Told, word: &str, when: Time, what: &str) {
    let found = said(told, word);
    assert!(found.len() == 1 && found[0].0 == when && found[0].1.contains(what), "{found:?}");
}

/// A request of 20 tokens decodes while stream 7 asks again. It arrives at 10,000, is queued at
/// 10,120, prefill 1040 to 11,160, then a token every 1003: 12,163 is the next boundary after
/// stream 7 has joined the queue, at 11,500 + 165.
fn beside_a_decoding_request(reload: Reload) -> Told {
    let requests = vec![asks(7, 0), wall(5000), request(10_000, 20, 10), asks(7, 11_500)];
    run(&world("on-evict", reload, FREE).with(requests))
}

/// The 4 blocks are copied back in the step that begins at 12,163: it lasts 193.847 + 1000 + 2 for
/// the one token that is computed + 3 for the one that decodes, to 13,361.847. The decoding request
/// has its third token then, and seven more, each 1003 later: 20,382.847.
#[test]
fn a_blocking_reload_stalls_the_whole_batch() {
    let told = beside_a_decoding_request(Reload::Blocking);
    assert_eq!(ttft(&told, 3), span(165 + 498 + 1005 + 10, FOUR));
    assert_eq!(e2e(&told, 2), span(20_189 + 10 - 10_000, FOUR));
    let Ended { split, cached, .. } = told.closed[3];
    assert_eq!((split.gateway, split.queue), (span(165, 0), span(498, 0)));
    assert_eq!((split.reload, split.prefill), (span(0, FOUR), span(1005, 0)));
    assert_eq!(cached, Some(64));
    once(&told, "Stalled", at(12_163, 0), "Span(193847)");
    once(&told, "Reloading", at(12_163, 0), "blocks: 4, recent: 4, beside: false");
}

/// The same without blocking: the copy begins at 12,163 as the step does, which takes its 1003 to
/// 13,166. The copy is done at 12,356.847; at 13,166 its request joins the batch: 1000 + 2 + 3, to
/// 14,171. The other has had no stall: ten tokens by 11,160 + 9 * 1003 + 2 = 20,189.
#[test]
fn an_async_reload_delays_its_request_only() {
    let told = beside_a_decoding_request(Reload::Async);
    assert_eq!(ttft(&told, 3), span(14_171 + 10 - 11_500, 0));
    assert_eq!(e2e(&told, 2), span(20_189 + 10 - 10_000, 0));
    let Ended { split, cached, .. } = told.closed[3];
    assert_eq!((split.gateway, split.queue), (span(165, 0), span(498, 0)));
    assert_eq!((split.reload, split.prefill), (span(1003, 0), span(1005, 0)));
    assert_eq!(cached, Some(64));
    assert_eq!(told.count("Stalled"), 0);
    once(&told, "Reloading", at(12_163, 0), "blocks: 4, recent: 4, beside: true");
    once(&told, "Reloaded", at(13_166, 0), "blocks: 4");
}

/// On an idle engine nothing is in the way of either: the request waits for base + blocks /
/// bandwidth, and computes its last token in 1002.
#[test]
fn a_reload_on_an_idle_engine_takes_what_the_link_takes() {
    for reload in [Reload::Blocking, Reload::Async] {
        let requests = vec![asks(7, 0), wall(5000), asks(7, 10_000)];
        let told = run(&world("on-evict", reload, FREE).with(requests));
        assert_eq!(ttft(&told, 2), span(165 + 1002 + 10, FOUR), "{reload:?}");
        assert_eq!(told.closed[2].split.reload, span(0, FOUR), "{reload:?}");
    }
}

/// Streams 7 and 8 leave 4 blocks each, the wall at 6000 drops them, and both ask again at one
/// instant. Each copy has half of the link: both are done after 40 + 8 / 0.026, at 10,512.693, and
/// the two last tokens are computed in one step of 1004.
#[test]
fn a_burst_of_async_reloads_shares_the_link() {
    let requests = vec![asks(7, 0), asks(8, 3000), wall(6000), asks(7, 10_000), asks(8, 10_000)];
    let told = run(&world("on-evict", Reload::Async, FREE).with(requests));
    for request in [3, 4] {
        assert_eq!(ttft(&told, request), span(165 + 1004 + 10, EIGHT));
        assert_eq!(told.closed[request].split.reload, span(0, EIGHT));
    }
    let back: Vec<Time> = said(&told, "Reloaded").iter().map(|(at, _)| *at).collect();
    assert_eq!(back, [at(10_165, EIGHT); 2]);
}

/// The same burst in one step is one transfer of 8 blocks, which takes as long.
#[test]
fn a_step_copies_the_blocks_of_all_its_requests_back_at_once() {
    let requests = vec![asks(7, 0), asks(8, 3000), wall(6000), asks(7, 10_000), asks(8, 10_000)];
    let told = run(&world("on-evict", Reload::Blocking, FREE).with(requests));
    for request in [3, 4] {
        assert_eq!(ttft(&told, request), span(165 + 1004 + 10, EIGHT));
        assert_eq!(told.closed[request].split.reload, span(0, EIGHT));
    }
    once(&told, "Stalled", at(10_165, 0), &format!("Span({EIGHT})"));
}

/// Under `on-evict` the wall's step waits until the 4 blocks that it drops are copied out.
#[test]
fn a_step_waits_for_the_copies_of_what_it_drops() {
    let told =
        run(&world("on-evict", Reload::Blocking, MEASURED).with(vec![asks(7, 0), wall(5000)]));
    assert_eq!(ttft(&told, 1), span(280 + 1360 + 10, FOUR));
    assert_eq!(told.closed[1].split.reload, span(0, FOUR));
    once(&told, "Offloaded", at(5280, 0), "blocks: 4, abandoned: 0, cpu_blocks: 4, beside: false");
    once(&told, "Stalled", at(5280, 0), &format!("Span({FOUR})"));
}

/// Stream 7 asks again and needs 5 blocks: the free one and 4 of the wall's, which are copied out
/// first, 193.847; then its own 4 come back, as long again.
#[test]
fn copies_that_make_room_come_before_copies_that_fill_it() {
    let requests = vec![asks(7, 0), wall(5000), asks(7, 10_000)];
    let told = run(&world("on-evict", Reload::Blocking, MEASURED).with(requests));
    assert_eq!(ttft(&told, 2), span(165 + 1002 + 10, 2 * FOUR));
    assert_eq!(told.closed[2].split.reload, span(0, 2 * FOUR));
}

/// Under `write-through` the 4 blocks are copied out from 1295 on, when stream 7 is done, and are
/// there when the wall drops them: its step does not wait. The copies come back as under
/// `on-evict`.
#[test]
fn blocks_written_through_are_dropped_for_free_and_found_in_the_tier() {
    let requests = vec![asks(7, 0), wall(5000), asks(7, 10_000)];
    let told = run(&world("write-through", Reload::Blocking, MEASURED).with(requests));
    let began: Vec<Time> = said(&told, "Offloading").iter().map(|(at, _)| *at).collect();
    // When each is done; of stream 7 nothing is new the second time.
    assert_eq!(began, [1295, 6640].map(Time::from_micros));
    assert_eq!(ttft(&told, 1), span(280 + 1360 + 10, 0));
    assert_eq!(ttft(&told, 2), span(165 + 1002 + 10, FOUR));
    assert_eq!(told.closed[2].cached, Some(64));
}

/// The wall comes while the copy is on its way: queued at 1100 + 280 = 1380, it waits until that is
/// done at 1295 + 193.847 and begins then. Stream 7 finds its blocks in the tier.
#[test]
fn a_request_that_joins_waits_for_copies_out_of_the_blocks_it_needs() {
    let requests = vec![asks(7, 0), wall(1100), asks(7, 10_000)];
    let told = run(&world("write-through", Reload::Blocking, MEASURED).with(requests));
    assert_eq!(ttft(&told, 1), span(1295 - 1100 + 1360 + 10, FOUR));
    let Ended { split, .. } = told.closed[1];
    assert_eq!((split.queue, split.reload), (span(193 - 85, 847), Span::ZERO));
    assert_eq!(ttft(&told, 2), span(165 + 1002 + 10, FOUR));
    assert_eq!(told.closed[2].cached, Some(64));
}

/// 3 blocks. Two requests are queued at 132: 32 prompt tokens, 2 blocks, and 16, one block. Prefill
/// of 48: 1096, to 1228. The second is done, and its block is copied out. The first has filled its
/// blocks and needs another to go on: the only one there is, whose copy is abandoned. That is
/// noticed when the step ends, at 2231.
#[test]
fn a_running_request_takes_blocks_whose_copies_are_on_their_way() {
    let requests = vec![request(0, 32, 3), request(16, 16, 1)];
    let mut scenario = world("write-through", Reload::Blocking, MEASURED).with(requests);
    scenario.engine.total_kv_blocks = 3;
    let told = run(&scenario);
    let ended = said(&told, "Offloaded");
    assert_eq!(ended[0].0, at(2231, 0));
    assert!(ended[0].1.contains("blocks: 0, abandoned: 1, cpu_blocks: 0"), "{ended:?}");
    assert_eq!(e2e(&told, 0), span(1228 + 2 * 1003 + 10, 0));
    assert_eq!((told.count("Stalled"), told.count("Preempted")), (0, 0));
}

/// 4 blocks. Two requests are queued at 124: 24 prompt and 30 output tokens, 20 and 16. Prefill of
/// 44: 1088, to 1212; 8 steps of 1006, to 9260. The first has filled its 2 blocks and needs a
/// third; the second has computed 28 tokens, one block and 12 tokens of the next, and goes. Its
/// full block is copied out, the step waits 78.462. The first takes the block that was not full,
/// later the full one, and has its other 21 tokens after 21 * 1003, at 30,401.462. Then the second
/// comes back: one block from the tier, 78.462, and 29 - 16 = 13 tokens to compute, which the
/// partial block held: 1026, to 31,505.924; that is its tenth token. Six more take 6018.
#[test]
fn a_swapped_request_resumes_from_its_copies_and_computes_the_partial_block_again() {
    let requests = vec![request(0, 24, 30), request(4, 20, 16)];
    let mut scenario = world("threshold[threshold=1]", Reload::Blocking, MEASURED).with(requests);
    (scenario.engine.total_kv_blocks, scenario.engine.preemption) = (4, Preemption::Swap);
    let told = run(&scenario);
    once(&told, "Preempted", at(9260, 0), "lost_tokens: 28");
    once(&told, "Offloaded", at(9260, 0), "blocks: 1, abandoned: 0, cpu_blocks: 1, beside: false");
    once(&told, "Reloading", at(30_323, ONE), "blocks: 1, recent: 1, beside: false");
    assert_eq!(e2e(&told, 0), span(30_323 + 10, ONE));
    assert_eq!(e2e(&told, 1), span(30_323 + 1026 + 6018 + 10 - 4, 2 * ONE));
    assert_eq!(told.closed.iter().map(|ended| ended.preemptions).collect::<Vec<_>>(), [0, 1]);
    // Its first token came before, so none of this is a part of its TTFT.
    assert_eq!(told.closed[1].split.reload, Span::ZERO);
}

/// As `a_preempted_request_keeps_its_tokens_and_computes_the_rest_again`, with swapping: the second
/// is preempted at 9268 with 2 full blocks, and the step waits 116.924 for both. The first drops
/// one of them and is done at 16,289 + 0.116924. The other is found where it is, the dropped one
/// comes back, 78.462, and the 33rd token is computed as any other: 1003, and six times more.
#[test]
fn a_swapped_request_takes_from_the_tier_only_what_the_gpu_has_lost() {
    let requests = vec![request(0, 24, 16), request(0, 24, 16)];
    let mut scenario = world("threshold[threshold=1]", Reload::Blocking, MEASURED).with(requests);
    (scenario.engine.total_kv_blocks, scenario.engine.preemption) = (4, Preemption::Swap);
    let told = run(&scenario);
    assert_eq!(e2e(&told, 0), span(16_299, TWO));
    assert_eq!(e2e(&told, 1), span(16_289 + 7 * 1003 + 10, TWO + ONE));
    once(&told, "Reloading", at(16_289, TWO), "blocks: 1,");
}

/// 10 blocks and a threshold of a half: 5 may be without a copy. Stream 7 leaves 4. A prompt of 17
/// tokens takes 2 at 5117: one too many, and the oldest idle block, the end of stream 7, is copied.
/// When that prompt is done its full block makes 4 again.
#[test]
fn a_threshold_copies_the_excess_only() {
    let requests = vec![asks(7, 0), request(5000, 17, 1)];
    let mut scenario = world("threshold[threshold=0.5]", Reload::Blocking, MEASURED).with(requests);
    scenario.engine.total_kv_blocks = 10;
    let told = run(&scenario);
    once(&told, "Offloading", at(5117, 0), "blocks: 1 ");
    once(&told, "Offloaded", at(6151, 0), "blocks: 1, abandoned: 0, cpu_blocks: 1, beside: true");
    assert_eq!(told.count("Stalled"), 0);
}

/// A threshold of 0.3 of 10 blocks allows 3 without a copy: one of the 4 that stream 7 leaves is
/// copied as soon as they are idle, at 1295, although nothing else is there to be done.
#[test]
fn a_threshold_is_looked_at_when_the_last_request_leaves() {
    let requests = vec![asks(7, 0), request(5000, 16, 1)];
    let mut scenario = world("threshold[threshold=0.3]", Reload::Blocking, MEASURED).with(requests);
    scenario.engine.total_kv_blocks = 10;
    let told = run(&scenario);
    let began = said(&told, "Offloading");
    assert_eq!(began[0].0, at(1295, 0), "{began:?}");
    assert!(began[0].1.contains("blocks: 1 "), "{began:?}");
}

/// Stream 7's copies are there at 1295 + 193.847 = 1488.847, although the engine, which is idle,
/// notices only at 5280. They come back at 10,165: 8676.153 later.
#[test]
fn a_block_that_comes_back_within_the_window_is_thrashing_and_not_a_nanosecond_later() {
    for (nanos, recent) in [(8_676_153, 4), (8_676_152, 0), (1_000, 0), (1_000_000_000, 4)] {
        let requests = vec![asks(7, 0), wall(5000), asks(7, 10_000)];
        let mut scenario = world("write-through", Reload::Blocking, MEASURED).with(requests);
        let tier = scenario.engine.tier.as_mut().expect("it has one");
        tier.thrashing_window = Span::from_nanos(nanos);
        let what = format!("blocks: 4, recent: {recent}, beside: false");
        once(&run(&scenario), "Reloading", at(10_165, 0), &what);
    }
}
