//! The waiting queue of one instance, in the order of its policy.
//!
//! Equal ranks keep the order of joining. A preempted request keeps its turn, so under `fcfs` it
//! comes back at the head, before everything that joined later.

use crate::live::{LiveRequests, Slot};
use crate::oracle::Work;
use blis_core::{SloClass, Time};
use blis_kv::Pool;
use blis_policy::{Order, PerClass, Priority};
use std::cmp::Ordering;
use std::collections::{BTreeSet, BinaryHeap};

/// Requests that wait for their turn.
#[derive(Clone, Debug, Default)]
pub(crate) struct Queue {
    heap: BinaryHeap<Waiting>,
    /// Turns of those in the heap that have left the queue; never the first in line.
    gone: BTreeSet<u64>,
    turns: u64,
    by_class: PerClass<u32>,
}

#[derive(Clone, Copy, Debug)]
struct Waiting {
    rank: f64,
    turn: u64,
    slot: Slot,
    class: SloClass,
}

impl Queue {
    pub(crate) fn len(&self) -> usize {
        self.heap.len() - self.gone.len()
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.heap.is_empty()
    }

    /// A new request takes the next turn.
    pub(crate) fn join(
        &mut self,
        slot: Slot,
        rules: &Rules<'_>,
        pool: &Pool,
        live: &mut LiveRequests,
        now: Time,
    ) {
        live.get_mut(slot).turn = self.turns;
        self.turns += 1;
        self.put_back(slot, rules, pool, live, now);
    }

    /// A preempted request goes back to the turn it had.
    pub(crate) fn put_back(
        &mut self,
        slot: Slot,
        rules: &Rules<'_>,
        pool: &Pool,
        live: &mut LiveRequests,
        now: Time,
    ) {
        let rank = rules.rank(slot, pool, live, now);
        let live = live.get(slot);
        let class = live.request.class;
        self.by_class[class.index()] += 1;
        self.heap.push(Waiting { rank, turn: live.turn, slot, class });
    }

    /// Ranks everyone again, if ranks change while waiting.
    pub(crate) fn refresh(
        &mut self,
        rules: &Rules<'_>,
        pool: &Pool,
        live: &mut LiveRequests,
        now: Time,
    ) {
        if self.heap.is_empty() || !rules.vary() {
            return;
        }
        self.forget_gone();
        let mut waiting = std::mem::take(&mut self.heap).into_vec();
        for entry in &mut waiting {
            entry.rank = rules.rank(entry.slot, pool, live, now);
        }
        self.heap = BinaryHeap::from(waiting);
    }

    pub(crate) fn head(&self) -> Option<Slot> {
        self.heap.peek().map(|waiting| waiting.slot)
    }

    pub(crate) fn pop(&mut self) {
        if let Some(first) = self.heap.pop() {
            self.by_class[first.class.index()] -= 1;
            self.skip_gone();
        }
    }

    /// The request of `class` with that turn leaves the queue. It is only marked: who is not first
    /// in line cannot be taken out of a heap without looking at all of it.
    pub(crate) fn remove(&mut self, turn: u64, class: SloClass) {
        self.by_class[class.index()] -= 1;
        self.gone.insert(turn);
        self.skip_gone();
        if 2 * self.gone.len() > self.heap.len() {
            self.forget_gone();
        }
    }

    /// Makes sure that the first in line has not left.
    fn skip_gone(&mut self) {
        while let Some(first) = self.heap.peek()
            && !self.gone.is_empty()
            && self.gone.remove(&first.turn)
        {
            self.heap.pop();
        }
    }

    /// Takes those that have left out of the heap.
    fn forget_gone(&mut self) {
        if !self.gone.is_empty() {
            self.heap.retain(|waiting| !self.gone.contains(&waiting.turn));
            self.gone.clear();
        }
    }

    /// How many of each class wait.
    pub(crate) fn by_class(&self) -> PerClass<u32> {
        self.by_class
    }
}

/// The policies that order a queue.
pub(crate) struct Rules<'a> {
    pub(crate) priority: &'a dyn Priority,
    pub(crate) order: &'a dyn Order,
    /// Tokens of a block, for what policies see of prompts.
    pub(crate) block_size: u32,
    /// Whether they want to know what of a prompt is cached.
    pub(crate) cached: bool,
    /// The oracle that ranks instead of the order.
    pub(crate) oracle: Option<Work<'a>>,
}

impl Rules<'_> {
    /// Whether ranks change while requests wait.
    fn vary(&self) -> bool {
        self.priority.varies() || self.order.varies() || self.oracle.is_some()
    }

    fn rank(&self, slot: Slot, pool: &Pool, live: &mut LiveRequests, now: Time) -> f64 {
        let live = live.get_mut(slot);
        let mut waiting = live.waiting_view(self.block_size, 0);
        if self.cached || self.oracle.is_some() {
            waiting.cached_blocks = pool.lookup(waiting.request.prompt_blocks).blocks;
        }
        let priority = self.priority.priority(&waiting, now);
        let rank = match &self.oracle {
            None => self.order.rank(&waiting, priority, now),
            Some(work) => {
                let cached = waiting.cached_blocks * self.block_size;
                work.left(live, cached)
            }
        };
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
