//! `prefix-affinity-filter`: warm instances only, unless they have become too slow.
//!
//! **Prefers** instances where at least a share of the prompt is cached: the others are left out.
//! All are kept if none is warm, if the best warm one would keep the request waiting for longer
//! than the best cold one by more than a bound, and now and then to make other instances warm.
//!
//! **Reads** the router's own counts (live): `unstarted_tokens`, `in_flight`; with `precise`
//! knowledge `cached_blocks` and `cached_cpu_blocks` (as late as KV events are).
//!
//! **Parameters** `threshold`: the least cached share of the prompt that makes an instance warm.
//! `exploration`: the share of requests that are not held to it. `max-penalty` (ms): how much later
//! the first token may be predicted at the best warm instance than at the best cold one; 0 always
//! sticks. `ttft`: `throughput` predicts by the tokens under way alone, at `peak-prefill` tokens a
//! second (`auto`: what the instances reach); `predicted` counts the request's own prefill as well,
//! so the penalty is net of what the cache saves. `knowledge`: whether hits are guessed from what
//! was sent or read from KV events. `cpu-weight` (blocks): what a block in the CPU tier is worth if
//! they are read.
//!
//! **Origin** llm-d's `prefix-cache-affinity-filter` with its defaults (llm-d-router ebab687 of
//! August 2026), but for the throughput, which its guides ask to be measured.

use crate::predict::Predictor;
use crate::prelude::*;
use crate::routing::knowledge::{self, Knowledge};

/// How `prefix-affinity-filter` introduces itself.
pub const SPEC: Spec<dyn Filter> = Spec {
    name: "prefix-affinity-filter",
    help: "Drops instances that hold little of the prompt, unless the others are too slow",
    params: &[
        Param::float("threshold", 0.0..=1.0, 0.8, "")
            .help("Cached share of the prompt from which an instance is warm"),
        Param::float("exploration", 0.0..=1.0, 0.0, "")
            .help("Share of requests that may go to cold instances anyway"),
        Param::float("max-penalty", 0.0..=1e7, 18_000.0, "ms")
            .help("Largest extra TTFT accepted for a warm instance; 0: any"),
        Param::choice("ttft", &["throughput", "predicted"])
            .help("Predict TTFT from the tokens under way, or with the request's own prefill"),
        Param::int_or_auto("peak-prefill", 1..=1_000_000_000, "tokens/s")
            .help("Prefill throughput of an instance; auto: that of its steps")
            .only_if("ttft", &["throughput"]),
        knowledge::PARAM,
        knowledge::CPU_WEIGHT,
    ],
    needs: knowledge::needs,
    ..Spec::built_by(|values, cluster| Box::new(PrefixAffinityFilter::new(values, cluster)))
};

/// A least share of cached blocks, within a bound on what it costs.
#[derive(Clone, Debug)]
pub struct PrefixAffinityFilter {
    threshold: f64,
    exploration: f64,
    max_penalty_ms: f64,
    /// What a token under way costs, in ms; `None`: what the predictor says.
    token_ms: Option<f64>,
    knowledge: Knowledge,
    predictor: Predictor,
    explored: u64,
    broken: u64,
}

impl PrefixAffinityFilter {
    fn new(values: &Values, cluster: &Cluster) -> PrefixAffinityFilter {
        let measured = |per_sec| 1e3 / math::float(per_sec);
        let token_ms = || {
            let given = values.int_or_auto("peak-prefill").map(measured);
            given.unwrap_or_else(|| Predictor::new(cluster).prefill_ms(1.0))
        };
        PrefixAffinityFilter {
            threshold: values.float("threshold"),
            exploration: values.float("exploration"),
            max_penalty_ms: values.float("max-penalty"),
            token_ms: (values.choice("ttft") == "throughput").then(token_ms),
            knowledge: Knowledge::of(values, cluster),
            predictor: Predictor::new(cluster),
            explored: 0,
            broken: 0,
        }
    }
}

impl Filter for PrefixAffinityFilter {
    fn keep(
        &mut self,
        request: &RequestView<'_>,
        cluster: &ClusterView<'_>,
        dice: &mut Dice,
        kept: &mut [bool],
    ) {
        self.knowledge.look(request, cluster);
        let mut soonest = [f64::INFINITY; 2];
        for (kept, view) in kept.iter_mut().zip(cluster.instances) {
            let worth = self.knowledge.worth(view);
            // A prompt without a full block has a share of 0, and nobody is warm for it.
            *kept = worth > 0.0 && self.knowledge.share(request, view) >= self.threshold;
            let ttft_ms = if let Some(token_ms) = self.token_ms {
                math::float(view.unstarted_tokens) * token_ms
            } else {
                let tokens = self.predictor.uncached_tokens(request, worth);
                self.predictor.ttft_ms(view, tokens)
            };
            let of_its_kind = &mut soonest[usize::from(*kept)];
            *of_its_kind = of_its_kind.min(ttft_ms);
        }
        let [cold, warm] = soonest;
        // Without both kinds there is nothing to decide, and nothing to draw dice for.
        if cold.is_infinite() || warm.is_infinite() {
            return;
        }
        if self.max_penalty_ms > 0.0 && warm - cold > self.max_penalty_ms {
            self.broken += 1;
            kept.fill(true);
        } else if self.exploration > 0.0 && dice.unit() < self.exploration {
            self.explored += 1;
            kept.fill(true);
        }
    }

    fn sent(&mut self, request: &RequestView<'_>, instance: InstanceId, _: Time) {
        self.knowledge.sent(request, instance);
    }

    fn firings(&self, firings: &mut Firings) {
        firings.add(SPEC.name, "broken", self.broken);
        firings.add(SPEC.name, "explored", self.explored);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::spec::StepCost;
    use crate::view::InstanceView;
    use crate::view::examples::{cluster, dice, instances, prompt, request};

    const CLUSTER: Cluster = Cluster {
        step: StepCost { base_us: 0.0, prefill_token_us: 1_000.0, decode_us: 0.0 },
        ..Cluster::SMALL
    };

    fn filter(given: &[(&'static str, &'static str)]) -> PrefixAffinityFilter {
        let given = given.iter().copied().chain([("knowledge", "precise")]);
        PrefixAffinityFilter::new(&Values::parse(SPEC.params, given).expect("legal"), &CLUSTER)
    }

    /// A prompt of 4 blocks, of which instances have so many.
    fn views(cached: [u32; 3]) -> Vec<InstanceView> {
        let mut views = instances(&[0, 0, 0]);
        for (view, cached) in views.iter_mut().zip(cached) {
            view.cached_blocks = cached;
        }
        views
    }

    fn kept(filter: &mut PrefixAffinityFilter, views: &[InstanceView], key: u64) -> [bool; 3] {
        let mut kept = [true; 3];
        let asked = prompt(&[1, 2, 3, 4]);
        filter.keep(&request(&asked), &cluster(views), &mut dice(key), &mut kept);
        kept
    }

    #[test]
    fn instances_below_the_threshold_are_left_out_and_none_is_kept_if_all_are() {
        let mut filter = filter(&[("threshold", "0.75")]);
        assert_eq!(kept(&mut filter, &views([3, 2, 4]), 0), [true, false, true]);
        assert_eq!(kept(&mut filter, &views([0, 2, 1]), 0), [false; 3], "passed over then");
    }

    #[test]
    fn stickiness_is_broken_when_it_costs_more_than_the_bound() {
        let mut filter = filter(&[("max-penalty", "100"), ("ttft", "predicted")]);
        // 1 ms of work behind others, against the whole prompt of 64 ms at once.
        let mut busy = views([4, 0, 0]);
        busy[0].unstarted_tokens = 163;
        assert_eq!(kept(&mut filter, &busy, 0), [true, false, false], "100 ms later");
        busy[0].unstarted_tokens = 164;
        assert_eq!(kept(&mut filter, &busy, 0), [true; 3], "101 ms later");
        let mut firings = Firings::default();
        filter.firings(&mut firings);
        let told = |mechanism: &str, n| (format!("prefix-affinity-filter.{mechanism}"), n);
        assert_eq!(firings.into_list(), [told("broken", 1), told("explored", 0)]);
    }

    #[test]
    fn by_throughput_only_the_tokens_under_way_count() {
        // 1 ms a token by the steps of the cluster, 2 ms as measured.
        for (given, most) in [(vec![], 150), (vec![("peak-prefill", "500")], 100)] {
            let mut filter = filter(&[given, vec![("max-penalty", "100")]].concat());
            let mut busy = views([4, 0, 0]);
            (busy[0].unstarted_tokens, busy[1].unstarted_tokens, busy[2].unstarted_tokens) =
                (most, 50, 90);
            assert_eq!(kept(&mut filter, &busy, 0), [true, false, false], "100 ms later");
            busy[0].unstarted_tokens += 1;
            assert_eq!(kept(&mut filter, &busy, 0), [true; 3], "more than 100 ms later");
        }
    }

    #[test]
    fn without_a_bound_nothing_breaks_stickiness() {
        let mut filter = filter(&[("max-penalty", "0")]);
        let mut busy = views([4, 0, 0]);
        busy[0].unstarted_tokens = 1_000_000;
        assert_eq!(kept(&mut filter, &busy, 0), [true, false, false]);
    }

    #[test]
    fn a_share_of_requests_is_let_go_by_their_own_dice() {
        let mut filter = filter(&[("exploration", "0.2")]);
        let free = (0..1_000).filter(|key| kept(&mut filter, &views([4, 0, 0]), *key)[1]).count();
        assert!((160..240).contains(&free), "{free}");
    }
}
