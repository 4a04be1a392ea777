//! `session`: where the session was served last.
//!
//! **Prefers** the instance of the session's last round: 1 there, 0 elsewhere; 0 everywhere for
//! requests without a session, first rounds, and sessions not seen for `ttl`.
//!
//! **Reads** no signals of instances: a memory of its own decisions (live).
//!
//! **Parameters** `ttl` (s): how long a session without a request is remembered.
//!
//! **Origin** llm-d's session-affinity scorer, with its time to live.

use crate::prelude::*;
use crate::routing::seats::{self, Seats};

/// How `session` introduces itself.
pub const SPEC: Spec<dyn Scorer> = Spec {
    name: "session",
    help: "Prefers the instance that served the session's last round",
    params: &[seats::TTL],
    ..Spec::built_by(|values, _| Box::new(Session { seats: Seats::of(values) }))
};

/// 1 for the instance of the session's last round.
#[derive(Clone, Debug)]
pub struct Session {
    seats: Seats,
}

impl Scorer for Session {
    fn score(&mut self, request: &RequestView<'_>, cluster: &ClusterView<'_>, scores: &mut [f64]) {
        let seat = request.session.and_then(|session| self.seats.find(session, cluster.now));
        cluster.each(scores, |view| if Some(view.id) == seat { 1.0 } else { 0.0 });
    }

    fn sent(&mut self, request: &RequestView<'_>, instance: InstanceId, now: Time) {
        if let Some(session) = request.session {
            self.seats.take(session, instance, now);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::view::examples::{NOTHING, cluster, instances, request};
    use blis_core::{SessionId, Span};

    #[test]
    fn only_the_instance_of_the_last_round_scores_and_only_for_its_session() {
        let mut scorer = Session { seats: Seats::new(Span::from_micros(100)) };
        let of = |session| RequestView { session, ..request(&NOTHING) };
        let at = |micros| Time::ZERO + Span::from_micros(micros);
        scorer.sent(&of(Some(SessionId(7))), InstanceId(0), at(0));
        scorer.sent(&of(Some(SessionId(7))), InstanceId(2), at(50));
        let views = instances(&[0, 0, 0]);
        let mut scores = |session, now| {
            let mut scores = vec![f64::NAN; 3];
            let cluster = ClusterView { now, ..cluster(&views) };
            scorer.score(&of(session), &cluster, &mut scores);
            scores
        };
        assert_eq!(scores(Some(SessionId(7)), at(150)), [0.0, 0.0, 1.0]);
        assert_eq!(scores(Some(SessionId(7)), at(151)), [0.0; 3], "forgotten");
        assert_eq!(scores(Some(SessionId(8)), at(60)), [0.0; 3]);
        assert_eq!(scores(None, at(60)), [0.0; 3]);
    }
}
