//! Every history of a small world.

use crate::pair::{Operation, Pair};
use crate::prompts::Prompts;
use crate::reference::Coverage;

/// Two slots for requests.
const SLOTS: usize = 2;

/// What was tried.
#[derive(Debug, Default)]
struct Tried {
    histories: u64,
    seen: Coverage,
}

/// All that can be done step by step.
fn single_steps() -> Vec<Vec<Operation>> {
    let mut moves = vec![vec![Operation::Evict { blocks: 1 }]];
    for slot in 0..SLOTS {
        moves.extend([0, 1].map(|prompt| vec![Operation::Start { slot, prompt, known: 3 }]));
        moves.extend([1, 4].map(|blocks| vec![Operation::Grow { slot, blocks }]));
        moves.extend([1, 3].map(|blocks| vec![Operation::Commit { slot, blocks }]));
        moves.push(vec![Operation::Release { slot }]);
    }
    moves
}

/// The same, but a request comes with blocks for its whole prompt, or as many as there are.
fn admissions() -> Vec<Vec<Operation>> {
    let mut moves = vec![vec![Operation::Evict { blocks: 1 }]];
    for slot in 0..SLOTS {
        moves.extend([0, 1].map(|prompt| {
            let start = Operation::Start { slot, prompt, known: 3 };
            vec![start, Operation::Grow { slot, blocks: 3 }]
        }));
        moves.extend([1, 3].map(|blocks| vec![Operation::Commit { slot, blocks }]));
        moves.push(vec![Operation::Release { slot }]);
    }
    moves
}

/// Goes on from `pair` in every way for `left` moves. Moves that do nothing lead nowhere new.
fn explore(pair: &Pair<'_>, moves: &[Vec<Operation>], left: u32, tried: &mut Tried) {
    if left == 0 {
        tried.histories += 1;
        tried.seen.add(&pair.reference.seen);
        return;
    }
    for operations in moves {
        let mut next = pair.clone();
        if next.apply(operations[0]) {
            for &operation in &operations[1..] {
                next.apply(operation);
            }
            explore(&next, moves, left - 1, tried);
        }
    }
}

fn explore_worlds(moves: &[Vec<Operation>], length: u32) -> Tried {
    let mut tried = Tried::default();
    for (total, shared) in [(3, 1), (4, 1), (4, 2)] {
        let prompts = Prompts::two(shared);
        explore(&Pair::new(&prompts, total, SLOTS), moves, length, &mut tried);
    }
    tried
}

fn assert_all_happened(tried: &Tried) {
    assert!(tried.histories >= 300_000, "{tried:?}");
    for (case, times) in tried.seen.cases() {
        assert!(times >= 100, "{case}: {times} times");
    }
}

#[test]
fn all_short_histories_of_two_requests_agree_with_the_reference() {
    let tried = explore_worlds(&single_steps(), 7);
    assert_all_happened(&tried);
}

#[test]
fn all_histories_of_a_few_admissions_agree_with_the_reference() {
    let tried = explore_worlds(&admissions(), 8);
    assert_all_happened(&tried);
}
