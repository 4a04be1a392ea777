//! The simulator against hand-made cases, itself, and theory.

mod belady;
mod evictors;
mod golden;
mod harness;
mod relations;
mod signals;
mod victims;
mod worlds;
