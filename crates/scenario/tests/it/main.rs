//! Scenarios against theory: queueing formulas, and changes that must change nothing.
//!
//! Every case is a scenario text that goes the way of the product: draft, plan, run.

mod bases;
mod formulas;
mod harness;
mod null_effects;
mod oracles;
mod patience;
mod queueing;
mod telling;
mod traces;
mod workloads;
