//! Whom each preemption policy chooses, seen from outside. `tail` is the control: it chooses
//! somebody else.

use crate::harness::{Scenario, Told, Victim, request, small_world};
use crate::worlds::in_random_worlds;
use blis_core::{Request, SloClass};
use proptest::prelude::*;
use std::cell::Cell;

/// Runs with 10 blocks and chunks of a block, which the requests outgrow.
fn run(preempt: &'static str, requests: &[Request]) -> Told {
    let mut scenario = small_world().with(requests.to_vec());
    scenario.engine.total_kv_blocks = 10;
    scenario.engine.long_prefill_token_threshold = 16;
    scenario.engine.reserve_full_prompt = false;
    Scenario { preempt, priority: "slo-class", ..scenario }.run()
}

fn first_victim(preempt: &'static str, requests: &[Request]) -> u64 {
    run(preempt, requests).victims.first().expect("somebody is preempted").request
}

#[test]
fn lowest_priority_preempts_the_sheddable_request_though_it_came_first() {
    let of = |class, request| Request { class, ..request };
    let requests = [
        of(SloClass::Sheddable, request(0, 40, 60)),
        of(SloClass::Critical, request(1, 40, 60)),
        of(SloClass::Critical, request(2, 40, 60)),
    ];
    assert_eq!(first_victim("tail", &requests), 2);
    assert_eq!(first_victim("lowest-priority", &requests), 0);
    let alike = requests.map(|request| of(SloClass::Standard, request));
    assert_eq!(run("lowest-priority", &alike).victims, run("tail", &alike).victims);
}

#[test]
fn no_victim_loses_to_a_less_important_request_that_runs() {
    let passed_over = Cell::new(0);
    in_random_worlds(600, |world| {
        let world = Scenario { preempt: "lowest-priority", priority: "slo-class", ..world.clone() };
        let told = world.run();
        let mut requests = world.requests.clone();
        requests.sort_by_key(|request| request.arrival);
        // As `slo-class` has it: sheddable and batch are equals.
        let importance = |id: u64| match requests[usize::try_from(id).expect("few")].class {
            SloClass::Critical => 3,
            SloClass::Standard => 2,
            SloClass::Sheddable | SloClass::Batch => 1,
            SloClass::Background => 0,
        };
        for Victim { request, beside } in &told.victims {
            let lost = importance(*request);
            for other in beside.iter().map(|&other| importance(other)) {
                prop_assert!(other >= lost, "{} loses beside {:?}", request, beside);
                passed_over.set(passed_over.get() + u32::from(other > lost));
            }
        }
        Ok(told)
    });
    assert!(passed_over.get() > 200, "only {} more important ones ran", passed_over.get());
}

#[test]
fn least_progress_preempts_whoever_has_generated_the_fewest_tokens() {
    // The first has a long prompt and no token yet when the memory is full; the others generate.
    let requests = [request(0, 150, 3), request(200, 8, 60), request(201, 8, 60)];
    assert_eq!(first_victim("tail", &requests), 2);
    assert_eq!(first_victim("least-progress", &requests), 0);
}

#[test]
fn fewest_blocks_preempts_whoever_holds_the_fewest() {
    let requests = [request(0, 10, 60), request(1, 40, 60), request(2, 70, 60)];
    assert_eq!(first_victim("tail", &requests), 2);
    assert_eq!(first_victim("fewest-blocks", &requests), 0);
}

#[test]
fn two_prompts_that_do_not_fit_together_end_under_every_policy() {
    let requests = [request(0, 120, 30), request(1, 120, 30)];
    for policy in blis_policy::preempt::ALL {
        let told = run(policy.name, &requests);
        assert!(told.victims.len() < 20, "{}: {} victims", policy.name, told.victims.len());
        assert!(told.closed.iter().all(|ended| ended.e2e.is_some()), "{}", policy.name);
    }
}
