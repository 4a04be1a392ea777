//! What a gateway can predict of latencies, from the line of step costs and what it knows of an
//! instance.
//!
//! Nobody at a gateway knows how long answers get, so neither the wait for a place in a full batch
//! nor the wait for memory is in here: what is predicted is the time of the work that is known.

use crate::spec::{Cluster, StepCost};
use crate::view::{ClusterView, InstanceView, Needs};
use blis_core::{RequestView, math};

/// Predicts latencies at instances of one cluster.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Predictor {
    step: StepCost,
    token_budget: f64,
    block_size: f64,
}

impl Predictor {
    /// For the instances of `cluster`.
    pub fn new(cluster: &Cluster) -> Predictor {
        Predictor {
            step: cluster.step,
            token_budget: f64::from(cluster.token_budget.max(1)),
            block_size: f64::from(cluster.block_size),
        }
    }

    /// Microseconds to the first token of a request at `instance` that has `own_tokens` of its
    /// prompt to compute: half a step that is under way, and then as many steps as the prompts that
    /// were sent there before and its own fill, each with the tokens of all who run there.
    pub fn ttft_us(&self, own_tokens: f64, instance: &InstanceView) -> f64 {
        let work = math::float(instance.unstarted_tokens) + own_tokens.max(1.0);
        let steps = (work / self.token_budget).ceil();
        let under_way = if instance.running > 0 { 0.5 } else { 0.0 };
        let step = self.step.base_us + self.step.decode_us * f64::from(instance.running);
        (steps + under_way) * step + work * self.step.prefill_token_us
    }

    /// The least such prediction over all instances.
    pub fn best_ttft_us(
        &self,
        request: &RequestView<'_>,
        cluster: &ClusterView<'_>,
        cached: Cached,
    ) -> f64 {
        let at = |view| self.ttft_us(self.left(request, view, cached), view);
        cluster.instances.iter().map(at).fold(f64::INFINITY, f64::min)
    }

    /// Tokens of the prompt that are left to compute, as far as `cached` tells, at `instance`.
    pub fn left(&self, request: &RequestView<'_>, instance: &InstanceView, cached: Cached) -> f64 {
        let prompt = f64::from(request.input_tokens);
        match cached {
            Cached::HitRate => prompt * (1.0 - instance.cache_hit_rate),
            Cached::Events => prompt - f64::from(instance.cached_blocks) * self.block_size,
            Cached::Nothing => prompt,
        }
    }

    /// Microseconds from one token to the next of a request that joins those at `instance`, while
    /// no prompt is computed.
    pub fn tpot_us(&self, instance: &InstanceView) -> f64 {
        let batch = f64::from(instance.load().saturating_add(1));
        self.step.base_us + self.step.decode_us * batch
    }
}

/// How much of a prompt is taken to be cached.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cached {
    /// The share that the instance has found on average (needs `hit_rate`).
    HitRate,
    /// What KV events tell (needs `events`).
    Events,
    /// Nothing.
    Nothing,
}

impl Cached {
    /// The words that spell them, for parameters.
    pub const WORDS: &'static [&'static str] = &["hit-rate", "events", "nothing"];

    /// What must be declared for it.
    pub fn needs(self) -> Needs {
        let (hit_rate, events) = (self == Cached::HitRate, self == Cached::Events);
        Needs { hit_rate, events, ..Needs::NONE }
    }

    /// What `word`, one of `WORDS`, spells.
    pub fn from_word(word: &str) -> Cached {
        match word {
            "hit-rate" => Cached::HitRate,
            "events" => Cached::Events,
            _ => Cached::Nothing,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::view::examples::{NOTHING, cluster, instances, request};

    const PREDICTOR: Predictor = Predictor {
        step: StepCost { base_us: 1_000.0, prefill_token_us: 10.0, decode_us: 5.0 },
        token_budget: 100.0,
        block_size: 16.0,
    };

    fn busy(unstarted_tokens: u64, running: u32) -> InstanceView {
        InstanceView { unstarted_tokens, running, ..instances(&[0])[0] }
    }

    fn assert_near(found: f64, expected: f64) {
        assert!((found - expected).abs() < 1e-9, "{found} instead of {expected}");
    }

    #[test]
    fn the_first_token_comes_after_the_prompts_sent_before_and_its_own() {
        assert_near(PREDICTOR.ttft_us(50.0, &busy(0, 0)), 1_000.0 + 500.0);
        assert_near(PREDICTOR.ttft_us(50.0, &busy(250, 0)), 3.0 * 1_000.0 + 3_000.0);
        assert_near(PREDICTOR.ttft_us(50.0, &busy(0, 8)), 1.5 * 1_040.0 + 500.0);
    }

    #[test]
    fn what_is_taken_to_be_cached_need_not_be_computed() {
        let prompt = RequestView { input_tokens: 80, ..request(&NOTHING) };
        let warm = InstanceView { cache_hit_rate: 0.75, ..busy(0, 0) };
        let warm = InstanceView { cached_blocks: 3, ..warm };
        for (cached, left) in
            [(Cached::HitRate, 20.0), (Cached::Events, 32.0), (Cached::Nothing, 80.0)]
        {
            assert_near(PREDICTOR.left(&prompt, &warm, cached), left);
        }
        let views = [busy(500, 0), warm];
        let best = PREDICTOR.best_ttft_us(&prompt, &cluster(&views), Cached::HitRate);
        assert_near(best, 1_000.0 + 200.0);
    }

    #[test]
    fn tokens_come_as_fast_as_the_batch_allows_that_all_will_be_in() {
        let view = InstanceView { queue_depth: 3, unseen: 1, ..busy(0, 5) };
        assert_near(PREDICTOR.tpot_us(&view), 1_000.0 + 50.0);
    }
}
