//! `round-robin`: each instance in turn.
//!
//! **Prefers** the instance after the one chosen last, whatever its state.
//!
//! **Reads** nothing.
//!
//! **Parameters** none.
//!
//! **Origin** the default of plain load balancers; the baseline of most studies.

use crate::contract::{Choice, Router};
use crate::spec::Spec;
use crate::view::{InstanceView, Needs};
use blis_core::{Dice, RequestView};

/// How `round-robin` introduces itself.
pub const SPEC: Spec<dyn Router> = Spec {
    name: "round-robin",
    alias: None,
    help: "Sends requests to each instance in turn",
    params: &[],
    needs: Needs::NONE,
    build: |_, _| Box::new(RoundRobin { next: 0 }),
};

/// Each instance in turn.
#[derive(Clone, Debug)]
pub struct RoundRobin {
    next: usize,
}

impl Router for RoundRobin {
    fn route(&mut self, _: &RequestView<'_>, instances: &[InstanceView], _: &mut Dice) -> Choice {
        // The number of instances may have shrunk since.
        let index = self.next % instances.len();
        self.next = index + 1;
        Choice { instance: instances[index].id, expected_hit_blocks: None }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::view::examples::{NOTHING, dice, instances, request};

    #[test]
    fn instances_are_taken_in_turn() {
        let mut router = RoundRobin { next: 0 };
        let views = instances(&[9, 0, 4]);
        let chosen: Vec<u32> = (0..7)
            .map(|_| router.route(&request(&NOTHING), &views, &mut dice(0)).instance.0)
            .collect();
        assert_eq!(chosen, [0, 1, 2, 0, 1, 2, 0]);
    }
}
