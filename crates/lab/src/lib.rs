//! Experiments: scenarios, runs and replications.
//!
//! The binary describes a run as a [`Draft`], resolves it into a [`Plan`] and asks for runs of it.
//! This crate reads files and starts threads; it must never print, exit or read a wall clock.

pub mod calibrate;
pub mod capacity;
pub mod counterfactual;
pub mod explain;
pub mod export;
mod hash;
pub mod hypothesis;
pub mod interval;
pub mod json;
pub mod ledger;
pub mod measured;
pub mod metric;
pub mod names;
pub mod optimize;
pub mod policies;
pub mod pool;
pub mod presets;
pub mod problem;
pub mod profile;
pub mod replay;
pub mod row;
pub mod run;
pub mod scenario;
pub mod slo;
pub mod stats;
pub mod strategy;
pub mod study;
pub mod trial;
pub mod validate;
pub mod verdict;
pub mod workload_spec;
pub mod yaml;

pub use interval::Interval;
pub use ledger::{Ledger, LedgerError};
pub use metric::Metric;
pub use names::Names;
pub use pool::replicate;
pub use problem::{Place, Problem};
pub use row::Row;
pub use run::{RunFailure, RunResult, Trial, run_scenario};
pub use scenario::{Draft, Plan};
pub use trial::Runner;
