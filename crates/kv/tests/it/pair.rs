//! The pool and the reference side by side: every operation is done to both, then everything that
//! can be seen of them is compared.

use crate::prompts::{Prompt, Prompts};
use crate::reference::Reference;
use blis_kv::{Pool, Table};
use std::fmt;

/// What can be done. Amounts are cut down to what is possible and an operation on a slot that is
/// taken or empty does nothing, so that every operation is legal in every state.
#[derive(Clone, Copy)]
pub(crate) enum Operation {
    /// A request comes whose prompt is `prompt`, and claims what is cached of the first `known`
    /// blocks.
    Start { slot: usize, prompt: usize, known: usize },
    /// A request gets up to so many blocks more; idle blocks are evicted for it.
    Grow { slot: usize, blocks: u32 },
    /// Up to so many more blocks of a request are full.
    Commit { slot: usize, blocks: u32 },
    /// A request goes.
    Release { slot: usize },
    /// Up to so many idle blocks are evicted.
    Evict { blocks: u32 },
}

/// One line each, so that a failing history is short enough to read.
impl fmt::Debug for Operation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Operation::Start { slot, prompt, known } => {
                write!(f, "{slot}: start prompt {prompt}, claim of {known}")
            }
            Operation::Grow { slot, blocks } => write!(f, "{slot}: grow {blocks}"),
            Operation::Commit { slot, blocks } => write!(f, "{slot}: commit {blocks}"),
            Operation::Release { slot } => write!(f, "{slot}: release"),
            Operation::Evict { blocks } => write!(f, "evict {blocks}"),
        }
    }
}

/// A live request.
#[derive(Clone, Copy, Debug)]
struct Live {
    prompt: usize,
    table: Table,
}

/// The same history in the pool and in the reference.
#[derive(Clone, Debug)]
pub(crate) struct Pair<'a> {
    prompts: &'a Prompts,
    pool: Pool,
    pub(crate) reference: Reference,
    /// By slot.
    live: Vec<Option<Live>>,
}

impl<'a> Pair<'a> {
    /// Pools of `total` blocks for at most `slots` requests at a time.
    pub(crate) fn new(prompts: &'a Prompts, total: u32, slots: usize) -> Pair<'a> {
        let reference = Reference::new(total as usize);
        Pair { prompts, pool: Pool::new(total), reference, live: vec![None; slots] }
    }

    /// Does an operation to both and compares them. Returns whether there was something to do: if
    /// not, the next comparison tells whether nothing changed.
    pub(crate) fn apply(&mut self, operation: Operation) -> bool {
        let done = match operation {
            Operation::Start { slot, prompt, known } => self.start(slot, prompt, known),
            Operation::Grow { slot, blocks } => self.grow(slot, blocks),
            Operation::Commit { slot, blocks } => self.commit(slot, blocks),
            Operation::Release { slot } => self.release(slot),
            Operation::Evict { blocks } => self.evict(blocks) > 0,
        };
        if done {
            self.compare();
        }
        done
    }

    fn start(&mut self, slot: usize, prompt: usize, known: usize) -> bool {
        if self.live[slot].is_some() {
            return false;
        }
        let whole = &self.prompts.whole[prompt];
        let known = known.min(whole.len());
        let table = self.pool.claim(self.pool.lookup(whole.first(known)));
        self.reference.claim(slot, &whole.hashes[..known]);
        self.live[slot] = Some(Live { prompt, table });
        true
    }

    fn grow(&mut self, slot: usize, blocks: u32) -> bool {
        let available = self.pool.available();
        let Some(live) = &self.live[slot] else { return false };
        // One block more than the prompt's, for generated tokens.
        let most = count(self.prompts.whole[live.prompt].len()) + 1;
        let blocks = blocks.min(most - live.table.blocks()).min(available);
        let shortfall = self.pool.shortfall(blocks);
        let missing = (blocks as usize).saturating_sub(self.reference.counts().0);
        assert_eq!(shortfall as usize, missing, "shortfall");
        assert_eq!(self.evict(shortfall), shortfall, "idle blocks are available");
        let live = self.live[slot].as_mut().expect("seen above");
        self.pool.grow(&mut live.table, blocks);
        self.reference.grow(slot, blocks as usize);
        blocks > 0
    }

    fn commit(&mut self, slot: usize, blocks: u32) -> bool {
        let Some(live) = &mut self.live[slot] else { return false };
        let whole = &self.prompts.whole[live.prompt];
        let most = live.table.blocks().min(count(whole.len()));
        let full = (live.table.shared() + blocks).min(most);
        let done = full > live.table.shared();
        self.pool.commit(&mut live.table, whole.first(full as usize));
        self.reference.commit(slot, &whole.hashes[..full as usize]);
        done
    }

    fn release(&mut self, slot: usize) -> bool {
        let Some(mut live) = self.live[slot].take() else { return false };
        self.pool.release(&mut live.table, |_| 0);
        assert_eq!(live.table, Table::default(), "a released table is empty");
        self.reference.release(slot);
        true
    }

    /// Evicts up to `blocks` of the oldest idle blocks; returns how many.
    fn evict(&mut self, blocks: u32) -> u32 {
        let mut evicted = 0;
        while evicted < blocks
            && let Some(oldest) = self.pool.first_idle()
        {
            let wanted = blocks - evicted;
            let taken = self.pool.evict(oldest, wanted);
            assert_eq!(taken as usize, self.reference.evict(wanted as usize), "evicted of a run");
            evicted += taken;
        }
        evicted
    }

    fn compare(&self) {
        self.reference.check();
        self.compare_counts();
        for (slot, live) in self.live.iter().enumerate() {
            let Some(Live { table, .. }) = live else { continue };
            let held = (table.blocks() as usize, table.shared() as usize);
            assert_eq!(held, self.reference.holding(slot), "blocks and shared blocks of {slot}");
        }
        for prompt in &self.prompts.lookups {
            self.compare_lookup(prompt);
        }
        self.compare_drains();
        // Last, because a list of idle runs that is a circle has no end to walk to.
        self.pool.check(self.live.iter().flatten().map(|live| &live.table));
    }

    fn compare_counts(&self) {
        let (free, idle, in_use) = self.reference.counts();
        let counts = (self.pool.free(), self.pool.idle(), self.pool.in_use());
        let counts = (counts.0 as usize, counts.1 as usize, counts.2 as usize);
        assert_eq!(counts, (free, idle, in_use), "free, idle, in use");
        assert_eq!(self.pool.available() as usize, free + idle, "available");
        assert_eq!(self.pool.total() as usize, free + idle + in_use, "total");
        assert_eq!(self.pool.runs(), self.reference.runs(), "runs");
        assert_eq!(self.pool.first_idle().is_some(), idle > 0, "something to evict");
    }

    fn compare_lookup(&self, prompt: &Prompt) {
        let hit = self.pool.lookup(prompt.first(prompt.len()));
        let (blocks, idle) = self.reference.lookup(&prompt.hashes);
        assert_eq!((hit.blocks as usize, hit.idle as usize), (blocks, idle), "hit, idle hit");
        let (free, all_idle, _) = self.reference.counts();
        let room = count(free + all_idle - idle);
        for blocks in [0, 1, room, room + 1, self.pool.total() + 1] {
            assert_eq!(self.pool.fits(&hit, blocks), blocks <= room, "{blocks} blocks fit");
        }
    }

    /// Evicts copies of both, one block at a time, and compares what is left each time.
    fn compare_drains(&self) {
        let mut drained = self.clone();
        while drained.evict(1) > 0 {
            for prompt in &self.prompts.whole {
                let left = drained.pool.lookup(prompt.first(prompt.len()));
                let left = (left.blocks as usize, left.idle as usize);
                assert_eq!(left, drained.reference.lookup(&prompt.hashes), "left of {prompt:?}");
            }
        }
        drained.compare_counts();
        drained.pool.check(self.live.iter().flatten().map(|live| &live.table));
    }
}

fn count(blocks: usize) -> u32 {
    u32::try_from(blocks).expect("block counts fit u32")
}
