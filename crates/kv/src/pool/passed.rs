//! The idle runs that need no copy: those that come first, as far as all of them are copied.
//!
//! Whoever looks for what the tier lacks would walk them again at every step, and they are most of
//! what it would walk. Kept by the pool as idle runs come, go, are cut and lose their copies.

use super::Pool;
use super::tier::Copied;
use blis_core::runs::RunId;

/// The first of the idle runs of no worth, all of which are copied or on their way: who looks for
/// others begins behind them.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Passed {
    /// Which runs these are: those with this mark.
    mark: u32,
    pub(super) last: Option<RunId>,
    pub(super) blocks: u32,
}

impl Default for Passed {
    /// No run has this mark by default.
    fn default() -> Passed {
        Passed { mark: 1, last: None, blocks: 0 }
    }
}

impl Pool {
    /// An idle run that is copied or on its way comes behind those that were passed.
    pub(super) fn pass(&mut self, run: RunId) {
        let blocks = self.tree.blocks(run);
        let known = self.tree.get_mut(run);
        let passed = &mut self.tier.as_mut().expect("only a tier takes copies").passed;
        if known.worth == 0 {
            known.passed = passed.mark;
            *passed = Passed { last: Some(run), blocks: passed.blocks + blocks, ..*passed };
        }
    }

    /// What is known of the runs that were passed, if `run` is one of them.
    fn passed_with(&mut self, run: RunId) -> Option<&mut Passed> {
        let passed = &mut self.tier.as_mut()?.passed;
        (self.tree.get(run).passed == passed.mark).then_some(passed)
    }

    /// An idle run has got so many blocks more, or less.
    pub(super) fn resize_passed(&mut self, run: RunId, by: i64) {
        if let Some(passed) = self.passed_with(run) {
            let blocks = i64::from(passed.blocks) + by;
            passed.blocks = u32::try_from(blocks).expect("it has no fewer blocks than its runs");
        }
    }

    /// `run` is no longer idle.
    pub(super) fn unpass(&mut self, run: RunId) {
        let (blocks, older) = (self.tree.blocks(run), self.tree.get(run).older);
        if let Some(passed) = self.passed_with(run) {
            passed.blocks -= blocks;
            passed.last = if passed.last == Some(run) { older } else { passed.last };
            self.tree.get_mut(run).passed = 0;
        }
    }

    /// `head` was cut off `run` and comes behind it.
    pub(super) fn split_passed(&mut self, run: RunId, head: RunId) {
        if let Some(passed) = self.passed_with(run).filter(|passed| passed.last == Some(run)) {
            passed.last = Some(head);
        }
    }

    /// The copy of `run` is gone: if it was passed, all are looked at again.
    pub(super) fn forget_passed_with(&mut self, run: RunId) {
        if let Some(passed) = self.passed_with(run) {
            *passed = Passed { mark: passed.mark + 1, ..Passed::default() };
        }
    }

    /// Checks that those were passed that are marked, and that they are copied.
    pub(super) fn check_passed(&self, passed: Passed) {
        let is_marked = |run: &RunId| self.tree.get(*run).passed == passed.mark;
        let front: Vec<RunId> = self.idle_runs().take_while(is_marked).collect();
        let marked = self.tree.runs().filter(is_marked).count();
        assert_eq!(front.len(), marked, "the first idle runs were passed, and no others");
        assert_eq!(front.last().copied(), passed.last, "the last that was passed");
        let blocks: u32 = front.iter().map(|&run| self.tree.blocks(run)).sum();
        assert_eq!(blocks, passed.blocks, "blocks that were passed");
        let lacks = |&run: &RunId| self.tree.get(run).copied == Copied::No;
        assert!(!front.iter().any(lacks), "what was passed is copied or on its way");
    }
}
