//! `cost-benefit`: time saved by cached blocks, less time lost in the queue.
//!
//! **Prefers** instances where a request gains most time: (prefill time of its cached blocks) -
//! (time the prompts before it take, beyond that of the least busy instance), mapped to 0..=1 so
//! that 0.5 is no gain, and a gain or loss of the `horizon` is 1 or 0.
//!
//! **Reads** the router's own counts (live): `unstarted_tokens`, `in_flight`; with `precise`
//! knowledge `cached_blocks` and `cached_cpu_blocks` (as late as KV events are).
//!
//! **Parameters** `horizon` (ms): the gain or loss that counts fully; smaller ones count in
//! proportion. `knowledge`: whether hits are guessed from what was sent or read from KV events.
//! `cpu-weight` (blocks): what a block in the CPU tier is worth if they are read.
//!
//! **Origin** the trade-off that weighted sums of shares leave to their weights, in one unit. The
//! ratio saved / (saved + lost), which is sometimes used for it, is 1 whenever nothing is lost,
//! whether a second is saved or a microsecond; the difference keeps the size.

use crate::predict::Predictor;
use crate::prelude::*;
use crate::routing::knowledge::{self, Knowledge};

/// How `cost-benefit` introduces itself.
pub const SPEC: Spec<dyn Scorer> = Spec {
    name: "cost-benefit",
    help: "Prefers instances whose cached blocks save more time than their queue costs",
    params: &[
        Param::log("horizon", 0.1..=1e6, 200.0, "ms")
            .help("Gain or loss at which the score saturates"),
        knowledge::PARAM,
        knowledge::CPU_WEIGHT,
    ],
    needs: knowledge::needs,
    ..Spec::built_by(|values, cluster| {
        Box::new(CostBenefit {
            horizon_ms: values.float("horizon"),
            knowledge: Knowledge::of(values, cluster),
            predictor: Predictor::new(cluster),
        })
    })
};

/// Saved prefill time less queueing delay, in units of the horizon.
#[derive(Clone, Debug)]
pub struct CostBenefit {
    horizon_ms: f64,
    knowledge: Knowledge,
    predictor: Predictor,
}

impl Scorer for CostBenefit {
    fn score(&mut self, request: &RequestView<'_>, cluster: &ClusterView<'_>, scores: &mut [f64]) {
        self.knowledge.look(request, cluster);
        let mut least = f64::INFINITY;
        for (score, view) in scores.iter_mut().zip(cluster.instances) {
            *score = self.predictor.backlog_ms(view);
            least = least.min(*score);
        }
        let prompt = f64::from(request.input_tokens);
        for (score, view) in scores.iter_mut().zip(cluster.instances) {
            let lost = *score - least;
            let hits = self.knowledge.worth(view);
            let computed = self.predictor.uncached_tokens(request, hits).min(prompt);
            let gain = self.predictor.prefill_ms(prompt - computed) - lost;
            *score = (0.5 + gain / (2.0 * self.horizon_ms)).clamp(0.0, 1.0);
        }
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
    use crate::spec::{Cluster, StepCost};
    use crate::view::examples::{cluster, instances, prompt, request};

    const CLUSTER: Cluster = Cluster {
        step: StepCost { base_us: 0.0, prefill_token_us: 1_000.0, decode_us: 0.0 },
        ..Cluster::SMALL
    };

    /// Scores of a prompt of 64 tokens (64 ms) of which `cached` blocks are on instance 1, where
    /// `backlog` tokens wait.
    fn scores(cached: u32, backlog: u64) -> Vec<f64> {
        let mut scorer = CostBenefit {
            horizon_ms: 100.0,
            knowledge: Knowledge::precise(1.0),
            predictor: Predictor::new(&CLUSTER),
        };
        let mut views = instances(&[0, 0]);
        (views[1].cached_blocks, views[1].unstarted_tokens) = (cached, backlog);
        let mut scores = vec![f64::NAN; 2];
        scorer.score(&request(&prompt(&[1, 2, 3, 4])), &cluster(&views), &mut scores);
        scores
    }

    #[test]
    fn a_warm_instance_wins_exactly_if_it_saves_more_time_than_its_queue_takes() {
        let (close, over) = (scores(2, 31), scores(2, 33));
        assert!(close[1] > close[0], "32 ms saved, 31 ms lost: {close:?}");
        assert!(over[1] < over[0], "32 ms saved, 33 ms lost: {over:?}");
    }

    #[test]
    fn without_queues_twice_the_saving_is_twice_the_lead() {
        let lead = |cached| scores(cached, 0)[1] - scores(cached, 0)[0];
        assert!((lead(1) - 0.08).abs() < 1e-12 && (lead(2) - 0.16).abs() < 1e-12);
    }

    #[test]
    fn nothing_beyond_the_horizon_counts() {
        assert_eq!(scores(0, 100), scores(0, 1_000));
        assert_eq!(scores(0, 100), [0.5, 0.0]);
    }
}
