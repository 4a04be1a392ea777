//! `precise-prefix`: where the prompt's prefix is cached, as the instances tell.
//!
//! **Prefers** instances that hold a long part of the prompt's prefix: cached blocks / full blocks
//! of the prompt, where a block in the CPU tier counts less.
//!
//! **Reads** `cached_blocks` and `cached_cpu_blocks` (as late as KV events are). It sees evictions,
//! but not the prompts that were just sent and are not computed yet.
//!
//! **Parameters** `cpu-weight` (blocks): what a block in the CPU tier is worth. `normalise`:
//! `share` gives the share of the prompt; `min-max` gives 1 to whoever holds most and 0 to whoever
//! holds least, however little they differ (1 for all if they do not).
//!
//! **Origin** llm-d's precise prefix-cache scorer, with its weight of the CPU tier. It has used
//! both scales, first `min-max` and later the share. `min-max` forgets sizes: one block more than
//! the others is worth as much as a whole prompt.

use crate::prelude::*;
use crate::routing::knowledge::{self, Knowledge};
use crate::routing::scorers::{Best, min_max};

/// How `precise-prefix` introduces itself.
pub const SPEC: Spec<dyn Scorer> = Spec {
    name: "precise-prefix",
    alias: Some("pp"),
    help: "Prefers instances that hold the prompt's prefix, according to KV events",
    params: &[
        Param {
            help: "Value of a cached block in the CPU tier, in GPU blocks",
            when: None,
            ..knowledge::CPU_WEIGHT
        },
        Param::choice("normalise", &["share", "min-max"])
            .help("Score by share of the prompt, or relative to other instances"),
    ],
    needs: |_| Needs { events: true, ..Needs::NONE },
    ..Spec::built_by(|values, _| {
        Box::new(PrecisePrefix {
            knowledge: Knowledge::precise(values.float(knowledge::CPU_WEIGHT.name)),
            relative: values.choice("normalise") == "min-max",
        })
    })
};

/// Cached share of the prompt's blocks, as KV events tell.
#[derive(Clone, Debug)]
pub struct PrecisePrefix {
    knowledge: Knowledge,
    relative: bool,
}

impl Scorer for PrecisePrefix {
    fn score(&mut self, request: &RequestView<'_>, cluster: &ClusterView<'_>, scores: &mut [f64]) {
        self.knowledge.look(request, cluster);
        cluster.each(scores, |view| self.knowledge.share(request, view));
        if self.relative {
            min_max(scores, Best::Most);
        }
    }

    fn expected_hit_blocks(&self, instance: InstanceId) -> Option<u32> {
        Some(self.knowledge.blocks(instance))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::view::examples::{cluster, instances, prompt, request};

    fn scores(relative: bool, cached: &[(u32, u32)]) -> Vec<f64> {
        let mut scorer = PrecisePrefix { knowledge: Knowledge::precise(0.5), relative };
        let mut views = instances(&vec![0; cached.len()]);
        for (view, (gpu, cpu)) in views.iter_mut().zip(cached) {
            (view.cached_blocks, view.cached_cpu_blocks) = (*gpu, *cpu);
        }
        let mut scores = vec![f64::NAN; views.len()];
        scorer.score(&request(&prompt(&[1, 2, 3, 4])), &cluster(&views), &mut scores);
        scores
    }

    #[test]
    fn the_score_is_the_cached_share_and_the_cpu_tier_counts_less() {
        assert_eq!(scores(false, &[(0, 0), (2, 0), (0, 2), (2, 2)]), [0.0, 0.5, 0.25, 0.75]);
    }

    #[test]
    fn a_relative_score_forgets_how_much_is_cached() {
        assert_eq!(scores(true, &[(0, 0), (1, 0)]), [0.0, 1.0]);
        assert_eq!(scores(true, &[(1, 0), (2, 0), (4, 0)]), [0.0, 1.0 / 3.0, 1.0]);
        assert_eq!(scores(true, &[(0, 0), (0, 0)]), [1.0, 1.0]);
    }
}
