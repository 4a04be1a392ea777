//! Admission: whether the gateway lets a request in. One file a policy, one line here.

pub mod always_admit;
pub mod reject_all;
pub mod token_bucket;

use crate::contract::Admission;
use crate::spec::Spec;

/// All of them, by name.
pub const ALL: &[&Spec<dyn Admission>] =
    &[&always_admit::SPEC, &reject_all::SPEC, &token_bucket::SPEC];
