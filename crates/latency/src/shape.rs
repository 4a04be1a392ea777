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
    /// Sequences that compute just their last token to generate the next, and perhaps a draft of
    /// what follows.
    pub decode_seqs: u32,
    /// Tokens of their drafts: computed and judged like the last token. The cache of a sequence is
    /// read once for all of its tokens.
    pub draft_tokens: u32,
    /// Sum of their context lengths, the new tokens included.
    pub decode_context: u64,
    /// The longest of their contexts; 0 if nobody knows, and then a model assumes a usual one.
    pub decode_longest: u32,
    /// Context tokens whose KV blocks another sequence of the batch holds too, counted once less
    /// than they are held: such blocks are read from memory once. 0 if nobody knows.
    pub shared_context: u64,
}

impl StepShape {
    /// Whether every sequence decodes.
    pub fn only_decodes(&self) -> bool {
        self.prefill_tokens == 0
    }

    /// Tokens that the dense layers compute.
    pub fn tokens(&self) -> u32 {
        self.prefill_tokens + self.decode_seqs + self.draft_tokens
    }

    /// Tokens that the output layer computes: one of each sequence, and those of drafts.
    pub fn outputs(&self) -> u32 {
        self.prefill_seqs + self.decode_seqs + self.draft_tokens
    }

    /// This step's shape after `steps` steps of the same batch in which every sequence decodes:
    /// every context is so many tokens longer.
    #[must_use]
    pub fn after(&self, steps: u32) -> StepShape {
        StepShape {
            decode_context: self.decode_context + u64::from(self.decode_seqs) * u64::from(steps),
            decode_longest: match self.decode_longest {
                0 => 0,
                longest => longest + steps,
            },
            ..*self
        }
    }
}

/// What a step costs the engine's host: one thread that does these things one after another, for
/// one step at a time, while the GPU computes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct HostTime {
    /// From the beginning of the loop's turn, when what has arrived is taken in, to the end of
    /// `schedule()`.
    pub schedule: Span,
    /// From there until the GPU can begin: the inputs are prepared and the first kernels launched.
    pub prepare: Span,
    /// From there until everything is launched that the GPU does for this step, sampling included:
    /// the GPU cannot be done before.
    pub launch: Span,
    /// From the moment at which the step's tokens are at hand to the end of their processing. Then
    /// they are handed out, and the loop's next turn begins.
    pub update: Span,
}

/// How long a step takes, and what surrounds it.
pub trait StepTime: Send + Sync + std::fmt::Debug {
    /// How long a step of this shape occupies the GPU; at least one nanosecond.
    fn predict(&self, shape: &StepShape) -> Span;

    /// What each stage of a pipeline takes of the `total` that the model predicts for a step: by
    /// default the same.
    fn divide(&self, _shape: &StepShape, total: Span, stages: &mut [Span]) {
        stages.fill(total / (stages.len() as u64));
    }

    /// How long it occupies the host. It may depend on how many sequences and tokens there are, and
    /// not on their contexts: it is the same for `shape.after(n)`.
    fn host(&self, _shape: &StepShape) -> HostTime {
        HostTime::default()
    }

    /// From routing until a request with a prompt of `input_tokens` is in the instance's queue
    /// (tokenisation, network, the way into the engine's process); does not occupy the engine.
    fn ingress(&self, _input_tokens: u32) -> Span {
        Span::ZERO
    }

    /// From the end of the update of a step of `seqs` sequences, when its tokens are handed out,
    /// until they leave the server (the way out of the engine's process, detokenisation); does not
    /// occupy the engine. Not shorter with more sequences.
    fn output(&self, _seqs: u32) -> Span {
        Span::ZERO
    }

    /// Whether `predict` ignores context lengths (past tokens, attention pairs, decode context):
    /// then a batch that only decodes takes the same time step after step, and runs of steps have a
    /// closed form.
    fn context_free(&self) -> bool;

    /// How many steps of a batch that only decodes, this one included, take exactly as long as this
    /// one, although every context grows by a token a step: at least 1. Whoever takes that many at
    /// once gets the same times as by stepping.
    fn repeats(&self, shape: &StepShape) -> u32 {
        if self.context_free() && shape.only_decodes() { u32::MAX } else { 1 }
    }

    /// How long `steps` steps of a batch that only decodes take, the first of this shape: exactly
    /// the sum of `predict`.
    fn run(&self, shape: &StepShape, steps: u32) -> Span {
        let (mut shape, mut left, mut total) = (*shape, steps, Span::ZERO);
        while left > 0 {
            let equal = self.repeats(&shape).min(left);
            total += self.predict(&shape) * u64::from(equal);
            shape = shape.after(equal);
            left -= equal;
        }
        total
    }

    /// Whether `predict` looks at `decode_longest` or `shared_context`; whoever makes shapes may
    /// leave them 0 otherwise.
    fn wants_spread(&self) -> bool {
        false
    }

    /// In which respects a step is outside what the model was fitted to, as bits in the order of
    /// `profile::VARIABLES`; 0: in none. The same for all steps that take equally long because
    /// `repeats` says so.
    fn beyond(&self, _shape: &StepShape) -> u32 {
        0
    }
}
