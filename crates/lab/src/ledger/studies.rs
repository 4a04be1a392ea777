//! Studies and their verdicts, as the ledger keeps them.

use super::claims::seed_value;
use super::{Ledger, LedgerError, lines, read, sums};
use crate::key::Key;
use blis_scenario::CODE;
use blis_scenario::hash::hash_long;
use blis_scenario::row::Row;
use blis_scenario::scenario::Plan;
use rusqlite::{Connection, Transaction, params};
use std::collections::BTreeMap;

/// What is said about a hypothesis of a study.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct VerdictRecord {
    /// Its name.
    pub hypothesis: String,
    /// What it claims, as it is written in the study.
    pub prediction: String,
    /// Why that should be so.
    pub mechanism: Option<String>,
    /// The word for what the runs say, e.g. `confirmed`.
    pub outcome: String,
    /// Why, in one sentence.
    pub why: String,
    /// How many seeds it rests on.
    pub seeds: u64,
    /// The level at which it was tested.
    pub level: Option<f64>,
    /// The effects with their intervals, as JSON.
    pub effects: Option<String>,
}

/// A study with all that is known of it.
#[derive(Clone, Debug, PartialEq)]
pub struct StudyEntry {
    /// Its key: a hash of what it asks, of its cells and of their scenarios.
    pub study: String,
    /// Its name: that of its file.
    pub name: String,
    /// What it asks.
    pub question: String,
    /// What its cells differ in.
    pub factors: Vec<String>,
    /// What it looks at.
    pub metrics: Vec<String>,
    /// The code that ran it last.
    pub code: String,
    /// The version of that program.
    pub version: String,
    /// Its cells, in the order of the study.
    pub cells: Vec<StudyCell>,
    /// What is said about its hypotheses.
    pub verdicts: Vec<VerdictRecord>,
}

/// A cell of a study.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct StudyCell {
    /// Its level of each factor.
    pub levels: Vec<String>,
    /// The rows that are finished, by seed; `None` for those that are not.
    pub rows: BTreeMap<u64, Option<Row>>,
}

/// What an experiment asks: a study, a search, or a search for capacities.
#[derive(Clone, Debug)]
pub(crate) struct Experiment {
    /// A hash of what it asks.
    pub(crate) key: String,
    /// What the ledger calls it.
    pub(crate) name: String,
    /// What it asks, in words.
    pub(crate) question: String,
    /// What its cells differ in.
    pub(crate) factors: Vec<String>,
    /// What it looks at.
    pub(crate) metrics: Vec<String>,
}

impl Experiment {
    /// The key of an experiment that is told from others by these lines.
    pub(crate) fn key_of(lines: &[String]) -> String {
        format!("{:032x}", hash_long(lines.join("\n").as_bytes()))
    }
}

/// A cell of an experiment that is about to be run.
#[derive(Clone, Debug)]
pub(crate) struct PlannedCell<'a> {
    /// Which one it is.
    pub(crate) number: usize,
    /// Its level of each factor.
    pub(crate) levels: Vec<String>,
    /// Its scenario.
    pub(crate) plan: &'a Plan,
    /// Its seeds.
    pub(crate) seeds: Vec<u64>,
}

impl Ledger {
    /// Forgets which trials the experiment with this key needs.
    pub(crate) fn forget_cells(&self, key: &str) -> Result<(), LedgerError> {
        self.change(|transaction| {
            transaction.execute("DELETE FROM study_trials WHERE study = ?1", [key]).map(drop)
        })
    }

    /// Keeps what an experiment asks, and the trials of some of its cells.
    pub(crate) fn record_cells(
        &self,
        about: &Experiment,
        cells: &[PlannedCell<'_>],
    ) -> Result<(), LedgerError> {
        let Experiment { key, name, question, factors, metrics } = about;
        self.change(|transaction| {
            let insert = sums::insert("INSERT", "studies");
            transaction.execute(
                &format!(
                    "{insert} ON CONFLICT (study) DO UPDATE SET name = ?2, question = ?3, \
                     factors = ?4, metrics = ?5, code = ?6, version = ?7, sum = excluded.sum"
                ),
                params![
                    key,
                    name,
                    question,
                    json(factors),
                    json(metrics),
                    CODE,
                    env!("CARGO_PKG_VERSION"),
                ],
            )?;
            let mut insert =
                transaction.prepare(&sums::insert("INSERT OR REPLACE", "study_trials"))?;
            for cell in cells {
                for &seed in &cell.seeds {
                    insert.execute(params![
                        key,
                        cell.number,
                        json(&cell.levels),
                        seed_value(seed),
                        Key::of(cell.plan, seed).text(),
                    ])?;
                }
            }
            Ok(())
        })
    }

    /// Keeps what is said about the hypotheses of the study with this key, instead of what was
    /// said before.
    ///
    /// # Errors
    /// If the ledger cannot be written.
    pub fn record_verdicts(
        &self,
        study: &str,
        verdicts: &[VerdictRecord],
    ) -> Result<(), LedgerError> {
        self.change(|transaction| {
            transaction.execute("DELETE FROM verdicts WHERE study = ?1", [study])?;
            for (number, verdict) in verdicts.iter().enumerate() {
                insert_verdict(transaction, study, number, verdict)?;
            }
            Ok(())
        })
    }

    /// All studies, in the order in which they were first run.
    ///
    /// # Errors
    /// If the ledger cannot be read, or a row in it is none.
    pub fn studies(&self) -> Result<Vec<StudyEntry>, LedgerError> {
        self.verify()?;
        let found: Vec<(StudyEntry, Vec<Cells>)> = self.ask(|database| {
            let sql = "SELECT study, name, question, factors, metrics, code, version FROM studies \
                 ORDER BY id";
            let studies: Vec<StudyEntry> = lines(database, sql, [], |line| {
                Ok(StudyEntry {
                    study: line.get(0)?,
                    name: line.get(1)?,
                    question: line.get(2)?,
                    factors: names(&line.get::<_, String>(3)?),
                    metrics: names(&line.get::<_, String>(4)?),
                    code: line.get(5)?,
                    version: line.get(6)?,
                    cells: Vec::new(),
                    verdicts: Vec::new(),
                })
            })?;
            let more = |mut study: StudyEntry| {
                study.verdicts = verdicts(database, &study.study)?;
                let cells = cells(database, &study.study)?;
                Ok((study, cells))
            };
            studies.into_iter().map(more).collect()
        })?;
        let with_cells = |(mut study, cells): (StudyEntry, Vec<Cells>)| {
            for (number, levels, seed, key, text) in cells {
                if study.cells.len() <= number {
                    study.cells.resize(number + 1, StudyCell::default());
                }
                let row = text.map(|text| self.row(&key, Some(text))).transpose()?;
                study.cells[number].levels = names(&levels);
                study.cells[number].rows.insert(seed, row);
            }
            Ok(study)
        };
        found.into_iter().map(with_cells).collect()
    }
}

/// Number of the cell, levels, seed, key, and the row if it is finished.
type Cells = (usize, String, u64, String, Option<String>);

fn cells(database: &Connection, study: &str) -> rusqlite::Result<Vec<Cells>> {
    let sql = "SELECT cell, levels, study_trials.seed, study_trials.key, trials.row \
         FROM study_trials LEFT JOIN trials USING (key) WHERE study = ?1 ORDER BY cell, study_trials.seed";
    lines(database, sql, [study], |line| {
        let seed = read::seed(line.get_ref(2)?).unwrap_or_default();
        Ok((line.get(0)?, line.get(1)?, seed, line.get(3)?, line.get(4)?))
    })
}

fn verdicts(database: &Connection, study: &str) -> rusqlite::Result<Vec<VerdictRecord>> {
    let sql = "SELECT hypothesis, prediction, mechanism, outcome, why, seeds, level, effects \
         FROM verdicts WHERE study = ?1 ORDER BY number";
    lines(database, sql, [study], |line| {
        Ok(VerdictRecord {
            hypothesis: line.get(0)?,
            prediction: line.get(1)?,
            mechanism: line.get(2)?,
            outcome: line.get(3)?,
            why: line.get(4)?,
            seeds: line.get(5)?,
            level: line.get(6)?,
            effects: line.get(7)?,
        })
    })
}

fn insert_verdict(
    transaction: &Transaction<'_>,
    study: &str,
    number: usize,
    verdict: &VerdictRecord,
) -> rusqlite::Result<()> {
    let VerdictRecord { hypothesis, prediction, mechanism, outcome, why, seeds, level, effects } =
        verdict;
    transaction.execute(
        &sums::insert("INSERT", "verdicts"),
        params![
            study, number, hypothesis, prediction, mechanism, outcome, why, seeds, level, effects
        ],
    )?;
    Ok(())
}

fn json(names: &[String]) -> String {
    serde_json::Value::from(names).to_string()
}

fn names(json: &str) -> Vec<String> {
    serde_json::from_str(json).unwrap_or_default()
}
