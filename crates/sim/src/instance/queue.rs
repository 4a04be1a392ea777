//! The waiting queue of one instance, in the order of its policy.
//!
//! Equal ranks keep the order of joining. A preempted request keeps its turn, so under `fcfs` it
//! comes back at the head, before everything that joined later.

use crate::live::{LiveRequests, Slot};
use blis_core::Time;
use blis_policy::{Order, Priority};
use std::cmp::Ordering;
use std::collections::BinaryHeap;

/// Requests that wait for their turn.
#[derive(Debug, Default)]
pub(crate) struct Queue {
    heap: BinaryHeap<Waiting>,
    turns: u64,
}

#[derive(Clone, Copy, Debug)]
struct Waiting {
    rank: f64,
    turn: u64,
    slot: Slot,
}

impl Queue {
    pub(crate) fn len(&self) -> usize {
        self.heap.len()
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.heap.is_empty()
    }

    /// A new request takes the next turn.
    pub(crate) fn join(
        &mut self,
        slot: Slot,
        rules: &Rules<'_>,
        live: &mut LiveRequests,
        now: Time,
    ) {
        live.get_mut(slot).turn = self.turns;
        self.turns += 1;
        self.put_back(slot, rules, live, now);
    }

    /// A preempted request goes back to the turn it had.
    pub(crate) fn put_back(
        &mut self,
        slot: Slot,
        rules: &Rules<'_>,
        live: &mut LiveRequests,
        now: Time,
    ) {
        let rank = rules.rank(slot, live, now);
        self.heap.push(Waiting { rank, turn: live.get(slot).turn, slot });
    }

    /// Ranks everyone again, if ranks change while waiting.
    pub(crate) fn refresh(&mut self, rules: &Rules<'_>, live: &mut LiveRequests, now: Time) {
        if !rules.priority.varies() || self.heap.len() < 2 {
            return;
        }
        let mut waiting = std::mem::take(&mut self.heap).into_vec();
        for entry in &mut waiting {
            entry.rank = rules.rank(entry.slot, live, now);
        }
        self.heap = BinaryHeap::from(waiting);
    }

    pub(crate) fn head(&self) -> Option<Slot> {
        self.heap.peek().map(|waiting| waiting.slot)
    }

    pub(crate) fn pop(&mut self) {
        self.heap.pop();
    }
}

/// The policies that order a queue.
pub(crate) struct Rules<'a> {
    pub(crate) priority: &'a dyn Priority,
    pub(crate) order: &'a dyn Order,
    /// Tokens of a block, for what policies see of prompts.
    pub(crate) block_size: u32,
}

impl Rules<'_> {
    fn rank(&self, slot: Slot, live: &mut LiveRequests, now: Time) -> f64 {
        let live = live.get_mut(slot);
        let waiting = live.waiting_view(self.block_size);
        let priority = self.priority.priority(&waiting, now);
        let rank = self.order.rank(&waiting, priority);
        assert!(rank.is_finite() && priority.is_finite(), "a rank and a priority are numbers");
        live.priority = priority;
        rank
    }
}

impl Ord for Waiting {
    /// The greatest is the first in line: lowest rank, then earliest turn.
    fn cmp(&self, other: &Waiting) -> Ordering {
        other.rank.total_cmp(&self.rank).then_with(|| other.turn.cmp(&self.turn))
    }
}

impl PartialOrd for Waiting {
    fn partial_cmp(&self, other: &Waiting) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Waiting {
    fn eq(&self, other: &Waiting) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl Eq for Waiting {}
