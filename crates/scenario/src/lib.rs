//! Scenarios: text in, checked plans out, and runs of them.
//!
//! A [`Draft`] is what was written, [`Draft::resolve`] checks all of it, [`Checked::settle`]
//! measures the saturation if a rate is a share of it, and [`run_scenario`] runs the [`Plan`] that
//! this leaves. Everything that decides the numbers of a run is in this crate and the crates below
//! it, so their sources are what the ledger's key hashes (`build.rs`).
//!
//! This crate reads files and starts threads. It must never print, exit, read a wall clock or open
//! a database; `resolve` must never simulate.

pub mod board;
pub mod files;
pub mod hash;
pub mod input;
pub mod json;
pub mod json_schema;
pub mod legal;
pub mod limit;
pub mod names;
pub mod policies;
pub mod pool;
pub mod presets;
pub mod problem;
pub mod problems;
pub mod profile;
pub mod rate;
pub mod row;
pub mod run;
pub mod scenario;
pub mod settle;
pub mod slo;
pub mod strategy;
pub mod workload_spec;
pub mod yaml;

pub use files::Files;
pub use names::Names;
pub use pool::replicate;
pub use problem::{Place, Problem};
pub use problems::Problems;
pub use row::Row;
pub use run::{RunFailure, RunResult, run_scenario};
pub use scenario::{Checked, Draft, Oracles, Plan, Trial, Workload};
pub use settle::Saturations;

/// What the numbers of a run depend on besides its scenario and seed: a hash of the sources of the
/// simulator and of the versions of the crates below it.
pub const CODE: &str = env!("BLIS_CODE");
