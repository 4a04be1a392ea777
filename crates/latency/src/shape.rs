//! The contract between the engine and a latency model.

use blis_core::Span;

/// What one engine step computes: all that a latency model may look at.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct StepShape {
    /// Sequences that catch up: on their prompts, or after a preemption on prompt and output.
    pub prefill_seqs: u32,
    /// Their tokens in this step.
    pub prefill_tokens: u32,
    /// Tokens of those sequences that are in the KV cache already.
    pub prefill_past_tokens: u64,
    /// Sum over prefill chunks of n * (past + (n + 1) / 2): query-key pairs.
    pub prefill_attention_pairs: u64,
    /// Sequences that compute just their last token to generate the next.
    pub decode_seqs: u32,
    /// Sum of their context lengths, the new token included.
    pub decode_context: u64,
}

/// How long a step takes, and what surrounds it.
pub trait StepTime: Send + Sync + std::fmt::Debug {
    /// How long a step of this shape occupies the engine; at least one nanosecond.
    fn predict(&self, shape: &StepShape) -> Span;

    /// From routing until a request with a prompt of `input_tokens` is in the instance's queue
    /// (tokenisation, network); does not occupy the engine.
    fn ingress(&self, input_tokens: u32) -> Span;

    /// From a step's end until its tokens leave the server (detokenisation); does not occupy the
    /// engine.
    fn output(&self) -> Span;

    /// Whether `predict` ignores context lengths (past tokens, attention pairs, decode context):
    /// then a batch that only decodes takes the same time step after step, and runs of steps have a
    /// closed form.
    fn context_free(&self) -> bool;
}
