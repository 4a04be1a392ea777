//! A stride: one step, or a run of steps that nothing can disturb, taken at once.
//!
//! While every running request decodes and nobody can join or leave, all steps compute the same
//! batch. As long as the latency model says that they also last equally long, a stride of any
//! length is two numbers; for a model that never says so the end of each step is kept. A request
//! that joins the queue cuts the stride after the step under way.

use blis_core::{Span, Time};
use blis_metrics::Batch;

/// Steps under way.
#[derive(Clone, Debug)]
pub(crate) struct Stride {
    start: Time,
    rhythm: Rhythm,
    planned: u64,
    done: u64,
    /// What each step computes.
    pub(crate) batch: Batch,
    /// What the latency model says of `StepTime::beyond` for each step.
    pub(crate) beyond: u32,
}

#[derive(Clone, Debug)]
enum Rhythm {
    /// Every step takes this long.
    Even(Span),
    /// When each step ends.
    Uneven(Vec<Time>),
}

impl Stride {
    /// A single step.
    pub(crate) fn step(start: Time, duration: Span, batch: Batch) -> Stride {
        Stride { start, rhythm: Rhythm::Even(duration), planned: 1, done: 0, batch, beyond: 0 }
    }

    /// A run of `steps` steps of equal duration in which every running request decodes.
    pub(crate) fn even_glide(start: Time, duration: Span, steps: u64, batch: Batch) -> Stride {
        Stride { start, rhythm: Rhythm::Even(duration), planned: steps, done: 0, batch, beyond: 0 }
    }

    /// A run of steps that end at `ends` in which every running request decodes.
    pub(crate) fn uneven_glide(start: Time, ends: Vec<Time>, batch: Batch) -> Stride {
        let planned = ends.len() as u64;
        Stride { start, rhythm: Rhythm::Uneven(ends), planned, done: 0, batch, beyond: 0 }
    }

    /// The same, of steps for which `StepTime::beyond` is `beyond`.
    #[must_use]
    pub(crate) fn going(self, beyond: u32) -> Stride {
        Stride { beyond, ..self }
    }

    /// Whether all its steps take equally long.
    pub(crate) fn is_even(&self) -> bool {
        matches!(self.rhythm, Rhythm::Even(_))
    }

    /// How many steps it has.
    pub(crate) fn planned(&self) -> u64 {
        self.planned
    }

    /// How many of them have landed.
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
            Rhythm::Even(duration) => self.start + *duration * n,
            Rhythm::Uneven(_) if n == 0 => self.start,
            Rhythm::Uneven(ends) => ends[index(n - 1)],
        }
    }

    /// How many of its steps end before `now`.
    pub(crate) fn boundaries_before(&self, now: Time) -> u64 {
        let before = match &self.rhythm {
            Rhythm::Even(duration) => {
                now.saturating_since(self.start).as_nanos().saturating_sub(1) / duration.as_nanos()
            }
            Rhythm::Uneven(ends) => ends.partition_point(|&end| end < now) as u64,
        };
        before.min(self.planned)
    }

    /// Ends the stride after the step that is under way at `now`; returns when that is.
    pub(crate) fn end_after(&mut self, now: Time) -> Time {
        self.planned = self.planned.min(self.boundaries_before(now) + 1);
        self.end()
    }

    /// Lands the next steps, none after `upto`, that are of equal duration: when the last of them
    /// ends, how many they are, and how long each takes. `None` if all up to `upto` have landed.
    pub(crate) fn advance(&mut self, upto: u64) -> Option<(Time, u64, Span)> {
        if self.done >= upto {
            return None;
        }
        let first = self.done + 1;
        self.done = match self.rhythm {
            Rhythm::Even(_) => upto,
            Rhythm::Uneven(_) => first,
        };
        let duration = self.boundary(first).since(self.boundary(first - 1));
        Some((self.boundary(self.done), self.done - first + 1, duration))
    }
}

fn index(n: u64) -> usize {
    usize::try_from(n).expect("a stride with ends is short")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(nanos: u64) -> Time {
        Time::from_nanos(nanos)
    }

    fn both_rhythms() -> [Stride; 2] {
        let ends = vec![at(110), at(120), at(130)];
        [
            Stride::even_glide(at(100), Span::from_nanos(10), 3, Batch::default()),
            Stride::uneven_glide(at(100), ends, Batch::default()),
        ]
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
