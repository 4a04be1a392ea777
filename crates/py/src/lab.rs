//! Trials, studies, searches and calibrations: text in, rows and documents out.
//!
//! Whoever runs the trials of a study or search elsewhere asks `Rounds`, in `remote.rs`.

use crate::failure;
use crate::report::PyDocument;
use crate::watch::{Signals, interruptible};
use blis_fidelity::calibrate as fitting;
use blis_fidelity::measured;
use blis_lab::Failure;
use blis_lab::ledger::Ledger;
use blis_lab::optimize::{self, Search};
use blis_lab::study::{self, Study};
use blis_lab::trial::{self, Runner};
use blis_lab::tune;
use blis_scenario::profile::{self, ProfiledMachine};
use blis_scenario::{Plan, Problem, RunFailure, Saturations, policies as listing};
use blis_sim::Observer;
use pyo3::prelude::*;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// All policies, as `blis policies --format json` prints them.
#[pyfunction]
pub(crate) fn policies() -> String {
    blis_scenario::json::text(&blis_policy::kinds().iter().map(listing::object).collect())
}

/// Runs the trial in the JSON document `trial`; its row, as one line of JSON.
#[pyfunction]
pub(crate) fn run_trial(py: Python<'_>, trial: &str) -> PyResult<String> {
    let mut signals = Signals::new(Vec::new());
    let row = py.detach(|| {
        failure::caught(|| {
            let known = Saturations::default();
            let (plan, seed) = trial::read("trial", trial, &known, &mut signals)?;
            trial::row(&plan, seed, false, &mut signals)
        })
    });
    match (signals.raised(), row) {
        (Some(raised), _) => Err(raised),
        (None, Ok(row)) => Ok(row.text()),
        (None, Err(failure)) => Err(failure::run(py, &failure)),
    }
}

/// Runs the study in `text`, which stands in the file `path`, on `jobs` threads (0: one for each
/// core), as far as `ledger` does not have it, and keeps it there.
#[pyfunction]
#[pyo3(signature = (text, path, ledger = None, jobs = 0))]
pub(crate) fn study_report(
    py: Python<'_>,
    text: &str,
    path: &str,
    ledger: Option<PathBuf>,
    jobs: usize,
) -> PyResult<PyDocument> {
    interruptible(py, |watch| {
        let ledger = open(ledger.as_deref())?;
        let runner = Runner::new(jobs, ledger.as_ref(), watch)?;
        let study = tune::settle(study::read_text(path, text)?, &runner)?;
        studied(&study, &name(path), &runner)
    })
}

/// Runs the search in `text`, which stands in the file `path`, on `jobs` threads (0: one for each
/// core), as far as `ledger` does not have it. The recommended strategy is a file, if there is one.
#[pyfunction]
#[pyo3(signature = (text, path, ledger = None, jobs = 0, control = false))]
pub(crate) fn search_report(
    py: Python<'_>,
    text: &str,
    path: &str,
    ledger: Option<PathBuf>,
    jobs: usize,
    control: bool,
) -> PyResult<(PyDocument, Option<String>)> {
    interruptible(py, |watch| {
        let ledger = open(ledger.as_deref())?;
        let runner = Runner::new(jobs, ledger.as_ref(), watch)?;
        let search = optimize::read_text(path, text)?.settle(&runner)?;
        searched(&search, control, &runner)
    })
}

/// All that a study finds, after it was run as `name`.
pub(crate) fn studied(
    study: &Study,
    name: &str,
    runner: &Runner<'_>,
) -> Result<PyDocument, Failure> {
    let findings = study.run_recorded(name, runner)?;
    Ok(PyDocument(blis_report::study::document(study, &findings, None)))
}

/// All that a search finds, and the file of the strategy that it recommends, if that is one.
pub(crate) fn searched(
    search: &Search,
    control: bool,
    runner: &Runner<'_>,
) -> Result<(PyDocument, Option<String>), Failure> {
    let findings = search.run(runner, control)?;
    let found = PyDocument(blis_report::search::document(search, &findings, None));
    let chosen = findings.chosen.first().filter(|_| search.objectives.len() == 1);
    let file = |chosen: &optimize::Chosen| {
        let strategy = &search.points.candidates[chosen.candidate].strategy;
        strategy.text(&format!("{}-optimised", strategy.name), &chosen.settings)
    };
    Ok((found, chosen.map(file)))
}

/// Fits a latency profile to logs of a server: how good it is, and the profile as YAML.
#[pyfunction]
#[pyo3(signature = (
    steps, *, requests = Vec::new(), grid = Vec::new(), padding = None,
    block_size = 16, model = None, hardware = None, tp = None,
))]
#[expect(clippy::too_many_arguments, reason = "keywords of Python, as the flags of the command")]
pub(crate) fn calibrate(
    py: Python<'_>,
    steps: Vec<PathBuf>,
    requests: Vec<PathBuf>,
    grid: Vec<PathBuf>,
    padding: Option<&str>,
    block_size: u32,
    model: Option<&str>,
    hardware: Option<String>,
    tp: Option<u32>,
) -> PyResult<(PyDocument, String)> {
    let fit = || -> Result<_, Problem> {
        let logged = measured::read_all(&steps, &requests)?;
        let padding =
            fitting::padding(padding, &logged).map_err(|text| Problem::of_file("padding", text))?;
        let runs = fitting::runs(&logged, &measured::grids(&grid, &steps), block_size)?;
        let machine = ProfiledMachine { model: model.map(fitting::model_name), hardware, tp };
        let found = fitting::calibrate(runs, padding, machine)?;
        let document = PyDocument(blis_report::calibrate::document(&found));
        Ok((document, profile::text(&found.file)))
    };
    py.detach(fit).map_err(|problem| failure::problems(py, &problem.into()))
}

/// Plans of trials that were read, so that trials of one scenario are checked once.
#[derive(Default)]
pub(crate) struct Known {
    plans: BTreeMap<String, Plan>,
    saturations: Saturations,
}

impl Known {
    /// The plan and the seed of the document `trial`.
    pub(crate) fn read(
        &mut self,
        trial: &str,
        observer: &mut dyn Observer,
    ) -> Result<(Plan, u64), RunFailure> {
        // A document ends with its seed, and is the same up to there for all of a scenario.
        let found = trial.rsplit_once("\"seed\":").and_then(|(scenario, seed)| {
            let seed = seed.trim().strip_suffix('}')?.trim().parse().ok()?;
            Some((scenario, seed))
        });
        let Some((scenario, seed)) = found else {
            return trial::read("trial", trial, &self.saturations, observer);
        };
        if let Some(plan) = self.plans.get(scenario) {
            return Ok((plan.clone(), seed));
        }
        let (plan, seed) = trial::read("trial", trial, &self.saturations, observer)?;
        self.plans.insert(scenario.to_owned(), plan.clone());
        Ok((plan, seed))
    }

    /// Begins anew if there are more than `most`.
    pub(crate) fn forget(&mut self, most: usize) {
        if self.plans.len() > most {
            self.plans.clear();
        }
    }
}

fn open(path: Option<&Path>) -> Result<Option<Ledger>, Failure> {
    Ok(path.map(Ledger::open).transpose()?)
}

/// What the ledger calls the study in the file `path`.
pub(crate) fn name(path: &str) -> String {
    let path = Path::new(path);
    path.file_stem().unwrap_or(path.as_os_str()).to_string_lossy().into_owned()
}
