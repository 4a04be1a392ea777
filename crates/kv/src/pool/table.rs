//! What requests hold and find in a pool, and what the evictor is asked.

use blis_core::runs::{Match, RunId};

/// The blocks of one request. Give it back with [`Pool::release`](super::Pool::release).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Table {
    pub(crate) leaf: Option<RunId>,
    pub(crate) shared: u32,
    pub(crate) private: u32,
    /// Blocks that are full; those of them that are not shared are the first private ones.
    pub(crate) full: u32,
}

/// What [`Pool::lookup`](super::Pool::lookup) found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Hit {
    /// Blocks that need not be computed.
    pub blocks: u32,
    /// How many of them are idle, and so stop being available when claimed.
    pub idle: u32,
    /// How many of the idle ones are being copied.
    pub(crate) leaving: u32,
    /// Blocks behind them that the CPU tier has.
    pub copied: u32,
    pub(crate) last: Option<Match>,
}

/// The use of a run that has just ended, for the evictor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Use {
    /// How often the run was claimed or committed so far.
    pub uses: u32,
    /// Blocks from the start of the content to the end of the run.
    pub upto: u32,
    /// The worth it had before.
    pub worth: u64,
}

/// The evictor's opinion of the end of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Judged {
    /// What it is worth.
    pub worth: u64,
    /// From which block of the content on; before that, the evictor is asked again.
    pub from: u32,
}

impl Hit {
    /// Nothing found.
    pub const NONE: Hit = Hit { blocks: 0, idle: 0, leaving: 0, copied: 0, last: None };

    /// The leaf of a table that holds just what was found; `None` if no table can, because a run
    /// was left in the middle.
    pub fn leaf(&self) -> Option<Option<RunId>> {
        match self.last {
            None => Some(None),
            Some(last) => last.whole.then_some(Some(last.run)),
        }
    }
}

impl Table {
    /// Blocks held.
    pub fn blocks(&self) -> u32 {
        self.shared + self.private
    }

    /// Blocks held that are full and known to the prefix cache.
    pub fn shared(&self) -> u32 {
        self.shared
    }

    /// Blocks held that were full when they were last committed.
    pub fn full(&self) -> u32 {
        self.full
    }

    /// The last run of those; `None` if there are none.
    pub fn leaf(&self) -> Option<RunId> {
        self.leaf
    }
}
