//! Joining ledgers: those of shards, or of several people.

use super::claims::differs;
use super::{Ledger, LedgerError, sums};
use rusqlite::{Connection, OptionalExtension, Transaction, params, types::Value};

/// What a merge has brought.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Merged {
    /// Trials that were new.
    pub new: u64,
    /// Trials that both had.
    pub known: u64,
}

impl Ledger {
    /// Takes over all trials, studies and verdicts of `other`. Either all of them are taken over,
    /// or nothing is.
    ///
    /// # Errors
    /// If one of them cannot be read or written, anything in them is damaged, or a trial has
    /// different rows in both.
    pub fn merge(&self, other: &Ledger) -> Result<Merged, LedgerError> {
        self.verify()?;
        other.verify()?;
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
    let mut insert = ours.prepare(&sums::insert("INSERT", "trials"))?;
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
    // The others are copied as they are, where the key of a line is not yet known.
    for (table, columns) in sums::TABLES.into_iter().filter(|(table, _)| *table != "trials") {
        let order = if table == "studies" { "ORDER BY id" } else { "" };
        let sql = format!("SELECT {} FROM {table} {order}", columns.join(", "));
        let mut insert = ours.prepare(&sums::insert("INSERT OR IGNORE", table))?;
        copy(&mut theirs.prepare(&sql)?, &mut insert, columns.len())?;
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
