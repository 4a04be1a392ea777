//! Breeding of strategies: genomes made of formulas, their mutation, crossover and simplification.
//!
//! A [`Genome`] is a score, perhaps a gate and a priority, and a choice among parts. A [`Breeder`]
//! draws new ones and changes known ones; whatever it gives is legal and in its simplest form, so
//! that two that decide alike are mostly one. A [`race`] breeds generations of them and asks an
//! [`Arena`], which `lab` brings, how good they are. This crate must never run a simulation, nor
//! read or write anything.

mod breed;
mod genome;
mod near;
mod race;
mod simplify;
#[cfg(test)]
mod tests;
mod tree;

pub use breed::Breeder;
pub use genome::{Genome, Part, Space};
pub use race::{Arena, Budget, Entrant, Raced, race};
pub use simplify::simplify;
