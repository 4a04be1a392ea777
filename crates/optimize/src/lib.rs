//! Optimisation by asking and telling.
//!
//! An [`Optimizer`] is asked for points, somebody measures them and tells. Engines: [`Bayes`]
//! (Gaussian processes, for measurements that cost), [`evolution`] (for thousands of cheap ones),
//! [`Quasi`] and [`Random`] (controls) and [`Grid`] (small spaces). Any history gives a
//! recommendation ([`recommend`]) and a [`Sensitivity`]; [`Noise`] says which points are hopeless,
//! and [`stats`] how sure a number is.
//!
//! Pure mathematics: this crate must never do I/O, read a clock, print, or know that what it
//! optimises is a simulation. The same settings and the same tells give the same asks.

mod acquire;
mod bayes;
mod cholesky;
mod control;
mod gp;
mod history;
mod kind;
mod lbfgs;
mod model;
mod noise;
mod normal;
mod nsga2;
pub mod pareto;
mod recommend;
mod search;
mod sensitivity;
mod sobol;
mod space;
pub mod stats;
mod warp;

pub use bayes::{Bayes, Settings, Several};
pub use control::{Grid, Quasi, Random};
pub use history::{History, Measured, Observation, Problem, TellError};
pub use kind::Kind;
pub use noise::Noise;
pub use nsga2::evolution;
pub use recommend::recommend;
pub use sensitivity::{Influence, Plateau, Sensitivity, Share, sensitivity, sensitivity_around};
pub use sobol::Sobol;
pub use space::{Condition, Dimension, Point, Space, SpaceError};

/// Proposes points and learns from what they gave.
pub trait Optimizer {
    /// All that was told.
    fn history(&self) -> &History;

    /// At most `count` points to measure next, none of them asked or told before. Fewer, if the
    /// space has no more.
    fn ask(&mut self, count: usize) -> Vec<Point>;

    /// Learns from a measurement, of a point that was asked for or of any other.
    ///
    /// # Errors
    /// If the point or the numbers do not fit the problem.
    fn tell(&mut self, observation: Observation) -> Result<(), TellError>;
}
