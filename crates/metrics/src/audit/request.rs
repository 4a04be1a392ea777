//! The audit's view of one request: where it is, what it may do next, and whether its record
//! tells the same story as its facts.

use super::{AuditReport, Place};
use crate::fact::{Record, Stage, Status};
use blis_core::{InstanceId, RequestId, SloClass, Span, Time};
use std::collections::VecDeque;

/// Where a request is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum State {
    #[default]
    Arrived,
    Admitted,
    Routed,
    Waiting,
    Loading,
    Running,
    /// Preempted with its last token on its way.
    Ended,
    Dropped,
    Closed,
}

/// What can happen to a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Happening {
    Admitted,
    Routed,
    Enqueued,
    Reloading,
    Reloaded,
    Unloaded,
    Scheduled,
    Preempted,
    PreemptedAtEnd,
    FirstToken,
    Dropped,
    Finished,
    Refused,
    AbandonedOnTheWay,
    AbandonedWaiting,
    AbandonedLoading,
    AbandonedRunning,
    CutInTransit,
    CutQueued,
    CutRunning,
}

/// Every legal transition; what is not here is not possible.
const TRANSITIONS: [(State, Happening, State); 32] = [
    (State::Arrived, Happening::Admitted, State::Admitted),
    (State::Arrived, Happening::Refused, State::Closed),
    (State::Arrived, Happening::CutInTransit, State::Closed),
    (State::Admitted, Happening::Routed, State::Routed),
    // Admission has the last word once the router has chosen.
    (State::Admitted, Happening::Refused, State::Closed),
    (State::Admitted, Happening::CutInTransit, State::Closed),
    (State::Routed, Happening::Enqueued, State::Waiting),
    (State::Routed, Happening::CutInTransit, State::Closed),
    (State::Waiting, Happening::Scheduled, State::Running),
    (State::Waiting, Happening::Reloading, State::Loading),
    (State::Loading, Happening::Reloaded, State::Loading),
    (State::Loading, Happening::Unloaded, State::Waiting),
    (State::Loading, Happening::Scheduled, State::Running),
    (State::Loading, Happening::CutQueued, State::Closed),
    (State::Waiting, Happening::CutQueued, State::Closed),
    (State::Running, Happening::Preempted, State::Waiting),
    (State::Running, Happening::PreemptedAtEnd, State::Ended),
    (State::Running, Happening::FirstToken, State::Running),
    // Of a step that was under way when the request was preempted.
    (State::Waiting, Happening::FirstToken, State::Waiting),
    (State::Ended, Happening::FirstToken, State::Ended),
    (State::Ended, Happening::Finished, State::Closed),
    (State::Ended, Happening::AbandonedRunning, State::Closed),
    (State::Ended, Happening::CutRunning, State::Closed),
    (State::Running, Happening::Finished, State::Closed),
    (State::Running, Happening::CutRunning, State::Closed),
    (State::Arrived, Happening::AbandonedOnTheWay, State::Closed),
    (State::Admitted, Happening::AbandonedOnTheWay, State::Closed),
    (State::Routed, Happening::AbandonedOnTheWay, State::Closed),
    (State::Waiting, Happening::AbandonedWaiting, State::Closed),
    (State::Loading, Happening::AbandonedLoading, State::Closed),
    // The engine lets go of it first.
    (State::Running, Happening::Dropped, State::Dropped),
    (State::Dropped, Happening::AbandonedRunning, State::Closed),
];

const STATES: usize = 9;
const HAPPENINGS: usize = 20;

/// [`TRANSITIONS`] as a table to look up in.
const NEXT: [[Option<State>; HAPPENINGS]; STATES] = {
    let mut table = [[None; HAPPENINGS]; STATES];
    let mut i = 0;
    while i < TRANSITIONS.len() {
        let (before, happening, after) = TRANSITIONS[i];
        table[before as usize][happening as usize] = Some(after);
        i += 1;
    }
    table
};

/// What the facts so far say about a request.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Story {
    pub(super) state: State,
    pub(super) class: SloClass,
    pub(super) input_tokens: u32,
    pub(super) instance: Option<InstanceId>,
    pub(super) expected: Option<u32>,
    /// Tokens found cached when it was first scheduled.
    pub(super) cached: Option<u32>,
    pub(super) preemptions: u32,
    /// Tokens that it has at least, prompt and generated.
    pub(super) total_least: u32,
    pub(super) arrival: Time,
    pub(super) enqueued: Time,
    /// When it was last heard of.
    pub(super) last: Time,
    pub(super) first_token: Option<Time>,
    /// Time in the queue before the first token.
    pub(super) waited: Span,
    /// Its number in the order of joining its instance's queue, and whether it has left the queue
    /// once.
    pub(super) turn: u64,
    pub(super) turn_taken: bool,
}

/// The requests between the oldest that is not closed and the newest, by id.
#[derive(Clone, Debug, Default)]
pub(super) struct Live {
    base: u64,
    stories: VecDeque<Story>,
}

impl State {
    /// Where `happening` leads; `None` if it cannot happen.
    pub(super) const fn after(self, happening: Happening) -> Option<State> {
        NEXT[self as usize][happening as usize]
    }

    pub(super) const fn name(self) -> &'static str {
        match self {
            State::Arrived => "arrived",
            State::Admitted => "admitted",
            State::Routed => "on its way",
            State::Waiting => "waiting",
            State::Loading => "loading",
            State::Running => "running",
            State::Ended => "waiting for its last token",
            State::Dropped => "dropped",
            State::Closed => "closed",
        }
    }
}

impl Happening {
    pub(super) const fn name(self) -> &'static str {
        match self {
            Happening::Admitted => "admission",
            Happening::Routed => "routing",
            Happening::Enqueued => "joining the queue",
            Happening::Reloading => "loading blocks",
            Happening::Reloaded => "having its blocks back",
            Happening::Unloaded => "giving its blocks up",
            Happening::Scheduled => "scheduling",
            Happening::Preempted => "preemption",
            Happening::PreemptedAtEnd => "preemption before its last token",
            Happening::FirstToken => "the first token",
            Happening::Dropped => "being dropped",
            Happening::Finished => "finishing",
            Happening::Refused => "refusal",
            Happening::AbandonedOnTheWay => "being abandoned on the way",
            Happening::AbandonedWaiting => "being abandoned in the queue",
            Happening::AbandonedLoading => "being abandoned while loading",
            Happening::AbandonedRunning => "being abandoned while running",
            Happening::CutInTransit => "ending in transit",
            Happening::CutQueued => "ending in the queue",
            Happening::CutRunning => "ending while running",
        }
    }
}

impl From<Status> for Happening {
    fn from(status: Status) -> Happening {
        match status {
            Status::Finished => Happening::Finished,
            Status::Rejected(_) | Status::Unservable => Happening::Refused,
            Status::Abandoned(Stage::Gateway) => Happening::AbandonedOnTheWay,
            Status::Abandoned(Stage::Waiting) => Happening::AbandonedWaiting,
            Status::Abandoned(Stage::Loading) => Happening::AbandonedLoading,
            Status::Abandoned(Stage::Running) => Happening::AbandonedRunning,
            Status::InTransit => Happening::CutInTransit,
            Status::Queued => Happening::CutQueued,
            Status::Running => Happening::CutRunning,
        }
    }
}

impl Live {
    /// How many of the window are not closed.
    pub(super) fn len(&self) -> usize {
        self.stories.iter().filter(|story| story.state != State::Closed).count()
    }

    /// The id of the next request to arrive.
    pub(super) fn next(&self) -> RequestId {
        RequestId(self.base + self.stories.len() as u64)
    }

    pub(super) fn push(&mut self, story: Story) {
        self.stories.push_back(story);
    }

    /// A request of the window; one that is closed may be missing.
    pub(super) fn get_mut(&mut self, request: RequestId) -> Option<&mut Story> {
        let index = request.0.checked_sub(self.base)?;
        self.stories.get_mut(usize::try_from(index).ok()?)
    }

    /// Drops a request, and with it all closed ones before the oldest that is not.
    pub(super) fn close(&mut self, request: RequestId) {
        if let Some(story) = self.get_mut(request) {
            story.state = State::Closed;
        }
        while self.stories.front().is_some_and(|story| story.state == State::Closed) {
            self.stories.pop_front();
            self.base += 1;
        }
    }
}

impl Story {
    pub(super) fn new(arrival: Time, class: SloClass, input_tokens: u32) -> Story {
        Story {
            class,
            input_tokens,
            total_least: input_tokens,
            arrival,
            enqueued: arrival,
            last: arrival,
            ..Story::default()
        }
    }

    /// Checks that a record tells what the facts told.
    pub(super) fn check_record(
        &self,
        status: Status,
        record: &Record<'_>,
        place: Place,
        log: &mut AuditReport,
    ) {
        let same = record.arrival == self.arrival
            && record.class == self.class
            && record.input_tokens == self.input_tokens
            && record.instance == self.instance
            && record.preemptions == self.preemptions
            && record.cached_tokens == self.cached
            && record.expected_cached_tokens == self.expected;
        log.check(same, "I7", place, || {
            format!("the record {record:?} does not agree with the facts {self:?}")
        });
        let started = self.first_token.is_some();
        log.check((record.output_tokens > 0) == started, "I2", place, || {
            let n = record.output_tokens;
            format!("{n} output tokens, but first token at {:?}", self.first_token)
        });
        if status == Status::Finished {
            log.check(started, "I10", place, || "finished without a first token".to_owned());
        }
        self.check_patience(status, record, place, log);
        self.check_latencies(status, record, place, log);
    }

    /// Nobody gives up before time, and nobody who was to give up gets an answer.
    fn check_patience(
        &self,
        status: Status,
        record: &Record<'_>,
        place: Place,
        log: &mut AuditReport,
    ) {
        let Record { patience, ttft, .. } = *record;
        let waited = place.at.saturating_since(self.arrival);
        let holds = match status {
            Status::Abandoned(_) => ttft.is_none() && patience.is_some_and(|most| waited >= most),
            // What the engine has finished in time is delivered.
            Status::Finished => {
                let in_time = |most| waited <= most || ttft.is_some_and(|ttft| ttft <= most);
                patience.is_none_or(in_time)
            }
            _ => true,
        };
        log.check(holds, "I9", place, || {
            format!("{status:?} after {waited} with a TTFT of {ttft:?} and patience {patience:?}")
        });
    }

    fn check_latencies(
        &self,
        status: Status,
        record: &Record<'_>,
        place: Place,
        log: &mut AuditReport,
    ) {
        let finished = status == Status::Finished;
        log.check(record.e2e.is_some() == finished, "I9", place, || {
            format!("{status:?} with an E2E of {:?}", record.e2e)
        });
        let (Some(ttft), Some(first_token)) = (record.ttft, self.first_token) else {
            // A cut run may know the engine's first token before it has left the server.
            log.check(record.ttft.is_none() && !finished, "I9", place, || {
                format!("TTFT {:?}, but first token at {:?}", record.ttft, self.first_token)
            });
            return;
        };
        let split = &record.split;
        log.check(split.total() == ttft, "I9", place, || {
            format!("the parts of TTFT add up to {}, not to {ttft}", split.total())
        });
        let expected = first_token.saturating_since(self.arrival) + split.output;
        log.check(ttft == expected, "I9", place, || {
            format!("a TTFT of {ttft}, but the facts say {expected}")
        });
        let gateway = self.enqueued.saturating_since(self.arrival);
        let waited = self.waited;
        let queued = split.queue <= waited && split.queue + split.reload >= waited;
        log.check(split.gateway == gateway && queued, "I9", place, || {
            format!("{split:?}, but the facts say gateway {gateway} and queue {waited}")
        });
        if let Some(e2e) = record.e2e {
            // Output processing delays every token alike.
            let expected = ttft + place.at.saturating_since(first_token);
            log.check(e2e == expected, "I9", place, || {
                format!("an E2E of {e2e}, but the facts say {expected}")
            });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_can_happen_to_a_closed_request() {
        let all = TRANSITIONS.map(|(_, happening, _)| happening);
        assert!(all.iter().all(|&happening| State::Closed.after(happening).is_none()));
    }

    #[test]
    fn the_window_holds_only_what_is_between_oldest_and_newest_open_request() {
        let mut live = Live::default();
        for id in 0..1_000 {
            assert_eq!(live.next(), RequestId(id));
            live.push(Story::new(Time::ZERO, SloClass::Standard, 1));
            if id >= 10 {
                // Closed out of order: in pairs, the later first.
                live.close(RequestId((id - 10) ^ 1));
            }
        }
        assert!(live.stories.len() <= 12 && live.len() <= 11, "{}", live.stories.len());
        assert!(live.get_mut(RequestId(3)).is_none());
    }
}
