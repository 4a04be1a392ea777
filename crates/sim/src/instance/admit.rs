//! How waiting requests join the batch: what of their prompts is cached, whether the rest fits, and
//! who waits for what the CPU tier has.

use super::plan::Chunk;
use super::running::Running;
use super::{Instance, Kit, share};
use crate::live::{Place, Slot};
use blis_core::{Span, Time};
use blis_kv::Hit;
use blis_metrics::Fact;

impl Instance {
    /// Lets waiting requests join the batch while budget, places and blocks allow; the first that
    /// does not fit ends it.
    pub(super) fn admit_waiting(&mut self, now: Time, mut budget: u32, kit: &mut Kit<'_>) {
        let places = kit.engine.max_num_running_reqs as usize;
        if budget == 0 || self.running.len() >= places {
            return;
        }
        self.queue.refresh(&kit.rules(), &self.pool, kit.live, now);
        while budget > 0 && self.running.len() < places {
            match self.next_ready(budget, now, kit) {
                Ok(None) => break,
                Ok(Some((running, chunk))) => {
                    budget -= chunk;
                    self.join(running, chunk, now, kit);
                }
                // Whoever comes later does not take its room.
                Err(()) => return,
            }
        }
        let mut passed_over = Vec::new();
        self.admit_from_queue(now, budget, &mut passed_over, kit);
        for slot in passed_over {
            self.queue.put_back(slot, &kit.rules(), &self.pool, kit.live, now);
        }
    }

    /// Lets requests from the queue join; those for which the tier is not ready are left out.
    fn admit_from_queue(
        &mut self,
        now: Time,
        mut budget: u32,
        passed_over: &mut Vec<Slot>,
        kit: &mut Kit<'_>,
    ) {
        let block_size = kit.engine.block_size;
        let places = kit.engine.max_num_running_reqs as usize;
        while budget > 0
            && self.running.len() < places
            && let Some(slot) = self.queue.head()
        {
            let live = kit.live.get(slot);
            // It was preempted, and the token that it goes on from is on its way.
            if kit.engine.stages > 1 && live.preemptions > 0 && self.in_flight.is_awaited(slot) {
                break;
            }
            let goal = live.request.content.prompt_tokens() + live.generated;
            // At least the last token is computed, so its block is never looked up.
            let known = (goal - 1) / block_size;
            let hit = if self.connects(kit) {
                let Some(hit) = self.look_behind(slot, known, goal / block_size, kit) else {
                    self.queue.pop();
                    passed_over.push(slot);
                    continue;
                };
                hit
            } else {
                self.look_up(slot, known, kit)
            };
            let beside = hit.copied > 0 && Instance::loads_beside(kit);
            let ready = if beside { hit.blocks } else { hit.blocks + hit.copied };
            let cached = ready * block_size;
            let Some(chunk) = self.first_chunk(goal - cached, budget, kit) else { break };
            let reach = cached + chunk + kit.engine.lookahead();
            let first = reach.div_ceil(block_size) - hit.blocks;
            let wanted = if kit.engine.reserve_full_prompt {
                goal.max(reach).div_ceil(block_size) - hit.blocks
            } else if beside {
                hit.copied
            } else {
                first
            };
            let spare = if self.running.is_empty() { 0 } else { kit.engine.watermark_blocks };
            let reserved = if beside { hit.copied + self.reserved(kit) } else { 0 };
            if !self.pool.fits(&hit, wanted.max(reserved).saturating_add(spare)) {
                break;
            }
            self.queue.pop();
            if beside {
                self.load(slot, hit, now, kit);
                continue;
            }
            if hit.copied > 0 {
                self.note_reload(slot, hit.blocks, ready, false, now, kit);
            }
            let mut table = self.pool.claim(hit);
            self.make_room(first, now, kit);
            self.pool.grow(&mut table, first);
            if hit.copied > 0 {
                let reloaded = kit.live.get(slot).request.content.blocks(block_size, ready);
                self.pool.commit(&mut table, reloaded);
            }
            let running = Running::new(slot, kit.live.get(slot), table, cached, block_size);
            self.join(running, chunk, now, kit);
            budget -= chunk;
        }
    }

    /// A request joins the batch, to compute `chunk` tokens.
    fn join(&mut self, running: Running, chunk: u32, now: Time, kit: &mut Kit<'_>) {
        self.note_scheduled(&running, now, kit);
        let chunk = Chunk::catching_up(self.running.len(), chunk);
        self.plan.add(chunk);
        self.running.push(running);
        if kit.engine.cache_on_allocation {
            self.commit_planned(chunk, kit);
        }
        self.note_change();
    }

    /// What is cached of the first `known` blocks of a request.
    ///
    /// Blocks of generated tokens are committed when a request leaves the batch. Until then only a
    /// request that shares everything before them could find them, so they are looked for here.
    pub(super) fn look_up(&mut self, slot: Slot, known: u32, kit: &mut Kit<'_>) -> Hit {
        let block_size = kit.engine.block_size;
        loop {
            let live = kit.live.get(slot);
            let wanted = live.request.content.blocks(block_size, known);
            // What no other request can have is here only if the request was preempted.
            let wanted = if live.preemptions == 0 { wanted.common() } else { wanted };
            let hit = self.pool.lookup(wanted);
            let behind = hit.leaf().filter(|_| hit.blocks < wanted.common().len());
            let Some(index) = behind.and_then(|leaf| self.running.uncommitted(leaf, block_size))
            else {
                return hit;
            };
            self.commit_full_blocks(index, kit);
        }
    }

    /// Writes down that a request leaves the queue for the batch.
    fn note_scheduled(&mut self, running: &Running, now: Time, kit: &mut Kit<'_>) {
        let live = kit.live.get_mut(running.slot);
        let (cached_tokens, total_tokens) = (running.computed, running.goal());
        live.place = Place::Running;
        live.scheduled = now;
        live.stalled = self.tier.as_ref().map_or(Span::ZERO, |tier| tier.stalled());
        if live.first_token.is_none() {
            live.split.queue += now.since(live.enqueued);
        }
        if live.cached_tokens.is_none() {
            live.cached_tokens = Some(cached_tokens);
            live.standing = live.priority;
            // Who is scheduled after somebody who joined the queue later was overtaken.
            kit.tally.overtaken += u64::from(live.turn < self.latest_turn);
            self.latest_turn = self.latest_turn.max(live.turn);
            self.prompt_tokens += u64::from(live.request.content.prompt_tokens());
            self.cached_tokens += u64::from(cached_tokens);
            self.cache_hit_rate = share(self.cached_tokens, self.prompt_tokens);
        }
        if let Some(future) = &mut kit.future {
            future.note_scheduled(running.slot);
        }
        let request = live.request.id;
        let fact = Fact::Scheduled { request, instance: self.id, cached_tokens, total_tokens };
        kit.listener.hear(now, &fact);
    }
}
