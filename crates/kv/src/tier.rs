//! The CPU tier behind a pool: copies of runs in a larger and slower memory.
//!
//! Copies are least recently used first to go. A copy outlives the blocks it was made of, and a
//! block outlives its copy: each memory forgets by itself. What a prompt finds is first what the
//! GPU has, then what the tier has right behind it.
//!
//! ```text
//!            start_copy              land                       evict in the tier
//!   not copied -----> on its way ----------> there, warmest ... coldest ---------> not copied
//!                       |                      ^
//!                       +- evicted: abandoned  +-- touch: it was read
//! ```
//!
//! When a copy starts and how long it takes is the engine's business (`link.rs`).

use crate::link::TransferId;
use crate::pool::{Ends, Pool, Table};
use blis_core::Blocks;
use blis_core::runs::{Match, RunId};

/// What the tier has of a run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Copied {
    /// Nothing.
    #[default]
    No,
    /// A copy is on its way.
    Leaving(TransferId),
    /// All of it.
    There(There),
}

/// A copy in the tier.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct There {
    /// When it came, in the engine's time.
    since: u64,
    colder: Option<RunId>,
    warmer: Option<RunId>,
}

/// The tier's memory.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Tier {
    total: u32,
    used: u32,
    /// From the coldest to the warmest copy.
    copies: Ends,
}

/// A copy on its way: what to tell the pool when it is done.
#[derive(Clone, Debug)]
pub struct Departure {
    id: TransferId,
    runs: Vec<RunId>,
    /// How many blocks are copied.
    pub blocks: u32,
}

/// What reading copies told about them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Touched {
    /// Blocks whose copy came at or after the time asked for.
    pub recent: u32,
}

impl Copied {
    pub(crate) fn is_there(self) -> bool {
        matches!(self, Copied::There(_))
    }
}

impl Pool {
    /// A pool of `total` free blocks with a tier of `copies` blocks behind it.
    pub fn with_tier(total: u32, copies: u32) -> Pool {
        let tier = Tier { total: copies, used: 0, copies: Ends::default() };
        let mut pool = Pool::new(total);
        pool.tier = (copies > 0).then_some(tier);
        pool
    }

    /// Whether there is a tier.
    pub fn has_tier(&self) -> bool {
        self.tier.is_some()
    }

    /// Blocks that the tier holds.
    pub fn copied(&self) -> u32 {
        self.tier.map_or(0, |tier| tier.used)
    }

    /// Idle blocks that the tier does not have and that are not on their way to it, up to `most`.
    pub fn idle_uncopied(&self, most: u32) -> u32 {
        let mut blocks = 0_u32;
        for run in self.idle_runs() {
            if self.tree.get(run).copied == Copied::No {
                blocks = blocks.saturating_add(self.tree.blocks(run));
            }
            if blocks >= most {
                return most;
            }
        }
        blocks
    }

    /// Blocks of a match and of those behind it that the tier has.
    pub(crate) fn copied_from(&self, first: Match, rest: impl Iterator<Item = Match>) -> u32 {
        if self.tier.is_none() {
            return 0;
        }
        std::iter::once(first)
            .chain(rest)
            .take_while(|step| self.tree.get(step.run).copied.is_there())
            .map(|step| step.blocks)
            .sum()
    }

    /// The copies of blocks `from..upto` of `prompt` are read: they are the warmest now.
    pub fn touch(&mut self, prompt: Blocks<'_>, from: u32, upto: u32, since: u64) -> Touched {
        let steps: Vec<Match> = self.tree.walk(prompt.first(upto)).collect();
        let mut at = 0;
        let mut touched = Touched::default();
        let mut read = Vec::new();
        for step in steps {
            at += step.blocks;
            if let Copied::There(there) = self.tree.get(step.run).copied
                && at > from
            {
                read.push(step.run);
                touched.recent += if there.since >= since { step.blocks } else { 0 };
            }
        }
        // The deepest is the coldest of them, so that trunks outlive leaves.
        for run in read.into_iter().rev() {
            self.unlink_copy(run);
            self.link_warmest(run);
        }
        touched
    }

    /// Starts to copy what a table shares and the tier lacks. `None` if that is nothing.
    pub fn start_copy(&mut self, table: &Table, id: TransferId) -> Option<Departure> {
        let mut runs = Vec::new();
        let mut next = table.leaf();
        while let Some(run) = next {
            if self.tree.get(run).copied == Copied::No {
                runs.push(run);
            }
            next = self.tree.parent(run);
        }
        self.depart(runs, id)
    }

    /// Starts to copy the idle runs that are evicted first, up to `most` blocks of those that the
    /// tier lacks. `None` if there are none.
    pub fn start_copy_of_idle(&mut self, most: u32, id: TransferId) -> Option<Departure> {
        let most = most.min(self.tier?.total);
        let mut runs = Vec::new();
        let mut left = most;
        let uncopied = self.idle_runs().filter(|&run| self.tree.get(run).copied == Copied::No);
        for run in uncopied {
            if left == 0 {
                break;
            }
            runs.push(run);
            left = left.saturating_sub(self.tree.blocks(run));
        }
        let wanted: u32 = runs.iter().map(|&run| self.tree.blocks(run)).sum();
        if let Some(&last) = runs.last()
            && wanted > most
        {
            // Only the end of the last one, which goes first; what is left of it keeps its place.
            self.split(last, wanted - most);
        }
        self.depart(runs, id)
    }

    fn depart(&mut self, mut runs: Vec<RunId>, id: TransferId) -> Option<Departure> {
        let room = self.tier?.total;
        let mut blocks: u32 = runs.iter().map(|&run| self.tree.blocks(run)).sum();
        // What does not fit is left out from the leaves on: they are of no use without trunks.
        while blocks > room {
            let first = runs.remove(0);
            let length = self.tree.blocks(first);
            let excess = blocks - room;
            if excess < length {
                let head = self.split(first, length - excess);
                runs.insert(0, head);
            }
            blocks -= excess.min(length);
        }
        for &run in &runs {
            self.tree.get_mut(run).copied = Copied::Leaving(id);
        }
        (blocks > 0).then_some(Departure { id, runs, blocks })
    }

    /// A copy is done at `now`. Returns how many blocks are in the tier by it: all but those that
    /// were evicted on the way.
    pub fn land(&mut self, departure: &Departure, now: u64) -> u32 {
        let mut landed = 0;
        for &run in &departure.runs {
            // Whatever was cut off the run stands above it.
            let mut next = self.tree.contains(run).then_some(run);
            while let Some(run) = next
                && self.tree.get(run).copied == Copied::Leaving(departure.id)
            {
                landed += self.tree.blocks(run);
                self.tree.get_mut(run).copied = Copied::No;
                self.store(run, now);
                next = self.tree.parent(run);
            }
        }
        landed
    }

    /// Copies the last `blocks` blocks of an idle run at once, if the tier lacks them. Returns the
    /// run that holds just these, and how many blocks were copied.
    pub fn copy_now(&mut self, run: RunId, blocks: u32, now: u64) -> (RunId, u32) {
        let length = self.tree.blocks(run);
        let Some(tier) = self.tier else { return (run, 0) };
        if self.tree.get(run).copied.is_there() {
            return (run, 0);
        }
        let blocks = blocks.min(length);
        if blocks > tier.total {
            return (run, 0);
        }
        if blocks < length {
            self.split(run, length - blocks);
        }
        self.tree.get_mut(run).copied = Copied::No;
        self.store(run, now);
        (run, blocks)
    }

    /// Copies all that a table shares and the tier lacks at once. Returns how many blocks.
    pub fn copy_table_now(&mut self, table: &Table, id: TransferId, now: u64) -> u32 {
        self.start_copy(table, id).map_or(0, |departure| self.land(&departure, now))
    }

    /// A run that was evicted can no longer be copied.
    pub(crate) fn forget_copy_under_way(&mut self, run: RunId) {
        let known = self.tree.get_mut(run);
        if let Copied::Leaving(_) = known.copied {
            known.copied = Copied::No;
        }
    }

    /// `head` was cut off `run`: it is copied as that was.
    pub(crate) fn split_copy(&mut self, run: RunId, head: RunId) {
        if let Copied::There(there) = self.tree.get(run).copied {
            let fresh = There { since: there.since, colder: None, warmer: None };
            self.tree.get_mut(head).copied = Copied::There(fresh);
            let after = there.warmer;
            self.link_copies(Some(run), Some(head));
            self.link_copies(Some(head), after);
        }
    }

    /// Puts a run into the tier as the warmest, and the coldest out as far as there is no room.
    fn store(&mut self, run: RunId, now: u64) {
        let blocks = self.tree.blocks(run);
        let tier = self.tier.expect("only a pool with a tier stores copies");
        self.make_room_in_tier((tier.used + blocks).saturating_sub(tier.total));
        let there = There { since: now, colder: None, warmer: None };
        self.tree.get_mut(run).copied = Copied::There(there);
        self.tier_mut().used += blocks;
        self.link_warmest(run);
    }

    fn make_room_in_tier(&mut self, mut blocks: u32) {
        while blocks > 0 {
            let coldest = self.tier_mut().copies.oldest.expect("a full tier holds something");
            let length = self.tree.blocks(coldest);
            if blocks < length {
                self.split(coldest, length - blocks);
            }
            let gone = self.tree.blocks(coldest);
            self.unlink_copy(coldest);
            self.tree.get_mut(coldest).copied = Copied::No;
            self.tier_mut().used -= gone;
            self.remove_if_empty(coldest);
            blocks -= gone;
        }
    }

    fn tier_mut(&mut self) -> &mut Tier {
        self.tier.as_mut().expect("only a pool with a tier has copies")
    }

    fn there_mut(&mut self, run: RunId) -> &mut There {
        match &mut self.tree.get_mut(run).copied {
            Copied::There(there) => there,
            _ => unreachable!("only copies in the tier are listed"),
        }
    }

    fn link_warmest(&mut self, run: RunId) {
        let warmest = self.tier_mut().copies.newest;
        self.link_copies(warmest, Some(run));
        self.link_copies(Some(run), None);
    }

    fn unlink_copy(&mut self, run: RunId) {
        let There { colder, warmer, .. } = *self.there_mut(run);
        self.link_copies(colder, warmer);
    }

    /// Makes two copies neighbours in the tier's list; `None` is the list's end.
    fn link_copies(&mut self, colder: Option<RunId>, warmer: Option<RunId>) {
        match colder {
            Some(run) => self.there_mut(run).warmer = warmer,
            None => self.tier_mut().copies.oldest = warmer,
        }
        match warmer {
            Some(run) => self.there_mut(run).colder = colder,
            None => self.tier_mut().copies.newest = colder,
        }
    }

    /// Checks the tier's books; a part of `check`.
    pub(crate) fn check_tier(&self) {
        let Some(tier) = self.tier else {
            let copied = |run| self.tree.get(run).copied != Copied::No;
            assert!(!self.tree.runs().any(copied), "no tier, no copies");
            return;
        };
        let (mut run, mut previous, mut used) = (tier.copies.oldest, None, 0);
        while let Some(copy) = run {
            let Copied::There(there) = self.tree.get(copy).copied else {
                panic!("{copy:?} is listed and not there");
            };
            used += self.tree.blocks(copy);
            assert_eq!(there.colder, previous, "the tier's links go both ways");
            (run, previous) = (there.warmer, run);
        }
        assert_eq!(tier.copies.newest, previous, "the tier's list ends with the warmest");
        let there = self.tree.runs().filter(|&run| self.tree.get(run).copied.is_there());
        let all: u32 = there.map(|run| self.tree.blocks(run)).sum();
        assert_eq!((used, used), (tier.used, all), "every copy is listed and counted");
        assert!(used <= tier.total, "no more copies than the tier has room for");
    }
}
