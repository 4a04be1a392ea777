//! The pool and the reference side by side: every operation is done to both, then everything that
//! can be seen of them is compared.

use crate::operation::{Operation, Worth};
use crate::prompts::{BLOCK, Prompt, Prompts};
use crate::reference::{Asked, Reference};
use blis_kv::{Departure, Hit, Judged, Mirror, Pool, Shown, Table};

/// A live request.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Live {
    pub(crate) prompt: usize,
    pub(crate) table: Table,
}

/// The same history in the pool and in the reference.
#[derive(Clone, Debug)]
pub(crate) struct Pair<'a> {
    pub(crate) prompts: &'a Prompts,
    pub(crate) pool: Pool,
    pub(crate) reference: Reference,
    /// What the pool's changes tell.
    mirror: Mirror,
    /// By slot.
    pub(crate) live: Vec<Option<Live>>,
    /// Copies on their way, in the order in which they left.
    pub(crate) departures: Vec<(u64, Departure)>,
    /// Operations so far: the time, and the number of the next departure.
    pub(crate) now: u64,
}

impl<'a> Pair<'a> {
    /// Pools of `total` blocks and tiers of `copies` for at most `slots` requests at a time.
    pub(crate) fn new(prompts: &'a Prompts, total: u32, copies: u32, slots: usize) -> Pair<'a> {
        let mut pool = Pool::with_tier(total, copies);
        pool.tell_changes();
        Pair {
            prompts,
            pool,
            mirror: Mirror::new(BLOCK),
            reference: Reference::new(total as usize, copies as usize),
            live: vec![None; slots],
            departures: Vec::new(),
            now: 0,
        }
    }

    /// Does an operation to both and compares what is cheap to see. Returns whether there was
    /// something to do: if not, the next comparison tells whether nothing changed.
    pub(crate) fn apply(&mut self, operation: Operation) -> bool {
        self.now += 1;
        let done = match operation {
            Operation::Start { slot, prompt, known } => self.start(slot, prompt, known),
            Operation::Grow { slot, blocks } => self.grow(slot, blocks),
            Operation::Commit { slot, blocks } => self.commit(slot, blocks),
            Operation::Release { slot, worth } => self.release(slot, worth),
            Operation::Evict { blocks } => self.evict(blocks) > 0,
            Operation::Reload { slot } => self.reload(slot),
            Operation::StartCopy { slot } => self.start_copy(slot),
            Operation::StartCopyOfIdle { most } => self.start_copy_of_idle(most),
            Operation::Land { which } => self.land(which),
            Operation::CopyNow { blocks } => self.copy_now(blocks),
            Operation::EvictWithCopy { blocks } => self.evict_with_copy(blocks),
            Operation::CopyTableNow { slot } => self.copy_table_now(slot),
            Operation::Touch { prompt, from, upto, age } => self.touch(prompt, from, upto, age),
        };
        for change in self.pool.take_changes().into_iter().flatten() {
            self.mirror.apply(&change);
        }
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
        let hit = self.pool.lookup(whole.first(known));
        let table = self.pool.claim(hit);
        if let Some(leaf) = hit.leaf() {
            assert_eq!(table.leaf(), leaf, "the leaf that the hit foretold");
        }
        self.reference.claim(slot, &whole.hashes[..known]);
        self.live[slot] = Some(Live { prompt, table });
        true
    }

    pub(crate) fn grow(&mut self, slot: usize, blocks: u32) -> bool {
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

    pub(crate) fn commit(&mut self, slot: usize, blocks: u32) -> bool {
        let Some(live) = &mut self.live[slot] else { return false };
        let whole = &self.prompts.whole[live.prompt];
        let most = live.table.blocks().min(count(whole.len()));
        let full = (live.table.shared() + blocks).min(most);
        let done = full > live.table.shared();
        self.pool.commit(&mut live.table, whole.first(full as usize));
        self.reference.commit(slot, &whole.hashes[..full as usize]);
        done
    }

    fn release(&mut self, slot: usize, worth: Worth) -> bool {
        let Some(mut live) = self.live[slot].take() else { return false };
        let mut asked = Vec::new();
        let shared = live.table.shared();
        self.pool.release_cut(&mut live.table, |of| {
            let told = Judged { worth: worth.of(of), from: worth.from(of) };
            asked.push(Asked { of, told });
            told
        });
        assert_eq!(live.table, Table::default(), "a released table is empty");
        assert_eq!(asked.first().map_or(0, |run| run.of.upto), shared, "the deepest run first");
        assert!(asked.is_sorted_by(|a, b| a.of.upto > b.of.upto), "then those above it");
        self.reference.release(slot, &asked);
        true
    }

    /// Evicts up to `blocks` of the idle blocks that go first; returns how many.
    pub(crate) fn evict(&mut self, blocks: u32) -> u32 {
        let mut evicted = 0;
        while evicted < blocks
            && let Some(first) = self.pool.first_idle()
        {
            let taken = self.pool.evict(first, blocks - evicted);
            assert!(taken > 0, "an idle run has blocks");
            self.reference.evict(taken as usize);
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
        // Last, because a list of idle runs that is a circle has no end to walk to.
        self.check();
    }

    fn check(&self) {
        self.pool.check(self.live.iter().flatten().map(|live| &live.table));
    }

    fn compare_counts(&self) {
        let (free, idle, in_use) = self.reference.counts();
        let counts = (self.pool.free(), self.pool.idle(), self.pool.in_use());
        let counts = (counts.0 as usize, counts.1 as usize, counts.2 as usize);
        assert_eq!(counts, (free, idle, in_use), "free, idle, in use");
        assert_eq!(self.pool.available() as usize, free + idle, "available");
        assert_eq!(self.pool.total() as usize, free + idle + in_use, "total");
        assert_eq!(self.pool.first_idle().is_some(), idle > 0, "something to evict");
        assert_eq!(self.pool.copied() as usize, self.reference.tier.used(), "copied");
        assert_eq!(self.pool.leaving() as usize, self.reference.leaving_besides(&[]), "leaving");
        if !self.pool.has_tier() {
            // With one, runs also stand for copies, which the reference keeps block by block.
            assert_eq!(self.pool.runs(), self.reference.runs(), "runs");
        }
    }

    fn compare_lookup(&self, prompt: &Prompt) {
        let hit = self.pool.lookup(prompt.first(prompt.len()));
        let (blocks, idle, copied) = self.reference.lookup(&prompt.hashes);
        assert_eq!(seen(&hit), (blocks, idle, copied), "hit, idle hit, copied");
        let shown = self.mirror.lookup(prompt.first(prompt.len()));
        assert_eq!(shown, Shown { blocks: hit.blocks, copied: hit.copied }, "what events tell");
        let (free, all_idle, _) = self.reference.counts();
        let leaving = self.reference.leaving_besides(&prompt.hashes[..blocks]);
        let room = count(free + all_idle - idle - leaving);
        for blocks in [0, 1, room, room + 1, self.pool.total() + 1] {
            assert_eq!(self.pool.fits(&hit, blocks), blocks <= room, "{blocks} blocks fit");
        }
    }

    fn compare_wholes(&self) {
        for prompt in &self.prompts.whole {
            let hit = self.pool.lookup(prompt.first(prompt.len()));
            assert_eq!(seen(&hit), self.reference.lookup(&prompt.hashes), "left of {prompt:?}");
        }
    }

    /// Evicts copies of both, one block at a time, and compares what is left each time: that tells
    /// the order of the idle lists.
    pub(crate) fn compare_drains(&self) {
        let mut drained = self.clone();
        while drained.evict(1) > 0 {
            drained.compare_wholes();
        }
        drained.compare_counts();
        drained.check();
    }

    /// Lets everything end, then fills the tier with strange blocks, one at a time, and compares
    /// what is left each time: that tells the order of the copies.
    pub(crate) fn compare_tier_drains(&self) {
        if !self.pool.has_tier() || self.pool.total() == 0 {
            return;
        }
        let mut drained = self.clone();
        while drained.land(0) {}
        for slot in 0..drained.live.len() {
            drained.release(slot, Worth::None);
        }
        while drained.evict(u32::MAX) > 0 {}
        drained.compare_wholes();
        assert_eq!(drained.pool.free(), drained.pool.total(), "everything ends");
        for stranger in &self.prompts.strangers[..self.reference.tier.total()] {
            let mut table = Table::default();
            drained.pool.grow(&mut table, 1);
            drained.pool.commit(&mut table, stranger.first(1));
            assert_eq!(drained.pool.copy_table_now(&table, 0), 1, "a strange block is new");
            drained.pool.release(&mut table, |_| 0);
            let first = drained.pool.first_idle().expect("the strange block is idle");
            drained.pool.evict(first, 1);
            drained.reference.tier.store(stranger.hashes[0], 0);
            drained.compare_wholes();
        }
        drained.check();
        let strangers = drained.pool.runs();
        assert_eq!(strangers, self.reference.tier.total(), "nothing else is left in the tree");
    }
}

/// What can be seen of a hit.
fn seen(hit: &Hit) -> (usize, usize, usize) {
    (hit.blocks as usize, hit.idle as usize, hit.copied as usize)
}

pub(crate) fn count(blocks: usize) -> u32 {
    u32::try_from(blocks).expect("block counts fit u32")
}
