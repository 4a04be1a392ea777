//! `weighted`: several opinions, added up.
//!
//! **Prefers** instances with a high weighted sum of scores; a picker takes one.
//!
//! **Reads** what its scorers read, each as fresh as they say.
//!
//! **Parameters** none of its own: the scorers and their weights, and the picker, are settings
//! beside it (`pa:3,qd:2,kv:2` and `max-score` if not given). Only ratios of weights matter.
//!
//! **Origin** llm-d's scheduler profile: scorers with weights, then a picker.

use crate::contract::{Choice, Picker, Router, Scorer};
use crate::routing::pickers::max_score;
use crate::spec::{Cluster, Spec};
use crate::view::{InstanceView, Needs};
use crate::weights::WeightedScorers;
use blis_core::{Dice, RequestView, Values};

/// The scorers when none are given.
pub const DEFAULT_SCORERS: &str = "pa:3,qd:2,kv:2";
/// The picker when none is given.
pub const DEFAULT_PICKER: &str = max_score::SPEC.name;

/// How `weighted` introduces itself. Its needs are those of the default scorers; a router built
/// with other scorers has theirs.
pub const SPEC: Spec<dyn Router> = Spec {
    name: "weighted",
    alias: None,
    help: "Adds up the weighted scores of several scorers and lets a picker choose",
    params: &[],
    needs: Needs { load: true, kv: true, ..Needs::NONE },
    build: |_, cluster| Box::new(Weighted::with_defaults(cluster)),
};

/// Scorers with weights, and a picker.
pub struct Weighted {
    scorers: Vec<(f64, Box<dyn Scorer>)>,
    picker: Box<dyn Picker>,
    /// One scorer's scores, and the sums; kept to save allocations.
    scores: Vec<f64>,
    totals: Vec<f64>,
}

impl Weighted {
    /// A router that adds up `scorers` in their order.
    pub fn new(scorers: WeightedScorers, picker: Box<dyn Picker>) -> Weighted {
        let scorers = scorers.scorers;
        Weighted { scorers, picker, scores: Vec::new(), totals: Vec::new() }
    }

    fn with_defaults(cluster: &Cluster) -> Weighted {
        let scorers = WeightedScorers::parse(DEFAULT_SCORERS, None, cluster);
        let picker = (max_score::SPEC.build)(&Values::defaults(max_score::SPEC.params), cluster);
        Weighted::new(scorers.expect("the default scorers are legal"), picker)
    }
}

impl Router for Weighted {
    fn route(
        &mut self,
        request: &RequestView<'_>,
        instances: &[InstanceView],
        dice: &mut Dice,
    ) -> Choice {
        self.scores.resize(instances.len(), 0.0);
        self.totals.clear();
        self.totals.resize(instances.len(), 0.0);
        for (weight, scorer) in &mut self.scorers {
            scorer.score(request, instances, &mut self.scores);
            for (total, score) in self.totals.iter_mut().zip(&self.scores) {
                debug_assert!((0.0..=1.0).contains(score), "a score of {score} is out of 0..=1");
                *total += *weight * score;
            }
        }
        let instance = instances[self.picker.pick(&self.totals, dice)].id;
        let opinions = self.scorers.iter().map(|(_, s)| s.expected_hit_blocks(instance));
        let expected_hit_blocks = opinions.flatten().next();
        for (_, scorer) in &mut self.scorers {
            scorer.sent(request, instance);
        }
        Choice { instance, expected_hit_blocks }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::build::{RoutingText, build_router};
    use crate::view::examples::{dice, instances, prompt, request};

    const CLUSTER: Cluster = Cluster { instances: 2, blocks: 100, cpu_blocks: 0, block_size: 16 };

    fn router(scorers: &str) -> Box<dyn Router> {
        let text = RoutingText {
            policy: "weighted",
            scorers: Some(scorers),
            picker: Some("max-score[ties=lowest-index]"),
            lru_capacity: None,
        };
        build_router(&text, &CLUSTER).expect("legal").policy
    }

    /// Where a prompt whose first half is warm on instance 1 goes, when that is the busier one.
    fn warm_or_idle(scorers: &str) -> Choice {
        let mut router = router(scorers);
        router.route(&request(&prompt(&[1, 2])), &instances(&[9, 0]), &mut dice(0));
        router.route(&request(&prompt(&[1, 2, 3, 4])), &instances(&[0, 1]), &mut dice(1))
    }

    #[test]
    fn a_warm_instance_is_kept_only_if_its_weighted_match_outweighs_its_load() {
        let choice = warm_or_idle("pa:3,qd:1");
        assert_eq!((choice.instance.0, choice.expected_hit_blocks), (1, Some(2)));
        let choice = warm_or_idle("pa:1,qd:1");
        assert_eq!((choice.instance.0, choice.expected_hit_blocks), (0, Some(0)));
    }

    #[test]
    fn without_a_prefix_scorer_nothing_is_expected_to_hit() {
        let choice =
            router("qd:1").route(&request(&prompt(&[1])), &instances(&[3, 0]), &mut dice(0));
        assert_eq!((choice.instance.0, choice.expected_hit_blocks), (1, None));
    }

    #[test]
    fn the_number_of_instances_may_change_between_requests() {
        let mut router = router("pa:3,qd:2,kv:2");
        for loads in [&[0, 0, 0][..], &[0], &[0, 0, 0, 0, 0]] {
            let choice = router.route(&request(&prompt(&[1, 2])), &instances(loads), &mut dice(0));
            assert!(choice.instance.index() < loads.len());
        }
    }
}
