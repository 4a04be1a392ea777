//! `kv-pressure`: how much trouble an instance has with its KV memory.
//!
//! **Prefers** instances with free blocks, few copies from the CPU tier under way, and a CPU tier
//! that is not copied to and fro: 1 - utilization - pending transfers / `transfer-scale` -
//! `thrashing-weight` * thrashing, no less than 0.
//!
//! **Reads** `kv_utilization`, `pending_transfer_us` and `thrashing_rate` (as old as the last
//! poll).
//!
//! **Parameters** `transfer-scale` (us): pending transfers that cost the whole score.
//! `thrashing-weight`: the score lost when all that was copied out comes back at once.
//!
//! **Origin** `kv-utilization`, with what a CPU tier adds to the pressure. Without a tier the two
//! score the same.

use crate::prelude::*;

/// How `kv-pressure` introduces itself.
pub const SPEC: Spec<dyn Scorer> = Spec {
    name: "kv-pressure",
    help: "Prefers instances with free KV blocks and without reloads or thrashing",
    params: &[TRANSFER_SCALE, THRASHING_WEIGHT],
    needs: |_| NEEDS,
    ..Spec::built_by(|values, _| Box::new(KvPressure::new(values)))
};

/// The parameter `transfer-scale`.
pub(crate) const TRANSFER_SCALE: Param = Param::log("transfer-scale", 1.0..=1e9, 10_000.0, "us")
    .help("Pending transfer time at which the score reaches 0");

/// The parameter `thrashing-weight`.
pub(crate) const THRASHING_WEIGHT: Param = Param::float("thrashing-weight", 0.0..=100.0, 2.0, "")
    .help("Score lost per unit of the thrashing rate");

/// What pressure is read from.
pub(crate) const NEEDS: Needs = Needs { kv: true, transfers: true, ..Needs::NONE };

/// Free blocks, less what reloads and thrashing cost.
#[derive(Clone, Copy, Debug)]
pub struct KvPressure {
    transfer_scale: f64,
    thrashing_weight: f64,
}

impl KvPressure {
    /// As [`TRANSFER_SCALE`] and [`THRASHING_WEIGHT`] say.
    pub(crate) fn new(values: &Values) -> KvPressure {
        KvPressure {
            transfer_scale: values.float(TRANSFER_SCALE.name),
            thrashing_weight: values.float(THRASHING_WEIGHT.name),
        }
    }

    /// The score of `view` for a request that feels transfers `feeling` times as much as others.
    pub(crate) fn of(&self, view: &InstanceView, feeling: f64) -> f64 {
        let transfers = feeling * view.pending_transfer_us / self.transfer_scale;
        let thrashing = self.thrashing_weight * view.thrashing_rate;
        (1.0 - view.kv_utilization - transfers - thrashing).clamp(0.0, 1.0)
    }
}

impl Scorer for KvPressure {
    fn score(&mut self, _: &RequestView<'_>, cluster: &ClusterView<'_>, scores: &mut [f64]) {
        cluster.each(scores, |view| self.of(view, 1.0));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::view::examples::{NOTHING, cluster, instances, request};

    fn scores(given: &[(&'static str, &'static str)], views: &[InstanceView]) -> Vec<f64> {
        let values = Values::parse(SPEC.params, given.iter().copied()).expect("legal");
        let mut scores = vec![f64::NAN; views.len()];
        KvPressure::new(&values).score(&request(&NOTHING), &cluster(views), &mut scores);
        scores
    }

    #[test]
    fn blocks_in_use_reloads_and_thrashing_each_cost_score() {
        let mut views = instances(&[0; 5]);
        views[1].kv_utilization = 0.25;
        views[2].pending_transfer_us = 2_500.0;
        views[3].thrashing_rate = 0.125;
        views[4].pending_transfer_us = 50_000.0;
        assert_eq!(scores(&[], &views), [1.0, 0.75, 0.75, 0.75, 0.0]);
    }

    #[test]
    fn the_two_coefficients_are_parameters() {
        let mut views = instances(&[0; 2]);
        views[0].pending_transfer_us = 2_500.0;
        views[1].thrashing_rate = 0.5;
        let given = [("transfer-scale", "5000"), ("thrashing-weight", "0.5")];
        assert_eq!(scores(&given, &views), [0.5, 0.75]);
    }
}
