//! What each evictor keeps, seen from outside: who finds what in the cache. Every case has `lru` as
//! the control, which keeps something else.

use crate::harness::{Scenario, prompted, request, small_world};
use blis_core::{Request, SessionId, SloClass};

/// 6 full blocks and a token more, so that all of them can be found.
const PROMPT: u32 = 97;

/// One instance of 20 blocks: room for two prompts beside the one that runs.
fn tight(evict: &'static str, requests: Vec<Request>) -> Scenario {
    let mut scenario = small_world().with(requests);
    scenario.engine.total_kv_blocks = 20;
    Scenario { evict, ..scenario }
}

/// What the last request finds.
fn last_finds(evict: &'static str, requests: &[Request]) -> u32 {
    let told = tight(evict, requests.to_vec()).run();
    assert!(told.count("Evicted") > 0, "nothing is at stake");
    assert!(told.victims.is_empty(), "one at a time");
    *told.found().last().expect("a request")
}

/// Prompt number `stream`, at that tenth of a second.
fn prompt(tenth: u64, stream: u64) -> Request {
    prompted(tenth * 100_000, &[(stream, PROMPT)], 1)
}

/// One-off prompts at these tenths of a second.
fn flood(tenths: std::ops::Range<u64>) -> impl Iterator<Item = Request> {
    tenths.map(|tenth| request(tenth * 100_000, PROMPT, 1))
}

#[test]
fn lfu_keeps_the_popular_prompt_when_a_flood_of_others_comes() {
    let popular = (0..3).map(|tenth| prompt(tenth, 7));
    let requests: Vec<Request> = popular.chain(flood(3..8)).chain([prompt(8, 7)]).collect();
    assert_eq!(last_finds("lru", &requests), 0);
    assert_eq!(last_finds("lfu", &requests), 96);
}

#[test]
fn lfu_does_not_count_new_blocks_as_often_as_the_popular_ones_they_continue() {
    // The popular prompt goes on once, for 6 blocks that nobody needs again. Together with what is
    // needed twice that is all the room there is.
    let mut requests: Vec<Request> = (0..4).map(|tenth| prompt(tenth, 7)).collect();
    requests.push(prompted(400_000, &[(7, 96), (8, PROMPT)], 1));
    requests.extend([prompt(5, 9), prompt(6, 9)]);
    requests.extend(flood(7..8));
    requests.push(prompt(8, 9));
    assert_eq!(last_finds("lfu", &requests), 96);
}

#[test]
fn slo_aware_keeps_the_critical_tenants_blocks_when_a_sheddable_flood_comes() {
    let of = |class| move |request| Request { class, ..request };
    let critical = of(SloClass::Critical);
    let mut requests = vec![critical(prompt(0, 7))];
    requests.extend(flood(1..9).map(of(SloClass::Sheddable)));
    requests.push(critical(prompt(9, 7)));
    assert_eq!(last_finds("lru", &requests), 0);
    assert_eq!(last_finds("slo-aware", &requests), 96);
    assert_eq!(last_finds("slo-aware[critical=1]", &requests), 0, "not protected");
    // Once used by a critical request, it stays, whoever uses it later.
    requests[5] = of(SloClass::Background)(prompt(5, 7));
    requests.extend(flood(10..18).map(of(SloClass::Sheddable)));
    requests.push(critical(prompt(18, 7)));
    assert_eq!(last_finds("slo-aware", &requests), 96);
}

#[test]
fn slo_aware_does_not_protect_what_an_unimportant_request_appends() {
    let class = SloClass::Critical;
    let mut requests = vec![Request { class, ..prompt(0, 7) }];
    // It continues the critical prompt by 6 blocks, and is followed by another of its class.
    let appended = [(7, 96), (8, PROMPT)];
    let sheddable = |request| Request { class: SloClass::Sheddable, ..request };
    requests.push(sheddable(prompted(100_000, &appended, 1)));
    requests.push(sheddable(prompt(2, 9)));
    requests.extend(flood(3..4).map(sheddable));
    requests.push(sheddable(prompt(4, 9)));
    assert_eq!(last_finds("slo-aware", &requests), 96, "the appended blocks went first");
}

/// A session's first round in second 0 and its second one in second 2, with one-off prompts in
/// second 1.
fn rounds(session: Option<SessionId>) -> Vec<Request> {
    let first = Request { session, ..prompt(0, 7) };
    let second = Request { session, round: 1, ..prompted(2_000_000, &[(7, PROMPT + 32)], 1) };
    [first].into_iter().chain(flood(10..18)).chain([second]).collect()
}

#[test]
fn session_aware_keeps_the_context_of_a_live_session_and_lets_it_go_when_it_expires() {
    let session = rounds(Some(SessionId(3)));
    assert_eq!(last_finds("lru", &session), 0);
    assert_eq!(last_finds("session-aware[grace=5]", &session), 96);
    assert_eq!(last_finds("session-aware[grace=0.5]", &session), 0, "expired in the flood");
    assert_eq!(last_finds("session-aware[grace=5]", &rounds(None)), 0, "no session");
}
