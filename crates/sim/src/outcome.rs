//! How a run is watched, and what it leaves besides its facts.

use blis_core::Time;
use blis_metrics::End;
use std::collections::BTreeMap;

/// What a run leaves besides its facts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Outcome {
    /// How it ended.
    pub end: End,
    /// When it ended, in simulated time.
    pub ended_at: Time,
    /// Requests that arrived.
    pub arrived: u64,
    /// Simulated events: arrivals, decisions, enqueues, steps and clients that give up. The same
    /// with and without fast-forward.
    pub events: u64,
    /// Steps whose time is an extrapolation of the latency model.
    pub extrapolated: Extrapolated,
    /// How often each mechanism of the policies acted, by name.
    pub mechanisms: BTreeMap<String, u64>,
}

/// Steps whose shape was outside what the latency model was fitted to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Extrapolated {
    /// How many.
    pub steps: u64,
    /// In which respects: the bits of `StepTime::beyond`.
    pub beyond: u32,
}

/// How far a run has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Progress {
    /// Simulated time.
    pub now: Time,
    /// Requests that arrived.
    pub arrived: u64,
    /// Requests whose story is over.
    pub closed: u64,
}

/// Watches a run from outside, for progress bars and Ctrl-C.
pub trait Observer {
    /// Called now and then; `false` stops the run.
    fn go_on(&mut self, progress: Progress) -> bool;
}

/// An observer that never stops a run.
pub struct Unobserved;

impl Observer for Unobserved {
    fn go_on(&mut self, _progress: Progress) -> bool {
        true
    }
}

/// Why a run could not go on.
#[derive(Debug, thiserror::Error)]
pub enum RunError {
    /// The request source failed, e.g. a malformed line in the middle of a trace.
    #[error(transparent)]
    Source(Box<dyn std::error::Error + Send + Sync>),
    /// Requests preempt each other, and none of them gets any further.
    #[error(
        "requests preempt each other for ever: {preemptions} times until {at}, and no token came \
         of it; give `total_kv_blocks` or the chunks of prompts more room, or `scheduler: fcfs` \
         and `preempt: tail`"
    )]
    Endless {
        /// How often, since the last token.
        preemptions: u64,
        /// When it was given up.
        at: Time,
    },
}
