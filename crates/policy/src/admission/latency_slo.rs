//! `latency-slo`: sheds the classes that may be shed while no instance is predicted to meet their
//! latency targets.
//!
//! **Prefers** important classes. A request of another is turned away if at every instance its
//! predicted first token, or its predicted pace of tokens, is later than the target, and no
//! instance is idle or so empty that predictions cannot be trusted.
//!
//! **Reads** the running and waiting requests and the KV utilization (polled) and the unstarted
//! prompts (live) of instances, what they have cached (the share they found, polled; or KV events),
//! the cost of steps, and the answers as they pass: predictions of the first token are multiplied
//! by what observed ones were of their predictions lately. It remembers one number for each request
//! in flight.
//!
//! **Parameters** `ttft` (ms): the target of a class that was promised nothing. `tpot` (ms): the
//! target of the time from token to token; 0 is none. `cached`: what of the prompt is taken to be
//! cached, `hit-rate` (the share that the instance has found on average), `events` (what KV events
//! tell) or `nothing`. `cold`: below this KV utilization an instance takes anybody. `learning`: the
//! weight of each answer in the correction; 0 does not learn. And one per class, named like it:
//! whether its requests may be rejected.
//!
//! **Origin** llm-d's `latency-slo-admitter`, whose predictions a model trained on the traffic
//! makes; here they come from the line of step costs and one learned factor. There, requests of
//! negative priority may be shed; here, those of the classes that say so.

use crate::classes::{flag, flags};
use crate::predict::{Cached, Predictor};
use crate::prelude::*;
use std::collections::BTreeMap;

/// How `latency-slo` introduces itself.
pub const SPEC: Spec<dyn Admission> = Spec {
    name: "latency-slo",
    help: "Sheds low-priority classes while no instance is predicted to meet their targets",
    params: &[
        Param::log("ttft", 1.0..=1e7, 2_000.0, "ms").help("TTFT target of classes without one"),
        Param::float("tpot", 0.0..=1e6, 0.0, "ms").help("ITL target; 0: none"),
        Param::choice("cached", Cached::WORDS)
            .help("How to estimate the cached part of the prompt"),
        Param::float("cold", 0.0..=1.0, 0.02, "of all blocks")
            .help("Admit all while an instance's KV utilization is below this"),
        Param::float("learning", 0.0..=1.0, 0.05, "")
            .help("Learning rate of the correction of predictions"),
        flag(SloClass::Critical, false, "Whether critical requests may be rejected"),
        flag(SloClass::Standard, false, "Whether standard requests may be rejected"),
        flag(SloClass::Sheddable, true, "Whether sheddable requests may be rejected"),
        flag(SloClass::Batch, true, "Whether batch requests may be rejected"),
        flag(SloClass::Background, true, "Whether background requests may be rejected"),
    ],
    needs: |values| {
        let answers = values.float("learning") > 0.0;
        let cached = Cached::from_word(values.choice("cached"));
        Needs { load: true, kv: true, answers, ..Needs::NONE }.or(cached.needs())
    },
    ..Spec::built_by(|values, cluster| Box::new(LatencySlo::new(values, cluster)))
};

/// A gate that predicts, and learns how well.
#[derive(Clone, Debug)]
pub struct LatencySlo {
    predictor: Predictor,
    /// In us, by class.
    ttft: PerClass<f64>,
    tpot: Option<f64>,
    cached: Cached,
    cold: f64,
    learning: f64,
    sheds: PerClass<bool>,
    /// The logarithm of what observed times are of predicted ones.
    correction: f64,
    /// The predictions, in us and not corrected, of the requests in flight.
    predicted: BTreeMap<RequestId, f64>,
}

impl LatencySlo {
    fn new(values: &Values, cluster: &Cluster) -> LatencySlo {
        let target = |class: SloClass| {
            let promised = cluster.ttft_targets[class.index()].map(Span::as_micros_f64);
            promised.unwrap_or(values.float("ttft") * 1e3)
        };
        let tpot = values.float("tpot");
        LatencySlo {
            predictor: Predictor::new(cluster),
            ttft: SloClass::ALL.map(target),
            tpot: (tpot > 0.0).then_some(tpot * 1e3),
            cached: Cached::from_word(values.choice("cached")),
            cold: values.float("cold"),
            learning: values.float("learning"),
            sheds: flags(values),
            correction: 0.0,
            predicted: BTreeMap::new(),
        }
    }

    /// The prediction of the first token, not corrected, in us.
    fn ttft_us(&self, request: &RequestView<'_>, view: &InstanceView) -> f64 {
        1e3 * self.predictor.ttft_ms(view, self.predictor.left(request, view, self.cached))
    }

    /// Whether `request` may go to the instance of `view`.
    fn acceptable(&self, request: &RequestView<'_>, view: &InstanceView) -> bool {
        if view.running == 0 || view.kv_utilization < self.cold {
            return true;
        }
        let ttft = self.ttft_us(request, view) * math::exp(self.correction);
        let in_time = ttft <= self.ttft[request.class.index()];
        in_time && self.tpot.is_none_or(|target| 1e3 * self.predictor.tpot_ms(view) <= target)
    }
}

impl Admission for LatencySlo {
    fn admit(
        &mut self,
        request: &RequestView<'_>,
        cluster: &ClusterView<'_>,
        _: &mut Dice,
    ) -> Verdict {
        let mut views = cluster.instances.iter();
        if self.sheds[request.class.index()] && !views.any(|view| self.acceptable(request, view)) {
            return Verdict::Reject("latency-slo");
        }
        Verdict::Admit
    }

    fn admit_at(&mut self, request: &RequestView<'_>, chosen: &InstanceView, _: Time) -> Verdict {
        if self.learning > 0.0 {
            self.predicted.insert(request.id, self.ttft_us(request, chosen));
        }
        Verdict::Admit
    }

    fn withdrawn(&mut self, request: &RequestView<'_>, _: Time) {
        self.predicted.remove(&request.id);
    }

    fn given_up(&mut self, request: RequestId) {
        self.predicted.remove(&request);
    }

    fn answered(&mut self, answer: &Answer) {
        let Some(predicted) = self.predicted.remove(&answer.request) else { return };
        let observed = answer.ttft.as_micros_f64();
        if predicted > 0.0 && observed > 0.0 {
            self.correction += self.learning * (math::ln(observed / predicted) - self.correction);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::classes::values;
    use crate::spec::StepCost;
    use crate::view::examples::{NOTHING, cluster, dice, instances, request};
    use blis_core::InstanceId;

    /// A prompt of 100 tokens takes 2 ms, and 10 us more for each unstarted token.
    const CLUSTER: Cluster = Cluster {
        step: StepCost { base_us: 1_000.0, prefill_token_us: 10.0, decode_us: 0.0 },
        token_budget: 1_000_000,
        ttft_targets: [None, None, Some(Span::from_micros(5_000)), None, None],
        ..Cluster::SMALL
    };

    fn gate(given: &[(&'static str, &'static str)]) -> LatencySlo {
        LatencySlo::new(&values(SPEC.params, given), &CLUSTER)
    }

    fn asks(class: SloClass) -> RequestView<'static> {
        RequestView { class, input_tokens: 100, ..request(&NOTHING) }
    }

    fn busy(unstarted_tokens: u64) -> InstanceView {
        InstanceView { unstarted_tokens, running: 1, kv_utilization: 0.5, ..instances(&[0])[0] }
    }

    fn admits(gate: &mut LatencySlo, class: SloClass, views: &[InstanceView]) -> bool {
        gate.admit(&asks(class), &cluster(views), &mut dice(0)) == Verdict::Admit
    }

    #[test]
    fn sheddable_requests_are_turned_away_when_no_instance_can_meet_their_target() {
        let mut gate = gate(&[]);
        assert!(admits(&mut gate, SloClass::Sheddable, &[busy(900), busy(300)]));
        assert!(!admits(&mut gate, SloClass::Sheddable, &[busy(900), busy(301)]));
        assert!(admits(&mut gate, SloClass::Standard, &[busy(900)]));
        assert!(admits(&mut gate, SloClass::Batch, &[busy(900)]), "promised nothing: 2 s");
    }

    #[test]
    fn an_idle_and_a_cold_instance_take_anybody() {
        let idle = InstanceView { running: 0, ..busy(900) };
        let cold = InstanceView { kv_utilization: 0.019, ..busy(900) };
        assert!(admits(&mut gate(&[]), SloClass::Sheddable, &[idle]));
        assert!(admits(&mut gate(&[]), SloClass::Sheddable, &[busy(900), cold]));
        assert!(!admits(&mut gate(&[("cold", "0")]), SloClass::Sheddable, &[cold]));
    }

    #[test]
    fn the_pace_of_tokens_counts_if_it_has_a_target() {
        assert!(admits(&mut gate(&[("tpot", "1")]), SloClass::Sheddable, &[busy(0)]));
        assert!(!admits(&mut gate(&[("tpot", "0.9")]), SloClass::Sheddable, &[busy(0)]));
    }

    #[test]
    fn predictions_follow_what_is_observed_and_nothing_is_kept_of_what_has_ended() {
        let mut gate = gate(&[("learning", "0.5")]);
        assert!(admits(&mut gate, SloClass::Sheddable, &[busy(0)]));
        let request = asks(SloClass::Sheddable);
        let answer = Answer {
            request: request.id,
            class: request.class,
            instance: InstanceId(0),
            input_tokens: 100,
            cached_tokens: 0,
            ttft: Span::from_micros(25_000),
            e2e: Span::from_micros(90_000),
            now: Time::from_micros(90_000),
        };
        gate.admit_at(&request, &busy(0), Time::ZERO);
        gate.answered(&answer);
        assert!(!admits(&mut gate, SloClass::Sheddable, &[busy(0)]), "2.5 ms times the root of 10");
        gate.admit_at(&request, &busy(0), Time::ZERO);
        gate.withdrawn(&request, Time::ZERO);
        assert!(gate.predicted.is_empty());
    }
}
