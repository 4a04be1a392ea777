//! Tests of the audit with asynchronous scheduling: what may happen then, and what may not.

use blis_core::{InstanceId, RequestId, SloClass, Span, TenantId, Time};
use blis_metrics::{
    Audit, AuditConfig, AuditReport, Batch, End, Fact, Listener, Loads, Record, RunEnd, Status,
    TtftSplit,
};

type Facts = Vec<(Time, Fact<'static>)>;

const INSTANCE: InstanceId = InstanceId(0);
const FIRST: RequestId = RequestId(0);
const SECOND: RequestId = RequestId(1);

fn at(micros: u64) -> Time {
    Time::from_micros(micros)
}

fn us(micros: u64) -> Span {
    Span::from_micros(micros)
}

const CONFIG: AuditConfig = AuditConfig {
    instances: 1,
    total_blocks: Some(100),
    cpu_blocks: 0,
    max_running: 4,
    max_step_tokens: 100,
    fcfs: true,
    loads: Loads::Blocking,
    ahead: 1,
    draft_tokens: 0,
    max_preemptions: 9,
};

fn heard(facts: &Facts, config: AuditConfig) -> AuditReport {
    let mut audit = Audit::new(&[config]);
    for (at, fact) in facts {
        audit.hear(*at, fact);
    }
    audit.finish(&RunEnd { ended_at: at(22), end: End::Drained, instances: 1 })
}

/// A request of 10 tokens that arrives at 0, its TTFT and E2E and its output.
fn record(
    request: RequestId,
    output_tokens: u32,
    ttft: u64,
    e2e: u64,
    split: TtftSplit,
) -> Record<'static> {
    Record {
        request,
        name: None,
        arrival: at(0),
        class: SloClass::Standard,
        tenant: TenantId(0),
        session: None,
        round: 0,
        deadline: None,
        patience: None,
        instance: Some(INSTANCE),
        input_tokens: 10,
        output_tokens,
        cached_tokens: Some(0),
        expected_cached_tokens: None,
        preemptions: u32::from(request == SECOND),
        ttft: Some(us(ttft)),
        e2e: Some(us(e2e)),
        split,
    }
}

fn steps(duration: u64, ahead: u64, batch: [u32; 4]) -> Fact<'static> {
    let [prefill_seqs, prefill_tokens, decode_seqs, running] = batch;
    Fact::Steps {
        instance: INSTANCE,
        count: 1,
        duration: us(duration),
        ahead: us(ahead),
        gpu: us(duration.min(5)),
        batch: Batch { prefill_seqs, prefill_tokens, decode_seqs, running, ..Batch::default() },
        blocks_in_use: 2,
    }
}

/// Two requests join at 0. Step 1 computes the prompt of the first, from 0 to 10; step 2, formed at
/// 3, the prompt of the second and a token of the first, to 16; step 3, formed at 10, the last
/// token of the first, to 22. Before step 3 the second is preempted, and gets its only token at 16.
fn legal() -> Facts {
    let (class, instance) = (SloClass::Standard, INSTANCE);
    let mut facts = Facts::new();
    for request in [FIRST, SECOND] {
        facts.push((at(0), Fact::Arrived { request, class, input_tokens: 10, round: 0 }));
        facts.push((at(0), Fact::Admitted { request }));
        let (expected_cached_tokens, because) = (None, "");
        let routed =
            Fact::Routed { request, instance, expected_cached_tokens, because, totals: &[] };
        facts.push((at(0), routed));
        facts.push((at(0), Fact::Enqueued { request, instance }));
    }
    let scheduled =
        |request| Fact::Scheduled { request, instance, cached_tokens: 0, total_tokens: 10 };
    let tokens =
        |gap| Fact::Tokens { instance, class, early: false, gap: us(gap), count: 1, tokens: 1 };
    let closed = |record| Fact::Closed { status: Status::Finished, record };
    let preempted = Fact::Preempted { request: SECOND, instance, lost_tokens: 10, ended: true };
    let first = TtftSplit { prefill: us(10), ..TtftSplit::default() };
    let second =
        TtftSplit { queue: us(3), recompute: us(7), prefill: us(6), ..TtftSplit::default() };
    facts.extend([
        (at(0), scheduled(FIRST)),
        (at(3), scheduled(SECOND)),
        (at(10), steps(10, 0, [1, 10, 0, 1])),
        (at(10), Fact::FirstToken { request: FIRST, instance }),
        (at(10), preempted),
        (at(16), steps(6, 7, [1, 10, 1, 2])),
        (at(16), tokens(6)),
        (at(16), Fact::FirstToken { request: SECOND, instance }),
        (at(16), closed(record(SECOND, 1, 16, 16, second))),
        (at(22), steps(6, 6, [0, 0, 1, 1])),
        (at(22), tokens(6)),
        (at(22), closed(record(FIRST, 3, 10, 22, first))),
    ]);
    facts
}

#[track_caller]
fn check(invariant: &str, edit: impl Fn(Time, &mut Fact<'static>)) {
    let mut facts = legal();
    for (at, fact) in &mut facts {
        edit(*at, fact);
    }
    expect(invariant, &heard(&facts, CONFIG));
}

#[track_caller]
fn expect(invariant: &str, report: &AuditReport) {
    let found = &report.first;
    assert!(found.iter().any(|violation| violation.invariant == invariant), "{found:#?}");
}

#[test]
fn a_step_formed_while_another_is_under_way_passes() {
    let report = heard(&legal(), CONFIG);
    assert!(report.is_clean(), "{:#?}", report.first);
}

#[test]
fn a_synchronous_engine_does_none_of_it() {
    let report = heard(&legal(), AuditConfig { ahead: 0, ..CONFIG });
    for invariant in ["I4", "I9", "I10"] {
        expect(invariant, &report);
    }
}

#[test]
fn a_third_step_in_flight_is_found() {
    check("I4", |now, fact| match fact {
        Fact::Steps { ahead, .. } if now == at(22) => *ahead = us(7),
        _ => {}
    });
}

#[test]
fn scheduling_when_no_step_was_formed_is_found() {
    check("I9", |now, fact| match fact {
        Fact::Steps { ahead, .. } if now == at(16) => *ahead = us(6),
        _ => {}
    });
}

#[test]
fn a_batch_of_others_than_were_there_is_found() {
    check("I1", |now, fact| match fact {
        Fact::Steps { batch, .. } if now == at(22) => batch.running = 2,
        _ => {}
    });
}

#[test]
fn a_first_token_of_a_request_that_waits_and_was_not_preempted_is_found() {
    let mut facts = legal();
    facts.retain(|(at, _)| *at < self::at(3));
    facts.push((at(1), Fact::FirstToken { request: SECOND, instance: INSTANCE }));
    expect("I10", &heard(&facts, CONFIG));
}

#[test]
fn a_gpu_that_computes_longer_than_the_engine_is_busy_is_found() {
    check("I4", |_, fact| {
        if let Fact::Steps { gpu, .. } = fact {
            *gpu = us(8);
        }
    });
}
