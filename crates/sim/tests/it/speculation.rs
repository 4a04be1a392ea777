//! Speculative decoding: tiny scenarios whose every timestamp can be checked by hand, and what
//! drafts bring on average.
//!
//! The world of `small_world`: a prompt of I tokens joins the queue 100 + I us after routing; a
//! step takes 1000 + 2 per prefill token + 3 per token that is decoded or drafted us; tokens leave
//! the server 10 us after their step.

use crate::harness::{Scenario, Told, request, small_world};
use blis_core::{Span, Time};
use blis_sim::{End, LONGEST_DRAFT, Pace, Prefill, Speculation};
use proptest::prelude::*;

/// Drafts of as many tokens as there are chances, at no cost.
fn drafts(chances: &[f64]) -> Speculation {
    let mut accepted = [0.0; LONGEST_DRAFT];
    accepted[..chances.len()].copy_from_slice(chances);
    let tokens = u32::try_from(chances.len()).expect("few");
    Speculation { tokens, accepted, step: Span::ZERO, token: Span::ZERO }
}

/// Most engines compute prompts beside decodes.
pub(crate) fn any_prefill() -> impl Strategy<Value = Prefill> {
    use Prefill::{Mixed, Separate, Whole};
    prop::sample::select(vec![Mixed, Mixed, Mixed, Separate, Whole])
}

/// Engines without drafts and with some.
pub(crate) fn any_drafts() -> impl Strategy<Value = Option<Speculation>> {
    let chances = prop::sample::select(vec![
        vec![1.0],
        vec![0.7, 0.4],
        vec![0.9, 0.8, 0.5],
        vec![1.0, 0.0, 0.0],
        vec![0.8; 7],
    ]);
    let costs = prop::sample::select(vec![(0_u64, 0_u64), (90, 3)]);
    let some = (chances, costs).prop_map(|(chances, (step, token))| Speculation {
        step: Span::from_micros(step),
        token: Span::from_micros(token),
        ..drafts(&chances)
    });
    prop::option::weighted(0.3, some)
}

/// A world with drafts.
fn drafting(chances: &[f64]) -> Scenario {
    let mut scenario = small_world();
    scenario.engine.speculation = Some(drafts(chances));
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

/// Queued at 200, prefill 1200: the first token at 1400. A step computes one token and two of the
/// draft, 1000 + 3*3 = 1009, and the draft takes 50 + 2*4 more: 1067.
///
/// - All are right: 3 tokens a step, 1 + 3 + 3 = 7 at 1400 + 2*1067 = 3534.
/// - The first is always right: 2 tokens a step, 1 + 2 + 2 + 2 at 1400 + 3*1067 = 4601.
/// - None is right: 6 steps, 1400 + 6*1067 = 7802.
#[test]
fn a_step_brings_one_token_and_the_first_of_its_draft_that_are_right() {
    for (chances, end) in [([1.0, 1.0], 3544), ([1.0, 0.0], 4611), ([0.0, 0.0], 7812)] {
        let mut scenario = drafting(&chances).with(vec![request(0, 100, 7)]);
        let speculation = scenario.engine.speculation.as_mut().expect("it drafts");
        (speculation.step, speculation.token) = (Span::from_micros(50), Span::from_micros(4));
        check(&scenario, &[1410], &[end]);
    }
}

/// Two of three tokens of a step are left when the fifth is to come: 1 + 3 at 2409, and the step to
/// 3418 brings three, of which one is beyond the end. ITL is 1009 between hand-outs.
#[test]
fn tokens_beyond_the_end_are_dropped_and_those_of_a_step_leave_together() {
    let told = check(&drafting(&[1.0, 1.0]).with(vec![request(0, 100, 6)]), &[1410], &[3428]);
    let handed = |tokens: &'static str| ["gap: Span(1009000), count: 1", tokens];
    assert_eq!(at(&told, 2409, &handed("tokens: 3")), 1);
    assert_eq!(at(&told, 3418, &handed("tokens: 2")), 1);
    let draft = "draft_tokens: 2, wasted_tokens:";
    assert_eq!(at(&told, 2409, &[draft, "wasted_tokens: 0"]), 1);
    assert_eq!(at(&told, 3418, &[draft, "wasted_tokens: 1"]), 1);
}

/// Queued at 101, prefill of two tokens 1004: both have their first token at 1105. A budget of 5 is
/// enough for a token and the draft of the first, 4 tokens, and one token of the second: 1000 + 3*5
/// = 1015. With 1 + 4 = 5 tokens the first is done at 2120. The second has a step of 4 tokens,
/// 1012, and is done with 2 + 3 (one is beyond the end).
#[test]
fn the_token_budget_cuts_drafts() {
    let mut scenario = drafting(&[1.0; 3]).with(vec![request(0, 1, 5), request(0, 1, 5)]);
    scenario.engine.max_num_scheduled_tokens = 5;
    check(&scenario, &[1115; 2], &[1105 + 1015 + 10, 1105 + 1015 + 1012 + 10]);
}

/// A prompt of 15 tokens and a draft of 3: blocks for 18 tokens from the start, where 16 are one
/// block. Queued at 115, prefill 1030. Each step computes 4 tokens, 1012, and looks 3 ahead; none
/// of a draft is right. At 2157 it has computed 15 + 1 tokens, so the step to 3169 needs blocks for
/// 16 + 4 + 3 = 23 tokens of 32.
#[test]
fn blocks_are_allocated_for_drafts_and_used_again_if_they_are_wrong() {
    let told = check(&drafting(&[0.0; 3]).with(vec![request(0, 15, 4)]), &[1155], &[4191]);
    let blocks: Vec<u32> = told.blocks_in_use.values().copied().collect();
    assert_eq!(blocks, [2; 4]);
    let plain = small_world().with(vec![request(0, 15, 2)]).run();
    assert_eq!(plain.blocks_in_use.values().copied().collect::<Vec<u32>>(), [1; 2]);
}

/// Asynchronous scheduling with a host that takes no time; all of a draft of 2 is right.
///
/// - Turns 1 and 2 from 200: step 1 (prefill) 200..1400, step 2 (3 tokens) 1400..2409.
/// - Turn 3 from 1400, when the first token is handed out: step 2 will bring tokens 2 to 4, but the
///   engine only knows that it brings one. So it forms step 3, 2409..3418.
/// - At 2409 the request has its 4 tokens. Step 3 computes for nobody.
///
/// The second queues at 2500 and is seen at 3418: prefill 3418..4618. It has 2 tokens to generate:
/// once its first token is in flight one is left, which step 2 of it brings for sure, 4618..5627.
#[test]
fn a_step_in_flight_may_compute_for_a_request_that_turns_out_to_be_done() {
    let requests = vec![request(0, 100, 4), request(2300, 100, 2)];
    let mut scenario = drafting(&[1.0, 1.0]).with(requests);
    scenario.engine.async_scheduling = true;
    let told = check(&scenario, &[1410, 2328], &[2419, 3337]);
    assert_eq!(at(&told, 2409, &["Overran", "RequestId(0)"]), 1);
    assert_eq!(at(&told, 3418, &["Steps", "draft_tokens: 2, wasted_tokens: 3"]), 1);
    assert_eq!(told.facts.iter().filter(|(.., fact)| fact.contains("Overran")).count(), 1);
}

/// As many steps as tokens over the mean number of tokens a step: 1 + 0.8 + 0.6 + 0.3 = 2.7.
#[test]
fn drafts_bring_as_many_tokens_as_their_chances_say() {
    let told = drafting(&[0.8, 0.6, 0.3]).with(vec![request(0, 16, 15_001)]).run();
    let steps = told.blocks_in_use.len() - 1;
    let found = 15_000.0 / f64::from(u32::try_from(steps).expect("few"));
    assert!((found / 2.7 - 1.0).abs() < 0.02, "{found} tokens a step");
}

/// Who else is there changes when a request gets its tokens, not how many each step brings.
#[test]
fn what_of_a_draft_is_right_depends_on_the_request_alone() {
    let steps_of = |requests, running| {
        let mut scenario = drafting(&[0.6, 0.4, 0.2]).with(requests);
        scenario.engine.max_num_running_reqs = running;
        let told = scenario.run();
        told.facts.iter().filter(|(.., fact)| fact.contains("Tokens")).count()
    };
    let several = || (0..6).map(|n| request(700 * n, 40, 200)).collect::<Vec<_>>();
    let together = steps_of(several(), 8);
    assert_eq!(together, steps_of(several(), 1));
    assert!(together < 6 * 199 * 2 / 3, "{together} hand-outs");
}
