//! Which instance a session was sent to last, for a while.
//!
//! Used by `session` and `session-affinity`. It forgets who has not come back in time, so memory
//! does not grow with the length of a run; a request costs the logarithm of the sessions known.

use blis_core::{InstanceId, Param, SessionId, Span, Time, Values};
use std::collections::{BTreeMap, VecDeque};

/// The parameter `ttl`, whose value [`Seats::of`] reads.
pub const TTL: Param =
    Param::log("ttl", 0.001..=1e7, 600.0, "s").help("How long an idle session is remembered");

/// The last instance of each session that is remembered.
#[derive(Clone, Debug)]
pub struct Seats {
    ttl: Span,
    by_session: BTreeMap<SessionId, Seat>,
    /// Every taking of a seat, oldest first; those taken again since are stale.
    taken: VecDeque<(Time, SessionId)>,
}

#[derive(Clone, Copy, Debug)]
struct Seat {
    instance: InstanceId,
    since: Time,
}

impl Seats {
    /// As [`TTL`] says.
    pub fn of(values: &Values) -> Seats {
        Seats::new(Span::from_secs_f64(values.float(TTL.name)))
    }

    /// A memory that keeps a session for `ttl` after its last request.
    pub fn new(ttl: Span) -> Seats {
        Seats { ttl, by_session: BTreeMap::new(), taken: VecDeque::new() }
    }

    /// Where `session` was sent last, if that is remembered at `now`.
    pub fn find(&self, session: SessionId, now: Time) -> Option<InstanceId> {
        let seat = self.by_session.get(&session)?;
        (now.saturating_since(seat.since) <= self.ttl).then_some(seat.instance)
    }

    /// Whether `session` was known once and is past its time now.
    pub fn has_expired(&self, session: SessionId, now: Time) -> bool {
        self.by_session.contains_key(&session) && self.find(session, now).is_none()
    }

    /// `session` was sent to `instance` now.
    pub fn take(&mut self, session: SessionId, instance: InstanceId, now: Time) {
        self.forget(now);
        self.by_session.insert(session, Seat { instance, since: now });
        self.taken.push_back((now, session));
    }

    /// Drops sessions that have not come back for twice the time to live: the second time is for
    /// `has_expired`.
    fn forget(&mut self, now: Time) {
        while let Some((since, session)) = self.taken.front().copied() {
            if now.saturating_since(since) <= self.ttl + self.ttl {
                break;
            }
            self.taken.pop_front();
            if self.by_session.get(&session).is_some_and(|seat| seat.since == since) {
                self.by_session.remove(&session);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_session_is_forgotten_when_it_stays_away_and_not_before() {
        let at = |micros| Time::ZERO + Span::from_micros(micros);
        let mut seats = Seats::new(Span::from_micros(10));
        let session = SessionId(1);
        for round in 0..5 {
            seats.take(session, InstanceId(round), at(u64::from(round) * 10));
        }
        assert_eq!(seats.find(session, at(50)), Some(InstanceId(4)));
        assert_eq!(seats.find(session, at(51)), None);
        assert!(seats.has_expired(session, at(51)) && !seats.has_expired(SessionId(2), at(51)));
    }

    #[test]
    fn memory_does_not_grow_with_the_number_of_sessions() {
        let mut seats = Seats::new(Span::from_micros(10));
        for n in 0..1_000 {
            seats.take(SessionId(n), InstanceId(0), Time::ZERO + Span::from_micros(n));
        }
        assert_eq!((seats.by_session.len(), seats.taken.len()), (21, 21));
    }
}
