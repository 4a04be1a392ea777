//! Joining ledgers: those of shards, or of several people.

use super::claims::differs;
use super::{Ledger, LedgerError};
use rusqlite::{Connection, OptionalExtension, Transaction, params, types::Value};

/// What a merge has brought.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Merged {
    /// Trials that were new.
    pub new: u64,
    /// Trials that both had.
    pub known: u64,
}

/// Tables that are copied as they are, where the key of a line is not yet known.
const COPIED: [(&str, usize); 4] =
    [("scenarios", 2), ("study_trials", 5), ("verdicts", 10), ("saturations", 3)];

impl Ledger {
    /// Takes over all trials, studies and verdicts of `other`. Either all of them are taken over,
    /// or nothing is.
    ///
    /// # Errors
    /// If one of them cannot be read or written, or a trial has different rows in both.
    pub fn merge(&self, other: &Ledger) -> Result<Merged, LedgerError> {
        let theirs = other.lock();
        let mut conflict = None;
        let merged = self.change(|transaction| {
            let (merged, found) = merge(transaction, &theirs.database)?;
            conflict = found;
            match conflict {
                // Anything but a success undoes what was done.
                Some(_) => Err(rusqlite::Error::QueryReturnedNoRows),
                None => Ok(merged),
            }
        });
        match conflict {
            Some((key, ours, theirs)) => {
                Err(differs(&key, &other.path.display().to_string(), &ours, &theirs))
            }
            None => merged,
        }
    }
}

/// A trial's key and its two rows.
type Conflict = (String, String, String);

fn merge(
    ours: &Transaction<'_>,
    theirs: &Connection,
) -> rusqlite::Result<(Merged, Option<Conflict>)> {
    let mut merged = Merged::default();
    let mut select =
        theirs.prepare("SELECT key, code, scenario_hash, seed, row FROM trials ORDER BY id")?;
    let mut known = ours.prepare("SELECT row FROM trials WHERE key = ?1")?;
    let mut insert = ours.prepare(
        "INSERT INTO trials (key, code, scenario_hash, seed, row) VALUES (?1, ?2, ?3, ?4, ?5)",
    )?;
    let mut lines = select.query([])?;
    while let Some(line) = lines.next()? {
        let (key, row): (String, String) = (line.get(0)?, line.get(4)?);
        match known.query_row([&key], |row| row.get::<_, String>(0)).optional()? {
            Some(ours) if ours == row => merged.known += 1,
            Some(ours) => return Ok((merged, Some((key, ours, row)))),
            None => {
                let (code, hash): (String, String) = (line.get(1)?, line.get(2)?);
                insert.execute(params![key, code, hash, line.get::<_, Value>(3)?, row])?;
                merged.new += 1;
            }
        }
    }
    let mut select = theirs.prepare(
        "SELECT study, name, question, factors, metrics, code, version FROM studies ORDER BY id",
    )?;
    let mut insert = ours.prepare(
        "INSERT OR IGNORE INTO studies (study, name, question, factors, metrics, code, version) \
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)",
    )?;
    copy(&mut select, &mut insert, 7)?;
    for (table, columns) in COPIED {
        let places: Vec<String> = (1..=columns).map(|column| format!("?{column}")).collect();
        let mut select = theirs.prepare(&format!("SELECT * FROM {table}"))?;
        let sql = format!("INSERT OR IGNORE INTO {table} VALUES ({})", places.join(", "));
        copy(&mut select, &mut ours.prepare(&sql)?, columns)?;
    }
    Ok((merged, None))
}

fn copy(
    select: &mut rusqlite::Statement<'_>,
    insert: &mut rusqlite::Statement<'_>,
    columns: usize,
) -> rusqlite::Result<()> {
    let mut lines = select.query([])?;
    while let Some(line) = lines.next()? {
        let values: rusqlite::Result<Vec<Value>> =
            (0..columns).map(|column| line.get(column)).collect();
        insert.execute(rusqlite::params_from_iter(values?))?;
    }
    Ok(())
}
