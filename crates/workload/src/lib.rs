//! Where requests come from: arrival processes, length distributions, client mixes and trace files.
//!
//! The lab fills the plain types of this crate ([`Mix`], [`Client`], [`Length`], [`Arrival`]) or
//! opens a [`TraceSource`]; the simulator pulls requests one by one through [`blis_core::Source`].
//! This crate must never look at a policy, an engine or a clock: the same seed gives the same
//! requests whatever serves them.

pub mod activity;
pub mod arrival;
pub mod error;
pub mod input;
pub mod inspect;
pub mod length;
pub mod mix;
pub mod rate;
pub mod retry;
pub mod session;
pub mod simple;
pub mod source;
pub mod trace;

mod merge;
mod names;
mod turns;

pub use activity::{Activity, ActivityPart};
pub use arrival::{Arrival, ArrivalClock, Weibull};
pub use error::SpecError;
pub use input::{Input, Media};
pub use inspect::{Inspection, Inspector};
pub use length::{Empirical, Length, MAX_TOKENS};
pub use mix::{Client, Mix};
pub use rate::{Rate, RatePoint, Users};
pub use retry::Retry;
pub use session::{Context, OnRejection, Pacing, Sessions, Think};
pub use simple::{SimpleLength, SimpleWorkload};
pub use source::MixSource;
pub use trace::{
    After, Sample, Skipped, TraceEdit, TraceEntry, TraceError, TraceErrorKind, TraceFormat,
    TraceOptions, TraceSource, TraceSummary, write_follow_up, write_header, write_request,
};
