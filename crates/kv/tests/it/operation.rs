//! What can be done to a pool.

use blis_core::random::mix;
use blis_kv::Use;
use std::fmt;

/// An operation. Amounts are cut down to what is possible and an operation on a slot that is taken
/// or empty does nothing, so that every operation is legal in every state.
#[derive(Clone, Copy)]
pub(crate) enum Operation {
    /// A request comes whose prompt is `prompt`, and claims what is cached of the first `known`
    /// blocks.
    Start { slot: usize, prompt: usize, known: usize },
    /// A request gets up to so many blocks more; idle blocks are evicted for it.
    Grow { slot: usize, blocks: u32 },
    /// Up to so many more blocks of a request are full.
    Commit { slot: usize, blocks: u32 },
    /// A request goes.
    Release { slot: usize, worth: Worth },
    /// Up to so many idle blocks are evicted.
    Evict { blocks: u32 },
    /// A request reads the copies behind what it shares, as far as there is room for them.
    Reload { slot: usize },
    /// What a request shares starts on its way to the tier.
    StartCopy { slot: usize },
    /// Up to so many idle blocks start on their way to the tier.
    StartCopyOfIdle { most: u32 },
    /// One of the departures lands.
    Land { which: usize },
    /// Up to so many blocks that would be evicted first are copied at once.
    CopyNow { blocks: u32 },
    /// Up to so many idle blocks are copied at once and evicted.
    EvictWithCopy { blocks: u32 },
    /// What a request shares is copied at once.
    CopyTableNow { slot: usize },
    /// Copies of blocks `from..upto` of a prompt are read; recent ones are no older than `age`.
    Touch { prompt: usize, from: u32, upto: u32, age: u64 },
}

/// How an evictor judges what is released.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Worth {
    /// All alike.
    None,
    /// Trunks are worth less than leaves, so that the order contradicts the tree.
    Depth,
    /// Leaves are worth less than trunks.
    Trunks,
    /// As often as it was used.
    Uses,
    /// More than before.
    More,
    /// Anything below 4.
    Any(u64),
    /// Every third block is worth something else than those behind it.
    Cut,
}

impl Worth {
    pub(crate) fn of(self, run: Use) -> u64 {
        match self {
            Worth::None => 0,
            Worth::Depth => run.upto.into(),
            Worth::Trunks => u64::from(100 - run.upto),
            Worth::Uses => run.uses.into(),
            Worth::More => run.worth + 1,
            Worth::Any(seed) => mix(seed, run.upto.into()) % 4,
            Worth::Cut => u64::from(40 - (run.upto - 1) / 3),
        }
    }

    /// From which block on that holds.
    pub(crate) fn from(self, run: Use) -> u32 {
        match self {
            Worth::Cut => (run.upto - 1) / 3 * 3,
            _ => 0,
        }
    }
}

/// One line each, so that a failing history is short enough to read.
impl fmt::Debug for Operation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Operation::Start { slot, prompt, known } => {
                write!(f, "{slot}: start prompt {prompt}, claim of {known}")
            }
            Operation::Grow { slot, blocks } => write!(f, "{slot}: grow {blocks}"),
            Operation::Commit { slot, blocks } => write!(f, "{slot}: commit {blocks}"),
            Operation::Release { slot, worth } => write!(f, "{slot}: release, worth {worth:?}"),
            Operation::Evict { blocks } => write!(f, "evict {blocks}"),
            Operation::Reload { slot } => write!(f, "{slot}: reload"),
            Operation::StartCopy { slot } => write!(f, "{slot}: start copy"),
            Operation::StartCopyOfIdle { most } => write!(f, "start copy of {most} idle"),
            Operation::Land { which } => write!(f, "land departure {which}"),
            Operation::CopyNow { blocks } => write!(f, "copy {blocks} now"),
            Operation::EvictWithCopy { blocks } => write!(f, "copy and evict {blocks}"),
            Operation::CopyTableNow { slot } => write!(f, "{slot}: copy now"),
            Operation::Touch { prompt, from, upto, age } => {
                write!(f, "touch {from}..{upto} of prompt {prompt}, since {age} ago")
            }
        }
    }
}
