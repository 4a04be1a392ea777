//! `tail`: the request that was scheduled last.
//!
//! **Prefers** to take back the blocks of the last running request: it has had the least service.
//!
//! **Reads** the running order (live; the engine asks itself).
//!
//! **Parameters** none.
//!
//! **Origin** vLLM's scheduler under `fcfs`, which pops the last running request.

use crate::prelude::*;

/// How `tail` introduces itself.
pub const SPEC: Spec<dyn Preempt> = Spec {
    name: "tail",
    help: "Preempts the running request that was scheduled last",
    ..Spec::built_by(|_, _| Box::new(Tail))
};

/// The last of the running requests.
#[derive(Clone, Copy, Debug)]
pub struct Tail;

impl Preempt for Tail {
    fn victim(&self, running: &[RunningView]) -> usize {
        running.len().checked_sub(1).expect("somebody is running")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::view::examples::running;

    #[test]
    fn the_last_running_request_is_the_victim_whatever_its_priority() {
        let running = RunningView { priority: 10.0, ..running() };
        assert_eq!(Tail.victim(&[running; 4]), 3);
        assert_eq!(Tail.victim(&[running]), 0);
    }
}
