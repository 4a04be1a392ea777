//! Tests of the audit with clients that give up: what may happen then, and what may not.

use blis_core::{InstanceId, RequestId, SloClass, Span, TenantId, Time};
use blis_metrics::{
    Audit, AuditConfig, AuditReport, Batch, End, Fact, Listener, Loads, Record, RunEnd, Stage,
    Status, TtftSplit,
};

type Facts = Vec<(Time, Fact<'static>)>;

const REQUEST: RequestId = RequestId(0);
const INSTANCE: InstanceId = InstanceId(0);

fn at(micros: u64) -> Time {
    Time::from_micros(micros)
}

fn heard(facts: &Facts, ended_at: Time) -> AuditReport {
    let mut audit = Audit::new(&[AuditConfig {
        instances: 1,
        total_blocks: Some(100),
        cpu_blocks: 0,
        max_running: 4,
        max_step_tokens: 100,
        fcfs: true,
        loads: Loads::Blocking,
        ahead: 0,
        draft_tokens: 0,
        max_preemptions: 9,
    }]);
    for (at, fact) in facts {
        audit.hear(*at, fact);
    }
    audit.finish(&RunEnd { ended_at, end: End::Drained, instances: 1 })
}

/// A request of 10 tokens that arrives at 1 us, and that its client gives up 4 us later.
fn record() -> Record<'static> {
    Record {
        request: REQUEST,
        name: None,
        arrival: at(1),
        class: SloClass::Standard,
        tenant: TenantId(0),
        session: None,
        round: 0,
        deadline: None,
        patience: Some(Span::from_micros(4)),
        instance: Some(INSTANCE),
        input_tokens: 10,
        output_tokens: 0,
        cached_tokens: None,
        expected_cached_tokens: None,
        preemptions: 0,
        ttft: None,
        e2e: None,
        split: TtftSplit::default(),
    }
}

fn closed(micros: u64, stage: Stage, record: Record<'static>) -> (Time, Fact<'static>) {
    (at(micros), Fact::Closed { status: Status::Abandoned(stage), record })
}

/// It arrives and is sent on its way.
fn routed() -> Facts {
    let (expected_cached_tokens, because) = (None, "");
    let routed = Fact::Routed {
        request: REQUEST,
        instance: INSTANCE,
        expected_cached_tokens,
        because,
        totals: &[],
    };
    let arrived =
        Fact::Arrived { request: REQUEST, class: SloClass::Standard, input_tokens: 10, round: 0 };
    vec![(at(1), arrived), (at(1), Fact::Admitted { request: REQUEST }), (at(1), routed)]
}

/// A step of 6 tokens from 2 to 7 us, and what is told when it ends.
fn dropped(computed_tokens: u32) -> Facts {
    let mut facts = routed();
    let (request, instance) = (REQUEST, INSTANCE);
    let scheduled = Fact::Scheduled { request, instance, cached_tokens: 0, total_tokens: 10 };
    let batch = Batch { prefill_seqs: 1, prefill_tokens: 6, running: 1, ..Batch::default() };
    let duration = Span::from_micros(5);
    let (count, ahead, blocks_in_use) = (1, Span::ZERO, 1);
    let steps =
        Fact::Steps { instance, count, duration, ahead, gpu: duration, batch, blocks_in_use };
    facts.push((at(2), Fact::Enqueued { request, instance }));
    facts.push((at(2), scheduled));
    facts.push((at(7), steps));
    let under_way = 0;
    facts.push((at(7), Fact::Dropped { request, instance, computed_tokens, under_way }));
    facts.push(closed(7, Stage::Running, Record { cached_tokens: Some(0), ..record() }));
    facts
}

#[track_caller]
fn expect(invariant: &str, facts: &Facts, ended_at: Time) {
    let found = heard(facts, ended_at).first;
    assert!(found.iter().any(|violation| violation.invariant == invariant), "{found:#?}");
}

#[test]
fn who_gives_up_on_the_way_or_in_the_batch_passes() {
    let mut facts = routed();
    facts.push(closed(5, Stage::Gateway, record()));
    for (facts, ended_at) in [(facts, at(5)), (dropped(6), at(7))] {
        let report = heard(&facts, ended_at);
        assert!(report.is_clean(), "{:#?}", report.first);
    }
}

#[test]
fn giving_up_before_the_time_or_without_patience_is_found() {
    for patience in [Some(Span::from_micros(5)), None] {
        let mut facts = routed();
        facts.push(closed(5, Stage::Gateway, Record { patience, ..record() }));
        expect("I9", &facts, at(5));
    }
}

#[test]
fn a_request_that_nobody_let_go_of_or_that_is_elsewhere_is_found() {
    let mut facts = dropped(6);
    facts.retain(|(_, fact)| !matches!(fact, Fact::Dropped { .. }));
    expect("I10", &facts, at(7));
    let mut facts = routed();
    facts.push(closed(5, Stage::Waiting, record()));
    expect("I10", &facts, at(5));
}

#[test]
fn work_that_a_dropped_request_did_not_do_is_found() {
    expect("I2", &dropped(7), at(7));
}

#[test]
fn a_queue_that_nobody_serves_until_the_client_gives_up_is_found() {
    let mut facts = routed();
    facts.push((at(2), Fact::Enqueued { request: REQUEST, instance: INSTANCE }));
    facts.push(closed(5, Stage::Waiting, record()));
    expect("I14", &facts, at(5));
}
