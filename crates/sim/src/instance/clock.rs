//! How the host and the GPU share the work of steps.
//!
//! The host does one thing at a time: it schedules a step, launches it, waits for an output and
//! processes it. The GPU computes what is launched, in order, as soon as the inputs are prepared.
//!
//! A synchronous engine waits for the output of the step that it has just launched, so that only
//! the launch and the GPU overlap. With asynchronous scheduling it waits for the output of the step
//! before that one, if there is one:
//!
//! ```text
//! host  | schedule 2 | launch 2 |  wait   | update 1 | schedule 3 | launch 3 | wait | update 2 |
//! GPU   .... step 1 ....................... | ...... step 2 ....................... | .. step 3
//! ```
//!
//! One pass of this loop is a *turn*. Requests that arrive are seen when the next turn begins.

use super::Kit;
use blis_core::{Span, Time};
use blis_latency::{HostTime, StepShape};

/// What a step costs.
#[derive(Clone, Copy, Debug)]
pub(super) struct Cost {
    /// How long the host waits for copies before it does anything.
    pub(super) stall: Span,
    pub(super) host: HostTime,
    pub(super) gpu: Span,
}

/// A step that is launched and whose output has not been processed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Launched {
    /// When the GPU is done with it.
    pub(super) gpu_end: Time,
    /// How long the host takes for its output.
    pub(super) update: Span,
}

/// A turn of an engine with asynchronous scheduling.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Turn {
    /// When the next one begins.
    pub(super) end: Time,
    /// The step that it launches.
    pub(super) launched: Launched,
}

impl Cost {
    pub(super) fn of(shape: &StepShape, kit: &Kit<'_>) -> Cost {
        let mut gpu = kit.latency.predict(shape);
        if shape.draft_tokens > 0
            && let Some(speculation) = &kit.engine.speculation
        {
            gpu += speculation.step + speculation.token * u64::from(shape.draft_tokens);
        }
        Cost { stall: Span::ZERO, host: kit.latency.host(shape), gpu }
    }

    /// How long the step takes from its scheduling to the end of its update if nothing else is
    /// under way.
    pub(super) fn alone(&self) -> Span {
        let HostTime { schedule, prepare, launch, update } = self.host;
        self.stall + schedule + prepare + launch.max(self.gpu) + update
    }

    /// When everything is launched of a step that is scheduled from `now` on.
    pub(super) fn launched(&self, now: Time) -> Time {
        let HostTime { schedule, prepare, launch, .. } = self.host;
        now + self.stall + schedule + prepare + launch
    }

    /// The turn that launches the step at `now` and then waits for the one `before`.
    pub(super) fn turn(&self, now: Time, before: Option<Launched>) -> Turn {
        let begin = now + self.stall + self.host.schedule + self.host.prepare;
        let launched = begin + self.host.launch;
        let free = before.map_or(begin, |step| step.gpu_end.max(begin));
        let gpu_end = launched.max(free + self.gpu);
        let end = before.map_or(launched, |step| step.end(launched));
        Turn { end, launched: Launched { gpu_end, update: self.host.update } }
    }

    /// After `first`, turns that launch a step like this one each last equally long, if this says
    /// how long. `None` if they do not, or not yet.
    ///
    /// The host sets the pace if it needs no less time than the GPU and never has to wait for it;
    /// the GPU if it needs no less time than the host and has its next step before it needs it.
    pub(super) fn rhythm(&self, first: &Turn) -> Option<Span> {
        let host = self.host.schedule + self.host.prepare + self.host.launch;
        let turn = host + self.host.update;
        let Launched { gpu_end, update } = first.launched;
        let launched = first.end + host;
        let host_bound = self.gpu <= turn && gpu_end <= launched;
        let gpu_bound = gpu_end >= launched && gpu_end + update == first.end + self.gpu;
        if host_bound { Some(turn) } else { (gpu_bound && self.gpu >= turn).then_some(self.gpu) }
    }

    /// When the GPU is done with the step of a turn that begins at `start`, the `n`-th after
    /// `first` (`n` >= 1) of turns that last as `rhythm` says.
    pub(super) fn gpu_end(&self, first: &Turn, start: Time, n: u64) -> Time {
        let begin = start + self.host.schedule + self.host.prepare;
        let waiting = begin + self.gpu.max(self.host.launch);
        waiting.max(first.launched.gpu_end + self.gpu * n)
    }
}

impl Launched {
    /// When its output has been processed, by a host that has nothing else to do from `free` on.
    pub(super) fn end(&self, free: Time) -> Time {
        self.gpu_end.max(free) + self.update
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn us(micros: u64) -> Span {
        Span::from_micros(micros)
    }

    fn cost([schedule, prepare, launch, update, gpu]: [u64; 5]) -> Cost {
        let [schedule, prepare, launch, update] = [schedule, prepare, launch, update].map(us);
        let host = HostTime { schedule, prepare, launch, update };
        Cost { stall: Span::ZERO, host, gpu: us(gpu) }
    }

    #[test]
    fn only_launch_and_gpu_overlap_in_a_step_that_is_alone() {
        assert_eq!(cost([10, 7, 30, 5, 100]).alone(), us(122));
        assert_eq!(cost([10, 7, 300, 5, 100]).alone(), us(322));
        let stalled = Cost { stall: us(40), ..cost([10, 7, 30, 5, 100]) };
        assert_eq!(stalled.alone(), us(162));
    }

    /// Whatever the costs and the step before, turns taken one by one are those of the rhythm.
    #[test]
    fn a_rhythm_is_what_turns_taken_one_by_one_keep() {
        let mut found = [0; 3];
        for gpu in [1, 20, 44, 45, 46, 60, 100] {
            for before in [None, Some(0), Some(20), Some(39), Some(41), Some(44), Some(95)] {
                for update in [0, 5, 20] {
                    let cost = cost([6, 4, 30, 5, gpu]);
                    let start = Time::from_micros(1000);
                    let before = before
                        .map(|left| Launched { gpu_end: start + us(left), update: us(update) });
                    let first = cost.turn(start, before);
                    let Some(span) = cost.rhythm(&first) else {
                        found[0] += 1;
                        continue;
                    };
                    found[1 + usize::from(gpu > 45)] += 1;
                    let mut turn = first;
                    for n in 1..50 {
                        let begin = turn.end;
                        turn = cost.turn(begin, Some(turn.launched));
                        assert_eq!(turn.end, begin + span, "turn {n} of {cost:?}");
                        let gpu_end = cost.gpu_end(&first, begin, n);
                        assert_eq!(turn.launched.gpu_end, gpu_end, "turn {n} of {cost:?}");
                    }
                }
            }
        }
        assert!(found.iter().all(|&cases| cases > 5), "{found:?}");
    }
}
