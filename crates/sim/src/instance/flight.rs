//! Asynchronous scheduling: the step that has been formed before the last one was processed.
//!
//! A step is formed as if the one before it were done: requests have computed their chunks and
//! generated their tokens, whose values the GPU fills in. What others can see of that step (its
//! tokens, finished requests, free blocks) lands when its output has been processed, a turn later.
//! Until then a request may have been preempted: it still gets the token, and if that was its last
//! it does not wait again. A request whose last token is on its way is not scheduled any more, but
//! keeps its place and its blocks.
//!
//! With the stages of a pipeline as many steps are in flight, and with asynchronous scheduling one
//! more, as in vLLM's batch queue (`EngineCore.step_with_batch_queue`). A step is formed without
//! waiting as long as the queue has room. Steps are numbered, and those that nobody can be part of
//! count too: they fill the queue, so that the others are not formed too early. A prompt goes on in
//! the next step; whoever gets a token from a step decodes again when that token is at hand, or
//! with asynchronous scheduling, so many steps later as there are stages.

use super::clock::{Cost, Launched, Turn};
use super::running::ByClass;
use super::stride::Stride;
use super::{Instance, Kit};
use crate::config::Engine;
use crate::live::{Place, Slot};
use blis_core::{Span, Time};
use blis_metrics::{Batch, Fact};
use std::collections::VecDeque;

/// What has been formed and not processed, apart from the step that is being formed.
#[derive(Clone, Debug, Default)]
pub(super) struct InFlight {
    pub(super) steps: VecDeque<Flight>,
    /// The number of the step that is being formed.
    pub(super) number: u32,
    /// Requests that were not steady and get tokens from a step, of which number, and how many.
    caught_up: VecDeque<(u32, Slot, u32)>,
    /// Requests that get tokens from a step and were preempted or left out of the next.
    parted: Vec<(Slot, u32)>,
    /// When a step was last processed.
    landed: Time,
    /// When each stage of a pipeline is done with what is launched.
    stages: Vec<Time>,
}

/// A step that is launched and whose output has not been processed.
#[derive(Clone, Copy, Debug)]
pub(super) struct Flight {
    number: u32,
    pub(super) launched: Launched,
    formed: Time,
    batch: Batch,
    beyond: u32,
    gpu: Span,
    /// Steady requests of each class that get a token from it.
    steady: ByClass,
    /// How long steps had waited for copies when it was formed, itself included.
    stalled: Span,
}

impl InFlight {
    /// Whether others than steady requests get a token from the step.
    pub(super) fn has_others(&self) -> bool {
        !(self.caught_up.is_empty() && self.parted.is_empty())
    }

    /// A request that was not steady gets tokens from the step.
    pub(super) fn catch_up(&mut self, slot: Slot, tokens: u32) {
        self.caught_up.push_back((self.number, slot, tokens));
    }

    /// Whether a request gets tokens from a step in flight, for those that are not steady.
    pub(super) fn is_awaited(&self, slot: Slot) -> bool {
        self.caught_up.iter().any(|&(_, other, _)| other == slot)
    }

    /// A request has left for good.
    pub(super) fn forget(&mut self, slot: Slot) {
        self.caught_up.retain(|&(_, other, _)| other != slot);
    }

    /// The first step in flight, if no more may be formed before it has been processed.
    pub(super) fn in_the_way(&self, engine: &Engine) -> Option<&Flight> {
        let is_full = |first: &&Flight| self.number - first.number >= engine.ahead();
        self.steps.front().filter(|first| engine.stages == 1 || is_full(first))
    }

    /// The turn that launches a step at `now`: its stages begin when the one before has sent what
    /// it made and the step before has left them, and the first of them when the tokens are known
    /// that the step goes on from.
    pub(super) fn turn(&mut self, now: Time, cost: &Cost, spans: &[Span], engine: &Engine) -> Turn {
        let mut turn = cost.turn(now, None);
        let mut known = self.steps.iter().rev();
        let known = known.find(|step| step.number + engine.stages <= self.number);
        let begin = now + cost.stall + cost.host.schedule + cost.host.prepare;
        let mut at = known.map_or(begin, |step| step.launched.gpu_end.max(begin));
        self.stages.resize(spans.len(), Time::ZERO);
        for (done, &span) in self.stages.iter_mut().zip(spans) {
            at = at.max(*done) + span;
            *done = at;
        }
        let launched = turn.end;
        turn.launched.gpu_end = at.max(launched);
        turn.end = self.in_the_way(engine).map_or(launched, |first| first.launched.end(launched));
        turn
    }

    /// A request that gets tokens from the step is not part of the next.
    pub(super) fn part(&mut self, slot: Slot, tokens: u32) {
        if !self.parted.contains(&(slot, tokens)) {
            self.parted.push((slot, tokens));
        }
    }
}

impl Instance {
    /// Tokens of a running request, whose counters are settled, that were not handed out.
    pub(super) fn awaited(&self, index: usize) -> u32 {
        let running = self.running.get(index);
        let parted = || self.in_flight.parted.iter().any(|&(slot, _)| slot == running.slot);
        if self.in_flight.steps.is_empty() {
            0
        } else if running.fresh > 0 {
            running.fresh
        } else {
            u32::from(running.steady || running.left() == 0 || parted())
        }
    }

    /// Lands the turns under way, which end now: the first step in flight is processed if it had to
    /// be, and the one that was formed last is in flight.
    pub(super) fn land_turns(&mut self, kit: &mut Kit<'_>) {
        let Some(stride) = &self.stride else { return };
        let (end, planned) = (stride.end(), stride.planned());
        self.pass(planned - 1, kit);
        if self.in_flight.in_the_way(kit.engine).is_some() {
            self.hand_out(end, 1, kit);
        }
        if let Some(tier) = &self.tier {
            let asked = tier.connector.asked(0);
            self.free_held(end, kit);
            self.land_transfers(end, asked, kit);
        }
        if !self.leaving.is_empty() {
            self.let_go(end, &mut Vec::new(), kit);
        }
        self.close_ended(end, kit);
        if let Some(stride) = self.stride.take().filter(|stride| stride.step.is_some()) {
            self.take_as_done(&stride, kit);
        }
    }

    /// The next step is formed as if the one that `stride` formed last were done.
    fn take_as_done(&mut self, stride: &Stride, kit: &mut Kit<'_>) {
        let mut due = std::mem::take(&mut self.due);
        self.run_steady(1, stride.end(), &mut due, kit);
        let flight = self.flight(stride, stride.planned());
        self.in_flight.steps.extend(flight);
        self.land_chunks(Time::NEVER, &mut due, kit);
        self.full.clear();
        for &index in &due {
            let running = self.running.get(index);
            if running.left() == 0 {
                self.running.end(index);
            } else if running.room(kit.engine.block_size) == 0 {
                self.full.push(index);
            }
        }
        self.due = due;
    }

    /// Lands the next turns of a glide, none after `upto`, that are equal. Returns whether there
    /// were any.
    pub(super) fn land_glide(
        &mut self,
        upto: u64,
        due: &mut Vec<usize>,
        kit: &mut Kit<'_>,
    ) -> bool {
        let stride = self.stride.as_mut().expect("steps are under way");
        // The first lands a step from before, and the second one that was formed in the first, so
        // that it may have waited longer to begin.
        let alone = if kit.unseen.details { 1 } else { 2 };
        let upto = if stride.done() < alone { upto.min(stride.done() + 1) } else { upto };
        let Some(passed) = stride.advance(upto) else { return false };
        self.run_steady(passed.count, passed.end, due, kit);
        self.hand_out(passed.end, passed.count, kit);
        let stride = self.stride.as_ref().expect("steps are under way");
        let flight = self.flight(stride, stride.done());
        self.in_flight.steps.extend(flight);
        true
    }

    /// The step that the `n`-th turn (from 1) of a stride has formed.
    fn flight(&self, stride: &Stride, n: u64) -> Option<Flight> {
        let step = stride.step?;
        Some(Flight {
            number: self.in_flight.number,
            launched: stride.launched(n),
            formed: stride.boundary(n - 1),
            batch: step.batch,
            beyond: step.beyond,
            gpu: stride.gpu(n),
            steady: self.running.steady_by_class(),
            stalled: self.tier.as_ref().map_or(Span::ZERO, |tier| tier.stalled()),
        })
    }

    /// The first step in flight has been processed, and `count` - 1 equal ones after it, the last
    /// of them at `end`: their tokens are handed out.
    fn hand_out(&mut self, end: Time, count: u64, kit: &mut Kit<'_>) {
        let Some(flight) = self.in_flight.steps.pop_front() else { return };
        let begin = self.in_flight.landed.max(flight.formed);
        self.in_flight.landed = end;
        if flight.beyond != 0 {
            kit.tally.beyond_steps += count;
            kit.tally.beyond |= flight.beyond;
        }
        let duration = end.since(begin) / count;
        let fact = Fact::Steps {
            instance: self.id,
            count,
            duration,
            ahead: begin.since(flight.formed),
            gpu: flight.gpu,
            batch: flight.batch,
            blocks_in_use: self.pool.in_use(),
        };
        kit.listener.hear(end, &fact);
        self.state_tokens(end, count, duration, &flight.steady, kit);
        if !kit.engine.is_steady() {
            self.running.know_fresh(flight.number);
        }
        while let Some(&(number, slot, tokens)) = self.in_flight.caught_up.front()
            && number == flight.number
        {
            self.in_flight.caught_up.pop_front();
            self.note_tokens((slot, tokens), &flight.batch, end, flight.stalled, kit);
            if kit.engine.stages > 1 && kit.live.get(slot).place != Place::Running {
                self.in_flight.part(slot, tokens);
            }
        }
        for &(slot, tokens) in &self.in_flight.parted {
            let live = kit.live.get_mut(slot);
            live.last_token = end;
            if live.place != Place::Running {
                live.generated += tokens;
            }
        }
    }

    /// Closes the requests whose last tokens were just handed out.
    fn close_ended(&mut self, now: Time, kit: &mut Kit<'_>) {
        let mut parted = std::mem::take(&mut self.in_flight.parted);
        for (slot, _) in parted.drain(..) {
            if kit.live.find(slot).is_some_and(|live| live.place == Place::Ended) {
                self.finish(slot, now, kit);
            }
        }
        self.in_flight.parted = parted;
        let mut ended = std::mem::take(&mut self.due);
        self.running.ended(&mut ended);
        for (left, index) in ended.iter().enumerate() {
            let index = index - left;
            if kit.engine.speculation.is_some() && self.plan.of(index).is_some() {
                let request = kit.live.get(self.running.get(index).slot).request.id;
                kit.listener.hear(now, &Fact::Overran { request, instance: self.id });
            }
            let running = self.take_out(index, now, kit);
            kit.live.get_mut(running.slot).generated = running.generated;
            self.finish(running.slot, now, kit);
        }
        self.due = ended;
    }
}
