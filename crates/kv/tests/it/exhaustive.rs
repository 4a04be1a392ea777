//! Every history of a small world.

use crate::coverage::{Case, Coverage};
use crate::operation::{Operation, Worth};
use crate::pair::Pair;
use crate::prompts::Prompts;

/// Two slots for requests.
const SLOTS: usize = 2;

/// What was tried.
#[derive(Debug, Default)]
struct Tried {
    histories: u64,
    seen: Coverage,
}

/// What happens at once.
type Move = Vec<Operation>;

/// All that can be done step by step.
fn single_steps() -> Vec<Move> {
    let mut moves = vec![vec![Operation::Evict { blocks: 1 }]];
    for slot in 0..SLOTS {
        moves.extend([0, 1].map(|prompt| vec![Operation::Start { slot, prompt, known: 3 }]));
        moves.extend([1, 4].map(|blocks| vec![Operation::Grow { slot, blocks }]));
        moves.extend([1, 3].map(|blocks| vec![Operation::Commit { slot, blocks }]));
        moves.push(vec![Operation::Release { slot, worth: Worth::None }]);
    }
    moves
}

/// The same, but a request comes with blocks for its whole prompt, or as many as there are.
fn admissions() -> Vec<Move> {
    let mut moves = vec![vec![Operation::Evict { blocks: 1 }]];
    for slot in 0..SLOTS {
        moves.extend([0, 1].map(|prompt| {
            let start = Operation::Start { slot, prompt, known: 3 };
            vec![start, Operation::Grow { slot, blocks: 3 }]
        }));
        moves.extend([1, 3].map(|blocks| vec![Operation::Commit { slot, blocks }]));
        moves.push(vec![Operation::Release { slot, worth: Worth::None }]);
    }
    moves
}

/// Requests that are served at once, and all that can be done with a tier. Only the second request
/// is judged against the tree when it goes, so that both kinds of worth meet.
fn services_with_tier() -> Vec<Move> {
    let mut moves = vec![
        vec![Operation::Evict { blocks: 1 }],
        vec![Operation::EvictWithCopy { blocks: 2 }],
        vec![Operation::CopyNow { blocks: 1 }],
        vec![Operation::StartCopyOfIdle { most: 2 }],
        vec![Operation::Land { which: 0 }],
        vec![Operation::Land { which: 1 }],
        vec![Operation::Touch { prompt: 0, from: 1, upto: 2, age: 2 }],
    ];
    for (slot, worth) in [(0, Worth::None), (1, Worth::Depth)] {
        moves.extend([0, 1].map(|prompt| {
            let start = Operation::Start { slot, prompt, known: 3 };
            let reload = Operation::Reload { slot };
            let grow = Operation::Grow { slot, blocks: 3 };
            vec![start, reload, grow, Operation::Commit { slot, blocks: 3 }]
        }));
        moves.push(vec![Operation::Release { slot, worth }]);
        moves.push(vec![Operation::StartCopy { slot }]);
        moves.push(vec![Operation::CopyTableNow { slot }]);
    }
    moves
}

/// Goes on from `pair` in every way for `left` moves. Moves that do nothing lead nowhere new.
fn explore(pair: &Pair<'_>, moves: &[Move], left: u32, tried: &mut Tried) {
    if left == 0 {
        pair.compare_tier_drains();
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
            next.compare_drains();
            explore(&next, moves, left - 1, tried);
        }
    }
}

fn explore_worlds(moves: &[Move], length: u32) -> Tried {
    let mut tried = Tried::default();
    for (total, shared) in [(3, 1), (4, 1), (4, 2)] {
        let prompts = Prompts::two(shared);
        explore(&Pair::new(&prompts, total, 0, SLOTS), moves, length, &mut tried);
    }
    tried
}

#[test]
fn all_short_histories_of_two_requests_agree_with_the_reference() {
    let tried = explore_worlds(&single_steps(), 7);
    assert!(tried.histories >= 300_000, "{tried:?}");
    tried.seen.assert_met(&Case::PLAIN, 100);
}

#[test]
fn all_histories_of_a_few_admissions_agree_with_the_reference() {
    let tried = explore_worlds(&admissions(), 8);
    assert!(tried.histories >= 300_000, "{tried:?}");
    tried.seen.assert_met(&Case::PLAIN, 100);
}

/// What has happened before: nothing, or a request has come and gone and its copy is on its way.
fn beginnings() -> [Move; 2] {
    let slot = 0;
    let start = Operation::Start { slot, prompt: 0, known: 0 };
    let grow = Operation::Grow { slot, blocks: 3 };
    let commit = Operation::Commit { slot, blocks: 3 };
    let copy = Operation::StartCopy { slot };
    [vec![], vec![start, grow, commit, copy, Operation::Release { slot, worth: Worth::None }]]
}

#[test]
fn all_short_histories_with_any_small_tier_agree_with_the_reference() {
    let mut tried = Tried::default();
    let moves = services_with_tier();
    for copies in 0..=4 {
        for (total, shared) in [(3, 1), (6, 2)] {
            let prompts = Prompts::two(shared);
            for beginning in beginnings() {
                let mut pair = Pair::new(&prompts, total, copies, SLOTS);
                for operation in beginning {
                    pair.apply(operation);
                }
                explore(&pair, &moves, 5, &mut tried);
            }
        }
    }
    assert!(tried.histories >= 300_000, "{tried:?}");
    let rare = |case: &&Case| **case != Case::ReadSomeRecent;
    let cases: Vec<Case> = Case::TIER.iter().filter(rare).copied().collect();
    tried.seen.assert_met(&cases, 100);
    tried.seen.assert_met(&Case::WORTH, 100);
}
