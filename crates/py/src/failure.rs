//! From what went wrong in the lab to the exception that Python raises.
//!
//! The classes are those of `blis.errors`, so that they are ordinary Python classes with types and
//! docstrings. Nothing here prints or exits.

use blis_lab::{Failure, LedgerError};
use blis_scenario::{Place, Problem, Problems, RunFailure};
use pyo3::exceptions::PyKeyboardInterrupt;
use pyo3::prelude::*;
use pyo3::types::PyDict;
use std::panic::{AssertUnwindSafe, catch_unwind};

/// The module of the classes.
const ERRORS: &str = "blis.errors";

/// An exception of class `name` of `blis.errors` with these keyword arguments.
fn raise(py: Python<'_>, name: &str, message: &str, more: &Bound<'_, PyDict>) -> PyErr {
    let make = || py.import(ERRORS)?.getattr(name)?.call((message,), Some(more));
    match make() {
        Ok(exception) => PyErr::from_value(exception),
        Err(error) => error,
    }
}

/// An exception of class `name` of `blis.errors`.
pub(crate) fn plain(py: Python<'_>, name: &str, message: &str) -> PyErr {
    raise(py, name, message, &PyDict::new(py))
}

/// `ScenarioError`: bad input, with all that is wrong, field by field and with its place.
pub(crate) fn problems(py: Python<'_>, problems: &Problems) -> PyErr {
    let text = problems.iter().map(Problem::shown).collect::<Vec<_>>().join("\n");
    if problems.iter().all(|problem| problem.io) {
        return plain(py, "InputOutputError", &text);
    }
    let more = PyDict::new(py);
    let fill = || -> PyResult<()> {
        let class = py.import(ERRORS)?.getattr("Problem")?;
        let one = |problem: &Problem| {
            let (file, line, column) = match &problem.place {
                Place::File { file, line, column } => (Some(&**file), Some(line), Some(column)),
                Place::Flag(_) | Place::Unknown => (None, None, None),
            };
            class.call1((problem.shown(), &problem.path, &problem.message, file, line, column))
        };
        let all = problems.iter().map(one).collect::<PyResult<Vec<_>>>()?;
        more.set_item("problems", all)
    };
    match fill() {
        Ok(()) => raise(py, "ScenarioError", &text, &more),
        Err(error) => error,
    }
}

/// What `work` gives; a panic in it is a broken invariant.
pub(crate) fn caught<T, E: From<RunFailure>>(work: impl FnOnce() -> Result<T, E>) -> Result<T, E> {
    let done = catch_unwind(AssertUnwindSafe(work));
    done.unwrap_or_else(|payload| {
        let text = payload.downcast_ref::<&str>().map(|text| (*text).to_owned());
        let text = text.or_else(|| payload.downcast_ref::<String>().cloned());
        Err(RunFailure::Broken(text.unwrap_or_else(|| "unknown".to_owned())).into())
    })
}

/// The exception of a run that gave nothing.
pub(crate) fn run(py: Python<'_>, failure: &RunFailure) -> PyErr {
    match failure {
        RunFailure::Input(found) => problems(py, found),
        RunFailure::Source(message) => {
            problems(py, &Problem::new(Place::Unknown, "workload", message.clone()).into())
        }
        RunFailure::Threads(_) => plain(py, "InputOutputError", &failure.to_string()),
        RunFailure::Interrupted => PyKeyboardInterrupt::new_err(()),
        RunFailure::Broken(message) => plain(py, "InternalError", message),
    }
}

/// The exception of an experiment that gave nothing.
pub(crate) fn lab(py: Python<'_>, failure: &Failure) -> PyErr {
    match failure {
        Failure::Run(failure) => run(py, failure),
        Failure::Ledger(error) => ledger(py, error),
    }
}

/// The exception of a ledger that cannot be used.
pub(crate) fn ledger(py: Python<'_>, error: &LedgerError) -> PyErr {
    plain(py, "LedgerError", &error.to_string())
}
