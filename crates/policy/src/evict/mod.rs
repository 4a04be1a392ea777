//! Eviction: which cached blocks nobody uses are dropped first. One file a policy, one line here.

pub mod belady;
pub mod intent_aware;
pub mod lfu;
pub mod lru;
pub mod session_aware;
pub mod slo_aware;

use crate::contract::Evict;
use crate::spec::Spec;

/// All of them, by name.
pub const ALL: &[&Spec<dyn Evict>] = &[
    &belady::SPEC,
    &intent_aware::SPEC,
    &lfu::SPEC,
    &lru::SPEC,
    &session_aware::SPEC,
    &slo_aware::SPEC,
];
