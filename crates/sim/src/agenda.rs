//! What happens next. Order is total: (time, phase, sequence).
//!
//! Events are kept in the cheapest way: arrivals are a cursor on the request source (one pending),
//! follow-ups of closed-loop clients a heap that is mostly empty, each instance has at most one
//! pending step boundary (the earliest of them, ties to the lowest), and the gateway's
//! delayed decisions go through a heap. The run loop takes the least of the three.

use crate::earliest::Earliest;
use crate::live::Slot;
use blis_core::{InstanceId, Time};
use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// What kind of event; at one instant, lower kinds come first. Step boundaries are last, so that a
/// request that joins a queue at the instant a step begins is part of that step's choice.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Phase {
    /// A request arrives.
    Arrival,
    /// The admission decision is due.
    Admission,
    /// Gateways look through those who wait there.
    Release,
    /// The routing decision is due.
    Routing,
    /// A request joins its instance's queue.
    Enqueue,
    /// A step (or a run of steps) ends, and the next begins.
    Step,
}

/// An event, taken off the agenda.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Event {
    /// The source's next request arrives.
    Arrival,
    /// A follow-up arrives, the one kept at this place.
    FollowUp(usize),
    /// A request at the gateway is due for its next phase.
    Request(Phase, Slot),
    /// Gateways look through those who wait there.
    Release,
    /// An instance reached the end of its run of steps.
    Step(InstanceId),
}

/// The pending events.
#[derive(Debug)]
pub(crate) struct Agenda {
    arrival: Time,
    /// When follow-ups arrive, and where they are kept; in order of time, then of being known.
    follow_ups: BinaryHeap<Reverse<(Time, u64, usize)>>,
    delayed: BinaryHeap<Reverse<(Time, Phase, u64, Slot)>>,
    /// When gateways look through those who wait there.
    release: Time,
    steps: Earliest,
    sequence: u64,
}

impl Agenda {
    pub(crate) fn new(instances: usize) -> Agenda {
        Agenda {
            arrival: Time::NEVER,
            follow_ups: BinaryHeap::new(),
            delayed: BinaryHeap::new(),
            release: Time::NEVER,
            steps: Earliest::new(instances),
            sequence: 0,
        }
    }

    /// The source's next request arrives at `at` (`NEVER`: there is none).
    pub(crate) fn set_arrival(&mut self, at: Time) {
        self.arrival = at;
    }

    /// Gateways look through those who wait there at `at` (`NEVER`: nobody waits).
    pub(crate) fn set_release(&mut self, at: Time) {
        self.release = at;
    }

    /// The follow-up kept at `place` arrives at `at`.
    pub(crate) fn add_follow_up(&mut self, at: Time, place: usize) {
        self.follow_ups.push(Reverse((at, self.sequence, place)));
        self.sequence += 1;
    }

    /// `slot` is due for `phase` at `at`.
    pub(crate) fn add(&mut self, at: Time, phase: Phase, slot: Slot) {
        self.delayed.push(Reverse((at, phase, self.sequence, slot)));
        self.sequence += 1;
    }

    /// Nothing is due for `slot` any more.
    pub(crate) fn remove(&mut self, slot: Slot) {
        self.delayed.retain(|Reverse((_, _, _, due))| *due != slot);
    }

    /// `instance` reaches the end of its run of steps at `at` (`NEVER`: it is idle).
    pub(crate) fn set_step(&mut self, instance: InstanceId, at: Time) {
        self.steps.set(instance.index(), at);
    }

    /// When the run of steps of `instance` ends; `NEVER`: it is idle.
    pub(crate) fn step(&self, instance: InstanceId) -> Time {
        self.steps.get(instance.index())
    }

    /// Takes the event off that is `next`. After an arrival or a step the caller says when the next
    /// one of its kind is; until then it stands.
    pub(crate) fn pop(&mut self, (at, phase): (Time, Phase)) -> Event {
        assert!(at < Time::NEVER, "the agenda is empty");
        match phase {
            Phase::Arrival if self.arrival == at => Event::Arrival,
            Phase::Arrival => {
                let Reverse((_, _, place)) = self.follow_ups.pop().expect("it was the head");
                Event::FollowUp(place)
            }
            Phase::Step => {
                let id = u32::try_from(self.steps.index()).expect("instance counts fit u32");
                Event::Step(InstanceId(id))
            }
            Phase::Release => Event::Release,
            Phase::Admission | Phase::Routing | Phase::Enqueue => {
                let Reverse((_, _, _, slot)) = self.delayed.pop().expect("it was the head");
                Event::Request(phase, slot)
            }
        }
    }

    /// When the next event is (`NEVER` if there is none), and of which kind.
    pub(crate) fn next(&self) -> (Time, Phase) {
        let delayed = self
            .delayed
            .peek()
            .map_or((Time::NEVER, Phase::Enqueue), |Reverse((at, phase, _, _))| (*at, *phase));
        let step = (self.steps.time(), Phase::Step);
        let follow_up = self.follow_ups.peek().map_or(Time::NEVER, |Reverse((at, _, _))| *at);
        let release = (self.release, Phase::Release);
        (self.arrival.min(follow_up), Phase::Arrival).min(delayed).min(step).min(release)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use blis_core::Dice;
    use blis_core::random::Purpose;

    #[test]
    fn events_come_out_in_the_order_of_a_sorted_list() {
        let mut dice = Dice::new(1, Purpose::Routing, 0);
        for count in [1_u32, 2, 3, 8, 37] {
            let mut agenda = Agenda::new(count as usize);
            let mut expected = Vec::new();
            for instance in 0..count {
                let at = Time::from_nanos(dice.below(20) as u64);
                agenda.set_step(InstanceId(instance), at);
                expected.push((at, Phase::Step, u64::from(instance)));
            }
            for sequence in 0..200_u32 {
                let at = Time::from_nanos(dice.below(20) as u64);
                let phase = [Phase::Admission, Phase::Routing, Phase::Enqueue][dice.below(3)];
                agenda.add(at, phase, Slot(sequence));
                expected.push((at, phase, u64::from(sequence)));
            }
            expected.sort_unstable();
            let mut popped = Vec::new();
            while agenda.next().0 < Time::NEVER {
                let next = agenda.next();
                let at = next.0;
                popped.push(match agenda.pop(next) {
                    Event::Arrival | Event::FollowUp(_) | Event::Release => {
                        unreachable!("none was set")
                    }
                    Event::Request(phase, slot) => (at, phase, u64::from(slot.0)),
                    Event::Step(instance) => {
                        agenda.set_step(instance, Time::NEVER);
                        (at, Phase::Step, u64::from(instance.0))
                    }
                });
            }
            assert_eq!(popped, expected, "{count} instances");
        }
    }

    #[test]
    fn at_one_instant_arrivals_come_first_and_steps_last() {
        let mut agenda = Agenda::new(2);
        let now = Time::from_nanos(5);
        agenda.set_step(InstanceId(1), now);
        agenda.add(now, Phase::Enqueue, Slot(3));
        agenda.set_arrival(now);
        assert_eq!(agenda.pop(agenda.next()), Event::Arrival);
        agenda.set_arrival(Time::NEVER);
        assert_eq!(agenda.pop(agenda.next()), Event::Request(Phase::Enqueue, Slot(3)));
        assert_eq!(agenda.pop(agenda.next()), Event::Step(InstanceId(1)));
        agenda.set_step(InstanceId(1), Time::NEVER);
        assert_eq!(agenda.next().0, Time::NEVER);
    }
}
