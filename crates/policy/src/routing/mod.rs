//! Routing: which instance serves an admitted request. One file a policy, one line here.

pub mod always_busiest;
pub mod cache_aware;
pub mod consistent_hash;
pub mod epoch_adaptive;
pub mod filters;
pub mod knowledge;
pub mod kv_adaptive;
pub mod least_loaded;
pub mod pickers;
pub mod power_of_two;
pub mod prefix_index;
pub mod random;
pub mod round_robin;
pub mod router;
pub mod scorers;
pub mod seats;
pub mod session_affinity;
pub mod ties;
pub mod weighted;
pub mod weights;

use crate::contract::Router;
use crate::spec::Spec;

/// All of them, by name.
pub const ALL: &[&Spec<dyn Router>] = &[
    &always_busiest::SPEC,
    &cache_aware::SPEC,
    &consistent_hash::SPEC,
    &epoch_adaptive::SPEC,
    &kv_adaptive::SPEC,
    &least_loaded::SPEC,
    &power_of_two::SPEC,
    &random::SPEC,
    &round_robin::SPEC,
    &session_affinity::SPEC,
    &weighted::SPEC,
];
