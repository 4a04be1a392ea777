//! Preemption: whose blocks are taken back when none is left. One file a policy, one line here.

pub mod fewest_blocks;
pub mod least_progress;
pub mod lowest_priority;
pub mod tail;

use crate::contract::Preempt;
use crate::spec::Spec;
use crate::view::RunningView;
use std::cmp::Ordering;

/// All of them, by name.
pub const ALL: &[&Spec<dyn Preempt>] =
    &[&fewest_blocks::SPEC, &least_progress::SPEC, &lowest_priority::SPEC, &tail::SPEC];

/// The index of the least of `running` by `order`, of equals of the last.
fn last_least(
    running: &[RunningView],
    order: impl Fn(&RunningView, &RunningView) -> Ordering,
) -> usize {
    let least = (0..running.len()).rev().min_by(|&a, &b| order(&running[a], &running[b]));
    least.expect("somebody is running")
}
