//! `token-load`: how many prompt tokens an instance has been sent and not finished.
//!
//! **Prefers** instances with few tokens: `min-max` gives 1 to the fewest and 0 to the most (1 for
//! all if all are equal); `threshold` gives 1 - tokens / `threshold`, no less than 0.
//!
//! **Reads** the router's own counts (live): `in_flight_tokens` or `unstarted_tokens`.
//!
//! **Parameters** `count`: `in-flight` counts the whole prompts of all requests that have not
//! ended; `unstarted` only what must be computed of those without a first token. `normalise`:
//! `min-max` or `threshold`. `threshold` (tokens): the tokens that score 0 on the second scale.
//!
//! **Origin** llm-d's token-load scorer, which has the second scale and its default threshold; the
//! first is that of its queue scorer. A request of 30,000 tokens is not the load of one of 30.

use crate::prelude::*;
use crate::routing::scorers::{Best, min_max};

/// How `token-load` introduces itself.
pub const SPEC: Spec<dyn Scorer> = Spec {
    name: "token-load",
    help: "Prefers instances with few prompt tokens in flight",
    params: &[
        Param::choice("count", &["in-flight", "unstarted"])
            .help("Count all tokens in flight, or only those not yet computed"),
        Param::choice("normalise", &["min-max", "threshold"])
            .help("Score relative to other instances, or to `threshold`"),
        Param::log("threshold", 1.0..=1e10, 4_194_304.0, "tokens")
            .help("Tokens in flight that score 0")
            .only_if("normalise", &["threshold"]),
    ],
    ..Spec::built_by(|values, _| Box::new(TokenLoad::new(values)))
};

/// Prompt tokens, on either scale.
#[derive(Clone, Copy, Debug)]
pub struct TokenLoad {
    unstarted: bool,
    /// `None`: relative to the other instances.
    threshold: Option<f64>,
}

impl TokenLoad {
    fn new(values: &Values) -> TokenLoad {
        let absolute = values.choice("normalise") == "threshold";
        TokenLoad {
            unstarted: values.choice("count") == "unstarted",
            threshold: absolute.then(|| values.float("threshold")),
        }
    }
}

impl Scorer for TokenLoad {
    fn score(&mut self, _: &RequestView<'_>, cluster: &ClusterView<'_>, scores: &mut [f64]) {
        for (score, view) in scores.iter_mut().zip(cluster.instances) {
            let tokens = if self.unstarted { view.unstarted_tokens } else { view.in_flight_tokens };
            *score = math::float(tokens);
        }
        let Some(most) = self.threshold else {
            return min_max(scores, Best::Least);
        };
        for score in scores {
            *score = 1.0 - (*score / most).min(1.0);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::view::examples::{NOTHING, cluster, instances, request};

    fn scores(given: &[(&'static str, &'static str)]) -> Vec<f64> {
        let values = Values::parse(SPEC.params, given.iter().copied()).expect("legal");
        let mut views = instances(&[9, 1, 1]);
        (views[0].in_flight_tokens, views[0].unstarted_tokens) = (900, 0);
        (views[1].in_flight_tokens, views[1].unstarted_tokens) = (30_900, 50);
        (views[2].in_flight_tokens, views[2].unstarted_tokens) = (15_900, 100);
        let mut scores = vec![f64::NAN; 3];
        TokenLoad::new(&values).score(&request(&NOTHING), &cluster(&views), &mut scores);
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
}
