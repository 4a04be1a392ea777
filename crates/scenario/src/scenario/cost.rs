//! What policies may know of the cluster they are built for, and of the cost of its steps.

use blis_core::{SloClass, Span};
use blis_latency::{StepShape, StepTime};
use blis_metrics::SloTargets;
use blis_policy::{Cluster, StepCost};
use blis_sim::Engine;

/// A prompt, an answer and a batch of usual size, between which the line of step costs is drawn.
const PROMPT: u32 = 512;
const CONTEXT: u64 = 512;
const BATCH: u32 = 64;

/// What policies may know of `instances` engines.
pub(super) fn cluster(
    instances: u32,
    engine: &Engine,
    latency: &dyn StepTime,
    slo: &SloTargets,
) -> Cluster {
    let target = |class| slo.of(class).ttft_ms.map(|ms| Span::from_secs_f64(ms / 1e3));
    Cluster {
        instances,
        blocks: engine.total_kv_blocks,
        block_size: engine.block_size,
        max_running: engine.max_num_running_reqs,
        token_budget: engine.max_num_scheduled_tokens,
        step: step_cost(latency),
        ttft_targets: SloClass::ALL.map(target),
    }
}

/// The line through the times of a step that generates one token, one that generates many, and one
/// that computes a prompt as well.
fn step_cost(latency: &dyn StepTime) -> StepCost {
    let micros = |shape: &StepShape| latency.predict(shape).as_micros_f64();
    let decode = |seqs: u32| StepShape {
        decode_seqs: seqs,
        decode_context: u64::from(seqs) * CONTEXT,
        ..StepShape::default()
    };
    let prompt = u64::from(PROMPT);
    let with_prompt = StepShape {
        prefill_seqs: 1,
        prefill_tokens: PROMPT,
        prefill_attention_pairs: prompt * (prompt + 1) / 2,
        ..decode(1)
    };
    let one = micros(&decode(1));
    let decode_us = (micros(&decode(BATCH)) - one) / f64::from(BATCH - 1);
    StepCost {
        base_us: (one - decode_us).max(0.0),
        prefill_token_us: (micros(&with_prompt) - one).max(0.0) / f64::from(PROMPT),
        decode_us: decode_us.max(0.0),
    }
}
