//! Offload: which blocks are copied to the CPU tier, and when. One file a policy, one line here.

pub mod on_evict;
pub mod threshold;
pub mod vllm;
pub mod write_through;

use crate::contract::Offload;
use crate::spec::Spec;

/// All of them, by name.
pub const ALL: &[&Spec<dyn Offload>] =
    &[&on_evict::SPEC, &threshold::SPEC, &vllm::SPEC, &write_through::SPEC];
