//! Copies as vLLM's connector makes them: a copy has its place in the tier from the moment at which
//! it is ordered.
//!
//! It then outlives the blocks it is made of: whoever wants these waits until they are copied, and
//! nothing is abandoned. What is being copied, out or back, is not dropped from the tier and not
//! read by anybody else.
//!
//! ```text
//!               start_store              land
//!   not copied -------------> moving ---------> there, warmest ... coldest -----> not copied
//!                                ^                            |       start_store, for room
//!                                +------- start_load ---------+
//! ```

use super::tier::{Copied, Departure, Place};
use super::{Pool, Table};
use crate::link::TransferId;
use blis_core::Blocks;
use blis_core::runs::RunId;

/// What the tier has of a prompt behind a block.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Behind {
    /// Blocks that it has, or will have.
    pub blocks: u32,
    /// Whether some of them are being copied, so that they cannot be read yet.
    pub moving: bool,
}

/// The tier has no room for a copy, because it holds nothing else that may be dropped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NoRoom;

impl Pool {
    /// How far the tier has `prompt` from block `from` on.
    pub fn behind(&self, prompt: Blocks<'_>, from: u32) -> Behind {
        let mut behind = Behind::default();
        let mut at = 0;
        for step in self.tree.walk(prompt) {
            let start = at.max(from);
            at += step.blocks;
            if at > from {
                let copied = self.tree.get(step.run).copied;
                if !copied.takes_room() {
                    break;
                }
                behind.blocks += at - start;
                behind.moving |= !copied.is_there();
            }
        }
        behind
    }

    /// Orders copies of those of the blocks `from..upto` of a table, which are shared, that the
    /// tier lacks. `None` if it lacks none.
    ///
    /// # Errors
    /// If there is no room for all of them; then nothing has changed.
    pub fn start_store(
        &mut self,
        table: &Table,
        from: u32,
        upto: u32,
        id: TransferId,
    ) -> Result<Option<Departure>, NoRoom> {
        let path = self.path(table, from, upto);
        let lacks = |&&(run, _): &&(RunId, u32)| self.tree.get(run).copied == Copied::No;
        let inside = |run, end: u32| end.min(upto) - from.max(end - self.tree.blocks(run));
        let blocks: u32 = path.iter().filter(lacks).map(|&(run, end)| inside(run, end)).sum();
        if blocks == 0 {
            return Ok(None);
        }
        self.make_room_beside(&path, blocks)?;
        for (run, end) in path {
            if self.tree.get(run).copied == Copied::No {
                let above = end - self.tree.blocks(run);
                let run = if end > upto { self.split(run, upto - above) } else { run };
                if above < from {
                    self.split(run, from - above);
                }
                self.move_by(id, run);
            }
        }
        self.tier_mut().used += blocks;
        Ok(Some(Departure { id, blocks }))
    }

    /// Starts to copy `prompt` back from block `from` on, which the tier has.
    pub fn start_load(&mut self, prompt: Blocks<'_>, from: u32, id: TransferId) -> Departure {
        let (runs, _) = self.copies_between(prompt, from, prompt.len(), 0);
        for run in runs {
            self.unlink_copy(run);
            self.move_by(id, run);
        }
        Departure { id, blocks: prompt.len() - from }
    }

    /// The transfer that copies a run, out or back, and that nobody may disturb.
    pub fn moved_by(&self, run: RunId) -> Option<TransferId> {
        self.list_of(run).filter(|_| !self.tree.get(run).copied.is_leaving())
    }

    fn move_by(&mut self, id: TransferId, run: RunId) {
        self.tree.get_mut(run).copied = Copied::Moving(id, Place::default());
        self.link_warmest(run);
    }

    /// The runs of a table that hold blocks of `from..upto`, and where they end, deepest first.
    fn path(&self, table: &Table, from: u32, upto: u32) -> Vec<(RunId, u32)> {
        let mut runs = Vec::new();
        let (mut next, mut end) = (table.leaf(), table.shared());
        while let Some(run) = next.filter(|_| end > from) {
            let above = end - self.tree.blocks(run);
            if above < upto {
                runs.push((run, end));
            }
            (next, end) = (self.tree.parent(run), above);
        }
        runs
    }

    /// Drops the coldest copies, but none of those of `kept`, until there is room for `blocks`.
    fn make_room_beside(&mut self, kept: &[(RunId, u32)], blocks: u32) -> Result<(), NoRoom> {
        let tier = self.tier_mut();
        let mut missing = blocks.saturating_sub(tier.total - tier.used);
        let (mut next, mut found, mut victims) = (tier.copies.oldest, 0, Vec::new());
        while let Some(run) = next.filter(|_| found < missing) {
            if !kept.iter().any(|&(other, _)| other == run) {
                found += self.tree.blocks(run);
                victims.push(run);
            }
            next = match self.tree.get(run).copied {
                Copied::There(_, place) => place.warmer,
                _ => unreachable!("only copies are listed"),
            };
        }
        if found < missing {
            return Err(NoRoom);
        }
        for run in victims {
            missing -= self.drop_copy(run, missing);
        }
        Ok(())
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

    /// A table of computed blocks.
    fn computed(pool: &mut Pool, blocks: &[u64]) -> Table {
        let mut table = Table::default();
        let content = content(blocks);
        let full = content.prompt_blocks(SIZE);
        pool.grow(&mut table, full.len());
        pool.commit(&mut table, full);
        table
    }

    fn behind(pool: &Pool, blocks: &[u64], from: u32) -> (u32, bool) {
        let Behind { blocks, moving } = pool.behind(content(blocks).prompt_blocks(SIZE), from);
        (blocks, moving)
    }

    #[test]
    fn an_ordered_copy_outlives_its_blocks_and_can_be_read_once_it_has_landed() {
        let mut pool = Pool::with_tier(4, 9);
        let mut table = computed(&mut pool, &[1, 2, 3]);
        let stored = pool.start_store(&table, 0, 2, TransferId(1)).expect("there is room");
        let stored = stored.expect("the tier has nothing");
        assert_eq!((stored.blocks, pool.copied()), (2, 2));
        pool.release(&mut table, |_| 0);
        while let Some(run) = pool.first_idle() {
            pool.evict(run, 1);
        }
        assert_eq!((pool.free(), behind(&pool, &[1, 2, 3], 0)), (4, (2, true)));
        pool.check([].iter());
        assert_eq!((pool.land(&stored, 7), behind(&pool, &[1, 2, 3], 0)), (2, (2, false)));
        let prompt = content(&[1, 2]);
        let load = pool.start_load(prompt.prompt_blocks(SIZE), 1, TransferId(2));
        assert_eq!((load.blocks, behind(&pool, &[1, 2], 0)), (1, (2, true)));
        assert_eq!(behind(&pool, &[1, 8], 0), (1, false), "the first block is not being read");
        pool.land(&load, 0);
        assert_eq!(behind(&pool, &[1, 2], 1), (1, false));
        pool.check([].iter());
    }

    #[test]
    fn a_copy_is_refused_if_all_that_could_make_room_is_being_copied() {
        let mut pool = Pool::with_tier(9, 3);
        let old = computed(&mut pool, &[1, 2]);
        let new = computed(&mut pool, &[7, 8, 9]);
        let stored = pool.start_store(&old, 0, 2, TransferId(1)).expect("there is room");
        assert_eq!(pool.start_store(&new, 0, 3, TransferId(2)).err(), Some(NoRoom));
        pool.land(&stored.expect("the tier has nothing"), 7);
        let last = pool.start_store(&new, 1, 3, TransferId(3)).expect("one block can go");
        assert_eq!((last.expect("it lacks both").blocks, pool.copied()), (2, 3));
        assert_eq!(
            (behind(&pool, &[1, 2], 0), behind(&pool, &[7, 8, 9], 1)),
            ((1, false), (2, true))
        );
        assert!(pool.start_store(&new, 1, 3, TransferId(4)).expect("nothing is missing").is_none());
        pool.check([old, new].iter());
    }
}
