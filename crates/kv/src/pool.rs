//! The block pool of one engine, with its prefix cache.
//!
//! Every block is in exactly one of three states, and the three counts add up to the total:
//!
//! ```text
//!           grow                  commit               release
//!   free ---------> in use, private -----> in use, shared ----> idle: cached, used by nobody
//!    ^ ^                 |                       ^                    |   |
//!    | +-----------------+                       +---- claim (hit) ---+   |
//!    |       release                                                      |
//!    +------------------------------- evict ------------------------------+
//! ```
//!
//! Blocks have no numbers: which physical block holds what changes nothing, so only counts and
//! contents are kept. Contents are runs of blocks in a [`RunTree`], so an operation costs
//! per run touched, not per block. A [`Table`] is what a request holds: a path of shared runs from
//! the root, then private blocks that are not full or not yet computed.
//!
//! Idle runs stand in lists, one for each *worth* that the evictor gave them, oldest release first.
//! A request releases its deepest run first, so a run always stands before the runs it continues,
//! and evicting from the front takes leaves before trunks.
//!
//! A pool may have a CPU tier behind it, which keeps copies of runs (`tier.rs`). Then a run may be
//! in the tree without being *resident*: only the tier has it, or nobody has and it stands there
//! for the sake of those that continue it.
//!
//! Blocks that no other request can have ([`Blocks::common`]) need not be found again. They stay
//! private until they are released, and then only their number is kept, in *blank* runs that stand
//! in the list of idle runs like others.

mod books;
mod changes;
mod connector;
mod lists;
mod passed;
mod table;
mod tier;

pub use connector::{Behind, NoRoom};
pub use table::{Hit, Judged, Table, Use};
pub use tier::{Departure, Touched};

use crate::mirror::{Change, Step};
use blis_core::Blocks;
use blis_core::runs::{Match, RunId, RunTree};
use std::collections::BTreeMap;
use tier::{Copied, Tier};

/// The KV blocks of one engine.
#[derive(Clone, Debug)]
pub struct Pool {
    pub(crate) tree: RunTree<Run>,
    total: u32,
    free: u32,
    idle: u32,
    /// Idle blocks whose copy is on its way to the tier.
    pub(crate) leaving: u32,
    in_use: u32,
    /// Blocks of all tables together, each counted as often as it is held.
    held: u64,
    /// Idle runs of no worth: under `lru` all of them.
    worthless: Ends,
    /// Idle runs of each other worth.
    worthy: BTreeMap<u64, Ends>,
    pub(crate) tier: Option<Tier>,
    /// What has changed since somebody took it; `None`: nobody does.
    pub(crate) changes: Option<Vec<Change>>,
}

/// The ends of a list of runs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Ends {
    pub(crate) oldest: Option<RunId>,
    pub(crate) newest: Option<RunId>,
}

/// What the pool knows of a run.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Run {
    /// Tables that hold it. 0: idle, and in a list of idle runs if it is resident.
    pub(crate) holders: u32,
    /// Whether its blocks are in this memory.
    pub(crate) resident: bool,
    /// Resident runs directly below.
    below: u32,
    /// How often it was claimed or committed.
    uses: u32,
    /// The evictor's opinion: the least worth goes first.
    worth: u64,
    older: Option<RunId>,
    newer: Option<RunId>,
    /// What the CPU tier has of it.
    pub(crate) copied: Copied,
    /// The mark of the idle runs that the tier has looked at.
    passed: u32,
}

impl Pool {
    /// A pool of `total` free blocks, with nothing behind it.
    pub fn new(total: u32) -> Pool {
        Pool {
            tree: RunTree::default(),
            total,
            free: total,
            idle: 0,
            leaving: 0,
            in_use: 0,
            held: 0,
            worthless: Ends::default(),
            worthy: BTreeMap::new(),
            tier: None,
            changes: None,
        }
    }

    /// All blocks.
    pub fn total(&self) -> u32 {
        self.total
    }

    /// Blocks that hold nothing.
    pub fn free(&self) -> u32 {
        self.free
    }

    /// Blocks that are cached and that nobody uses.
    pub fn idle(&self) -> u32 {
        self.idle
    }

    /// Blocks that tables hold.
    pub fn in_use(&self) -> u32 {
        self.in_use
    }

    /// Blocks that several tables hold, counted once for each holder beyond the first.
    pub fn shared(&self) -> u64 {
        self.held - u64::from(self.in_use)
    }

    /// Blocks that can be had: free ones, and idle ones by evicting them.
    pub fn available(&self) -> u32 {
        self.free + self.idle
    }

    /// Runs that are known, in this memory or behind it.
    pub fn runs(&self) -> usize {
        self.tree.len()
    }

    /// The longest cached prefix of `prompt`, and how far the CPU tier continues it. Changes
    /// nothing.
    pub fn lookup(&self, prompt: Blocks<'_>) -> Hit {
        let mut hit = Hit::NONE;
        let mut steps = self.tree.walk(prompt);
        for step in steps.by_ref() {
            let run = self.tree.get(step.run);
            if !run.resident {
                hit.copied = self.copied_from(step, steps);
                break;
            }
            hit.blocks += step.blocks;
            if run.holders == 0 {
                hit.idle += step.blocks;
                hit.leaving += if run.copied.is_leaving() { step.blocks } else { 0 };
            }
            hit.last = Some(step);
        }
        hit
    }

    /// Idle blocks that are being copied to the tier.
    pub fn leaving(&self) -> u32 {
        self.leaving
    }

    /// Whether `blocks` more blocks can be had after claiming `hit`, without dropping any whose
    /// copy is on its way.
    pub fn fits(&self, hit: &Hit, blocks: u32) -> bool {
        let leaving = self.leaving - hit.leaving;
        blocks <= self.available() - hit.idle - leaving
    }

    /// Takes the blocks of `hit`, which must be what `lookup` has just found, into an empty table.
    pub fn claim(&mut self, hit: Hit) -> Table {
        let Some(last) = hit.last else { return Table::default() };
        let leaf = if last.whole { last.run } else { self.split(last.run, last.blocks) };
        let mut run = Some(leaf);
        while let Some(held) = run {
            self.hold(held);
            run = self.tree.parent(held);
        }
        self.held += u64::from(hit.blocks);
        Table { leaf: Some(leaf), shared: hit.blocks, private: 0, full: hit.blocks }
    }

    /// How many blocks have to be evicted before `grow` can take `blocks`.
    pub fn shortfall(&self, blocks: u32) -> u32 {
        blocks.saturating_sub(self.free)
    }

    /// Adds `blocks` free blocks to a table.
    ///
    /// # Panics
    /// If fewer are free: the caller has to evict the shortfall first.
    pub fn grow(&mut self, table: &mut Table, blocks: u32) {
        assert!(blocks <= self.free, "{blocks} blocks wanted, {} free", self.free);
        self.free -= blocks;
        self.in_use += blocks;
        self.held += u64::from(blocks);
        table.private += blocks;
    }

    /// Makes the full blocks of a table known to the prefix cache: `full` are all of them from the
    /// first on. A block whose content another request has committed meanwhile is exchanged for
    /// that one. What no other request can have stays private.
    pub fn commit(&mut self, table: &mut Table, full: Blocks<'_>) {
        table.full = table.full.max(full.len());
        self.commit_all(table, full.common());
    }

    /// The same, and what no other request can have as well: its own request will look for it.
    pub fn commit_all(&mut self, table: &mut Table, full: Blocks<'_>) {
        while table.shared < full.len() {
            // Below a run without children there is nothing to find.
            let childless = table.leaf.is_some_and(|leaf| self.tree.children(leaf) == 0);
            let known =
                if childless { None } else { self.tree.child(table.leaf, full, table.shared) };
            let blocks = match known {
                Some(step) => self.merge(table, step),
                None => self.append(table, full),
            };
            table.shared += blocks;
            table.private -= blocks;
        }
    }

    /// Gives all blocks of a table back: full ones become idle, deepest first, each with the worth
    /// that `worth` gives its run; the rest becomes free.
    pub fn release(&mut self, table: &mut Table, worth: impl Fn(Use) -> u64) {
        self.release_cut(table, |ended| Judged { worth: worth(ended), from: 0 });
    }

    /// As `release`, but a run whose blocks are not all worth the same is cut where `judge` says.
    pub fn release_cut(&mut self, table: &mut Table, mut judge: impl FnMut(Use) -> Judged) {
        self.held -= u64::from(table.blocks());
        let blank = table.full.saturating_sub(table.shared);
        if blank > 0 {
            let judged = judge(Use { uses: 1, upto: table.full, worth: 0 });
            self.release_blank(blank, judged.worth);
            table.private -= blank;
        }
        let mut run = table.leaf;
        let mut upto = table.shared;
        while let Some(held) = run {
            let above = upto - self.tree.blocks(held);
            let Run { uses, worth, .. } = *self.tree.get(held);
            let judged = judge(Use { uses, upto, worth });
            if judged.from > above {
                // What is cut off is what the run continues now, so it comes next.
                self.split(held, judged.from - above);
            }
            let blocks = self.tree.blocks(held);
            let known = self.tree.get_mut(held);
            known.worth = judged.worth;
            known.holders -= 1;
            if known.holders == 0 {
                self.leaving += if known.copied.is_leaving() { blocks } else { 0 };
                self.in_use -= blocks;
                self.idle += blocks;
                self.list_newest(held);
            }
            upto -= blocks;
            run = self.tree.parent(held);
        }
        self.in_use -= table.private;
        self.free += table.private;
        *table = Table::default();
    }

    /// Makes private blocks idle that nobody will look for.
    fn release_blank(&mut self, blocks: u32, worth: u64) {
        self.in_use -= blocks;
        self.idle += blocks;
        if let Some(newest) = self.newest(worth).filter(|&run| self.tree.is_blank(run)) {
            self.tree.lengthen_blank(newest, blocks);
            self.resize_passed(newest, blocks.into());
            return;
        }
        let run = Run { resident: true, uses: 1, worth, ..Run::default() };
        let run = self.tree.insert_blank(blocks, run);
        self.list_newest(run);
    }

    /// The idle run to be evicted first: of the least worth, then released first, and continued by
    /// no run of this memory. One that is being copied goes only if there is no other.
    pub fn first_idle(&self) -> Option<RunId> {
        let mut ends = self.idle_runs().filter(|&run| self.tree.get(run).below == 0);
        let first = ends.next()?;
        if !self.tree.get(first).copied.is_leaving() || self.leaving == self.idle {
            return Some(first);
        }
        let settled = ends.find(|&run| !self.tree.get(run).copied.is_leaving());
        Some(settled.unwrap_or(first))
    }

    /// All idle runs in the order in which they go.
    pub(crate) fn idle_runs(&self) -> impl Iterator<Item = RunId> + '_ {
        self.idle_runs_behind(None)
    }

    /// Those behind one of no worth, or all of them.
    fn idle_runs_behind(&self, run: Option<RunId>) -> impl Iterator<Item = RunId> + '_ {
        let first = run.map_or(self.worthless.oldest, |run| self.tree.get(run).newer);
        let firsts = std::iter::once(first).chain(self.worthy.values().map(|ends| ends.oldest));
        firsts.flat_map(|first| std::iter::successors(first, |&run| self.tree.get(run).newer))
    }

    /// Frees up to `blocks` blocks from the end of an idle run that no run of this memory
    /// continues; returns how many. A copy of them that was on its way to the CPU tier is
    /// abandoned; one that is there stays.
    ///
    /// # Panics
    /// If the run is in use, or continued.
    pub fn evict(&mut self, run: RunId, blocks: u32) -> u32 {
        let known = self.tree.get(run);
        assert!(known.holders == 0 && known.resident, "a run in use cannot be evicted");
        assert!(known.below == 0, "a run that another one continues cannot be evicted");
        let blocks = blocks.min(self.tree.blocks(run));
        self.idle -= blocks;
        self.free += blocks;
        if blocks < self.tree.blocks(run) {
            if self.tree.children(run) == 0 && !known.copied.takes_room() {
                self.leaving -= if known.copied.is_leaving() { blocks } else { 0 };
                self.tree.trim(run, blocks);
                self.resize_passed(run, -i64::from(blocks));
                self.tell(|| Step::Trimmed { run, blocks });
                return blocks;
            }
            self.split(run, self.tree.blocks(run) - blocks);
        }
        self.unlist(run);
        let known = self.tree.get_mut(run);
        (known.resident, known.uses, known.worth) = (false, 0, 0);
        self.tell(|| Step::Here { run, here: false });
        if let Some(parent) = self.tree.parent(run) {
            self.tree.get_mut(parent).below -= 1;
        }
        self.forget_copy_under_way(run);
        self.remove_if_empty(run);
        blocks
    }

    /// Exchanges private blocks for the equal ones of a run, or makes them that run's if it is not
    /// here; returns how many.
    fn merge(&mut self, table: &mut Table, step: Match) -> u32 {
        let run = if step.whole { step.run } else { self.split(step.run, step.blocks) };
        table.leaf = Some(run);
        let known = self.tree.get_mut(run);
        if known.resident {
            self.hold(run);
            self.in_use -= step.blocks;
            self.free += step.blocks;
        } else {
            (known.resident, known.holders, known.uses) = (true, 1, known.uses + 1);
            self.tell(|| Step::Here { run, here: true });
            if let Some(parent) = self.tree.parent(run) {
                self.tree.get_mut(parent).below += 1;
            }
        }
        step.blocks
    }

    /// Adds private blocks to the cache below the table's leaf; returns how many: all of them.
    fn append(&mut self, table: &mut Table, full: Blocks<'_>) -> u32 {
        // A run that others have used before is not lengthened: its uses and its worth are not
        // those of the new blocks.
        let own = table.leaf.filter(|&leaf| {
            let known = self.tree.get(leaf);
            let alone = known.holders == 1 && known.uses == 1;
            alone && known.copied == Copied::No && self.tree.children(leaf) == 0
        });
        if let Some(leaf) = own {
            self.tree.extend(leaf, full, table.shared);
            let (content, blocks, at) = (full.content(), full.len(), table.shared);
            self.tell(|| Step::Extended { run: leaf, content: content.clone(), blocks, at });
        } else {
            let run = Run { holders: 1, resident: true, uses: 1, ..Run::default() };
            let parent = table.leaf;
            table.leaf = Some(self.tree.insert(parent, full, table.shared, run));
            let (content, blocks, at) = (full.content(), full.len(), table.shared);
            self.tell(|| Step::Inserted { parent, content: content.clone(), blocks, at });
            if let Some(parent) = parent {
                self.tree.get_mut(parent).below += 1;
            }
        }
        full.len() - table.shared
    }

    /// Cuts `run` after `at` blocks and returns the head; both are held, listed and copied as the
    /// run was.
    pub(crate) fn split(&mut self, run: RunId, at: u32) -> RunId {
        let head = self.tree.split(run, at, |tail| Run {
            below: u32::from(tail.resident),
            older: None,
            newer: None,
            ..*tail
        });
        self.tell(|| Step::Cut { run, at });
        let known = *self.tree.get(head);
        if known.holders == 0 && known.resident {
            // After its tail, because leaves come before trunks.
            let after = self.tree.get(run).newer;
            self.link(known.worth, Some(run), Some(head));
            self.link(known.worth, Some(head), after);
            self.split_passed(run, head);
        }
        self.split_copy(run, head);
        head
    }

    fn hold(&mut self, run: RunId) {
        let known = self.tree.get(run);
        if known.holders == 0 {
            let blocks = self.tree.blocks(run);
            self.leaving -= if known.copied.is_leaving() { blocks } else { 0 };
            self.unlist(run);
            self.idle -= blocks;
            self.in_use += blocks;
        }
        let known = self.tree.get_mut(run);
        known.holders += 1;
        known.uses = known.uses.saturating_add(1);
    }

    /// Removes a run that is nowhere, and those above it that were only there for its sake.
    pub(crate) fn remove_if_empty(&mut self, run: RunId) {
        let mut next = Some(run);
        while let Some(run) = next {
            let known = self.tree.get(run);
            let empty = !known.resident && known.copied == Copied::No;
            if !empty || self.tree.children(run) > 0 {
                return;
            }
            next = self.tree.parent(run);
            let blocks = self.tree.blocks(run);
            self.tree.trim(run, blocks);
            self.tell(|| Step::Trimmed { run, blocks });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use blis_core::{Content, Segment, StreamId};

    const SIZE: u32 = 16;

    /// A content of whole blocks, each named by the stream it is of.
    fn content(blocks: &[u64]) -> Content {
        let segment = |&stream: &u64| Segment { stream: StreamId(stream), tokens: SIZE };
        Content::new(blocks.iter().map(segment), StreamId(u64::MAX))
    }

    fn lookup(pool: &Pool, blocks: &[u64]) -> Hit {
        pool.lookup(content(blocks).prompt_blocks(SIZE))
    }

    fn commit(pool: &mut Pool, table: &mut Table, blocks: &[u64]) {
        pool.commit(table, content(blocks).prompt_blocks(SIZE));
    }

    /// Serves a prompt to the end: claims what is cached, computes the rest, commits and returns
    /// the table.
    fn serve(pool: &mut Pool, blocks: &[u64]) -> (Table, u32) {
        let hit = lookup(pool, blocks);
        let mut table = pool.claim(hit);
        let missing = u32::try_from(blocks.len()).expect("small") - hit.blocks;
        make_room(pool, missing);
        pool.grow(&mut table, missing);
        commit(pool, &mut table, blocks);
        (table, hit.blocks)
    }

    fn make_room(pool: &mut Pool, blocks: u32) {
        while pool.shortfall(blocks) > 0 {
            let victim = pool.first_idle().expect("something to evict");
            pool.evict(victim, pool.shortfall(blocks));
        }
    }

    #[test]
    fn a_released_prompt_is_found_again_and_shares_its_prefix() {
        let mut pool = Pool::new(10);
        let (mut first, hit) = serve(&mut pool, &[1, 2, 3, 4]);
        assert_eq!(hit, 0);
        pool.release(&mut first, |_| 0);
        assert_eq!((pool.free(), pool.idle(), pool.in_use()), (6, 4, 0));
        let (second, hit) = serve(&mut pool, &[1, 2, 8, 9]);
        assert_eq!(hit, 2);
        assert_eq!((pool.free(), pool.idle(), pool.in_use()), (4, 2, 4));
        pool.check([second].iter());
    }

    #[test]
    fn a_full_cache_evicts_the_oldest_leaf_first() {
        let mut pool = Pool::new(6);
        let (mut old, _) = serve(&mut pool, &[1, 2, 3]);
        pool.release(&mut old, |_| 0);
        let (mut new, _) = serve(&mut pool, &[1, 8, 9]);
        pool.release(&mut new, |_| 0);
        make_room(&mut pool, 3);
        assert_eq!(lookup(&pool, &[1, 2, 3]).blocks, 1, "blocks 3 and 2 are the oldest leaves");
        assert_eq!(lookup(&pool, &[1, 8, 9]).blocks, 3);
        make_room(&mut pool, 4);
        assert_eq!(lookup(&pool, &[1, 8, 9]).blocks, 2, "then the newer prompt, from its end");
        pool.check([].iter());
    }

    #[test]
    fn a_prefix_in_use_stays_when_everything_idle_is_evicted() {
        let mut pool = Pool::new(4);
        let (mut first, _) = serve(&mut pool, &[1, 2, 3]);
        let (second, _) = serve(&mut pool, &[1, 2]);
        pool.release(&mut first, |_| 0);
        make_room(&mut pool, 2);
        assert_eq!(lookup(&pool, &[1, 2, 3]).blocks, 2);
        assert_eq!(pool.available(), 2);
        pool.check([second].iter());
    }

    #[test]
    fn equal_blocks_computed_at_the_same_time_become_one() {
        let mut pool = Pool::new(10);
        let (mut a, mut b) = (Table::default(), Table::default());
        pool.grow(&mut a, 3);
        pool.grow(&mut b, 4);
        commit(&mut pool, &mut a, &[1, 2, 3]);
        commit(&mut pool, &mut b, &[1, 2, 8]);
        assert_eq!((pool.in_use(), b.blocks(), b.shared()), (5, 4, 3));
        assert_eq!(pool.shared(), 2, "blocks 1 and 2 are held twice");
        pool.check([a, b].iter());
        pool.release(&mut a, |_| 0);
        pool.release(&mut b, |_| 0);
        assert_eq!((pool.free(), pool.idle()), (6, 4));
        assert_eq!(pool.shared(), 0);
        pool.check([].iter());
    }

    #[test]
    fn blocks_that_are_not_full_are_free_again_at_once() {
        let mut pool = Pool::new(5);
        let mut table = Table::default();
        pool.grow(&mut table, 3);
        commit(&mut pool, &mut table, &[1]);
        pool.release(&mut table, |_| 0);
        assert_eq!((pool.free(), pool.idle()), (4, 1));
    }

    #[test]
    fn a_hit_on_idle_blocks_does_not_count_as_room_for_more() {
        let mut pool = Pool::new(4);
        let (mut table, _) = serve(&mut pool, &[1, 2, 3]);
        pool.release(&mut table, |_| 0);
        let hit = lookup(&pool, &[1, 2, 9]);
        assert_eq!((hit.blocks, hit.idle), (2, 2));
        assert!(pool.fits(&hit, 2) && !pool.fits(&hit, 3));
    }
}
