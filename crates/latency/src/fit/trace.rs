//! Steps of an engine that logs its host apart, and where they show how long the GPU took.
//!
//! The GPU's time is not logged. Where the host waited for a step's tokens, the moment at which
//! they came is the end of the step on the GPU; where the host came later, that moment says no more
//! than that the GPU was done before.

use super::log::Row;
use crate::profile::host::{Host, SAMPLE};
use crate::shape::StepShape;

/// Copying the tokens of a step to the host, in microseconds: in a synchronous run of vLLM a step
/// that only decodes takes 155 more than its launch and the GPU (median of 2,446 steps).
pub(super) const COPY_US: f64 = 150.0;

/// The host waited if the tokens came so much later than its own work ended, in microseconds.
const WAITED_US: f64 = 500.0;

/// And the GPU can have been the reason if a guess of its time is off by no more than this share
/// and so many microseconds.
const BAND: (f64, f64) = (0.25, 300.0);

/// How much a step counts whose beginning on the GPU is a guess.
const GUESSED: f64 = 0.3;

/// The ways into an engine and out of it, in microseconds.
#[derive(Clone, Debug, PartialEq)]
pub struct Ways {
    /// Least time from a request's arrival to its first scheduling.
    pub inwards: f64,
    /// Sequences of a step, and the time from its update to a first token at the client.
    pub outwards: Vec<(u32, f64)>,
    /// Mean time to the first token.
    pub ttft: f64,
}

/// One step: what it computed, and when its host did what, in microseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct TracedStep {
    /// What it computed.
    pub shape: StepShape,
    /// When `schedule()` began.
    pub scheduled_us: f64,
    /// How long that took.
    pub schedule_us: f64,
    /// How long launching took, without sampling.
    pub launch_us: f64,
    /// When the tokens were at hand.
    pub done_us: f64,
    /// How long processing them took.
    pub update_us: f64,
}

impl TracedStep {
    /// Its sequences.
    pub fn seqs(&self) -> u32 {
        self.shape.prefill_seqs + self.shape.decode_seqs
    }

    fn launched_us(&self) -> f64 {
        self.scheduled_us + self.schedule_us + self.launch_us
    }

    /// When the GPU could begin: for a step that only decodes, when its one graph was launched.
    fn ready_us(&self, host: &Host) -> f64 {
        let launch = if self.shape.only_decodes() {
            self.launch_us
        } else {
            host.cost(3, self.seqs()).min(self.launch_us)
        };
        self.scheduled_us + self.schedule_us + launch
    }
}

/// The steps of one run, in order, and how its engine was set.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Trace {
    /// The steps.
    pub steps: Vec<TracedStep>,
    /// The largest size of a captured graph; `None`: all sizes were captured.
    pub largest_graph: Option<u32>,
    /// What lies between the client and the engine; `None` if that is not known.
    pub ways: Option<Ways>,
}

impl Trace {
    /// Whether the next step was usually scheduled before the tokens of the one before were there.
    pub fn is_asynchronous(&self) -> bool {
        let pairs = self.steps.windows(2);
        let early = pairs.filter(|pair| pair[1].scheduled_us < pair[0].done_us).count();
        2 * early > self.steps.len()
    }

    /// Whether a graph of the step's size was captured.
    pub fn is_captured(&self, shape: &StepShape) -> bool {
        let tokens = shape.prefill_tokens + shape.decode_seqs;
        self.largest_graph.is_none_or(|largest| tokens <= largest)
    }

    /// The steps whose time on the GPU shows. Without a guess of it, only those that begin when the
    /// GPU has nothing to do, or when another ends that shows.
    pub fn visible(&self, host: &Host, guess: Option<&dyn Fn(&StepShape) -> f64>) -> Vec<Row> {
        let mut rows = Vec::new();
        // The end of the step before on the GPU, and whether that was seen.
        let (mut free, mut seen) = (None, false);
        for (at, step) in self.steps.iter().enumerate() {
            let ready = step.ready_us(host);
            let next = self.steps.get(at + 1).filter(|next| next.scheduled_us < step.done_us);
            let last = next.unwrap_or(step);
            let launched = last.launched_us() + host.cost(SAMPLE, last.seqs()) + COPY_US;
            let end = step.done_us - COPY_US;
            let begin = free.map_or(ready, |free: f64| free.max(ready));
            let expected = guess.map(|guess| {
                let micros = guess(&step.shape);
                let bound = if step.shape.only_decodes() { 0.0 } else { step.launched_us() };
                (micros, (begin + micros).max(bound))
            });
            let near =
                |(micros, expected): (f64, f64)| (end - expected).abs() < BAND.0 * micros + BAND.1;
            let shows = step.done_us - launched > WAITED_US && expected.is_none_or(near);
            if shows {
                let follows = seen && free.is_some_and(|free| free > ready);
                let before = at.checked_sub(1).map(|before| self.steps[before].done_us);
                let idle = before.is_none_or(|done| done <= step.scheduled_us);
                let alone =
                    idle || expected.is_some() && free.is_some_and(|free| free < ready - 1000.0);
                // With prefill the GPU may have waited for the last launches.
                let free_of_host =
                    step.shape.only_decodes() || end - step.launched_us() > 2.0 * WAITED_US;
                if free_of_host && end > begin && (follows || idle || expected.is_some()) {
                    let weight = if follows || alone { 1.0 } else { GUESSED };
                    rows.push(Row {
                        shape: step.shape,
                        micros: end - begin,
                        gap_micros: None,
                        weight,
                    });
                }
                free = Some(end);
            } else {
                free = expected.map(|(_, expected)| expected.min(end));
            }
            seen = shows;
        }
        rows
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::profile::host::HOST_TERMS;

    /// Decodes of 6 ms on the GPU, launched 2 ms into the step before; the fourth step's launch
    /// takes 10 ms, so that the third step's tokens wait for it.
    fn trace() -> Trace {
        let shape = StepShape { decode_seqs: 1, decode_context: 9, ..StepShape::default() };
        let prefill = StepShape { prefill_seqs: 1, prefill_tokens: 64, ..StepShape::default() };
        let times = [(0.0, 1.0, 7.15), (1.5, 1.0, 13.15), (7.3, 1.0, 24.4), (13.2, 10.0, 29.65)];
        let step = |(at, (scheduled, launch, done)): (usize, (f64, f64, f64))| TracedStep {
            shape: if at == 3 { prefill } else { shape },
            scheduled_us: 1000.0 * scheduled,
            schedule_us: 0.0,
            launch_us: 1000.0 * launch,
            done_us: 1000.0 * done,
            update_us: 50.0,
        };
        let steps = times.into_iter().enumerate().map(step).collect();
        Trace { steps, ..Trace::default() }
    }

    fn host() -> Host {
        let mut us = [0.0; HOST_TERMS];
        (us[3], us[SAMPLE]) = (1000.0, 1000.0);
        Host { us, drift: 0.0 }
    }

    #[test]
    fn the_gpu_shows_only_where_the_host_waited_for_it() {
        assert!(trace().is_asynchronous());
        let rows = trace().visible(&host(), None);
        let micros: Vec<f64> = rows.iter().map(|row| row.micros).collect();
        assert_eq!(micros.len(), 2, "the first, and the second that follows it: {micros:?}");
        assert!(micros.iter().all(|micros| (micros - 6000.0).abs() < 1e-6), "{micros:?}");
    }

    #[test]
    fn with_a_guess_the_beginning_of_a_step_can_be_told() {
        let guess = |shape: &StepShape| if shape.only_decodes() { 6100.0 } else { 9000.0 };
        let rows = trace().visible(&host(), Some(&guess));
        let micros: Vec<f64> = rows.iter().map(|row| row.micros.round()).collect();
        // The third step ends unseen at 13.0 + 6.1, and the fourth, seen, at 29.5.
        assert_eq!(micros, [6000.0, 6000.0, 10_400.0]);
        assert!((rows[2].weight - GUESSED).abs() < 1e-9);
    }
}
