//! `slo-headroom`: how much of the promised time to first token would be left.
//!
//! **Prefers** instances where a request is foretold to be early, in proportion to what its class
//! was promised: 1 - predicted TTFT / budget, no less than 0; 1 for all if its class has no budget.
//!
//! **Reads** the router's own counts (live): `unstarted_tokens`, `in_flight`; with `precise`
//! knowledge `cached_blocks` and `cached_cpu_blocks` (as late as KV events are).
//!
//! **Parameters** one per class, named like it (ms): its budget; `auto` is the TTFT target of the
//! class, if it has one. `knowledge`: whether hits are guessed from what was sent or read from KV
//! events. `cpu-weight` (blocks): what a block in the CPU tier is worth if they are read.
//!
//! **Origin** the headroom of llm-d's latency scorer (its `most` strategy), with a line through the
//! step times for a predictor. When every instance would be late, all score 0 and others decide.

use crate::predict::{Budgets, Predictor};
use crate::prelude::*;
use crate::routing::knowledge::{self, Knowledge};

/// How `slo-headroom` introduces itself.
pub const SPEC: Spec<dyn Scorer> = Spec {
    name: "slo-headroom",
    help: "Prefers instances with the most predicted TTFT headroom",
    params: &{
        let [critical, standard, sheddable, batch, background] = Budgets::PARAMS;
        [critical, standard, sheddable, batch, background, knowledge::PARAM, knowledge::CPU_WEIGHT]
    },
    needs: knowledge::needs,
    ..Spec::built_by(|values, cluster| {
        Box::new(SloHeadroom {
            budgets: Budgets::of(values, cluster),
            knowledge: Knowledge::of(values, cluster),
            predictor: Predictor::new(cluster),
        })
    })
};

/// 1 - predicted TTFT / budget.
#[derive(Clone, Debug)]
pub struct SloHeadroom {
    budgets: Budgets,
    knowledge: Knowledge,
    predictor: Predictor,
}

impl Scorer for SloHeadroom {
    fn score(&mut self, request: &RequestView<'_>, cluster: &ClusterView<'_>, scores: &mut [f64]) {
        self.knowledge.look(request, cluster);
        let Some(budget) = self.budgets.ms(request.class) else {
            scores.fill(1.0);
            return;
        };
        for (score, view) in scores.iter_mut().zip(cluster.instances) {
            let tokens = self.predictor.uncached_tokens(request, self.knowledge.worth(view));
            *score = (1.0 - self.predictor.ttft_ms(view, tokens) / budget).clamp(0.0, 1.0);
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
    use blis_core::{SloClass, Values};

    const CLUSTER: Cluster = Cluster {
        step: StepCost { base_us: 0.0, prefill_token_us: 1_000.0, decode_us: 0.0 },
        ..Cluster::SMALL
    };

    fn scores(class: SloClass) -> Vec<f64> {
        let given = [("critical", "128"), ("batch", "6400")];
        let values = Values::parse(SPEC.params, given).expect("legal");
        let mut scorer = (SPEC.build)(&values, &CLUSTER);
        let asked = prompt(&[1, 2, 3, 4]);
        scorer.sent(&request(&prompt(&[1, 2])), InstanceId(1), Time::ZERO);
        let mut views = instances(&[0, 0, 0]);
        views[2].unstarted_tokens = 640;
        let mut scores = vec![f64::NAN; 3];
        scorer.score(&RequestView { class, ..request(&asked) }, &cluster(&views), &mut scores);
        scores
    }

    #[test]
    fn the_score_is_the_share_of_the_budget_that_is_left() {
        // 64 ms of work, or 32 ms where half is cached; 640 ms behind others.
        assert_eq!(scores(SloClass::Critical), [0.5, 0.75, 0.0]);
        assert_eq!(scores(SloClass::Batch), [0.99, 0.995, 0.89]);
    }

    #[test]
    fn a_class_that_was_promised_nothing_has_no_preference() {
        assert_eq!(scores(SloClass::Standard), [1.0; 3]);
    }
}
