//! Trials that other processes run: what an engine such as Ray asks on its own machine
//! ([`Rounds`]), and what its workers do ([`Worker`]); and what searches of others measure
//! ([`Space`]).

use crate::failure;
use crate::lab::{Known, name, searched, studied};
use crate::report::PyDocument;
use crate::watch::{Signals, interruptible};
use blis_lab::Failure;
use blis_lab::ledger::{Claim, Ledger, Seen};
use blis_lab::optimize::{self, Search};
use blis_lab::study::{self, Study};
use blis_lab::trial::{self, Elsewhere, Key, Runner};
use blis_lab::tune;
use blis_scenario::{Draft, Plan, Problem, Row, RunFailure};
use blis_sim::Unobserved;
use pyo3::prelude::*;
use std::path::PathBuf;
use std::sync::{Mutex, PoisonError};

/// A trial that is needed: its key and its document.
type Needed = Vec<(String, String)>;

/// The values of each objective, one a seed, and by how much each constraint is broken.
type Measured = (Vec<Vec<Option<f64>>>, Vec<f64>);

/// So many scenarios are kept in mind; more are read again.
const MOST_KNOWN: usize = 1_000;

/// A study or a search whose trials are run elsewhere, in rounds, and the ledger that keeps them.
///
/// As long as it lives, what it has claimed is left alone by other processes that share the ledger.
#[pyclass(frozen, module = "blis._core")]
pub(crate) struct Rounds {
    asked: Asked,
    ledger: Ledger,
    known: Mutex<Known>,
    /// What was seen of other processes while waiting for them.
    seen: Mutex<Seen>,
}

enum Asked {
    Study { study: Box<Study>, name: String },
    Search { search: Box<Search>, control: bool },
}

impl Rounds {
    fn known(&self) -> std::sync::MutexGuard<'_, Known> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn new(asked: Asked, ledger: Ledger) -> Rounds {
        Rounds { asked, ledger, known: Mutex::default(), seen: Mutex::default() }
    }
}

#[pymethods]
impl Rounds {
    /// Reads the study in `text`, which stands in the file `path`, and checks all of it.
    #[staticmethod]
    fn study(py: Python<'_>, text: &str, path: &str, ledger: PathBuf) -> PyResult<Rounds> {
        interruptible(py, |watch| {
            let ledger = Ledger::open(&ledger)?;
            let runner = Runner::new(0, Some(&ledger), watch)?;
            let study = Box::new(tune::settle(study::read_text(path, text)?, &runner)?);
            Ok(Rounds::new(Asked::Study { study, name: name(path) }, ledger))
        })
    }

    /// Reads the search in `text`, which stands in the file `path`, and checks all of it.
    #[staticmethod]
    #[pyo3(signature = (text, path, ledger, control = false))]
    fn search(
        py: Python<'_>,
        text: &str,
        path: &str,
        ledger: PathBuf,
        control: bool,
    ) -> PyResult<Rounds> {
        interruptible(py, |watch| {
            let ledger = Ledger::open(&ledger)?;
            let runner = Runner::new(0, Some(&ledger), watch)?;
            let search = Box::new(optimize::read_text(path, text)?.settle(&runner)?);
            Ok(Rounds::new(Asked::Search { search, control }, ledger))
        })
    }

    /// How many trials it takes at least; for a search, about.
    fn trials(&self) -> usize {
        match &self.asked {
            Asked::Study { study, .. } => study.trials(),
            Asked::Search { search, control } => search.trials(*control),
        }
    }

    /// The trials that are needed next and are not finished, each once, with their keys; empty when
    /// nothing is left.
    fn needed(&self, py: Python<'_>) -> PyResult<Needed> {
        interruptible(py, |_| {
            let elsewhere = Elsewhere::default();
            let runner = Runner::new(1, Some(&self.ledger), &elsewhere)?;
            let ran = match &self.asked {
                Asked::Study { study, .. } => study.run(&runner).map(drop),
                Asked::Search { search, control } => search.run(&runner, *control).map(drop),
            };
            match ran {
                Ok(()) => Ok(Vec::new()),
                // What was noted is what stopped it.
                Err(Failure::Run(RunFailure::Interrupted)) => {
                    let needed = elsewhere.needed().into_iter();
                    Ok(needed.map(|(key, document)| (key.text().to_owned(), document)).collect())
                }
                Err(failure) => Err(failure),
            }
        })
    }

    /// Claims trials, before they are sent away: of each key `"ours"`, `"finished"`, or `"taken"`
    /// by another process that lives.
    fn claim(&self, py: Python<'_>, keys: Vec<String>) -> PyResult<Vec<&'static str>> {
        interruptible(py, |_| {
            let claim = |text: &String| -> Result<&'static str, Failure> {
                Ok(match self.ledger.claim(&key(text)?)? {
                    Claim::Ours => "ours",
                    Claim::Finished(_) => "finished",
                    Claim::Taken => "taken",
                })
            };
            keys.iter().map(claim).collect()
        })
    }

    /// To be called now and then while others are waited for: takes the claims of processes that
    /// have not moved for so many calls, and gives how many those are.
    fn take_over(&self, py: Python<'_>, looks: u32) -> PyResult<usize> {
        interruptible(py, |_| {
            let mut seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
            Ok(self.ledger.take_over(&mut seen, looks)?)
        })
    }

    /// Gives claims back whose trials did not come to an end.
    fn release(&self, py: Python<'_>, keys: Vec<String>) -> PyResult<()> {
        interruptible(py, |_| {
            keys.iter().try_for_each(|text| Ok(self.ledger.release(&key(text)?)?))
        })
    }

    /// Keeps rows that came back, each with the document of its trial; none of them if one is not
    /// that of its trial.
    fn keep(&self, py: Python<'_>, rows: Vec<(String, String)>) -> PyResult<()> {
        interruptible(py, |_| {
            let mut known = self.known();
            let read = |(trial, row): &(String, String)| -> Result<_, Failure> {
                let (plan, seed) = known.read(trial, &mut Unobserved)?;
                let row = Row::parse(row).map_err(|error| Problem::of_file("row", error))?;
                if row.run.scenario_hash != plan.hash() || row.run.seed != seed {
                    let message = "it is not the row of its trial: scenario or seed differ";
                    return Err(Problem::of_file("row", message).into());
                }
                Ok((Key::of(&plan, seed), plan, row))
            };
            let read: Vec<(Key, Plan, Row)> = rows.iter().map(read).collect::<Result<_, _>>()?;
            let all: Vec<_> = read.iter().map(|(key, plan, row)| (key, plan, row)).collect();
            self.ledger.record_all(&all)?;
            known.forget(MOST_KNOWN);
            Ok(())
        })
    }

    /// The files that the trial `document` is read from, by absolute paths.
    fn files(&self, py: Python<'_>, document: &str) -> PyResult<Vec<PathBuf>> {
        interruptible(py, |_| {
            let (plan, _) = self.known().read(document, &mut Unobserved)?;
            let named = Draft::from_text("trial", &plan.document())?.workload_files();
            Ok(named.into_iter().chain(plan.files.iter().cloned()).collect())
        })
    }

    /// All that it found, and the strategy that a search recommends as a file. What is not finished
    /// is run here.
    fn report(&self, py: Python<'_>) -> PyResult<(PyDocument, Option<String>)> {
        interruptible(py, |watch| {
            // Nobody else brings the rows of what was sent away and has not come back.
            self.ledger.release_all()?;
            let runner = Runner::new(0, Some(&self.ledger), watch)?;
            match &self.asked {
                Asked::Study { study, name } => Ok((studied(study, name, &runner)?, None)),
                Asked::Search { search, control } => searched(search, *control, &runner),
            }
        })
    }
}

/// Runs trials for others. Keeps the scenarios in mind, so that each is read once.
#[pyclass(frozen, module = "blis._core")]
#[derive(Default)]
pub(crate) struct Worker {
    known: Mutex<Known>,
}

#[pymethods]
impl Worker {
    #[new]
    fn new() -> Worker {
        Worker::default()
    }

    /// Runs the trial `document`; its row, as one line of JSON, which is that of `run_trial`.
    fn run(&self, py: Python<'_>, document: &str) -> PyResult<String> {
        let mut signals = Signals::new(Vec::new());
        let row = py.detach(|| failure::caught(|| self.row(document, &mut signals)));
        match (signals.raised(), row) {
            (Some(raised), _) => Err(raised),
            (None, Ok(row)) => Ok(row.text()),
            (None, Err(failure)) => Err(failure::run(py, &failure)),
        }
    }
}

impl Worker {
    fn row(&self, document: &str, signals: &mut Signals) -> Result<Row, RunFailure> {
        let (plan, seed): (Plan, u64) = {
            let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
            known.forget(MOST_KNOWN);
            known.read(document, signals)?
        };
        trial::row(&plan, seed, false, signals)
    }
}

/// The space of a search, for engines that are not ours.
#[pyclass(frozen, module = "blis._core")]
pub(crate) struct Space {
    search: Search,
    ledger: Option<Ledger>,
}

#[pymethods]
impl Space {
    /// Reads the search in `text`, which stands in the file `path`, and checks all of it.
    #[new]
    #[pyo3(signature = (text, path, ledger = None))]
    fn new(py: Python<'_>, text: &str, path: &str, ledger: Option<PathBuf>) -> PyResult<Space> {
        interruptible(py, |watch| {
            let ledger = ledger.as_deref().map(Ledger::open).transpose()?;
            let runner = Runner::new(0, ledger.as_ref(), watch)?;
            let search = optimize::read_text(path, text)?.settle(&runner)?;
            Ok(Space { search, ledger })
        })
    }

    /// What may be chosen, what is improved and what must hold, as JSON.
    fn json(&self) -> String {
        blis_scenario::json::text(&self.search.space())
    }

    /// What is measured at the point with these values, by name: of each objective one value a
    /// seed, and by how much each constraint is broken.
    #[pyo3(signature = (values, jobs = 0))]
    fn measure(
        &self,
        py: Python<'_>,
        values: Vec<(String, String)>,
        jobs: usize,
    ) -> PyResult<Measured> {
        interruptible(py, |watch| {
            let runner = Runner::new(jobs, self.ledger.as_ref(), watch)?;
            let found = self.search.measure_at(&values, &runner)?;
            Ok((found.objectives, found.excesses))
        })
    }
}

fn key(text: &str) -> Result<Key, Problem> {
    let message = "it is not a key: 32 hexadecimal digits";
    Key::parse(text).ok_or_else(|| Problem::of_file(text, message))
}
