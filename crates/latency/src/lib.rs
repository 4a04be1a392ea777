//! How long things take: step-time models, and the catalogue of models and GPUs.
//!
//! A model sees the shape of a step and nothing else: no requests, no queues, no clock. It must be
//! a pure function, so that equal shapes always take equal time.

pub mod capacity;
pub mod catalogue;
pub mod coefficients;
pub mod constant;
pub mod fit;
pub mod model;
pub mod operators;
pub mod parallel;
pub mod profile;
pub mod roofline;
pub mod shape;
mod window;

pub use capacity::{CapacityError, Memory, kv_blocks};
pub use catalogue::hf::HfError;
pub use catalogue::{Catalogue, Fit, Gpu, Model};
pub use coefficients::{CoefficientError, Coefficients};
pub use constant::Constant;
pub use model::{Experts, Format, Formats, Latent, ModelShape, Window};
pub use operators::{OperatorError, Operators};
pub use parallel::Parallel;
pub use profile::{Profile, ProfileError};
pub use roofline::{Efficiency, GpuSheet, Roofline, RooflineError};
pub use shape::{HostTime, StepShape, StepTime};
