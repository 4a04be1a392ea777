//! What happened: the fact stream, and what can be said about it.
//!
//! `sim` states facts; this crate turns them into numbers (`summary`) and checks that they are possible (`audit`).
//! It must never influence a run, print, or know how a decision was made.

pub mod fact;

pub use fact::{Batch, Fact, Listener, Record, Status, TtftSplit};
