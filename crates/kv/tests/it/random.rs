//! Long random histories.

use crate::coverage::{Case, Coverage};
use crate::operation::{Operation, Worth};
use crate::pair::Pair;
use crate::prompts::Prompts;
use proptest::prelude::*;
use proptest::test_runner::{Config, RngAlgorithm, TestRng, TestRunner};
use std::cell::RefCell;

/// Most requests at a time.
const SLOTS: usize = 8;

/// Blocks of the longest prompt.
const LONGEST: usize = 10;

/// Blocks of the largest tier.
const LARGEST_TIER: u32 = 40;

/// Operations from one look at the order of the copies to the next: filling a whole tier costs more
/// than everything else, and a wrong order stays wrong.
const BETWEEN_TIER_DRAINS: usize = 16;

/// A pool, a tier, and what is done to them. Small pools evict all the time, large ones never have
/// to. A history may be short, because a failing one is only cut down to lengths that are allowed.
fn history() -> impl Strategy<Value = (u32, u32, Vec<Operation>)> {
    let copies = prop_oneof![
        1 => Just(0_u32),
        1 => 1..=6_u32,
        2 => 7..=LARGEST_TIER,
    ];
    let total = prop_oneof![2 => 4..=20_u32, 1 => 21..=60_u32];
    (total, copies, prop::collection::vec(operation(), 1..800))
}

fn operation() -> impl Strategy<Value = Operation> {
    prop_oneof![17 => pool_operation(), 9 => tier_operation()]
}

fn pool_operation() -> impl Strategy<Value = Operation> {
    let slot = || 0..SLOTS;
    prop_oneof![
        2 => (slot(), 0..8_usize, 0..=LONGEST)
            .prop_map(|(slot, prompt, known)| Operation::Start { slot, prompt, known }),
        2 => (slot(), 0..8_usize)
            .prop_map(|(slot, prompt)| Operation::Start { slot, prompt, known: LONGEST }),
        4 => (slot(), 1..=5_u32).prop_map(|(slot, blocks)| Operation::Grow { slot, blocks }),
        4 => (slot(), 1..=4_u32).prop_map(|(slot, blocks)| Operation::Commit { slot, blocks }),
        4 => (slot(), worth()).prop_map(|(slot, worth)| Operation::Release { slot, worth }),
        1 => (1..=6_u32).prop_map(|blocks| Operation::Evict { blocks }),
    ]
}

fn worth() -> impl Strategy<Value = Worth> {
    prop_oneof![
        6 => Just(Worth::None),
        1 => Just(Worth::Depth),
        1 => Just(Worth::Trunks),
        1 => Just(Worth::Uses),
        1 => Just(Worth::More),
        2 => any::<u64>().prop_map(Worth::Any),
        2 => Just(Worth::Cut),
    ]
}

fn tier_operation() -> impl Strategy<Value = Operation> {
    let slot = || 0..SLOTS;
    prop_oneof![
        2 => slot().prop_map(|slot| Operation::Reload { slot }),
        3 => slot().prop_map(|slot| Operation::StartCopy { slot }),
        2 => (0..=12_u32).prop_map(|most| Operation::StartCopyOfIdle { most }),
        1 => (0..4_usize).prop_map(|which| Operation::Land { which }),
        1 => (0..=8_u32).prop_map(|blocks| Operation::CopyNow { blocks }),
        1 => (1..=8_u32).prop_map(|blocks| Operation::EvictWithCopy { blocks }),
        1 => slot().prop_map(|slot| Operation::CopyTableNow { slot }),
        3 => (0..8_usize, 0..10_u32, 0..=10_u32, 0..60_u64)
            .prop_map(|(prompt, from, upto, age)| Operation::Touch { prompt, from, upto, age }),
    ]
}

/// Does a history to both; returns how many operations did something.
fn live_through(pair: &mut Pair<'_>, operations: &[Operation]) -> u64 {
    let mut done = 0;
    for (index, &operation) in operations.iter().enumerate() {
        if pair.apply(operation) {
            done += 1;
            pair.compare_drains();
        }
        if index % BETWEEN_TIER_DRAINS == 0 {
            pair.compare_tier_drains();
        }
    }
    pair.compare_tier_drains();
    done
}

#[test]
fn the_pool_and_a_naive_reference_agree_after_every_operation() {
    let prompts = Prompts::families();
    let config = Config {
        cases: 1_500,
        max_shrink_iters: 100_000,
        failure_persistence: None,
        ..Config::default()
    };
    let rng = TestRng::deterministic_rng(RngAlgorithm::ChaCha);
    let coverage = RefCell::new((0_u64, Coverage::default()));
    let outcome =
        TestRunner::new_with_rng(config, rng).run(&history(), |(total, copies, operations)| {
            let mut pair = Pair::new(&prompts, total, copies, SLOTS);
            let done = live_through(&mut pair, &operations);
            let (all, seen) = &mut *coverage.borrow_mut();
            *all += done;
            seen.add(&pair.reference.seen);
            Ok(())
        });
    if let Err(error) = outcome {
        panic!("{error}");
    }
    let (operations, seen) = coverage.into_inner();
    assert!(operations >= 100_000, "{operations} operations did something: {seen:?}");
    seen.assert_met(&Case::PLAIN, 100);
    seen.assert_met(&Case::WORTH, 100);
    seen.assert_met(&Case::CUT, 100);
    seen.assert_met(&Case::TIER, 50);
}
