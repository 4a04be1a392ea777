//! `lowest-priority`: the least important request.
//!
//! **Prefers** to take back the blocks of a running request of the lowest priority; of equals, of
//! the one that was scheduled last. So nobody is preempted while a less important request runs,
//! and with equal priorities it is `tail`.
//!
//! **Reads** the priority that a request had when it was scheduled, and the running order (live;
//! the engine asks itself). Priorities come from the priority policy: under `constant` all are
//! equal.
//!
//! **Parameters** none.
//!
//! **Origin** vLLM's scheduler under `priority`; there, of equals, the one that arrived last goes.

use crate::prelude::*;

/// How `lowest-priority` introduces itself.
pub const SPEC: Spec<dyn Preempt> = Spec {
    name: "lowest-priority",
    help: "Preempts the running request with the lowest priority; ties: the last scheduled",
    needs: |_| Needs { priority: true, ..Needs::NONE },
    ..Spec::built_by(|_, _| Box::new(LowestPriority))
};

/// The least priority, then the last.
#[derive(Clone, Copy, Debug)]
pub struct LowestPriority;

impl Preempt for LowestPriority {
    fn victim(&self, running: &[RunningView]) -> usize {
        super::last_least(running, |a, b| a.priority.total_cmp(&b.priority))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::view::examples::running;

    fn victim(priorities: &[f64]) -> usize {
        let views: Vec<RunningView> =
            priorities.iter().map(|&priority| RunningView { priority, ..running() }).collect();
        LowestPriority.victim(&views)
    }

    #[test]
    fn nobody_is_preempted_while_a_less_important_request_runs() {
        assert_eq!(victim(&[1.0, 10.0, 5.0]), 0);
        assert_eq!(victim(&[10.0, -1.0, 0.0, 5.0]), 1);
    }

    #[test]
    fn of_equals_the_one_scheduled_last_is_the_victim() {
        assert_eq!(victim(&[1.0, 10.0, 1.0, 10.0]), 2);
        assert_eq!(victim(&[5.0; 4]), 3);
        assert_eq!(victim(&[5.0]), 0);
    }
}
