//! `kv-pressure-slo`: `kv-pressure`, felt differently by each service class.
//!
//! **Prefers** what `kv-pressure` prefers, but transfers under way count more for important
//! classes: a critical request shuns an instance that reloads, a batch request may as well wait
//! there.
//!
//! **Reads** `kv_utilization`, `pending_transfer_us` and `thrashing_rate` (as old as the last
//! poll), and the request's service class.
//!
//! **Parameters** `transfer-scale` (us) and `thrashing-weight`, as of `kv-pressure`. Besides them
//! one per class, named like it: how many times as much it feels pending transfers.
//!
//! **Origin** the idea that a reload stalls whoever shares the step with it, which only some mind.

use crate::classes::{numbers, weight};
use crate::prelude::*;
use crate::routing::scorers::kv_pressure::{self, KvPressure, THRASHING_WEIGHT, TRANSFER_SCALE};

/// How `kv-pressure-slo` introduces itself.
pub const SPEC: Spec<dyn Scorer> = Spec {
    name: "kv-pressure-slo",
    help: "Like kv-pressure, but important classes avoid reloads more",
    params: &[
        TRANSFER_SCALE,
        THRASHING_WEIGHT,
        weight(SloClass::Critical, 5.0, "Weight of transfers for critical requests"),
        weight(SloClass::Standard, 1.0, "Weight of transfers for standard requests"),
        weight(SloClass::Sheddable, 0.2, "Weight of transfers for sheddable requests"),
        weight(SloClass::Batch, 0.2, "Weight of transfers for batch requests"),
        weight(SloClass::Background, 0.1, "Weight of transfers for background requests"),
    ],
    needs: |_| kv_pressure::NEEDS,
    ..Spec::built_by(|values, _| {
        let pressure = KvPressure::new(values);
        Box::new(KvPressureSlo { pressure, feelings: numbers(values) })
    })
};

/// KV pressure as each service class feels it.
#[derive(Clone, Copy, Debug)]
pub struct KvPressureSlo {
    pressure: KvPressure,
    feelings: PerClass<f64>,
}

impl Scorer for KvPressureSlo {
    fn score(&mut self, request: &RequestView<'_>, cluster: &ClusterView<'_>, scores: &mut [f64]) {
        let feeling = self.feelings[request.class.index()];
        cluster.each(scores, |view| self.pressure.of(view, feeling));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::view::examples::{NOTHING, cluster, instances, request};

    /// Scores of an instance that reloads and of one that is half full, for each class.
    fn scores() -> Vec<[f64; 2]> {
        let mut scorer = SPEC.made(&[]);
        let mut views = instances(&[0, 0]);
        views[0].pending_transfer_us = 2_000.0;
        views[1].kv_utilization = 0.5;
        let of = |class| {
            let mut scores = [f64::NAN; 2];
            let request = RequestView { class, ..request(&NOTHING) };
            scorer.score(&request, &cluster(&views), &mut scores);
            scores
        };
        SloClass::ALL.into_iter().map(of).collect()
    }

    #[test]
    fn critical_requests_are_sent_away_from_a_reload_where_others_stay() {
        let away: Vec<bool> = scores().iter().map(|[reloading, full]| reloading < full).collect();
        assert_eq!(away, [true, false, false, false, false]);
    }

    #[test]
    fn each_class_feels_transfers_as_much_as_its_parameter_says() {
        let felt: Vec<f64> = scores().iter().map(|[reloading, _]| *reloading).collect();
        assert_eq!(felt, [0.0, 0.8, 0.96, 0.96, 0.98]);
    }
}
