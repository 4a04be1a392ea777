//! `priority-fcfs`: schedules the highest priority first, and equals in the order of joining the
//! queue.
//!
//! **Prefers** the highest priority; of equals, the one that joined the queue first.
//!
//! **Reads** the priority that the priority policy gives (live).
//!
//! **Parameters** none.
//!
//! **Origin** vLLM's `--scheduling-policy priority`, together with the preemption policy
//! `lowest-priority` and a priority that does not change, as `slo-class`. There, equals are in the
//! order of arrival, which is the same unless one overtakes another on the way to the queue.

use crate::prelude::*;

/// How `priority-fcfs` introduces itself.
pub const SPEC: Spec<dyn Order> = Spec {
    name: "priority-fcfs",
    help: "Schedules the highest priority first; ties in queue order",
    needs: |_| Needs { priority: true, ..Needs::NONE },
    ..Spec::built_by(|_, _| Box::new(PriorityFcfs))
};

/// Highest priority first.
#[derive(Clone, Copy, Debug)]
pub struct PriorityFcfs;

impl Order for PriorityFcfs {
    fn rank(&self, _: &WaitingView<'_>, priority: f64, _: Time) -> f64 {
        // Not `-priority`: the negative zero would rank before the positive one.
        0.0 - priority
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::view::examples::waiting;
    use std::cmp::Ordering;

    fn rank(input_tokens: u32, priority: f64) -> f64 {
        PriorityFcfs.rank(&waiting(input_tokens), priority, Time::ZERO)
    }

    #[test]
    fn a_higher_priority_ranks_first_and_prompts_do_not_matter() {
        assert!(rank(900, 5.0) < rank(7, 1.0));
        assert_eq!(rank(900, 0.0).total_cmp(&rank(7, -0.0)), Ordering::Equal);
    }
}
