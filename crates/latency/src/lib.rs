//! How long things take: step-time models, and the catalogue of models and GPUs.
//!
//! A model sees the shape of a step and nothing else: no requests, no queues, no clock. It must be
//! a pure function, so that equal shapes always take equal time.

pub mod catalogue;
pub mod coefficients;
pub mod constant;
pub mod shape;

pub use catalogue::{Catalogue, Fit, Gpu, Model};
pub use coefficients::{CoefficientError, Coefficients};
pub use constant::Constant;
pub use shape::{StepShape, StepTime};
