//! What every admission, priority, order and preemption policy promises.

use crate::views::{CLUSTER, Question, questions};
use blis_core::{SloClass, Span, Time, Values};
use blis_policy::{RunningView, Verdict, WaitingView, admission, order, preempt, priority};
use proptest::prelude::*;

fn waiting(question: &Question, number: u64) -> WaitingView<'_> {
    WaitingView {
        request: question.request(number),
        enqueued: Time::from_micros(number * 1_000 + 500),
        generated: 0,
    }
}

proptest! {
    #[test]
    fn admission_is_deterministic_and_names_its_reasons(sequence in questions()) {
        for spec in admission::ALL {
            let verdicts = || {
                let mut policy = (spec.build)(&Values::defaults(spec.params), &CLUSTER);
                let decide = |(number, question): (u64, &Question)| {
                    let now = Time::from_micros(number * 1_000);
                    policy.admit(&question.request(number), &question.instances, now)
                };
                (0..).zip(&sequence).map(decide).collect::<Vec<Verdict>>()
            };
            prop_assert_eq!(verdicts(), verdicts(), "{}", spec.name);
            prop_assert!(!verdicts().contains(&Verdict::Reject("")), "{}", spec.name);
        }
    }

    #[test]
    fn priorities_are_finite_and_fixed_unless_said_otherwise(
        sequence in questions(),
        later in 0..10_000_000_u64,
    ) {
        for spec in priority::ALL {
            let policy = (spec.build)(&Values::defaults(spec.params), &CLUSTER);
            for (number, question) in (0..).zip(&sequence) {
                let waiting = waiting(question, number);
                let now = policy.priority(&waiting, waiting.enqueued);
                let later = waiting.enqueued + Span::from_micros(later);
                let then = policy.priority(&waiting, later);
                prop_assert!(now.is_finite() && then.is_finite(), "{}", spec.name);
                prop_assert!(policy.varies() || now.to_bits() == then.to_bits(), "{}", spec.name);
            }
        }
    }

    #[test]
    fn ranks_are_finite_and_deterministic(sequence in questions(), given in -100.0..100.0_f64) {
        for spec in order::ALL {
            let policy = (spec.build)(&Values::defaults(spec.params), &CLUSTER);
            for (number, question) in (0..).zip(&sequence) {
                let rank = || policy.rank(&waiting(question, number), given);
                prop_assert!(rank().is_finite(), "{}", spec.name);
                prop_assert_eq!(rank().to_bits(), rank().to_bits(), "{}", spec.name);
            }
        }
    }

    #[test]
    fn the_preempted_request_is_one_that_runs(
        running in prop::collection::vec((0..9_u32, 0.0..9.0_f64, 1..9_u32), 1..20),
    ) {
        let running: Vec<RunningView> = running
            .into_iter()
            .map(|(generated, priority, blocks)| RunningView {
                class: SloClass::Standard,
                arrival: Time::ZERO,
                priority,
                computed_tokens: blocks * 16,
                generated,
                blocks,
            })
            .collect();
        for spec in preempt::ALL {
            let policy = (spec.build)(&Values::defaults(spec.params), &CLUSTER);
            prop_assert!(policy.victim(&running) < running.len(), "{}", spec.name);
        }
    }
}
