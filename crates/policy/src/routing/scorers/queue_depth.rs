//! `queue-depth`: how much less an instance has to do than the busiest one.
//!
//! **Prefers** little load, relative to the other instances: 1 for the least loaded, 0 for the most
//! loaded, in proportion between; 1 for all if all are equal.
//!
//! **Reads** `queue_depth` and `running` (as old as the last poll) and `unseen` (live).
//!
//! **Parameters** none.
//!
//! **Origin** llm-d's queue scorer, on the whole load instead of the waiting requests alone.
//! Being relative, its push saturates: a deeper queue cannot score less than 0.

use crate::prelude::*;
use crate::routing::scorers::plain::{Amount, Relative};

/// How `queue-depth` introduces itself.
pub const SPEC: Spec<dyn Scorer> = Spec {
    name: "queue-depth",
    alias: Some("qd"),
    help: "Prefers instances with few waiting and running requests (relative to the others)",
    needs: |_| Needs { load: true, ..Needs::NONE },
    ..Spec::built_by(|_, _| Relative::<QueueDepth>::boxed())
};

/// The whole load.
#[derive(Clone, Copy, Debug)]
pub struct QueueDepth;

impl Amount for QueueDepth {
    fn amount(view: &InstanceView) -> u32 {
        view.load()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::view::examples::scores;

    #[test]
    fn scores_fall_in_proportion_from_the_least_to_the_most_loaded() {
        assert_eq!(
            scores(&mut *Relative::<QueueDepth>::boxed(), &[], &[2, 10, 4]),
            [1.0, 0.0, 0.75]
        );
    }

    #[test]
    fn equal_loads_score_one() {
        assert_eq!(scores(&mut *Relative::<QueueDepth>::boxed(), &[], &[7, 7]), [1.0, 1.0]);
        assert_eq!(scores(&mut *Relative::<QueueDepth>::boxed(), &[], &[0]), [1.0]);
    }
}
