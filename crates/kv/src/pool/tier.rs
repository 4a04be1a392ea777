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
//!                       +- evicted: abandoned  +-- touch: it was read, or was to be copied again
//! ```
//!
//! A copy that was to be made again counts as used, as if it had been made: otherwise a larger
//! tier, which still has it, would forget it sooner than a smaller one, which has to make it anew.
//!
//! When a copy starts and how long it takes is the engine's business (`link.rs`).

use super::passed::Passed;
use super::{Ends, Pool, Table};
use crate::link::TransferId;
use crate::mirror::Step;
use blis_core::Blocks;
use blis_core::runs::{Match, RunId};
use std::collections::BTreeMap;

/// What the tier has of a run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Copied {
    /// Nothing.
    #[default]
    No,
    /// A copy is on its way, by this transfer; dropping the blocks abandons it.
    Leaving(TransferId, Place),
    /// It has its place in the tier and is being copied, out or back (`connector.rs`).
    Moving(TransferId, Place),
    /// All of it, since this time of the engine's.
    There(u64, Place),
}

/// A place in a list of runs: of a departure's, or of all copies in the tier.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Place {
    colder: Option<RunId>,
    pub(super) warmer: Option<RunId>,
}

/// The tier's memory.
#[derive(Clone, Debug)]
pub(crate) struct Tier {
    pub(super) total: u32,
    pub(super) used: u32,
    /// From the coldest to the warmest copy.
    pub(super) copies: Ends,
    /// What is on its way by each transfer, in the order in which it lands. Runs are cut and
    /// evicted meanwhile, so only the pool knows.
    leaving: BTreeMap<TransferId, Ends>,
    pub(super) passed: Passed,
}

/// A copy on its way: what to tell the pool when it is done.
#[derive(Clone, Debug)]
pub struct Departure {
    pub(super) id: TransferId,
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
        matches!(self, Copied::There(..))
    }

    pub(crate) fn is_leaving(self) -> bool {
        matches!(self, Copied::Leaving(..))
    }

    /// Whether it takes room in the tier, which the blocks do not have to be there for.
    pub(crate) fn takes_room(self) -> bool {
        matches!(self, Copied::There(..) | Copied::Moving(..))
    }
}

impl Pool {
    /// A pool of `total` free blocks with a tier of `copies` blocks behind it.
    pub fn with_tier(total: u32, copies: u32) -> Pool {
        let (ends, leaving) = (Ends::default(), BTreeMap::new());
        let passed = Passed::default();
        let tier = Tier { total: copies, used: 0, copies: ends, leaving, passed };
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
        self.tier.as_ref().map_or(0, |tier| tier.used)
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
        let (read, touched) = self.copies_between(prompt, from, upto, since);
        for run in read {
            self.warm(run);
        }
        touched
    }

    /// The copies of blocks `from..upto` of `prompt`, as runs of their own. The deepest comes
    /// first and is to be the coldest of them, so that trunks outlive leaves.
    pub(super) fn copies_between(
        &mut self,
        prompt: Blocks<'_>,
        from: u32,
        upto: u32,
        since: u64,
    ) -> (Vec<RunId>, Touched) {
        let steps: Vec<Match> = self.tree.walk(prompt.first(upto)).collect();
        let mut at = 0;
        let mut touched = Touched::default();
        let mut read = Vec::new();
        for step in steps {
            let start = at;
            at += step.blocks;
            if let Copied::There(came, _) = self.tree.get(step.run).copied
                && at > from
            {
                let run = if step.whole { step.run } else { self.split(step.run, step.blocks) };
                if start < from {
                    self.split(run, from - start);
                }
                read.push(run);
                touched.recent += if came >= since { at - start.max(from) } else { 0 };
            }
        }
        read.reverse();
        (read, touched)
    }

    /// Starts to copy what a table shares and the tier lacks. `None` if that is nothing.
    pub fn start_copy(&mut self, table: &Table, id: TransferId) -> Option<Departure> {
        let mut runs = self.warm_table(table);
        runs.retain(|&run| self.tree.get(run).copied == Copied::No);
        self.depart(&runs, id)
    }

    /// Makes the copies of what a table shares the warmest, the deepest first, and returns all runs
    /// of it in that order. What does not fit into the tier is left out from the leaves on: they
    /// are of no use without trunks.
    fn warm_table(&mut self, table: &Table) -> Vec<RunId> {
        let room = self.tier.as_ref().map_or(0, |tier| tier.total);
        let mut runs = Vec::new();
        let (mut next, mut upto) = (table.leaf(), table.shared());
        while let Some(run) = next {
            let above = upto - self.tree.blocks(run);
            next = self.tree.parent(run);
            if above < room {
                let run = if upto > room { self.split(run, room - above) } else { run };
                runs.push(run);
            }
            upto = above;
        }
        for &run in &runs {
            if self.tree.get(run).copied.is_there() {
                self.warm(run);
            }
        }
        runs
    }

    /// Starts to copy what the tier lacks of the first `blocks` idle blocks in the order in which
    /// they go, and no more than it holds. `None` if it lacks none of them.
    pub fn start_copy_of_idle(&mut self, blocks: u32, id: TransferId) -> Option<Departure> {
        let Tier { total, passed, .. } = self.tier.as_ref()?;
        let mut left = blocks.min(*total).saturating_sub(passed.blocks);
        let (mut runs, mut walked) = (Vec::new(), Vec::new());
        let mut cut = None;
        for run in self.idle_runs_behind(passed.last) {
            if left == 0 {
                break;
            }
            walked.push(run);
            let length = self.tree.blocks(run);
            if self.tree.get(run).copied == Copied::No {
                runs.push(run);
                // Only the end of the last one, which goes first; what is left of it keeps its
                // place.
                cut = (length > left).then(|| length - left);
            }
            left = left.saturating_sub(length);
        }
        if let (Some(&last), Some(kept)) = (runs.last(), cut) {
            self.split(last, kept);
        }
        let departure = self.depart(&runs, id);
        for run in walked {
            self.pass(run);
        }
        departure
    }

    /// Sends runs on their way, which fit into the tier.
    fn depart(&mut self, runs: &[RunId], id: TransferId) -> Option<Departure> {
        let mut blocks = 0;
        for &run in runs {
            let length = self.tree.blocks(run);
            blocks += length;
            let known = self.tree.get_mut(run);
            known.copied = Copied::Leaving(id, Place::default());
            self.leaving += if known.holders == 0 { length } else { 0 };
            self.link_warmest(run);
        }
        (blocks > 0).then_some(Departure { id, blocks })
    }

    /// A copy is done at `now`. Returns how many blocks are in the tier by it: all but those that
    /// were evicted on the way.
    pub fn land(&mut self, departure: &Departure, now: u64) -> u32 {
        let mut landed = 0;
        while let Some(run) = self.first_leaving(departure.id) {
            landed += self.tree.blocks(run);
            self.store(run, now);
        }
        landed
    }

    fn first_leaving(&self, id: TransferId) -> Option<RunId> {
        self.tier.as_ref()?.leaving.get(&id)?.oldest
    }

    /// Copies the last `blocks` blocks of an idle run at once, if the tier lacks them, or as many
    /// of them from the trunk on as it has room for. The run is cut where the copy begins and ends.
    /// Returns its last part, which is to be evicted first, and how many blocks were copied.
    pub fn copy_now(&mut self, run: RunId, blocks: u32, now: u64) -> (RunId, u32) {
        let Some(tier) = &self.tier else { return (run, 0) };
        let (length, room) = (self.tree.blocks(run), tier.total);
        let blocks = blocks.min(length);
        if blocks == 0 {
            return (run, 0);
        }
        if blocks < length {
            self.split(run, length - blocks);
        }
        if self.tree.get(run).copied.is_there() {
            self.warm(run);
            return (run, 0);
        }
        let copied = if blocks > room { self.split(run, room) } else { run };
        self.store(copied, now);
        (run, blocks.min(room))
    }

    /// Copies all that a table shares and the tier lacks at once, also what is on its way. Returns
    /// how many blocks.
    pub fn copy_table_now(&mut self, table: &Table, now: u64) -> u32 {
        let mut copied = 0;
        let runs = self.warm_table(table);
        for &run in &runs {
            if !self.tree.get(run).copied.is_there() {
                copied += self.tree.blocks(run);
                self.store(run, now);
            }
        }
        // Trunks are warmer than leaves, whether they were there before or not.
        for run in runs {
            self.warm(run);
        }
        copied
    }

    /// A run that was evicted can no longer be copied.
    pub(crate) fn forget_copy_under_way(&mut self, run: RunId) {
        let known = self.tree.get(run);
        if known.copied.is_leaving() {
            self.leaving -= if known.holders == 0 { self.tree.blocks(run) } else { 0 };
            self.unlink_copy(run);
            self.tree.get_mut(run).copied = Copied::No;
        }
    }

    /// `head` was cut off `run`: it is copied as that was, and has its place behind it.
    pub(crate) fn split_copy(&mut self, run: RunId, head: RunId) {
        let list = match self.tree.get(run).copied {
            Copied::No => return,
            Copied::Leaving(id, _) | Copied::Moving(id, _) => Some(id),
            Copied::There(..) => None,
        };
        let after = self.place_mut(run).warmer;
        self.link_copies(list, Some(run), Some(head));
        self.link_copies(list, Some(head), after);
    }

    /// Puts a run into the tier as the warmest, and the coldest out as far as there is no room.
    fn store(&mut self, run: RunId, now: u64) {
        self.forget_copy_under_way(run);
        if matches!(self.tree.get(run).copied, Copied::Moving(..)) {
            self.unlink_copy(run);
        } else {
            let blocks = self.tree.blocks(run);
            let tier = self.tier_mut();
            let excess = (tier.used + blocks).saturating_sub(tier.total);
            self.make_room_in_tier(excess);
            self.tier_mut().used += blocks;
        }
        self.tree.get_mut(run).copied = Copied::There(now, Place::default());
        self.tell(|| Step::Copied { run, copied: true });
        self.link_warmest(run);
    }

    /// Makes a copy that is there the warmest.
    fn warm(&mut self, run: RunId) {
        self.unlink_copy(run);
        self.link_warmest(run);
    }

    fn make_room_in_tier(&mut self, mut blocks: u32) {
        while blocks > 0 {
            let coldest = self.tier_mut().copies.oldest.expect("a full tier holds something");
            blocks -= self.drop_copy(coldest, blocks);
        }
    }

    /// Drops the copies of up to `blocks` blocks from the end of a run; returns how many.
    pub(super) fn drop_copy(&mut self, run: RunId, blocks: u32) -> u32 {
        let length = self.tree.blocks(run);
        if blocks < length {
            self.split(run, length - blocks);
        }
        let gone = self.tree.blocks(run);
        self.unlink_copy(run);
        self.tree.get_mut(run).copied = Copied::No;
        self.forget_passed_with(run);
        self.tell(|| Step::Copied { run, copied: false });
        self.tier_mut().used -= gone;
        self.remove_if_empty(run);
        gone
    }

    pub(super) fn tier_mut(&mut self) -> &mut Tier {
        self.tier.as_mut().expect("only a pool with a tier has copies")
    }

    fn place_mut(&mut self, run: RunId) -> &mut Place {
        match &mut self.tree.get_mut(run).copied {
            Copied::There(_, place) | Copied::Leaving(_, place) | Copied::Moving(_, place) => place,
            Copied::No => unreachable!("only copies are listed"),
        }
    }

    /// Lists a run last where it belongs: among the copies in the tier, or in its departure.
    pub(super) fn link_warmest(&mut self, run: RunId) {
        let list = self.list_of(run);
        let warmest = self.ends_mut(list).newest;
        self.link_copies(list, warmest, Some(run));
        self.link_copies(list, Some(run), None);
    }

    pub(super) fn unlink_copy(&mut self, run: RunId) {
        let list = self.list_of(run);
        let Place { colder, warmer } = *self.place_mut(run);
        self.link_copies(list, colder, warmer);
        if let Some(id) = list
            && colder.is_none()
            && warmer.is_none()
        {
            self.tier_mut().leaving.remove(&id);
        }
    }

    /// The transfer that copies a run, out or back; `None` if its copy is there.
    pub(super) fn list_of(&self, run: RunId) -> Option<TransferId> {
        match self.tree.get(run).copied {
            Copied::Leaving(id, _) | Copied::Moving(id, _) => Some(id),
            _ => None,
        }
    }

    fn ends_mut(&mut self, list: Option<TransferId>) -> &mut Ends {
        let tier = self.tier_mut();
        match list {
            Some(id) => tier.leaving.entry(id).or_default(),
            None => &mut tier.copies,
        }
    }

    /// Makes two runs neighbours in the list of a transfer or of the tier; `None` is its end.
    fn link_copies(
        &mut self,
        list: Option<TransferId>,
        colder: Option<RunId>,
        warmer: Option<RunId>,
    ) {
        match colder {
            Some(run) => self.place_mut(run).warmer = warmer,
            None => self.ends_mut(list).oldest = warmer,
        }
        match warmer {
            Some(run) => self.place_mut(run).colder = colder,
            None => self.ends_mut(list).newest = colder,
        }
    }

    /// Checks the tier's books; a part of `check`.
    pub(crate) fn check_tier(&self) {
        let Some(tier) = &self.tier else {
            let copied = |run| self.tree.get(run).copied != Copied::No;
            assert!(!self.tree.runs().any(copied), "no tier, no copies");
            return;
        };
        let of = |kind: fn(Copied) -> bool| -> u32 {
            let runs = self.tree.runs().filter(|&run| kind(self.tree.get(run).copied));
            runs.map(|run| self.tree.blocks(run)).sum()
        };
        let there = self.check_copies(None, tier.copies);
        assert_eq!(there, of(Copied::is_there), "every copy is listed");
        assert_eq!(tier.used, of(Copied::takes_room), "every copy is counted");
        assert!(tier.used <= tier.total, "no more copies than the tier has room for");
        let listed = tier.leaving.iter().map(|(&id, &ends)| self.check_copies(Some(id), ends));
        let listed: u32 = listed.sum();
        let leaving = self.tree.runs().filter(|&run| self.list_of(run).is_some());
        let (mut blocks, mut idle) = (0, 0);
        for run in leaving {
            let known = self.tree.get(run);
            blocks += self.tree.blocks(run);
            if known.copied.is_leaving() {
                assert!(known.resident, "{run:?} is on its way and not here");
                idle += if known.holders == 0 { self.tree.blocks(run) } else { 0 };
            }
        }
        assert_eq!(listed, blocks, "whatever is on its way is listed");
        assert_eq!(idle, self.leaving, "idle blocks on their way are counted");
        self.check_passed(tier.passed);
    }

    /// Checks a list of copies; returns how many blocks it has.
    fn check_copies(&self, list: Option<TransferId>, ends: Ends) -> u32 {
        let (mut run, mut previous, mut blocks) = (ends.oldest, None, 0);
        assert!(list.is_none() || run.is_some(), "a departure without blocks is forgotten");
        while let Some(copy) = run {
            let place = match self.tree.get(copy).copied {
                Copied::There(_, place) if list.is_none() => place,
                Copied::Leaving(id, place) | Copied::Moving(id, place) if list == Some(id) => place,
                _ => panic!("{copy:?} is in a list that it does not belong to"),
            };
            blocks += self.tree.blocks(copy);
            assert_eq!(place.colder, previous, "the tier's links go both ways");
            (run, previous) = (place.warmer, run);
        }
        assert_eq!(ends.newest, previous, "the tier's list ends with the warmest");
        blocks
    }
}
