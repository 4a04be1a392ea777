//! The pool's books: everything that must be true of it, checked by walking all of it.
//!
//! Called by the audit and by tests; nothing else may depend on it.

use super::{Pool, Table};

impl Pool {
    /// Walks everything and checks the books. `tables` are all tables that hold blocks.
    ///
    /// # Panics
    /// If the books are wrong.
    pub fn check<'a>(&self, tables: impl Iterator<Item = &'a Table>) {
        let most = self.tree.runs().map(|run| run.index() + 1).max().unwrap_or(0);
        let mut holders = vec![0_u32; most];
        let mut below = vec![0_u32; most];
        let (mut private, mut held) = (0, 0);
        for table in tables {
            let mut blocks = 0;
            let mut run = table.leaf;
            while let Some(held) = run {
                holders[held.index()] += 1;
                blocks += self.tree.blocks(held);
                run = self.tree.parent(held);
            }
            assert_eq!(blocks, table.shared, "a table's runs add up to its shared blocks");
            private += table.private;
            held += u64::from(table.blocks());
        }
        let (mut shared, mut idle) = (0, 0);
        for run in self.tree.runs() {
            let known = self.tree.get(run);
            let expected = holders[run.index()];
            assert_eq!(known.holders, expected, "holders of {run:?}");
            if known.resident {
                let count = if expected > 0 { &mut shared } else { &mut idle };
                *count += self.tree.blocks(run);
                if let Some(parent) = self.tree.parent(run) {
                    below[parent.index()] += 1;
                    assert!(self.tree.get(parent).resident, "what {run:?} continues is resident");
                }
            } else {
                assert_eq!(expected, 0, "a run that is not here is not held");
                let kept = known.copied.takes_room() || self.tree.children(run) > 0;
                assert!(kept, "{run:?} is nowhere and of no use");
            }
        }
        for run in self.tree.runs() {
            assert_eq!(self.tree.get(run).below, below[run.index()], "runs below {run:?}");
        }
        assert_eq!((self.in_use, self.idle), (shared + private, idle), "in use, idle");
        assert_eq!(self.held, held, "blocks by holder");
        assert_eq!(self.free + self.idle + self.in_use, self.total, "blocks add up");
        self.check_lists();
        self.check_tier();
    }

    /// Checks that no idle run is worth less than an idle one that continues it, as evictors
    /// promise.
    ///
    /// # Panics
    /// If one is: it could not be dropped when its turn comes.
    pub fn check_worths(&self) {
        for run in self.tree.runs() {
            let idle = |run| self.tree.get(run).holders == 0 && self.tree.get(run).resident;
            if let Some(parent) = self.tree.parent(run)
                && idle(parent)
                && idle(run)
            {
                let (above, below) = (self.tree.get(parent).worth, self.tree.get(run).worth);
                assert!(above >= below, "{parent:?} is worth less than what continues it, {run:?}");
            }
        }
    }

    fn check_lists(&self) {
        let mut listed = 0;
        let mut seen = std::collections::BTreeSet::new();
        let worthless = [(&0, &self.worthless)];
        for (&worth, ends) in worthless.into_iter().chain(&self.worthy) {
            assert!(worth == 0 || ends.oldest.is_some(), "a list without runs is forgotten");
            let (mut run, mut previous) = (ends.oldest, None);
            while let Some(idle) = run {
                let known = self.tree.get(idle);
                assert!(seen.insert(idle), "{idle:?} is listed once");
                assert_eq!(known.worth, worth, "{idle:?} is in the list of its worth");
                assert!(known.holders == 0 && known.resident, "{idle:?} is idle");
                listed += self.tree.blocks(idle);
                assert_eq!(known.older, previous, "links go both ways");
                (run, previous) = (known.newer, run);
            }
            assert_eq!(ends.newest, previous, "the list ends with the newest");
        }
        assert_eq!(listed, self.idle, "every idle run is listed");
    }
}
