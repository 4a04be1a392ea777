//! Requests that leave the engine: those that are done, and those whose clients have given up.
//!
//! An abort is heard of between two steps. Whoever waits leaves the queue; whoever runs leaves the
//! batch, and what it has computed stays in the prefix cache; whoever waits for blocks from the CPU
//! tier stays until they are there, because the copy writes into blocks that nobody else may have.

use super::running::Running;
use super::{Instance, Kit, Released, count, release};
use crate::live::{Place, Slot};
use blis_core::{Span, Time};
use blis_metrics::{Fact, Stage, Status};

impl Instance {
    /// The client of a request that is here has given up, after all that has happened at `now`.
    /// Returns when the next step boundary is due.
    pub(crate) fn give_up(&mut self, slot: Slot, now: Time) -> Time {
        self.leaving.push(slot);
        match &mut self.stride {
            // A step that has ended at this instant has ended before.
            Some(stride) => stride.end_after(now + Span::from_nanos(1)),
            None => now,
        }
    }

    /// Lets go of the requests whose clients have given up, if no copy writes into their blocks.
    /// `due` are places in the batch, and stay those of the same requests.
    pub(super) fn let_go(&mut self, now: Time, due: &mut Vec<usize>, kit: &mut Kit<'_>) {
        let mut leaving = std::mem::take(&mut self.leaving);
        leaving.retain(|&slot| {
            let live = kit.live.get(slot);
            let stage = match live.place {
                Place::Gateway => unreachable!("it has joined the queue"),
                Place::Waiting => {
                    self.queue.remove(live.turn, live.request.class);
                    self.end_session(slot, kit);
                    Stage::Waiting
                }
                Place::Loading => {
                    let Some(mut table) = self.take_loaded(slot) else { return true };
                    let why = Released::Done { session_live: self.end_session(slot, kit) };
                    release(&mut self.pool, &mut table, slot, why, now, kit);
                    self.note_change();
                    Stage::Loading
                }
                Place::Running => {
                    self.drop_running(slot, now, due, kit);
                    Stage::Running
                }
                Place::Ended => Stage::Running,
            };
            let record = kit.live.get(slot).record(kit.engine.block_size);
            let fact = Fact::Closed { status: Status::Abandoned(stage), record };
            kit.listener.hear(now, &fact);
            self.in_flight.forget(slot);
            kit.live.remove(slot);
            false
        });
        self.leaving = leaving;
    }

    /// A request of the batch is computed no further.
    fn drop_running(&mut self, slot: Slot, now: Time, due: &mut Vec<usize>, kit: &mut Kit<'_>) {
        let place = self.running.iter().position(|running| running.slot == slot);
        let index = place.expect("it is in the batch");
        due.retain(|&other| other != index);
        for other in due.iter_mut().filter(|other| **other > index) {
            *other -= 1;
        }
        // What the step computes for it that was formed last and has not landed.
        let planned = match self.running.get(index).steady {
            _ if self.stride.is_none() => None,
            true => Some(1),
            false => self.plan.of(index).map(|chunk| chunk.kept),
        };
        let running = self.take_out(index, now, kit);
        let live = kit.live.get_mut(slot);
        live.generated = running.generated - running.fresh;
        let fact = Fact::Dropped {
            request: live.request.id,
            instance: self.id,
            computed_tokens: running.computed + planned.unwrap_or(0),
            under_way: u32::from(planned.is_some()) + count(self.in_flight.steps.len()),
        };
        kit.listener.hear(now, &fact);
    }

    /// Takes a request out of the batch for good: its full blocks stay in the prefix cache.
    pub(super) fn take_out(&mut self, index: usize, now: Time, kit: &mut Kit<'_>) -> Running {
        self.commit_full_blocks(index, kit);
        let mut running = self.running.remove(index);
        self.plan.forget(index);
        self.copy_out(&running.table, now, kit);
        let slot = running.slot;
        let why = Released::Done { session_live: self.end_session(slot, kit) };
        release(&mut self.pool, &mut running.table, slot, why, now, kit);
        self.note_change();
        running
    }

    /// A request leaves for good; returns whether another one of its session is here, if somebody
    /// wants to know.
    pub(super) fn end_session(&mut self, slot: Slot, kit: &Kit<'_>) -> bool {
        let session = kit.live.get(slot).request.session.filter(|_| kit.sessions);
        session.is_some_and(|session| self.leave_session(session))
    }
}
