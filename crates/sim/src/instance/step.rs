//! Batch formation and what a step does, as vLLM's v1 scheduler does it.
//!
//! A step begins: running requests in order get their next chunk of the token budget, preempting if blocks run out;
//! then, unless somebody was preempted, waiting requests join while budget, places and blocks allow. All effects
//! land when it ends: tokens, full blocks for the prefix cache, finished requests, freed blocks.

use super::stride::Stride;
use super::{Idle, Instance, Kit, Running, count};
use crate::config::Pace;
use crate::live::Place;
use blis_core::{SloClass, Span, Time};
use blis_latency::StepShape;
use blis_metrics::{Batch, Fact, Status};
use blis_policy::RunningView;

/// Steps of a glide whose durations differ are planned at most this far ahead.
const UNEVEN_GLIDE_STEPS: u32 = 64;

impl Running {
    /// Whether it generates one token a step; otherwise it is catching up on its prompt, or after a preemption on
    /// prompt and output.
    fn decodes(&self) -> bool {
        self.generated > 0 && self.goal - self.computed == 1
    }
}

impl Instance {
    /// Begins the next step, or a run of them. Returns when it ends; `NEVER` if there is nothing to do.
    pub(super) fn begin(&mut self, now: Time, kit: &mut Kit<'_>) -> Time {
        if self.running.is_empty() && self.queue.is_empty() {
            return Time::NEVER;
        }
        let stride = self.glide(now, kit).unwrap_or_else(|| self.form_step(now, kit));
        let end = stride.end();
        self.stride = Some(stride);
        end
    }

    fn form_step(&mut self, now: Time, kit: &mut Kit<'_>) -> Stride {
        let (budget, preempted) = self.continue_running(now, kit);
        if !preempted {
            self.admit_waiting(now, budget, kit);
        }
        let shape = self.shape();
        assert!(
            shape.prefill_tokens + shape.decode_seqs > 0,
            "{:?} has work at {now} but scheduled none of it",
            self.id
        );
        Stride::step(now, kit.latency.predict(&shape), self.batch_of(&shape))
    }

    /// Gives every running request its next chunk. Returns the budget left and whether somebody was preempted.
    fn continue_running(&mut self, now: Time, kit: &mut Kit<'_>) -> (u32, bool) {
        let mut budget = kit.engine.max_num_scheduled_tokens;
        let mut preempted = false;
        let mut index = 0;
        while index < self.running.len() {
            let running = &self.running[index];
            let chunk = chunk_limit(running.goal - running.computed, budget, kit);
            if chunk == 0 {
                self.skip(index, now, kit);
                index += 1;
                continue;
            }
            let end = running.computed + chunk;
            let blocks = end.div_ceil(kit.engine.block_size) - running.table.blocks();
            let mut survives = true;
            while blocks > self.pool.available() && survives {
                let victim = self.choose_victim(kit);
                preempted = true;
                budget += self.running[victim].chunk_given(index, victim);
                self.preempt(victim, now, kit);
                survives = victim != index;
                index -= usize::from(victim < index);
            }
            if survives {
                self.make_room(blocks, now, kit);
                let running = &mut self.running[index];
                self.pool.grow(&mut running.table, blocks);
                running.chunk = chunk;
                budget -= chunk;
                index += 1;
            }
        }
        (budget, preempted)
    }

    /// Lets waiting requests join the batch while budget, places and blocks allow; the first that does not fit ends it.
    fn admit_waiting(&mut self, now: Time, mut budget: u32, kit: &mut Kit<'_>) {
        let block_size = kit.engine.block_size;
        let places = kit.engine.max_num_running_reqs as usize;
        self.queue.refresh(&kit.rules, kit.live, now);
        while budget > 0
            && self.running.len() < places
            && let Some(slot) = self.queue.head()
        {
            let live = kit.live.get_mut(slot);
            let goal = live.request.content.prompt_tokens() + live.generated;
            // At least the last token is computed, so its block is never looked up.
            let known = (goal - 1) / block_size;
            live.request.content.hash_blocks(block_size, known, &mut live.hashes);
            let hit = self.pool.lookup(&live.hashes[..known as usize]);
            let cached = hit.blocks * block_size;
            let chunk = chunk_limit(goal - cached, budget, kit);
            let first = (cached + chunk).div_ceil(block_size) - hit.blocks;
            let wanted = if kit.engine.reserve_full_prompt {
                goal.div_ceil(block_size) - hit.blocks
            } else {
                first
            };
            let spare = if self.running.is_empty() { 0 } else { kit.engine.watermark_blocks };
            if !self.pool.fits(&hit, wanted.saturating_add(spare)) {
                break;
            }
            self.queue.pop();
            let mut table = self.pool.claim(hit);
            self.make_room(first, now, kit);
            self.pool.grow(&mut table, first);
            budget -= chunk;
            let running = Running {
                table,
                computed: cached,
                goal,
                chunk,
                ..self.scheduled(slot, cached, now, kit)
            };
            self.running.push(running);
        }
    }

    /// Writes down that `slot` leaves the queue for the batch.
    fn scheduled(
        &mut self,
        slot: crate::live::Slot,
        cached_tokens: u32,
        now: Time,
        kit: &mut Kit<'_>,
    ) -> Running {
        let live = kit.live.get_mut(slot);
        live.place = Place::Running;
        live.scheduled = now;
        if live.first_token.is_none() {
            live.split.queue += now.since(live.enqueued);
        }
        let prompt_tokens = live.request.content.prompt_tokens();
        if live.cached_tokens.is_none() {
            live.cached_tokens = Some(cached_tokens);
            self.prompt_tokens += u64::from(prompt_tokens);
            self.cached_tokens += u64::from(cached_tokens);
        }
        let total_tokens = prompt_tokens + live.generated;
        let request = live.request.id;
        let fact = Fact::Scheduled { request, instance: self.id, cached_tokens, total_tokens };
        kit.listener.hear(now, &fact);
        Running {
            slot,
            class: live.request.class,
            steady: false,
            computed: 0,
            goal: 0,
            chunk: 0,
            generated: live.generated,
            left: live.request.output_tokens - live.generated,
            table: blis_kv::Table::default(),
        }
    }

    /// The token budget ran out before this request: it is not part of the step.
    fn skip(&mut self, index: usize, now: Time, kit: &mut Kit<'_>) {
        let running = &mut self.running[index];
        running.chunk = 0;
        if running.steady {
            running.steady = false;
            self.steady[running.class.index()] -= 1;
            kit.live.get_mut(running.slot).last_token = now;
        }
    }

    fn choose_victim(&self, kit: &Kit<'_>) -> usize {
        let views: Vec<RunningView> = self
            .running
            .iter()
            .map(|running| {
                let live = kit.live.get(running.slot);
                RunningView {
                    class: running.class,
                    arrival: live.request.arrival,
                    priority: live.priority,
                    computed_tokens: running.computed,
                    generated: running.generated,
                    blocks: running.table.blocks(),
                }
            })
            .collect();
        let victim = kit.preempt.victim(&views);
        assert!(victim < views.len(), "the victim is a running request");
        victim
    }

    /// Sends a running request back to the queue: its blocks are released, its generated tokens are kept.
    fn preempt(&mut self, index: usize, now: Time, kit: &mut Kit<'_>) {
        self.skip(index, now, kit);
        let mut running = self.running.remove(index);
        self.pool.release(&mut running.table);
        let live = kit.live.get_mut(running.slot);
        live.place = Place::Waiting;
        live.generated = running.generated;
        live.preemptions += 1;
        live.enqueued = now;
        if live.first_token.is_none() {
            live.split.recompute += now.since(live.scheduled);
        }
        let request = live.request.id;
        let lost_tokens = running.computed;
        kit.listener.hear(now, &Fact::Preempted { request, instance: self.id, lost_tokens });
        self.queue.put_back(running.slot, &kit.rules, kit.live, now);
    }

    /// Evicts idle blocks until `blocks` are free. The caller has made sure that there are enough.
    fn make_room(&mut self, blocks: u32, now: Time, kit: &mut Kit<'_>) {
        let mut evicted = 0;
        while self.pool.shortfall(blocks) > 0 {
            let victim = self.evict.victim(&Idle(&self.pool));
            evicted += self.pool.evict(victim, self.pool.shortfall(blocks));
        }
        if evicted > 0 {
            kit.listener.hear(now, &Fact::Evicted { instance: self.id, blocks: evicted });
        }
    }

    fn shape(&self) -> StepShape {
        let mut shape = StepShape::default();
        for running in self.running.iter().filter(|running| running.chunk > 0) {
            if running.decodes() {
                shape.decode_seqs += 1;
                shape.decode_context += u64::from(running.goal);
            } else {
                let (past, new) = (u64::from(running.computed), u64::from(running.chunk));
                shape.prefill_seqs += 1;
                shape.prefill_tokens += running.chunk;
                shape.prefill_past_tokens += past;
                shape.prefill_attention_pairs += new * past + new * (new + 1) / 2;
            }
        }
        shape
    }

    fn batch_of(&self, shape: &StepShape) -> Batch {
        Batch {
            prefill_seqs: shape.prefill_seqs,
            prefill_tokens: shape.prefill_tokens,
            decode_seqs: shape.decode_seqs,
            running: count(self.running.len()),
            waiting: count(self.queue.len()),
        }
    }

    /// A run of steps, if every running request decodes, none can join or leave and no block has to be evicted.
    fn glide(&mut self, now: Time, kit: &mut Kit<'_>) -> Option<Stride> {
        let length = count(self.running.len());
        let budget = kit.engine.max_num_scheduled_tokens;
        let crowded = length == budget || length >= kit.engine.max_num_running_reqs;
        if kit.pace == Pace::Stepwise
            || self.steady.iter().sum::<u32>() < length
            || length > budget
            || length == 0
            || !(self.queue.is_empty() || crowded)
        {
            return None;
        }
        let block_size = kit.engine.block_size;
        let (mut left, mut room, mut context) = (u32::MAX, u32::MAX, 0);
        for running in &self.running {
            left = left.min(running.left);
            room = room.min(running.table.blocks() * block_size - running.computed);
            context += u64::from(running.goal);
        }
        // In n steps a request takes at most n / block_size + 1 blocks.
        let covered = (self.pool.free() / length).saturating_sub(1).saturating_mul(block_size);
        let steps = left.min(room.max(covered));
        if steps == 0 {
            return None;
        }
        let shape =
            StepShape { decode_seqs: length, decode_context: context, ..StepShape::default() };
        let batch = self.batch_of(&shape);
        self.reserve_next(block_size);
        Some(if kit.latency.context_free() {
            Stride::even_glide(now, kit.latency.predict(&shape), steps.into(), batch)
        } else {
            let ends = ends_of_steps(now, shape, steps.min(UNEVEN_GLIDE_STEPS), kit);
            Stride::uneven_glide(now, ends, batch)
        })
    }

    /// Takes the blocks that the next step of a glide writes to; they are known to be free.
    fn reserve_next(&mut self, block_size: u32) {
        for running in &mut self.running {
            if running.computed == running.table.blocks() * block_size {
                self.pool.grow(&mut running.table, 1);
            }
        }
    }

    /// Lands the steps of a glide up to `upto`, which is not its last, and takes the blocks of the one under way.
    pub(super) fn pass(&mut self, upto: u64, kit: &mut Kit<'_>) {
        self.glide_to(upto, kit);
        self.reserve_next(kit.engine.block_size);
    }

    /// Lands the steps under way. Afterwards the engine is idle until `begin`.
    pub(super) fn land(&mut self, kit: &mut Kit<'_>) {
        let Some(stride) = &self.stride else { return };
        let end = stride.end();
        if stride.glide {
            self.glide_to(stride.planned(), kit);
        } else {
            self.state_steps(1, kit);
            self.land_chunks(end, kit);
        }
        self.stride = None;
        self.close_finished(end, kit);
    }

    /// Every running request has computed one token a step since the last landing.
    fn glide_to(&mut self, upto: u64, kit: &mut Kit<'_>) {
        let steps = self.state_steps(upto, kit);
        let block_size = kit.engine.block_size;
        for running in &mut self.running {
            running.computed += steps;
            running.goal += steps;
            running.generated += steps;
            running.left -= steps;
            let blocks = running.computed.div_ceil(block_size) - running.table.blocks();
            self.pool.grow(&mut running.table, blocks);
            if running.computed / block_size > running.table.shared() {
                commit_full_blocks(&mut self.pool, running, kit);
            }
        }
    }

    /// Every running request has computed its chunk; those that caught up have a new token.
    fn land_chunks(&mut self, now: Time, kit: &mut Kit<'_>) {
        let block_size = kit.engine.block_size;
        for running in self.running.iter_mut().filter(|running| running.chunk > 0) {
            running.computed += running.chunk;
            if running.computed / block_size > running.table.shared() {
                commit_full_blocks(&mut self.pool, running, kit);
            }
            if running.computed < running.goal {
                continue;
            }
            running.goal += 1;
            running.generated += 1;
            running.left -= 1;
            if running.steady {
                continue;
            }
            running.steady = true;
            self.steady[running.class.index()] += 1;
            let live = kit.live.get_mut(running.slot);
            let fact = if live.first_token.is_none() {
                live.first_token = Some(now);
                live.split.prefill = now.since(live.scheduled);
                live.split.output = kit.output;
                Fact::FirstToken { request: live.request.id, instance: self.id }
            } else {
                let gap = now.since(live.last_token);
                Fact::Tokens { instance: self.id, class: running.class, gap, count: 1 }
            };
            kit.listener.hear(now, &fact);
        }
    }

    /// States the steps up to `upto` and the tokens of the requests that decode step after step. Returns how many.
    fn state_steps(&mut self, upto: u64, kit: &mut Kit<'_>) -> u32 {
        let stride = self.stride.as_mut().expect("steps are under way");
        let mut landed = stride.advance(upto);
        let mut steps = 0;
        while let Some((end, count, duration)) = stride.group(&mut landed) {
            steps += count;
            kit.tally.events += count;
            let fact = Fact::Steps {
                instance: self.id,
                count,
                duration,
                batch: stride.batch,
                blocks_in_use: 0,
            };
            kit.listener.hear(end, &fact);
            for class in SloClass::ALL {
                let decoding = u64::from(self.steady[class.index()]);
                if decoding > 0 {
                    let count = decoding * count;
                    let fact = Fact::Tokens { instance: self.id, class, gap: duration, count };
                    kit.listener.hear(end, &fact);
                }
            }
        }
        u32::try_from(steps).expect("no more steps than tokens")
    }

    /// Closes the requests that have all their tokens, in running order.
    fn close_finished(&mut self, now: Time, kit: &mut Kit<'_>) {
        if self.running.iter().all(|running| running.left > 0) {
            return;
        }
        let mut running = std::mem::take(&mut self.running);
        running.retain_mut(|done| {
            if done.left > 0 {
                return true;
            }
            self.steady[done.class.index()] -= 1;
            self.pool.release(&mut done.table);
            let live = kit.live.get_mut(done.slot);
            live.generated = done.generated;
            let output = now + kit.output;
            let mut record = live.record();
            record.e2e = Some(output.since(record.arrival));
            kit.listener.hear(now, &Fact::Closed { status: Status::Finished, record });
            kit.live.remove(done.slot);
            kit.tally.closed += 1;
            kit.tally.last_output = kit.tally.last_output.max(output);
            false
        });
        self.running = running;
    }
}

impl Running {
    /// What a victim gives back to the budget: its chunk, if this step had given it one already.
    fn chunk_given(&self, index: usize, victim: usize) -> u32 {
        if victim < index { self.chunk } else { 0 }
    }
}

fn commit_full_blocks(pool: &mut blis_kv::Pool, running: &mut Running, kit: &mut Kit<'_>) {
    let block_size = kit.engine.block_size;
    let full = running.computed / block_size;
    let live = kit.live.get_mut(running.slot);
    live.request.content.hash_blocks(block_size, full, &mut live.hashes);
    pool.commit(&mut running.table, &live.hashes[..full as usize]);
}

/// The next chunk of a request that lacks `missing` tokens.
fn chunk_limit(missing: u32, budget: u32, kit: &Kit<'_>) -> u32 {
    let threshold = kit.engine.long_prefill_token_threshold;
    let capped = if threshold > 0 { missing.min(threshold) } else { missing };
    capped.min(budget)
}

/// When each of `steps` decode steps ends, for a model that looks at context lengths.
fn ends_of_steps(now: Time, mut shape: StepShape, steps: u32, kit: &Kit<'_>) -> Vec<Time> {
    let mut end = now;
    (0..steps)
        .map(|_| {
            let duration: Span = kit.latency.predict(&shape);
            end += duration;
            shape.decode_context += u64::from(shape.decode_seqs);
            end
        })
        .collect()
}
