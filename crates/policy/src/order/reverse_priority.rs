//! `reverse-priority`: schedules the lowest priority first (pathological, for tests).
//!
//! **Prefers** the lowest priority; of equals, the one that joined the queue first.
//!
//! **Reads** the priority that the priority policy gives (live).
//!
//! **Parameters** none.
//!
//! **Origin** pathological, for tests: priorities that change nothing under it are not read.

use crate::prelude::*;

/// How `reverse-priority` introduces itself.
pub const SPEC: Spec<dyn Order> = Spec {
    name: "reverse-priority",
    help: "Schedules the lowest priority first (pathological, for tests)",
    needs: |_| Needs { priority: true, ..Needs::NONE },
    ..Spec::built_by(|_, _| Box::new(ReversePriority))
};

/// Lowest priority first.
#[derive(Clone, Copy, Debug)]
pub struct ReversePriority;

impl Order for ReversePriority {
    fn rank(&self, _: &WaitingView<'_>, priority: f64, _: Time) -> f64 {
        // Adding zero turns the negative zero into the positive one.
        priority + 0.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::view::examples::waiting;
    use std::cmp::Ordering;

    fn rank(input_tokens: u32, priority: f64) -> f64 {
        ReversePriority.rank(&waiting(input_tokens), priority, Time::ZERO)
    }

    #[test]
    fn a_lower_priority_ranks_first() {
        assert!(rank(7, 1.0) < rank(7, 5.0));
        assert_eq!(rank(7, 0.0).total_cmp(&rank(7, -0.0)), Ordering::Equal);
    }
}
