//! `token-load`: how many prompt tokens an instance has been sent and not finished.
//!
//! **Prefers** instances with few tokens: `min-max` gives 1 to the fewest and 0 to the most (1 for
//! all if all are equal); `threshold` gives 1 - tokens / `threshold`, no less than 0.
//!
//! **Reads** the router's own counts (live): `in_flight_tokens` or `unstarted_tokens`; with
//! `count: projected` and `precise` knowledge `cached_blocks` and `cached_cpu_blocks` (as late as
//! KV events are).
//!
//! **Parameters** `count`: `in-flight` counts the whole prompts of all requests that have not
//! ended; `unstarted` only what must be computed of those without a first token; `projected` adds
//! what must be computed of the request itself. `normalise`: `min-max` or `threshold`. `threshold`
//! (tokens): the tokens that score 0 on the second scale. `knowledge`, `cpu-weight`: where
//! `projected` takes its hits from.
//!
//! **Origin** llm-d's `token-load-scorer` is `count=projected,normalise=threshold` (llm-d-router
//! ebab687, August 2026); the first scale is that of its queue scorer. A request of 30,000 tokens
//! is not the load of one of 30.

use crate::predict::Predictor;
use crate::prelude::*;
use crate::routing::knowledge::{self, Knowledge};
use crate::routing::scorers::{Best, min_max};

/// How `token-load` introduces itself.
pub const SPEC: Spec<dyn Scorer> = Spec {
    name: "token-load",
    help: "Prefers instances with few prompt tokens in flight",
    params: &[
        Param::choice("count", &["in-flight", "unstarted", "projected"])
            .help("Count all tokens in flight, those not yet computed, or those and the request's"),
        Param::choice("normalise", &["min-max", "threshold"])
            .help("Score relative to other instances, or to `threshold`"),
        Param::log("threshold", 1.0..=1e10, 4_194_304.0, "tokens")
            .help("Tokens in flight that score 0")
            .only_if("normalise", &["threshold"]),
        knowledge::PARAM,
        knowledge::CPU_WEIGHT,
    ],
    needs: |values| match Count::of(values) {
        Count::Projected => knowledge::needs(values),
        _ => Needs::NONE,
    },
    ..Spec::built_by(|values, cluster| Box::new(TokenLoad::new(values, cluster)))
};

/// Which tokens count.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Count {
    InFlight,
    Unstarted,
    Projected,
}

impl Count {
    fn of(values: &Values) -> Count {
        match values.choice("count") {
            "in-flight" => Count::InFlight,
            "unstarted" => Count::Unstarted,
            _ => Count::Projected,
        }
    }
}

/// Prompt tokens, on either scale.
#[derive(Clone, Debug)]
pub struct TokenLoad {
    count: Count,
    /// `None`: relative to the other instances.
    threshold: Option<f64>,
    knowledge: Knowledge,
    predictor: Predictor,
}

impl TokenLoad {
    fn new(values: &Values, cluster: &Cluster) -> TokenLoad {
        let absolute = values.choice("normalise") == "threshold";
        TokenLoad {
            count: Count::of(values),
            threshold: absolute.then(|| values.float("threshold")),
            knowledge: Knowledge::of(values, cluster),
            predictor: Predictor::new(cluster),
        }
    }
}

impl Scorer for TokenLoad {
    fn score(&mut self, request: &RequestView<'_>, cluster: &ClusterView<'_>, scores: &mut [f64]) {
        if self.count == Count::Projected {
            self.knowledge.look(request, cluster);
        }
        cluster.each(scores, |view| match self.count {
            Count::InFlight => math::float(view.in_flight_tokens),
            Count::Unstarted => math::float(view.unstarted_tokens),
            Count::Projected => {
                let hits = self.knowledge.worth(view);
                math::float(view.unstarted_tokens) + self.predictor.uncached_tokens(request, hits)
            }
        });
        let Some(most) = self.threshold else {
            return min_max(scores, Best::Least);
        };
        for score in scores {
            *score = 1.0 - (*score / most).min(1.0);
        }
    }

    fn sent(&mut self, request: &RequestView<'_>, instance: InstanceId, _: Time) {
        if self.count == Count::Projected {
            self.knowledge.sent(request, instance);
        }
    }

    fn expected_hit_blocks(&self, instance: InstanceId) -> Option<u32> {
        (self.count == Count::Projected).then(|| self.knowledge.blocks(instance))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::view::examples::{NOTHING, cluster, instances, prompt, request};

    fn scores(given: &[(&'static str, &'static str)]) -> Vec<f64> {
        let values = Values::parse(SPEC.params, given.iter().copied()).expect("legal");
        let mut views = instances(&[9, 1, 1]);
        (views[0].in_flight_tokens, views[0].unstarted_tokens) = (900, 0);
        (views[1].in_flight_tokens, views[1].unstarted_tokens) = (30_900, 50);
        (views[2].in_flight_tokens, views[2].unstarted_tokens) = (15_900, 100);
        let mut scores = vec![f64::NAN; 3];
        TokenLoad::new(&values, &Cluster::SMALL).score(
            &request(&NOTHING),
            &cluster(&views),
            &mut scores,
        );
        scores
    }

    #[test]
    fn tokens_count_and_not_requests() {
        assert_eq!(scores(&[]), [1.0, 0.0, 0.5]);
        assert_eq!(scores(&[("count", "unstarted")]), [1.0, 0.5, 0.0]);
    }

    #[test]
    fn an_absolute_scale_ends_at_the_threshold() {
        assert_eq!(scores(&[("normalise", "threshold"), ("threshold", "1800")]), [0.5, 0.0, 0.0]);
    }

    #[test]
    fn projected_tokens_are_those_under_way_and_those_of_the_request_that_are_not_cached() {
        let given = [("count", "projected"), ("normalise", "threshold"), ("threshold", "1000")];
        let given = given.into_iter().chain([("knowledge", "precise")]);
        let values = Values::parse(SPEC.params, given).expect("legal");
        let mut views = instances(&[0, 0, 0]);
        (views[0].unstarted_tokens, views[0].cached_blocks) = (100, 3);
        views[2].unstarted_tokens = 950;
        let mut scores = vec![f64::NAN; 3];
        let mut scorer = TokenLoad::new(&values, &Cluster::SMALL);
        scorer.score(&request(&prompt(&[1, 2, 3, 4])), &cluster(&views), &mut scores);
        // 100 + 16, 64, and 950 + 64 of 1,000 tokens.
        assert_eq!(scores, [1.0 - 0.116, 1.0 - 0.064, 0.0]);
    }
}
