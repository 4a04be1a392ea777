//! `session-backpressure`: takes no new sessions while the cluster is loaded.
//!
//! **Prefers** sessions that are under way: their context is cached, and a user who is turned away
//! in the middle has lost what was said before. Above the threshold, what begins a session, and
//! what is of none, is turned away; later rounds always pass.
//!
//! **Reads** the load of instances (polled: waiting, running and sent since), the request's session
//! and round, and its service class. It keeps nothing: a closed-loop client whose session was
//! turned away sends no later rounds, and those of an open-loop client pass.
//!
//! **Parameters** `threshold` (requests per instance): the mean load above which no session begins.
//! `signal`: whether `load` counts, or only the `queue`. And one per class, named like it: whether
//! its new sessions may be rejected.
//!
//! **Origin** ours, after connection-level backpressure: admit work whose cost is sunk.

use crate::classes::{flag, flags};
use crate::prelude::*;

/// How `session-backpressure` introduces itself.
pub const SPEC: Spec<dyn Admission> = Spec {
    name: "session-backpressure",
    help: "Rejects new sessions while the cluster is loaded, never later rounds",
    params: &[
        Param::float("threshold", 0.0..=100_000.0, 64.0, "requests per instance")
            .help("Mean load above which new sessions are rejected"),
        Param::choice("signal", &["load", "queue"])
            .help("Count all requests of an instance, or waiting ones only"),
        flag(SloClass::Critical, false, "Whether new critical sessions may be rejected"),
        flag(SloClass::Standard, true, "Whether new standard sessions may be rejected"),
        flag(SloClass::Sheddable, true, "Whether new sheddable sessions may be rejected"),
        flag(SloClass::Batch, true, "Whether new batch sessions may be rejected"),
        flag(SloClass::Background, true, "Whether new background sessions may be rejected"),
    ],
    needs: |_| Needs { load: true, ..Needs::NONE },
    ..Spec::built_by(|values, _| Box::new(SessionBackpressure::new(values)))
};

/// A gate for beginnings.
#[derive(Clone, Copy, Debug)]
pub struct SessionBackpressure {
    threshold: f64,
    queue_only: bool,
    sheds: PerClass<bool>,
}

impl SessionBackpressure {
    fn new(values: &Values) -> SessionBackpressure {
        SessionBackpressure {
            threshold: values.float("threshold"),
            queue_only: values.choice("signal") == "queue",
            sheds: flags(values),
        }
    }

    fn load(&self, cluster: &ClusterView<'_>) -> f64 {
        cluster.mean(|view| f64::from(if self.queue_only { view.queue_depth } else { view.load() }))
    }
}

impl Admission for SessionBackpressure {
    fn admit(
        &mut self,
        request: &RequestView<'_>,
        cluster: &ClusterView<'_>,
        _: &mut Dice,
    ) -> Verdict {
        let begins = request.session.is_none() || request.round == 0;
        if begins && self.sheds[request.class.index()] && self.load(cluster) > self.threshold {
            return Verdict::Reject("session-backpressure");
        }
        Verdict::Admit
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::classes::values;
    use crate::view::examples::{NOTHING, cluster, dice, instances, request};
    use blis_core::SessionId;

    fn admits(
        given: &[(&'static str, &'static str)],
        load: u32,
        session: Option<(u64, u32)>,
    ) -> bool {
        let mut gate = SessionBackpressure::new(&values(SPEC.params, given));
        let views = [load, 0].map(|queue_depth| InstanceView {
            queue_depth,
            running: 1,
            ..instances(&[0])[0]
        });
        let (session, round) =
            session.map_or((None, 0), |(id, round)| (Some(SessionId(id)), round));
        let request = RequestView { session, round, ..request(&NOTHING) };
        gate.admit(&request, &cluster(&views), &mut dice(0)) == Verdict::Admit
    }

    #[test]
    fn above_the_threshold_only_later_rounds_pass() {
        let four = [("threshold", "4")];
        for (session, above) in [(None, false), (Some((7, 0)), false), (Some((7, 1)), true)] {
            assert!(admits(&four, 6, session), "a mean of 4 is not above 4");
            assert_eq!(admits(&four, 7, session), above, "{session:?}");
        }
    }

    #[test]
    fn running_requests_count_unless_only_the_queue_does() {
        let queue = [("threshold", "3"), ("signal", "queue")];
        assert!(admits(&queue, 6, None));
        assert!(!admits(&queue, 7, None));
        assert!(!admits(&[("threshold", "3")], 6, None));
    }

    #[test]
    fn a_protected_class_begins_sessions_whenever_it_likes() {
        assert!(admits(&[("threshold", "0"), ("standard", "false")], 99, None));
    }
}
