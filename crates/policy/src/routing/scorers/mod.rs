//! Scorers: how good each instance is for a request, in the eyes of the `weighted` router.
//! One file a scorer, one line here.

pub mod kv_utilization;
pub mod load_balance;
pub mod prefix_affinity;
pub mod queue_depth;

use crate::contract::Scorer;
use crate::spec::Spec;

/// All of them, by name.
pub const ALL: &[&Spec<dyn Scorer>] =
    &[&kv_utilization::SPEC, &load_balance::SPEC, &prefix_affinity::SPEC, &queue_depth::SPEC];
