//! `ttft-budget`: turns away whom no instance is predicted to serve in time.
//!
//! **Prefers** requests that can still have their first token within the time promised to their
//! class; the others would cost others their time and be late all the same.
//!
//! **Reads** the running requests (polled) and the unstarted prompts (live) of instances, what they
//! have cached (the share they found, polled; or KV events), the cost of steps, the request's
//! prompt length and its service class.
//!
//! **Parameters** `factor`: the prediction may be so many times the target. `cached`: what of the
//! prompt is taken to be cached: `hit-rate` (the share that the instance has found on average),
//! `events` (what KV events tell) or `nothing`. `target-critical`, `target-standard`,
//! `target-sheddable`, `target-batch` and `target-background` (ms): own targets; `auto` is what the
//! scenario promises the class. `fallback` (ms): the target of a class that was promised nothing.
//! And one per class, named like it: whether its requests may be rejected.
//!
//! **Origin** ours. The wait for a place in a full batch, and for memory, is not in the prediction:
//! combine it with a gate on queues or memory where those are what is short.

use crate::classes::{flag, flags};
use crate::predict::{Cached, Predictor};
use crate::prelude::*;

/// How `ttft-budget` introduces itself.
pub const SPEC: Spec<dyn Admission> = Spec {
    name: "ttft-budget",
    help: "Rejects requests that no instance is predicted to serve within their TTFT target",
    params: &[
        Param::log("factor", 0.01..=100.0, 1.0, "times the target")
            .help("Highest predicted TTFT, as a multiple of the target"),
        Param::choice("cached", Cached::WORDS)
            .help("How to estimate the cached part of the prompt"),
        target("target-critical", "TTFT target of critical requests; auto: the class's own")
            .only_if("critical", &["true"]),
        target("target-standard", "TTFT target of standard requests; auto: the class's own")
            .only_if("standard", &["true"]),
        target("target-sheddable", "TTFT target of sheddable requests; auto: the class's own")
            .only_if("sheddable", &["true"]),
        target("target-batch", "TTFT target of batch requests; auto: the class's own")
            .only_if("batch", &["true"]),
        target("target-background", "TTFT target of background requests; auto: the class's own")
            .only_if("background", &["true"]),
        Param::log("fallback", 1.0..=1e7, 2_000.0, "ms").help("TTFT target of classes without one"),
        flag(SloClass::Critical, false, "Whether critical requests may be rejected"),
        flag(SloClass::Standard, true, "Whether standard requests may be rejected"),
        flag(SloClass::Sheddable, true, "Whether sheddable requests may be rejected"),
        flag(SloClass::Batch, true, "Whether batch requests may be rejected"),
        flag(SloClass::Background, true, "Whether background requests may be rejected"),
    ],
    needs: |values| {
        let cached = Cached::from_word(values.choice("cached"));
        Needs { load: true, ..Needs::NONE }.or(cached.needs())
    },
    ..Spec::built_by(|values, cluster| Box::new(TtftBudget::new(values, cluster)))
};

const fn target(name: &'static str, help: &'static str) -> Param {
    Param::int_or_auto(name, 1..=10_000_000, "ms").help(help)
}

/// A gate that predicts.
#[derive(Clone, Copy, Debug)]
pub struct TtftBudget {
    predictor: Predictor,
    cached: Cached,
    /// The longest prediction of each class that is in time, in us.
    budgets: PerClass<f64>,
    sheds: PerClass<bool>,
}

impl TtftBudget {
    fn new(values: &Values, cluster: &Cluster) -> TtftBudget {
        let budget = |class: SloClass| {
            let own = values.int_or_auto(&format!("target-{}", class.name()));
            let promised = cluster.ttft_targets[class.index()].map(Span::as_micros_f64);
            let own = own.map(|ms| math::float(ms) * 1e3);
            let target = own.or(promised).unwrap_or(values.float("fallback") * 1e3);
            target * values.float("factor")
        };
        TtftBudget {
            predictor: Predictor::new(cluster),
            cached: Cached::from_word(values.choice("cached")),
            budgets: SloClass::ALL.map(budget),
            sheds: flags(values),
        }
    }
}

impl Admission for TtftBudget {
    fn admit(
        &mut self,
        request: &RequestView<'_>,
        cluster: &ClusterView<'_>,
        _: &mut Dice,
    ) -> Verdict {
        let class = request.class.index();
        if self.sheds[class]
            && 1e3 * self.predictor.best_ttft_ms(request, cluster, self.cached)
                > self.budgets[class]
        {
            return Verdict::Reject("ttft-budget");
        }
        Verdict::Admit
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::classes::values;
    use crate::spec::StepCost;
    use crate::view::InstanceView;
    use crate::view::examples::{NOTHING, cluster, dice, instances, request};

    /// A prompt of 100 tokens takes 2 ms on an idle instance, and 10 us more for each unstarted
    /// token.
    const CLUSTER: Cluster = Cluster {
        step: StepCost { base_us: 1_000.0, prefill_token_us: 10.0, decode_us: 0.0 },
        token_budget: 1_000_000,
        ttft_targets: [None, Some(Span::from_micros(5_000)), None, None, None],
        ..Cluster::SMALL
    };

    fn admits(given: &[(&'static str, &'static str)], class: SloClass, unstarted: &[u64]) -> bool {
        let mut gate = TtftBudget::new(&values(SPEC.params, given), &CLUSTER);
        let view = |&unstarted_tokens| InstanceView { unstarted_tokens, ..instances(&[0])[0] };
        let views: Vec<InstanceView> = unstarted.iter().map(view).collect();
        let request = RequestView { class, input_tokens: 100, ..request(&NOTHING) };
        gate.admit(&request, &cluster(&views), &mut dice(0)) == Verdict::Admit
    }

    #[test]
    fn a_request_is_let_in_if_one_instance_can_serve_it_in_time() {
        assert!(admits(&[], SloClass::Standard, &[1_000, 300]));
        assert!(!admits(&[], SloClass::Standard, &[1_000, 301]));
        assert!(admits(&[("factor", "2")], SloClass::Standard, &[800]));
        assert!(!admits(&[("factor", "2")], SloClass::Standard, &[801]));
    }

    #[test]
    fn an_own_target_goes_before_the_promise_and_the_fallback_behind_it() {
        assert!(admits(&[("target-standard", "6")], SloClass::Standard, &[400]));
        assert!(!admits(&[("target-standard", "6")], SloClass::Standard, &[401]));
        assert!(admits(&[("fallback", "3")], SloClass::Batch, &[100]));
        assert!(!admits(&[("fallback", "3")], SloClass::Batch, &[101]));
        assert!(admits(&[("fallback", "3")], SloClass::Standard, &[300]));
    }

    #[test]
    fn a_protected_class_is_let_in_however_late_it_will_be() {
        assert!(admits(&[], SloClass::Critical, &[1_000_000]));
        assert!(!admits(&[("critical", "true")], SloClass::Critical, &[1_000_000]));
    }

    #[test]
    fn what_is_likely_cached_costs_no_time_unless_nothing_is_taken_to_be() {
        let mut view = InstanceView { unstarted_tokens: 350, ..instances(&[0])[0] };
        view.cache_hit_rate = 0.5;
        let request = RequestView { input_tokens: 100, ..request(&NOTHING) };
        let verdict = |given| {
            let mut gate = TtftBudget::new(&values(SPEC.params, given), &CLUSTER);
            gate.admit(&request, &cluster(&[view]), &mut dice(0))
        };
        assert_eq!(verdict(&[]), Verdict::Admit);
        assert_eq!(verdict(&[("cached", "nothing")]), Verdict::Reject("ttft-budget"));
    }
}
