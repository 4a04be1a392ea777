//! Trials: a scenario and a seed in, a row out.
//!
//! A trial is a pure function from one JSON document to one JSON row, so that any engine can run it
//! anywhere (`blis trial`). Studies and searches ask a [`Runner`] for the rows of the trials that
//! they need. It runs each of them once, several at a time, takes those that are finished from the
//! ledger, and gives the rows in the order of the trials.

pub use crate::key::{Key, document};

use crate::failure::Failure;
use crate::key::SCHEMA;
use crate::ledger::{Claim, Ledger, LedgerError, Seen};
use blis_metrics::Listener;
use blis_scenario::row::Row;
use blis_scenario::run::RunResult;
use blis_scenario::scenario::{Checked, Draft, Plan, Trial};
use blis_scenario::yaml::{self, Node, Whole};
use blis_scenario::{Names, Problem, RunFailure, Saturations, pool, run_scenario};
use blis_sim::{End, Observer, Progress};
use core::cmp::Reverse;
use core::time::Duration;
use serde::Deserialize;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};

/// How long to wait before looking again whether others have finished what they claimed.
const POLL: Duration = Duration::from_millis(20);
/// So many looks, about half a minute, are enough to see that another process has stopped: one that
/// goes on shows it every second.
const LOOKS: u32 = 1_500;

/// A trial as written.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Fields {
    #[serde(default)]
    #[expect(dead_code, reason = "its range is all that is checked")]
    schema: Option<Whole<1, SCHEMA>>,
    scenario: Node,
    #[serde(default)]
    scenario_hash: Option<String>,
    seed: Whole<0, { u64::MAX }>,
}

/// The scenario and the seed in the document `text`, which is called `name`. A saturation that is
/// not among `saturations` is measured, unless `observer` stops that.
///
/// # Errors
/// If it is no legal trial, or its scenario is not the one that its hash was taken of, e.g. because
/// a trace has another content here.
pub fn read(
    name: &str,
    text: &str,
    saturations: &Saturations,
    observer: &mut dyn Observer,
) -> Result<(Plan, u64), RunFailure> {
    let tree = yaml::read_text(name, text)?;
    let fields: Fields = yaml::decode(&tree)?;
    let plan = Draft::from_tree(fields.scenario).resolve()?.settle(saturations, observer)?;
    if let Some(hash) = fields.scenario_hash.filter(|hash| *hash != plan.hash()) {
        let message = format!(
            "found `{hash}`, but the scenario has `{}` here: a file it names has changed, or this \
             version reads it differently; remove the field to run it anyway",
            plan.hash()
        );
        return Err(Problem::new(tree.place_of("scenario_hash"), "scenario_hash", message).into());
    }
    Ok((plan, fields.seed.get()))
}

/// The row of `plan` with `seed`.
///
/// # Errors
/// If the run gives nothing that can be believed: its workload cannot be read, its observer stops
/// it, or an invariant is broken.
pub fn row(
    plan: &Plan,
    seed: u64,
    audit: bool,
    observer: &mut dyn Observer,
) -> Result<Row, RunFailure> {
    let trial = Trial { audit, curves: true, ..Trial::new(seed) };
    Ok(Row::of(plan, &run(plan, trial, &mut [], None, observer)?))
}

/// Runs a trial to its end.
pub(crate) fn run(
    plan: &Plan,
    trial: Trial,
    listeners: &mut [&mut dyn Listener],
    names: Option<Names>,
    observer: &mut dyn Observer,
) -> Result<RunResult, RunFailure> {
    let result = run_scenario(plan, trial, listeners, names, observer)?;
    result.check()?;
    match result.outcome.end {
        End::Interrupted => Err(RunFailure::Interrupted),
        _ => Ok(result),
    }
}

/// Watches trials from outside, for progress bars and Ctrl-C. Threads share it.
pub trait Watch: Sync {
    /// Asked now and then; `false` stops the trials.
    fn go_on(&self) -> bool {
        true
    }

    /// Told which trials are not finished before they are begun, each once.
    fn open(&self, _trials: &[(&Plan, u64)]) {}

    /// Told before the saturation of a cluster is measured.
    fn measures(&self, _cell: &str) {}

    /// Told that another process has stopped, so that this one runs what it had claimed.
    fn takes_over(&self, _trials: usize) {}

    /// Told the scenarios of the cells of a study before they are compared.
    fn compares(&self, _plans: &[Plan]) {}

    /// So many more trials are needed. Who adds seeds until enough is known says so again.
    fn needs(&self, _trials: usize) {}

    /// So many of them are known already, or mean the same as others.
    fn known(&self, trials: usize) {
        (0..trials).for_each(|_| self.finished());
    }

    /// One more of them is finished.
    fn finished(&self) {}

    /// The row of one of them, known or run.
    fn row(&self, _plan: &Plan, _row: &Row) {}
}

/// Watches nothing and stops nothing.
#[derive(Clone, Copy, Debug, Default)]
pub struct Unwatched;

impl Watch for Unwatched {}

impl fmt::Debug for dyn Watch + '_ {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Watch")
    }
}

/// Observes one of the trials that are watched.
struct Eye<'a>(&'a dyn Watch);

impl Observer for Eye<'_> {
    fn go_on(&mut self, _: Progress) -> bool {
        self.0.go_on()
    }
}

/// Begins no trial and notes instead which ones are needed, so that they can be run elsewhere.
///
/// What a study or a search needs next may depend on what it has. Whoever runs trials elsewhere
/// lets it go as far as the ledger reaches, runs what is noted, keeps the rows in the ledger, and
/// begins again, until nothing is noted.
#[derive(Debug, Default)]
pub struct Elsewhere {
    needed: Mutex<Vec<(Key, String)>>,
}

impl Elsewhere {
    /// The trials that are needed, with their keys, as documents.
    pub fn needed(self) -> Vec<(Key, String)> {
        self.needed.into_inner().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Watch for Elsewhere {
    fn go_on(&self) -> bool {
        false
    }

    fn open(&self, trials: &[(&Plan, u64)]) {
        let note = |&(plan, seed): &(&Plan, u64)| {
            (Key::of(plan, seed), document(&plan.document(), &plan.hash(), seed))
        };
        let mut needed = self.needed.lock().unwrap_or_else(PoisonError::into_inner);
        needed.extend(trials.iter().map(note));
    }
}

/// Runs trials.
#[derive(Clone, Debug)]
pub struct Runner<'a> {
    /// At most so many at a time; 0: one for each core.
    pub jobs: usize,
    /// Whether every invariant is checked along the way. Trials are then run although they are
    /// finished, and must give the row that was recorded.
    pub audit: bool,
    /// Where finished trials are kept.
    pub ledger: Option<&'a Ledger>,
    /// What is known of saturations.
    pub saturations: Saturations,
    /// Who watches, and may stop it.
    pub watch: &'a dyn Watch,
}

impl Default for Runner<'_> {
    fn default() -> Self {
        let saturations = Saturations::default();
        Runner { jobs: 0, audit: false, ledger: None, saturations, watch: &Unwatched }
    }
}

/// A trial that is needed, with its key if there is a ledger.
struct Wanted<'a> {
    plan: &'a Plan,
    seed: u64,
    key: Option<Key>,
}

impl<'a> Runner<'a> {
    /// A runner that keeps finished trials in `ledger`, and knows the saturations that are there.
    ///
    /// # Errors
    /// If the ledger cannot be read.
    pub fn new(
        jobs: usize,
        ledger: Option<&'a Ledger>,
        watch: &'a dyn Watch,
    ) -> Result<Runner<'a>, LedgerError> {
        let runner = Runner { jobs, ledger, watch, ..Runner::default() };
        if let Some(ledger) = ledger {
            runner.saturations.extend(ledger.saturations()?);
        }
        Ok(runner)
    }

    /// The plan of `checked`; a saturation that nobody knows is measured and kept.
    ///
    /// # Errors
    /// If there is no saturation, the watch stops the measurement, or the ledger cannot be written.
    pub fn settle(&self, checked: Checked) -> Result<Plan, Failure> {
        let measures = checked.unmeasured(&self.saturations).is_some();
        if measures {
            self.watch.measures(&checked.plan().workload_name);
        }
        let plan = checked.settle(&self.saturations, &mut Eye(self.watch))?;
        if let Some(ledger) = self.ledger.filter(|_| measures) {
            ledger.record_saturations(&self.saturations.all())?;
        }
        Ok(plan)
    }

    /// The plans of `all`, in their order. Each saturation is measured once, and as many at a time
    /// as trials are run.
    ///
    /// # Errors
    /// If there is no saturation, the watch stops the measurement, or the ledger cannot be written.
    pub fn settle_all(&self, all: Vec<Checked>) -> Result<Vec<Plan>, Failure> {
        let mut keys = BTreeSet::new();
        let mut is_first = |checked: &&Checked| {
            checked.unmeasured(&self.saturations).is_some_and(|key| keys.insert(key))
        };
        let unknown: Vec<&Checked> = all.iter().filter(|one| is_first(one)).collect();
        let settled = pool::each(self.jobs, &unknown, |one| self.settle((*one).clone()))?;
        settled.into_iter().collect::<Result<Vec<Plan>, Failure>>()?;
        all.into_iter().map(|one| self.settle(one)).collect()
    }

    /// The rows of `trials`, in their order, which do not depend on how many run at a time nor on
    /// what was finished before. Trials that mean the same are run once.
    ///
    /// # Errors
    /// If the system cannot start a thread, or a trial fails; no other is begun then. What was
    /// finished until then is kept in the ledger.
    ///
    /// # Panics
    /// If a trial panics.
    pub fn rows(&self, trials: &[(&Plan, u64)]) -> Result<Vec<Row>, Failure> {
        self.rows_within(trials, LOOKS)
    }

    /// The same; who does not move for so many looks has stopped.
    pub(crate) fn rows_within<'p>(
        &self,
        trials: &[(&'p Plan, u64)],
        looks: u32,
    ) -> Result<Vec<Row>, Failure> {
        let (first, numbers) = distinct(trials);
        let want = |&(plan, seed): &(&'p Plan, u64)| Wanted {
            plan,
            seed,
            key: self.ledger.map(|_| Key::of(plan, seed)),
        };
        let wanted: Vec<Wanted<'_>> = first.iter().map(want).collect();
        let mut rows = self.recorded(&wanted)?;
        self.watch.needs(trials.len());
        self.watch.known(numbers.len() - rows.len() + rows.iter().flatten().count());
        for (wanted, row) in wanted.iter().zip(&rows) {
            if let Some(row) = row {
                self.watch.row(wanted.plan, row);
            }
        }
        let open = wanted.iter().zip(&rows).filter(|(_, row)| row.is_none());
        self.watch.open(&open.map(|(wanted, _)| (wanted.plan, wanted.seed)).collect::<Vec<_>>());
        let mut seen = Seen::default();
        loop {
            let mut open: Vec<usize> =
                (0..rows.len()).filter(|&number| rows[number].is_none()).collect();
            // The longest first, so that none of them is left to one worker at the end.
            open.sort_by_key(|&number| Reverse(wanted[number].plan.requests()));
            if open.is_empty() {
                return Ok(spread(rows.into_iter().flatten().collect(), &numbers));
            }
            let found = self.attempts(&open, &wanted)?;
            let waits = found.iter().all(Option::is_none);
            for (number, row) in open.into_iter().zip(found) {
                rows[number] = row;
            }
            if waits {
                // Everything that is left is being run by other processes.
                std::thread::sleep(POLL);
                let taken = self.ledger.map(|ledger| ledger.take_over(&mut seen, looks));
                if let Some(taken) = taken.transpose()?.filter(|&taken| taken > 0) {
                    self.watch.takes_over(taken);
                }
            }
        }
    }

    /// The rows that are finished, if it is enough that they were.
    fn recorded(&self, wanted: &[Wanted<'_>]) -> Result<Vec<Option<Row>>, Failure> {
        let Some(ledger) = self.ledger.filter(|_| !self.audit) else {
            return Ok(vec![None; wanted.len()]);
        };
        let keys: Vec<Key> = wanted.iter().filter_map(|wanted| wanted.key.clone()).collect();
        Ok(ledger.finished(&keys)?)
    }

    /// Runs the trials with the numbers `open`, as far as no other process is at them.
    fn attempts(&self, open: &[usize], wanted: &[Wanted<'_>]) -> Result<Vec<Option<Row>>, Failure> {
        let failed = AtomicBool::new(false);
        let attempt = |&number: &usize| {
            if failed.load(Ordering::Relaxed) {
                return Ok(None);
            }
            let found = self.attempt(&wanted[number]);
            failed.fetch_or(found.is_err(), Ordering::Relaxed);
            found
        };
        pool::each(self.jobs, open, attempt)?.into_iter().collect()
    }

    /// Runs a trial, unless another process is at it.
    fn attempt(&self, wanted: &Wanted<'_>) -> Result<Option<Row>, Failure> {
        if !self.watch.go_on() {
            return Err(Failure::INTERRUPTED);
        }
        let Wanted { plan, seed, key } = wanted;
        let run = || row(plan, *seed, self.audit, &mut Eye(self.watch));
        let row = match (self.ledger, key) {
            (Some(ledger), Some(key)) => match ledger.claim(key)? {
                Claim::Taken => return Ok(None),
                Claim::Finished(row) if !self.audit => *row,
                Claim::Ours | Claim::Finished(_) => {
                    // The failure is what matters; a claim that stays is one of the dead soon.
                    let row = run().inspect_err(|_| drop(ledger.release(key)))?;
                    ledger.record(key, plan, &row)?;
                    row
                }
            },
            _ => run()?,
        };
        self.watch.row(plan, &row);
        self.watch.finished();
        Ok(Some(row))
    }
}

/// The row with each of the numbers; without repetitions, these are the rows as they stand.
fn spread(rows: Vec<Row>, numbers: &[usize]) -> Vec<Row> {
    if rows.len() == numbers.len() {
        return rows;
    }
    numbers.iter().map(|&number| rows[number].clone()).collect()
}

/// The trials that differ in what they mean, and for each trial the number of its equal there.
fn distinct<'a>(trials: &[(&'a Plan, u64)]) -> (Vec<(&'a Plan, u64)>, Vec<usize>) {
    let mut known = BTreeMap::new();
    let mut first = Vec::new();
    let mut number = |&(plan, seed): &(&'a Plan, u64)| {
        *known.entry((plan.identity, seed)).or_insert_with(|| {
            first.push((plan, seed));
            first.len() - 1
        })
    };
    let numbers = trials.iter().map(&mut number).collect();
    (first, numbers)
}
