//! A block pool as one would draw it: numbered blocks, a free list, a queue of idle blocks.
//!
//! It has no runs, so it costs per block and cannot split or merge anything wrongly. It only
//! remembers which blocks begin a run, to know how many runs there have to be and which of the
//! pool's cases an operation went through; nothing else depends on that.

use crate::prompts::BlockHash;
use std::collections::{BTreeMap, BTreeSet, VecDeque};

/// A physical block.
type BlockId = usize;

/// Who holds blocks.
pub(crate) type Holder = usize;

/// The naive pool.
#[derive(Clone, Debug)]
pub(crate) struct Reference {
    blocks: Vec<Block>,
    free: Vec<BlockId>,
    /// Cached blocks that nobody holds, oldest first.
    idle: VecDeque<BlockId>,
    published: BTreeMap<BlockHash, BlockId>,
    held: BTreeMap<Holder, Vec<BlockId>>,
    pub(crate) seen: Coverage,
}

#[derive(Clone, Debug, Default)]
struct Block {
    /// Its hash once it is full and known to the cache.
    content: Option<BlockHash>,
    /// The published block that it continues.
    before: Option<BlockId>,
    holders: BTreeSet<Holder>,
    begins_run: bool,
}

/// How often each of the interesting cases happened.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Coverage {
    /// Claims that end inside a run.
    pub(crate) splits_by_claim: u64,
    /// Commits that leave a published run inside it.
    pub(crate) splits_by_commit: u64,
    /// Blocks that were published already when they were committed.
    pub(crate) merged_blocks: u64,
    /// Those of them that were idle.
    pub(crate) merged_idle_blocks: u64,
    /// Claims of idle blocks.
    pub(crate) idle_hits: u64,
    /// Claims of blocks in use.
    pub(crate) held_hits: u64,
    /// Claims that begin with blocks in use and end with idle ones.
    pub(crate) mixed_hits: u64,
    /// Commits that lengthen the run that the request holds.
    pub(crate) extensions: u64,
    /// Commits that begin a new run below another.
    pub(crate) branches: u64,
    /// Evictions that leave the beginning of a run.
    pub(crate) partial_evictions: u64,
    /// Evictions of a whole run.
    pub(crate) whole_evictions: u64,
}

impl Coverage {
    /// All cases by name.
    pub(crate) fn cases(&self) -> [(&'static str, u64); 11] {
        [
            ("splits by claim", self.splits_by_claim),
            ("splits by commit", self.splits_by_commit),
            ("merged blocks", self.merged_blocks),
            ("merged idle blocks", self.merged_idle_blocks),
            ("idle hits", self.idle_hits),
            ("held hits", self.held_hits),
            ("mixed hits", self.mixed_hits),
            ("extensions in place", self.extensions),
            ("branches", self.branches),
            ("partial evictions", self.partial_evictions),
            ("whole evictions", self.whole_evictions),
        ]
    }

    pub(crate) fn add(&mut self, other: &Coverage) {
        self.splits_by_claim += other.splits_by_claim;
        self.splits_by_commit += other.splits_by_commit;
        self.merged_blocks += other.merged_blocks;
        self.merged_idle_blocks += other.merged_idle_blocks;
        self.idle_hits += other.idle_hits;
        self.held_hits += other.held_hits;
        self.mixed_hits += other.mixed_hits;
        self.extensions += other.extensions;
        self.branches += other.branches;
        self.partial_evictions += other.partial_evictions;
        self.whole_evictions += other.whole_evictions;
    }
}

impl Reference {
    pub(crate) fn new(total: usize) -> Reference {
        Reference {
            blocks: vec![Block::default(); total],
            free: (0..total).collect(),
            idle: VecDeque::new(),
            published: BTreeMap::new(),
            held: BTreeMap::new(),
            seen: Coverage::default(),
        }
    }

    /// Free, idle and used blocks.
    pub(crate) fn counts(&self) -> (usize, usize, usize) {
        let in_use = self.blocks.iter().filter(|block| !block.holders.is_empty()).count();
        (self.free.len(), self.idle.len(), in_use)
    }

    /// How many runs the cached blocks form.
    pub(crate) fn runs(&self) -> usize {
        self.blocks.iter().filter(|block| block.begins_run).count()
    }

    /// How many blocks a holder has, and how many of them are published.
    pub(crate) fn holding(&self, holder: Holder) -> (usize, usize) {
        let held = &self.held[&holder];
        let shared = held.iter().filter(|&&block| self.blocks[block].content.is_some());
        (held.len(), shared.count())
    }

    /// How many of `hashes`, from the first on, are published, and how many of those are idle.
    pub(crate) fn lookup(&self, hashes: &[BlockHash]) -> (usize, usize) {
        let (mut blocks, mut idle) = (0, 0);
        for hash in hashes {
            let Some(&block) = self.published.get(hash) else { break };
            blocks += 1;
            idle += usize::from(self.blocks[block].holders.is_empty());
        }
        (blocks, idle)
    }

    /// Gives a holder without blocks the published blocks of `hashes`.
    pub(crate) fn claim(&mut self, holder: Holder, hashes: &[BlockHash]) {
        let (blocks, idle) = self.lookup(hashes);
        self.seen.idle_hits += u64::from(idle > 0);
        self.seen.held_hits += u64::from(idle < blocks);
        self.seen.mixed_hits += u64::from(0 < idle && idle < blocks);
        let found: Vec<BlockId> =
            hashes[..blocks].iter().map(|hash| self.published[hash]).collect();
        for &block in &found {
            self.hold(block, holder);
        }
        if let Some(&last) = found.last() {
            self.seen.splits_by_claim += u64::from(self.cut_after(last));
        }
        let before = self.held.insert(holder, found);
        assert!(before.is_none(), "a holder claims once");
    }

    /// Gives a holder free blocks.
    pub(crate) fn grow(&mut self, holder: Holder, blocks: usize) {
        for _ in 0..blocks {
            let block = self.free.pop().expect("the caller has made room");
            self.blocks[block].holders.insert(holder);
            self.held.get_mut(&holder).expect("a holder").push(block);
        }
    }

    /// Publishes the blocks of a holder whose hashes are given, or exchanges them for those that
    /// are published already.
    pub(crate) fn commit(&mut self, holder: Holder, hashes: &[BlockHash]) {
        let (_, shared) = self.holding(holder);
        let mut appended = false;
        for index in shared..hashes.len() {
            let own = self.held[&holder][index];
            let before = index.checked_sub(1).map(|above| self.held[&holder][above]);
            let Some(&known) = self.published.get(&hashes[index]) else {
                let begins_run = self.publish(own, hashes[index], before);
                self.seen.extensions += u64::from(!appended && !begins_run);
                self.seen.branches += u64::from(begins_run && before.is_some());
                appended = true;
                continue;
            };
            assert!(!appended, "what continues a block that was not published is not published");
            self.seen.merged_blocks += 1;
            self.seen.merged_idle_blocks += u64::from(self.blocks[known].holders.is_empty());
            self.blocks[own].holders.remove(&holder);
            self.free.push(own);
            self.hold(known, holder);
            self.held.get_mut(&holder).expect("a holder")[index] = known;
            if hashes.get(index + 1).is_none_or(|next| !self.published.contains_key(next)) {
                self.seen.splits_by_commit += u64::from(self.cut_after(known));
            }
        }
    }

    /// Takes all blocks of a holder, the last one first.
    pub(crate) fn release(&mut self, holder: Holder) {
        let held = self.held.remove(&holder).expect("a holder releases once");
        for block in held.into_iter().rev() {
            self.blocks[block].holders.remove(&holder);
            if self.blocks[block].content.is_none() {
                self.free.push(block);
            } else if self.blocks[block].holders.is_empty() {
                self.idle.push_back(block);
            }
        }
    }

    /// Frees the oldest idle blocks, up to `limit` and not beyond the beginning of a run; returns
    /// how many.
    pub(crate) fn evict(&mut self, limit: usize) -> usize {
        for evicted in 1..=limit {
            let block = self.idle.pop_front().expect("something is idle");
            assert!(self.continued_by(block).next().is_none(), "leaves go before trunks");
            let Block { content, begins_run, .. } = std::mem::take(&mut self.blocks[block]);
            self.published.remove(&content.expect("idle blocks have content"));
            self.free.push(block);
            if begins_run {
                self.seen.whole_evictions += 1;
                return evicted;
            }
        }
        self.seen.partial_evictions += 1;
        limit
    }

    /// Checks that every block is in exactly one place.
    pub(crate) fn check(&self) {
        let mut places = vec![0; self.blocks.len()];
        for &block in self.free.iter().chain(&self.idle) {
            places[block] += 1;
            assert!(self.blocks[block].holders.is_empty(), "held by nobody");
        }
        for (id, block) in self.blocks.iter().enumerate() {
            places[id] += usize::from(!block.holders.is_empty());
            let named = block.content.map(|hash| self.published[&hash]);
            assert!(named.is_none_or(|named| named == id), "one block per content");
        }
        let full = self.blocks.iter().filter(|block| block.content.is_some()).count();
        assert_eq!(full, self.published.len(), "only full blocks are published");
        assert!(self.free.iter().all(|&block| self.blocks[block].content.is_none()));
        assert!(places.iter().all(|&count| count == 1), "each block is in one place");
    }

    fn hold(&mut self, block: BlockId, holder: Holder) {
        self.idle.retain(|&idle| idle != block);
        let new = self.blocks[block].holders.insert(holder);
        assert!(new, "a holder has a block once");
    }

    /// Makes a held block known; returns whether it begins a run: it lengthens the run before it
    /// only if nobody else holds that and nothing continues it.
    fn publish(&mut self, block: BlockId, hash: BlockHash, before: Option<BlockId>) -> bool {
        let lengthens = before.is_some_and(|above| {
            self.blocks[above].holders.len() == 1 && self.continued_by(above).next().is_none()
        });
        self.published.insert(hash, block);
        let own = &mut self.blocks[block];
        (own.content, own.before, own.begins_run) = (Some(hash), before, !lengthens);
        !lengthens
    }

    /// Ends a run after `block`; returns whether it went on.
    fn cut_after(&mut self, block: BlockId) -> bool {
        let inner = self.continued_by(block).find(|&next| !self.blocks[next].begins_run);
        if let Some(next) = inner {
            self.blocks[next].begins_run = true;
        }
        inner.is_some()
    }

    /// The published blocks right after `block`.
    fn continued_by(&self, block: BlockId) -> impl Iterator<Item = BlockId> + '_ {
        let continues = move |id: &BlockId| self.blocks[*id].before == Some(block);
        (0..self.blocks.len()).filter(continues)
    }
}
