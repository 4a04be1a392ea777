//! How much work a request is, for those who know its output length.

use crate::config::Engine;
use crate::live::Live;
use blis_core::Span;
use blis_latency::{StepShape, StepTime};

/// What measures work.
#[derive(Clone, Copy)]
pub(crate) struct Work<'a> {
    pub(crate) engine: &'a Engine,
    pub(crate) latency: &'a dyn StepTime,
}

impl Work<'_> {
    /// How long the steps take that compute `new` tokens of one request behind `past` ones, if
    /// nobody else is there.
    pub(super) fn prefill(&self, new: u32, past: u32) -> Span {
        let most = match self.engine.long_prefill_token_threshold {
            0 => self.engine.max_num_scheduled_tokens,
            threshold => threshold.min(self.engine.max_num_scheduled_tokens),
        };
        let (mut left, mut past, mut total) = (new, past, Span::ZERO);
        while left > 0 {
            let chunk = left.min(most);
            total += self.latency.predict(&prefill(chunk, past));
            (left, past) = (left - chunk, past + chunk);
        }
        total
    }

    /// How long `steps` steps take in which one request decodes alone, the first with `context`
    /// tokens.
    pub(super) fn decode(&self, context: u32, steps: u32) -> Span {
        self.latency.run(&decode(1, context), steps)
    }

    /// The work left of a waiting request of which `cached` tokens need not be computed, in seconds
    /// of the whole engine: what it takes of the scarcest of compute, places and blocks. Compute is
    /// what it adds to the steps of others; a place and its blocks it holds until it is done.
    pub(crate) fn left(&self, live: &Live, cached: u32) -> f64 {
        let request = &live.request;
        let goal = request.content.prompt_tokens() + live.generated;
        // The last token is always computed.
        let cached = cached.min(goal - 1);
        let (new, left) = (goal - cached, request.output_tokens - live.generated);
        let step = self.latency.predict(&decode(1, goal));
        let stay = self.prefill(new, cached) + step * u64::from(left - 1);
        let both = self.latency.predict(&with(prefill(new, cached), 1, goal));
        let two = self.latency.predict(&decode(2, goal));
        let more = |span: Span| (span.as_secs_f64() - step.as_secs_f64()).max(0.0);
        let compute = more(both) + f64::from(left - 1) * more(two);
        let Engine { max_num_running_reqs, total_kv_blocks, block_size, .. } = *self.engine;
        let places = stay.as_secs_f64() / f64::from(max_num_running_reqs);
        let blocks = f64::from((goal + left - 1).div_ceil(block_size));
        let memory = stay.as_secs_f64() * blocks / f64::from(total_kv_blocks);
        compute.max(places).max(memory)
    }
}

/// A step that computes `new` tokens of a request behind `past` ones.
fn prefill(new: u32, past: u32) -> StepShape {
    let (tokens, past) = (u64::from(new), u64::from(past));
    StepShape {
        prefill_seqs: 1,
        prefill_tokens: new,
        prefill_past_tokens: past,
        prefill_attention_pairs: tokens * past + tokens * (tokens + 1) / 2,
        ..StepShape::default()
    }
}

/// A step in which `seqs` requests with `context` tokens decode.
fn decode(seqs: u32, context: u32) -> StepShape {
    with(StepShape::default(), seqs, context)
}

fn with(shape: StepShape, seqs: u32, context: u32) -> StepShape {
    StepShape {
        decode_seqs: seqs,
        decode_context: u64::from(seqs) * u64::from(context),
        decode_longest: context,
        ..shape
    }
}
