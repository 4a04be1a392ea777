//! Experiments: studies, searches, capacities and explanations, made of trials whose rows a ledger
//! keeps.
//!
//! A *trial* is a scenario and a seed; a *row* is what it leaves behind. Everything here computes
//! from rows. This crate reads files, opens the ledger and starts threads; it must never print,
//! exit or read a wall clock.

pub mod capacity;
pub mod counterfactual;
pub mod design;
pub mod evolve;
pub mod explain;
pub mod failure;
pub mod hypothesis;
pub mod interval;
mod key;
pub mod ledger;
pub mod metric;
pub mod optimize;
pub mod study;
pub mod trial;
pub mod tune;
pub mod verdict;
pub mod why;

pub use blis_optimize::stats;
pub use failure::Failure;
pub use interval::Interval;
pub use ledger::{Ledger, LedgerError};
pub use metric::Metric;
pub use trial::Runner;
