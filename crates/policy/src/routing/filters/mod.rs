//! Filters: which instances the `weighted` router does not even consider.
//! One file a filter, one line here.

pub mod kv_filter;
pub mod prefix_affinity_filter;
pub mod slo_headroom_filter;

use crate::contract::Filter;
use crate::spec::Spec;

/// All of them, by name.
pub const ALL: &[&Spec<dyn Filter>] =
    &[&kv_filter::SPEC, &prefix_affinity_filter::SPEC, &slo_headroom_filter::SPEC];
