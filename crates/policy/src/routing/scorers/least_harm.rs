//! `least-harm`: where a request adds the least delay, to itself and to others.
//!
//! **Prefers** instances with a small sum of two times: the request's own time to first token, and
//! the total delay to the requests in flight there. Each of them waits while the uncached tokens of
//! the prompt are computed, and a little in every step while the output is generated. Scores are
//! `min-max` of the sums: 1 is the smallest, 0 the largest (1 for all if all are equal).
//!
//! **Reads** the router's own counts (live): `unstarted_tokens`, `in_flight`; with `precise`
//! knowledge `cached_blocks` and `cached_cpu_blocks` (as late as KV events are); the cost of steps.
//!
//! **Parameters** `others`: weight of a millisecond of delay to others, relative to the request's
//! own; 0 is `predicted-latency`. `answer` (tokens): assumed output length, which no router knows.
//! `knowledge`: whether hits are estimated from past routing or read from KV events. `cpu-weight`
//! (blocks): value of a cached block in the CPU tier.
//!
//! **Origin** ours; prior art is `LMetric` (OSDI 2026, arXiv 2603.15202), whose score is uncached
//! prompt tokens x (requests in flight + 1), lowest wins: the same product of work and of those who
//! wait for it. This one is in milliseconds, adds the backlog before the request and the decode
//! steps after it, and weighs others by a parameter. Both price congestion: a router that minimises
//! each request's own TTFT sends it to an idle instance that must recompute the prompt as soon as
//! that is slightly faster, and those already there pay. Weighted shares (prefix 3, queue 2) have
//! no common unit to compare the two.

use crate::predict::Predictor;
use crate::prelude::*;
use crate::routing::knowledge::{self, Knowledge};
use crate::routing::scorers::{Best, min_max};

/// How `least-harm` introduces itself.
pub const SPEC: Spec<dyn Scorer> = Spec {
    name: "least-harm",
    help: "Prefers instances where a request adds the least delay, to itself and to others",
    params: &[
        Param::float("others", 0.0..=10.0, 0.1, "")
            .help("Weight of a millisecond of delay to others, relative to the request's own"),
        Param::float("answer", 0.0..=100_000.0, 128.0, "tokens").help("Assumed output length"),
        knowledge::PARAM,
        knowledge::CPU_WEIGHT,
    ],
    needs: knowledge::needs,
    ..Spec::built_by(|values, cluster| Box::new(LeastHarm::new(values, cluster)))
};

/// The time that a request costs itself and others.
#[derive(Clone, Debug)]
pub struct LeastHarm {
    others: f64,
    answer: f64,
    knowledge: Knowledge,
    predictor: Predictor,
}

impl LeastHarm {
    fn new(values: &Values, cluster: &Cluster) -> LeastHarm {
        LeastHarm {
            others: values.float("others"),
            answer: values.float("answer"),
            knowledge: Knowledge::of(values, cluster),
            predictor: Predictor::new(cluster),
        }
    }
}

impl Scorer for LeastHarm {
    fn score(&mut self, request: &RequestView<'_>, cluster: &ClusterView<'_>, scores: &mut [f64]) {
        self.knowledge.look(request, cluster);
        for (score, view) in scores.iter_mut().zip(cluster.instances) {
            let tokens = self.predictor.uncached_tokens(request, self.knowledge.worth(view));
            let own = self.predictor.ttft_ms(view, tokens);
            let each = self.predictor.delay_ms(tokens, self.answer);
            *score = own + self.others * each * f64::from(view.in_flight);
        }
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
    use crate::routing::scorers::predicted_latency;
    use crate::spec::StepCost;
    use crate::view::InstanceView;
    use crate::view::examples::{cluster, instances, prompt, request};

    /// A prompt of four blocks takes 64 ms.
    const CLUSTER: Cluster = Cluster {
        step: StepCost { base_us: 0.0, prefill_token_us: 1_000.0, decode_us: 0.0 },
        ..Cluster::SMALL
    };
    const DECODING: Cluster = Cluster {
        step: StepCost { base_us: 0.0, prefill_token_us: 1_000.0, decode_us: 10.0 },
        ..Cluster::SMALL
    };

    fn scores(
        spec: &Spec<dyn Scorer>,
        of: &Cluster,
        others: &str,
        views: &[InstanceView],
    ) -> Vec<f64> {
        let others = [("knowledge", "precise"), ("others", others)];
        let given =
            others.into_iter().filter(|(name, _)| spec.params.iter().any(|p| p.name == *name));
        let values = Values::parse(spec.params, given).expect("legal");
        let mut scorer = (spec.build)(&values, of);
        let mut scores = vec![f64::NAN; views.len()];
        scorer.score(&request(&prompt(&[1, 2, 3, 4])), &cluster(views), &mut scores);
        scores
    }

    /// Four requests at each instance. Three of the four blocks (48 ms) are cached on 0, where
    /// prompts that take 50 ms come first.
    fn views() -> Vec<InstanceView> {
        let mut views = instances(&[4, 4]);
        (views[0].cached_blocks, views[0].unstarted_tokens) = (3, 50);
        views
    }

    #[test]
    fn a_request_waits_a_little_where_its_prompt_is_cached_to_spare_others_a_long_prefill() {
        assert_eq!(scores(&SPEC, &CLUSTER, "0", &views()), [0.0, 1.0], "66 ms against 64");
        // 16 ms of four others against 64.
        assert_eq!(scores(&SPEC, &CLUSTER, "0.1", &views()), [1.0, 0.0]);
    }

    #[test]
    fn it_is_predicted_latency_if_others_are_worth_nothing() {
        let mut all = instances(&[0, 3, 7, 2]);
        (all[1].cached_blocks, all[2].unstarted_tokens) = (3, 90);
        let selfish = scores(&predicted_latency::SPEC, &DECODING, "0", &all);
        assert_eq!(scores(&SPEC, &DECODING, "0", &all), selfish);
        assert!(scores(&SPEC, &DECODING, "1", &all) != selfish);
    }

    #[test]
    fn where_nothing_is_cached_it_goes_where_the_fewest_would_be_delayed() {
        let even = scores(&SPEC, &CLUSTER, "1", &instances(&[3, 2, 5]));
        assert_eq!(even, [2.0 / 3.0, 1.0, 0.0]);
    }

    #[test]
    fn an_answer_delays_others_too_however_much_of_the_prompt_is_cached() {
        let mut warm = instances(&[9, 1]);
        for view in &mut warm {
            view.cached_blocks = 4;
        }
        let scores = scores(&SPEC, &DECODING, "1", &warm);
        assert_eq!(scores, [0.0, 1.0]);
        // One token of the prompt and 128 of the answer.
        let values = Values::parse(SPEC.params, []).expect("legal");
        let delay = Predictor::new(&DECODING).delay_ms(1.0, values.float("answer"));
        assert!((delay - (1.0 + 1.28)).abs() < 1e-12, "{delay}");
    }
}
