//! Eviction: which cached blocks nobody uses are dropped first. One file a policy, one line here.

pub mod lru;

use crate::contract::Evict;
use crate::spec::Spec;

/// All of them, by name.
pub const ALL: &[&Spec<dyn Evict>] = &[&lru::SPEC];
