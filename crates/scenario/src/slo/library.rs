//! The sets of targets that ship, each with the source of its numbers.
//!
//! Data only. A number that nobody published is derived by a rule, and the rule is in `source`.

use super::SloSet;
use blis_metrics::SloTarget;

const NONE: SloTarget = SloTarget { ttft_ms: None, itl_ms: None, e2e_ms: None };

/// Limits on the first token and on the mean gap between tokens.
const fn limits(ttft_ms: f64, itl_ms: f64) -> SloTarget {
    SloTarget { ttft_ms: Some(ttft_ms), itl_ms: Some(itl_ms), e2e_ms: None }
}

const fn first_token(ttft_ms: f64) -> SloTarget {
    SloTarget { ttft_ms: Some(ttft_ms), itl_ms: None, e2e_ms: None }
}

const fn whole_answer(e2e_ms: f64) -> SloTarget {
    SloTarget { ttft_ms: None, itl_ms: None, e2e_ms: Some(e2e_ms) }
}

/// One published pair of limits, spread over the classes by the rule of the module.
const fn published(ttft_ms: f64, itl_ms: f64) -> [SloTarget; 5] {
    let limit = limits(ttft_ms, itl_ms);
    [limit, limit, limits(4.0 * ttft_ms, 4.0 * itl_ms), NONE, NONE]
}

/// A day in ms.
const DAY: f64 = 86_400_000.0;

/// All sets, those for applications first.
pub const ALL: &[SloSet] = &[
    SloSet {
        name: "chat",
        summary: "Chat with a small model: starts at once, at reading speed",
        source: "DistServe (OSDI 2024, table 1), chatbot with OPT-13B on ShareGPT: TTFT 0.25 s, \
                 TPOT 0.1 s; its smallest model is the closest to 8B",
        classes: published(250.0, 100.0),
    },
    SloSet {
        name: "chat-large",
        summary: "Chat with a large model",
        source: "DistServe (OSDI 2024, table 1), chatbot with OPT-66B on ShareGPT: TTFT 2.5 s, \
                 TPOT 0.15 s",
        classes: published(2_500.0, 150.0),
    },
    SloSet {
        name: "code-completion",
        summary: "Code completion while typing: the first token decides",
        source: "DistServe (OSDI 2024, table 1), code completion with OPT-66B on HumanEval: TTFT \
                 0.125 s, TPOT 0.2 s",
        classes: published(125.0, 200.0),
    },
    SloSet {
        name: "summarization",
        summary: "Summaries of long documents: a slow start, then reading speed",
        source: "DistServe (OSDI 2024, table 1), summarisation with OPT-66B on LongBench: TTFT 15 \
                 s, TPOT 0.15 s",
        classes: published(15_000.0, 150.0),
    },
    SloSet {
        name: "rag",
        summary: "Answers from retrieved documents: prompts of thousands of tokens, at reading \
            speed",
        source: "No target for retrieval was found published. Rule: the limits of MLPerf's server \
                 scenario for the same size of model (`mlperf-8b-server`)",
        classes: published(2_000.0, 100.0),
    },
    SloSet {
        name: "agentic",
        summary: "Steps of an agent: only the complete output counts",
        source: "No target for agents was found published. Rule: an answer of 128 tokens at the \
                 limits of `mlperf-8b-interactive`, 500 + 127 x 30 ms, for `critical` and \
                 `standard`; four times that for `sheddable`",
        classes: [whole_answer(4_310.0), whole_answer(4_310.0), whole_answer(17_240.0), NONE, NONE],
    },
    SloSet {
        name: "batch",
        summary: "Offline work: done within a day",
        source: "The completion window of OpenAI's Batch API, 24 h, for every class",
        classes: [whole_answer(DAY); 5],
    },
    SloSet {
        name: "tiers",
        summary: "Customer tiers on one workload, as in the first BLIS studies",
        source: "The first studies with BLIS. `standard`: the first-token p99 of their baseline, \
                 270 ms; `critical`: half of that, their criterion of success; `sheddable`: four \
                 times `standard`; `batch`: the 5 s that they called tolerable",
        classes: [
            first_token(135.0),
            first_token(270.0),
            first_token(1_080.0),
            first_token(5_000.0),
            NONE,
        ],
    },
    SloSet {
        name: "mlperf-8b-server",
        summary: "MLPerf Inference, Llama 3.1 8B, server scenario",
        source: "mlcommons/inference, loadgen/mlperf.conf (v5.1): TTFT 2000 ms, TPOT 100 ms, both \
                 at the 99th percentile",
        classes: published(2_000.0, 100.0),
    },
    SloSet {
        name: "mlperf-8b-interactive",
        summary: "MLPerf Inference, Llama 3.1 8B, interactive scenario",
        source: "mlcommons/inference, loadgen/mlperf.conf (v5.1): TTFT 500 ms, TPOT 30 ms, both at \
                 the 99th percentile",
        classes: published(500.0, 30.0),
    },
    SloSet {
        name: "mlperf-70b-server",
        summary: "MLPerf Inference, Llama 2 70B, server scenario",
        source: "mlcommons/inference, loadgen/mlperf.conf (since v4.0): TTFT 2000 ms, TPOT 200 ms, \
                 both at the 99th percentile",
        classes: published(2_000.0, 200.0),
    },
    SloSet {
        name: "mlperf-70b-interactive",
        summary: "MLPerf Inference, Llama 2 70B, interactive scenario",
        source: "mlcommons/inference, loadgen/mlperf.conf (since v5.0): TTFT 450 ms, TPOT 40 ms, \
                 both at the 99th percentile",
        classes: published(450.0, 40.0),
    },
    SloSet {
        name: "mlperf-405b-server",
        summary: "MLPerf Inference, Llama 3.1 405B, server scenario",
        source: "mlcommons/inference, loadgen/mlperf.conf (since v5.0): TTFT 6000 ms, TPOT 175 ms, \
                 both at the 99th percentile",
        classes: published(6_000.0, 175.0),
    },
];
