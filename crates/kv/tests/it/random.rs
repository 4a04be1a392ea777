//! Long random histories.

use crate::pair::{Operation, Pair};
use crate::prompts::Prompts;
use crate::reference::Coverage;
use proptest::prelude::*;
use proptest::test_runner::{Config, RngAlgorithm, TestRng, TestRunner};
use std::cell::RefCell;

/// Most requests at a time.
const SLOTS: usize = 8;

/// Blocks of the longest prompt.
const LONGEST: usize = 10;

/// A pool size and what is done to the pool. Small pools evict all the time, large ones never have
/// to. A history may be short, because a failing one is only cut down to lengths that are allowed.
fn history() -> impl Strategy<Value = (u32, Vec<Operation>)> {
    (4..=60_u32, prop::collection::vec(operation(), 1..800))
}

fn operation() -> impl Strategy<Value = Operation> {
    let slot = || 0..SLOTS;
    prop_oneof![
        2 => (slot(), 0..8_usize, 0..=LONGEST)
            .prop_map(|(slot, prompt, known)| Operation::Start { slot, prompt, known }),
        2 => (slot(), 0..8_usize)
            .prop_map(|(slot, prompt)| Operation::Start { slot, prompt, known: LONGEST }),
        4 => (slot(), 1..=5_u32).prop_map(|(slot, blocks)| Operation::Grow { slot, blocks }),
        4 => (slot(), 1..=4_u32).prop_map(|(slot, blocks)| Operation::Commit { slot, blocks }),
        4 => slot().prop_map(|slot| Operation::Release { slot }),
        1 => (1..=6_u32).prop_map(|blocks| Operation::Evict { blocks }),
    ]
}

#[test]
fn the_pool_and_a_naive_reference_agree_after_every_operation() {
    let prompts = Prompts::families();
    let config = Config {
        cases: 800,
        max_shrink_iters: 100_000,
        failure_persistence: None,
        ..Config::default()
    };
    let rng = TestRng::deterministic_rng(RngAlgorithm::ChaCha);
    let coverage = RefCell::new((0_u64, Coverage::default()));
    let outcome = TestRunner::new_with_rng(config, rng).run(&history(), |(total, operations)| {
        let mut pair = Pair::new(&prompts, total, SLOTS);
        let done = operations.iter().filter(|&&operation| pair.apply(operation)).count();
        let (all, seen) = &mut *coverage.borrow_mut();
        *all += u64::try_from(done).expect("a count");
        seen.add(&pair.reference.seen);
        Ok(())
    });
    if let Err(error) = outcome {
        panic!("{error}");
    }
    let (operations, seen) = coverage.into_inner();
    assert!(operations >= 100_000, "{operations} operations did something: {seen:?}");
    for (case, times) in seen.cases() {
        assert!(times >= 100, "{case}: {times} times");
    }
}
