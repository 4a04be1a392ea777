//! The audit of copies to and from the CPU tier (I5), and of requests that wait for them.

use super::request::Happening;
use super::{Audit, Loads, Place};
use crate::fact::Fact;
use blis_core::{InstanceId, Time};

impl Audit {
    /// Checks a fact about copies.
    pub(super) fn transfer(&mut self, at: Time, fact: &Fact<'_>) {
        match *fact {
            Fact::Offloading { instance, blocks } => {
                self.leaving(Place::instance(at, instance), instance, blocks);
            }
            Fact::Offloaded { instance, blocks, abandoned, cpu_blocks, beside } => {
                let place = Place::instance(at, instance);
                let room = self.config.cpu_blocks;
                self.log.check(cpu_blocks <= room, "I3", place, || {
                    format!("the CPU tier holds {cpu_blocks} blocks, of {room}")
                });
                self.log.check(beside || (abandoned == 0 && blocks > 0), "I5", place, || {
                    format!("a step waits for a copy of {blocks} blocks, {abandoned} abandoned")
                });
                let abandons = self.config.loads != Loads::Connector;
                self.log.check(abandons || abandoned == 0, "I5", place, || {
                    format!("{abandoned} blocks were dropped before they were copied")
                });
                // A copy that a step waits for begins and ends in one.
                if beside {
                    self.left(place, instance, blocks, abandoned);
                } else {
                    self.instance_heard(place, instance);
                }
            }
            Fact::Reloading { request, instance, blocks, recent, beside } => {
                let place = Place::request(at, request, instance);
                self.log.check(blocks > 0 && recent <= blocks, "I5", place, || {
                    format!("{blocks} blocks are copied back, {recent} of them soon")
                });
                if self.instance_heard(place, instance).is_some() && beside {
                    self.returning(place, instance, blocks);
                }
            }
            Fact::Reloaded { request, instance, blocks } => {
                let place = Place::request(at, request, instance);
                if self.instance_heard(place, instance).is_none() {
                    return;
                }
                if self.moves(place, Happening::Reloaded).is_some() {
                    self.instances[instance.index()].copies.returned += u64::from(blocks);
                }
            }
            Fact::Unloaded { request, instance } => {
                let place = Place::request(at, request, instance);
                if self.instance_heard(place, instance).is_none() {
                    return;
                }
                if let Some((story, _)) = self.moves(place, Happening::Unloaded) {
                    story.last = at;
                    self.instances[instance.index()].unload();
                }
            }
            Fact::Stalled { instance, .. } => {
                let place = Place::instance(at, instance);
                if self.instance_heard(place, instance).is_some() {
                    self.begins(place, instance);
                }
            }
            _ => unreachable!("only facts about copies come here"),
        }
    }

    fn leaving(&mut self, place: Place, id: InstanceId, blocks: u32) {
        let total = self.config.total_blocks;
        let Some(instance) = self.instance_heard(place, id) else { return };
        instance.copies.leaving += u64::from(blocks);
        let possible = blocks > 0 && total.is_none_or(|total| blocks <= total);
        self.log.check(possible, "I5", place, || {
            format!("a copy of {blocks} blocks begins, of {total:?}")
        });
    }

    fn left(&mut self, place: Place, id: InstanceId, blocks: u32, abandoned: u32) {
        let Some(instance) = self.instance_heard(place, id) else { return };
        let copies = &mut instance.copies;
        copies.left += u64::from(blocks) + u64::from(abandoned);
        let (left, leaving) = (copies.left, copies.leaving);
        self.log.check(left <= leaving, "I5", place, || {
            format!("{left} blocks have left, but only {leaving} began to")
        });
    }

    fn returning(&mut self, place: Place, id: InstanceId, blocks: u32) {
        let fcfs = self.config.fcfs;
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
