//! Scenarios as Python hands them over: a file or a text, and settings over it.

use crate::failure;
use blis_lab::Draft;
use blis_lab::scenario::flags::{FLAGS, Given};
use pyo3::prelude::*;
use std::path::PathBuf;

/// A scenario as it was written, not yet checked.
#[pyclass(frozen, module = "blis._core")]
pub(crate) struct Scenario {
    pub(crate) draft: Draft,
}

#[pymethods]
impl Scenario {
    /// The scenario in the file `path`.
    #[staticmethod]
    #[pyo3(signature = (path))]
    fn read(py: Python<'_>, path: PathBuf) -> PyResult<Scenario> {
        let draft = py.detach(|| Draft::read(&path));
        draft.map(|draft| Scenario { draft }).map_err(|problem| failure::problem(py, &problem))
    }

    /// The scenario in `text`, YAML or JSON, as if it stood in a file called `name`.
    #[staticmethod]
    fn from_text(py: Python<'_>, name: &str, text: &str) -> PyResult<Scenario> {
        let draft = Draft::from_text(name, text);
        draft.map(|draft| Scenario { draft }).map_err(|problem| failure::problem(py, &problem))
    }

    /// An empty scenario: all defaults.
    #[staticmethod]
    fn empty() -> Scenario {
        Scenario { draft: Draft::default() }
    }

    /// The same with these settings, which win.
    #[pyo3(name = "set")]
    fn with_settings(&self, py: Python<'_>, settings: Vec<(String, String)>) -> PyResult<Scenario> {
        let (mut given, mut draft) = (Given::default(), self.draft.clone());
        let fill = || {
            for (name, text) in settings {
                given.push_named(&name, text)?;
            }
            given.apply(&mut draft)
        };
        fill().map_err(|problem| failure::problem(py, &problem))?;
        Ok(Scenario { draft })
    }

    /// Checks everything; the hash of what it means.
    fn check(&self, py: Python<'_>) -> PyResult<String> {
        let plan = py.detach(|| self.draft.resolve());
        plan.map(|plan| plan.hash()).map_err(|problem| failure::problem(py, &problem))
    }

    /// The trial of it with `seed`, or with its own, as a JSON document for `run_trial`.
    #[pyo3(signature = (seed = None))]
    fn trial(&self, py: Python<'_>, seed: Option<u64>) -> PyResult<String> {
        let plan = py.detach(|| self.draft.resolve());
        let plan = plan.map_err(|problem| failure::problem(py, &problem))?;
        let seed = seed.unwrap_or(plan.seed);
        Ok(blis_lab::trial::document(plan.document(), &plan.hash(), seed))
    }
}

/// The settings that a scenario can be given by name: name, what its value is, and help.
#[pyfunction]
pub(crate) fn settings() -> Vec<(String, &'static str, &'static str)> {
    FLAGS.iter().map(|flag| (flag.name.replace('-', "_"), flag.value, flag.help)).collect()
}
