//! Clients that lose their patience: whoever has no first token in time gives up.
//!
//! A client that gives up closes its connection. The gateway forgets the request at once, wherever
//! it is on the way. An engine hears of it as vLLM does of an abort: between two steps. Until the
//! step under way has ended, the request keeps its place and its blocks; until a copy of blocks for
//! it is done, those blocks. At one instant giving up comes last, so that a first token that leaves
//! the server just in time is in time.

use super::World;
use crate::live::{Ended, Place, Slot};
use blis_core::{Ending, InstanceId, RequestId, Time};
use blis_metrics::{Stage, Status};
use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// The list of deadlines is gone through when it is longer than this and twice the live requests.
const FEW: usize = 64;

/// When clients give up, soonest first. A deadline outlives what it is about: whether somebody
/// still waits is seen when it comes.
#[derive(Debug, Default)]
pub(crate) struct Deadlines {
    heap: BinaryHeap<Reverse<(Time, RequestId, Slot)>>,
}

impl Deadlines {
    /// When the first is; `NEVER` if there is none.
    #[inline]
    pub(crate) fn next(&self) -> Time {
        self.heap.peek().map_or(Time::NEVER, |Reverse((at, _, _))| *at)
    }
}

impl World<'_> {
    /// The request in `slot` has arrived; its client does not wait for ever.
    pub(crate) fn note_patience(&mut self, slot: Slot) {
        let request = &self.live.get(slot).request;
        let Some(patience) = request.patience else { return };
        self.deadlines.heap.push(Reverse((request.arrival + patience, request.id, slot)));
        let most = FEW.max(2 * self.live.len());
        if self.deadlines.heap.len() > most {
            let live = &self.live;
            self.deadlines.heap.retain(|Reverse((_, id, slot))| live.holds(*slot, *id));
        }
    }

    /// The first deadline has come: its client gives up if it still waits.
    pub(crate) fn deadline(&mut self) {
        let Some(Reverse((at, id, slot))) = self.deadlines.heap.pop() else { return };
        if !self.live.holds(slot, id) {
            return;
        }
        let live = self.live.get(slot);
        if live.first_token.is_some_and(|token| token + live.split.output <= at) {
            return;
        }
        self.pass_time(at);
        self.tally.events += 1;
        self.counts.gave_up += 1;
        let live = self.live.get(slot);
        let gateway = live.gateway;
        self.config.policies.gateways[gateway].admission.given_up(id);
        match (live.place, live.instance) {
            (Place::Gateway, instance) => {
                self.agenda.remove(slot);
                self.held[gateway].remove(&id);
                if let Some(instance) = instance {
                    let ended = self.ended_unserved(slot);
                    self.boards.recalled(gateway, instance, ended);
                }
                self.close(slot, Status::Abandoned(Stage::Gateway), at);
            }
            (place, instance) => {
                let instance = instance.expect("it is at its instance");
                self.abort(slot, place, instance, at);
            }
        }
    }

    /// The client of a request that an instance has gives up.
    fn abort(&mut self, slot: Slot, place: Place, instance: InstanceId, now: Time) {
        let ended = self.ended_unserved(slot);
        let gateway = self.live.get(slot).gateway;
        self.boards.ended(gateway, instance, ended);
        self.tally.closed += 1;
        if !matches!(place, Place::Running | Place::Ended) {
            // It will not be scheduled any more.
            self.end_use(slot, None);
        }
        self.live.get_mut(slot).gave_up = true;
        let boundary = self.engine(instance).give_up(slot, now);
        self.agenda.set_step(instance, boundary);
        if self.is_closed_loop() {
            let request = self.live.get(slot).request.clone();
            self.follow_up(&request, Ending::Abandoned, now);
        }
    }

    /// What the gateway takes off its books for a request that leaves before its first token, or
    /// with it.
    fn ended_unserved(&self, slot: Slot) -> Ended {
        let live = self.live.get(slot);
        let work = live.expected_work(self.config.block_size());
        Ended {
            requests: 1,
            tokens: live.request.content.prompt_tokens().into(),
            started_work: if live.first_token.is_none() { work } else { 0 },
        }
    }
}
