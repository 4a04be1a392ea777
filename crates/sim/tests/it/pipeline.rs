//! Tiny scenarios of pipelines, whose every timestamp can be checked by hand.
//!
//! The world of `small_world`, see `golden_async.rs`: a prompt of 100 tokens joins the queue 200 us
//! after routing; a step takes 1000 + 2 per prefill token + 3 per decoding request us, of which
//! each of the stages takes an equal part; a token leaves 10 us later.

use crate::harness::{Scenario, Told, request, small_world};
use blis_core::Span;
use blis_sim::End;

fn piped(stages: u32, ahead: bool) -> Scenario {
    let mut scenario = small_world();
    (scenario.engine.stages, scenario.engine.async_scheduling) = (stages, ahead);
    scenario
}

fn check(scenario: &Scenario, ttft_us: &[u64], e2e_us: &[u64]) -> Told {
    let told = scenario.run();
    assert_eq!(told.ttfts_us(), ttft_us, "TTFT");
    assert_eq!(told.e2es_us(), e2e_us, "E2E");
    assert_eq!(told.outcome.end, End::Drained);
    told
}

/// A step is computed by one stage after the other, so alone it takes as long as without stages,
/// and the next token of a request is computed when this one is known.
#[test]
fn one_request_alone_gains_nothing() {
    for ahead in [false, true] {
        for stages in [1, 2, 4] {
            let scenario = piped(stages, ahead).with(vec![request(0, 100, 3)]);
            check(&scenario, &[1410], &[1410 + 2 * 1003]);
        }
    }
}

/// The first is queued at 200 and computed by the two stages 200..800 and 800..1400. The engine
/// sees the second, queued at 700, when it has processed that step, at 1400, and takes it and the
/// first together: 1000 + 200 + 3 until 2603. From there they decode together and nothing overlaps.
#[test]
fn requests_that_meet_in_a_step_stay_together() {
    let requests = vec![request(0, 100, 4), request(500, 100, 2)];
    let told = check(&piped(2, false).with(requests), &[1410, 2113], &[4622, 3119]);
    assert_eq!(told.count("Steps"), 4);
}

/// A budget of 200 tokens puts four prompts into two steps, formed at once, of 1400 each. The first
/// is computed 200..900 and 900..1600, the second 900..1600 and 1600..2300. From then on two
/// requests decode in every other step of 503 a stage: the first 1600..2103 and, when the stage
/// has left the second prompt, 2300..2803; the second 2300..2803 and 2803..3306; the first again
/// 2803..3306 and 3306..3809, the second 3306..3809 and 3809..4312.
#[test]
fn two_batches_are_computed_at_a_time() {
    let mut scenario = piped(2, false).with(vec![request(0, 100, 3); 4]);
    scenario.engine.max_num_scheduled_tokens = 200;
    for ahead in [false, true] {
        scenario.engine.async_scheduling = ahead;
        check(&scenario, &[1610, 1610, 2310, 2310], &[3819, 3819, 4322, 4322]);
    }
}

/// Chunks of 100 tokens follow each other: the first stage has them 200..800..1400..2000, the
/// second is done with the last of them at 2600, and without stages it would be at 3800.
#[test]
fn the_chunks_of_a_prompt_follow_each_other_through_the_stages() {
    let mut scenario = piped(2, true).with(vec![request(0, 300, 2)]);
    scenario.engine.max_num_scheduled_tokens = 100;
    // It joins the queue 200 later than a prompt of 100.
    let told = check(&scenario, &[2810], &[2810 + 1003]);
    assert_eq!(told.closed[0].split.prefill, Span::from_micros(2400));
}
