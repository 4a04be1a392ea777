//! What every policy promises, checked by walking the registry: a new policy is tested by its line
//! in `ALL`.

mod admission;
mod affinity;
mod changes;
mod engine;
mod registry;
mod routing;
mod variants;
mod views;
