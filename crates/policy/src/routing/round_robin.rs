//! `round-robin`: each instance in turn.
//!
//! **Prefers** the instance after the one chosen last, whatever its state.
//!
//! **Reads** nothing.
//!
//! **Parameters** none.
//!
//! **Origin** the default of plain load balancers; the baseline of most studies.

use crate::prelude::*;

/// How `round-robin` introduces itself.
pub const SPEC: Spec<dyn Router> = Spec {
    name: "round-robin",
    help: "Sends requests to each instance in turn",
    ..Spec::built_by(|_, _| Box::new(RoundRobin { next: 0 }))
};

/// Each instance in turn.
#[derive(Clone, Debug)]
pub struct RoundRobin {
    /// The id after the one that was taken last.
    next: u32,
}

impl Router for RoundRobin {
    fn route(&mut self, _: &RequestView<'_>, cluster: &ClusterView<'_>, _: &mut Dice) -> Choice {
        // Instances may have been left out since.
        let index = cluster.instances.partition_point(|view| view.id.0 < self.next);
        let index = index % cluster.instances.len();
        Choice::because(SPEC.name, cluster.instances[index].id)
    }

    fn sent(&mut self, _: &RequestView<'_>, instance: InstanceId, _: Time) {
        self.next = instance.0 + 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::view::examples::{NOTHING, cluster, dice, instances, request};

    #[test]
    fn instances_are_taken_in_turn() {
        let mut router = RoundRobin { next: 0 };
        let views = instances(&[9, 0, 4]);
        let mut chosen = Vec::new();
        for _ in 0..7 {
            let choice = router.route(&request(&NOTHING), &cluster(&views), &mut dice(0));
            router.sent(&request(&NOTHING), choice.instance, Time::ZERO);
            chosen.push(choice.instance.0);
        }
        assert_eq!(chosen, [0, 1, 2, 0, 1, 2, 0]);
    }
}
