//! Gliding: runs of steps that are taken at once.
//!
//! While every running request decodes and nobody can join, leave or need a block that is not
//! there, nothing that happens in a step can change the next. The facts are the same as when every
//! step is taken by itself; only where nobody cares when blocks are evicted, those that a run of
//! steps takes are evicted when it lands.

use super::clock::{Cost, Launched, Turn};
use super::stride::{Beat, Step, Stride};
use super::{Instance, Kit, count};
use crate::config::Pace;
use blis_core::{Span, Time};
use blis_kv::Pool;
use blis_latency::StepShape;

/// Steps of unequal durations are planned at most this far ahead.
const UNEVEN_STEPS: u32 = 64;

impl Instance {
    /// A run of steps from `now` on, if one can be taken.
    pub(super) fn glide(&mut self, now: Time, kit: &mut Kit<'_>) -> Option<Stride> {
        let length = count(self.running.len());
        let budget = kit.engine.max_num_scheduled_tokens;
        let crowded = length == budget || length >= kit.engine.max_num_running_reqs;
        let alone = self.queue.is_empty() || crowded;
        let all_steady = self.running.steady_total() == length;
        if kit.pace == Pace::Stepwise || length == 0 || length > budget || !alone || !all_steady {
            return None;
        }
        // A request with reloaded blocks would join the next step.
        let joined_by = self.tier.as_ref().is_some_and(|tier| tier.has_ready() || tier.is_busy());
        let evicts = kit.unseen.evictions && self.tier.is_none();
        let room = |pool: &Pool| if evicts { pool.available() } else { pool.free() };
        if joined_by || self.in_flight.has_others() || count(self.full.len()) > room(&self.pool) {
            return None;
        }
        self.feed_full(now, kit);
        // In n steps a request takes at most n / block_size + 1 blocks.
        let blocks = (room(&self.pool) / length).saturating_sub(1);
        let covered = blocks.saturating_mul(kit.engine.block_size);
        let steps = self.running.steps_to_finish().min(self.running.steps_to_due().max(covered));
        let shape = self.steady_shape(kit);
        let mut stride = self.run_ahead(now, &shape, steps, kit);
        if let Some(done) = self.tier.as_ref().and_then(|tier| tier.next_done()) {
            // Copies are noticed at the next boundary.
            stride.end_after(done);
        }
        Some(stride)
    }

    /// At most `steps` steps of a batch that only decodes, the first of this shape.
    fn run_ahead(&self, now: Time, shape: &StepShape, steps: u32, kit: &Kit<'_>) -> Stride {
        let cost = Cost::of(shape, kit);
        let step = Step { batch: self.batch_of(shape), beyond: kit.latency.beyond(shape), cost };
        let equal = kit.latency.repeats(shape);
        // A model that tells context lengths apart by windows may be at the end of one.
        if equal == 1 && kit.latency.repeats(&shape.after(1)) == 1 {
            let beats = self.beats(now, *shape, steps.min(UNEVEN_STEPS), kit);
            return Stride::uneven(now, beats, Step { beyond: 0, ..step });
        }
        // No step begins after the horizon.
        let planned = |end: Time, duration: Span| {
            let until_horizon = kit.horizon.saturating_since(end).as_nanos() / duration.as_nanos();
            u64::from(steps.min(equal)).min(until_horizon + 1)
        };
        if !kit.engine.async_scheduling {
            let duration = cost.alone();
            return Stride::even(now, duration, planned(now, duration), step);
        }
        let first = cost.turn(now, self.launched());
        match cost.rhythm(&first) {
            Some(then) => Stride::turns(now, first, then, planned(first.end, then), step),
            None => Stride::turns(now, first, Span::ZERO, 1, step),
        }
    }

    /// At most `steps` decode steps, for a model that says of no step how often it repeats. None
    /// begins after the horizon.
    fn beats(&self, now: Time, mut shape: StepShape, steps: u32, kit: &Kit<'_>) -> Vec<Beat> {
        let mut beats = Vec::new();
        let (mut begin, mut before) = (now, self.launched());
        while beats.len() < steps as usize && begin <= kit.horizon {
            let cost = Cost::of(&shape, kit);
            let turn = if kit.engine.async_scheduling {
                cost.turn(begin, before)
            } else {
                let end = begin + cost.alone();
                Turn { end, launched: Launched { gpu_end: end, update: Span::ZERO } }
            };
            beats.push(Beat { gpu: cost.gpu, turn });
            (begin, before) = (turn.end, Some(turn.launched));
            shape = shape.after(1);
        }
        beats
    }

    /// Lands the steps of a glide up to `upto`, which is not its last, and takes the blocks of the
    /// one under way.
    pub(super) fn pass(&mut self, upto: u64, kit: &mut Kit<'_>) {
        let mut due = std::mem::take(&mut self.due);
        while if kit.engine.async_scheduling {
            self.land_glide(upto, &mut due, kit)
        } else {
            self.land_steady(upto, &mut due, kit)
        } {
            due.retain(|&index| self.running.get(index).room(kit.engine.block_size) == 0);
            std::mem::swap(&mut self.full, &mut due);
            let landed = self.stride.as_ref().map(|stride| stride.boundary(stride.done()));
            self.feed_full(landed.expect("steps are under way"), kit);
        }
        self.due = due;
    }

    /// Gives each request whose blocks are full another; it is known that so many can be had.
    pub(super) fn feed_full(&mut self, now: Time, kit: &mut Kit<'_>) {
        let mut full = std::mem::take(&mut self.full);
        self.make_room(count(full.len()), now, kit);
        for &index in &full {
            self.grow(index, 1, kit);
        }
        full.clear();
        self.full = full;
    }
}
