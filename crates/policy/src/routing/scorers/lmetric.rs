//! `lmetric`: what a request adds, times what is there.
//!
//! **Prefers** the lowest product of the prompt tokens that must be computed at an instance and the
//! requests in flight there plus one: 1 for the lowest, 0 for the highest, in proportion between.
//!
//! **Reads** the router's own count (live): `in_flight`; with `precise` knowledge `cached_blocks`
//! and `cached_cpu_blocks` (as late as KV events are).
//!
//! **Parameters** `knowledge`: whether hits are guessed from what was sent or read from KV events.
//! `cpu-weight` (blocks): what a block in the CPU tier is worth if they are read.
//!
//! **Origin** `LMetric` (OSDI'26, arXiv:2603.15202). A product needs no weight between cache and
//! load.

use crate::predict::Predictor;
use crate::prelude::*;
use crate::routing::knowledge::{self, Knowledge};
use crate::routing::scorers::{Best, min_max};

/// How `lmetric` introduces itself.
pub const SPEC: Spec<dyn Scorer> = Spec {
    name: "lmetric",
    help: "Prefers the lowest uncached prompt tokens x (requests in flight + 1)",
    params: &[knowledge::PARAM, knowledge::CPU_WEIGHT],
    needs: knowledge::needs,
    ..Spec::built_by(|values, cluster| {
        Box::new(Lmetric {
            knowledge: Knowledge::of(values, cluster),
            predictor: Predictor::new(cluster),
        })
    })
};

/// Tokens to compute times requests.
#[derive(Clone, Debug)]
pub struct Lmetric {
    knowledge: Knowledge,
    predictor: Predictor,
}

impl Scorer for Lmetric {
    fn score(&mut self, request: &RequestView<'_>, cluster: &ClusterView<'_>, scores: &mut [f64]) {
        self.knowledge.look(request, cluster);
        cluster.each(scores, |view| {
            let tokens = self.predictor.uncached_tokens(request, self.knowledge.worth(view));
            tokens * f64::from(view.in_flight + 1)
        });
        min_max(scores, Best::Least);
    }

    fn sent(&mut self, request: &RequestView<'_>, instance: InstanceId, _: Time) {
        self.knowledge.sent(request, instance);
    }

    fn expected_hit_blocks(&self, instance: InstanceId) -> Option<u32> {
        Some(self.knowledge.blocks(instance))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::view::examples::{cluster, instances, prompt, request};

    /// Scores for a prompt of 4 blocks by the requests in flight and the blocks cached.
    fn scores(at: [(u32, u32); 3]) -> Vec<f64> {
        let knowledge = Knowledge::precise(0.0);
        let mut scorer = Lmetric { knowledge, predictor: Predictor::new(&Cluster::SMALL) };
        let mut views = instances(&at.map(|(in_flight, _)| in_flight));
        for (view, (_, cached)) in views.iter_mut().zip(at) {
            view.cached_blocks = cached;
        }
        let mut scores = vec![f64::NAN; 3];
        scorer.score(&request(&prompt(&[1, 2, 3, 4])), &cluster(&views), &mut scores);
        scores
    }

    #[test]
    fn a_warm_instance_may_have_as_many_times_the_requests_as_it_saves_work() {
        // 64 tokens x 1 request against 16 x 3, and 16 x 4.
        assert_eq!(scores([(0, 0), (2, 3), (3, 3)]), [0.0, 1.0, 0.0]);
    }

    #[test]
    fn a_prompt_that_is_cached_whole_still_computes_its_last_token() {
        let scores = scores([(0, 4), (9, 4), (0, 0)]);
        assert!(scores.is_sorted_by(|a, b| a > b), "fewest, most, cold: {scores:?}");
    }
}
