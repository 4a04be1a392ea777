//! `queue`: how many requests wait at an instance.
//!
//! **Prefers** short queues, relative to the other instances: 1 for the shortest, 0 for the
//! longest, in proportion between; 1 for all if all are equal.
//!
//! **Reads** `queue_depth` (as old as the last poll).
//!
//! **Parameters** none.
//!
//! **Origin** llm-d's `queue-scorer`, as it is (llm-d-router ebab687, August 2026): running
//! requests do not count, so below saturation, where nothing waits, it has no say.

use crate::prelude::*;
use crate::routing::scorers::plain::{Amount, Relative};

/// How `queue` introduces itself.
pub const SPEC: Spec<dyn Scorer> = Spec {
    name: "queue",
    help: "Prefers instances with few waiting requests (relative to the others)",
    needs: |_| Needs { load: true, ..Needs::NONE },
    ..Spec::built_by(|_, _| Relative::<Queue>::boxed())
};

/// Waiting requests.
#[derive(Clone, Copy, Debug)]
pub struct Queue;

impl Amount for Queue {
    fn amount(view: &InstanceView) -> u32 {
        view.queue_depth
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::view::examples::{NOTHING, cluster, instances, request, scores};

    #[test]
    fn scores_fall_in_proportion_from_the_shortest_to_the_longest_queue() {
        assert_eq!(scores(&mut *Relative::<Queue>::boxed(), &[], &[4, 0, 1]), [0.0, 1.0, 0.75]);
        assert_eq!(scores(&mut *Relative::<Queue>::boxed(), &[], &[3, 3, 3]), [1.0; 3]);
    }

    #[test]
    fn requests_that_run_or_are_on_their_way_do_not_count() {
        let mut views = instances(&[0, 0]);
        (views[0].running, views[0].unseen, views[0].in_flight) = (200, 9, 209);
        let mut scores = vec![f64::NAN; 2];
        Relative::<Queue>::boxed().score(&request(&NOTHING), &cluster(&views), &mut scores);
        assert_eq!(scores, [1.0; 2]);
    }
}
