//! `fcfs`: schedules requests in the order of joining the queue.
//!
//! **Prefers** the request that joined the queue first.
//!
//! **Reads** nothing.
//!
//! **Parameters** none.
//!
//! **Origin** vLLM's default scheduling policy (`fcfs`).

use crate::prelude::*;

/// How `fcfs` introduces itself.
pub const SPEC: Spec<dyn Order> = Spec {
    name: "fcfs",
    help: "Schedules requests in queue order",
    ..Spec::built_by(|_, _| Box::new(Fcfs))
};

/// Order of joining the queue.
#[derive(Clone, Copy, Debug)]
pub struct Fcfs;

impl Order for Fcfs {
    fn rank(&self, _: &WaitingView<'_>, _: f64, _: Time) -> f64 {
        0.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::view::examples::waiting;
    use std::cmp::Ordering;

    fn rank(input_tokens: u32, priority: f64) -> f64 {
        Fcfs.rank(&waiting(input_tokens), priority, Time::ZERO)
    }

    #[test]
    fn all_ranks_are_equal_so_that_the_queue_keeps_its_order() {
        assert_eq!(rank(7, 3.0).total_cmp(&rank(900, -3.0)), Ordering::Equal);
    }
}
