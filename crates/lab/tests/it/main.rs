//! Scenarios against theory and a real server: queueing formulas, changes that must change nothing,
//! and what was measured on an H200.
//!
//! Every case is a scenario text that goes the way of the product: draft, plan, run.

mod bases;
mod counterfactual;
mod fidelity;
mod harness;
mod null_effects;
mod oracles;
mod patience;
mod queueing;
mod telling;
mod traces;
mod workloads;
