//! Batch formation, as vLLM's v1 scheduler does it.
//!
//! A step begins: running requests in order get their next chunk of the token budget, preempting if
//! blocks run out; then, unless somebody was preempted, waiting requests join while budget, places
//! and blocks allow. Who computes how much is a [`BatchPlan`](super::plan::BatchPlan); what it does
//! lands when the step ends (`land.rs`).

use super::clock::{Cost, Launched, Turn};
use super::plan::Chunk;
use super::running::Running;
use super::stride::{Step, Stride};
use super::{Instance, Kit, Released, count, release};
use crate::config::{Engine, Preemption, Prefill};
use crate::live::Place;
use blis_core::{Span, Time};
use blis_latency::StepShape;
use blis_metrics::{Batch, Fact};
use blis_policy::RunningView;

impl Instance {
    /// Begins the next step, or a run of them. Returns when it ends; `NEVER` if there is nothing to
    /// do.
    pub(super) fn begin(&mut self, now: Time, kit: &mut Kit<'_>) -> Time {
        let loads = self.tier.as_ref().is_some_and(|tier| tier.has_loads());
        if self.tier.is_some() {
            self.copy_idle(now, kit);
        }
        let nobody = self.running.is_empty() && self.queue.is_empty() && !loads;
        if nobody && self.in_flight.steps.is_empty() {
            self.submit(now, now);
            return Time::NEVER;
        }
        self.running.keep_counts_small(kit.engine.block_size);
        let stride = self.glide(now, kit).or_else(|| self.form_step(now, kit));
        let Some(stride) = stride.or_else(|| self.form_after_unloading(now, kit)) else {
            let done = self.tier.as_ref().and_then(|tier| tier.next_done());
            // One that is done may not have been asked for yet.
            return done.expect("a copy is under way, or something was scheduled").max(now);
        };
        let end = stride.end();
        self.stride = Some(stride);
        end
    }

    /// A step, or a turn that waits for the one in flight; `None` if nothing can be scheduled
    /// before a copy is done.
    fn form_step(&mut self, now: Time, kit: &mut Kit<'_>) -> Option<Stride> {
        self.plan.clear();
        self.in_flight.number += 1;
        let preempted = self.plan_step(now, kit);
        if self.tier.is_some() {
            self.copy_idle(now, kit);
        }
        let shape = self.shape(kit);
        if shape.prefill_tokens + shape.decode_seqs == 0 {
            let in_flight = !self.in_flight.steps.is_empty();
            let waits = self.tier.is_some() || in_flight;
            if preempted && !in_flight {
                // Whoever was first in line gave way to those behind.
                return self.form_step(now, kit);
            }
            if in_flight && self.in_flight.in_the_way(kit.engine).is_none() {
                // A step that nobody is part of is in flight too.
                return self.form_step(now, kit);
            }
            assert!(waits, "{:?} has work at {now} but scheduled none of it", self.id);
            let free = self.pass_turn(now, kit);
            return self.wait_for_flight(now, free);
        }
        if kit.policies.are_detailed() {
            self.state_formed(now, kit);
        }
        let mut cost = Cost::of(&shape, kit);
        cost.stall = self.stall(now, cost.host.schedule, kit);
        let turn = (kit.engine.stages > 1).then(|| self.pipe(now, &shape, &mut cost, kit));
        let step = Step { batch: self.batch_of(&shape), beyond: kit.latency.beyond(&shape), cost };
        let stride = if let Some(turn) = turn {
            Stride::turns(now, turn, Span::ZERO, 1, step)
        } else if kit.engine.async_scheduling {
            Stride::turns(now, cost.turn(now, self.launched()), Span::ZERO, 1, step)
        } else {
            Stride::even(now, cost.alone(), 1, step)
        };
        if self.connects(kit) {
            self.order_stores(now, &stride, kit);
        }
        Some(stride)
    }

    /// Chooses who computes how much. Returns whether somebody was preempted.
    fn plan_step(&mut self, now: Time, kit: &mut Kit<'_>) -> bool {
        if kit.engine.prefill != Prefill::Mixed && self.plan_prompts(now, kit) {
            return false;
        }
        let (budget, preempted) = self.continue_running(now, kit);
        if kit.engine.prefill == Prefill::Mixed {
            self.commit_chunks(kit);
            if !preempted {
                self.admit_waiting(now, budget, kit);
            }
        }
        preempted
    }

    /// Plans a step of prompts only, if some can be computed; whoever decodes is left out.
    fn plan_prompts(&mut self, now: Time, kit: &mut Kit<'_>) -> bool {
        let mut budget = kit.engine.max_num_scheduled_tokens;
        if self.running.catches_up() {
            self.leave_out_all(now, kit);
            let preempted;
            (budget, preempted) = self.continue_from(0, budget, false, now, kit);
            self.commit_chunks(kit);
            if preempted {
                return !self.plan.chunks().is_empty();
            }
        }
        self.admit_waiting(now, budget, kit);
        let planned = !self.plan.chunks().is_empty();
        if planned {
            self.leave_out_all(now, kit);
        }
        planned
    }

    /// Makes the blocks known to the prefix cache that the chunks of the plan will fill.
    fn commit_chunks(&mut self, kit: &Kit<'_>) {
        if kit.engine.cache_on_allocation {
            for at in 0..self.plan.chunks().len() {
                self.commit_planned(self.plan.chunks()[at], kit);
            }
        }
    }

    /// The turn that sends a step through the stages of a pipeline, each of whose GPUs is occupied
    /// by its share of the step's time.
    fn pipe(&mut self, now: Time, shape: &StepShape, cost: &mut Cost, kit: &Kit<'_>) -> Turn {
        let mut spans = std::mem::take(&mut self.spans);
        spans.resize(kit.engine.stages as usize, Span::ZERO);
        kit.latency.divide(shape, cost.gpu, &mut spans);
        let turn = self.in_flight.turn(now, cost, &spans, kit.engine);
        self.spans = spans;
        cost.gpu = cost.gpu / u64::from(kit.engine.stages);
        turn
    }

    /// States who catches up in the step that begins, if anybody does.
    #[cold]
    fn state_formed(&self, now: Time, kit: &mut Kit<'_>) {
        let catches_up = |chunk: &&Chunk| !self.running.get(chunk.place).decodes();
        let chunk = |chunk: &Chunk| {
            let slot = self.running.get(chunk.place).slot;
            (kit.live.get(slot).request.id, chunk.tokens)
        };
        let chunks: Vec<_> = self.plan.chunks().iter().filter(catches_up).map(chunk).collect();
        if !chunks.is_empty() {
            let (instance, chunks) = (self.id, &chunks[..]);
            kit.listener.hear(now, &Fact::Formed { instance, chunks });
        }
    }

    /// Makes the blocks known to the prefix cache that a chunk will fill.
    pub(super) fn commit_planned(&mut self, chunk: Chunk, kit: &Kit<'_>) {
        let block_size = kit.engine.block_size;
        let running = self.running.get_mut(chunk.place);
        // Of a draft nobody knows yet.
        let full = (running.computed + chunk.tokens).min(running.goal()) / block_size;
        let content = &kit.live.get(running.slot).request.content;
        self.pool.commit(&mut running.table, content.blocks(block_size, full));
    }

    /// A turn that forms no step, because everything that could be computed is under way. The host
    /// has nothing else to do from `free` on.
    fn wait_for_flight(&self, now: Time, free: Time) -> Option<Stride> {
        let before = self.launched()?;
        Some(Stride::wait(now, before.end(free), before))
    }

    /// The first step in flight.
    pub(super) fn launched(&self) -> Option<Launched> {
        self.in_flight.steps.front().map(|flight| flight.launched)
    }

    /// The step that can be formed once requests with reloaded blocks that stand in each other's
    /// way have given up theirs; `None` if there is a copy to wait for.
    fn form_after_unloading(&mut self, now: Time, kit: &mut Kit<'_>) -> Option<Stride> {
        if self.tier.as_ref().is_some_and(|tier| tier.next_done().is_some()) {
            return None;
        }
        self.unload_others(now, kit);
        let stride = self.form_step(now, kit);
        assert!(stride.is_some(), "{:?} has work at {now} but scheduled none of it", self.id);
        stride
    }

    /// Gives every running request its next chunk. Returns the budget left and whether somebody was
    /// preempted.
    fn continue_running(&mut self, now: Time, kit: &mut Kit<'_>) -> (u32, bool) {
        let budget = kit.engine.max_num_scheduled_tokens;
        if !kit.engine.is_steady() {
            return self.continue_from(0, budget, true, now, kit);
        }
        let steady = self.running.steady_total();
        let enough = self.full.len() <= self.pool.available() as usize;
        if let (true, Some(behind)) = (steady <= budget && enough, self.running.behind_steady()) {
            self.feed_full(now, kit);
            return self.continue_from(behind, budget - steady, true, now, kit);
        }
        self.full.clear();
        self.running.settle_all();
        self.continue_from(0, budget, true, now, kit)
    }

    /// Gives the running requests from `index` on, whose counters are settled, their next chunk,
    /// one by one; those that decode only `with_decodes`.
    fn continue_from(
        &mut self,
        mut index: usize,
        mut budget: u32,
        with_decodes: bool,
        now: Time,
        kit: &mut Kit<'_>,
    ) -> (u32, bool) {
        let mut preempted = false;
        while index < self.running.len() {
            let running = self.running.get(index);
            let left_out = !with_decodes && running.decodes();
            if left_out || running.surely_left() == 0 || self.is_too_early(running, kit.engine) {
                // Or its last token is on its way, or the one that it goes on from.
                index += 1;
                continue;
            }
            let chunk = self.next_chunk(index, budget, kit);
            if chunk.tokens == 0 {
                self.leave_out(index, now, kit);
                index += 1;
                continue;
            }
            let reach = running.reached() + chunk.tokens + kit.engine.lookahead();
            let blocks = reach.div_ceil(kit.engine.block_size);
            let blocks = blocks.saturating_sub(running.table.blocks());
            let mut survives = true;
            while blocks > self.pool.available() && survives {
                let victim = self.choose_victim(kit);
                preempted = true;
                let steady = self.running.get(victim).steady;
                self.preempt(victim, now, kit);
                let planned = self.plan.forget(victim);
                survives = victim != index;
                // A victim that was given its chunk in this step returns it.
                if victim < index {
                    budget += if steady { 1 } else { planned };
                    index -= 1;
                }
            }
            if !survives {
                // Whoever is behind it waits for the next step.
                for behind in index..self.running.len() {
                    self.leave_out(behind, now, kit);
                }
                break;
            }
            self.make_room(blocks, now, kit);
            self.grow(index, blocks, kit);
            if !self.running.get(index).steady {
                self.plan.add(Chunk { place: index, ..chunk });
            }
            budget -= chunk.tokens;
            index += 1;
        }
        (budget, preempted)
    }

    /// Whether the step that is formed is too early for a request to go on from the token that it
    /// gets from a step in flight.
    fn is_too_early(&self, running: &Running, engine: &Engine) -> bool {
        let again = running.step + engine.stages;
        let is_far = engine.async_scheduling && self.in_flight.number >= again;
        engine.stages > 1 && running.fresh > 0 && !is_far
    }

    /// What a running request, whose counters are settled, computes next: what it lacks, and its
    /// draft.
    fn next_chunk(&self, place: usize, budget: u32, kit: &Kit<'_>) -> Chunk {
        let running = self.running.get(place);
        let missing = running.goal() - running.computed;
        let speculation = kit.engine.speculation.as_ref();
        let Some(speculation) = speculation.filter(|_| running.has_draft) else {
            return Chunk::catching_up(place, chunk_limit(missing, budget, kit));
        };
        let tokens = chunk_limit(1 + speculation.tokens, budget, kit);
        let key = (kit.seed, kit.live.get(running.slot).request.id);
        let right = speculation.accepts(tokens.saturating_sub(1), key, running.generated);
        Chunk { place, tokens, kept: tokens.min(1 + right).min(running.left()) }
    }

    /// The first chunk of a request that lacks `missing` tokens; `None` if it waits for a step that
    /// has room for all of them.
    pub(super) fn first_chunk(&self, missing: u32, budget: u32, kit: &Kit<'_>) -> Option<u32> {
        let chunk = chunk_limit(missing, budget, kit);
        let is_cut = chunk < chunk_limit(missing, u32::MAX, kit);
        let waits = kit.engine.prefill == Prefill::Whole && !self.plan.chunks().is_empty();
        (!(is_cut && waits)).then_some(chunk)
    }

    /// A request is not part of the step that begins, so it does not decode step after step any
    /// more.
    fn leave_out(&mut self, index: usize, now: Time, kit: &mut Kit<'_>) {
        let running = self.running.get(index);
        if running.steady {
            if kit.engine.async_scheduling {
                self.in_flight.part(running.slot, 1);
            } else {
                kit.live.get_mut(running.slot).last_token = now;
            }
            self.running.unsteady(index);
        }
    }

    /// No steady request is part of the step that begins.
    fn leave_out_all(&mut self, now: Time, kit: &mut Kit<'_>) {
        self.full.clear();
        for index in 0..self.running.len() {
            self.leave_out(index, now, kit);
        }
    }

    fn choose_victim(&mut self, kit: &mut Kit<'_>) -> usize {
        self.running.settle_all();
        let view = |running: &Running| {
            let live = kit.live.get(running.slot);
            RunningView {
                class: running.class,
                arrival: live.request.arrival,
                priority: live.standing,
                computed_tokens: running.computed,
                generated: running.generated,
                blocks: running.table.blocks(),
            }
        };
        let views: Vec<RunningView> = self.running.iter().map(view).collect();
        let victim = kit.policies.preempt.victim(&views);
        assert!(victim < views.len(), "the victim is a running request");
        kit.tally.spared_last += u64::from(victim + 1 < views.len());
        victim
    }

    /// Sends a running request back to the queue: its blocks are released, its generated tokens are
    /// kept. If its last token is on its way it has nothing to wait for.
    fn preempt(&mut self, index: usize, now: Time, kit: &mut Kit<'_>) {
        let awaited = self.awaited(index);
        self.leave_out(index, now, kit);
        self.commit_full_blocks(index, kit);
        let mut running = self.running.remove(index);
        // It will look for all of them when it comes back.
        let content = &kit.live.get(running.slot).request.content;
        let full = content.blocks(kit.engine.block_size, running.table.full());
        self.pool.commit_all(&mut running.table, full);
        match kit.engine.preemption {
            Preemption::Recompute => self.copy_out(&running.table, now, kit),
            Preemption::Swap => self.swap_out(&running.table, now, kit),
        }
        let slot = running.slot;
        let ended = running.left() == 0;
        let why = if ended {
            Released::Done { session_live: self.end_session(slot, kit) }
        } else {
            Released::ComesBack
        };
        if self.connects(kit) {
            self.free_later(running.table, slot, why, now, kit);
        } else {
            release(&mut self.pool, &mut running.table, slot, why, now, kit);
        }
        self.note_change();
        let stalled = self.tier.as_ref().map_or(Span::ZERO, |tier| tier.stalled());
        let live = kit.live.get_mut(slot);
        live.place = if ended { Place::Ended } else { Place::Waiting };
        live.generated = running.generated - awaited;
        live.preemptions += 1;
        live.enqueued = now;
        if live.first_token.is_none() {
            let stalled = stalled - live.stalled;
            live.split.reload += stalled;
            live.split.recompute += now.since(live.scheduled) - stalled;
        }
        let (request, lost_tokens) = (live.request.id, running.computed);
        let fact = Fact::Preempted { request, instance: self.id, lost_tokens, ended };
        kit.listener.hear(now, &fact);
        kit.tally.in_vain += 1;
        if awaited > 0 && kit.engine.stages == 1 {
            self.in_flight.part(slot, awaited);
        }
        if !ended {
            self.queue.put_back(slot, &kit.rules(), &self.pool, kit.live, now);
        }
    }

    /// Evicts idle blocks until `blocks` are free. The caller has made sure that there are enough.
    #[inline]
    pub(super) fn make_room(&mut self, blocks: u32, now: Time, kit: &mut Kit<'_>) {
        if self.pool.shortfall(blocks) > 0 {
            self.evict(blocks, now, kit);
        }
    }

    fn evict(&mut self, blocks: u32, now: Time, kit: &mut Kit<'_>) {
        let (mut evicted, mut copied) = (0, 0);
        while self.pool.shortfall(blocks) > 0 {
            let mut victim = self.pool.first_idle().expect("there are enough idle blocks");
            let missing = self.pool.shortfall(blocks);
            if self.tier.is_some() && kit.policies.offload.copies_on_evict() {
                let copy = self.pool.copy_now(victim, missing, now.as_nanos());
                (victim, copied) = (copy.0, copied + copy.1);
            }
            self.wait_for_copy(victim);
            evicted += self.pool.evict(victim, missing);
        }
        self.note_victims(copied, now, kit);
        kit.listener.hear(now, &Fact::Evicted { instance: self.id, blocks: evicted });
    }

    /// Gives a running request `blocks` free blocks.
    pub(super) fn grow(&mut self, index: usize, blocks: u32, kit: &Kit<'_>) {
        if blocks > 0 {
            self.pool.grow(&mut self.running.settle(index).table, blocks);
            self.running.note_due(index, kit.engine.block_size);
        }
    }

    /// What the step that begins computes: one token of each steady request, and the others'
    /// chunks.
    fn shape(&mut self, kit: &Kit<'_>) -> StepShape {
        let mut shape = self.steady_shape(kit);
        for &Chunk { place, tokens, .. } in self.plan.chunks() {
            let running = self.running.get(place);
            if running.decodes() {
                let context = running.computed + tokens;
                shape.decode_seqs += 1;
                shape.draft_tokens += tokens - 1;
                shape.decode_context += u64::from(context);
                if self.spread {
                    shape.decode_longest = shape.decode_longest.max(context);
                }
            } else {
                let (past, new) = (u64::from(running.computed), u64::from(tokens));
                shape.prefill_seqs += 1;
                shape.prefill_tokens += tokens;
                shape.prefill_past_tokens += past;
                shape.prefill_attention_pairs += new * past + new * (new + 1) / 2;
            }
        }
        if kit.engine.stages > 1 {
            // The others are in other steps.
            let all = self.running.len().max(1) as u64;
            shape.shared_context = shape.shared_context * u64::from(shape.decode_seqs) / all;
        }
        shape
    }

    /// What the steady requests compute in a step.
    pub(super) fn steady_shape(&mut self, kit: &Kit<'_>) -> StepShape {
        let mut shape = StepShape {
            decode_seqs: self.running.steady_total(),
            decode_context: self.running.steady_context(),
            ..StepShape::default()
        };
        if self.spread {
            shape.decode_longest = self.running.steady_longest();
            shape.shared_context = self.pool.shared() * u64::from(kit.engine.block_size);
        }
        shape
    }

    pub(super) fn batch_of(&self, shape: &StepShape) -> Batch {
        Batch {
            prefill_seqs: shape.prefill_seqs,
            prefill_tokens: shape.prefill_tokens,
            decode_seqs: shape.decode_seqs,
            draft_tokens: shape.draft_tokens,
            wasted_tokens: self.plan.wasted(),
            running: count(self.running.len()),
            waiting: count(self.queue.len()),
        }
    }
}

/// The next chunk of a request that lacks `missing` tokens.
fn chunk_limit(missing: u32, budget: u32, kit: &Kit<'_>) -> u32 {
    let threshold = kit.engine.long_prefill_token_threshold;
    let capped = if threshold > 0 { missing.min(threshold) } else { missing };
    capped.min(budget)
}
