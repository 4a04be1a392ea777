//! Pickers: which instance the `weighted` router takes, given total scores.
//! One file a picker, one line here.

pub mod max_score;
pub mod random;
pub mod weighted_random;

use crate::contract::Picker;
use crate::spec::Spec;

/// All of them, by name.
pub const ALL: &[&Spec<dyn Picker>] = &[&max_score::SPEC, &random::SPEC, &weighted_random::SPEC];
