//! The simulator against hand-made cases, itself, and theory.

mod exhaustive;
mod golden;
mod golden_tier;
mod harness;
mod relations;
mod signals;
mod timeline;
mod worlds;
