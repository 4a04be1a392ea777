//! The CPU tier as vLLM's offloading connector runs it.
//!
//! When a step is formed, copies of the prompt blocks that it computes are *ordered*. They are
//! submitted when the next step is launched, wait for the GPU to compute the blocks, and go one
//! after the other. Copies back are submitted with the launch of the step in which they are
//! ordered. The engine asks what is done when it has launched a step, and hears the answer with the
//! output of that step. A request is passed over while a copy is under way of something that it
//! would read, or of its own blocks.
//!
//! Blocks of a preempted request, and dropped ones, may still be copied: the launch of the step
//! that wants them waits for these copies. With asynchronous scheduling the step in flight may
//! still write to the blocks of a preempted request, so they are free once it is processed.

use super::stride::Stride;
use super::{Instance, Kit, Released, release};
use crate::live::Slot;
use blis_core::runs::RunId;
use blis_core::{Span, Time};
use blis_kv::{Hit, Table, TransferId};

/// What such a tier has to remember beside its copies.
#[derive(Clone, Default)]
pub(super) struct Connector {
    /// Copies out that are submitted with the next launch, and when the GPU has computed them.
    stores: Vec<(TransferId, u32, Time)>,
    /// Copies back that are submitted with the launch of the step that is being formed.
    loads: Vec<(TransferId, u32)>,
    /// Copies out that the step which is being formed waits for.
    awaited: Vec<TransferId>,
    /// When the engine asked for what is done: with the step in flight, and with the last one.
    asked: Option<[Time; 2]>,
    /// Requests of which not all that is computed was ordered.
    behind: Vec<Slot>,
    /// Blocks that the step in flight may still write to.
    held: Vec<(Table, Slot, Released)>,
}

impl Connector {
    pub(super) fn tables(&self) -> impl Iterator<Item = &Table> {
        self.held.iter().map(|(table, ..)| table)
    }

    /// When the engine asked, with the step in flight (0) or with the last one that was formed (1).
    pub(super) fn asked(&self, step: usize) -> Option<Time> {
        self.asked.map(|asked| asked[step])
    }

    pub(super) fn order_load(&mut self, id: TransferId, blocks: u32) {
        self.loads.push((id, blocks));
    }

    fn ask(&mut self, at: Time) {
        let [_, before] = self.asked.unwrap_or_default();
        self.asked = Some([before, at]);
    }
}

impl super::tier::TierState {
    /// Whether steps may differ by what becomes of copies, so that each has to be formed.
    pub(super) fn is_busy(&self) -> bool {
        let Connector { behind, held, asked, .. } = &self.connector;
        let copies = !self.departures.is_empty() || self.has_loads();
        (copies && asked.is_some()) || !(behind.is_empty() && held.is_empty())
    }
}

impl Instance {
    /// Whether the CPU tier is run by a connector.
    pub(super) fn connects(&self, kit: &Kit<'_>) -> bool {
        self.tier.is_some() && kit.policies.offload.copies_as_computed()
    }

    /// What is cached of a request: `known` blocks can be in the GPU's memory, `full` in the tier.
    /// `None` if it has to be passed over.
    pub(super) fn look_behind(
        &mut self,
        slot: Slot,
        known: u32,
        full: u32,
        kit: &mut Kit<'_>,
    ) -> Option<Hit> {
        let block_size = kit.engine.block_size;
        let request = &kit.live.get(slot).request;
        let tier = self.tier.as_ref()?;
        if tier.departures.iter().any(|leaving| leaving.of == Some(request.id)) {
            return None;
        }
        self.pool.touch(request.content.blocks(block_size, full), 0, full, 0);
        let mut hit = self.look_up(slot, known, kit);
        let content = &kit.live.get(slot).request.content;
        let behind = self.pool.behind(content.blocks(block_size, full), hit.blocks);
        hit.copied = behind.blocks;
        (!behind.moving).then_some(hit)
    }

    /// Blocks that requests will still want which have begun their prompts or wait for copies
    /// back. Another copy back must leave so many.
    pub(super) fn reserved(&self, kit: &Kit<'_>) -> u32 {
        let Some(tier) = self.tier.as_ref().filter(|_| self.connects(kit)) else { return 0 };
        let loads = tier.loading.iter().chain(&tier.ready);
        let loads: u32 = loads.map(|load| load.whole.saturating_sub(load.table.blocks())).sum();
        let begun = self.running.iter().filter(|running| !running.steady).map(|running| {
            let whole = running.goal().div_ceil(kit.engine.block_size);
            whole.saturating_sub(running.table.blocks())
        });
        loads + begun.sum::<u32>()
    }

    /// Orders copies of the prompt blocks that the step of `stride` computes, and asks what is
    /// done when it is launched.
    pub(super) fn order_stores(&mut self, now: Time, stride: &Stride, kit: &mut Kit<'_>) {
        let Some(tier) = &mut self.tier else { return };
        let cost = stride.step.expect("a step was formed").cost;
        tier.connector.ask(cost.launched(now));
        let computed = stride.launched(1).gpu_end;
        let mut behind = std::mem::take(&mut tier.connector.behind);
        behind.retain(|&slot| {
            let index = self.running.iter().position(|running| running.slot == slot);
            index.is_some_and(|index| !self.order_store(index, now, computed, kit))
        });
        for at in 0..self.plan.chunks().len() {
            let index = self.plan.chunks()[at].place;
            let slot = self.running.get(index).slot;
            if !behind.contains(&slot) && !self.order_store(index, now, computed, kit) {
                behind.push(slot);
            }
        }
        self.tier.as_mut().expect("seen above").connector.behind = behind;
    }

    /// Orders copies of the prompt blocks of a running request that the step which was just formed
    /// computes, by the time `computed`. Returns whether all of them could be ordered.
    fn order_store(&mut self, index: usize, now: Time, computed: Time, kit: &mut Kit<'_>) -> bool {
        let block_size = kit.engine.block_size;
        let planned = self.plan.of(index).map_or(0, |chunk| chunk.tokens);
        let running = self.running.settle(index);
        let live = kit.live.get(running.slot);
        let prompt = live.request.content.prompt_tokens();
        let full = (running.computed + planned).min(prompt) / block_size;
        let (table, slot, goal) = (running.table, running.slot, running.goal());
        let (from, upto) = (live.stored, full.min(table.shared()));
        if from >= full {
            return true;
        }
        let tier = self.tier.as_mut().expect("only a tier takes copies");
        let id = tier.next_id();
        let Ok(departure) = self.pool.start_store(&table, from.min(upto), upto, id) else {
            return false;
        };
        let live = kit.live.get_mut(slot);
        live.stored = upto;
        if let Some(departure) = departure {
            let known = goal / block_size;
            self.pool.touch(live.request.content.blocks(block_size, known), 0, known, 0);
            tier.connector.stores.push((id, departure.blocks, computed));
            let of = Some(live.request.id);
            self.depart(id, departure, of, now, kit);
        }
        upto == full
    }

    /// Submits what was ordered, as a step that was formed at `now` is launched, from `at` on.
    /// Returns until when the launch waits for copies out; `now` if it does not.
    pub(super) fn submit(&mut self, now: Time, at: Time) -> Time {
        let Some(tier) = &mut self.tier else { return now };
        let connector = &mut tier.connector;
        for (id, blocks, computed) in connector.stores.drain(..) {
            tier.out.start_in_line(at.max(computed), blocks, id);
        }
        let awaited = connector.awaited.drain(..).map(|id| tier.out.done_at(id)).max();
        let wait = awaited.map_or(Span::ZERO, |until| until.saturating_since(at));
        for (id, blocks) in connector.loads.drain(..) {
            tier.back.start_in_line(at + wait, blocks, id);
        }
        now + wait
    }

    /// Nothing was scheduled. The engine submits what was ordered and asks for what is done.
    /// Returns until when that takes.
    pub(super) fn pass_turn(&mut self, now: Time, kit: &Kit<'_>) -> Time {
        let free = self.submit(now, now);
        if self.connects(kit) {
            let tier = self.tier.as_mut().expect("it has a connector");
            tier.connector.ask(free);
        }
        free
    }

    /// The blocks of a preempted request are free when the step in flight is processed, or now if
    /// there is none.
    pub(super) fn free_later(
        &mut self,
        mut table: Table,
        slot: Slot,
        why: Released,
        now: Time,
        kit: &mut Kit<'_>,
    ) {
        let tier = self.tier.as_mut().expect("it has a connector");
        let request = kit.live.get(slot).request.id;
        let own = tier.departures.iter().filter(|leaving| leaving.of == Some(request));
        tier.connector.awaited.extend(own.map(|leaving| leaving.id));
        if self.in_flight.steps.is_empty() {
            release(&mut self.pool, &mut table, slot, why, now, kit);
        } else {
            tier.connector.held.push((table, slot, why));
        }
    }

    /// The step in flight has been processed.
    pub(super) fn free_held(&mut self, now: Time, kit: &mut Kit<'_>) {
        let Some(tier) = &mut self.tier else { return };
        for (mut table, slot, why) in tier.connector.held.drain(..) {
            release(&mut self.pool, &mut table, slot, why, now, kit);
        }
    }

    /// The blocks of an idle run are used again; if they are being copied out the step waits.
    pub(super) fn wait_for_copy(&mut self, run: RunId) {
        let Some(tier) = &mut self.tier else { return };
        if let Some(id) = self.pool.moved_by(run)
            && tier.departures.iter().any(|leaving| leaving.id == id)
            && !tier.connector.awaited.contains(&id)
        {
            tier.connector.awaited.push(id);
        }
    }
}
