//! `running-requests`: how many requests run at an instance.
//!
//! **Prefers** small batches, relative to the other instances: 1 for the smallest, 0 for the
//! largest, in proportion between; 1 for all if all are equal.
//!
//! **Reads** `running` (as old as the last poll).
//!
//! **Parameters** none.
//!
//! **Origin** llm-d's `running-requests-size-scorer`, as it is (llm-d-router ebab687, August 2026).

use crate::prelude::*;
use crate::routing::scorers::plain::{Amount, Relative};

/// How `running-requests` introduces itself.
pub const SPEC: Spec<dyn Scorer> = Spec {
    name: "running-requests",
    help: "Prefers instances with few running requests (relative to the others)",
    needs: |_| Needs { load: true, ..Needs::NONE },
    ..Spec::built_by(|_, _| Relative::<RunningRequests>::boxed())
};

/// Running requests.
#[derive(Clone, Copy, Debug)]
pub struct RunningRequests;

impl Amount for RunningRequests {
    fn amount(view: &InstanceView) -> u32 {
        view.running
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::view::examples::{NOTHING, cluster, instances, request};

    #[test]
    fn scores_fall_with_the_batch_and_not_with_the_queue() {
        let mut views = instances(&[9, 0, 0]);
        (views[1].running, views[2].running) = (10, 40);
        let mut scores = vec![f64::NAN; 3];
        Relative::<RunningRequests>::boxed().score(
            &request(&NOTHING),
            &cluster(&views),
            &mut scores,
        );
        assert_eq!(scores, [1.0, 0.75, 0.0]);
    }
}
