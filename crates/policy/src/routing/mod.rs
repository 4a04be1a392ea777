//! Routing: which instance serves an admitted request. One file a policy, one line here.

pub mod always_busiest;
pub mod filters;
pub mod knowledge;
pub mod least_loaded;
pub mod pickers;
pub mod prefix_index;
pub mod random;
pub mod round_robin;
pub mod scorers;
pub mod ties;
pub mod weighted;

use crate::contract::Router;
use crate::spec::Spec;

/// All of them, by name.
pub const ALL: &[&Spec<dyn Router>] = &[
    &always_busiest::SPEC,
    &least_loaded::SPEC,
    &random::SPEC,
    &round_robin::SPEC,
    &weighted::SPEC,
];
