//! What a gateway can foretell of latencies: the time to first token at each instance.
//!
//! Used by the policies that weigh work against time: `cost-benefit`, `predicted-latency`,
//! `slo-headroom`, the filters that compare instances by time, and the gates that foresee them. It
//! reads the router's own counts and a straight line through the step times, so it is live, cheap,
//! and blind to what a gateway cannot know: how long other requests will still generate, and so
//! when a place in a full batch or a block of a full memory becomes free. It must never see more
//! than a policy may.

use crate::spec::{Cluster, StepCost};
use crate::view::{ClusterView, InstanceView, Needs, PerClass};
use blis_core::{Param, RequestView, SloClass, Span, Values, math};

/// Foretells times from the steps of an engine.
#[derive(Clone, Copy, Debug)]
pub struct Predictor {
    step: StepCost,
    token_budget: f64,
    max_running: u32,
    block_size: f64,
}

impl Predictor {
    /// A predictor for the instances of `cluster`.
    pub fn new(cluster: &Cluster) -> Predictor {
        Predictor {
            step: cluster.step,
            token_budget: f64::from(cluster.token_budget),
            max_running: cluster.max_running,
            block_size: f64::from(cluster.block_size),
        }
    }

    /// Prompt tokens of `request` that must be computed where `hit_blocks` of its blocks are
    /// cached: at least the last one.
    pub fn uncached_tokens(&self, request: &RequestView<'_>, hit_blocks: f64) -> f64 {
        (f64::from(request.input_tokens) - hit_blocks * self.block_size).max(1.0)
    }

    /// How long the computation of `tokens` prompt tokens takes by itself, in ms.
    pub fn prefill_ms(&self, tokens: f64) -> f64 {
        self.step.prefill_token_us * tokens / 1e3
    }

    /// By how much a request of which `tokens` prompt tokens must be computed, and that generates
    /// `answer` tokens, delays everybody who runs beside it all the time, in ms.
    pub fn delay_ms(&self, tokens: f64, answer: f64) -> f64 {
        (self.step.prefill_token_us * tokens + self.step.decode_us * answer) / 1e3
    }

    /// How long `view` takes for the prompts it was sent and has not begun to answer, in ms.
    pub fn backlog_ms(&self, view: &InstanceView) -> f64 {
        self.work_ms(view, 0.0)
    }

    /// How long a prompt that is sent to `view` now waits for its first token, in ms, if `tokens`
    /// of it must be computed.
    pub fn ttft_ms(&self, view: &InstanceView, tokens: f64) -> f64 {
        self.work_ms(view, tokens)
    }

    /// The least such time over all instances, as far as `cached` tells.
    pub fn best_ttft_ms(
        &self,
        request: &RequestView<'_>,
        cluster: &ClusterView<'_>,
        cached: Cached,
    ) -> f64 {
        let at = |view| self.ttft_ms(view, self.left(request, view, cached));
        cluster.instances.iter().map(at).fold(f64::INFINITY, f64::min)
    }

    /// Tokens of the prompt that are left to compute at `view`, as far as `cached` tells.
    pub fn left(&self, request: &RequestView<'_>, view: &InstanceView, cached: Cached) -> f64 {
        let prompt = f64::from(request.input_tokens);
        match cached {
            Cached::HitRate => (prompt * (1.0 - view.cache_hit_rate)).max(1.0),
            Cached::Events => self.uncached_tokens(request, f64::from(view.cached_blocks)),
            Cached::Nothing => prompt,
        }
    }

    /// Time from one token to the next of a request that joins those at `view`, in ms, while no
    /// prompt is computed.
    pub fn tpot_ms(&self, view: &InstanceView) -> f64 {
        let batch = f64::from(view.load().saturating_add(1));
        (self.step.base_us + self.step.decode_us * batch) / 1e3
    }

    /// Steps that compute all prompt tokens sent there and `tokens` more, beside one token for each
    /// request of the batch.
    fn work_ms(&self, view: &InstanceView, tokens: f64) -> f64 {
        let decoding = f64::from(view.in_flight.min(self.max_running));
        let work = math::float(view.unstarted_tokens) + tokens;
        let steps = (work / (self.token_budget - decoding).max(1.0)).ceil();
        let of_a_step = self.step.base_us + self.step.decode_us * decoding;
        (steps * of_a_step + self.step.prefill_token_us * work) / 1e3
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

/// The time to first token that each class may take, in ms.
#[derive(Clone, Copy, Debug)]
pub struct Budgets(PerClass<Option<f64>>);

impl Budgets {
    /// The parameter of a class, which is named like it.
    pub const fn param(class: SloClass, help: &'static str) -> Param {
        Param::int_or_auto(class.name(), 1..=10_000_000, "ms").help(help)
    }

    /// The parameters of all classes.
    pub const PARAMS: [Param; 5] = [
        Budgets::param(SloClass::Critical, "TTFT budget of critical requests; auto is the target"),
        Budgets::param(SloClass::Standard, "TTFT budget of standard requests; auto is the target"),
        Budgets::param(
            SloClass::Sheddable,
            "TTFT budget of sheddable requests; auto is the target",
        ),
        Budgets::param(SloClass::Batch, "TTFT budget of batch requests; auto is the target"),
        Budgets::param(
            SloClass::Background,
            "TTFT budget of background requests; auto is the target",
        ),
    ];

    /// What [`Budgets::PARAMS`] say, or the targets of `cluster`.
    pub fn of(values: &Values, cluster: &Cluster) -> Budgets {
        Budgets(SloClass::ALL.map(|class| {
            let target = cluster.ttft_targets[class.index()].map(Span::as_millis_f64);
            values.int_or_auto(class.name()).map(math::float).or(target)
        }))
    }

    /// The budget of a class, in ms; `None` if it was promised nothing.
    pub fn ms(&self, class: SloClass) -> Option<f64> {
        self.0[class.index()]
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::view::examples::{NOTHING, cluster, instances, request};

    const STEP: StepCost = StepCost { base_us: 5_000.0, prefill_token_us: 10.0, decode_us: 100.0 };
    const CLUSTER: Cluster = Cluster { step: STEP, token_budget: 1_000, ..Cluster::SMALL };

    #[test]
    fn an_idle_instance_takes_a_step_for_each_budget_of_tokens_and_the_time_of_the_tokens() {
        let predictor = Predictor::new(&CLUSTER);
        let idle = instances(&[0])[0];
        let times = vec![
            predictor.backlog_ms(&idle),
            predictor.ttft_ms(&idle, 1_000.0),
            predictor.ttft_ms(&idle, 1_001.0),
        ];
        assert_eq!(times, [0.0, 15.0, 20.01]);
    }

    #[test]
    fn prompts_before_it_and_answers_beside_it_delay_a_first_token() {
        let predictor = Predictor::new(&CLUSTER);
        let mut view = instances(&[10])[0];
        view.unstarted_tokens = 1_500;
        // 990 tokens a step are left beside 10 requests that generate.
        let times = vec![
            predictor.backlog_ms(&view),
            predictor.ttft_ms(&view, 480.0),
            predictor.ttft_ms(&view, 500.0),
        ];
        assert_eq!(times, [2.0 * 6.0 + 15.0, 2.0 * 6.0 + 19.8, 3.0 * 6.0 + 20.0]);
    }

    #[test]
    fn a_prompt_that_is_cached_whole_still_has_a_token_to_compute() {
        let predictor = Predictor::new(&CLUSTER);
        let prompt = RequestView { input_tokens: 32, ..request(&NOTHING) };
        let tokens = |hits| predictor.uncached_tokens(&prompt, hits);
        assert_eq!(vec![tokens(0.0), tokens(1.5), tokens(2.0)], [32.0, 8.0, 1.0]);
    }

    #[test]
    fn a_budget_is_what_was_given_or_else_the_target_of_the_class() {
        const PARAMS: &[Param] = &Budgets::PARAMS;
        let mut ttft_targets = [None; 5];
        ttft_targets[SloClass::Critical.index()] = Some(Span::from_micros(300_000));
        ttft_targets[SloClass::Batch.index()] = Some(Span::from_micros(9_000_000));
        let cluster = Cluster { ttft_targets, ..CLUSTER };
        let values = Values::parse(PARAMS, [("batch", "700")]).expect("legal");
        let budgets = Budgets::of(&values, &cluster);
        let all = SloClass::ALL.map(|class| budgets.ms(class));
        assert_eq!(all, [Some(300.0), None, None, Some(700.0), None]);
    }

    #[test]
    fn what_is_taken_to_be_cached_need_not_be_computed() {
        let predictor = Predictor::new(&CLUSTER);
        let prompt = RequestView { input_tokens: 80, ..request(&NOTHING) };
        let idle = instances(&[0])[0];
        let warm = InstanceView { cache_hit_rate: 0.75, cached_blocks: 3, ..idle };
        let left = |cached| predictor.left(&prompt, &warm, cached);
        let found = vec![left(Cached::HitRate), left(Cached::Events), left(Cached::Nothing)];
        assert_eq!(found, [20.0, 32.0, 80.0]);
        let views = [InstanceView { unstarted_tokens: 5_000, ..idle }, warm];
        let best = predictor.best_ttft_ms(&prompt, &cluster(&views), Cached::HitRate);
        assert!((best - 5.2).abs() < 1e-9, "{best}");
    }

    #[test]
    fn tokens_come_as_fast_as_the_batch_allows_that_all_will_be_in() {
        let view = InstanceView { queue_depth: 3, running: 5, unseen: 1, ..instances(&[0])[0] };
        let found = Predictor::new(&CLUSTER).tpot_ms(&view);
        assert!((found - 6.0).abs() < 1e-9, "{found}");
    }
}
