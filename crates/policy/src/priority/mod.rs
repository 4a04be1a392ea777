//! Priority: how important a waiting request is. One file a policy, one line here.

pub mod age;
pub mod constant;
pub mod deadline;
pub mod formula;
pub mod slo_class;
pub mod slo_tiered;

use crate::contract::Priority;
use crate::spec::Spec;

/// All of them, by name.
pub const ALL: &[&Spec<dyn Priority>] = &[
    &age::SPEC,
    &constant::SPEC,
    &deadline::SPEC,
    &formula::SPEC,
    &slo_class::SPEC,
    &slo_tiered::SPEC,
];
