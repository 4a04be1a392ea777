//! Order: in which order waiting requests are scheduled. One file a policy, one line here.

pub mod cache_first;
pub mod edf;
pub mod fcfs;
pub mod formula;
pub mod priority_fcfs;
pub mod reverse_priority;
pub mod sjf;

use crate::contract::Order;
use crate::spec::Spec;

/// All of them, by name.
pub const ALL: &[&Spec<dyn Order>] = &[
    &cache_first::SPEC,
    &edf::SPEC,
    &fcfs::SPEC,
    &formula::SPEC,
    &priority_fcfs::SPEC,
    &reverse_priority::SPEC,
    &sjf::SPEC,
];
