//! Gliding: runs of steps that are taken at once.
//!
//! While every running request decodes and nobody can join, leave or need a block that is not free,
//! nothing that happens in a step can change the next. The facts are the same as when every step is
//! taken by itself.

use super::stride::Stride;
use super::{Instance, Kit, count};
use crate::config::Pace;
use blis_core::Time;
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
        let joined_by = self.tier.as_ref().is_some_and(|tier| tier.has_ready());
        if joined_by || self.full.len() > self.pool.free() as usize {
            return None;
        }
        self.feed_full(kit);
        // In n steps a request takes at most n / block_size + 1 blocks.
        let covered =
            (self.pool.free() / length).saturating_sub(1).saturating_mul(kit.engine.block_size);
        let steps = self.running.steps_to_finish().min(self.running.steps_to_due().max(covered));
        let shape = self.steady_shape(kit);
        let batch = self.batch_of(&shape);
        let equal = kit.latency.repeats(&shape);
        // A model that tells context lengths apart by windows may be at the end of one.
        let mut stride = if equal == 1 && kit.latency.repeats(&shape.after(1)) == 1 {
            let ends = ends_of_steps(now, shape, steps.min(UNEVEN_STEPS), kit);
            Stride::uneven_glide(now, ends, batch)
        } else {
            let duration = kit.latency.predict(&shape);
            let until_horizon = kit.horizon.saturating_since(now).as_nanos() / duration.as_nanos();
            let steps = u64::from(steps.min(equal)).min(until_horizon + 1);
            let beyond = kit.latency.beyond(&shape);
            Stride::even_glide(now, duration, steps, batch).going(beyond)
        };
        if let Some(done) = self.tier.as_ref().and_then(|tier| tier.next_done()) {
            // Copies are noticed at the next boundary.
            stride.end_after(done);
        }
        Some(stride)
    }

    /// Lands the steps of a glide up to `upto`, which is not its last, and takes the blocks of the
    /// one under way.
    pub(super) fn pass(&mut self, upto: u64, kit: &mut Kit<'_>) {
        let mut due = std::mem::take(&mut self.due);
        while self.land_steady(upto, &mut due, kit) {
            due.retain(|&index| self.running.room(index, kit.engine.block_size) == 0);
            std::mem::swap(&mut self.full, &mut due);
            self.feed_full(kit);
        }
        self.due = due;
    }

    /// Gives each request whose blocks are full another; it is known that so many are free.
    fn feed_full(&mut self, kit: &mut Kit<'_>) {
        let mut full = std::mem::take(&mut self.full);
        for &index in &full {
            self.grow(index, 1, kit);
        }
        full.clear();
        self.full = full;
    }
}

/// When each of at most `steps` decode steps ends, for a model that says of no step how often it
/// repeats. None begins after the horizon.
fn ends_of_steps(now: Time, mut shape: StepShape, steps: u32, kit: &Kit<'_>) -> Vec<Time> {
    let mut ends = Vec::new();
    let mut end = now;
    while ends.len() < steps as usize && end <= kit.horizon {
        end += kit.latency.predict(&shape);
        shape = shape.after(1);
        ends.push(end);
    }
    ends
}
