//! Trials, studies, searches and calibrations: text in, JSON out.
//!
//! `study_missing` and `search_missing` say which trials are needed next and are not in a ledger,
//! so that an engine can run them anywhere with `run_trial` and keep the rows with `ledger_put`.
//! When nothing is missing, `study_report` and `search_report` find everything in the ledger.

use crate::failure;
use crate::watch::{Signals, interruptible};
use blis_lab::calibrate as fitting;
use blis_lab::ledger::Ledger;
use blis_lab::optimize::{self, Search};
use blis_lab::profile::{self, ProfiledMachine};
use blis_lab::scenario::known as saturations;
use blis_lab::study::{self, Study};
use blis_lab::trial::{self, Elsewhere, Key, Runner};
use blis_lab::{Plan, Problem, Row, RunFailure, measured, policies as listing};
use pyo3::prelude::*;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// A trial that is needed: its key and its document.
pub(crate) type Needed = Vec<(String, String)>;

/// All policies, as `blis policies --format json` prints them.
#[pyfunction]
pub(crate) fn policies() -> String {
    blis_lab::json::text(&blis_policy::kinds().iter().map(listing::object).collect())
}

/// Runs the trial in the JSON document `trial`; its row, as one line of JSON.
#[pyfunction]
pub(crate) fn run_trial(py: Python<'_>, trial: &str) -> PyResult<String> {
    let mut signals = Signals::new(Vec::new());
    let row = py.detach(|| {
        failure::caught(|| {
            let (plan, seed) = trial::read("trial", trial)?;
            trial::row(&plan, seed, false, &mut signals)
        })
    });
    match (signals.raised(), row) {
        (Some(raised), _) => Err(raised),
        (None, Ok(row)) => Ok(row.text()),
        (None, Err(failure)) => Err(failure::run(py, &failure)),
    }
}

/// All trials that the study in `text`, which stands in the file `path`, may need with all its
/// seeds, with their keys. Runs those that find its warm-up, if it leaves that to them.
#[pyfunction]
#[pyo3(signature = (text, path, ledger = None))]
pub(crate) fn study_trials(
    py: Python<'_>,
    text: &str,
    path: &str,
    ledger: Option<PathBuf>,
) -> PyResult<Needed> {
    interruptible(py, |watch| {
        let ledger = open(ledger.as_deref())?;
        let study = study::read_text(path, text)?;
        let runner = Runner { jobs: 0, audit: false, ledger: ledger.as_ref() };
        let warmup = study.settle(&runner, watch)?;
        let plans = study.plans(warmup)?;
        let seeds = Study::first_seeds(study.max_seeds);
        let all = plans.iter().flat_map(|plan| seeds.iter().map(move |&seed| named(plan, seed)));
        Ok(all.collect())
    })
}

/// The trials that the study in `text` needs next and that `ledger` does not have; empty when it is
/// complete.
#[pyfunction]
pub(crate) fn study_missing(
    py: Python<'_>,
    text: &str,
    path: &str,
    ledger: PathBuf,
) -> PyResult<Needed> {
    interruptible(py, |_| {
        let ledger = known(&ledger)?;
        let study = study::read_text(path, text)?;
        let elsewhere = Elsewhere::default();
        let runner = Runner { jobs: 1, audit: false, ledger: Some(&ledger) };
        needed(study.run(&runner, &elsewhere).map(drop), elsewhere)
    })
}

/// Runs the study in `text`, which stands in the file `path`, on `jobs` threads (0: one for each
/// core), as far as `ledger` does not have it, and keeps it there. All that it found, as JSON.
#[pyfunction]
#[pyo3(signature = (text, path, ledger = None, jobs = 0))]
pub(crate) fn study_report(
    py: Python<'_>,
    text: &str,
    path: &str,
    ledger: Option<PathBuf>,
    jobs: usize,
) -> PyResult<String> {
    interruptible(py, |watch| {
        let ledger = open(ledger.as_deref())?;
        let study = study::read_text(path, text)?;
        let runner = Runner { jobs, audit: false, ledger: ledger.as_ref() };
        let findings = study.run_recorded(&name(path), &runner, watch)?;
        Ok(blis_lab::json::text(&study::json::object(&study, &findings)))
    })
}

/// The trials that the search in `text` needs next and that `ledger` does not have; empty when it
/// is complete.
#[pyfunction]
#[pyo3(signature = (text, path, ledger, control = false))]
pub(crate) fn search_missing(
    py: Python<'_>,
    text: &str,
    path: &str,
    ledger: PathBuf,
    control: bool,
) -> PyResult<Needed> {
    interruptible(py, |_| {
        let ledger = known(&ledger)?;
        let search = optimize::read_text(path, text)?;
        let elsewhere = Elsewhere::default();
        let runner = Runner { jobs: 1, audit: false, ledger: Some(&ledger) };
        needed(search.run(&runner, &elsewhere, control).map(drop), elsewhere)
    })
}

/// Runs the search in `text`, which stands in the file `path`, on `jobs` threads (0: one for each
/// core), as far as `ledger` does not have it. All that it found as JSON, and the recommended
/// strategy as a file, if there is one.
#[pyfunction]
#[pyo3(signature = (text, path, ledger = None, jobs = 0, control = false))]
pub(crate) fn search_report(
    py: Python<'_>,
    text: &str,
    path: &str,
    ledger: Option<PathBuf>,
    jobs: usize,
    control: bool,
) -> PyResult<(String, Option<String>)> {
    interruptible(py, |watch| {
        let ledger = open(ledger.as_deref())?;
        let search = optimize::read_text(path, text)?;
        let runner = Runner { jobs, audit: false, ledger: ledger.as_ref() };
        let findings = search.run(&runner, watch, control)?;
        let found = blis_lab::json::text(&optimize::json::object(&search, &findings));
        let chosen = findings.chosen.first().filter(|_| search.objectives.len() == 1);
        Ok((found, chosen.map(|chosen| strategy(&search, chosen))))
    })
}

/// The strategy file of what a search chose.
pub(crate) fn strategy(search: &Search, chosen: &optimize::Chosen) -> String {
    let strategy = &search.points.candidates[chosen.candidate].strategy;
    strategy.text(&format!("{}-optimised", strategy.name), &chosen.settings)
}

/// Keeps rows that were made elsewhere, each with the document of its trial; how many are new.
#[pyfunction]
pub(crate) fn ledger_put(
    py: Python<'_>,
    ledger: PathBuf,
    rows: Vec<(String, String)>,
) -> PyResult<usize> {
    interruptible(py, |_| {
        let ledger = Ledger::open(&ledger)?;
        let mut known = Known::default();
        let mut new = 0;
        for (trial, row) in rows {
            let (plan, seed) = known.read(&trial)?;
            let row = Row::parse(&row).map_err(|error| Problem::of_file("row", error))?;
            if row.run.scenario_hash != plan.hash() || row.run.seed != seed {
                let message = "it is not the row of its trial: scenario or seed differ";
                return Err(Problem::of_file("row", message).into());
            }
            let key = Key::of(&plan, seed);
            new += usize::from(ledger.finished(std::slice::from_ref(&key))?[0].is_none());
            ledger.record(&key, &plan, &row)?;
        }
        Ok(new)
    })
}

/// Those of `keys` that `ledger` has no row for.
#[pyfunction]
pub(crate) fn ledger_missing(
    py: Python<'_>,
    ledger: PathBuf,
    keys: Vec<String>,
) -> PyResult<Vec<String>> {
    interruptible(py, |_| {
        let ledger = Ledger::open(&ledger)?;
        let parse = |text: &String| {
            let message = "it is not a key: 32 hexadecimal digits";
            Key::parse(text).ok_or_else(|| Problem::of_file(text, message))
        };
        let parsed: Vec<Key> = keys.iter().map(parse).collect::<Result<_, _>>()?;
        let rows = ledger.finished(&parsed)?;
        let missing = keys.into_iter().zip(rows).filter(|(_, row)| row.is_none());
        Ok(missing.map(|(key, _)| key).collect())
    })
}

/// Fits a latency profile to logs of a server: how good it is as JSON, and the profile as YAML.
#[pyfunction]
#[pyo3(signature = (
    steps, *, requests = Vec::new(), grid = Vec::new(), padding = "measured-server",
    block_size = 16, model = None, hardware = None, tp = None,
))]
#[expect(clippy::too_many_arguments, reason = "keywords of Python, as the flags of the command")]
pub(crate) fn calibrate(
    py: Python<'_>,
    steps: Vec<PathBuf>,
    requests: Vec<PathBuf>,
    grid: Vec<PathBuf>,
    padding: &str,
    block_size: u32,
    model: Option<&str>,
    hardware: Option<String>,
    tp: Option<u32>,
) -> PyResult<(String, String)> {
    let fit = || -> Result<_, Problem> {
        let padding =
            fitting::padding(padding).map_err(|text| Problem::of_file("padding", text))?;
        let measured = measured::read_all(&steps, &requests)?;
        let runs = fitting::runs(&measured, &grid, block_size)?;
        let machine = ProfiledMachine { model: model.map(fitting::model_name), hardware, tp };
        let found = fitting::calibrate(runs, padding, machine)?;
        Ok((blis_lab::json::text(&found.object()), profile::text(&found.file)))
    };
    py.detach(fit).map_err(|problem| failure::problem(py, &problem))
}

/// Plans of trials that were read, so that trials of one scenario are checked once.
#[derive(Default)]
pub(crate) struct Known {
    plans: BTreeMap<String, Plan>,
}

impl Known {
    /// The plan and the seed of the document `trial`.
    pub(crate) fn read(&mut self, trial: &str) -> Result<(Plan, u64), Problem> {
        // A document ends with its seed, and is the same up to there for all of a scenario.
        let found = trial.rsplit_once("\"seed\":").and_then(|(scenario, seed)| {
            let seed = seed.trim().strip_suffix('}')?.trim().parse().ok()?;
            Some((scenario, seed))
        });
        let Some((scenario, seed)) = found else { return trial::read("trial", trial) };
        if let Some(plan) = self.plans.get(scenario) {
            return Ok((plan.clone(), seed));
        }
        let (plan, seed) = trial::read("trial", trial)?;
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

/// Opens a ledger, and says that saturations may be found there; so before scenarios are read.
pub(crate) fn known(path: &Path) -> Result<Ledger, RunFailure> {
    let ledger = Ledger::open(path)?;
    saturations::consult(path);
    ledger.keep_saturations()?;
    Ok(ledger)
}

fn open(path: Option<&Path>) -> Result<Option<Ledger>, RunFailure> {
    path.map(known).transpose()
}

fn named(plan: &Plan, seed: u64) -> (String, String) {
    let document = trial::document(plan.document(), &plan.hash(), seed);
    (Key::of(plan, seed).text().to_owned(), document)
}

/// What was noted, if that is what stopped it.
pub(crate) fn needed(
    ran: Result<(), RunFailure>,
    elsewhere: Elsewhere,
) -> Result<Needed, RunFailure> {
    match ran {
        Ok(()) => Ok(Vec::new()),
        Err(RunFailure::Interrupted) => {
            let needed = elsewhere.needed().into_iter();
            Ok(needed.map(|(key, document)| (key.text().to_owned(), document)).collect())
        }
        Err(failure) => Err(failure),
    }
}

/// What the ledger calls the study in the file `path`.
pub(crate) fn name(path: &str) -> String {
    let path = Path::new(path);
    path.file_stem().unwrap_or(path.as_os_str()).to_string_lossy().into_owned()
}
