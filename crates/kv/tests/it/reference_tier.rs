//! The CPU tier as one would draw it: a queue of copies of single blocks, and what is on its way.

use crate::coverage::{Case, Coverage};
use crate::prompts::BlockHash;

/// The naive tier.
#[derive(Clone, Debug, Default)]
pub(crate) struct NaiveTier {
    total: usize,
    /// Coldest first, with the time at which each came.
    copies: Vec<(BlockHash, u64)>,
    /// Departures in the order in which they left; each in the order in which it lands.
    leaving: Vec<Leaving>,
}

/// A departure.
#[derive(Clone, Debug)]
struct Leaving {
    id: u64,
    /// How many blocks left.
    left: usize,
    /// Those of them that are still to land.
    hashes: Vec<BlockHash>,
    /// Those that were evicted.
    abandoned: Vec<BlockHash>,
}

impl NaiveTier {
    pub(crate) fn new(total: usize) -> NaiveTier {
        NaiveTier { total, ..NaiveTier::default() }
    }

    pub(crate) fn total(&self) -> usize {
        self.total
    }

    pub(crate) fn used(&self) -> usize {
        self.copies.len()
    }

    /// When the copy of a block came, if it is there.
    pub(crate) fn since(&self, hash: BlockHash) -> Option<u64> {
        self.copies.iter().find(|copy| copy.0 == hash).map(|copy| copy.1)
    }

    pub(crate) fn has(&self, hash: BlockHash) -> bool {
        self.since(hash).is_some()
    }

    pub(crate) fn is_leaving(&self, hash: BlockHash) -> bool {
        self.leaving.iter().any(|departure| departure.hashes.contains(&hash))
    }

    pub(crate) fn was_abandoned(&self, hash: BlockHash) -> bool {
        self.leaving.iter().any(|departure| departure.abandoned.contains(&hash))
    }

    /// Whether a copy of it is neither there nor on its way.
    pub(crate) fn lacks(&self, hash: BlockHash) -> bool {
        !self.has(hash) && !self.is_leaving(hash)
    }

    /// Makes a copy that is there the warmest.
    pub(crate) fn warm(&mut self, hash: BlockHash) {
        let place = self.copies.iter().position(|copy| copy.0 == hash).expect("a copy");
        let copy = self.copies.remove(place);
        self.copies.push(copy);
    }

    /// A copy of a block came: it is the warmest. Returns the one that goes for it.
    pub(crate) fn store(&mut self, hash: BlockHash, now: u64) -> Option<BlockHash> {
        assert!(!self.has(hash), "one copy of a block");
        let full = self.copies.len() == self.total;
        let gone = full.then(|| self.copies.remove(0).0);
        self.copies.push((hash, now));
        gone
    }

    /// Blocks start on their way. Returns how many.
    pub(crate) fn depart(&mut self, hashes: &[BlockHash], id: u64) -> usize {
        assert!(hashes.len() <= self.total, "a departure fits the tier");
        let (left, hashes) = (hashes.len(), hashes.to_vec());
        if left > 0 {
            self.leaving.push(Leaving { id, left, hashes, abandoned: Vec::new() });
        }
        left
    }

    /// A departure ends. Returns the blocks of it that were not evicted, in the order in which they
    /// come.
    pub(crate) fn arrive(&mut self, id: u64, seen: &mut Coverage) -> Vec<BlockHash> {
        let place = self.leaving.iter().position(|departure| departure.id == id);
        let place = place.expect("a departure lands once");
        let departure = self.leaving.remove(place);
        let landed = departure.hashes.len();
        seen.note(Case::Overtaken, place > 0);
        seen.note(Case::LandedWhole, landed == departure.left);
        seen.note(Case::LandedInPart, 0 < landed && landed < departure.left);
        seen.note(Case::LandedNothing, landed == 0);
        departure.hashes
    }

    /// A block that is on its way will not land. Returns whether it was on its way.
    pub(crate) fn abandon(&mut self, hash: BlockHash) -> bool {
        let on_its_way = self.is_leaving(hash);
        for departure in &mut self.leaving {
            if departure.hashes.contains(&hash) {
                departure.hashes.retain(|&other| other != hash);
                departure.abandoned.push(hash);
            }
        }
        on_its_way
    }

    /// Checks that nothing is there or on its way twice.
    pub(crate) fn check(&self) {
        assert!(self.copies.len() <= self.total, "copies fit the tier");
        let leaving = self.leaving.iter().flat_map(|departure| departure.hashes.iter().copied());
        let mut all: Vec<BlockHash> =
            self.copies.iter().map(|copy| copy.0).chain(leaving).collect();
        all.sort_unstable();
        let known = all.len();
        all.dedup();
        assert_eq!(all.len(), known, "a block is copied once");
    }
}
