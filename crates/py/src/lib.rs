//! `blis._core`: the compiled half of the Python package.
//!
//! It hands text and plain values to the same functions of the lab that the binary calls, and gives
//! back documents, JSON or Arrow columns; what reads well in Python is written in Python, in
//! `python/src/blis`. The interpreter's lock is released while anything is simulated. It must never
//! print.
#![expect(clippy::needless_pass_by_value, reason = "arguments are converted, hence handed over")]

mod failure;
mod lab;
mod policy;
mod remote;
mod report;
mod run;
mod scenario;
mod tables;
mod views;
mod watch;

use pyo3::prelude::*;

/// The module.
#[pymodule(name = "_core")]
mod core {
    #[pymodule_export]
    use crate::lab::{calibrate, policies, run_trial, search_report, study_report};
    #[pymodule_export]
    use crate::policy::Policy;
    #[pymodule_export]
    use crate::remote::{Rounds, Space, Worker};
    #[pymodule_export]
    use crate::report::PyDocument;
    #[pymodule_export]
    use crate::run::{Run, run};
    #[pymodule_export]
    use crate::scenario::{Scenario, settings};
    #[pymodule_export]
    use crate::tables::PyTable;
    #[pymodule_export]
    use crate::views::{Cluster, Instance, Request, Waiting};
    use pyo3::prelude::*;

    #[pymodule_init]
    fn init(module: &Bound<'_, PyModule>) -> PyResult<()> {
        module.add("__version__", env!("CARGO_PKG_VERSION"))?;
        module.add("CODE", blis_scenario::CODE)?;
        module.add("LEDGER", blis_lab::ledger::DEFAULT_PATH)
    }
}
