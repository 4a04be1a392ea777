//! The index against a naive model of it.

use super::*;
use blis_core::random::{Purpose, mix};
use blis_core::{Content, Dice, Segment, StreamId};
use proptest::prelude::*;
use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};

const INSTANCES: u32 = 3;
/// Tokens of a block.
const SIZE: u32 = 4;

/// A prompt sent to an instance: the first `cut` blocks of a base, then `tail` blocks of its
/// own.
#[derive(Clone, Copy, Debug)]
struct Sent {
    instance: u32,
    base: u64,
    cut: u64,
    tail: u64,
    tail_blocks: u64,
}

impl Sent {
    fn content(self) -> Content {
        content(&[(self.base, self.cut), (100 + self.tail, self.tail_blocks)])
    }

    /// What tells each of its blocks, with all before it, from others.
    fn hashes(self) -> Vec<u64> {
        let base = (0..self.cut).map(|_| self.base);
        let tail = (0..self.tail_blocks).map(|_| 100 + self.tail);
        let chain = |hash: &mut u64, token: u64| {
            *hash = mix(*hash, token);
            Some(*hash)
        };
        base.chain(tail).scan(7, chain).collect()
    }
}

/// A content of (stream, blocks).
fn content(parts: &[(u64, u64)]) -> Content {
    let segment = |&(stream, blocks): &(u64, u64)| Segment {
        stream: StreamId(stream),
        tokens: SIZE * u32::try_from(blocks).unwrap(),
    };
    Content::new(parts.iter().map(segment), StreamId(u64::MAX))
}

/// An LRU of single blocks; of the blocks of one prompt the last is the least recently used.
#[derive(Default)]
struct Naive {
    blocks: BTreeMap<u64, (u64, Reverse<usize>)>,
}

impl Naive {
    fn matched(&self, prompt: &[u64]) -> usize {
        prompt.iter().take_while(|hash| self.blocks.contains_key(hash)).count()
    }

    /// Returns how many blocks were forgotten.
    fn record(&mut self, prompt: &[u64], stamp: u64, capacity: usize) -> usize {
        for (depth, hash) in prompt.iter().enumerate() {
            self.blocks.insert(*hash, (stamp, Reverse(depth)));
        }
        let excess = self.blocks.len().saturating_sub(capacity);
        for _ in 0..excess {
            let (oldest, _) = self.blocks.iter().min_by_key(|(_, age)| **age).unwrap();
            let oldest = *oldest;
            self.blocks.remove(&oldest);
        }
        excess
    }
}

/// What a sequence of prompts made happen.
#[derive(Debug, Default)]
struct Marks {
    forgotten: usize,
    splits: usize,
    splits_of_half_forgotten: usize,
    held_in_part: usize,
    extended: usize,
    removed: usize,
}

impl PrefixIndex {
    fn note(&self, instance: u32, prompt: Blocks<'_>, marks: &mut Marks) {
        let Some(last) = self.tree.walk(prompt).last() else { return };
        let holders = self.tree.get(last.run).as_slice();
        let known: u32 = self.tree.walk(prompt).map(|step| step.blocks).sum();
        if !last.whole {
            marks.splits += 1;
            let half = holders.iter().any(|h| h.held <= last.blocks);
            marks.splits_of_half_forgotten += usize::from(half);
        } else if known < prompt.len() {
            let alone = holders.len() == 1 && holders[0].instance == instance;
            marks.extended += usize::from(alone && self.tree.children(last.run) == 0);
        }
    }

    fn check(&self, marks: &mut Marks) {
        let mut held = vec![0; self.instances.len()];
        for run in self.tree.runs() {
            let holders = self.tree.get(run).as_slice();
            let longest = holders.iter().map(|h| h.held).max();
            assert_eq!(longest, Some(self.tree.blocks(run)), "nobody holds the end of {run:?}");
            assert!(holders.is_sorted_by_key(|h| h.instance));
            for holder in holders {
                assert!(holder.held > 0, "an empty hold of {run:?}");
                held[holder.instance as usize] += u64::from(holder.held);
                marks.held_in_part += usize::from(holder.held < self.tree.blocks(run));
                if let Some(parent) = self.tree.parent(run) {
                    let above = self.tree.get(parent);
                    let above = above.as_slice()[above.place(holder.instance).unwrap()];
                    assert_eq!(above.held, self.tree.blocks(parent), "a hole before {run:?}");
                    assert!(above.stamp >= holder.stamp, "older than what continues it");
                }
            }
        }
        for (memory, held) in self.instances.iter().zip(held) {
            assert_eq!(memory.held, held);
            assert!(memory.held <= self.capacity);
            assert!(memory.queue.len() <= memory.patience);
            let live: BTreeSet<u64> = memory.queue.iter().map(|r| r.stamp).collect();
            assert_eq!(live.len(), memory.queue.len(), "a prompt is queued once");
        }
    }
}

/// Plays `sequence` to the index and to the naive LRUs, and compares them after every prompt.
fn play(capacity: usize, sequence: &[Sent]) -> Marks {
    let mut marks = Marks::default();
    let mut index = PrefixIndex::new(capacity as u64);
    let mut naive: Vec<Naive> = (0..INSTANCES).map(|_| Naive::default()).collect();
    for (stamp, sent) in (1..).zip(sequence) {
        let content = sent.content();
        let prompt = content.prompt_blocks(SIZE);
        let room = u32::try_from(capacity).unwrap();
        index.note(sent.instance, prompt.first(room), &mut marks);
        let runs = index.tree.runs().count();
        index.record(InstanceId(sent.instance), prompt);
        marks.removed += usize::from(index.tree.runs().count() < runs);
        marks.forgotten += naive[sent.instance as usize].record(&sent.hashes(), stamp, capacity);
        index.check(&mut marks);
        for probe in sequence {
            let mut matched = [0; INSTANCES as usize];
            index.matches(probe.content().prompt_blocks(SIZE), |id, blocks| {
                matched[id] = blocks;
            });
            let hashes = probe.hashes();
            let expected: Vec<usize> = naive.iter().map(|n| n.matched(&hashes)).collect();
            assert_eq!(matched.map(|n| n as usize)[..], expected, "{probe:?} after {sent:?}");
        }
    }
    marks
}

fn any_sent() -> impl Strategy<Value = Sent> {
    (0..INSTANCES, 0..3_u64, 0..10_u64, 0..4_u64, 0..8_u64).prop_map(
        |(instance, base, cut, tail, tail_blocks)| Sent { instance, base, cut, tail, tail_blocks },
    )
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(512))]

    #[test]
    fn the_index_matches_exactly_what_an_lru_of_single_blocks_matches(
        capacity in 0..40_usize,
        sequence in prop::collection::vec(any_sent(), 1..60),
    ) {
        play(capacity, &sequence);
    }
}

#[test]
fn random_sequences_reach_every_corner_of_the_index() {
    let mut dice = Dice::new(1, Purpose::Routing, 0);
    let mut below = |n| dice.below(n) as u64;
    let mut total = Marks::default();
    for _ in 0..200 {
        let capacity = 1 + usize::try_from(below(40)).unwrap();
        let sequence: Vec<Sent> = (0..40)
            .map(|_| Sent {
                instance: u32::try_from(below(INSTANCES as usize)).unwrap(),
                base: below(3),
                cut: below(10),
                tail: below(4),
                tail_blocks: below(8),
            })
            .collect();
        let marks = play(capacity, &sequence);
        total.forgotten += marks.forgotten;
        total.splits += marks.splits;
        total.splits_of_half_forgotten += marks.splits_of_half_forgotten;
        total.held_in_part += marks.held_in_part;
        total.extended += marks.extended;
        total.removed += marks.removed;
    }
    let Marks { forgotten, splits, splits_of_half_forgotten, held_in_part, extended, removed } =
        total;
    let all = [forgotten, splits, splits_of_half_forgotten, held_in_part, extended, removed];
    assert!(all.iter().all(|n| *n >= 50), "{total:?}");
}

#[test]
fn blocks_that_only_one_prompt_can_have_are_counted_as_if_they_could_be_matched() {
    for capacity in [1, 7, 30, 200] {
        let mut dice = Dice::new(2, Purpose::Routing, capacity);
        let mut below = |n| dice.below(n) as u64;
        let mut indices = [PrefixIndex::new(capacity), PrefixIndex::new(capacity)];
        for number in 0..400 {
            let instance = InstanceId(u32::try_from(below(INSTANCES as usize)).unwrap());
            let base = (below(3), below(10));
            let segment = |(stream, blocks)| Segment {
                stream: StreamId(stream),
                tokens: SIZE * u32::try_from(blocks).unwrap(),
            };
            let own = 1_000 + number;
            let parts = [segment(base), segment((own, below(8)))];
            let plain = Content::new(parts, StreamId(own));
            let mut marked = plain.clone();
            marked.set_private();
            let seen = [&plain, &marked].map(|content| content.prompt_blocks(SIZE));
            let told = [0, 1].map(|which| {
                let mut matched = [0; INSTANCES as usize];
                indices[which].matches(seen[which], |id, blocks| matched[id] = blocks);
                indices[which].record_matched(instance, seen[which]);
                (
                    matched,
                    (0..INSTANCES)
                        .map(|id| indices[which].held(InstanceId(id)))
                        .collect::<Vec<_>>(),
                )
            });
            assert_eq!(told[0], told[1], "prompt {number} with room for {capacity}");
        }
    }
}

#[test]
fn a_prompt_longer_than_the_capacity_is_remembered_by_its_beginning() {
    let mut index = PrefixIndex::new(4);
    let long = content(&[(1, 10)]);
    index.record(InstanceId(0), content(&[(90, 2)]).prompt_blocks(SIZE));
    index.record(InstanceId(0), long.prompt_blocks(SIZE));
    let mut matched = [0];
    index.matches(long.prompt_blocks(SIZE), |id, blocks| matched[id] = blocks);
    assert_eq!((matched, index.held(InstanceId(0))), ([4], 4));
}

#[test]
fn an_index_without_capacity_remembers_nothing() {
    let mut index = PrefixIndex::new(0);
    let prompt = content(&[(1, 2)]);
    index.record(InstanceId(3), prompt.prompt_blocks(SIZE));
    let mut matched = [0; 4];
    index.matches(prompt.prompt_blocks(SIZE), |id, blocks| matched[id] = blocks);
    assert_eq!(matched, [0; 4]);
}

#[test]
fn memory_stays_bounded_however_often_the_same_prompts_come() {
    let mut index = PrefixIndex::new(1_000);
    for round in 0..20_000_u64 {
        let prompt = content(&[(round % 7, 8)]);
        index.record(InstanceId(0), prompt.prompt_blocks(SIZE));
    }
    assert_eq!(index.held(InstanceId(0)), 56);
    assert!(index.instances[0].queue.len() <= SHORT_QUEUE);
    assert_eq!(index.tree.runs().count(), 7);
}
