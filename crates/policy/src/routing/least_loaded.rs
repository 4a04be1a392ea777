//! `least-loaded`: the instance with the fewest requests.
//!
//! **Prefers** the instance with the least load: waiting, running, or on the way.
//!
//! **Reads** `queue_depth` and `running` (as old as the last poll) and `unseen` (live).
//!
//! **Parameters** `ties`: which of several least loaded instances is taken.
//!
//! **Origin** join-the-shortest-queue; the fallback of llm-d's scheduler.

use crate::prelude::*;
use crate::routing::ties::{self, Ties};

/// How `least-loaded` introduces itself.
pub const SPEC: Spec<dyn Router> = Spec {
    name: "least-loaded",
    help: "Sends each request to the instance with the fewest waiting and running requests",
    params: &[ties::PARAM],
    needs: |_| Needs { load: true, ..Needs::NONE },
    ..Spec::built_by(|values, _| Box::new(LeastLoaded { ties: Ties::of(values) }))
};

/// The instance with the fewest requests.
#[derive(Clone, Copy, Debug)]
pub struct LeastLoaded {
    ties: Ties,
}

impl Router for LeastLoaded {
    fn route(&mut self, _: &RequestView<'_>, cluster: &ClusterView<'_>, dice: &mut Dice) -> Choice {
        Choice::because(SPEC.name, self.ties.least(cluster, dice, InstanceView::load))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::view::examples::{NOTHING, cluster, dice, instances, request};

    fn chosen(ties: Ties, loads: &[u32], key: u64) -> u32 {
        let mut router = LeastLoaded { ties };
        router.route(&request(&NOTHING), &cluster(&instances(loads)), &mut dice(key)).instance.0
    }

    #[test]
    fn the_least_loaded_instance_is_taken_wherever_it_stands() {
        assert_eq!(chosen(Ties::Random, &[1, 4, 4], 0), 0);
        assert_eq!(chosen(Ties::Random, &[4, 1, 4], 0), 1);
        assert_eq!(chosen(Ties::LowestIndex, &[4, 4, 1], 0), 2);
    }

    #[test]
    fn ties_are_spread_evenly_or_go_to_the_first_as_asked() {
        let mut sent = [0_u32; 4];
        for key in 0..3_000 {
            sent[chosen(Ties::Random, &[2, 2, 7, 2], key) as usize] += 1;
            assert_eq!(chosen(Ties::LowestIndex, &[2, 2, 7, 2], key), 0);
        }
        assert_eq!(sent[2], 0);
        assert!([0, 1, 3].iter().all(|i| (900..1_100).contains(&sent[*i])), "{sent:?}");
    }

    #[test]
    fn requests_on_the_way_count_as_load() {
        let mut views = instances(&[3, 3]);
        views[0].unseen = 1;
        let mut router = LeastLoaded { ties: Ties::LowestIndex };
        assert_eq!(router.route(&request(&NOTHING), &cluster(&views), &mut dice(0)).instance.0, 1);
    }
}
