//! `session-aware`: the cached blocks that expired longest ago, or expire first.
//!
//! **Prefers** to keep the context of live sessions: blocks that a round of a session has used
//! expire a grace period after it, all others as soon as nobody uses them. The blocks of a
//! preempted request are as live as a session's, because it comes back. Of several uses, the one
//! that expires last counts.
//!
//! **Reads** when a use ended, whether it was a round of a session, and whether it was preempted
//! (live; the engine asks itself). It does not know which round is the last.
//!
//! **Parameters** `grace`, in seconds: for how long after a round its session counts as live. It
//! should be as long as nearly all users think between two rounds.
//!
//! **Origin** ours, after the time to live that agent-serving systems pin a program's KV for
//! between its turns. Here the grace only orders what is dropped: nothing is dropped while there is
//! room, and live blocks go as well once nothing else is left.

use crate::prelude::*;

/// How `session-aware` introduces itself.
pub const SPEC: Spec<dyn Evict> = Spec {
    name: "session-aware",
    help: "Evicts blocks of live sessions last",
    params: &[Param::log("grace", 0.001..=86_400.0, 60.0, "s")
        .help("How long a session counts as live after a round")],
    ..Spec::built_by(|values, _| {
        Box::new(SessionAware { grace: Span::from_secs_f64(values.float("grace")) })
    })
};

/// A run is worth the second in which it expires; the latest that was ever said holds, so that a
/// prefix does not expire before what continues it.
#[derive(Clone, Copy, Debug)]
pub struct SessionAware {
    /// How long a session is live after a round.
    pub grace: Span,
}

impl Evict for SessionAware {
    fn worth(&self, ended: &UseView) -> f64 {
        let live = ended.session.is_some() || ended.preempted;
        let expires = if live { ended.now + self.grace } else { ended.now };
        expires.as_secs_f64().max(ended.worth)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::view::examples::used;
    use blis_core::{SessionId, Time};

    const GRACE: SessionAware = SessionAware { grace: Span::from_micros(30_000_000) };

    /// The second in which something expires that was released in second `now`.
    fn expires(now: u64, session: Option<SessionId>, preempted: bool, before: f64) -> f64 {
        let now = Time::from_micros(now * 1_000_000);
        GRACE.worth(&UseView { now, session, preempted, worth: before, ..used() })
    }

    #[test]
    fn a_session_outlives_later_prompts_for_its_grace_and_no_longer() {
        let session = expires(10, Some(SessionId(7)), false, 0.0);
        assert!(session > expires(39, None, false, 0.0));
        assert!(session < expires(41, None, false, 0.0));
    }

    #[test]
    fn what_is_of_no_session_expires_as_it_is_released() {
        assert!(expires(11, None, false, 0.0) > expires(10, None, false, 0.0));
        assert_eq!(expires(10, None, false, 0.0).to_bits(), 10.0_f64.to_bits());
    }

    #[test]
    fn a_preempted_request_is_as_live_as_a_session() {
        let session = expires(10, Some(SessionId(7)), false, 0.0);
        assert_eq!(expires(10, None, true, 0.0).to_bits(), session.to_bits());
    }

    #[test]
    fn what_several_have_used_expires_last() {
        let session = expires(10, Some(SessionId(7)), false, 0.0);
        assert_eq!(expires(20, None, false, session).to_bits(), session.to_bits());
    }
}
