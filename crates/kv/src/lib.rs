//! What fits in memory: the KV blocks of one engine, and which prompts they remember.
//!
//! The engine (`sim`) asks for blocks, tells when they are full, and gives them back. This crate
//! must never know about requests, time, priorities or why a block is wanted; which idle blocks go
//! first is the evictor's choice.

pub mod pool;

pub use pool::{Hit, Pool, Table};
