//! Predictions against what was measured.

mod fidelity;
mod public;
mod vllm;
