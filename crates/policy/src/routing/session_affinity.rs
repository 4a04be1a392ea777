//! `session-affinity`: a session stays where it was, until that is too busy.
//!
//! **Prefers** the instance that served the session's last round; the least loaded one for requests
//! without a session, for first rounds, for sessions that stayed away too long, and when the
//! session's instance has too much more load than the least loaded one.
//!
//! **Reads** `queue_depth` and `running` (as old as the last poll) and `unseen` (live), and a
//! memory of its own decisions (live).
//!
//! **Parameters** `ttl` (s): how long a session without a request is remembered. `max-excess`
//! (requests): how much more load than the least loaded one the session's instance may have.
//! `ties`: which of several least loaded instances is taken.
//!
//! **Origin** the sticky sessions of load balancers, with llm-d's time to live; the bound is what
//! they lack.

use crate::prelude::*;
use crate::routing::seats::{self, Seats};
use crate::routing::ties::{self, Ties};

/// How `session-affinity` introduces itself.
pub const SPEC: Spec<dyn Router> = Spec {
    name: "session-affinity",
    help: "Keeps a session on its instance unless that is too busy",
    params: &[
        seats::TTL,
        Param::int("max-excess", 0..=1_000_000, 16, "requests")
            .help("Largest load above the least loaded instance before a session moves"),
        ties::PARAM,
    ],
    needs: |_| Needs { load: true, ..Needs::NONE },
    ..Spec::built_by(|values, _| {
        Box::new(SessionAffinity {
            seats: Seats::of(values),
            max_excess: u32::try_from(values.int("max-excess")).unwrap_or(u32::MAX),
            ties: Ties::of(values),
            last: Outcome::New,
            counts: [0; 4],
        })
    })
};

/// Sticky sessions with a bound.
#[derive(Clone, Debug)]
pub struct SessionAffinity {
    seats: Seats,
    max_excess: u32,
    ties: Ties,
    /// Of the last choice.
    last: Outcome,
    /// Of all that were sent, by outcome.
    counts: [u64; 4],
}

/// Why a request goes where it goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Outcome {
    /// Without a session, or its first round.
    New,
    /// To the session's instance.
    Stuck,
    /// Away from it, because it is too busy or gone.
    Broken,
    /// Away from it, because it was too long ago.
    Expired,
}

impl SessionAffinity {
    /// What becomes of `request`, and its instance if it sticks to one.
    fn seat(
        &self,
        request: &RequestView<'_>,
        cluster: &ClusterView<'_>,
        least: u32,
    ) -> (Outcome, Option<InstanceId>) {
        let Some(session) = request.session else {
            return (Outcome::New, None);
        };
        let Some(seat) = self.seats.find(session, cluster.now) else {
            let expired = self.seats.has_expired(session, cluster.now);
            return (if expired { Outcome::Expired } else { Outcome::New }, None);
        };
        let found = cluster.instances.binary_search_by_key(&seat, |view| view.id);
        let load = found.ok().map(|at| cluster.instances[at].load());
        match load.filter(|load| load - least <= self.max_excess) {
            Some(_) => (Outcome::Stuck, Some(seat)),
            None => (Outcome::Broken, None),
        }
    }
}

impl Router for SessionAffinity {
    fn route(
        &mut self,
        request: &RequestView<'_>,
        cluster: &ClusterView<'_>,
        dice: &mut Dice,
    ) -> Choice {
        let loads = cluster.instances.iter().map(InstanceView::load);
        let (outcome, seat) = self.seat(request, cluster, loads.min().unwrap_or(0));
        self.last = outcome;
        let least = || self.ties.least(cluster, dice, InstanceView::load);
        Choice::because(SPEC.name, seat.unwrap_or_else(least))
    }

    fn sent(&mut self, request: &RequestView<'_>, instance: InstanceId, now: Time) {
        self.counts[self.last as usize] += 1;
        if let Some(session) = request.session {
            self.seats.take(session, instance, now);
        }
    }

    fn firings(&self, firings: &mut Firings) {
        let mechanisms =
            [("stuck", Outcome::Stuck), ("broken", Outcome::Broken), ("expired", Outcome::Expired)];
        for (mechanism, outcome) in mechanisms {
            firings.add(SPEC.name, mechanism, self.counts[outcome as usize]);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::view::examples::{NOTHING, cluster, dice, instances, request};
    use blis_core::{SessionId, Span, Values};

    struct Rounds {
        router: Box<dyn Router>,
    }

    impl Rounds {
        fn new(given: &[(&'static str, &'static str)]) -> Rounds {
            let values = Values::parse(SPEC.params, given.iter().copied()).expect("legal");
            Rounds { router: (SPEC.build)(&values, &Cluster::SMALL) }
        }

        /// Where a round of session 1 goes `seconds` after the start.
        fn round(&mut self, seconds: u64, loads: &[u32]) -> u32 {
            let now = Time::ZERO + Span::from_micros(seconds * 1_000_000);
            let views = instances(loads);
            let request = RequestView { session: Some(SessionId(1)), ..request(&NOTHING) };
            let cluster = ClusterView { now, ..cluster(&views) };
            let choice = self.router.route(&request, &cluster, &mut dice(0));
            self.router.sent(&request, choice.instance, now);
            choice.instance.0
        }

        fn firings(&self) -> Vec<u64> {
            let mut firings = Firings::default();
            self.router.firings(&mut firings);
            firings.into_list().into_iter().map(|(_, times)| times).collect()
        }
    }

    #[test]
    fn a_session_stays_until_its_instance_has_too_much_more_load_than_the_least() {
        let mut rounds = Rounds::new(&[("max-excess", "5")]);
        assert_eq!(rounds.round(0, &[3, 0, 3]), 1);
        assert_eq!(rounds.round(1, &[3, 8, 4]), 1, "5 more than the least");
        assert_eq!(rounds.round(2, &[3, 9, 2]), 2, "7 more");
        assert_eq!(rounds.round(3, &[0, 0, 5]), 2, "it has moved for good");
        assert_eq!(rounds.firings(), [2, 1, 0]);
    }

    #[test]
    fn a_session_that_stayed_away_too_long_starts_anew() {
        let mut rounds = Rounds::new(&[("ttl", "60")]);
        assert_eq!(rounds.round(0, &[0, 3]), 0);
        assert_eq!(rounds.round(60, &[3, 0]), 0);
        assert_eq!(rounds.round(121, &[3, 0]), 1);
        assert_eq!(rounds.firings(), [1, 0, 1]);
    }

    #[test]
    fn a_session_whose_instance_is_gone_moves() {
        let mut rounds = Rounds::new(&[]);
        assert_eq!(rounds.round(0, &[3, 3, 0]), 2);
        assert_eq!(rounds.round(1, &[3, 0]), 1);
        assert_eq!(rounds.firings(), [0, 1, 0]);
    }
}
