//! `probabilistic`: sheds the classes that may be shed the more often, the more saturated the
//! cluster is.
//!
//! **Prefers** important classes, without a cliff: a request of another is turned away with
//! probability min(k * saturation^power, 1). Saturation is the mean over instances of the larger of
//! two shares, each of its threshold: waiting requests and KV utilization. With the defaults, 2 %
//! are turned away at a saturation of 0.15, and all from 0.32 on.
//!
//! **Reads** the requests waiting at each instance and its KV utilization (polled), and the
//! request's service class.
//!
//! **Parameters** `queue-threshold` (requests) and `kv-threshold`: where an instance is saturated.
//! `power`: how steep the ramp is. `k`: where it reaches 1, at a saturation of (1/k)^(1/power). And
//! one per class, named like it: whether its requests may be rejected.
//!
//! **Origin** llm-d's `probabilistic-admitter`, with its defaults. There, requests of negative
//! priority may be shed; here, those of the classes that say so.

use super::flow_control::fullness;
use crate::classes::{flag, flags};
use crate::prelude::*;

/// How `probabilistic` introduces itself.
pub const SPEC: Spec<dyn Admission> = Spec {
    name: "probabilistic",
    help: "Sheds low-priority classes with a probability that grows with saturation",
    params: &[
        Param::log("queue-threshold", 0.1..=100_000.0, 5.0, "requests")
            .help("Waiting requests at which an instance is saturated"),
        Param::float("kv-threshold", 0.01..=1.0, 0.8, "of all blocks")
            .help("KV utilization at which an instance is saturated"),
        Param::log("power", 0.1..=50.0, 5.0, "").help("Exponent of the ramp"),
        Param::log("k", 0.001..=1e9, 300.0, "").help("Factor of the ramp"),
        flag(SloClass::Critical, false, "Whether critical requests may be rejected"),
        flag(SloClass::Standard, false, "Whether standard requests may be rejected"),
        flag(SloClass::Sheddable, true, "Whether sheddable requests may be rejected"),
        flag(SloClass::Batch, true, "Whether batch requests may be rejected"),
        flag(SloClass::Background, true, "Whether background requests may be rejected"),
    ],
    needs: |_| Needs { load: true, kv: true, ..Needs::NONE },
    ..Spec::built_by(|values, _| Box::new(Probabilistic::new(values)))
};

/// A gate that closes gradually.
#[derive(Clone, Copy, Debug)]
pub struct Probabilistic {
    queue_threshold: f64,
    kv_threshold: f64,
    power: f64,
    k: f64,
    sheds: PerClass<bool>,
}

impl Probabilistic {
    fn new(values: &Values) -> Probabilistic {
        Probabilistic {
            queue_threshold: values.float("queue-threshold"),
            kv_threshold: values.float("kv-threshold"),
            power: values.float("power"),
            k: values.float("k"),
            sheds: flags(values),
        }
    }

    /// The probability that a request that may be rejected is.
    fn probability(&self, cluster: &ClusterView<'_>) -> f64 {
        let saturation =
            cluster.mean(|view| fullness(view, self.queue_threshold, self.kv_threshold));
        (self.k * math::pow(saturation, self.power)).min(1.0)
    }
}

impl Admission for Probabilistic {
    fn admit(
        &mut self,
        request: &RequestView<'_>,
        cluster: &ClusterView<'_>,
        dice: &mut Dice,
    ) -> Verdict {
        if self.sheds[request.class.index()] && dice.unit() < self.probability(cluster) {
            return Verdict::Reject("probabilistic");
        }
        Verdict::Admit
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::classes::values;
    use crate::view::examples::{NOTHING, cluster, dice, instances, request};

    fn instance(queue_depth: u32, kv_utilization: f64) -> InstanceView {
        InstanceView { queue_depth, kv_utilization, ..instances(&[0])[0] }
    }

    fn probability(given: &[(&'static str, &'static str)], views: &[InstanceView]) -> f64 {
        Probabilistic::new(&values(SPEC.params, given)).probability(&cluster(views))
    }

    #[test]
    fn the_ramp_is_that_of_llm_d() {
        for (saturation, expected) in
            [(0.0, 0.0), (0.15, 0.022_781), (0.2, 0.096), (0.3, 0.729), (0.33, 1.0), (1.0, 1.0)]
        {
            let found = probability(&[], &[instance(0, saturation * 0.8)]);
            assert!((found - expected).abs() < 1e-6, "{found} at {saturation}");
        }
    }

    #[test]
    fn the_worse_of_queue_and_memory_counts_and_instances_are_averaged() {
        let linear = [("power", "1"), ("k", "1")];
        let found = probability(&linear, &[instance(2, 0.2), instance(0, 0.16)]);
        assert!((found - 0.3).abs() < 1e-12, "{found}: the mean of 0.4 and 0.2");
    }

    #[test]
    fn sheddable_requests_are_turned_away_as_often_as_the_ramp_says_and_standard_ones_never() {
        let mut gate = Probabilistic::new(&Values::defaults(SPEC.params));
        let views = [instance(0, 0.3 * 0.8)];
        let mut shed = |class| {
            let request = RequestView { class, ..request(&NOTHING) };
            let mut verdict = |key| gate.admit(&request, &cluster(&views), &mut dice(key));
            (0..1_000).filter(|&key| verdict(key) != Verdict::Admit).count()
        };
        assert_eq!(shed(SloClass::Standard), 0);
        let many = shed(SloClass::Sheddable);
        assert!((680..780).contains(&many), "{many} of 1000 instead of 729");
    }
}
