//! Statistics of seeds: how sure a number is, and when enough runs have been made to tell.
//!
//! Everything here is a function of plain values; nothing runs a simulation, and nothing draws but
//! from a stream of its own, so that the same values give the same answer to the last bit. Decision
//! 12 says which methods are used and why.

mod bootstrap;
mod estimate;
mod holm;
mod sequence;
mod spending;
mod student;

pub use bootstrap::bca;
pub use estimate::{Estimate, by_student, estimate};
pub use holm::step_down;
pub use sequence::Sequence;
pub use spending::nominal_levels;
pub use student::mean_and_half_width;
