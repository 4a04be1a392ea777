//! Every decision: one folder a kind, one file a policy, one line in the kind's registry.
//!
//! A policy's file holds a header (*Prefers / Reads / Parameters / Origin*), its `SPEC`, the type
//! and its tests. From `SPEC` come the check of scenario files, the help, the reference page and
//! the search space. Policies must never see an output length, a clock, or anything fresher than
//! what they declare in `needs`.

pub mod admission;
mod chosen;
mod classes;
pub mod contract;
pub mod evict;
pub mod formula;
mod gate;
mod kinds;
pub mod offload;
pub mod order;
mod policies;
pub mod predict;
pub mod preempt;
mod prelude;
pub mod priority;
pub mod registry;
pub mod routing;
mod scale;
pub mod spec;
pub mod totals;
pub mod view;

/// The sample of `CONTRIBUTING.md`, where it says `crates/policy/src/order`.
#[cfg(test)]
#[path = "../tests/sample/longest_prompt.rs"]
pub mod longest_prompt;

pub use chosen::guest::{Guest, Guests};
pub use chosen::{Chosen, Policy};
pub use contract::{
    Admission, Choice, Evict, Filter, Firings, Offload, Order, Picker, Preempt, Priority, Router,
    Scorer, Verdict,
};
pub use gate::Gate;
pub use policies::Policies;
pub use registry::{Entry, Kind, kinds, reference_markdown};
pub use routing::router::{PartsText, RouterParts, Routing};
pub use routing::weights::{Profiles, Scorers};
pub use spec::{Cluster, PolicyError, Spec, StepCost};
pub use view::{
    Answer, ClusterView, InstanceView, Intent, MemoryView, Needs, PerClass, RunningView, UseView,
    WaitingView,
};
