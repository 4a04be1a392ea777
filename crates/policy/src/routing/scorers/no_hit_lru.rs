//! `no-hit-lru`: cold prompts in turn.
//!
//! **Prefers**, for a prompt of which nothing is cached at any candidate, instances that were not
//! sent such a prompt for longest: 1 for the first (those that never were, by id), 0 for the last,
//! in equal steps between; 0.5 for all as soon as anybody has a block of it.
//!
//! **Reads** no signals of instances: its memory of cold prompts, and of prompts at all (live);
//! with `precise` knowledge `cached_blocks` and `cached_cpu_blocks` (as late as KV events are).
//!
//! **Parameters** `knowledge`: whether hits are guessed from what was sent or read from KV events.
//! `cpu-weight` (blocks): what a block in the CPU tier is worth if they are read; 0 ignores them.
//!
//! **Origin** llm-d's no-hit-lru scorer: cold prompts fill caches, so they are dealt out evenly.

use crate::prelude::*;
use crate::routing::knowledge::{self, Knowledge};

/// How `no-hit-lru` introduces itself.
pub const SPEC: Spec<dyn Scorer> = Spec {
    name: "no-hit-lru",
    help: "Sends prompts that are cached nowhere to the least recently chosen instance",
    params: &[knowledge::PARAM, knowledge::CPU_WEIGHT],
    needs: knowledge::needs,
    ..Spec::built_by(|values, cluster| Box::new(NoHitLru::new(Knowledge::of(values, cluster))))
};

/// Ranks of instances by their last cold prompt.
#[derive(Clone, Debug)]
pub struct NoHitLru {
    knowledge: Knowledge,
    /// By instance id: the number of its last cold prompt, from 1; 0 if it never had one.
    last_cold: Vec<u64>,
    cold: u64,
    /// The request scored last, if it was cold.
    scored_cold: Option<RequestId>,
    /// Candidates in order; kept to save an allocation.
    order: Vec<usize>,
}

impl NoHitLru {
    fn new(knowledge: Knowledge) -> NoHitLru {
        NoHitLru { knowledge, last_cold: Vec::new(), cold: 0, scored_cold: None, order: Vec::new() }
    }
}

impl Scorer for NoHitLru {
    fn score(&mut self, request: &RequestView<'_>, cluster: &ClusterView<'_>, scores: &mut [f64]) {
        self.knowledge.look(request, cluster);
        let warm = cluster.instances.iter().any(|view| self.knowledge.blocks(view.id) > 0);
        self.scored_cold = (!warm).then_some(request.id);
        if warm {
            scores.fill(0.5);
            return;
        }
        let last_cold = |at: usize| {
            let id = cluster.instances[at].id;
            (self.last_cold.get(id.index()).copied().unwrap_or(0), id)
        };
        self.order.clear();
        self.order.extend(0..cluster.instances.len());
        self.order.sort_unstable_by_key(|at| last_cold(*at));
        let steps = math::float(cluster.instances.len().saturating_sub(1).max(1) as u64);
        for (rank, at) in (0..).zip(&self.order) {
            scores[*at] = 1.0 - math::float(rank) / steps;
        }
    }

    fn sent(&mut self, request: &RequestView<'_>, instance: InstanceId, _: Time) {
        self.knowledge.sent(request, instance);
        if self.scored_cold != Some(request.id) {
            return;
        }
        if self.last_cold.len() <= instance.index() {
            self.last_cold.resize(instance.index() + 1, 0);
        }
        self.cold += 1;
        self.last_cold[instance.index()] = self.cold;
    }

    fn expected_hit_blocks(&self, instance: InstanceId) -> Option<u32> {
        Some(self.knowledge.blocks(instance))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::view::examples::{prompt, request, scores};

    /// Sends prompts of one block where they score best, and tells where.
    fn dealt(prompts: &[u64]) -> Vec<usize> {
        let mut scorer = NoHitLru::new(Knowledge::approximate(100));
        let mut places = Vec::new();
        for block in prompts {
            let scores = scores(&mut scorer, &[*block], &[0, 0, 0]);
            let best = (0..3).rev().max_by(|a, b| scores[*a].total_cmp(&scores[*b])).unwrap();
            let id = InstanceId(u32::try_from(best).unwrap());
            scorer.sent(&request(&prompt(&[*block])), id, Time::ZERO);
            places.push(best);
        }
        places
    }

    #[test]
    fn cold_prompts_go_to_the_instance_that_had_none_for_longest() {
        assert_eq!(dealt(&[1, 2, 3, 4, 5]), [0, 1, 2, 0, 1]);
    }

    #[test]
    fn prompts_that_hit_anywhere_are_scored_alike_and_do_not_count_as_a_turn() {
        let mut scorer = NoHitLru::new(Knowledge::approximate(100));
        assert_eq!(scores(&mut scorer, &[1], &[0, 0, 0]), [1.0, 0.5, 0.0]);
        scorer.sent(&request(&prompt(&[1])), InstanceId(0), Time::ZERO);
        assert_eq!(scores(&mut scorer, &[1], &[0, 0, 0]), [0.5; 3]);
        scorer.sent(&request(&prompt(&[1])), InstanceId(1), Time::ZERO);
        assert_eq!(scores(&mut scorer, &[2], &[0, 0, 0]), [0.0, 1.0, 0.5]);
    }

    #[test]
    fn one_candidate_scores_one() {
        assert_eq!(scores(&mut NoHitLru::new(Knowledge::precise(1.0)), &[1], &[0]), [1.0]);
    }
}
