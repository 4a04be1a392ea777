//! Results as documents, in the layouts that the command prints.

use blis_report::html::{self, Figures};
use blis_report::terminal::{self, Screen};
use blis_report::{Document, markdown};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

/// A result: headings, prose, tables, charts, verdicts, and the numbers behind them.
#[pyclass(frozen, name = "Document", module = "blis._core")]
pub(crate) struct PyDocument(pub(crate) Document);

#[pymethods]
impl PyDocument {
    /// Its text: `table` for terminals of `width` columns, `markdown`, `html` or `json`.
    fn text(&self, layout: &str, width: usize) -> PyResult<String> {
        match layout {
            "table" => Ok(terminal::text(&self.0, Screen { width, colour: false, details: true })),
            "markdown" => Ok(markdown::page(&self.0, None).text),
            "html" => Ok(html::page(&self.0, Figures::Scripted)),
            "json" => Ok(blis_scenario::json::text(&self.0.data)),
            _ => {
                let legal = "`table`, `markdown`, `html` or `json`";
                let message = format!("unknown format `{layout}`; legal: {legal}");
                Err(PyValueError::new_err(message))
            }
        }
    }
}
