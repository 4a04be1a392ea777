//! Predictions against what was measured on an H200.

mod fidelity;
mod vllm;
