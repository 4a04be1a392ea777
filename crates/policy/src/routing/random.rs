//! `random`: any instance, with the same chance.
//!
//! **Prefers** no instance.
//!
//! **Reads** nothing.
//!
//! **Parameters** none.
//!
//! **Origin** the memoryless baseline of the load-balancing literature.

use crate::prelude::*;

/// How `random` introduces itself.
pub const SPEC: Spec<dyn Router> = Spec {
    name: "random",
    help: "Sends each request to a uniformly random instance",
    ..Spec::built_by(|_, _| Box::new(Random))
};

/// Any instance, with the same chance.
#[derive(Clone, Copy, Debug)]
pub struct Random;

impl Router for Random {
    fn route(&mut self, _: &RequestView<'_>, cluster: &ClusterView<'_>, dice: &mut Dice) -> Choice {
        let index = dice.below(cluster.instances.len());
        Choice::because(SPEC.name, cluster.instances[index].id)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::view::examples::{NOTHING, cluster, dice, instances, request};

    #[test]
    fn every_instance_gets_its_share_whatever_its_load() {
        let views = instances(&[0, 50, 100, 150]);
        let mut sent = [0_u32; 4];
        for key in 0..4_000 {
            sent[Random
                .route(&request(&NOTHING), &cluster(&views), &mut dice(key))
                .instance
                .index()] += 1;
        }
        assert!(sent.iter().all(|n| (900..1_100).contains(n)), "{sent:?}");
    }
}
