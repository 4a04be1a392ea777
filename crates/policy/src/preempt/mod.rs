//! Preemption: whose blocks are taken back when none is left. One file a policy, one line here.

pub mod tail;

use crate::contract::Preempt;
use crate::spec::Spec;

/// All of them, by name.
pub const ALL: &[&Spec<dyn Preempt>] = &[&tail::SPEC];
