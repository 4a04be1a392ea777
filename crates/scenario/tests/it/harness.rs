//! Runs scenario texts the way the binary does, with the audit on, and keeps what tests ask about.

use blis_core::math::float;
use blis_core::{Span, Time};
use blis_metrics::{Fact, Listener, Status};
use blis_scenario::{Draft, Plan, RunResult, Trial, run_scenario};
use blis_sim::{Pace, Unobserved};

/// The plan of a scenario text.
#[track_caller]
pub(crate) fn plan(text: &str) -> Plan {
    let draft = Draft::from_text("scenario.yaml", text);
    draft.expect("well-formed").plan().unwrap_or_else(|problem| panic!("{problem}\n{text}"))
}

/// Runs `plan` once with the audit on, which must find nothing.
#[track_caller]
pub(crate) fn run_audited(plan: &Plan, pace: Pace, listener: &mut dyn Listener) -> RunResult {
    let trial = Trial { pace, audit: true, ..Trial::new(plan.seed) };
    let result = run_scenario(plan, trial, &mut [listener], None, &mut Unobserved)
        .unwrap_or_else(|failure| panic!("{failure}"));
    assert_clean(&result, plan);
    result
}

/// The audit of `result` was on and found nothing.
#[track_caller]
pub(crate) fn assert_clean(result: &RunResult, plan: &Plan) {
    let audit = result.audit.as_ref().expect("the audit was on");
    let found: Vec<String> = audit.first.iter().map(ToString::to_string).collect();
    assert!(audit.is_clean(), "{} violations:\n{found:#?}\n{}", audit.count, plan.canonical());
}

/// One finished request.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Story {
    pub(crate) arrival: Time,
    pub(crate) gateway: Span,
    pub(crate) queue: Span,
    pub(crate) output: Span,
    pub(crate) e2e: Span,
    pub(crate) output_tokens: u32,
}

impl Story {
    /// From leaving the queue to the last token: the engine's own time, if nothing is preempted.
    pub(crate) fn service(&self) -> Span {
        self.e2e - self.gateway - self.queue - self.output
    }
}

/// The stories of all requests, in order of arrival. All of them must finish.
#[derive(Debug, Default)]
pub(crate) struct Stories(pub(crate) Vec<Story>);

impl Listener for Stories {
    fn hear(&mut self, _: Time, fact: &Fact<'_>) {
        let Fact::Closed { status, record } = fact else { return };
        assert_eq!(*status, Status::Finished, "every request of these scenarios finishes");
        let index = usize::try_from(record.request.0).expect("it fits memory");
        if self.0.len() <= index {
            self.0.resize(index + 1, Story::default());
        }
        self.0[index] = Story {
            arrival: record.arrival,
            gateway: record.split.gateway,
            queue: record.split.queue,
            output: record.split.output,
            e2e: record.e2e.expect("it finished"),
            output_tokens: record.output_tokens,
        };
    }
}

/// Batches of a batch-means interval, and Student's 97.5 % quantile with one degree less.
const BATCHES: usize = 20;
const STUDENT: f64 = 2.093;

/// A mean over requests in order of arrival, with its 95 % interval by batch means.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Estimate {
    pub(crate) mean: f64,
    /// Half the width of the interval.
    pub(crate) half: f64,
    pub(crate) requests: usize,
}

impl Estimate {
    /// The mean of `of` over `stories`, without the first tenth: the system starts empty.
    pub(crate) fn of(stories: &[Story], of: impl Fn(&Story) -> f64) -> Estimate {
        let values: Vec<f64> = stories[stories.len() / 10..].iter().map(of).collect();
        let mean = |values: &[f64]| values.iter().sum::<f64>() / float(values.len() as u64);
        let batches: Vec<f64> =
            values.chunks_exact(values.len() / BATCHES).take(BATCHES).map(mean).collect();
        let centre = mean(&batches);
        let squares: f64 = batches.iter().map(|batch| (batch - centre) * (batch - centre)).sum();
        let batches = float(BATCHES as u64);
        let half = STUDENT * (squares / (batches - 1.0) / batches).sqrt();
        Estimate { mean: mean(&values), half, requests: values.len() }
    }

    /// The mean is within `share` of what theory says.
    #[track_caller]
    pub(crate) fn assert_near(&self, expected: f64, share: f64, what: &str) {
        let deviation = self.mean / expected - 1.0;
        assert!(
            deviation.abs() <= share,
            "{what}: expected {expected}, measured {} ± {} (95 %, {} requests): {:+.2} %, more \
             than {:.1} %",
            self.mean,
            self.half,
            self.requests,
            100.0 * deviation,
            100.0 * share
        );
    }
}
