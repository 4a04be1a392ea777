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

#[test]
fn belady_keeps_what_is_needed_again_first() {
    // In turn, with room for two of three: the oldest is always the one that is needed next.
    let requests: Vec<Request> = (0..9).map(|turn| prompt(turn, turn % 3)).collect();
    let found = |evict| {
        let mut scenario = tight(evict, requests.clone());
        scenario.engine.total_kv_blocks = 13;
        scenario.run().found()
    };
    assert_eq!(found("lru"), [0; 9]);
    assert_eq!(found("belady"), [0, 0, 0, 96, 0, 96, 0, 96, 0]);
}

#[test]
fn belady_keeps_the_beginning_of_a_prompt_whose_end_is_not_needed() {
    // Of the first prompt's 10 blocks 3 are needed again; the two in between need 22.
    let long = |tenth: u64, stream| prompted(tenth * 100_000, &[(stream, 161)], 1);
    let requests = [long(0, 7), long(1, 8), long(2, 9), prompted(300_000, &[(7, 49)], 1)];
    assert_eq!(last_finds("lru", &requests), 0);
    assert_eq!(last_finds("belady", &requests), 48);
}

#[test]
fn belady_stops_waiting_for_whoever_is_turned_away() {
    // The third begins as the second, but never fits. Then 14 of 20 blocks are needed, of which 8
    // are free.
    let never = prompted(200_000, &[(7, PROMPT), (u64::MAX, 400)], 1);
    let large = request(300_000, 220, 1);
    let requests = vec![prompt(0, 8), prompt(1, 7), never, large, prompt(4, 8)];
    let found = |evict| tight(evict, requests.clone()).run().closed[4].cached;
    assert_eq!((found("lru"), found("belady")), (Some(0), Some(96)));
}

/// The first two need 8 blocks together until the first wants its fifth: the second is preempted
/// with 4 full blocks, and the first takes one of them. When it is done, its 5 blocks are of no use
/// any more. The third, which is critical, comes next and needs 4.
#[test]
fn belady_keeps_what_a_preempted_request_comes_back_for() {
    let critical = Request { class: SloClass::Critical, ..request(30_000, 60, 2) };
    let requests = vec![request(0, 40, 41), request(0, 40, 60), critical];
    let cached_on_return = |evict| {
        let mut scenario = tight(evict, requests.clone());
        scenario.engine.total_kv_blocks = 8;
        (scenario.order, scenario.priority) = ("priority-fcfs", "slo-class");
        let told = scenario.run();
        assert_eq!(told.victims.iter().map(|victim| victim.request).collect::<Vec<_>>(), [1]);
        let scheduled =
            |(_, _, fact): &&(_, _, String)| fact.starts_with("Scheduled { request: RequestId(1),");
        let (_, _, fact) = told.facts.iter().rfind(scheduled).expect("it comes back");
        fact.split("cached_tokens: ").nth(1).expect("a field").split(',').next().map(str::to_owned)
    };
    assert_eq!(cached_on_return("lru").as_deref(), Some("0"));
    assert_eq!(cached_on_return("belady").as_deref(), Some("48"));
}
