//! Tests of the audit: legal runs of the toy cluster pass, and each way to break one is found.

use crate::toy::{Cluster, Facts, mixed_jobs, run, single_server_jobs, tell};
use blis_core::{InstanceId, RequestId, SloClass, Span, Time};
use blis_metrics::{
    Audit, AuditConfig, AuditReport, Batch, End, Fact, Loads, Record, RunEnd, Status, TtftSplit,
};

const CLUSTER: Cluster =
    Cluster { instances: 2, max_running: 4, preempt_every: Some(5), horizon: None };
const CONFIG: AuditConfig = AuditConfig {
    cpu_blocks: 50,
    instances: 2,
    total_blocks: Some(100),
    max_running: 4,
    max_step_tokens: 2_500,
    fcfs: true,
    loads: Loads::Blocking,
    ahead: 0,
    draft_tokens: 0,
    max_preemptions: 100,
};

fn audit(facts: &Facts, end: &RunEnd, config: AuditConfig) -> AuditReport {
    let mut audit = Audit::new(&[config]);
    tell(&mut audit, facts);
    audit.finish(end)
}

/// A short legal run, with preemptions and refusals.
pub(crate) fn legal() -> (Facts, RunEnd) {
    run(&mixed_jobs(60, 300_000.0, 1), CLUSTER)
}

/// A run that its horizon cut short.
pub(crate) fn cut() -> (Facts, RunEnd) {
    run(&mixed_jobs(60, 300_000.0, 1), Cluster { horizon: Some(12_000_000), ..CLUSTER })
}

/// Expects that a legal run changed by `edit` violates `invariant`.
#[track_caller]
fn check(invariant: &str, edit: impl FnOnce(&mut Facts)) {
    let (mut facts, end) = legal();
    edit(&mut facts);
    expect(invariant, &audit(&facts, &end, CONFIG));
}

#[track_caller]
fn expect(invariant: &str, report: &AuditReport) {
    let found = report.first.iter().any(|violation| violation.invariant == invariant);
    assert!(found, "{invariant} expected, found {:#?}", report.first);
}

/// The place of the `n`-th fact that `wanted` is true of.
#[track_caller]
fn nth(facts: &Facts, n: usize, wanted: impl Fn(&Fact<'_>) -> bool) -> usize {
    let mut places = (0..facts.len()).filter(|&i| wanted(&facts[i].1));
    places.nth(n).expect("there are enough such facts")
}

fn is_finished(fact: &Fact<'_>) -> bool {
    matches!(fact, Fact::Closed { status: Status::Finished, .. })
}

/// Changes the record of a finished request.
fn edit_record(facts: &mut Facts, edit: impl FnOnce(&mut Record<'static>)) {
    let place = nth(facts, 9, is_finished);
    if let Fact::Closed { record, .. } = &mut facts[place].1 {
        edit(record);
    }
}

/// Changes the batch and blocks of a step.
fn edit_steps(facts: &mut Facts, edit: impl FnOnce(&mut u64, &mut Span, &mut Batch, &mut u32)) {
    let place = nth(facts, 9, |fact| matches!(fact, Fact::Steps { .. }));
    if let Fact::Steps { count, duration, batch, blocks_in_use, .. } = &mut facts[place].1 {
        edit(count, duration, batch, blocks_in_use);
    }
}

fn edit_scheduled(facts: &mut Facts, edit: impl FnOnce(&mut u32, &mut u32)) {
    let place = nth(facts, 9, |fact| matches!(fact, Fact::Scheduled { .. }));
    if let Fact::Scheduled { cached_tokens, total_tokens, .. } = &mut facts[place].1 {
        edit(cached_tokens, total_tokens);
    }
}

const NANO: Span = Span::from_nanos(1);

#[test]
fn legal_runs_pass() {
    for seed in 0..40 {
        for (gap, horizon) in [(100_000.0, None), (2e6, None), (4e5, Some(30_000_000))] {
            let cluster = Cluster { horizon, ..CLUSTER };
            let (facts, end) = run(&mixed_jobs(200, gap, seed), cluster);
            let report = audit(&facts, &end, CONFIG);
            assert!(report.is_clean(), "seed {seed}, gap {gap}: {:#?}", report.first);
        }
    }
    let jobs = single_server_jobs(2_000, 0.8, 1);
    let single = Cluster { instances: 1, max_running: 1, ..CLUSTER };
    let (facts, end) = run(&jobs, single);
    assert!(audit(&facts, &end, AuditConfig { instances: 1, ..CONFIG }).is_clean());
}

#[test]
fn the_legal_run_shows_everything_that_can_happen() {
    let has = |facts: &Facts, wanted: fn(&Fact<'_>) -> bool| facts.iter().any(|(_, f)| wanted(f));
    let (facts, _) = legal();
    assert!(has(&facts, |fact| matches!(fact, Fact::Preempted { .. })));
    assert!(has(&facts, |fact| matches!(fact, Fact::Tokens { .. })));
    for (_, fact) in &facts {
        if let Fact::Closed { status, .. } = fact {
            let ended =
                matches!(status, Status::Finished | Status::Rejected(_) | Status::Unservable);
            assert!(ended, "{status:?}");
        }
    }
    let (facts, end) = cut();
    assert_eq!(end.end, End::Horizon);
    for wanted in [Status::Queued, Status::Running] {
        assert!(facts.iter().any(|(_, fact)| matches!(fact, Fact::Closed { status, .. }
            if *status == wanted)));
    }
}

#[test]
fn facts_of_one_step_may_be_stated_in_any_order() {
    // The step itself after its effects.
    let (mut facts, end) = legal();
    for i in 1..facts.len() {
        let effect = |fact: &Fact<'_>| {
            is_finished(fact) || matches!(fact, Fact::Tokens { .. } | Fact::FirstToken { .. })
        };
        let before_effect = matches!(facts[i - 1].1, Fact::Steps { .. }) && effect(&facts[i].1);
        if before_effect && facts[i - 1].0 == facts[i].0 {
            facts.swap(i - 1, i);
        }
    }
    let report = audit(&facts, &end, CONFIG);
    assert!(report.is_clean(), "{:#?}", report.first);
}

#[test]
fn i1_a_request_that_is_never_closed_is_found() {
    check("I1", |facts| {
        let place = nth(facts, 5, is_finished);
        facts.remove(place);
    });
}

#[test]
fn i1_ids_that_are_not_dense_are_found() {
    check("I1", |facts| {
        let place = nth(facts, 5, |fact| matches!(fact, Fact::Arrived { .. }));
        facts.remove(place);
    });
}

#[test]
fn i1_a_request_in_two_places_is_found() {
    check("I1", |facts| {
        let place = nth(facts, 5, |fact| matches!(fact, Fact::Enqueued { .. }));
        if let Fact::Enqueued { instance, .. } = &mut facts[place].1 {
            instance.0 ^= 1;
        }
    });
}

#[test]
fn i1_a_batch_of_others_than_those_running_is_found() {
    check("I1", |facts| edit_steps(facts, |_, _, batch, _| batch.running -= 1));
    check("I1", |facts| edit_steps(facts, |_, _, batch, _| batch.waiting += 50));
}

#[test]
fn i2_a_prefill_that_does_not_cover_the_prompt_is_found() {
    check("I2", |facts| edit_scheduled(facts, |_, total| *total -= 1));
    check("I2", |facts| edit_scheduled(facts, |cached, total| *cached = *total));
}

#[test]
fn i2_a_token_emitted_twice_is_found() {
    check("I2", |facts| {
        let place = nth(facts, 5, |fact| matches!(fact, Fact::Tokens { .. }));
        facts.insert(place, facts[place].clone());
    });
}

#[test]
fn i2_tokens_computed_twice_or_never_are_found() {
    check("I2", |facts| edit_steps(facts, |_, _, batch, _| batch.prefill_tokens += 1));
    check("I2", |facts| {
        let place = nth(facts, 0, |fact| matches!(fact, Fact::Preempted { .. }));
        if let Fact::Preempted { lost_tokens, .. } = &mut facts[place].1 {
            *lost_tokens -= 1;
        }
    });
    // With a request cut while running, there is still an upper bound.
    let (mut facts, end) = cut();
    edit_steps(&mut facts, |_, _, batch, _| batch.prefill_tokens += 2_000);
    expect("I2", &audit(&facts, &end, CONFIG));
}

#[test]
fn i3_more_blocks_than_there_are_is_found() {
    check("I3", |facts| edit_steps(facts, |_, _, _, blocks| *blocks = 101));
    check("I3", |facts| {
        let place = nth(facts, 0, |fact| matches!(fact, Fact::Evicted { .. }));
        if let Fact::Evicted { blocks, .. } = &mut facts[place].1 {
            *blocks = 101;
        }
    });
}

#[test]
fn i4_overlapping_steps_are_found() {
    check("I4", |facts| edit_steps(facts, |_, duration, _, _| *duration += NANO));
    check("I4", |facts| edit_steps(facts, |count, _, _, _| *count += 1));
    check("I4", |facts| edit_steps(facts, |count, _, _, _| *count = u64::MAX));
    check("I4", |facts| edit_steps(facts, |count, _, _, _| *count = 0));
}

#[test]
fn i4_time_that_is_neither_busy_nor_idle_is_found() {
    check("I4", |facts| edit_steps(facts, |_, duration, _, _| *duration -= NANO));
}

#[test]
fn i7_a_record_that_contradicts_the_facts_is_found() {
    check("I7", |facts| edit_record(facts, |record| record.preemptions += 1));
    check("I7", |facts| edit_record(facts, |record| record.arrival += NANO));
    check("I7", |facts| edit_record(facts, |record| record.cached_tokens = None));
    check("I7", |facts| edit_record(facts, |record| record.expected_cached_tokens = None));
    check("I7", |facts| edit_record(facts, |record| record.input_tokens += 1));
    check("I7", |facts| edit_record(facts, |record| record.class = SloClass::Background));
    check("I7", |facts| {
        edit_record(facts, |record| record.instance = record.instance.map(|i| InstanceId(i.0 ^ 1)));
    });
    check("I7", |facts| edit_record(facts, |record| record.output_tokens += 1));
}

#[test]
fn i8_time_that_runs_backwards_is_found() {
    check("I8", |facts| {
        let place = nth(facts, 5, |fact| matches!(fact, Fact::Admitted { .. }));
        facts[place].0 = Time::ZERO;
    });
    check("I8", |facts| {
        let place = nth(facts, 5, |fact| matches!(fact, Fact::Steps { .. }));
        facts[place].0 = Time::ZERO;
    });
}

#[test]
fn i8_facts_after_the_end_are_found() {
    let (facts, end) = legal();
    let early = RunEnd { ended_at: end.ended_at - NANO, ..end.clone() };
    expect("I8", &audit(&facts, &early, CONFIG));
    let early = RunEnd { ended_at: Time::ZERO, ..end };
    expect("I8", &audit(&facts, &early, CONFIG));
}

#[test]
fn i9_a_request_ahead_of_its_own_story_is_found() {
    check("I9", |facts| {
        let place = nth(facts, 0, |fact| matches!(fact, Fact::Enqueued { .. }));
        facts[place].0 = Time::ZERO;
    });
}

#[test]
fn i9_latencies_that_contradict_the_facts_are_found() {
    check("I9", |facts| edit_record(facts, |record| record.split.queue += NANO));
    check("I9", |facts| {
        edit_record(facts, |record| record.ttft = record.ttft.map(|ttft| ttft + NANO));
    });
    check("I9", |facts| {
        edit_record(facts, |record| {
            record.ttft = record.ttft.map(|ttft| ttft + NANO);
            record.split.prefill += NANO;
        });
    });
    check("I9", |facts| {
        edit_record(facts, |record| {
            record.split.gateway -= NANO;
            record.split.prefill += NANO;
        });
    });
    check("I9", |facts| {
        edit_record(facts, |record| record.e2e = record.e2e.map(|e2e| e2e + NANO));
    });
    check("I9", |facts| edit_record(facts, |record| record.e2e = None));
    check("I9", |facts| edit_record(facts, |record| record.ttft = None));
}

#[test]
fn i9_gaps_that_do_not_add_up_to_the_records_are_found() {
    check("I9", |facts| {
        let place = nth(facts, 5, |fact| matches!(fact, Fact::Tokens { .. }));
        if let Fact::Tokens { gap, .. } = &mut facts[place].1 {
            *gap += NANO;
        }
    });
}

#[test]
fn i9_effects_within_a_step_are_found() {
    // Tokens that leave, and requests that are scheduled, while a step is on.
    check("I9", |facts| {
        let place = nth(facts, 9, |fact| matches!(fact, Fact::Steps { .. }));
        let (at, Fact::Steps { instance, .. }) = facts[place] else { return };
        let tokens = Fact::Tokens {
            instance,
            class: SloClass::Batch,
            early: false,
            gap: NANO,
            count: 1,
            tokens: 1,
        };
        facts.insert(place, (at - NANO, tokens));
    });
    check("I9", |facts| {
        let place = nth(facts, 9, |fact| matches!(fact, Fact::Steps { .. }));
        let (at, Fact::Steps { instance, .. }) = facts[place] else { return };
        facts.insert(place, (at - NANO, Fact::Evicted { instance, blocks: 1 }));
    });
}

#[test]
fn i10_illegal_transitions_are_found() {
    let twice = |wanted: fn(&Fact<'_>) -> bool| {
        check("I10", |facts| {
            let place = nth(facts, 5, wanted);
            facts.insert(place, facts[place].clone());
        });
    };
    twice(|fact| matches!(fact, Fact::Admitted { .. }));
    twice(|fact| matches!(fact, Fact::Routed { .. }));
    twice(|fact| matches!(fact, Fact::Enqueued { .. }));
    twice(|fact| matches!(fact, Fact::Scheduled { .. }));
    twice(|fact| matches!(fact, Fact::FirstToken { .. }));
    twice(is_finished);
    check("I10", |facts| {
        let place = nth(facts, 5, |fact| matches!(fact, Fact::Scheduled { .. }));
        facts.remove(place);
    });
    check("I10", |facts| {
        let place = nth(facts, 5, |fact| matches!(fact, Fact::FirstToken { .. }));
        facts.remove(place);
    });
}

#[test]
fn i11_an_expectation_beyond_the_prompt_is_found() {
    check("I11", |facts| {
        let place = nth(facts, 5, |fact| matches!(fact, Fact::Routed { .. }));
        if let Fact::Routed { expected_cached_tokens, .. } = &mut facts[place].1 {
            *expected_cached_tokens = Some(1_000_000);
        }
    });
}

#[test]
fn i14_an_idle_instance_with_work_is_found() {
    // All facts of an instance from some step on come late, so that it pauses before.
    check("I14", |facts| {
        let place = nth(facts, 9, |fact| matches!(fact, Fact::Steps { .. }));
        if let Fact::Steps { duration, .. } = &mut facts[place].1 {
            *duration -= NANO;
        }
    });
    check("I14", |facts| {
        edit_steps(facts, |_, _, batch, _| {
            *batch = Batch { running: batch.running, ..Batch::default() };
        });
    });
}

#[test]
fn i14_a_queue_that_nobody_serves_until_the_horizon_is_found() {
    let (request, instance) = (RequestId(0), InstanceId(1));
    let class = SloClass::Standard;
    let at = Time::from_micros;
    let record = Record {
        request,
        name: None,
        arrival: at(1),
        class,
        tenant: blis_core::TenantId(0),
        session: None,
        round: 0,
        deadline: None,
        patience: None,
        instance: Some(instance),
        input_tokens: 10,
        output_tokens: 0,
        cached_tokens: None,
        expected_cached_tokens: None,
        preemptions: 0,
        ttft: None,
        e2e: None,
        split: TtftSplit::default(),
    };
    let facts = vec![
        (at(1), Fact::Arrived { request, class, input_tokens: 10, round: 0 }),
        (at(1), Fact::Admitted { request }),
        (
            at(1),
            Fact::Routed {
                request,
                instance,
                expected_cached_tokens: None,
                because: "",
                totals: &[],
            },
        ),
        (at(2), Fact::Enqueued { request, instance }),
        (at(9), Fact::Closed { status: Status::Queued, record }),
    ];
    let end = RunEnd { ended_at: at(9), end: End::Horizon, instances: 2 };
    let report = audit(&facts, &end, CONFIG);
    expect("I14", &report);
    assert_eq!(report.count, 1, "{:#?}", report.first);
}

#[test]
fn i9_an_answer_to_a_client_who_has_given_up_is_found() {
    check("I9", |facts| edit_record(facts, |record| record.patience = Some(NANO)));
}

#[test]
fn i15_a_livelock_is_found() {
    let (facts, end) = legal();
    expect("I15", &audit(&facts, &end, AuditConfig { max_preemptions: 0, ..CONFIG }));
    check("I15", |facts| {
        let place = nth(facts, 0, |fact| matches!(fact, Fact::Evicted { .. }));
        let again = facts[place].clone();
        facts.splice(place..place, std::iter::repeat_n(again, 1_000));
    });
}

#[test]
fn i16_overtaking_in_the_queue_is_found() {
    let (mut facts, end) = legal();
    // The first request of instance 0 joins the queue after its second.
    let wanted = |fact: &Fact<'_>| matches!(fact, Fact::Enqueued { instance: InstanceId(0), .. });
    let (a, b) = (nth(&facts, 5, wanted), nth(&facts, 6, wanted));
    let (first, second) = (facts[a].1.clone(), facts[b].1.clone());
    (facts[a].1, facts[b].1) = (second, first);
    expect("I16", &audit(&facts, &end, CONFIG));
    let other_order = audit(&facts, &end, AuditConfig { fcfs: false, ..CONFIG });
    assert!(other_order.first.iter().all(|violation| violation.invariant != "I16"));
    // A connector passes requests over, but only while copies are under way.
    let connector = AuditConfig { loads: Loads::Connector, ..CONFIG };
    expect("I16", &audit(&facts, &end, connector));
    let (instance, at) = (InstanceId(0), facts[a].0);
    facts.insert(a, (at, Fact::Offloading { instance, blocks: 1 }));
    let copying = audit(&facts, &end, connector);
    assert!(copying.first.iter().all(|violation| violation.invariant != "I16"));
}

#[test]
fn i5_a_copy_that_a_connector_abandons_is_found() {
    let (mut facts, end) = legal();
    let place = nth(&facts, 0, |fact| matches!(fact, Fact::Steps { .. }));
    let (instance, at) = (InstanceId(0), facts[place].0);
    let ended = Fact::Offloaded { instance, blocks: 0, abandoned: 1, cpu_blocks: 0, beside: true };
    facts.insert(place, (at, ended));
    facts.insert(place, (at, Fact::Offloading { instance, blocks: 1 }));
    let finds = |loads| {
        let found = audit(&facts, &end, AuditConfig { loads, ..CONFIG });
        found.first.iter().any(|violation| violation.invariant == "I5")
    };
    assert!(finds(Loads::Connector) && !finds(Loads::Beside));
}

#[test]
fn i17_a_drained_run_with_unfinished_requests_is_found() {
    let (facts, end) = cut();
    assert!(audit(&facts, &end, CONFIG).is_clean());
    expect("I17", &audit(&facts, &RunEnd { end: End::Drained, ..end.clone() }, CONFIG));
    expect(
        "I17",
        &audit(&facts, &RunEnd { end: End::Stalled { why: String::new() }, ..end }, CONFIG),
    );
}

#[test]
fn i18_limits_that_are_exceeded_are_found() {
    let (facts, end) = legal();
    for config in
        [AuditConfig { max_running: 3, ..CONFIG }, AuditConfig { max_step_tokens: 100, ..CONFIG }]
    {
        expect("I18", &audit(&facts, &end, config));
    }
    check("I18", |facts| edit_steps(facts, |_, _, batch, _| batch.prefill_seqs += 90));
}

#[test]
fn i18_drafts_that_nobody_made_are_found() {
    check("I18", |facts| {
        let place = nth(facts, 5, |fact| matches!(fact, Fact::Tokens { .. }));
        if let Fact::Tokens { tokens, .. } = &mut facts[place].1 {
            *tokens += 1;
        }
    });
    check("I18", |facts| edit_steps(facts, |_, _, batch, _| batch.draft_tokens += 1));
    check("I18", |facts| edit_steps(facts, |_, _, batch, _| batch.wasted_tokens += 1));
    // A token that is wasted is not computed for anybody.
    let (mut facts, end) = legal();
    let drafts = AuditConfig { draft_tokens: 2, ..CONFIG };
    assert!(audit(&facts, &end, drafts).is_clean());
    let decodes =
        |fact: &Fact<'_>| matches!(fact, Fact::Steps { batch, .. } if batch.decode_seqs > 0);
    let place = nth(&facts, 0, decodes);
    if let Fact::Steps { batch, .. } = &mut facts[place].1 {
        batch.wasted_tokens += 1;
    }
    expect("I2", &audit(&facts, &end, drafts));
    check("I10", |facts| {
        let place = nth(facts, 0, is_finished);
        let (at, Fact::Closed { record, .. }) = &facts[place] else { return };
        let instance = record.instance.expect("it ran");
        let (at, request) = (*at, record.request);
        facts.insert(place, (at, Fact::Overran { request, instance }));
    });
}

#[test]
fn i18_chunks_that_do_not_add_up_to_their_step_are_found() {
    let with_chunk = |more: u32| {
        let (mut facts, end) = legal();
        let prefills =
            |fact: &Fact<'_>| matches!(fact, Fact::Steps { batch, .. } if batch.prefill_tokens > 0);
        let place = nth(&facts, 3, prefills);
        let (at, Fact::Steps { instance, batch, .. }) = facts[place].clone() else { panic!() };
        let chunks = Vec::leak(vec![(RequestId(0), batch.prefill_tokens + more)]);
        facts.insert(place, (at, Fact::Formed { instance, chunks }));
        audit(&facts, &end, CONFIG)
    };
    assert!(with_chunk(0).is_clean());
    expect("I18", &with_chunk(1));
}

#[test]
fn i19_an_instance_that_does_not_exist_is_found() {
    let (facts, end) = legal();
    expect("I19", &audit(&facts, &end, AuditConfig { instances: 1, ..CONFIG }));
    check("I19", |facts| {
        let place = nth(facts, 0, |fact| matches!(fact, Fact::Routed { .. }));
        let (request, fresh) = (RequestId(0), InstanceId(0));
        let considered = Fact::Considered { request, candidates: &[], opinions: &[], fresh };
        facts.insert(place, (facts[place].0, considered));
    });
}

#[test]
fn each_instance_is_checked_by_the_rules_of_its_pool() {
    let (facts, end) = legal();
    let first = AuditConfig { instances: 1, ..CONFIG };
    let report = |second: AuditConfig| {
        let mut audit = Audit::new(&[first, second]);
        tell(&mut audit, &facts);
        audit.finish(&end)
    };
    assert!(report(first).is_clean());
    let found = report(AuditConfig { max_running: 3, ..first });
    expect("I18", &found);
    assert!(found.first.iter().all(|one| one.to_string().contains("instance 1: ")), "{found:?}");
}

#[test]
fn only_the_first_violations_are_kept_but_all_are_counted() {
    let (facts, end) = legal();
    let report = audit(&facts, &end, AuditConfig { max_step_tokens: 0, ..CONFIG });
    assert_eq!(report.first.len(), 20, "the rest is counted");
    assert!(report.count > 100, "{}", report.count);
    let text = report.first[0].to_string();
    assert!(text.starts_with("I18 at ") && text.contains("instance 0: "), "{text}");
}
