//! `edf`: schedules the earliest deadline first.
//!
//! **Prefers** the request that is due first: at its arrival plus the client's own deadline, or
//! else plus the time to first token that its class was promised. Nobody is due later than a
//! horizon after arrival, so that nobody starves: a request that arrives later than that behind
//! another never overtakes it.
//!
//! **Reads** when a request arrived, its deadline, and its service class.
//!
//! **Parameters** `horizon` (s): when a request without a deadline is due, and at the latest
//! anybody.
//!
//! **Origin** C. L. Liu and J. W. Layland, "Scheduling Algorithms for Multiprogramming in a
//! Hard-Real-Time Environment", Journal of the ACM 20(1), 1973; gateways of llm-d offer it for
//! their queues. A client's deadline is for the whole answer, a promise for its first token: both
//! are taken as given, because nobody knows how long an answer will be.

use crate::prelude::*;

/// How `edf` introduces itself.
pub const SPEC: Spec<dyn Order> = Spec {
    name: "edf",
    help: "Schedules the earliest deadline first",
    params: &[Param::log("horizon", 0.001..=86_400.0, 60.0, "s")
        .help("Deadline of requests without one, and the latest deadline of any")],
    ..Spec::built_by(|values, cluster| {
        Box::new(Edf::new(Span::from_secs_f64(values.float("horizon")), cluster))
    })
};

/// Earliest deadline first.
#[derive(Clone, Copy, Debug)]
pub struct Edf {
    horizon: Span,
    targets: PerClass<Option<Span>>,
}

impl Edf {
    fn new(horizon: Span, cluster: &Cluster) -> Edf {
        Edf { horizon, targets: cluster.ttft_targets }
    }
}

impl Order for Edf {
    fn rank(&self, waiting: &WaitingView<'_>, _: f64, _: Time) -> f64 {
        let request = &waiting.request;
        let due = request.deadline.or(self.targets[request.class.index()]);
        (request.arrival + due.unwrap_or(self.horizon).min(self.horizon)).as_micros_f64()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::view::examples::waiting;
    use blis_core::{RequestView, SloClass};

    /// The rank in ms of a request that arrived then, with this deadline.
    fn rank(arrival: u64, class: SloClass, deadline: Option<u64>) -> f64 {
        let mut cluster = Cluster::SMALL;
        cluster.ttft_targets[SloClass::Standard.index()] = Some(Span::from_micros(200_000));
        let edf = Edf::new(Span::from_micros(1_000_000), &cluster);
        let any = waiting(1);
        let request = RequestView {
            arrival: Time::from_micros(arrival * 1_000),
            class,
            deadline: deadline.map(|ms| Span::from_micros(ms * 1_000)),
            ..any.request
        };
        edf.rank(&WaitingView { request, ..any }, 0.0, Time::ZERO) / 1_000.0
    }

    #[test]
    fn the_clients_deadline_goes_before_the_promise_and_the_horizon_behind_it() {
        let ranks = vec![
            rank(10, SloClass::Standard, Some(50)),
            rank(10, SloClass::Standard, None),
            rank(10, SloClass::Batch, None),
        ];
        assert_eq!(ranks, [60.0, 210.0, 1_010.0]);
    }

    #[test]
    fn who_arrives_more_than_the_horizon_later_never_overtakes() {
        assert!(rank(0, SloClass::Batch, Some(9_999_999)) < rank(1_001, SloClass::Batch, Some(0)));
        assert!(rank(0, SloClass::Batch, None) > rank(999, SloClass::Batch, Some(0)));
    }
}
