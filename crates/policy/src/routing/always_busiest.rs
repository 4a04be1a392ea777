//! `always-busiest`: the worst choice a load balancer can make.
//!
//! **Prefers** the instance with the most load; of several, the first.
//!
//! **Reads** `queue_depth` and `running` (as old as the last poll) and `unseen` (live).
//!
//! **Parameters** none.
//!
//! **Origin** pathological, for tests: a metric that does not get worse under it measures nothing.

use crate::prelude::*;
use std::cmp::Reverse;

/// How `always-busiest` introduces itself.
pub const SPEC: Spec<dyn Router> = Spec {
    name: "always-busiest",
    help: "Sends each request to the instance with the most requests (pathological, for tests)",
    needs: |_| Needs { load: true, ..Needs::NONE },
    ..Spec::built_by(|_, _| Box::new(AlwaysBusiest))
};

/// The instance with the most requests.
#[derive(Clone, Copy, Debug)]
pub struct AlwaysBusiest;

impl Router for AlwaysBusiest {
    fn route(&mut self, _: &RequestView<'_>, cluster: &ClusterView<'_>, _: &mut Dice) -> Choice {
        // `min_by_key` keeps the first of equals, `max_by_key` the last.
        let busiest = cluster.instances.iter().min_by_key(|view| Reverse(view.load()));
        Choice::because(SPEC.name, busiest.expect("there is an instance").id)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::view::examples::{NOTHING, cluster, dice, instances, request};

    #[test]
    fn the_busiest_instance_is_taken_and_the_first_of_several() {
        let chosen = |loads: &[u32]| {
            AlwaysBusiest
                .route(&request(&NOTHING), &cluster(&instances(loads)), &mut dice(0))
                .instance
                .0
        };
        assert_eq!(chosen(&[1, 9, 3, 9]), 1);
        assert_eq!(chosen(&[0, 0]), 0);
    }
}
