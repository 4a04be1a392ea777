//! `prefix-affinity`: where the prompt's prefix was sent before.
//!
//! **Prefers** instances that were sent a long part of the prompt's prefix: matched blocks / full
//! blocks of the prompt; 0 for all if the prompt fills no block.
//!
//! **Reads** no signals of instances: an LRU of blocks per instance, kept by the router
//! itself from its own decisions (live). It does not see evictions, so it may promise blocks that
//! are gone.
//!
//! **Parameters** `lru-capacity` (blocks): how much it remembers per instance; `auto` is as many
//! blocks of 64 tokens as an instance has KV blocks, so four times what fits there with blocks of
//! 16.
//!
//! **Origin** llm-d's approximate prefix-cache producer, which tunes its index to the servers that
//! way (llm-d-router ebab687). It counts matches in its own blocks, a cut one at the end of the
//! prompt included; here they are full blocks of the engine.

use crate::prelude::*;
use crate::routing::knowledge::Knowledge;

/// The parameter that the flag `--lru-capacity` sets.
pub const LRU_CAPACITY: &str = "lru-capacity";

/// How `prefix-affinity` introduces itself.
pub const SPEC: Spec<dyn Scorer> = Spec {
    name: "prefix-affinity",
    alias: Some("pa"),
    help: "Prefers instances that were sent the same prompt prefix before (approximate)",
    params: &[Param::int_or_auto(LRU_CAPACITY, 1..=100_000_000, "blocks")
        .help("Blocks remembered per instance; auto: as many of 64 tokens as it has KV blocks")],
    ..Spec::built_by(|values, cluster| {
        let knowledge = Knowledge::indexed(values.int_or_auto(LRU_CAPACITY), cluster);
        Box::new(PrefixAffinity { knowledge })
    })
};

/// Matched share of the prompt's blocks, as the router remembers them.
#[derive(Clone, Debug)]
pub struct PrefixAffinity {
    knowledge: Knowledge,
}

impl Scorer for PrefixAffinity {
    fn score(&mut self, request: &RequestView<'_>, cluster: &ClusterView<'_>, scores: &mut [f64]) {
        self.knowledge.look(request, cluster);
        cluster.each(scores, |view| self.knowledge.share(request, view));
    }

    fn rescore(
        &mut self,
        request: &RequestView<'_>,
        cluster: &ClusterView<'_>,
        _: &[usize],
        scores: &mut [f64],
    ) -> Rescored<'_> {
        let known = self.knowledge.look_again(request, cluster);
        let moved = self.knowledge.moved();
        if !known || moved.len() >= scores.len() {
            cluster.each(scores, |view| self.knowledge.share(request, view));
            return Rescored::All;
        }
        for &id in moved {
            scores[id] = self.knowledge.share(request, &cluster.instances[id]);
        }
        Rescored::Changed(moved)
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
    use crate::view::examples::{prompt, request, scores};

    fn remembers(capacity: u64) -> PrefixAffinity {
        PrefixAffinity { knowledge: Knowledge::approximate(capacity) }
    }

    #[test]
    fn the_score_is_the_share_of_the_prompt_that_was_sent_there() {
        let mut scorer = remembers(100);
        scorer.sent(&request(&prompt(&[1, 2, 3, 4])), InstanceId(1), Time::ZERO);
        assert_eq!(scores(&mut scorer, &[1, 2, 9, 10], &[0, 0]), [0.0, 0.5]);
        assert_eq!(scorer.expected_hit_blocks(InstanceId(1)), Some(2));
        assert_eq!(scorer.expected_hit_blocks(InstanceId(0)), Some(0));
    }

    #[test]
    fn a_prompt_without_a_full_block_scores_zero() {
        assert_eq!(scores(&mut remembers(100), &[], &[0, 0]), [0.0, 0.0]);
    }

    #[test]
    fn scoring_does_not_teach_it_anything() {
        let mut scorer = remembers(100);
        for _ in 0..3 {
            assert_eq!(scores(&mut scorer, &[1, 2], &[0, 0]), [0.0, 0.0]);
        }
    }

    #[test]
    fn what_was_not_used_for_longest_is_forgotten_first() {
        let mut scorer = remembers(4);
        scorer.sent(&request(&prompt(&[1, 2])), InstanceId(0), Time::ZERO);
        scorer.sent(&request(&prompt(&[3, 4])), InstanceId(0), Time::ZERO);
        scorer.sent(&request(&prompt(&[5])), InstanceId(0), Time::ZERO);
        assert_eq!(scores(&mut scorer, &[1, 2], &[0]), [0.5], "the tail goes first");
        assert_eq!(scores(&mut scorer, &[3, 4], &[0]), [1.0]);
    }
}
