//! A tree of runs: the blocks of many prompts, stored as the stretches they share.
//!
//! Both the KV pool (what is cached) and a router's picture of it (what it believes is cached) need
//! the longest known prefix of a prompt. Prompts form a tree, and a node is a *run* of consecutive
//! blocks, described by the pieces of its content. So looking a prompt up costs by the runs and
//! pieces it follows, not by its blocks:
//!
//! ```text
//!   root ── [ sys 0..32 ] ──┬── [ r1 0..16 ]
//!                           ├── [ r2 0..20 ] ── [ r2's second round 0..30 ]
//!                           └── [ r3 0..12 ]
//! ```
//!
//! A run is found by the run above it and the content of its first block. When a prompt leaves a
//! run in the middle, the run is split and **the tail keeps the id**, so whoever remembered the end
//! of a run still points at its end. What a node means (references, recency, holders) is the
//! payload `T`; this file knows nothing about it.

use crate::content::{Blocks, Cursor, Piece};
use crate::random::mix;
use hashbrown::HashTable;
use smallvec::SmallVec;

/// A run of the tree.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RunId(u32);

/// Runs of blocks with a payload each. All blocks of one tree have the same size.
#[derive(Clone, Debug)]
pub struct RunTree<T> {
    nodes: Vec<Node<T>>,
    vacant: Vec<RunId>,
    heads: HashTable<Head>,
}

#[derive(Clone, Debug)]
struct Node<T> {
    /// Its content; adjacent pieces never continue one another. Nearly always a single piece; none
    /// of a blank run.
    pieces: SmallVec<[Piece; 1]>,
    /// Tokens of a block.
    size: u32,
    /// Length in blocks; 0 while the node is vacant.
    blocks: u32,
    /// Where it is in `heads`.
    head: u64,
    parent: Option<RunId>,
    children: u32,
    /// The numbers of its children, each `XORed` into it: of an only child it is the number.
    below: u32,
    payload: T,
}

/// A run, and the hash of the run above it and its first block.
#[derive(Clone, Copy, Debug)]
struct Head {
    hash: u64,
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
        RunTree { nodes: Vec::new(), vacant: Vec::new(), heads: HashTable::new() }
    }
}

impl<T> RunTree<T> {
    /// The runs that `prompt` follows from the root, deepest last; only the last may be partial.
    pub fn walk<'a>(&'a self, prompt: Blocks<'a>) -> impl Iterator<Item = Match> + 'a {
        let mut cursor = prompt.cursor(0);
        let mut left = prompt.len();
        let mut parent = None;
        std::iter::from_fn(move || {
            let step = self.step(parent, &mut cursor, left, prompt.size())?;
            left = if step.whole { left - step.blocks } else { 0 };
            parent = Some(step.run);
            Some(step)
        })
    }

    /// The run below `parent` that goes on with the blocks of `prompt` from `at` on.
    pub fn child(&self, parent: Option<RunId>, prompt: Blocks<'_>, at: u32) -> Option<Match> {
        self.step(parent, &mut prompt.cursor(at), prompt.len() - at, prompt.size())
    }

    /// The run below `parent` that begins as the content at `cursor`, which goes on behind the run
    /// if all of it agrees.
    fn step(
        &self,
        parent: Option<RunId>,
        cursor: &mut Cursor<'_>,
        left: u32,
        size: u32,
    ) -> Option<Match> {
        if left == 0 {
            return None;
        }
        let run = match parent.map(|parent| &self.nodes[parent.index()]) {
            // What was cut, or goes on alone, is followed without a look into the table.
            Some(Node { children: 0, .. }) => return None,
            Some(Node { children: 1, below, .. }) => RunId(*below),
            _ => {
                let mut hash = seed(parent);
                cursor.clone().take(size, |piece| hash = piece.fold(hash));
                self.heads.find(hash, |head| head.hash == hash)?.run
            }
        };
        let node = &self.nodes[run.index()];
        let most = node.blocks.min(left);
        let same = agreeing(&node.pieces, cursor, most * size) / size;
        (same > 0).then_some(Match { run, blocks: same, whole: same == node.blocks })
    }

    /// Adds a run of the blocks of `prompt` from `at` on (not empty) below `parent`, which ends
    /// there. No run may begin like it.
    pub fn insert(
        &mut self,
        parent: Option<RunId>,
        prompt: Blocks<'_>,
        at: u32,
        payload: T,
    ) -> RunId {
        debug_assert!(self.child(parent, prompt, at).is_none(), "a run begins like this");
        let run = self.place(parent, prompt.size(), payload);
        self.append(run, prompt, at);
        if let Some(parent) = parent {
            let node = &mut self.nodes[parent.index()];
            node.children += 1;
            node.below ^= run.0;
        }
        self.index_head(run);
        run
    }

    /// Adds a *blank* run, of blocks that no prompt will ever follow, below nothing.
    pub fn insert_blank(&mut self, blocks: u32, payload: T) -> RunId {
        let run = self.place(None, 0, payload);
        self.lengthen_blank(run, blocks);
        run
    }

    /// Adds blocks to a blank run.
    pub fn lengthen_blank(&mut self, run: RunId, blocks: u32) {
        self.nodes[run.index()].blocks += blocks;
    }

    /// Whether a run is blank.
    pub fn is_blank(&self, run: RunId) -> bool {
        self.nodes[run.index()].pieces.is_empty()
    }

    /// Lengthens a run, which ends there, by the blocks of `prompt` from `at` on.
    ///
    /// # Panics
    /// If it has children: they continue its end.
    pub fn extend(&mut self, run: RunId, prompt: Blocks<'_>, at: u32) {
        let children = self.nodes[run.index()].children;
        assert!(children == 0, "a run with children cannot grow at its end");
        self.append(run, prompt, at);
    }

    /// Cuts a run after `at` blocks (0 < `at` < length). The tail keeps its id, children and
    /// payload; the head is new, with the payload that `head_payload` makes from the tail's.
    /// Returns the head.
    ///
    /// # Panics
    /// If `at` is not inside the run.
    pub fn split(&mut self, tail: RunId, at: u32, head_payload: impl FnOnce(&mut T) -> T) -> RunId {
        let node = &mut self.nodes[tail.index()];
        assert!(at > 0 && at < node.blocks, "a cut inside the run");
        let payload = head_payload(&mut node.payload);
        let (parent, size, hash) = (node.parent, node.size, node.head);
        let head = self.place(parent, size, payload);
        // The head begins as the whole did, so it takes its place.
        let entry = self.heads.find_mut(hash, |head| head.run == tail);
        entry.expect("every run has its head").run = head;
        if let Some(parent) = parent {
            self.nodes[parent.index()].below ^= tail.0 ^ head.0;
        }
        let node = &mut self.nodes[tail.index()];
        node.blocks -= at;
        node.parent = Some(head);
        let front = take_front(&mut node.pieces, at * size);
        let node = &mut self.nodes[head.index()];
        (node.pieces, node.blocks, node.head) = (front, at, hash);
        (node.children, node.below) = (1, tail.0);
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
        assert!(blocks <= node.blocks, "no more blocks than there are");
        node.blocks -= blocks;
        let blank = node.pieces.is_empty();
        if node.blocks > 0 {
            if !blank {
                drop_back(&mut node.pieces, blocks * node.size);
            }
            return false;
        }
        if !blank {
            self.unindex_head(run);
        }
        let node = &mut self.nodes[run.index()];
        node.pieces.clear();
        if let Some(parent) = node.parent.take() {
            let node = &mut self.nodes[parent.index()];
            node.children -= 1;
            node.below ^= run.0;
        }
        self.vacant.push(run);
        true
    }

    /// Whether there is a run of this id, be it the one it was given to or a later one.
    pub fn contains(&self, run: RunId) -> bool {
        self.nodes.get(run.index()).is_some_and(|node| node.blocks > 0)
    }

    /// The run above.
    pub fn parent(&self, run: RunId) -> Option<RunId> {
        self.nodes[run.index()].parent
    }

    /// How many runs are directly below.
    pub fn children(&self, run: RunId) -> u32 {
        self.nodes[run.index()].children
    }

    /// Length of a run in blocks.
    pub fn blocks(&self, run: RunId) -> u32 {
        self.nodes[run.index()].blocks
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
        ids.filter(|run| self.nodes[run.index()].blocks > 0)
    }

    fn place(&mut self, parent: Option<RunId>, size: u32, payload: T) -> RunId {
        let pieces = SmallVec::new();
        let node =
            Node { pieces, size, blocks: 0, head: 0, parent, children: 0, below: 0, payload };
        if let Some(run) = self.vacant.pop() {
            self.nodes[run.index()] = node;
            return run;
        }
        let run = RunId(count(self.nodes.len()));
        self.nodes.push(node);
        run
    }

    fn append(&mut self, run: RunId, prompt: Blocks<'_>, at: u32) {
        let node = &mut self.nodes[run.index()];
        assert!(node.size == prompt.size(), "one block size in a tree");
        let blocks = prompt.len() - at;
        node.blocks += blocks;
        prompt.cursor(at).take(blocks * node.size, |piece| match node.pieces.last_mut() {
            Some(last) if last.is_continued_by(&piece) => last.tokens += piece.tokens,
            _ => node.pieces.push(piece),
        });
    }

    fn index_head(&mut self, run: RunId) {
        let node = &mut self.nodes[run.index()];
        node.head = seed(node.parent);
        let mut missing = node.size;
        for piece in &node.pieces {
            let taken = Piece { tokens: piece.tokens.min(missing), ..*piece };
            node.head = taken.fold(node.head);
            missing -= taken.tokens;
            if missing == 0 {
                break;
            }
        }
        let hash = node.head;
        self.heads.insert_unique(hash, Head { hash, run }, |head| head.hash);
    }

    fn unindex_head(&mut self, run: RunId) {
        let hash = self.nodes[run.index()].head;
        let entry = self.heads.find_entry(hash, |head| head.run == run);
        entry.expect("every run has its head").remove();
    }
}

/// What the hash of a run's first block starts from: the run above.
fn seed(parent: Option<RunId>) -> u64 {
    mix(0xB10C, parent.map_or(0, |run| u64::from(run.0) + 1))
}

/// How many of the first `limit` tokens of `pieces` are the tokens at `cursor`, which goes on
/// behind them.
fn agreeing(pieces: &[Piece], cursor: &mut Cursor<'_>, limit: u32) -> u32 {
    let mut same = 0;
    for piece in pieces {
        let mut piece = *piece;
        while piece.tokens > 0 && same < limit {
            let other = cursor.piece();
            if (piece.stream, piece.offset) != (other.stream, other.offset) {
                return same;
            }
            let tokens = piece.tokens.min(other.tokens).min(limit - same);
            piece.take(tokens);
            cursor.advance(tokens);
            same += tokens;
        }
    }
    same
}

/// Takes the first `tokens` tokens of `pieces` off.
fn take_front(pieces: &mut SmallVec<[Piece; 1]>, mut tokens: u32) -> SmallVec<[Piece; 1]> {
    let mut front = SmallVec::new();
    let mut whole = 0;
    while tokens > 0 {
        let piece = &mut pieces[whole];
        let taken = piece.take(piece.tokens.min(tokens));
        whole += usize::from(piece.tokens == 0);
        tokens -= taken.tokens;
        front.push(taken);
    }
    pieces.drain(..whole);
    front
}

/// Drops the last `tokens` tokens of `pieces`.
fn drop_back(pieces: &mut SmallVec<[Piece; 1]>, mut tokens: u32) {
    while tokens > 0 {
        let last = pieces.last_mut().expect("no more tokens than there are");
        let dropped = last.tokens.min(tokens);
        last.tokens -= dropped;
        tokens -= dropped;
        if last.tokens == 0 {
            pieces.pop();
        }
    }
}

fn count(n: usize) -> u32 {
    u32::try_from(n).expect("run counts fit u32")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::content::{Content, Segment};
    use crate::ids::StreamId;

    const SIZE: u32 = 4;

    /// A content of whole blocks, each named by the stream it is of.
    fn content(blocks: &[u64]) -> Content {
        let segment = |&stream: &u64| Segment { stream: StreamId(stream), tokens: SIZE };
        Content::new(blocks.iter().map(segment), StreamId(u64::MAX))
    }

    fn insert(tree: &mut RunTree<u32>, parent: Option<RunId>, blocks: &[u64], at: u32) -> RunId {
        tree.insert(parent, content(blocks).prompt_blocks(SIZE), at, 0)
    }

    fn matched(tree: &RunTree<u32>, blocks: &[u64]) -> u32 {
        let content = content(blocks);
        tree.walk(content.prompt_blocks(SIZE)).map(|step| step.blocks).sum()
    }

    #[test]
    fn a_walk_finds_the_longest_known_prefix() {
        let mut tree = RunTree::default();
        let top = insert(&mut tree, None, &[1, 2, 3], 0);
        insert(&mut tree, Some(top), &[1, 2, 3, 4, 5], 3);
        for (prompt, blocks) in [
            (&[1, 2, 3, 4, 5, 6][..], 5),
            (&[1, 2, 3, 9], 3),
            (&[1, 2, 9], 2),
            (&[9], 0),
            (&[], 0),
            (&[4, 5], 0),
        ] {
            assert_eq!(matched(&tree, prompt), blocks, "{prompt:?}");
        }
    }

    #[test]
    fn splitting_keeps_the_tail_id_and_what_is_found() {
        let mut tree = RunTree::default();
        let run = insert(&mut tree, None, &[1, 2, 3, 4], 0);
        *tree.get_mut(run) = 7;
        let child = insert(&mut tree, Some(run), &[1, 2, 3, 4, 5], 4);
        let head = tree.split(run, 1, |tail| *tail + 100);
        assert_eq!((tree.blocks(head), tree.blocks(run)), (1, 3));
        assert_eq!((tree.parent(run), tree.parent(child)), (Some(head), Some(run)));
        assert_eq!((*tree.get(head), *tree.get(run)), (107, 7));
        assert_eq!(matched(&tree, &[1, 2, 3, 4, 5]), 5);
        assert_eq!(matched(&tree, &[1, 9]), 1);
    }

    #[test]
    fn trimming_to_nothing_removes_the_run_and_its_id_is_used_again() {
        let mut tree = RunTree::default();
        let top = insert(&mut tree, None, &[1, 2], 0);
        let leaf = insert(&mut tree, Some(top), &[1, 2, 3, 4], 2);
        assert!(!tree.trim(leaf, 1));
        assert_eq!(matched(&tree, &[1, 2, 3, 4]), 3);
        assert!(tree.trim(leaf, 1));
        assert_eq!((tree.children(top), tree.len()), (0, 1));
        assert_eq!(insert(&mut tree, Some(top), &[1, 2, 9], 2), leaf);
        assert_eq!(matched(&tree, &[1, 2, 9]), 3);
    }

    #[test]
    fn prompts_share_runs_exactly_as_far_as_their_full_blocks_agree() {
        let of = |segments: &[(u64, u32)]| {
            let segment =
                |&(stream, tokens): &(u64, u32)| Segment { stream: StreamId(stream), tokens };
            Content::new(segments.iter().map(segment), StreamId(9))
        };
        let mut tree = RunTree::default();
        let known = of(&[(1, 10), (2, 10)]);
        tree.insert(None, known.blocks(SIZE, 6), 0, 0);
        let shared = |content: &Content, blocks| -> u32 {
            tree.walk(content.blocks(SIZE, blocks)).map(|step| step.blocks).sum()
        };
        assert_eq!(shared(&known, 6), 6, "generated tokens included");
        assert_eq!(shared(&of(&[(1, 10), (3, 10)]), 5), 2, "block 2 holds 2 other tokens");
        assert_eq!(shared(&of(&[(1, 11), (2, 9)]), 5), 2, "a stream read on is not another stream");
        assert_eq!(shared(&of(&[(1, 10), (2, 10), (9, 4)]), 6), 6, "prompted or generated");
    }

    #[test]
    fn a_run_that_grows_by_what_it_goes_on_with_stays_one_piece() {
        let conversation = Content::new([Segment { stream: StreamId(7), tokens: 8 }], StreamId(7));
        let mut tree = RunTree::default();
        let run = tree.insert(None, conversation.blocks(SIZE, 2), 0, ());
        for blocks in 3..50 {
            tree.extend(run, conversation.blocks(SIZE, blocks), blocks - 1);
        }
        assert_eq!((tree.blocks(run), tree.nodes[0].pieces.len()), (49, 1));
    }
}
