//! From what went wrong in the lab to the exception that Python raises.
//!
//! The classes are those of `blis.errors`, so that they are ordinary Python classes with types and
//! docstrings. Nothing here prints or exits.

use blis_lab::{Failure, LedgerError};
use blis_scenario::{Place, Problem, RunFailure};
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

/// `ScenarioError`: bad input, with the path of the field at fault, and where it stands.
pub(crate) fn problem(py: Python<'_>, problem: &Problem) -> PyErr {
    let more = PyDict::new(py);
    let text = match &problem.excerpt {
        Some(excerpt) => format!("{problem}\n{excerpt}"),
        None => problem.to_string(),
    };
    let fill = || -> PyResult<()> {
        more.set_item("path", &problem.path)?;
        more.set_item("message", &problem.message)?;
        if let Place::File { file, line, column } = &problem.place {
            more.set_item("file", &**file)?;
            more.set_item("line", line)?;
            more.set_item("column", column)?;
        }
        Ok(())
    };
    match fill() {
        Ok(()) if problem.io => plain(py, "InputOutputError", &text),
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
        RunFailure::Input(found) => problem(py, found),
        RunFailure::Source(message) => {
            problem(py, &Problem::new(Place::Unknown, "workload", message.clone()))
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
