//! `slo-gated`: sheds the classes that may be shed while queues are long.
//!
//! **Prefers** important classes: while more requests wait than the threshold, requests of the
//! others are turned away, each with the probability of its class.
//!
//! **Reads** the requests waiting at each instance (polled), and the request's service class.
//!
//! **Parameters** `threshold` (requests): queues longer than this are long. `statistic`: whether
//! the longest queue counts (`max`) or their mean (`mean`). And one per class, named like it: the
//! share of its requests that is turned away while queues are long.
//!
//! **Origin** ours, after llm-d's shedding of sheddable requests at saturation, by queues alone.

use crate::classes::{Shares, share};
use crate::prelude::*;

/// How `slo-gated` introduces itself.
pub const SPEC: Spec<dyn Admission> = Spec {
    name: "slo-gated",
    help: "Sheds low-priority classes while queues exceed a threshold",
    params: &[
        Param::float("threshold", 0.0..=100_000.0, 5.0, "requests")
            .help("Queue length above which requests are rejected"),
        Param::choice("statistic", &["max", "mean"]).help("Compare the longest queue, or the mean"),
        share(SloClass::Critical, 0.0, "Share of critical requests rejected"),
        share(SloClass::Standard, 0.0, "Share of standard requests rejected"),
        share(SloClass::Sheddable, 1.0, "Share of sheddable requests rejected"),
        share(SloClass::Batch, 1.0, "Share of batch requests rejected"),
        share(SloClass::Background, 1.0, "Share of background requests rejected"),
    ],
    needs: |_| Needs { load: true, ..Needs::NONE },
    ..Spec::built_by(|values, _| Box::new(SloGated::new(values)))
};

/// A gate that closes for some classes.
#[derive(Clone, Copy, Debug)]
pub struct SloGated {
    threshold: f64,
    mean: bool,
    shares: Shares,
}

impl SloGated {
    fn new(values: &Values) -> SloGated {
        SloGated {
            threshold: values.float("threshold"),
            mean: values.choice("statistic") == "mean",
            shares: Shares::new(values),
        }
    }

    fn queue(&self, cluster: &ClusterView<'_>) -> f64 {
        let queue = |view: &InstanceView| f64::from(view.queue_depth);
        if self.mean {
            return cluster.mean(queue);
        }
        cluster.instances.iter().map(queue).fold(0.0, f64::max)
    }
}

impl Admission for SloGated {
    fn admit(
        &mut self,
        request: &RequestView<'_>,
        cluster: &ClusterView<'_>,
        dice: &mut Dice,
    ) -> Verdict {
        if self.queue(cluster) > self.threshold && self.shares.hit(request.class, dice) {
            return Verdict::Reject("slo-gated");
        }
        Verdict::Admit
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::classes::values;
    use crate::view::examples::{NOTHING, cluster, dice, instances, request};

    /// The classes that are turned away at queues of these lengths.
    fn shed(given: &[(&'static str, &'static str)], queues: &[u32]) -> Vec<SloClass> {
        let mut gate = SloGated::new(&values(SPEC.params, given));
        let views = instances(queues);
        let mut refused = |class: &SloClass| {
            let request = RequestView { class: *class, ..request(&NOTHING) };
            gate.admit(&request, &cluster(&views), &mut dice(0)) == Verdict::Reject("slo-gated")
        };
        SloClass::ALL.into_iter().filter(|class| refused(class)).collect()
    }

    #[test]
    fn only_the_classes_named_are_shed_and_only_above_the_threshold() {
        let low = [SloClass::Sheddable, SloClass::Batch, SloClass::Background];
        assert_eq!(shed(&[], &[0, 5]), []);
        assert_eq!(shed(&[], &[0, 6]), low);
        let batch = [("threshold", "7"), ("sheddable", "0"), ("background", "0")];
        assert_eq!(shed(&batch, &[7]), []);
        assert_eq!(shed(&batch, &[8]), [SloClass::Batch]);
    }

    #[test]
    fn the_longest_queue_or_the_mean_decides() {
        let critical = [("critical", "1"), ("statistic", "mean")];
        assert!(shed(&critical, &[10, 0]).is_empty(), "a mean of 5 is not above 5");
        assert_eq!(shed(&critical, &[11, 0])[0], SloClass::Critical);
        assert_eq!(shed(&[("critical", "1")], &[11, 0])[0], SloClass::Critical);
    }

    #[test]
    fn a_share_is_turned_away_by_chance() {
        let mut gate = SloGated::new(&values(SPEC.params, &[("standard", "0.5")]));
        let views = instances(&[9]);
        let mut verdict = |key| gate.admit(&request(&NOTHING), &cluster(&views), &mut dice(key));
        let admitted = (0..400).filter(|&key| verdict(key) == Verdict::Admit).count();
        assert!((150..250).contains(&admitted), "{admitted} of 400");
    }
}
