//! Every decision: one folder a kind, one file a policy, one line in the kind's registry.
//!
//! A policy's file holds a header (*Prefers / Reads / Parameters / Origin*), its `SPEC`, the type and its tests.
//! From `SPEC` come the check of scenario files, the help, the reference page and the search space. Policies must
//! never see an output length, a clock, or anything fresher than what they declare in `needs`.

pub mod contract;
pub mod spec;
pub mod view;

pub use contract::{
    Admission, Choice, Evict, IdleRuns, Order, Picker, Preempt, Priority, Router, Scorer, Verdict,
};
pub use view::{InstanceView, Needs, RunningView, WaitingView};
