//! What is done to the tier, in the pool and in the reference.

use crate::coverage::Case;
use crate::pair::{Pair, count};
use crate::prompts::BlockHash;
use blis_kv::TransferId;

impl Pair<'_> {
    /// Reads the copies behind what a request shares: they are touched, get blocks, and are
    /// committed, as after a blocking reload.
    pub(crate) fn reload(&mut self, slot: usize) -> bool {
        let Some(live) = self.live[slot] else { return false };
        let whole = &self.prompts.whole[live.prompt];
        let hit = self.pool.lookup(whole.first(whole.len()));
        let private = live.table.blocks() - live.table.shared();
        if hit.copied == 0 || hit.blocks != live.table.shared() || private > 0 {
            return false;
        }
        let blocks = hit.copied.min(self.pool.available());
        self.read(live.prompt, hit.blocks, hit.blocks + blocks, 0);
        self.grow(slot, blocks) && self.commit(slot, blocks)
    }

    pub(crate) fn touch(&mut self, prompt: usize, from: u32, upto: u32, age: u64) -> bool {
        let upto = upto.min(count(self.prompts.whole[prompt].len()));
        self.read(prompt, from.min(upto), upto, age);
        true
    }

    fn read(&mut self, prompt: usize, from: u32, upto: u32, age: u64) {
        let whole = &self.prompts.whole[prompt];
        let since = self.now.saturating_sub(age);
        let touched = self.pool.touch(whole.first(whole.len()), from, upto, since);
        let reference = &mut self.reference;
        let (from, upto) = (from as usize, upto as usize);
        let there: Vec<BlockHash> = whole.hashes[from..upto]
            .iter()
            .copied()
            .filter(|&hash| reference.tier.has(hash))
            .collect();
        let came = |hash: &&BlockHash| reference.tier.since(**hash).expect("there") >= since;
        let recent = there.iter().filter(came).count();
        let copied = |at: usize| whole.hashes.get(at).is_some_and(|&hash| reference.tier.has(hash));
        let seen = &mut reference.seen;
        seen.note(Case::ReadFromInside, from > 0 && copied(from - 1) && copied(from));
        seen.note(Case::ReadUptoInside, upto > from && copied(upto - 1) && copied(upto));
        seen.note(Case::ReadSomeRecent, 0 < recent && recent < there.len());
        for &hash in there.iter().rev() {
            reference.tier.warm(hash);
        }
        assert_eq!(touched.recent as usize, recent, "recent copies");
    }

    pub(crate) fn start_copy(&mut self, slot: usize) -> bool {
        let Some(live) = &self.live[slot] else { return false };
        let departure = self.pool.start_copy(&live.table, TransferId(self.now));
        let mut lacking = self.warm_shared(slot);
        lacking.retain(|&hash| self.reference.tier.lacks(hash));
        self.depart(departure, &lacking);
        true
    }

    pub(crate) fn start_copy_of_idle(&mut self, most: u32) -> bool {
        let departure = self.pool.start_copy_of_idle(most, TransferId(self.now));
        let mut lacking = self.reference.idle();
        let limit = (most as usize).min(self.reference.tier.total());
        self.reference.seen.note(Case::CutToLimit, 0 < limit && limit < lacking.len());
        lacking.truncate(limit);
        lacking.retain(|&hash| self.reference.tier.lacks(hash));
        self.depart(departure, &lacking)
    }

    fn depart(&mut self, departure: Option<blis_kv::Departure>, hashes: &[BlockHash]) -> bool {
        let reference = &mut self.reference;
        let left = reference.tier.depart(hashes, self.now);
        let blocks = departure.as_ref().map_or(0, |departure| departure.blocks);
        assert_eq!(blocks as usize, left, "blocks that left");
        assert_eq!(departure.is_some(), left > 0, "nothing does not leave");
        self.departures.extend(departure.map(|departure| (self.now, departure)));
        left > 0
    }

    pub(crate) fn land(&mut self, which: usize) -> bool {
        if self.departures.is_empty() {
            return false;
        }
        let (id, departure) = self.departures.remove(which % self.departures.len());
        let landed = self.pool.land(&departure, self.now);
        let arrived = self.reference.tier.arrive(id, &mut self.reference.seen);
        assert_eq!(landed as usize, arrived.len(), "blocks that landed");
        for hash in arrived {
            self.store(hash);
        }
        true
    }

    pub(crate) fn copy_now(&mut self, blocks: u32) -> bool {
        let Some(run) = self.pool.first_idle() else { return false };
        let length = self.pool.clone().evict(run, u32::MAX);
        let wanted = blocks.min(length) as usize;
        let (same, copied) = self.pool.copy_now(run, blocks, self.now);
        assert_eq!(same, run, "the end of a run keeps its id");
        let mut hashes = self.reference.first_to_go(wanted);
        let there: Vec<bool> = hashes.iter().map(|&hash| self.reference.tier.has(hash)).collect();
        assert!(there.windows(2).all(|pair| pair[0] == pair[1]), "a run is copied whole");
        if there.first() == Some(&true) {
            for &hash in &hashes {
                self.warm(hash);
            }
            hashes.clear();
        }
        // What does not fit is left out from the leaves on.
        hashes.drain(..hashes.len().saturating_sub(self.reference.tier.total()));
        assert_eq!(copied as usize, hashes.len(), "blocks copied");
        self.copy(&hashes);
        blocks > 0
    }

    /// Evicts as an engine does that copies what it evicts.
    pub(crate) fn evict_with_copy(&mut self, blocks: u32) -> bool {
        let mut evicted = 0;
        while evicted < blocks && self.copy_now(blocks - evicted) {
            let run = self.pool.first_idle().expect("something was copied");
            let taken = self.pool.evict(run, blocks - evicted);
            self.reference.evict(taken as usize);
            evicted += taken;
        }
        evicted > 0
    }

    pub(crate) fn copy_table_now(&mut self, slot: usize) -> bool {
        let Some(live) = &self.live[slot] else { return false };
        let copied = self.pool.copy_table_now(&live.table, self.now);
        let shared = self.warm_shared(slot);
        let mut lacking = shared.clone();
        lacking.retain(|&hash| !self.reference.tier.has(hash));
        assert_eq!(copied as usize, lacking.len(), "blocks copied");
        self.copy(&lacking);
        for hash in shared {
            self.reference.tier.warm(hash);
        }
        true
    }

    /// Warms what the tier has of what a request shares, the deepest first, and returns all of it
    /// in that order. What does not fit into the tier is left out from the leaves on.
    fn warm_shared(&mut self, slot: usize) -> Vec<BlockHash> {
        let mut hashes = self.reference.shared(slot);
        let total = self.reference.tier.total();
        self.reference.seen.note(Case::CutToTier, 0 < total && total < hashes.len());
        hashes.truncate(total);
        hashes.reverse();
        for &hash in &hashes {
            if self.reference.tier.has(hash) {
                self.warm(hash);
            }
        }
        hashes
    }

    fn warm(&mut self, hash: BlockHash) {
        self.reference.tier.warm(hash);
        self.reference.seen.note(Case::CopiedAgain, true);
    }

    /// Copies blocks at once, also those that were on their way.
    fn copy(&mut self, hashes: &[BlockHash]) {
        for &hash in hashes {
            let on_its_way = self.reference.tier.abandon(hash);
            self.reference.seen.note(Case::CopiedOnItsWay, on_its_way);
            self.store(hash);
        }
    }

    fn store(&mut self, hash: BlockHash) {
        let reference = &mut self.reference;
        let gone = reference.tier.store(hash, self.now);
        reference.seen.note(Case::CopyDropped, gone.is_some());
        let resident = gone.is_some_and(|gone| reference.is_resident(gone));
        reference.seen.note(Case::CopyOfResidentDropped, resident);
    }
}
