//! A block pool as one would draw it: numbered blocks, a free list, a queue of idle blocks.
//!
//! It has no runs, so it costs per block and cannot split or merge anything wrongly. It only
//! remembers which blocks begin a run, to know how many runs there have to be without a tier and
//! which of the pool's cases an operation went through; nothing else depends on that.

use crate::coverage::{Case, Coverage};
use crate::prompts::BlockHash;
use crate::reference_tier::NaiveTier;
use std::collections::{BTreeMap, BTreeSet};

/// A physical block.
type BlockId = usize;

/// Who holds blocks.
pub(crate) type Holder = usize;

/// The naive pool.
#[derive(Clone, Debug)]
pub(crate) struct Reference {
    blocks: Vec<Block>,
    free: Vec<BlockId>,
    /// Cached blocks that nobody holds, with their worth: least first, then oldest first.
    idle: Vec<(u64, BlockId)>,
    published: BTreeMap<BlockHash, BlockId>,
    held: BTreeMap<Holder, Vec<BlockId>>,
    pub(crate) tier: NaiveTier,
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
    /// How often its run was claimed or committed.
    uses: u32,
    worth: u64,
}

/// What a lookup finds: blocks, how many of them are idle, and copies behind them.
pub(crate) type Found = (usize, usize, usize);

/// What the pool asked the evictor of a run, and what it was told.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Judged {
    pub(crate) of: blis_kv::Use,
    pub(crate) worth: u64,
}

impl Reference {
    /// A pool of `total` blocks with a tier of `copies` blocks.
    pub(crate) fn new(total: usize, copies: usize) -> Reference {
        Reference {
            blocks: vec![Block::default(); total],
            free: (0..total).collect(),
            idle: Vec::new(),
            published: BTreeMap::new(),
            held: BTreeMap::new(),
            tier: NaiveTier::new(copies),
            seen: Coverage::default(),
        }
    }

    /// Free, idle and used blocks.
    pub(crate) fn counts(&self) -> (usize, usize, usize) {
        let in_use = self.blocks.iter().filter(|block| !block.holders.is_empty()).count();
        (self.free.len(), self.idle.len(), in_use)
    }

    /// How many runs the cached blocks form, without a tier.
    pub(crate) fn runs(&self) -> usize {
        self.blocks.iter().filter(|block| block.begins_run).count()
    }

    /// How many blocks a holder has, and how many of them are published.
    pub(crate) fn holding(&self, holder: Holder) -> (usize, usize) {
        let held = &self.held[&holder];
        (held.len(), self.shared(holder).len())
    }

    /// What a holder shares, from the first block on.
    pub(crate) fn shared(&self, holder: Holder) -> Vec<BlockHash> {
        self.held[&holder].iter().filter_map(|&block| self.blocks[block].content).collect()
    }

    /// What is idle, in the order of the lists.
    pub(crate) fn idle(&self) -> Vec<BlockHash> {
        let content = |&(_, block): &(u64, BlockId)| self.blocks[block].content;
        self.idle.iter().map(|idle| content(idle).expect("idle blocks have content")).collect()
    }

    pub(crate) fn is_resident(&self, hash: BlockHash) -> bool {
        self.published.contains_key(&hash)
    }

    /// How many of `hashes`, from the first on, are published, how many of those are idle, and how
    /// many behind them are copied.
    pub(crate) fn lookup(&self, hashes: &[BlockHash]) -> Found {
        let (mut blocks, mut idle) = (0, 0);
        for hash in hashes {
            let Some(&block) = self.published.get(hash) else { break };
            blocks += 1;
            idle += usize::from(self.blocks[block].holders.is_empty());
        }
        let copied = hashes[blocks..].iter().take_while(|&&hash| self.tier.has(hash)).count();
        (blocks, idle, copied)
    }

    /// Gives a holder without blocks the published blocks of `hashes`.
    pub(crate) fn claim(&mut self, holder: Holder, hashes: &[BlockHash]) {
        let (blocks, idle, copied) = self.lookup(hashes);
        self.seen.note(Case::IdleHit, idle > 0);
        self.seen.note(Case::HeldHit, idle < blocks);
        self.seen.note(Case::MixedHit, 0 < idle && idle < blocks);
        self.seen.note(Case::CopiedHit, 0 < blocks && 0 < copied);
        self.seen.note(Case::CopiedHitAlone, 0 == blocks && 0 < copied);
        let found: Vec<BlockId> =
            hashes[..blocks].iter().map(|hash| self.published[hash]).collect();
        for &block in &found {
            self.hold(block, holder);
        }
        if let Some(&last) = found.last() {
            let cut = self.cut_after(last);
            self.seen.note(Case::SplitByClaim, cut);
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
                self.note_return(&hashes[index..]);
                let begins_run = self.publish(own, hashes[index], before);
                self.seen.note(Case::Extension, !appended && !begins_run);
                self.seen.note(Case::Branch, begins_run && before.is_some());
                appended = true;
                continue;
            };
            assert!(!appended, "what continues a block that was not published is not published");
            self.seen.note(Case::MergedBlock, true);
            self.seen.note(Case::MergedIdleBlock, self.blocks[known].holders.is_empty());
            self.blocks[own].holders.remove(&holder);
            self.free.push(own);
            self.hold(known, holder);
            self.held.get_mut(&holder).expect("a holder")[index] = known;
            if hashes.get(index + 1).is_none_or(|next| !self.published.contains_key(next)) {
                let cut = self.cut_after(known);
                self.seen.note(Case::SplitByCommit, cut);
            }
        }
    }

    /// Takes all blocks of a holder, the last one first. `judged` are the runs that the pool asked
    /// about, deepest first: only the pool knows where they end.
    pub(crate) fn release(&mut self, holder: Holder, judged: &[Judged]) {
        let held = self.held.remove(&holder).expect("a holder releases once");
        for (index, block) in held.into_iter().enumerate().rev() {
            self.blocks[block].holders.remove(&holder);
            if self.blocks[block].content.is_none() {
                self.free.push(block);
                continue;
            }
            let run = judged.iter().rfind(|run| run.of.upto as usize > index);
            let Judged { of, worth } = *run.expect("the pool asks about every run");
            if self.tier.total() == 0 {
                let known = (self.blocks[block].uses, self.blocks[block].worth);
                assert_eq!((of.uses, of.worth), known, "uses and worth before of block {index}");
            }
            self.blocks[block].worth = worth;
            if self.blocks[block].holders.is_empty() {
                self.seen.note(Case::WorthyBlock, worth > 0);
                let place = self.idle.partition_point(|&(other, _)| other <= worth);
                self.idle.insert(place, (worth, block));
            }
        }
    }

    /// The place of the idle block that goes first: no published block continues it, and if
    /// possible it is not being copied.
    fn first_idle(&self) -> usize {
        let mut continued = vec![false; self.blocks.len()];
        for before in self.blocks.iter().filter_map(|block| block.before) {
            continued[before] = true;
        }
        let ends = |&(_, block): &(u64, BlockId)| !continued[block];
        let settled = |idle: &(u64, BlockId)| ends(idle) && !self.is_leaving(idle.1);
        let first = self.idle.iter().position(settled);
        first.or_else(|| self.idle.iter().position(ends)).expect("something is idle")
    }

    fn is_leaving(&self, block: BlockId) -> bool {
        self.blocks[block].content.is_some_and(|hash| self.tier.is_leaving(hash))
    }

    /// Idle blocks that are being copied, but for those of `hashes`.
    pub(crate) fn leaving_besides(&self, hashes: &[BlockHash]) -> usize {
        let besides = |&&(_, block): &&(u64, BlockId)| {
            let hash = self.blocks[block].content.expect("idle blocks have content");
            self.is_leaving(block) && !hashes.contains(&hash)
        };
        self.idle.iter().filter(besides).count()
    }

    /// Frees the `count` idle blocks that go first.
    pub(crate) fn evict(&mut self, count: usize) {
        let mut begun = false;
        for _ in 0..count {
            assert!(!begun || self.tier.total() > 0, "one eviction takes blocks of one run");
            let place = self.first_idle();
            self.seen.note(Case::PassedOver, place > 0);
            let (_, block) = self.idle.remove(place);
            let Block { content, begins_run, .. } = std::mem::take(&mut self.blocks[block]);
            let hash = content.expect("idle blocks have content");
            self.published.remove(&hash);
            self.free.push(block);
            self.seen.note(Case::EvictedWithCopy, self.tier.has(hash));
            let abandoned = self.tier.abandon(hash);
            self.seen.note(Case::Abandoned, abandoned);
            begun = begins_run;
        }
        self.seen.note(Case::WholeEviction, begun);
        self.seen.note(Case::PartialEviction, !begun);
    }

    /// What `count` evictions would take, in that order.
    pub(crate) fn first_to_go(&self, count: usize) -> Vec<BlockHash> {
        let mut rest = self.clone();
        let mut hashes = Vec::new();
        for _ in 0..count {
            let (_, block) = rest.idle[rest.first_idle()];
            hashes.push(rest.blocks[block].content.expect("idle blocks have content"));
            rest.evict(1);
        }
        hashes
    }

    /// Checks that every block is in exactly one place.
    pub(crate) fn check(&self) {
        let mut places = vec![0; self.blocks.len()];
        for &block in self.free.iter().chain(self.idle.iter().map(|(_, block)| block)) {
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
        self.tier.check();
    }

    /// Remembers that the first of `hashes` is published though the tier knew of it.
    fn note_return(&mut self, hashes: &[BlockHash]) {
        let copied = self.tier.has(hashes[0]);
        let behind = hashes[1..].iter().any(|&hash| self.tier.has(hash));
        self.seen.note(Case::Adoption, copied);
        self.seen.note(Case::Gap, !copied && behind);
        self.seen.note(Case::BackBeforeLanding, self.tier.was_abandoned(hashes[0]));
    }

    fn hold(&mut self, block: BlockId, holder: Holder) {
        self.idle.retain(|&(_, idle)| idle != block);
        self.blocks[block].uses += 1;
        let new = self.blocks[block].holders.insert(holder);
        assert!(new, "a holder has a block once");
    }

    /// Makes a held block known; returns whether it begins a run: it lengthens the run before it
    /// only if nobody else holds that, nothing continues it, and the tier lacks it. What lengthens
    /// a run is counted with it.
    fn publish(&mut self, block: BlockId, hash: BlockHash, before: Option<BlockId>) -> bool {
        let lengthened = before.filter(|&above| {
            let Block { content, holders, .. } = &self.blocks[above];
            let copied = content.is_some_and(|hash| !self.tier.lacks(hash));
            holders.len() == 1 && !copied && self.continued_by(above).next().is_none()
        });
        let (uses, worth) =
            lengthened.map_or((1, 0), |above| (self.blocks[above].uses, self.blocks[above].worth));
        self.published.insert(hash, block);
        let own = &mut self.blocks[block];
        (own.content, own.before, own.begins_run) = (Some(hash), before, lengthened.is_none());
        (own.uses, own.worth) = (uses, worth);
        lengthened.is_none()
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
