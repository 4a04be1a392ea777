//! `lowest-priority`: the least important request.
//!
//! **Prefers** to take back the blocks of a running request of the lowest priority; of equals, of
//! the one that arrived last. So nobody is preempted while a less important request runs.
//!
//! **Reads** the priority that a request had when it was first scheduled, arrivals, and the running
//! order if they are equal (live; the engine asks itself). Priorities come from the priority
//! policy: under `constant` all are equal. One that grows while a request waits counts as of then,
//! or two requests that do not fit together could preempt each other for ever.
//!
//! **Parameters** none.
//!
//! **Origin** vLLM's scheduler under `--scheduling-policy priority`.

use crate::prelude::*;

/// How `lowest-priority` introduces itself.
pub const SPEC: Spec<dyn Preempt> = Spec {
    name: "lowest-priority",
    help: "Preempts the running request with the lowest priority; ties: the last to arrive",
    needs: |_| Needs { priority: true, ..Needs::NONE },
    ..Spec::built_by(|_, _| Box::new(LowestPriority))
};

/// The least priority, then the latest arrival, then the last.
#[derive(Clone, Copy, Debug)]
pub struct LowestPriority;

impl Preempt for LowestPriority {
    fn victim(&self, running: &[RunningView]) -> usize {
        super::last_least(running, |a, b| {
            a.priority.total_cmp(&b.priority).then_with(|| b.arrival.cmp(&a.arrival))
        })
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
    fn of_equals_the_last_to_arrive_is_the_victim() {
        let view = |micros| RunningView { arrival: Time::from_micros(micros), ..running() };
        let views = [view(3), view(9), view(9), view(5)];
        assert_eq!(LowestPriority.victim(&views), 2);
        let unimportant = RunningView { priority: -1.0, ..view(1) };
        assert_eq!(LowestPriority.victim(&[view(3), unimportant, view(9)]), 1);
    }

    #[test]
    fn of_those_that_arrived_together_the_last_scheduled_is_the_victim() {
        assert_eq!(victim(&[1.0, 10.0, 1.0, 10.0]), 2);
        assert_eq!(victim(&[5.0; 4]), 3);
        assert_eq!(victim(&[5.0]), 0);
    }
}
