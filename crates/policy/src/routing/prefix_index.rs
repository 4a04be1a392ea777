//! What a router remembers of the prompts it sent: approximate prefix knowledge.
//!
//! Per instance an LRU set of blocks, fed by routing decisions alone: it never sees what an
//! engine really keeps or drops. Used by `prefix-affinity`, and by anyone else who wants to guess
//! cache hits without asking the engines.
//!
//! All instances share one tree of runs; each run lists who holds how much of it, and since when:
//!
//! ```text
//!   [ sys 0..32 ]  held by 0 (32, stamp 9), 1 (32, stamp 7)
//!      ├── [ r1 0..16 ]  held by 0 (16, stamp 9)
//!      └── [ r2 0..20 ]  held by 0 (12, stamp 3), 1 (20, stamp 7)
//! ```
//!
//! Every recorded prompt gets a stamp of its own and puts it on all runs of its path. So along a
//! path stamps never increase, and the blocks of one stamp are the end of the path it was made for:
//! forgetting the oldest stamp from its end upwards drops the least recently used block first, and
//! nobody ever holds a block without holding all blocks before it. One queue entry per prompt is
//! enough; entries whose blocks were all renewed since are stale and skipped.
//!
//! Blocks that no other prompt can have ([`Blocks::common`]) are not in the tree: they are the end
//! of their prompt, so its queue entry counts them.

use blis_core::runs::{Match, RunId, RunTree};
use blis_core::{Blocks, InstanceId};
use std::collections::VecDeque;
use std::slice;

/// A queue shorter than this is never searched for stale entries.
const SHORT_QUEUE: usize = 64;

/// Which prompt prefixes were sent to which instance, as far as a bounded memory reaches.
#[derive(Clone, Debug, Default)]
pub struct PrefixIndex {
    capacity: u64,
    tree: RunTree<Holders>,
    instances: Vec<Memory>,
    stamp: u64,
    /// The runs that the prompt looked at last follows.
    path: Path,
}

/// The runs that a prompt follows.
#[derive(Clone, Debug, Default)]
struct Path {
    runs: Vec<RunId>,
    /// How many blocks of the prompt they have.
    known: u32,
    /// After how many of its blocks the prompt leaves the last run, if not at its end.
    cut: Option<u32>,
}

/// Who holds a run, by instance.
///
/// Most runs are the ends of prompts, which one instance holds: it is kept in place, because
/// following a pointer to it would cost as much as all the rest.
#[derive(Clone, Debug)]
enum Holders {
    One(Holder),
    Many(Vec<Holder>),
}

#[derive(Clone, Copy, Debug)]
struct Holder {
    instance: u32,
    /// How many of the run's first blocks; less than all only while its stamp is being forgotten.
    held: u32,
    /// The prompt that last renewed it.
    stamp: u64,
}

/// What is remembered of one instance.
#[derive(Clone, Debug, Default)]
struct Memory {
    held: u64,
    /// Recorded prompts, oldest first.
    queue: VecDeque<Record>,
    /// The queue is searched for stale entries when it is longer than this.
    patience: usize,
}

/// A recorded prompt, or several that end in the same run one after the other: the last stamp, the
/// last run that carried it, and the blocks behind that run that no other prompt can have.
#[derive(Clone, Copy, Debug)]
struct Record {
    stamp: u64,
    leaf: Option<RunId>,
    private: u32,
}

impl PrefixIndex {
    /// An empty memory of `capacity` blocks per instance.
    pub fn new(capacity: u64) -> PrefixIndex {
        PrefixIndex { capacity, ..PrefixIndex::default() }
    }

    /// Tells `found` of each instance by its index how many leading blocks of `prompt` are
    /// remembered there, if any are; the last word counts.
    pub fn matches(&mut self, prompt: Blocks<'_>, mut found: impl FnMut(usize, u32)) {
        let PrefixIndex { tree, path, .. } = self;
        path.clear();
        for step in tree.walk(prompt.common()) {
            // Whoever holds this run holds the runs before it whole, so the deepest entry counts.
            for holder in tree.get(step.run).as_slice() {
                found(holder.instance as usize, path.known + holder.held.min(step.blocks));
            }
            path.push(step);
        }
    }

    /// Remembers that `prompt` was sent to `instance`, and forgets there what was used longest ago.
    /// Returns a stamp by which it can be forgotten before that.
    pub fn record(&mut self, instance: InstanceId, prompt: Blocks<'_>) -> u64 {
        let prompt = self.rememberable(prompt);
        self.matches(prompt, |_, _| {});
        self.record_on_path(instance, prompt)
    }

    /// The same for the prompt that `matches` was asked about last, if nothing was recorded or
    /// forgotten since.
    pub fn record_matched(&mut self, instance: InstanceId, prompt: Blocks<'_>) -> u64 {
        let all = prompt.len();
        let prompt = self.rememberable(prompt);
        if prompt.len() < all {
            return self.record(instance, prompt);
        }
        self.record_on_path(instance, prompt)
    }

    /// As much of a prompt as fits.
    fn rememberable<'a>(&self, prompt: Blocks<'a>) -> Blocks<'a> {
        prompt.first(u32::try_from(self.capacity).unwrap_or(u32::MAX))
    }

    /// Remembers a prompt that follows `self.path`.
    fn record_on_path(&mut self, instance: InstanceId, prompt: Blocks<'_>) -> u64 {
        if prompt.is_empty() {
            return self.stamp;
        }
        if self.instances.len() <= instance.index() {
            self.instances.resize_with(instance.index() + 1, Memory::default);
        }
        self.stamp += 1;
        self.cut_path();
        for at in 0..self.path.runs.len() {
            self.renew(self.path.runs[at], instance);
        }
        let common = prompt.common();
        let leaf = self.append(instance, common);
        self.remember(instance, leaf, prompt.len() - common.len());
        self.forget(instance);
        self.stamp
    }

    /// Forgets of `instance` what was recorded up to `stamp` and not since.
    pub fn forget_upto(&mut self, instance: InstanceId, stamp: u64) {
        let oldest = |index: &PrefixIndex| {
            index.instances.get(instance.index())?.queue.front().map(|record| record.stamp)
        };
        while oldest(self).is_some_and(|oldest| oldest <= stamp) {
            self.forget_oldest(instance, u64::MAX);
        }
    }

    /// Blocks remembered of `instance`.
    pub fn held(&self, instance: InstanceId) -> u64 {
        self.instances.get(instance.index()).map_or(0, |memory| memory.held)
    }

    /// Cuts the last run of the path where its prompt leaves it.
    fn cut_path(&mut self) {
        if let Some(at) = self.path.cut.take() {
            let tail = self.path.runs.pop().expect("the run to cut is on the path");
            let head = self.split(tail, at);
            self.path.runs.push(head);
        }
    }

    /// Cuts a run after `at` blocks, so that its head can get a newer stamp than its tail. Returns
    /// the head.
    fn split(&mut self, tail: RunId, at: u32) -> RunId {
        let head = self.tree.split(tail, at, |holders| holders.map(|h| h.held.min(at)));
        // Who holds no more than the head is being forgotten there: the run to go on with was the
        // tail, and is the head now. Only the oldest entry of a queue is ever half forgotten.
        for holder in self.tree.get(tail).as_slice().iter().filter(|h| h.held <= at) {
            let oldest = self.instances[holder.instance as usize].queue.front_mut();
            let oldest = oldest.expect("a run held in part has its prompt in the queue");
            assert_eq!(oldest.stamp, holder.stamp, "only the oldest prompt is held in part");
            oldest.leaf = Some(head);
        }
        let rest = self.tree.get(tail).map(|h| h.held.saturating_sub(at));
        *self.tree.get_mut(tail) = rest;
        head
    }

    /// Makes `instance` hold all of `run` under the newest stamp.
    fn renew(&mut self, run: RunId, instance: InstanceId) {
        let whole = self.tree.blocks(run);
        let held = &mut self.instances[instance.index()].held;
        let stamp = self.stamp;
        let newest = Holder { instance: instance.0, held: whole, stamp };
        let before = self.tree.get_mut(run).set(newest);
        *held += u64::from(whole - before);
    }

    /// Adds the blocks of a prompt after those of `self.path`, and returns the prompt's last run,
    /// if it has any.
    fn append(&mut self, instance: InstanceId, prompt: Blocks<'_>) -> Option<RunId> {
        let Path { runs, known, .. } = &self.path;
        let (last, known) = (runs.last().copied(), *known);
        if known == prompt.len() {
            return last;
        }
        if let Some(last) = last {
            // A conversation that stays on one instance stays one run, however many rounds it has.
            if self.tree.children(last) == 0 && self.tree.get(last).as_slice().len() == 1 {
                self.tree.extend(last, prompt, known);
                self.renew(last, instance);
                return Some(last);
            }
        }
        let run = self.tree.insert(last, prompt, known, Holders::Many(Vec::new()));
        self.renew(run, instance);
        Some(run)
    }

    /// Queues the newest prompt of `instance`, which ends in `leaf` and has `private` blocks behind
    /// it.
    fn remember(&mut self, instance: InstanceId, leaf: Option<RunId>, private: u32) {
        let memory = &mut self.instances[instance.index()];
        memory.held += u64::from(private);
        // Of a prompt that ends in the same run only what is behind the run is not renewed. Where
        // prompts are forgotten by their stamps, each has its own entry.
        let last = memory.queue.back_mut().filter(|last| last.leaf == leaf);
        if let Some(last) = last.filter(|_| private > 0 && self.capacity < u64::MAX)
            && let Some(sum) = last.private.checked_add(private)
        {
            (last.stamp, last.private) = (self.stamp, sum);
            return;
        }
        memory.queue.push_back(Record { stamp: self.stamp, leaf, private });
        if memory.queue.len() > memory.patience {
            // Stale entries are searched for when the queue has doubled since: constant work a
            // prompt, and never more than twice as many entries as live ones, plus a few.
            let tree = &self.tree;
            memory
                .queue
                .retain(|record| record.private > 0 || carries(tree, instance, *record).is_some());
            memory.patience = SHORT_QUEUE.max(2 * memory.queue.len());
        }
    }

    /// Forgets the least recently used blocks of `instance` until what is left fits the capacity.
    fn forget(&mut self, instance: InstanceId) {
        while let excess @ 1.. = self.held(instance).saturating_sub(self.capacity) {
            self.forget_oldest(instance, excess);
        }
    }

    /// Forgets at most `most` blocks of the last run of the oldest prompt in the queue of
    /// `instance`.
    fn forget_oldest(&mut self, instance: InstanceId, most: u64) {
        let memory = &mut self.instances[instance.index()];
        let most = u32::try_from(most).unwrap_or(u32::MAX);
        let record = memory.queue.front_mut().expect("what is held was recorded");
        if record.private > 0 {
            let dropped = record.private.min(most);
            record.private -= dropped;
            memory.held -= u64::from(dropped);
            return;
        }
        let (record, carries) = (*record, carries(&self.tree, instance, *record));
        let (Some(leaf), Some(at)) = (record.leaf, carries) else {
            memory.queue.pop_front();
            return;
        };
        let holders = self.tree.get_mut(leaf);
        let holder = &mut holders.as_mut_slice()[at];
        let dropped = holder.held.min(most);
        holder.held -= dropped;
        memory.held -= u64::from(dropped);
        if holder.held == 0 {
            holders.remove(at);
            match self.tree.parent(leaf) {
                Some(parent) => memory.queue[0].leaf = Some(parent),
                None => drop(memory.queue.pop_front()),
            }
        }
        self.shorten(leaf);
    }

    /// Cuts off the end of a run that nobody holds any more.
    fn shorten(&mut self, run: RunId) {
        // What continues a run is held by somebody who holds all of the run.
        if self.tree.children(run) > 0 {
            return;
        }
        let kept = self.tree.get(run).as_slice().iter().map(|h| h.held).max().unwrap_or(0);
        let unheld = self.tree.blocks(run) - kept;
        if unheld > 0 {
            self.tree.trim(run, unheld);
        }
    }
}

impl Path {
    fn clear(&mut self) {
        self.runs.clear();
        (self.known, self.cut) = (0, None);
    }

    fn push(&mut self, step: Match) {
        self.runs.push(step.run);
        self.known += step.blocks;
        self.cut = (!step.whole).then_some(step.blocks);
    }
}

impl Holders {
    fn as_slice(&self) -> &[Holder] {
        match self {
            Holders::One(holder) => slice::from_ref(holder),
            Holders::Many(holders) => holders,
        }
    }

    fn as_mut_slice(&mut self) -> &mut [Holder] {
        match self {
            Holders::One(holder) => slice::from_mut(holder),
            Holders::Many(holders) => holders,
        }
    }

    /// Where `instance` is among them, or where it would be.
    fn place(&self, instance: u32) -> Result<usize, usize> {
        self.as_slice().binary_search_by_key(&instance, |h| h.instance)
    }

    /// Adds or replaces a holder; returns how many blocks it held before.
    fn set(&mut self, holder: Holder) -> u32 {
        let at = match self.place(holder.instance) {
            Ok(at) => {
                let known = &mut self.as_mut_slice()[at];
                return std::mem::replace(known, holder).held;
            }
            Err(at) => at,
        };
        match self {
            Holders::One(other) => {
                let mut both = vec![*other];
                both.insert(at, holder);
                *self = Holders::Many(both);
            }
            Holders::Many(holders) if holders.capacity() == 0 => *self = Holders::One(holder),
            Holders::Many(holders) => holders.insert(at, holder),
        }
        0
    }

    fn remove(&mut self, at: usize) {
        match self {
            Holders::One(_) => *self = Holders::Many(Vec::new()),
            Holders::Many(holders) => drop(holders.remove(at)),
        }
    }

    /// The same holders with `held` blocks each, without those who hold none then.
    fn map(&self, held: impl Fn(&Holder) -> u32) -> Holders {
        let mapped = self.as_slice().iter().map(|h| Holder { held: held(h), ..*h });
        let mut mapped = mapped.filter(|h| h.held > 0);
        match self {
            Holders::One(_) => mapped.next().map_or(Holders::Many(Vec::new()), Holders::One),
            Holders::Many(_) => Holders::Many(mapped.collect()),
        }
    }
}

/// Where `instance` is among the holders of a record's last run, if the record is not stale.
///
/// The run may be gone and its id used for another one since; but a stamp is never used again.
fn carries(tree: &RunTree<Holders>, instance: InstanceId, record: Record) -> Option<usize> {
    let holders = tree.get(record.leaf?);
    let at = holders.place(instance.0).ok()?;
    (holders.as_slice()[at].stamp == record.stamp).then_some(at)
}

#[cfg(test)]
mod tests;
