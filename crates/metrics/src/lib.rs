//! What happened: the fact stream, and what can be said about it.
//!
//! `sim` states facts; this crate turns them into numbers (`summary`) and checks that they are
//! possible (`audit`). It must never influence a run, print, or know how a decision was made.

pub mod audit;
pub mod end;
pub mod fact;
pub mod fanout;
pub mod life;
pub mod metric;
mod record;
pub mod report;
mod sample;
pub mod slo;
mod steady;
pub mod strips;
pub mod summary;
mod transcript;

pub use audit::{Audit, AuditConfig, AuditReport, Loads, Violation, check_report};
pub use end::{End, RunEnd};
pub use fact::{
    Batch, Candidate, Fact, Gauges, Listener, Reading, Record, Stage, Status, TtftSplit,
};
pub use fanout::Fanout;
pub use life::{Doing, Life, Lives, Stretch};
pub use report::{
    Curves, Decomposition, Distributions, EngineTime, InstanceSection, KvSection, Latency,
    OverTime, PoolSection, Report, RoutingSection, Saturation, Section, SplitMs, SplitStats,
    Steady, TierSection,
};
pub use slo::{SloTarget, SloTargets};
pub use strips::Strips;
pub use summary::Summary;
pub use transcript::{Line, Transcript};
