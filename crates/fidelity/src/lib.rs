//! Measured servers: reading their logs, fitting latency profiles to them, and holding predictions
//! against what was measured.
//!
//! This crate reads files and runs scenarios. It must never print, exit or read a wall clock.

pub mod calibrate;
pub mod measured;
pub mod public;
pub mod replay;
pub mod validate;
