//! One run, and what Python sees of it.
#![expect(clippy::disallowed_types, reason = "how long a run took is told with it")]

use crate::failure;
use crate::policy::Tally;
use crate::report::PyDocument;
use crate::scenario::{Ready, Scenario};
use crate::tables::{Decisions, PyTable, Requests, Timeline};
use crate::watch::Signals;
use blis_core::Span;
use blis_lab::Metric;
use blis_metrics::Listener;
use blis_report::run::{Finished, one};
use blis_scenario::{Names, Plan, RunFailure, RunResult, Trial, run_scenario};
use blis_sim::End;
use pyo3::exceptions::{PyAttributeError, PyKeyboardInterrupt, PyValueError};
use pyo3::prelude::*;
use std::sync::Arc;
use std::time::Instant;

/// A finished run.
#[pyclass(frozen, module = "blis._core")]
pub(crate) struct Run {
    plan: Plan,
    result: RunResult,
    wall_seconds: f64,
    requests: Option<PyTable>,
    timeline: Option<PyTable>,
    decisions: Option<PyTable>,
    /// The policies in Python: name, calls, and seconds in them.
    #[pyo3(get)]
    policy_costs: Vec<(&'static str, u64, f64)>,
}

#[pymethods]
impl Run {
    /// Everything, as `blis run` prints it.
    fn document(&self) -> PyDocument {
        PyDocument(one(&Finished {
            plan: &self.plan,
            result: &self.result,
            wall_seconds: Some(self.wall_seconds),
            cpu_seconds: None,
            inversions: None,
            fitness: None,
            regret: None,
        }))
    }

    /// What the user should know of the scenario.
    #[getter]
    fn notes(&self) -> Vec<String> {
        self.plan.notes.clone()
    }

    /// The number called `name`, as studies call it, e.g. `critical.ttft_p99`; `None` if there is
    /// no sample.
    fn metric(&self, name: &str) -> PyResult<Option<f64>> {
        let metric = Metric::parse(name).map_err(PyAttributeError::new_err)?;
        Ok(metric.of(&self.result.report))
    }

    /// What the numbers do not show, although whoever reads them must know.
    #[getter]
    fn warnings(&self) -> Vec<String> {
        self.result.warnings(&self.plan)
    }

    /// One row a request, if they were recorded.
    fn requests(&self) -> Option<PyTable> {
        self.requests.as_ref().map(PyTable::share)
    }

    /// One row an instance and sample, if they were recorded.
    fn timeline(&self) -> Option<PyTable> {
        self.timeline.as_ref().map(PyTable::share)
    }

    /// One row a routing decision, if they were recorded.
    fn decisions(&self) -> Option<PyTable> {
        self.decisions.as_ref().map(PyTable::share)
    }
}

/// What is recorded besides the numbers.
struct Recorders {
    requests: Option<Requests>,
    timeline: Option<Timeline>,
    decisions: Option<Decisions>,
}

impl Recorders {
    fn listeners(&mut self) -> Vec<&mut dyn Listener> {
        let requests = self.requests.as_mut().map(|one| one as &mut dyn Listener);
        let timeline = self.timeline.as_mut().map(|one| one as &mut dyn Listener);
        let decisions = self.decisions.as_mut().map(|one| one as &mut dyn Listener);
        [requests, timeline, decisions].into_iter().flatten().collect()
    }
}

/// Runs `scenario` once, with its own seed.
#[pyfunction]
#[pyo3(signature = (
    scenario, *, audit = false, requests = true, timeline_ms = None, decisions = false,
))]
pub(crate) fn run(
    py: Python<'_>,
    scenario: &Scenario,
    audit: bool,
    requests: bool,
    timeline_ms: Option<f64>,
    decisions: bool,
) -> PyResult<Run> {
    let Ready { plan, tallies } = scenario.resolve(py)?;
    let sample_interval = timeline_ms.map(interval).transpose()?;
    let trial = Trial { audit, sample_interval, ..Trial::new(plan.seed) };
    let names = Names::default();
    let mut recorders = Recorders {
        requests: requests.then(|| Requests::new(names.clone())),
        timeline: timeline_ms.map(|_| Timeline::new()),
        decisions: decisions.then(Decisions::new),
    };
    let watched: Vec<Arc<Tally>> = tallies.iter().map(|(_, tally)| Arc::clone(tally)).collect();
    let mut signals = Signals::new(watched);
    let names = requests.then_some(names);
    let done = py.detach(|| simulate(&plan, trial, &mut recorders, names, &mut signals));
    if let Some(raised) = signals.raised() {
        return Err(raised);
    }
    let (result, wall_seconds) = done.map_err(|failure| failure::run(py, &failure))?;
    if result.outcome.end == End::Interrupted {
        return Err(PyKeyboardInterrupt::new_err(()));
    }
    let cost = |(name, tally): (&'static str, Arc<Tally>)| {
        let (calls, seconds) = tally.cost();
        (name, calls, seconds)
    };
    Ok(Run {
        result,
        wall_seconds,
        requests: recorders.requests.map(|one| PyTable::new(one.table())),
        timeline: recorders.timeline.map(|one| PyTable::new(one.table())),
        decisions: recorders.decisions.map(|one| PyTable::new(one.table())),
        plan,
        policy_costs: tallies.into_iter().map(cost).collect(),
    })
}

/// The time between samples.
fn interval(millis: f64) -> PyResult<Span> {
    let legal = (0.001..=1e9).contains(&millis);
    let message = || format!("timeline_ms: found `{millis}`; legal: a number from 0.001 to 1e9");
    legal
        .then(|| Span::from_micros_f64(millis * 1e3))
        .ok_or_else(|| PyValueError::new_err(message()))
}

fn simulate(
    plan: &Plan,
    trial: Trial,
    recorders: &mut Recorders,
    names: Option<Names>,
    signals: &mut Signals,
) -> Result<(RunResult, f64), RunFailure> {
    let started = Instant::now();
    let run = || run_scenario(plan, trial, &mut recorders.listeners(), names, signals);
    let result = failure::caught(run)?;
    result.check()?;
    Ok((result, started.elapsed().as_secs_f64()))
}
