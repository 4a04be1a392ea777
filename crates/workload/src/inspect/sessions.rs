//! Sessions: how many rounds they have, and how long it is from one to the next.

use super::spread::{Histogram, Spread};
use blis_core::{Request, SessionId, Time};
use std::collections::BTreeMap;

/// The sessions of a workload.
#[derive(Clone, Debug, PartialEq)]
pub struct SessionStats {
    /// How many sessions.
    pub sessions: u64,
    /// Requests that are rounds of a session.
    pub requests: u64,
    /// Requests of a session.
    pub rounds: Spread,
    /// Nanoseconds from sending a round to sending the next; absent if no session has two.
    pub gaps: Option<Spread>,
}

/// Counts sessions.
#[derive(Clone, Debug, Default)]
pub(super) struct SessionCount {
    requests: u64,
    gaps: Histogram,
    open: BTreeMap<SessionId, (u64, Time)>,
}

impl SessionCount {
    pub(super) fn see(&mut self, request: &Request) {
        let Some(session) = request.session else { return };
        self.requests += 1;
        let (rounds, last) = self.open.entry(session).or_insert((0, request.arrival));
        if *rounds > 0 {
            self.gaps.add(request.arrival.saturating_since(*last).as_nanos());
        }
        *rounds += 1;
        *last = request.arrival;
    }

    pub(super) fn finish(self) -> Option<SessionStats> {
        let mut rounds = Histogram::default();
        for (count, _) in self.open.values() {
            rounds.add(*count);
        }
        Some(SessionStats {
            sessions: self.open.len() as u64,
            requests: self.requests,
            rounds: rounds.spread()?,
            gaps: self.gaps.spread(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use blis_core::{Content, RequestId, Segment, SloClass, StreamId, TenantId};

    #[test]
    fn rounds_and_the_time_between_them_are_counted_by_session() {
        let mut count = SessionCount::default();
        for (session, micros) in
            [(Some(7), 0), (Some(9), 1), (None, 2), (Some(7), 10), (Some(7), 40)]
        {
            let segment = Segment { stream: StreamId(1), tokens: 3 };
            count.see(&Request {
                id: RequestId(0),
                name: None,
                arrival: Time::from_micros(micros),
                content: Content::new([segment], StreamId(1)),
                output_tokens: 1,
                class: SloClass::Standard,
                tenant: TenantId(0),
                session: session.map(SessionId),
                round: 0,
                attempt: 0,
                deadline: None,
                patience: None,
            });
        }
        let found = count.finish().expect("there are sessions");
        assert_eq!((found.sessions, found.requests), (2, 4));
        assert_eq!((found.rounds.min, found.rounds.max), (1, 3));
        let gaps = found.gaps.expect("one session has three rounds");
        assert_eq!((gaps.count, gaps.min, gaps.max), (2, 10_000, 30_000));
        assert!(SessionCount::default().finish().is_none());
    }
}
