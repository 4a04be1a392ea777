//! One run, and what Python sees of it.
#![expect(clippy::disallowed_types, reason = "how long a run took is told with it")]

use crate::failure;
use crate::scenario::Scenario;
use crate::watch::Signals;
use blis_lab::{Metric, Plan, Row, RunFailure, RunResult, Trial, run_scenario};
use blis_sim::{End, Pace};
use pyo3::exceptions::{PyAttributeError, PyKeyboardInterrupt};
use pyo3::prelude::*;
use std::time::Instant;

/// A finished run.
#[pyclass(frozen, module = "blis._core")]
pub(crate) struct Run {
    row: Row,
    /// What the user should know of the scenario.
    #[pyo3(get)]
    notes: Vec<String>,
}

#[pymethods]
impl Run {
    /// Everything, as `blis run --format json` prints it.
    fn json(&self) -> String {
        blis_lab::json::text(&self.row.numbers().into_value())
    }

    /// The number called `name`, as studies call it, e.g. `critical.ttft_p99`; `None` if there is
    /// no sample.
    fn metric(&self, name: &str) -> PyResult<Option<f64>> {
        let metric = Metric::parse(name).map_err(PyAttributeError::new_err)?;
        Ok(metric.of(&self.row.report))
    }

    /// What the numbers do not show, although whoever reads them must know.
    #[getter]
    fn warnings(&self) -> Vec<String> {
        self.row.warnings.clone()
    }
}

/// Runs `scenario` once, with its own seed.
#[pyfunction]
#[pyo3(signature = (scenario, *, audit = false))]
pub(crate) fn run(py: Python<'_>, scenario: &Scenario, audit: bool) -> PyResult<Run> {
    let plan = py.detach(|| scenario.draft.resolve());
    let plan = plan.map_err(|problem| failure::problem(py, &problem))?;
    let mut signals = Signals::new();
    let done = py.detach(|| simulate(&plan, audit, &mut signals));
    if let Some(raised) = signals.raised {
        return Err(raised);
    }
    let (result, wall_seconds) = done.map_err(|failure| failure::run(py, &failure))?;
    if result.outcome.end == End::Interrupted {
        return Err(PyKeyboardInterrupt::new_err(()));
    }
    let mut row = Row::of(&plan, &result);
    row.run.wall_seconds = Some(wall_seconds);
    Ok(Run { row, notes: plan.notes })
}

fn simulate(
    plan: &Plan,
    audit: bool,
    signals: &mut Signals,
) -> Result<(RunResult, f64), RunFailure> {
    let trial = Trial {
        seed: plan.seed,
        pace: Pace::FastForward,
        audit,
        sample_interval: None,
        overrule: None,
        curves: true,
    };
    let started = Instant::now();
    let result = run_scenario(plan, trial, &mut [], None, signals)?;
    result.check()?;
    Ok((result, started.elapsed().as_secs_f64()))
}
