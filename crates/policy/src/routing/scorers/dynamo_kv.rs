//! `dynamo-kv`: blocks to compute and blocks to read.
//!
//! **Prefers** the lowest cost: `prefill` x the blocks of prompts to compute there (those under way
//! and this one, less its blocks that are cached there) + the blocks of prompts in flight, this one
//! included. 1 for the lowest, 0 for the highest, in proportion between.
//!
//! **Reads** the router's own counts (live): `unstarted_tokens`, `in_flight_tokens`; with `precise`
//! knowledge `cached_blocks` and `cached_cpu_blocks` (as late as KV events are).
//!
//! **Parameters** `prefill`: weight of the blocks to compute. `knowledge`: whether hits are guessed
//! from what was sent or read from KV events. `cpu-weight` (blocks): credit for a block in the CPU
//! tier if they are read.
//!
//! **Origin** the KV router of NVIDIA Dynamo with its defaults (`prefill_load_scale` 1, credit 1
//! for a block on the GPU and 0.75 on the host, temperature 0; kv-router 07a6c9c, 2026). It counts
//! a block that several requests share once; here it counts for each.

use crate::prelude::*;
use crate::routing::knowledge::{self, Knowledge};
use crate::routing::scorers::{Best, min_max};

/// How `dynamo-kv` introduces itself.
pub const SPEC: Spec<dyn Scorer> = Spec {
    name: "dynamo-kv",
    help: "Prefers few KV blocks to compute and to read, as NVIDIA Dynamo's router does",
    params: &[
        Param::float("prefill", 0.0..=1_000.0, 1.0, "").help("Weight of the blocks to compute"),
        knowledge::PARAM,
        knowledge::CPU_WEIGHT,
    ],
    needs: knowledge::needs,
    ..Spec::built_by(|values, cluster| {
        Box::new(DynamoKv {
            prefill: values.float("prefill"),
            block_size: f64::from(cluster.block_size),
            knowledge: Knowledge::of(values, cluster),
        })
    })
};

/// Blocks of prefill and decode.
#[derive(Clone, Debug)]
pub struct DynamoKv {
    prefill: f64,
    block_size: f64,
    knowledge: Knowledge,
}

impl Scorer for DynamoKv {
    fn score(&mut self, request: &RequestView<'_>, cluster: &ClusterView<'_>, scores: &mut [f64]) {
        self.knowledge.look(request, cluster);
        let prompt = u64::from(request.input_tokens);
        let blocks = |tokens: u64| math::float(tokens) / self.block_size;
        cluster.each(scores, |view| {
            let to_compute = blocks(view.unstarted_tokens + prompt) - self.knowledge.worth(view);
            self.prefill * to_compute.max(0.0) + blocks(view.in_flight_tokens + prompt)
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

    #[test]
    fn cached_blocks_are_worth_as_many_blocks_of_load() {
        let knowledge = Knowledge::precise(0.75);
        let mut scorer = DynamoKv { prefill: 1.0, block_size: 16.0, knowledge };
        let mut views = instances(&[0, 0, 0, 0]);
        // Costs for a prompt of 4 blocks: 4 + 4; 0 + 7; 4 - 3 + 4; 6 + 4.
        (views[1].cached_blocks, views[1].in_flight_tokens) = (4, 48);
        (views[2].cached_blocks, views[2].cached_cpu_blocks) = (0, 4);
        views[3].unstarted_tokens = 32;
        let mut scores = vec![f64::NAN; 4];
        scorer.score(&request(&prompt(&[1, 2, 3, 4])), &cluster(&views), &mut scores);
        assert_eq!(scores, [0.4, 0.6, 1.0, 0.0]);
    }
}
