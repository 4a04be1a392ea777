//! What every priority, order, preemption and eviction policy promises.

use crate::views::{CLUSTER, Question, questions};
use blis_core::{RequestId, SessionId, SloClass, Span, Time, Values};
use blis_policy::{
    Evict, Intent, RunningView, UseView, WaitingView, evict, order, preempt, priority,
};
use proptest::prelude::*;
use std::collections::BTreeMap;

fn waiting(question: &Question, number: u64) -> WaitingView<'_> {
    WaitingView {
        request: question.request(number),
        enqueued: Time::from_micros(number * 1_000 + 500),
        generated: 0,
        intent: Intent { expected_hit_blocks: Some(1), because: "weighted" },
        cached_blocks: question.prompt.prompt_blocks(CLUSTER.block_size).len() / 2,
    }
}

proptest! {
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
    fn ranks_are_finite_and_fixed_unless_said_otherwise(
        sequence in questions(),
        given in -100.0..100.0_f64,
        later in 0..10_000_000_u64,
    ) {
        for spec in order::ALL {
            let policy = (spec.build)(&Values::defaults(spec.params), &CLUSTER);
            for (number, question) in (0..).zip(&sequence) {
                let waiting = waiting(question, number);
                let now = policy.rank(&waiting, given, waiting.enqueued);
                let later = waiting.enqueued + Span::from_micros(later);
                let then = policy.rank(&waiting, given, later);
                prop_assert!(now.is_finite() && then.is_finite(), "{}", spec.name);
                prop_assert!(policy.varies() || now.to_bits() == then.to_bits(), "{}", spec.name);
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
            prop_assert_eq!(policy.victim(&running), policy.victim(&running), "{}", spec.name);
        }
    }

    #[test]
    fn a_prefix_is_never_worth_less_than_what_continues_it(
        uses in prop::collection::vec(prompt_use(), 1..40),
    ) {
        for spec in evict::ALL {
            let policy = (spec.build)(&Values::defaults(spec.params), &CLUSTER);
            let worths = worths(&*policy, &uses);
            for (at, worths) in worths.iter().enumerate() {
                for (path, worth) in worths {
                    let legal = *worth >= 0.0 && worth.is_finite();
                    prop_assert!(legal, "{}: {worth} after {at}", spec.name);
                    let above = worths.get(&path[..path.len() - 1]);
                    let orderly = above.is_none_or(|above| above >= worth);
                    prop_assert!(orderly, "{}: {path:?} after {at}", spec.name);
                }
            }
        }
    }
}

/// A request that uses a path of named blocks.
#[derive(Clone, Debug)]
struct PromptUse {
    path: Vec<u8>,
    class: SloClass,
    session: Option<u64>,
    preempted: bool,
    priority: f64,
    expected: Option<u32>,
    after_us: u64,
}

fn prompt_use() -> impl Strategy<Value = PromptUse> {
    let path = prop::collection::vec(0..2_u8, 1..6);
    let class = prop::sample::select(SloClass::ALL.to_vec());
    let session = prop::option::of(0..3_u64);
    let after = prop_oneof![Just(0_u64), 0..90_000_000_u64];
    let priority = prop_oneof![Just(0.0), -5.0..500.0_f64];
    let given = (priority, prop::option::of(0..6_u32));
    (path, class, session, any::<bool>(), given, after).prop_map(
        |(path, class, session, preempted, (priority, expected), after_us)| PromptUse {
            path,
            class,
            session,
            preempted,
            priority,
            expected,
            after_us,
        },
    )
}

/// What every block that was ever used is worth after each of `uses`, one after the other.
fn worths(policy: &dyn Evict, uses: &[PromptUse]) -> Vec<BTreeMap<Vec<u8>, f64>> {
    let mut worths: BTreeMap<Vec<u8>, f64> = BTreeMap::new();
    let mut counts: BTreeMap<Vec<u8>, u32> = BTreeMap::new();
    let mut now = Time::ZERO;
    let mut history = Vec::new();
    for (at, ended) in uses.iter().enumerate() {
        now += Span::from_micros(ended.after_us);
        for upto in (1..=ended.path.len()).rev() {
            let block = &ended.path[..upto];
            let count = counts.entry(block.to_vec()).or_default();
            *count += 1;
            let next = (at + 1..uses.len()).find(|&later| uses[later].path.starts_with(block));
            let view = UseView {
                class: ended.class,
                priority: ended.priority,
                intent: Intent { expected_hit_blocks: ended.expected, because: "weighted" },
                session: ended.session.map(SessionId),
                session_live: ended.after_us > 1_000_000 && ended.session.is_some(),
                preempted: ended.preempted,
                now,
                uses: *count,
                upto: u32::try_from(upto).expect("short paths"),
                worth: worths.get(block).copied().unwrap_or(0.0),
                next_use: next.map(|next| RequestId(next as u64)),
            };
            worths.insert(block.to_vec(), policy.worth(&view));
        }
        history.push(worths.clone());
    }
    history
}

#[test]
fn every_evictor_tells_some_uses_apart_but_lru() {
    let used = |path: &[u8], class, session| PromptUse {
        path: path.to_vec(),
        class,
        session,
        preempted: false,
        priority: 0.0,
        expected: None,
        after_us: 1_000_000,
    };
    let uses = [
        used(&[1], SloClass::Critical, Some(1)),
        used(&[2], SloClass::Batch, None),
        used(&[2], SloClass::Batch, None),
        used(&[3], SloClass::Batch, None),
        used(&[1], SloClass::Critical, None),
    ];
    for spec in evict::ALL {
        let policy = (spec.build)(&Values::defaults(spec.params), &CLUSTER);
        let worths = worths(&*policy, &uses);
        let distinct =
            worths.iter().any(|w| w.values().any(|worth| Some(worth) != w.values().next()));
        assert_eq!(distinct, spec.name != "lru", "{}", spec.name);
    }
}
