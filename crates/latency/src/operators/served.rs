//! What operators take in servers, as multiples of the tables, where the tables are known to be
//! off. These numbers and the sustained rate of the B200 and B300 are fitted to the first half of
//! the public board, TTFT above all; the second half judges them (`docs/validation/public.md`).

use crate::catalogue::Gpu;
use crate::model::Format;

/// With so many tokens, experts are half way from their time with few tokens, which is that of the
/// tables, to their time with many.
const HALF_WAY: f64 = 1000.0;

/// Above this many numbers of two bytes (8 MB) vLLM leaves its own all-reduce to NCCL's.
const OWN_ALL_REDUCE: f64 = 4_194_304.0;

/// What the routed experts of `tokens` tokens take.
pub(super) fn experts(gpu: &Gpu, format: Format, tokens: f64) -> f64 {
    let many = match (gpu.family.as_str(), format) {
        ("hopper", Format::Mxfp4) => 2.1,
        ("hopper", Format::Fp8Block) | ("blackwell", Format::Nvfp4) => 2.0,
        ("blackwell", Format::Fp8Block) => 1.5,
        // The tables have activations in bf16, servers in FP8.
        ("blackwell", Format::Mxfp4) => 0.5,
        _ => 1.0,
    };
    1.0 + (many - 1.0) * tokens / (tokens + HALF_WAY)
}

/// What an all-reduce of so many numbers takes.
pub(super) fn all_reduce(gpu: &Gpu, numbers: f64) -> f64 {
    let links = gpu.family == "blackwell" && gpu.link_gb_s > 1000.0;
    if links && numbers > OWN_ALL_REDUCE { 2.0 } else { 1.0 }
}
