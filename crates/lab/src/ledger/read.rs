//! Looking at what a ledger holds.

use super::{Ledger, LedgerError, claims, lines};
use crate::key;
use blis_scenario::row::Row;
use rusqlite::{Row as Line, types::ValueRef};

/// A finished trial.
#[derive(Clone, Debug, PartialEq)]
pub struct Entry {
    /// Its key.
    pub key: String,
    /// The code that ran it.
    pub code: String,
    /// What it left behind.
    pub row: Row,
    /// The study that it was last part of, and its cell there.
    pub study: Option<(String, Vec<String>)>,
}

const SELECT: &str = "SELECT trials.key, trials.code, \
    (SELECT studies.name || char(10) || study_trials.levels FROM study_trials \
     JOIN studies USING (study) WHERE study_trials.key = trials.key \
     ORDER BY studies.id DESC LIMIT 1) FROM trials";

impl Ledger {
    /// The trials that finished last, at most `most` of them, in the order in which they finished.
    ///
    /// # Errors
    /// If the ledger cannot be read, or a row in it is none.
    pub fn entries(&self, most: u64) -> Result<Vec<Entry>, LedgerError> {
        let most = i64::try_from(most).unwrap_or(i64::MAX);
        self.verify()?;
        let texts = self.ask(|database| {
            let sql = format!("{SELECT} ORDER BY trials.id DESC LIMIT ?1");
            lines::<_, Vec<_>>(database, &sql, [most], texts)
        })?;
        texts.into_iter().rev().map(|texts| self.entry(texts)).collect()
    }

    /// How many trials there are, and how many of them were run by this code.
    ///
    /// # Errors
    /// If the ledger cannot be read.
    pub fn counts(&self) -> Result<(u64, u64), LedgerError> {
        self.ask(|database| {
            let sql = "SELECT count(*), count(*) FILTER (WHERE code = ?1) FROM trials";
            database.query_row(sql, [blis_scenario::CODE], |row| Ok((row.get(0)?, row.get(1)?)))
        })
    }

    /// The trial whose key begins with `prefix`.
    ///
    /// # Errors
    /// If there is none, or more than one.
    pub fn find(&self, prefix: &str) -> Result<Entry, LedgerError> {
        let unknown = |text: String| Err(LedgerError::Unknown(text));
        let hexadecimal = |c: char| c.is_ascii_digit() || ('a'..='f').contains(&c);
        if prefix.is_empty() || !prefix.chars().all(hexadecimal) {
            return unknown(format!(
                "found `{prefix}`; legal: the key of a trial or its first digits, as `blis ledger \
                 list` shows it"
            ));
        }
        let mut found = self.ask(|database| {
            let sql = format!("{SELECT} WHERE key GLOB ?1 LIMIT 2");
            lines::<_, Vec<_>>(database, &sql, [format!("{prefix}*")], texts)
        })?;
        match (found.pop(), found.pop()) {
            (Some(texts), None) => self.entry(texts),
            (None, _) => unknown(format!("no trial has a key that begins with `{prefix}`")),
            _ => unknown(format!("several keys begin with `{prefix}`; give more digits")),
        }
    }

    /// The document from which `blis trial` gives the row of `entry` again.
    ///
    /// # Errors
    /// If the ledger cannot be read.
    pub fn document(&self, entry: &Entry) -> Result<String, LedgerError> {
        let run = &entry.row.run;
        let scenario: Option<String> = self.ask(|database| {
            let sql = "SELECT CASE WHEN sum IS checksum(?1, document) THEN document END \
                       FROM scenarios WHERE scenario_hash = ?1";
            database.query_row(sql, [&run.scenario_hash], |row| row.get(0))
        })?;
        let detail = || self.damaged(format!("scenario {}", run.scenario_hash));
        let scenario = scenario.ok_or_else(detail)?;
        Ok(key::document(&scenario, &run.scenario_hash, run.seed))
    }

    /// How often each trial was begun, with its key, and how often such a run finished.
    ///
    /// # Errors
    /// If the ledger cannot be read.
    pub fn attempts(&self) -> Result<Vec<(String, u64, u64)>, LedgerError> {
        self.ask(|database| {
            let sql = "SELECT key, count(*), sum(finished) FROM runs GROUP BY key ORDER BY key";
            lines(database, sql, [], |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?)))
        })
    }

    fn entry(&self, (key, code, place): Texts) -> Result<Entry, LedgerError> {
        let found = self.ask(|database| claims::find(database, &key))?;
        let row = self.row(&key, found.flatten())?;
        let study = place.as_deref().and_then(|place| place.split_once('\n'));
        let study = study.map(|(name, levels)| {
            (name.to_owned(), serde_json::from_str(levels).unwrap_or_default())
        });
        Ok(Entry { key, code, row, study })
    }
}

/// Key, code, study and levels.
type Texts = (String, String, Option<String>);

fn texts(line: &Line<'_>) -> rusqlite::Result<Texts> {
    Ok((line.get(0)?, line.get(1)?, line.get(2)?))
}

/// A seed as the database keeps it.
pub(super) fn seed(value: ValueRef<'_>) -> Option<u64> {
    match value {
        ValueRef::Integer(seed) => u64::try_from(seed).ok(),
        ValueRef::Text(text) => std::str::from_utf8(text).ok()?.parse().ok(),
        _ => None,
    }
}
