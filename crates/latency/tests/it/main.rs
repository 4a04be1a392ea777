//! Tests that look at measured data.

mod h200;
mod operators;
mod roofline;
mod vllm;
