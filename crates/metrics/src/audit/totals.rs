//! The audit's sums over the whole cluster, checked once at the end.

use super::instance::Instance;
use super::{AuditReport, Place};
use crate::end::{End, RunEnd};
use crate::fact::{Record, Status};
use blis_core::{SloClass, Span};

/// Sums over all facts.
#[derive(Clone, Debug, Default)]
pub(super) struct Totals {
    pub(super) arrived: u64,
    finished: u64,
    refused: u64,
    abandoned: u64,
    cut: u64,
    classes: [ClassTotals; SloClass::ALL.len()],
}

/// Sums over the facts of one class; spans are in ns.
#[derive(Clone, Debug, Default)]
struct ClassTotals {
    emitted: u64,
    recorded: u64,
    gaps: u128,
    recorded_gaps: u128,
    /// Whether a request was cut between tokens, so that its gaps are in no record.
    cut: bool,
}

impl Totals {
    /// Tokens left at `count` hand-outs, each `gap` after the one before.
    pub(super) fn emit(&mut self, class: SloClass, gap: Span, count: u64, tokens: u64) {
        let class = &mut self.classes[class.index()];
        class.emitted += tokens;
        class.gaps += u128::from(gap.as_nanos()) * u128::from(count);
    }

    pub(super) fn close(&mut self, status: Status, record: &Record<'_>) {
        let class = &mut self.classes[record.class.index()];
        class.recorded += u64::from(record.output_tokens);
        match status {
            Status::Finished => {
                self.finished += 1;
                if let (Some(ttft), Some(e2e)) = (record.ttft, record.e2e) {
                    let nanos = e2e.as_nanos().saturating_sub(ttft.as_nanos());
                    class.recorded_gaps += u128::from(nanos);
                }
            }
            Status::Rejected(_) | Status::Unservable => self.refused += 1,
            Status::Abandoned(_) => {
                self.abandoned += 1;
                class.cut |= record.output_tokens > 1;
            }
            Status::InTransit | Status::Queued | Status::Running => {
                self.cut += 1;
                class.cut |= record.output_tokens > 1;
            }
        }
    }

    pub(super) fn check(&self, end: &RunEnd, instances: &[Instance], log: &mut AuditReport) {
        let place = Place::run(end.ended_at);
        let Totals { arrived, finished, refused, abandoned, cut, .. } = *self;
        log.check(arrived == finished + refused + abandoned + cut, "I1", place, || {
            format!(
                "{arrived} arrived, but {finished} finished + {refused} refused + {abandoned} \
                 abandoned + {cut} cut"
            )
        });
        log.check(end.end != End::Drained || cut == 0, "I17", place, || {
            format!("the run drained with {cut} unfinished requests")
        });
        let stalled = matches!(end.end, End::Stalled { .. });
        log.check(!stalled, "I17", place, || "the run stalled".to_owned());
        for (class, totals) in SloClass::ALL.iter().zip(&self.classes) {
            totals.check(*class, place, log);
        }
        let by_class: u64 = self.classes.iter().map(|totals| totals.emitted).sum();
        let by_instance: u64 = instances.iter().map(Instance::emitted).sum();
        log.check(by_class == by_instance, "I7", place, || {
            format!("{by_class} tokens by class, {by_instance} by instance")
        });
    }
}

impl ClassTotals {
    fn check(&self, class: SloClass, place: Place, log: &mut AuditReport) {
        let ClassTotals { emitted, recorded, gaps, recorded_gaps, cut } = *self;
        let name = class.name();
        log.check(emitted == recorded, "I2", place, || {
            format!("{emitted} {name} tokens left the engine, {recorded} are in the records")
        });
        let holds = if cut { gaps >= recorded_gaps } else { gaps == recorded_gaps };
        log.check(holds, "I9", place, || {
            format!("{name}: {gaps} ns of gaps, but E2E - TTFT of {recorded_gaps} ns")
        });
    }
}
