//! `active-request`: how many requests this gateway has under way at an instance.
//!
//! **Prefers** idle instances, which score 1; of the others those with fewer requests:
//! (most - its own) / most, times `max-busy`.
//!
//! **Reads** the router's own count (live): `in_flight`.
//!
//! **Parameters** `idle` (requests): an instance with so many is still idle. `max-busy`: what a
//! busy instance can score at most.
//!
//! **Origin** llm-d's `active-request-scorer` with its defaults, as it is (llm-d-router ebab687,
//! August 2026). The scale begins at zero requests, not at the fewest, so the busiest scores 0 and
//! small differences between busy instances stay small.

use crate::prelude::*;

/// How `active-request` introduces itself.
pub const SPEC: Spec<dyn Scorer> = Spec {
    name: "active-request",
    help: "Prefers instances with few requests in flight (relative to the most)",
    params: &[
        Param::int("idle", 0..=1_000_000, 0, "requests")
            .help("An instance with at most this many requests in flight is idle and scores 1"),
        Param::float("max-busy", 0.0..=1.0, 1.0, "").help("Highest score of a busy instance"),
    ],
    ..Spec::built_by(|values, _| {
        Box::new(ActiveRequest {
            idle: u32::try_from(values.int("idle")).unwrap_or(u32::MAX),
            max_busy: values.float("max-busy"),
        })
    })
};

/// Requests in flight, against the most.
#[derive(Clone, Copy, Debug)]
pub struct ActiveRequest {
    idle: u32,
    max_busy: f64,
}

impl Scorer for ActiveRequest {
    fn score(&mut self, _: &RequestView<'_>, cluster: &ClusterView<'_>, scores: &mut [f64]) {
        let most = cluster.instances.iter().map(|view| view.in_flight).max().unwrap_or(0);
        cluster.each(scores, |view| match view.in_flight {
            count if count <= self.idle => 1.0,
            count => f64::from(most - count) / f64::from(most) * self.max_busy,
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::view::examples::scores;

    #[test]
    fn idle_instances_score_one_and_the_busiest_nothing() {
        let mut scorer = ActiveRequest { idle: 0, max_busy: 1.0 };
        assert_eq!(scores(&mut scorer, &[], &[8, 0, 2]), [0.0, 1.0, 0.75]);
        assert_eq!(scores(&mut scorer, &[], &[0, 0]), [1.0; 2]);
        assert_eq!(scores(&mut scorer, &[], &[5, 5]), [0.0; 2], "busy alike");
    }

    #[test]
    fn a_gap_can_be_left_between_idle_and_busy() {
        let mut scorer = ActiveRequest { idle: 2, max_busy: 0.5 };
        assert_eq!(scores(&mut scorer, &[], &[2, 4, 8]), [1.0, 0.25, 0.0]);
    }
}
