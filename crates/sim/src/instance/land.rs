//! What becomes of a step when it ends: tokens, full blocks for the prefix cache, finished requests
//! and freed blocks.

use super::plan::Chunk;
use super::running::ByClass;
use super::stride::{Passed, Step};
use super::{Instance, Kit};
use crate::live::{Place, Slot};
use blis_core::{SloClass, Span, Time};
use blis_metrics::{Batch, Fact, Status};
use blis_policy::Answer;

impl Instance {
    /// Lands the steps under way, which end now, and the copies that are done. Afterwards the
    /// engine is idle until `begin`.
    pub(super) fn land(&mut self, now: Time, kit: &mut Kit<'_>) {
        if self.stride.is_some() && kit.engine.ahead() > 0 {
            self.land_turns(kit);
            return;
        }
        let Some(stride) = &self.stride else {
            if self.tier.is_some() {
                self.land_transfers(now, None, kit);
            }
            if !self.leaving.is_empty() {
                self.let_go(now, &mut Vec::new(), kit);
            }
            return;
        };
        let (end, planned) = (stride.end(), stride.planned());
        if !stride.is_even() {
            self.pass(planned - 1, kit);
        }
        let mut due = std::mem::take(&mut self.due);
        self.land_steady(planned, &mut due, kit);
        self.land_chunks(end, &mut due, kit);
        self.stride = None;
        if let Some(tier) = &self.tier {
            self.land_transfers(end, tier.connector.asked(1), kit);
        }
        if !self.leaving.is_empty() {
            self.let_go(end, &mut due, kit);
        }
        self.close_finished(end, &due, kit);
        self.due = due;
    }

    /// Lands the next steps of equal duration, none after `upto`: every steady request has a token
    /// more for each. Finds those that are due. Returns whether there were such steps.
    pub(super) fn land_steady(
        &mut self,
        upto: u64,
        due: &mut Vec<usize>,
        kit: &mut Kit<'_>,
    ) -> bool {
        let stride = self.stride.as_mut().expect("steps are under way");
        let Some(Step { batch, beyond, .. }) = stride.step else { return false };
        let Some(Passed { end, count, duration, gpu }) = stride.advance(upto) else { return false };
        if beyond != 0 {
            kit.tally.beyond_steps += count;
            kit.tally.beyond |= beyond;
        }
        self.run_steady(count, end, due, kit);
        let (instance, ahead, blocks_in_use) = (self.id, Span::ZERO, self.pool.in_use());
        let fact = Fact::Steps { instance, count, duration, ahead, gpu, batch, blocks_in_use };
        kit.listener.hear(end, &fact);
        self.state_tokens(end, count, duration, &self.running.steady_by_class(), kit);
        true
    }

    /// Steady requests compute a token in each of `steps` steps, the last of which ended at `end`.
    /// Finds those that are due.
    pub(super) fn run_steady(
        &mut self,
        steps: u64,
        end: Time,
        due: &mut Vec<usize>,
        kit: &mut Kit<'_>,
    ) {
        self.running.advance(u32::try_from(steps).expect("no more steps than tokens"));
        self.running.due(due);
        let block_size = kit.engine.block_size;
        for &index in &*due {
            let running = self.running.settle(index);
            // Otherwise its blocks are just full or it is done, and it stays due.
            if running.computed > running.table.blocks() * block_size {
                // A run of steps filled several blocks; it was made sure that they could be had.
                let blocks = running.computed.div_ceil(block_size) - running.table.blocks();
                self.make_room(blocks, end, kit);
                self.pool.grow(&mut self.running.get_mut(index).table, blocks);
                self.running.note_due(index, block_size);
            }
        }
    }

    /// The other requests have computed their chunks; those that caught up have a new token, which
    /// is handed out now or with those of the step in flight, are steady from now on and are added
    /// to `due`.
    pub(super) fn land_chunks(&mut self, now: Time, due: &mut Vec<usize>, kit: &mut Kit<'_>) {
        let block_size = kit.engine.block_size;
        let mut plan = std::mem::take(&mut self.plan);
        for &Chunk { place, tokens, kept } in plan.chunks() {
            let running = self.running.get_mut(place);
            running.computed += kept;
            // One of what caught up, and one for each token of a draft that was right.
            let fresh = (running.computed + 1).saturating_sub(running.goal());
            running.generated += fresh;
            if running.has_full_block(block_size) {
                self.commit_full_blocks(place, kit);
            }
            if fresh == 0 {
                continue;
            }
            let running = self.running.get_mut(place);
            let slot = running.slot;
            if kit.engine.ahead() > 0 {
                self.in_flight.catch_up(slot, fresh);
            } else {
                let stalled = self.tier.as_ref().map_or(Span::ZERO, |tier| tier.stalled());
                let step = self.stride.as_ref().and_then(|stride| stride.step);
                let batch = step.expect("it has computed the chunk").batch;
                self.note_tokens((slot, fresh), &batch, now, stalled, kit);
            }
            let running = self.running.get_mut(place);
            if kit.engine.is_steady() {
                self.running.make_steady(place, block_size);
                due.push(place);
                continue;
            }
            // How many tokens the next step brings is not the same for all, so nobody is steady.
            running.has_draft = kit.engine.speculation.is_some();
            if kit.engine.ahead() > 0 {
                (running.fresh, running.rejected) = (fresh, tokens - kept);
                running.step = self.in_flight.number;
            }
            if running.left() == 0 {
                due.push(place);
            }
        }
        if !plan.chunks().is_empty() {
            due.sort_unstable();
        }
        plan.clear();
        self.plan = plan;
    }

    /// Tokens of a request that was not steady are handed out. Up to their step, steps have waited
    /// for copies for `stalled` in all.
    pub(super) fn note_tokens(
        &mut self,
        (slot, tokens): (Slot, u32),
        batch: &Batch,
        now: Time,
        stalled: Span,
        kit: &mut Kit<'_>,
    ) {
        let live = kit.live.get_mut(slot);
        let fact = if live.first_token.is_none() {
            live.first_token = Some(now);
            match live.place {
                Place::Running => {
                    let stalled = stalled - live.stalled;
                    live.split.reload += stalled;
                    live.split.prefill = now.since(live.scheduled) - stalled;
                }
                // It was preempted after its step had begun.
                Place::Ended => live.split.prefill = now.since(live.enqueued),
                _ => live.split.queue += now.since(live.enqueued),
            }
            live.split.output = kit.latency.output(batch.prefill_seqs + batch.decode_seqs);
            if !live.gave_up {
                let work = live.expected_work(kit.engine.block_size);
                kit.ended[live.gateway].started_work += work;
            }
            Fact::FirstToken { request: live.request.id, instance: self.id }
        } else {
            let (class, early) = (live.request.class, live.early);
            let gap = now.since(live.last_token);
            let (count, tokens) = (1, tokens.into());
            Fact::Tokens { instance: self.id, class, early, gap, count, tokens }
        };
        live.last_token = now;
        kit.tally.in_vain = 0;
        kit.listener.hear(now, &fact);
    }

    /// Makes the full blocks of a running request known to the prefix cache.
    pub(super) fn commit_full_blocks(&mut self, index: usize, kit: &mut Kit<'_>) {
        let block_size = kit.engine.block_size;
        let running = self.running.settle(index);
        let full = running.computed / block_size;
        let content = &kit.live.get(running.slot).request.content;
        self.pool.commit(&mut running.table, content.blocks(block_size, full));
    }

    /// States the tokens that `steady` requests of each class generated in `steps` steps, the last
    /// of which ended at `end`.
    pub(super) fn state_tokens(
        &self,
        end: Time,
        steps: u64,
        gap: Span,
        steady: &ByClass,
        kit: &mut Kit<'_>,
    ) {
        kit.tally.events += steps;
        for (early, steady) in [false, true].into_iter().zip(steady) {
            for (class, &steady) in SloClass::ALL.into_iter().zip(steady) {
                if steady > 0 {
                    kit.tally.in_vain = 0;
                    let count = u64::from(steady) * steps;
                    let tokens = count;
                    let fact = Fact::Tokens { instance: self.id, class, early, gap, count, tokens };
                    kit.listener.hear(end, &fact);
                }
            }
        }
    }

    /// Closes those of `due` that have all their tokens, in running order, and notes whose blocks
    /// are full.
    fn close_finished(&mut self, now: Time, due: &[usize], kit: &mut Kit<'_>) {
        self.full.clear();
        let mut removed = 0;
        for index in due {
            let index = index - removed;
            let running = self.running.get(index);
            if running.left() > 0 {
                if running.room(kit.engine.block_size) == 0 {
                    self.full.push(index);
                }
                continue;
            }
            let running = self.take_out(index, now, kit);
            removed += 1;
            kit.live.get_mut(running.slot).generated = running.generated;
            self.finish(running.slot, now, kit);
        }
    }

    /// A request that has left the batch has all its tokens.
    pub(super) fn finish(&mut self, slot: Slot, now: Time, kit: &mut Kit<'_>) {
        let live = kit.live.get(slot);
        // As long a way as its first token had.
        let output = now + live.split.output;
        let gateway = live.gateway;
        let mut record = live.record(kit.engine.block_size);
        record.e2e = Some(output.since(record.arrival));
        kit.listener.hear(now, &Fact::Closed { status: Status::Finished, record });
        if let Some(answers) = &mut kit.answers {
            let [ttft, e2e] = [record.ttft, record.e2e].map(|span| span.expect("it finished"));
            answers[gateway].push_back(Answer {
                request: record.request,
                class: record.class,
                instance: self.id,
                input_tokens: record.input_tokens,
                cached_tokens: record.cached_tokens.unwrap_or(0),
                ttft,
                e2e,
                now: output,
            });
        }
        let ended = &mut kit.ended[gateway];
        ended.requests += 1;
        ended.tokens += u64::from(record.input_tokens);
        match &mut kit.finished {
            Some(finished) => finished.push((kit.live.remove(slot), output)),
            None => kit.live.forget(slot),
        }
        kit.tally.closed += 1;
        kit.tally.last_output = kit.tally.last_output.max(output);
    }
}
