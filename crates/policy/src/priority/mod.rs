//! Priority: how important a waiting request is. One file a policy, one line here.

pub mod constant;
pub mod slo_class;

use crate::contract::Priority;
use crate::spec::Spec;

/// All of them, by name.
pub const ALL: &[&Spec<dyn Priority>] = &[&constant::SPEC, &slo_class::SPEC];
