//! `deadline`: urgency that grows as a request's deadline nears.
//!
//! **Prefers** requests that have used up most of their time: priority is 1 over the share of the
//! time that is left, from 1 on arrival up to a bound. So it compares requests with short and long
//! deadlines by how much of theirs is gone, where `edf` compares the instants.
//!
//! **Reads** the request's age since its arrival, its deadline, and its service class. Priorities
//! change while requests wait, so queues are ranked again at every step.
//!
//! **Parameters** `horizon` (s): the deadline of a request that has none, and the longest of any,
//! so that nobody starves. `most`: the greatest priority, which is reached when 1/most of the time
//! is left. `late`: whether a request that is late keeps it (`keep`) or falls to 0 (`drop`), behind
//! all that can still be in time; then those can starve.
//!
//! **Origin** ours, after least-laxity scheduling; bounded, so that what is nearly late does not
//! drown everything else.

use crate::prelude::*;

/// How `deadline` introduces itself.
pub const SPEC: Spec<dyn Priority> = Spec {
    name: "deadline",
    help: "Priority grows, up to a bound, as the deadline approaches",
    params: &[
        Param::log("horizon", 0.001..=86_400.0, 60.0, "s")
            .help("Deadline of requests without one, and the latest deadline of any"),
        Param::log("most", 1.0..=1e6, 100.0, "").help("Highest priority"),
        Param::choice("late", &["keep", "drop"])
            .help("Whether a late request keeps the highest priority or drops to 0"),
    ],
    ..Spec::built_by(|values, cluster| Box::new(Deadline::new(values, cluster)))
};

/// Urgency by deadlines.
#[derive(Clone, Copy, Debug)]
pub struct Deadline {
    targets: PerClass<Option<Span>>,
    horizon: Span,
    most: f64,
    drops_late: bool,
}

impl Deadline {
    fn new(values: &Values, cluster: &Cluster) -> Deadline {
        Deadline {
            targets: cluster.ttft_targets,
            horizon: Span::from_secs_f64(values.float("horizon")),
            most: values.float("most"),
            drops_late: values.choice("late") == "drop",
        }
    }
}

impl Priority for Deadline {
    fn priority(&self, waiting: &WaitingView<'_>, now: Time) -> f64 {
        let request = &waiting.request;
        let due = request.deadline.or(self.targets[request.class.index()]);
        let due = due.unwrap_or(self.horizon).min(self.horizon).as_micros_f64();
        let left = due - now.saturating_since(request.arrival).as_micros_f64();
        if left * self.most > due {
            due / left
        } else if left < 0.0 && self.drops_late {
            0.0
        } else {
            self.most
        }
    }

    fn varies(&self) -> bool {
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::view::examples::waiting;
    use blis_core::{RequestView, SloClass};

    /// The priorities of a request with this deadline at these ages, all in ms.
    fn priorities<const N: usize>(
        given: &[(&'static str, &'static str)],
        class: SloClass,
        deadline: Option<u64>,
        ages: [u64; N],
    ) -> Vec<f64> {
        let mut cluster = Cluster::SMALL;
        cluster.ttft_targets[SloClass::Standard.index()] = Some(Span::from_micros(400_000));
        let values = Values::parse(SPEC.params, given.iter().copied()).expect("legal");
        let policy = Deadline::new(&values, &cluster);
        let any = waiting(1);
        let deadline = deadline.map(|ms| Span::from_micros(ms * 1_000));
        let waiting =
            WaitingView { request: RequestView { class, deadline, ..any.request }, ..any };
        let at = |age| policy.priority(&waiting, Time::from_micros(age * 1_000));
        ages.into_iter().map(at).collect()
    }

    #[test]
    fn urgency_grows_as_the_deadline_nears_and_is_bounded() {
        let ages = [0, 50, 75, 99, 100, 101, 1 << 40];
        let found = priorities(&[("most", "8")], SloClass::Standard, Some(100), ages);
        assert_eq!(found, [1.0, 2.0, 4.0, 8.0, 8.0, 8.0, 8.0]);
    }

    #[test]
    fn the_clients_deadline_goes_before_the_promise_and_the_horizon_behind_it() {
        assert_eq!(priorities(&[], SloClass::Standard, None, [200]), [2.0]);
        let horizon = [("horizon", "1")];
        assert_eq!(priorities(&horizon, SloClass::Batch, None, [500]), [2.0]);
        assert_eq!(priorities(&horizon, SloClass::Batch, Some(9_999), [500]), [2.0]);
    }

    #[test]
    fn who_is_late_gives_way_if_it_is_to() {
        let found = priorities(&[("late", "drop")], SloClass::Batch, Some(100), [50, 100, 101]);
        assert_eq!(found, [2.0, 100.0, 0.0]);
    }
}
