//! The audit of copies to and from the CPU tier (I5), and of requests that wait for them.

use super::request::Happening;
use super::{Audit, Loads, Place};
use crate::fact::Fact;
use blis_core::InstanceId;

impl Audit {
    /// Checks a fact about copies of instance `id`.
    pub(super) fn transfer(&mut self, place: Place, id: InstanceId, fact: &Fact<'_>) {
        match *fact {
            Fact::Offloading { blocks, .. } => self.leaving(place, id, blocks),
            Fact::Offloaded { blocks, abandoned, cpu_blocks, beside, .. } => {
                let room = self.instances[id.index()].config.cpu_blocks;
                self.log.check(cpu_blocks <= room, "I3", place, || {
                    format!("the CPU tier holds {cpu_blocks} blocks, of {room}")
                });
                self.log.check(beside || (abandoned == 0 && blocks > 0), "I5", place, || {
                    format!("a step waits for a copy of {blocks} blocks, {abandoned} abandoned")
                });
                let abandons = self.instances[id.index()].config.loads != Loads::Connector;
                self.log.check(abandons || abandoned == 0, "I5", place, || {
                    format!("{abandoned} blocks were dropped before they were copied")
                });
                // A copy that a step waits for begins and ends in one.
                if beside {
                    self.left(place, id, blocks, abandoned);
                }
            }
            Fact::Reloading { blocks, recent, beside, .. } => {
                self.log.check(blocks > 0 && recent <= blocks, "I5", place, || {
                    format!("{blocks} blocks are copied back, {recent} of them soon")
                });
                if beside {
                    self.returning(place, id, blocks);
                }
            }
            Fact::Reloaded { blocks, .. } => {
                if self.moves(place, Happening::Reloaded).is_some() {
                    self.instances[id.index()].copies.returned += u64::from(blocks);
                }
            }
            Fact::Unloaded { .. } => {
                if let Some((story, _)) = self.moves(place, Happening::Unloaded) {
                    story.last = place.at;
                    self.instances[id.index()].unload();
                }
            }
            Fact::Stalled { .. } => self.begins(place, id),
            _ => unreachable!("only facts about copies come here"),
        }
    }

    fn leaving(&mut self, place: Place, id: InstanceId, blocks: u32) {
        let instance = &mut self.instances[id.index()];
        let total = instance.config.total_blocks;
        instance.copies.leaving += u64::from(blocks);
        let possible = blocks > 0 && total.is_none_or(|total| blocks <= total);
        self.log.check(possible, "I5", place, || {
            format!("a copy of {blocks} blocks begins, of {total:?}")
        });
    }

    fn left(&mut self, place: Place, id: InstanceId, blocks: u32, abandoned: u32) {
        let copies = &mut self.instances[id.index()].copies;
        copies.left += u64::from(blocks) + u64::from(abandoned);
        let (left, leaving) = (copies.left, copies.leaving);
        self.log.check(left <= leaving, "I5", place, || {
            format!("{left} blocks have left, but only {leaving} began to")
        });
    }

    fn returning(&mut self, place: Place, id: InstanceId, blocks: u32) {
        let fcfs = self.instances[id.index()].config.fcfs;
        let Some((story, _)) = self.moves(place, Happening::Reloading) else { return };
        if story.first_token.is_none() {
            story.waited += place.at.saturating_since(story.last);
        }
        story.last = place.at;
        let turn = story.turn;
        let first = !std::mem::replace(&mut story.turn_taken, true);
        let instance = &mut self.instances[id.index()];
        let due = instance.load(first.then_some(turn));
        instance.copies.returning += u64::from(blocks);
        self.log.check(!fcfs || due == turn || !first, "I16", place, || {
            format!("was number {turn} in the queue while number {due} had not been scheduled")
        });
    }
}
