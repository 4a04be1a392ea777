//! A stride: one step, or a run of steps that nothing can disturb, taken at once.
//!
//! While every running request decodes and nobody can join or leave, all steps compute the same
//! batch. As long as the latency model says that they also last equally long, a stride of any
//! length is two numbers; for a model that never says so the end of each step is kept. A request
//! that joins the queue cuts the stride after the step under way.
//!
//! With asynchronous scheduling a stride counts turns of the host's loop: each forms a step of the
//! stride, and ends when the step that was formed before it has been processed.

use super::clock::{Cost, Launched, Turn};
use blis_core::{Span, Time};
use blis_metrics::Batch;

/// Steps under way.
#[derive(Clone, Debug)]
pub(crate) struct Stride {
    start: Time,
    rhythm: Rhythm,
    planned: u64,
    done: u64,
    /// What each step is; `None` for a turn that forms none and only waits for the one before.
    pub(super) step: Option<Step>,
}

/// What the steps of a stride have in common.
#[derive(Clone, Copy, Debug)]
pub(super) struct Step {
    /// What it computes.
    pub(super) batch: Batch,
    /// What the latency model says of `StepTime::beyond`.
    pub(super) beyond: u32,
    /// What it costs; of steps of unequal durations, the first.
    pub(super) cost: Cost,
}

#[derive(Clone, Debug)]
enum Rhythm {
    /// The first takes until `first.end`, and every other `then`.
    Even { first: Turn, then: Span },
    /// Each by itself.
    Uneven(Vec<Beat>),
}

/// One of unequal steps, or turns.
#[derive(Clone, Copy, Debug)]
pub(super) struct Beat {
    /// How long the step that it forms occupies the GPU.
    pub(super) gpu: Span,
    /// When it ends, and what it launches.
    pub(super) turn: Turn,
}

/// Steps, or turns, of equal duration that have passed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Passed {
    /// When the last of them ended.
    pub(super) end: Time,
    pub(super) count: u64,
    pub(super) duration: Span,
    /// How long each of the steps that were formed occupies the GPU.
    pub(super) gpu: Span,
}

impl Stride {
    /// `planned` steps that each take `duration`: one by one if it is one, or a run of them in
    /// which every running request decodes.
    pub(super) fn even(start: Time, duration: Span, planned: u64, step: Step) -> Stride {
        let end = start + duration;
        // A step is launched and done in one: nobody asks.
        let launched = Launched { gpu_end: end, update: Span::ZERO };
        Stride::turns(start, Turn { end, launched }, duration, planned, step)
    }

    /// A run of steps that end at unequal intervals, in which every running request decodes.
    pub(super) fn uneven(start: Time, beats: Vec<Beat>, step: Step) -> Stride {
        let planned = beats.len() as u64;
        Stride { start, rhythm: Rhythm::Uneven(beats), planned, done: 0, step: Some(step) }
    }

    /// `planned` turns of the host's loop, the first of which is given, while every other takes
    /// `then`.
    pub(super) fn turns(start: Time, first: Turn, then: Span, planned: u64, step: Step) -> Stride {
        Stride { start, rhythm: Rhythm::Even { first, then }, planned, done: 0, step: Some(step) }
    }

    /// A turn that forms no step and waits for the one before, until `end`.
    pub(super) fn wait(start: Time, end: Time, before: Launched) -> Stride {
        let rhythm = Rhythm::Even { first: Turn { end, launched: before }, then: end.since(start) };
        Stride { start, rhythm, planned: 1, done: 0, step: None }
    }

    /// Whether all its steps take equally long.
    pub(crate) fn is_even(&self) -> bool {
        matches!(self.rhythm, Rhythm::Even { .. })
    }

    /// How many steps it has.
    pub(crate) fn planned(&self) -> u64 {
        self.planned
    }

    /// How many of them have passed.
    pub(crate) fn done(&self) -> u64 {
        self.done
    }

    /// When its last step ends.
    pub(crate) fn end(&self) -> Time {
        self.boundary(self.planned)
    }

    /// When its `n`-th step ends (from 1); its start for 0.
    pub(crate) fn boundary(&self, n: u64) -> Time {
        match &self.rhythm {
            _ if n == 0 => self.start,
            Rhythm::Even { first, then } => first.end + *then * (n - 1),
            Rhythm::Uneven(beats) => beats[index(n - 1)].turn.end,
        }
    }

    /// How many of its steps end before `now`.
    pub(crate) fn boundaries_before(&self, now: Time) -> u64 {
        let before = match &self.rhythm {
            Rhythm::Even { first, .. } if now <= first.end => 0,
            Rhythm::Even { .. } if self.planned == 1 => 1,
            Rhythm::Even { first, then } => {
                1 + (now.since(first.end).as_nanos() - 1) / then.as_nanos()
            }
            Rhythm::Uneven(beats) => beats.partition_point(|beat| beat.turn.end < now) as u64,
        };
        before.min(self.planned)
    }

    /// Ends the stride after the step that is under way at `now`; returns when that is.
    pub(crate) fn end_after(&mut self, now: Time) -> Time {
        self.planned = self.planned.min(self.boundaries_before(now) + 1);
        self.end()
    }

    /// Passes the next steps, none after `upto`, that are of equal duration. `None` if all up to
    /// `upto` have passed.
    pub(super) fn advance(&mut self, upto: u64) -> Option<Passed> {
        if self.done >= upto {
            return None;
        }
        let first = self.done + 1;
        self.done = match self.rhythm {
            Rhythm::Even { .. } => upto,
            Rhythm::Uneven(_) => first,
        };
        let duration = self.boundary(first).since(self.boundary(first - 1));
        let (end, gpu) = (self.boundary(self.done), self.gpu(first));
        Some(Passed { end, count: self.done - first + 1, duration, gpu })
    }

    /// How long its `n`-th step (from 1) occupies the GPU.
    pub(super) fn gpu(&self, n: u64) -> Span {
        match &self.rhythm {
            Rhythm::Uneven(beats) => beats[index(n - 1)].gpu,
            Rhythm::Even { .. } => self.step.map_or(Span::ZERO, |step| step.cost.gpu),
        }
    }

    /// What its `n`-th turn (from 1) launches.
    pub(super) fn launched(&self, n: u64) -> Launched {
        match (&self.rhythm, &self.step) {
            (Rhythm::Uneven(beats), _) => beats[index(n - 1)].turn.launched,
            (Rhythm::Even { first, .. }, Some(step)) if n > 1 => {
                let gpu_end = step.cost.gpu_end(first, self.boundary(n - 1), n - 1);
                Launched { gpu_end, ..first.launched }
            }
            (Rhythm::Even { first, .. }, _) => first.launched,
        }
    }
}

fn index(n: u64) -> usize {
    usize::try_from(n).expect("a stride with ends is short")
}

#[cfg(test)]
mod tests {
    use super::*;
    use blis_latency::HostTime;

    fn at(nanos: u64) -> Time {
        Time::from_nanos(nanos)
    }

    fn both_rhythms() -> [Stride; 2] {
        let gpu = Span::from_nanos(10);
        let cost = Cost { host: HostTime::default(), stall: Span::ZERO, gpu };
        let step = Step { batch: Batch::default(), beyond: 0, cost };
        let beat = |end| {
            let launched = Launched { gpu_end: at(end), update: Span::ZERO };
            Beat { gpu, turn: Turn { end: at(end), launched } }
        };
        let beats = vec![beat(110), beat(120), beat(130)];
        [Stride::even(at(100), gpu, 3, step), Stride::uneven(at(100), beats, step)]
    }

    #[test]
    fn a_boundary_at_an_instant_has_not_passed_before_it() {
        for stride in both_rhythms() {
            for (now, before) in
                [(100, 0), (101, 0), (110, 0), (111, 1), (130, 2), (131, 3), (999, 3)]
            {
                assert_eq!(stride.boundaries_before(at(now)), before, "at {now}");
            }
        }
    }

    #[test]
    fn a_cut_stride_ends_with_the_step_under_way() {
        for (now, end) in [(100, 110), (105, 110), (110, 110), (111, 120), (125, 130)] {
            for mut stride in both_rhythms() {
                assert_eq!(stride.end_after(at(now)), at(end), "at {now}");
            }
        }
    }
}
