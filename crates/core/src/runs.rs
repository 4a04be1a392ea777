//! A tree of runs: block hashes of many prompts, stored as the stretches they share.
//!
//! Both the KV pool (what is cached) and a router's picture of it (what it believes is cached) need
//! the longest known prefix of a prompt. Hashes are chained, so a block determines everything
//! before it, and the prompts form a tree. A node is a *run* of consecutive blocks, so that looking
//! a prompt up costs one map access per run, not per block:
//!
//! ```text
//!   root ── [ sys 0..32 ] ──┬── [ r1 0..16 ]
//!                           ├── [ r2 0..20 ] ── [ r2's second round 0..30 ]
//!                           └── [ r3 0..12 ]
//! ```
//!
//! A run is found by the hash of its first block. When a prompt leaves a run in the middle, the run
//! is split and **the tail keeps the id**, so whoever remembered the end of a run still points at
//! its end. What a node means (references, recency, holders) is the payload `T`; this file knows
//! nothing about it.

use crate::content::BlockHash;
use hashbrown::HashTable;

/// A run of the tree.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RunId(u32);

/// Runs of block hashes with a payload each.
#[derive(Clone, Debug)]
pub struct RunTree<T> {
    nodes: Vec<Node<T>>,
    vacant: Vec<RunId>,
    store: Store,
    heads: HashTable<Head>,
}

#[derive(Clone, Debug)]
struct Node<T> {
    hashes: Stretch,
    parent: Option<RunId>,
    children: u32,
    payload: T,
}

/// A run and the hash of its first block, by which it is found.
#[derive(Clone, Copy, Debug)]
struct Head {
    hash: BlockHash,
    run: RunId,
}

/// One step of a walk: a run, and how many of its blocks the prompt shares.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Match {
    /// The run.
    pub run: RunId,
    /// How many of its first blocks agree (>= 1).
    pub blocks: u32,
    /// Whether that is the whole run.
    pub whole: bool,
}

impl RunId {
    /// The id as an index into tables.
    pub const fn index(self) -> usize {
        self.0 as usize
    }
}

impl<T> Default for RunTree<T> {
    fn default() -> RunTree<T> {
        RunTree {
            nodes: Vec::new(),
            vacant: Vec::new(),
            store: Store::default(),
            heads: HashTable::new(),
        }
    }
}

impl<T> RunTree<T> {
    /// The runs that `hashes` follows from the root, deepest last; only the last may be partial.
    pub fn walk<'a>(&'a self, hashes: &'a [BlockHash]) -> impl Iterator<Item = Match> + 'a {
        let mut rest = hashes;
        std::iter::from_fn(move || {
            let run = self.find(*rest.first()?)?;
            let stored = self.hashes(run);
            let blocks = stored.iter().zip(rest).take_while(|(a, b)| a == b).count();
            let whole = blocks == stored.len();
            rest = if whole { &rest[blocks..] } else { &[] };
            Some(Match { run, blocks: count(blocks), whole })
        })
    }

    /// The run whose first block is `hash`.
    pub fn find(&self, hash: BlockHash) -> Option<RunId> {
        self.heads.find(hash, |head| head.hash == hash).map(|head| head.run)
    }

    /// Adds a run of `hashes` (not empty, its first block not yet the head of a run) below
    /// `parent`.
    pub fn insert(&mut self, parent: Option<RunId>, hashes: &[BlockHash], payload: T) -> RunId {
        debug_assert!(self.find(hashes[0]).is_none(), "a run with this head exists");
        let run = self.place(parent, payload);
        self.store.extend(&mut self.nodes[run.index()].hashes, hashes);
        if let Some(parent) = parent {
            self.nodes[parent.index()].children += 1;
        }
        self.index_head(run);
        run
    }

    /// Lengthens a run by `hashes`.
    ///
    /// # Panics
    /// If it has children: they continue its end.
    pub fn extend(&mut self, run: RunId, hashes: &[BlockHash]) {
        let node = &mut self.nodes[run.index()];
        assert!(node.children == 0, "a run with children cannot grow at its end");
        self.store.extend(&mut node.hashes, hashes);
    }

    /// Cuts a run after `at` blocks (0 < `at` < length). The tail keeps its id, children and
    /// payload; the head is new, with the payload that `head_payload` makes from the tail's.
    /// Returns the head.
    ///
    /// # Panics
    /// If `at` is not inside the run.
    pub fn split(&mut self, tail: RunId, at: u32, head_payload: impl FnOnce(&mut T) -> T) -> RunId {
        let node = &mut self.nodes[tail.index()];
        assert!(at > 0 && at < node.hashes.length, "a cut inside the run");
        let payload = head_payload(&mut node.payload);
        let parent = node.parent;
        self.unindex_head(tail);
        let head = self.place(parent, payload);
        let front = self.store.take_front(&mut self.nodes[tail.index()].hashes, at);
        self.nodes[head.index()].hashes = front;
        self.nodes[head.index()].children = 1;
        self.nodes[tail.index()].parent = Some(head);
        self.index_head(head);
        self.index_head(tail);
        head
    }

    /// Shortens a run by its last `blocks` blocks; a run without blocks is removed. Returns whether
    /// it was.
    ///
    /// # Panics
    /// If it has children, or fewer blocks.
    pub fn trim(&mut self, run: RunId, blocks: u32) -> bool {
        let node = &mut self.nodes[run.index()];
        assert!(node.children == 0, "only a leaf can be trimmed");
        if blocks < node.hashes.length {
            node.hashes.length -= blocks;
            return false;
        }
        assert!(blocks == node.hashes.length, "no more blocks than there are");
        self.unindex_head(run);
        let node = &mut self.nodes[run.index()];
        self.store.free(std::mem::take(&mut node.hashes));
        if let Some(parent) = node.parent.take() {
            self.nodes[parent.index()].children -= 1;
        }
        self.vacant.push(run);
        true
    }

    /// The run above.
    pub fn parent(&self, run: RunId) -> Option<RunId> {
        self.nodes[run.index()].parent
    }

    /// How many runs are directly below.
    pub fn children(&self, run: RunId) -> u32 {
        self.nodes[run.index()].children
    }

    /// The hashes of a run's blocks.
    pub fn hashes(&self, run: RunId) -> &[BlockHash] {
        self.store.get(&self.nodes[run.index()].hashes)
    }

    /// Length of a run in blocks.
    pub fn blocks(&self, run: RunId) -> u32 {
        self.nodes[run.index()].hashes.length
    }

    /// A run's payload.
    pub fn get(&self, run: RunId) -> &T {
        &self.nodes[run.index()].payload
    }

    /// A run's payload, to change it.
    pub fn get_mut(&mut self, run: RunId) -> &mut T {
        &mut self.nodes[run.index()].payload
    }

    /// How many runs there are.
    pub fn len(&self) -> usize {
        self.nodes.len() - self.vacant.len()
    }

    /// Whether there is no run.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// All runs, in the order of their ids; for checks and tests.
    pub fn runs(&self) -> impl Iterator<Item = RunId> + '_ {
        let ids = (0..count(self.nodes.len())).map(RunId);
        ids.filter(|run| self.nodes[run.index()].hashes.length > 0)
    }

    fn place(&mut self, parent: Option<RunId>, payload: T) -> RunId {
        let node = Node { hashes: Stretch::default(), parent, children: 0, payload };
        if let Some(run) = self.vacant.pop() {
            self.nodes[run.index()] = node;
            return run;
        }
        let run = RunId(count(self.nodes.len()));
        self.nodes.push(node);
        run
    }

    fn index_head(&mut self, run: RunId) {
        let hash = self.hashes(run)[0];
        self.heads.insert_unique(hash, Head { hash, run }, |head| head.hash);
    }

    fn unindex_head(&mut self, run: RunId) {
        let hash = self.hashes(run)[0];
        let entry = self.heads.find_entry(hash, |head| head.run == run);
        entry.expect("every run has its head").remove();
    }
}

/// The hashes of all runs, in one piece of memory: runs come and go with every request, and giving
/// each its own allocation costs more than everything else that is done with it. Room is handed
/// out in sizes of 4, 6, 8, 12, 16, 24, ... and used again by size.
#[derive(Clone, Debug, Default)]
struct Store {
    words: Vec<BlockHash>,
    /// Starts of stretches that are free, by size.
    free: Vec<Vec<usize>>,
}

/// Where the hashes of a run are.
#[derive(Clone, Copy, Debug, Default)]
struct Stretch {
    start: usize,
    length: u32,
    /// Which of the sizes it has; of no meaning while the length is 0.
    size: u8,
}

impl Stretch {
    fn room(self) -> usize {
        if self.length == 0 { 0 } else { room(self.size.into()) }
    }
}

/// Hashes that fit a stretch of that size: 4, 6, 8, 12, 16, 24, ...
fn room(size: usize) -> usize {
    (4 + 2 * (size % 2)) << (size / 2)
}

/// The smallest size with room for `length` hashes (at least 1).
fn size_for(length: usize) -> usize {
    let doublings = length.div_ceil(4).next_power_of_two().trailing_zeros() as usize;
    // Half-way between two powers of two may do.
    if doublings > 0 && length <= room(2 * doublings - 1) {
        2 * doublings - 1
    } else {
        2 * doublings
    }
}

impl Store {
    fn get(&self, stretch: &Stretch) -> &[BlockHash] {
        &self.words[stretch.start..stretch.start + stretch.length as usize]
    }

    fn extend(&mut self, stretch: &mut Stretch, hashes: &[BlockHash]) {
        let old = stretch.length as usize;
        let length = old + hashes.len();
        if length > stretch.room() {
            let new = self.allocate(length);
            self.words.copy_within(stretch.start..stretch.start + old, new.start);
            self.free(*stretch);
            *stretch = new;
        }
        let end = stretch.start + old;
        self.words[end..end + hashes.len()].copy_from_slice(hashes);
        stretch.length = count(length);
    }

    /// Moves the first `at` hashes to a stretch of their own.
    fn take_front(&mut self, stretch: &mut Stretch, at: u32) -> Stretch {
        let (start, cut) = (stretch.start, stretch.start + at as usize);
        let mut front = self.allocate(at as usize);
        self.words.copy_within(start..cut, front.start);
        self.words.copy_within(cut..start + stretch.length as usize, start);
        front.length = at;
        stretch.length -= at;
        front
    }

    /// An empty stretch with room for `length` hashes.
    fn allocate(&mut self, length: usize) -> Stretch {
        let size = size_for(length);
        let reused = self.free.get_mut(size).and_then(Vec::pop);
        let start = reused.unwrap_or_else(|| {
            let start = self.words.len();
            self.words.resize(start + room(size), 0);
            start
        });
        Stretch { start, length: 0, size: u8::try_from(size).expect("at most 64") }
    }

    fn free(&mut self, stretch: Stretch) {
        if stretch.length > 0 {
            let size = usize::from(stretch.size);
            self.free.resize(self.free.len().max(size + 1), Vec::new());
            self.free[size].push(stretch.start);
        }
    }
}

fn count(n: usize) -> u32 {
    u32::try_from(n).expect("block and run counts fit u32")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn matched(tree: &RunTree<u32>, hashes: &[u64]) -> u32 {
        tree.walk(hashes).map(|step| step.blocks).sum()
    }

    #[test]
    fn a_walk_finds_the_longest_known_prefix() {
        let mut tree = RunTree::default();
        let top = tree.insert(None, &[1, 2, 3], 0);
        tree.insert(Some(top), &[4, 5], 0);
        for (prompt, blocks) in [
            (&[1, 2, 3, 4, 5, 6][..], 5),
            (&[1, 2, 3, 9], 3),
            (&[1, 2, 9], 2),
            (&[9], 0),
            (&[], 0),
            (&[4, 5], 2),
        ] {
            assert_eq!(matched(&tree, prompt), blocks, "{prompt:?}");
        }
    }

    #[test]
    fn splitting_keeps_the_tail_id_and_what_is_found() {
        let mut tree = RunTree::default();
        let run = tree.insert(None, &[1, 2, 3, 4], 7);
        let child = tree.insert(Some(run), &[5], 8);
        let head = tree.split(run, 1, |tail| *tail + 100);
        assert_eq!((tree.hashes(head), tree.hashes(run)), (&[1][..], &[2, 3, 4][..]));
        assert_eq!((tree.parent(run), tree.parent(child)), (Some(head), Some(run)));
        assert_eq!((*tree.get(head), *tree.get(run)), (107, 7));
        assert_eq!(matched(&tree, &[1, 2, 3, 4, 5]), 5);
    }

    #[test]
    fn every_length_gets_the_smallest_size_with_room_for_it() {
        assert_eq!((0..6).map(room).collect::<Vec<_>>(), [4, 6, 8, 12, 16, 24]);
        for length in 1..1000 {
            let size = size_for(length);
            assert!(room(size) >= length, "{length} in {}", room(size));
            assert!(size == 0 || room(size - 1) < length, "{length} in {}", room(size));
        }
    }

    #[test]
    fn trimming_to_nothing_removes_the_run_and_its_id_is_used_again() {
        let mut tree = RunTree::default();
        let top = tree.insert(None, &[1, 2], 0);
        let leaf = tree.insert(Some(top), &[3, 4], 0);
        assert!(!tree.trim(leaf, 1));
        assert_eq!(matched(&tree, &[1, 2, 3, 4]), 3);
        assert!(tree.trim(leaf, 1));
        assert_eq!((tree.children(top), tree.runs().count()), (0, 1));
        assert_eq!(tree.insert(Some(top), &[9], 0), leaf);
        assert_eq!(matched(&tree, &[1, 2, 9]), 3);
    }
}
