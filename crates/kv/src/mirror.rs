//! What somebody far away knows of a pool: the same runs, some time later.
//!
//! Engines tell what they store and drop as *KV events*, and those who hear them keep a picture of
//! the cache. Here an event is a change of the pool's tree of runs. A mirror makes the same changes
//! to a tree of its own, one after the other, so its runs have the same ids, and a change costs as
//! much as it did in the pool. When changes are delivered is the host's business.

use blis_core::runs::{RunId, RunTree};
use blis_core::{Blocks, Content};

/// A change of what a pool knows.
#[derive(Clone, Debug)]
pub struct Change(pub(crate) Step);

#[derive(Clone, Debug)]
pub(crate) enum Step {
    /// Blocks `at..blocks` of `content` are cached, as a run of their own.
    Inserted { parent: Option<RunId>, content: Content, blocks: u32, at: u32 },
    /// Blocks `at..blocks` of `content` are cached, at the end of a run.
    Extended { run: RunId, content: Content, blocks: u32, at: u32 },
    /// A run was cut; nothing else has changed.
    Cut { run: RunId, at: u32 },
    /// The last blocks of a run are gone.
    Trimmed { run: RunId, blocks: u32 },
    /// A run is in the pool, or no longer.
    Here { run: RunId, here: bool },
    /// A run is in the CPU tier, or no longer.
    Copied { run: RunId, copied: bool },
}

/// A picture of a pool.
#[derive(Clone, Debug)]
pub struct Mirror {
    tree: RunTree<Seen>,
    block_size: u32,
}

/// Where a run is.
#[derive(Clone, Copy, Debug)]
struct Seen {
    here: bool,
    copied: bool,
}

/// What a mirror shows of a prompt.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Shown {
    /// Leading blocks that are in the pool.
    pub blocks: u32,
    /// Blocks behind them that are in the CPU tier.
    pub copied: u32,
}

impl Mirror {
    /// The picture of an empty pool whose blocks have `block_size` tokens.
    pub fn new(block_size: u32) -> Mirror {
        Mirror { tree: RunTree::default(), block_size }
    }

    /// The pool has changed. Changes come in the order in which they were made.
    pub fn apply(&mut self, change: &Change) {
        match &change.0 {
            Step::Inserted { parent, content, blocks, at } => {
                let content = content.blocks(self.block_size, *blocks);
                self.tree.insert(*parent, content, *at, Seen { here: true, copied: false });
            }
            Step::Extended { run, content, blocks, at } => {
                self.tree.extend(*run, content.blocks(self.block_size, *blocks), *at);
            }
            Step::Cut { run, at } => {
                self.tree.split(*run, *at, |tail| *tail);
            }
            Step::Trimmed { run, blocks } => {
                self.tree.trim(*run, *blocks);
            }
            Step::Here { run, here } => self.tree.get_mut(*run).here = *here,
            Step::Copied { run, copied } => self.tree.get_mut(*run).copied = *copied,
        }
    }

    /// What is known to be cached of `prompt`.
    pub fn lookup(&self, prompt: Blocks<'_>) -> Shown {
        let mut shown = Shown::default();
        let mut here = true;
        for step in self.tree.walk(prompt) {
            let seen = self.tree.get(step.run);
            here &= seen.here;
            if here {
                shown.blocks += step.blocks;
            } else if seen.copied {
                shown.copied += step.blocks;
            } else {
                break;
            }
        }
        shown
    }
}
