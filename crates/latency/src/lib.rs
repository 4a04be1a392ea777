//! How long things take: step-time models, and the catalogue of models and GPUs.
//!
//! A model sees the shape of a step and nothing else: no requests, no queues, no clock. It must be a pure
//! function, so that equal shapes always take equal time.

pub mod shape;

pub use shape::{StepShape, StepTime};
