//! How a run ended: what `sim` tells the summary and the audit once the last fact is stated.

use blis_core::Time;

/// Why a run ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum End {
    /// Every request's story is over.
    Drained,
    /// The horizon was reached.
    Horizon,
    /// The observer asked to stop.
    Interrupted,
    /// Nothing can happen any more although requests wait; a defect, reported instead of looping.
    Stalled {
        /// What is stuck.
        why: String,
    },
}

/// The end of a run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RunEnd {
    /// When it ended; the run lasted from [`Time::ZERO`] until then, and no fact is later.
    pub ended_at: Time,
    /// Why it ended.
    pub end: End,
    /// How many instances the cluster has, so that those that never worked are reported too.
    pub instances: u32,
}

impl End {
    /// The spelling in reports.
    pub const fn name(&self) -> &'static str {
        match self {
            End::Drained => "drained",
            End::Horizon => "horizon",
            End::Interrupted => "interrupted",
            End::Stalled { .. } => "stalled",
        }
    }
}
