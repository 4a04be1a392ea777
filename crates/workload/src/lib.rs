//! Where requests come from: arrival processes, length distributions, client mixes and trace files.
//!
//! The lab fills the plain types of this crate ([`Mix`], [`Client`], [`Length`], [`Arrival`]) or
//! opens a [`TraceSource`]; the simulator pulls requests one by one through [`blis_core::Source`].
//! This crate must never look at a policy, an engine or a clock: the same seed gives the same
//! requests whatever serves them.

pub mod arrival;
pub mod error;
pub mod length;
pub mod mix;
pub mod simple;
pub mod trace;

mod merge;
mod names;

pub use arrival::{Arrival, ArrivalClock, Weibull};
pub use error::SpecError;
pub use length::{Empirical, Length, MAX_TOKENS};
pub use mix::{Client, Mix, MixSource};
pub use simple::{SimpleLength, SimpleWorkload};
pub use trace::{TraceError, TraceErrorKind, TraceSource, TraceSummary, write_request};
