//! Whom each preemption policy chooses, seen from outside. `tail` is the control: it chooses
//! somebody else.

use crate::harness::{Scenario, Told, Victim, request, small_world};
use crate::worlds::in_random_worlds;
use blis_core::{Request, SloClass, Time};
use proptest::prelude::*;
use std::cell::Cell;

/// Runs with 10 blocks and chunks of a block, which the requests outgrow.
fn world(preempt: &'static str, requests: &[Request]) -> Scenario {
    let mut scenario = small_world().with(requests.to_vec());
    scenario.engine.total_kv_blocks = 10;
    scenario.engine.long_prefill_token_threshold = 16;
    scenario.engine.reserve_full_prompt = false;
    Scenario { preempt, priority: "slo-class", ..scenario }
}

fn run(preempt: &'static str, requests: &[Request]) -> Told {
    world(preempt, requests).run()
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

/// The first arrives with 40 tokens and is queued at 140, the second arrives at 10 with 20 and is
/// queued at 130, so that it runs first; together they have 5 blocks. Step 1 takes 1040, to 1170,
/// step 2 1083, to 2253, and the others 1006. After step 10, at 10,301, the first has filled its 3
/// blocks. The other has arrived last and goes, with the 20 + 9 tokens that it has computed.
#[test]
fn of_equals_the_last_to_arrive_goes_though_it_was_scheduled_first() {
    let mut scenario = small_world().with(vec![request(0, 40, 20), request(10, 20, 20)]);
    scenario.engine.total_kv_blocks = 5;
    scenario.order = "priority-fcfs";
    let first = |preempt| {
        let told = Scenario { preempt, ..scenario.clone() }.run();
        let preempted = told.facts.iter().find(|(_, _, fact)| fact.starts_with("Preempted"));
        preempted.cloned().expect("somebody is preempted")
    };
    let (at, _, fact) = first("lowest-priority");
    assert_eq!(at, Time::from_micros(10_301));
    assert!(fact.contains("RequestId(1)") && fact.contains("lost_tokens: 29"), "{fact}");
    assert!(first("tail").2.contains("RequestId(0)"));
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
    let chosen = blis_policy::preempt::ALL.iter().map(|policy| policy.name);
    for (preempt, priority) in chosen.flat_map(|name| [(name, "slo-class"), (name, "age")]) {
        let told = Scenario { priority, order: "priority-fcfs", ..world(preempt, &requests) }.run();
        assert!(told.victims.len() < 20, "{preempt}: {} victims", told.victims.len());
        assert!(told.closed.iter().all(|ended| ended.e2e.is_some()), "{preempt}");
    }
}
