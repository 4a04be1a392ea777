//! Tests that look at measured data.

mod h200;
mod roofline;
mod vllm;
