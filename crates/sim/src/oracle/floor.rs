//! Floors: what no policy can go below, request by request.
//!
//! **Theorem.** Let a step never be shorter for computing more, and two steps never be shorter than
//! one that computes what both do, as far as that fits the budget. A prompt token of a request must
//! have been computed before the request's first token, by whomever. If nobody who arrived before
//! has a block of the prompt at the same place of the same content, then whoever computed that
//! block did so after the request arrived, and on the request's instance, because caches are not
//! shared. So between arrival and first token that instance has taken steps that compute at least
//! these tokens, and they last at least as long as if the request were alone there with as much of
//! the rest cached as is best. To that come the delays of the gateway, ingress and the processing
//! of the token; and for each further token, or for as many
//! as a step may bring with a draft, a step in which at least this request decodes.
//!
//! If blocks are cached once they are allocated, several requests of one step may compute parts of
//! one prompt, so that the budget of the step alone limits how much of it a step computes.
//!
//! The stages of a pipeline compute as many steps at a time. One of them has at least its share of
//! the work of all these steps to do.
//!
//! It holds for every admission, router, order, preemption and eviction, one that knows the future
//! included, as long as the same requests arrive at the same times.

use super::work::Work;
use crate::config::{Engine, Gateway};
use blis_core::runs::{Match, RunTree};
use blis_core::{Request, Span};
use blis_latency::StepTime;
use std::sync::Arc;

/// What no policy can go below for a request, if it is served.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Floor {
    /// Least time to first token.
    pub ttft: Span,
    /// Least time to last token.
    pub e2e: Span,
    /// Tokens of its prompt that an endless cache, shared by all instances, has when it arrives.
    pub cached_tokens: u32,
}

/// The floors of requests, which must be told in order of arrival.
#[derive(Debug)]
pub struct Floors {
    engine: Engine,
    gateway: Gateway,
    latency: Arc<dyn StepTime>,
    /// All contents so far, generated tokens included.
    known: RunTree<()>,
}

impl Floors {
    /// Those of the requests of a cluster of such engines.
    pub fn new(engine: Engine, gateway: Gateway, latency: Arc<dyn StepTime>) -> Floors {
        Floors { engine, gateway, latency, known: RunTree::default() }
    }

    /// The floor of the request that arrives next.
    pub fn next(&mut self, request: &Request) -> Floor {
        let content = &request.content;
        let (prompt, size) = (content.prompt_tokens(), self.engine.block_size);
        // The last token is always computed, so its block is never looked up.
        let cached = self.add(request).min((prompt - 1) / size);
        let cached_tokens = cached * size;
        let work = Work { engine: &self.engine, latency: &*self.latency };
        let Gateway { admission_latency, routing_latency } = self.gateway;
        let before = admission_latency + routing_latency + self.latency.ingress(prompt);
        // To read what is cached can take longer than to compute it, if that is little.
        let least = if self.latency.context_free() { cached } else { 0 };
        let unlimited = Engine { long_prefill_token_threshold: 0, ..self.engine };
        let together = Work { engine: &unlimited, ..work };
        let alone = |blocks: u32| {
            let (new, past) = (prompt - blocks * size, blocks * size);
            let alone = work.prefill(new, past);
            let shared = self.engine.cache_on_allocation.then(|| together.prefill(new, past));
            shared.map_or(alone, |shared| shared.min(alone))
        };
        let prefill = (least..cached).map(alone).fold(alone(cached), Span::min);
        // Steps that compute parts of a prompt follow each other through the stages of a pipeline.
        let prefill = prefill / u64::from(self.engine.stages);
        let ttft = before + prefill + self.latency.output(1);
        let steps = (request.output_tokens - 1).div_ceil(1 + self.engine.lookahead());
        let e2e = ttft + work.decode(prompt + 1, steps);
        Floor { ttft, e2e, cached_tokens }
    }

    /// Remembers the content of a request; returns how many of its blocks were known.
    fn add(&mut self, request: &Request) -> u32 {
        let content = &request.content;
        let size = self.engine.block_size;
        // The last generated token is never written to the KV cache.
        let blocks =
            content.blocks(size, (content.prompt_tokens() + request.output_tokens - 1) / size);
        let (mut parent, mut known) = (None, 0);
        let steps: Vec<Match> = self.known.walk(blocks).collect();
        for step in steps {
            let mut run = step.run;
            if !step.whole {
                run = self.known.split(run, step.blocks, |()| ());
            }
            (parent, known) = (Some(run), known + step.blocks);
        }
        if known < blocks.len() {
            self.known.insert(parent, blocks, known, ());
        }
        known
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use blis_core::{Content, RequestId, Segment, SloClass, StreamId, TenantId, Time};
    use blis_latency::Coefficients;

    const SIZE: u32 = 4;

    fn floors() -> Floors {
        let engine = Engine {
            total_kv_blocks: 100,
            block_size: SIZE,
            max_num_running_reqs: 8,
            max_num_scheduled_tokens: 10,
            long_prefill_token_threshold: 0,
            reserve_full_prompt: true,
            watermark_blocks: 0,
            async_scheduling: false,
            stages: 1,
            cache_on_allocation: false,
            prefill: crate::Prefill::Mixed,
            preemption: crate::Preemption::Recompute,
            tier: None,
            speculation: None,
        };
        let micros = Span::from_micros;
        let gateway = Gateway { admission_latency: micros(7), routing_latency: micros(5) };
        let latency = Coefficients::new([100.0, 1.0, 10.0], [1000.0, 2.0, 3.0]).expect("legal");
        Floors::new(engine, gateway, Arc::new(latency))
    }

    fn request(segments: &[(u64, u32)], output: u32, output_tokens: u32) -> Request {
        let segment = |&(stream, tokens): &(u64, u32)| Segment { stream: StreamId(stream), tokens };
        let output = StreamId(output.into());
        Request {
            id: RequestId(0),
            name: None,
            arrival: Time::ZERO,
            content: Content::new(segments.iter().map(segment), output),
            output_tokens,
            class: SloClass::Standard,
            tenant: TenantId(0),
            session: None,
            round: 0,
            attempt: 0,
            deadline: None,
            patience: None,
        }
    }

    #[test]
    fn a_floor_is_the_time_of_a_request_that_is_alone() {
        // 12 at the gateway, ingress 100 + 25, steps of 10, 10 and 5 tokens, 10 for the token.
        let floor = floors().next(&request(&[(1, 25)], 1, 3));
        assert_eq!(floor.ttft.as_micros(), 12 + 125 + 3 * 1000 + 2 * 25 + 10);
        assert_eq!((floor.e2e - floor.ttft).as_micros(), 2 * 1003);
        assert_eq!(floor.cached_tokens, 0);
    }

    #[test]
    fn whatever_was_there_before_need_not_be_computed_generated_tokens_included() {
        let mut floors = floors();
        floors.next(&request(&[(1, 9)], 1, 8));
        // 9 tokens and 7 that were generated: four blocks. The last token is always computed.
        assert_eq!(floors.next(&request(&[(1, 30)], 2, 1)).cached_tokens, 16);
        assert_eq!(floors.next(&request(&[(1, 16)], 3, 1)).cached_tokens, 12);
        assert_eq!(floors.next(&request(&[(1, 6), (9, 20)], 3, 1)).cached_tokens, 4);
        let alone = floors.next(&request(&[(1, 28)], 4, 1));
        assert_eq!(alone.cached_tokens, 24, "of the second");
        assert_eq!(alone.ttft.as_micros(), 12 + 128 + 1000 + 2 * 4 + 10);
    }
}
