//! How many KV blocks fit into the memory of GPUs beside a model, as vLLM counts them.

use crate::model::ModelShape;
use crate::parallel::Parallel;

const GIB: f64 = 1_073_741_824.0;

/// Bytes that sampling takes for each token of the vocabulary while vLLM looks how much memory it
/// needs: 256 sequences, and 56 bytes of logits, probabilities and sorted copies for each. Fitted
/// to the published figures in the tests below.
const SAMPLING_BYTES: f64 = 256.0 * 56.0;

/// Tokens of the largest step while vLLM looks how much memory it needs.
const PROFILED_TOKENS: f64 = 2048.0;

/// What the communication of several GPUs takes of each, in bytes.
const COMMUNICATION_BYTES: f64 = 0.4 * GIB;

/// Why blocks could not be counted.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum CapacityError {
    /// Weights and buffers leave no room.
    #[error(
        "the model needs `{needed_gib:.1}` GiB on each GPU and {allowed_gib:.1} GiB may be used; \
         take more or larger GPUs, or a larger share of their memory"
    )]
    NoRoom {
        /// What weights and buffers take.
        needed_gib: f64,
        /// What may be used.
        allowed_gib: f64,
    },
    /// A number is illegal.
    #[error("`{name}` is `{value}`; legal: {legal}")]
    Illegal {
        /// Which number.
        name: &'static str,
        /// The value found.
        value: f64,
        /// What is legal.
        legal: &'static str,
    },
}

/// Memory of one of the GPUs that hold a model together.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Memory {
    /// What a program can allocate on one GPU, in GiB; a little less than on the data sheet.
    pub usable_gib: f64,
    /// Share of it that the server may use: vLLM's `gpu-memory-utilization`.
    pub utilisation: f64,
    /// How GPUs share the model.
    pub parallel: Parallel,
}

/// How many blocks of `block_size` tokens fit beside `model`: in the stage of a pipeline that has
/// least room, and on all ranks together.
///
/// # Errors
/// If nothing is left for them, or a number is illegal.
pub fn kv_blocks(
    model: &ModelShape,
    memory: Memory,
    block_size: u32,
) -> Result<u32, CapacityError> {
    let Memory { usable_gib, utilisation, parallel } = memory;
    if !(utilisation > 0.0 && utilisation <= 1.0) {
        let legal = "more than 0, at most 1";
        return Err(CapacityError::Illegal { name: "utilisation", value: utilisation, legal });
    }
    let Parallel { tp, pp, dp, .. } = parallel;
    for (name, value) in [("tp", tp), ("pp", pp), ("dp", dp), ("block size", block_size)] {
        if value < 1 {
            return Err(CapacityError::Illegal { name, value: 0.0, legal: "at least 1" });
        }
    }
    if pp > model.layers {
        let (value, legal) = (f64::from(pp), "at most the layers of the model");
        return Err(CapacityError::Illegal { name: "pp", value, legal });
    }
    let shares = f64::from(tp);
    let bytes = f64::from(model.bytes_per_parameter);
    let widths =
        2.0 * f64::from(model.hidden_size) + 3.0 * f64::from(model.intermediate_size) / shares;
    // Both are freed before the other is needed; only the last stage samples.
    let (activations, sampling) =
        (PROFILED_TOKENS * widths * bytes, SAMPLING_BYTES * f64::from(model.vocabulary));
    let communication = if parallel.gpus() > 1 { COMMUNICATION_BYTES } else { 0.0 };
    let allowed = usable_gib * GIB * utilisation;
    let block = model.kv_bytes_per_token() * model.kv_share(tp) * f64::from(block_size);
    let layers = parallel.stages(model.layers);
    let mut least = u32::MAX;
    for (at, (weights, here)) in (1..).zip(model.rank_bytes(parallel).zip(layers)) {
        let buffers = if at == pp { activations.max(sampling) } else { activations };
        let needed = weights + buffers + communication;
        let block = block * (f64::from(here) / f64::from(model.layers));
        let blocks = ((allowed - needed) / block).floor();
        if blocks < 1.0 {
            let (needed_gib, allowed_gib) = (needed / GIB, allowed / GIB);
            return Err(CapacityError::NoRoom { needed_gib, allowed_gib });
        }
        least = least.min(u32::try_from(blis_core::math::count(blocks)).unwrap_or(u32::MAX));
    }
    Ok(least.saturating_mul(dp))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::tests::{LLAMA_8B, MIXTRAL};

    const GPU_80: f64 = 79.2;
    const L40S: f64 = 44.5;

    const LLAMA_2_7B: ModelShape = ModelShape {
        kv_heads: 32,
        intermediate_size: 11_008,
        vocabulary: 32_000,
        max_model_len: 4096,
        ..LLAMA_8B
    };

    const LLAMA_2_70B: ModelShape = ModelShape {
        layers: 80,
        hidden_size: 8192,
        query_heads: 64,
        intermediate_size: 28_672,
        vocabulary: 32_000,
        max_model_len: 4096,
        ..LLAMA_8B
    };

    const CODE_LLAMA_34B: ModelShape =
        ModelShape { layers: 48, intermediate_size: 22_016, ..LLAMA_2_70B };

    const QWEN_7B: ModelShape = ModelShape {
        layers: 28,
        hidden_size: 3584,
        query_heads: 28,
        kv_heads: 4,
        intermediate_size: 18_944,
        vocabulary: 152_064,
        max_model_len: 32_768,
        ..LLAMA_8B
    };

    fn tokens(model: &ModelShape, usable_gib: f64, tp: u32) -> f64 {
        let memory = Memory { usable_gib, utilisation: 0.9, parallel: Parallel::tensor(tp) };
        16.0 * f64::from(kv_blocks(model, memory, 16).expect("room"))
    }

    #[test]
    fn capacities_are_those_that_vllm_logged_within_2_percent() {
        let cases = [
            // vLLM 0.8.5.post1 on an AWS g6e.xlarge, in a public post of August 2026 that compares
            // BF16, FP8 and GPTQ of Qwen2.5-7B-Instruct. Model, GPU and version are stated.
            ("Qwen2.5-7B, L40S", &QWEN_7B, L40S, 1, 444_592.0),
            // vLLM issue "[Bug][P/D]: nixl._bindings.nixlBackendError" of May 2025. The weights
            // (14.9889 GiB) say Llama-3.1-8B; that a GPU of its DGX has 80 GB is our inference.
            ("Llama-3.1-8B, 80 GB", &LLAMA_8B, GPU_80, 1, 442_160.0),
            // The next four are in the public tests of a reader of vLLM logs
            // (`experiment.kv_cache_extractor`). Models are stated; that they ran on H100s at these
            // parallelisms is our inference, by which they are all explained.
            ("Llama-2-7B, H100", &LLAMA_2_7B, GPU_80, 1, 119_408.0),
            ("Llama-2-70B, 4 H100", &LLAMA_2_70B, GPU_80, 4, 501_712.0),
            ("Mixtral-8x7B, 2 H100", &MIXTRAL, GPU_80, 2, 440_176.0),
            ("CodeLlama-34B, 2 H100", &CODE_LLAMA_34B, GPU_80, 2, 425_648.0),
            // A public script that measures vLLM's prefill (`E26`, `vllm_calibration.py`) has GPU,
            // model, the share of 0.92 and the number in the log. The version is not in it.
            ("Qwen2.5-7B, RTX A6000", &QWEN_7B, 47.5 * 0.92 / 0.9, 1, 517_264.0),
        ];
        for (name, model, usable_gib, tp, logged) in cases {
            let found = tokens(model, usable_gib, tp);
            assert!((found / logged - 1.0).abs() < 0.02, "{name}: {found}, logged {logged}");
        }
    }

    /// vLLM 0.26 on one H200, 0.92 of whose memory it may use (`measure/kv_capacity.py`).
    #[test]
    fn capacities_are_those_of_vllm_0_26_within_2_percent() {
        let shape = |name| crate::Catalogue::shipped().model(name).expect(name).shape();
        let with_kv = |mut shape: ModelShape, kv_fp8| {
            shape.formats.kv_fp8 = kv_fp8;
            shape
        };
        let fp8 = |shape| with_kv(shape, true);
        let cases = [
            ("Llama-3.1-8B", LLAMA_8B, 914_304.0),
            ("Llama-3.1-8B, KV in FP8", fp8(LLAMA_8B), 1_828_096.0),
            ("Llama-3.1-8B in FP8", with_kv(shape("llama-3.1-8b-fp8"), false), 967_200.0),
            ("Qwen2.5-7B", QWEN_7B, 2_096_192.0),
            ("Qwen2.5-7B, KV in FP8", fp8(QWEN_7B), 4_191_216.0),
            ("Qwen3-14B", shape("qwen3-14b"), 646_976.0),
            ("Qwen3-32B", shape("qwen3-32b"), 263_616.0),
            ("Qwen3-32B, KV in FP8", fp8(shape("qwen3-32b")), 526_976.0),
        ];
        for (name, model, logged) in cases {
            let found = tokens(&model, 139.8 * 0.92 / 0.9, 1);
            assert!((found / logged - 1.0).abs() < 0.02, "{name}: {found}, logged {logged}");
        }
    }

    #[test]
    fn weights_take_what_vllm_logged_within_2_5_percent() {
        // "Model loading took" of vLLM's log, in GiB on each GPU.
        let cases = [
            // Issue "[Bug][P/D]: nixl._bindings.nixlBackendError" of vLLM.
            ("llama-3.1-8b", 1.0, 14.9889),
            // Change 12569 of vLLM: 8-bit weights of Llama-3.1-70B.
            ("llama-3.1-70b-fp8", 1.0, 67.7229),
            // Issue 17469 of vLLM, four GPUs; that this Qwen3 is the 30B is our inference.
            ("qwen3-30b-a3b", 4.0, 14.2474),
            // Issue 33155 of vLLM (0.14.1).
            ("gpt-oss-120b", 1.0, 64.38),
            // vLLM 0.19.0 on an A100, https://myoceane.fr/index.php/ai-vllm-a100-gemma-4/
            ("gpt-oss-20b", 1.0, 13.72),
        ];
        for (name, gpus, logged) in cases {
            let shape = crate::Catalogue::shipped().model(name).expect(name).shape();
            let found = shape.weight_bytes() / gpus / GIB;
            assert!((found / logged - 1.0).abs() < 0.025, "{name}: {found}, logged {logged}");
        }
    }

    #[test]
    fn more_gpus_than_kv_heads_hold_copies() {
        let eight = tokens(&LLAMA_2_70B, GPU_80, 8);
        let sixteen = tokens(&LLAMA_2_70B, GPU_80, 16);
        assert!(sixteen / eight < 1.5, "{sixteen} against {eight}");
    }

    /// Half of the layers are on each GPU, so twice as many tokens fit into what is left. The last
    /// stage has least room, because it samples.
    #[test]
    fn stages_hold_their_layers_and_ranks_their_own_requests() {
        let blocks = |model: &ModelShape, parallel| {
            let memory = Memory { usable_gib: GPU_80, utilisation: 0.9, parallel };
            f64::from(kv_blocks(model, memory, 16).expect("room"))
        };
        let one = Parallel::tensor(1);
        let free = |taken: f64| 0.9 * GPU_80 * GIB - taken - 256.0 * 56.0 * 128_256.0;
        let half = LLAMA_8B.weight_bytes() / 2.0 + COMMUNICATION_BYTES;
        let expected = (free(half) / (8.0 * 131_072.0)).floor();
        assert!((blocks(&LLAMA_8B, Parallel { pp: 2, ..one }) - expected).abs() < 1.5);
        // Each of two ranks has everything but half of the experts.
        let ranks = Parallel { dp: 2, expert: true, ..one };
        let all = MIXTRAL.weight_bytes();
        let experts = 32.0 * 8.0 * 3.0 * 4096.0 * 14_336.0 * 2.0;
        let room = 0.9 * GPU_80 * GIB - (all - experts / 2.0) - COMMUNICATION_BYTES;
        let each = ((room - 256.0 * 56.0 * 32_000.0) / (16.0 * 131_072.0)).floor();
        assert!((blocks(&MIXTRAL, ranks) / (2.0 * each) - 1.0).abs() < 1e-3);
        // 43 layers of 80 do not fit where 27 do.
        let three = Parallel { pp: 3, ..one };
        assert!(blocks(&LLAMA_2_70B, three) > blocks(&LLAMA_2_70B, Parallel { pp: 2, ..one }));
    }

    #[test]
    fn a_model_that_does_not_fit_and_illegal_numbers_are_refused() {
        let refuse = |model: &ModelShape, utilisation, tp, block_size| {
            let memory = Memory { usable_gib: GPU_80, utilisation, parallel: Parallel::tensor(tp) };
            kv_blocks(model, memory, block_size).expect_err("illegal").to_string()
        };
        let message = refuse(&LLAMA_2_70B, 0.9, 1, 16);
        assert!(message.starts_with("the model needs `128."), "{message}");
        assert!(refuse(&LLAMA_8B, 1.5, 1, 16).contains("`utilisation` is `1.5`"));
        assert!(refuse(&LLAMA_8B, 0.9, 0, 16).contains("`tp` is `0`"));
        assert!(refuse(&LLAMA_8B, 0.9, 1, 0).contains("`block size` is `0`"));
    }
}
