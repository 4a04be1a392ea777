//! Who runs what: claims, their owners, and the rows that they end with.

use super::peers::{self, Owner};
use super::{Ledger, LedgerError, State, sums, transact};
use crate::key::Key;
use blis_scenario::CODE;
use blis_scenario::row::Row;
use blis_scenario::scenario::Plan;
use rusqlite::{Connection, OptionalExtension, Transaction, params, types::Value};
use std::path::Path;

/// What came of claiming a trial.
#[derive(Clone, Debug, PartialEq)]
pub enum Claim {
    /// It is ours to run.
    Ours,
    /// It is finished.
    Finished(Box<Row>),
    /// Somebody else, who lives, is running it.
    Taken,
}

impl Ledger {
    /// The rows of those of `keys` that are finished.
    ///
    /// # Errors
    /// If the ledger cannot be read, or a row in it is none.
    pub fn finished(&self, keys: &[Key]) -> Result<Vec<Option<Row>>, LedgerError> {
        let found: Vec<Option<Found>> =
            self.ask(|database| keys.iter().map(|key| find(database, key.text())).collect())?;
        let read = |(key, found): (&Key, Option<Found>)| {
            found.map(|found| self.row(key.text(), found)).transpose()
        };
        keys.iter().zip(found).map(read).collect()
    }

    /// Claims the trial `key`, unless it is finished or somebody who lives has claimed it.
    ///
    /// # Errors
    /// If the ledger cannot be written.
    pub fn claim(&self, key: &Key) -> Result<Claim, LedgerError> {
        let mut state = self.lock();
        let me = self.owner(&mut state)?;
        let folder = self.path.parent().unwrap_or(Path::new(""));
        let claimed = transact(&mut state.database, |transaction| {
            if let Some(found) = find(transaction, key.text())? {
                return Ok(Err(found));
            }
            let owner: Option<(i64, Option<String>)> = transaction
                .prepare_cached(
                    "SELECT claims.owner, owners.lock FROM claims \
                     LEFT JOIN owners ON owners.id = claims.owner WHERE key = ?1",
                )?
                .query_row([key.text()], |row| Ok((row.get(0)?, row.get(1)?)))
                .optional()?;
            if let Some((owner, lock)) = owner {
                if owner == me || lock.as_ref().is_some_and(|lock| peers::lives(&folder.join(lock)))
                {
                    return Ok(Ok(false));
                }
                peers::forget(transaction, owner)?;
            }
            transaction
                .prepare_cached("INSERT INTO claims (key, owner) VALUES (?1, ?2)")?
                .execute(params![key.text(), me])?;
            transaction
                .prepare_cached("INSERT INTO runs (key, owner) VALUES (?1, ?2)")?
                .execute(params![key.text(), me])?;
            Ok(Ok(true))
        });
        drop(state);
        match claimed.map_err(|error| self.fail(&error))? {
            Ok(true) => Ok(Claim::Ours),
            Ok(false) => Ok(Claim::Taken),
            Err(found) => self.row(key.text(), found).map(Box::new).map(Claim::Finished),
        }
    }

    /// Keeps the row of a trial that was claimed, and gives the claim back.
    ///
    /// # Errors
    /// If the ledger cannot be written, or has another row for this trial.
    pub fn record(&self, key: &Key, plan: &Plan, row: &Row) -> Result<(), LedgerError> {
        self.record_all(&[(key, plan, row)])
    }

    /// Keeps the rows of trials that were claimed, in one transaction, and gives the claims back.
    ///
    /// # Errors
    /// If the ledger cannot be written, or has another row for one of the trials; those before that
    /// one are kept.
    pub fn record_all(&self, rows: &[(&Key, &Plan, &Row)]) -> Result<(), LedgerError> {
        let mut state = self.lock();
        let me = self.owner(&mut state)?;
        let other = transact(&mut state.database, |transaction| {
            for &(key, plan, row) in rows {
                if let Some(known) = keep(transaction, me, key, plan, row)? {
                    return Ok(Some((key, known, row)));
                }
            }
            Ok(None)
        });
        drop(state);
        match other.map_err(|error| self.fail(&error))? {
            None => Ok(()),
            Some((key, Some(known), row)) => {
                Err(differs(key.text(), "the row of this run", &known, &row.text()))
            }
            Some((key, None, _)) => Err(self.damaged(of_trial(key.text()))),
        }
    }

    /// Gives a claim back without a row, so that others may run the trial.
    ///
    /// # Errors
    /// If the ledger cannot be written.
    pub fn release(&self, key: &Key) -> Result<(), LedgerError> {
        self.change(|transaction| {
            transaction.execute("DELETE FROM claims WHERE key = ?1", [key.text()]).map(drop)
        })
    }

    /// The row that was found.
    pub(super) fn row(&self, key: &str, found: Found) -> Result<Row, LedgerError> {
        let text = found.ok_or_else(|| self.damaged(of_trial(key)))?;
        Row::parse(&text).map_err(|error| self.damaged(format!("{}: {error}", of_trial(key))))
    }

    /// Gives back all that this process has claimed, so that it can be run here or elsewhere.
    ///
    /// # Errors
    /// If the ledger cannot be written.
    pub fn release_all(&self) -> Result<(), LedgerError> {
        let me = self.lock().owner.as_ref().map(|owner| owner.id);
        match me {
            Some(me) => self.change(|transaction| peers::drop_claims(transaction, me).map(drop)),
            None => Ok(()),
        }
    }

    /// Who this process is.
    fn owner(&self, state: &mut State) -> Result<i64, LedgerError> {
        if let Some(owner) = &state.owner {
            return Ok(owner.id);
        }
        let database = &mut state.database;
        let owner = Owner::new(&self.path, |lock| {
            let id = transact(database, |transaction| {
                transaction.execute("INSERT INTO owners (lock) VALUES (?1)", [lock])?;
                Ok(transaction.last_insert_rowid())
            });
            id.map_err(|error| self.fail(&error))
        })?;
        Ok(state.owner.insert(owner).id)
    }
}

impl Drop for Ledger {
    fn drop(&mut self) {
        let state = self.state.get_mut().unwrap_or_else(std::sync::PoisonError::into_inner);
        if let Some(owner) = state.owner.take() {
            // If this fails, the next who opens the ledger does it.
            let _ =
                transact(&mut state.database, |transaction| peers::forget(transaction, owner.id));
        }
    }
}

/// Keeps the row of a trial that `owner` has claimed, unless it is there; the row that is, if it is
/// another one.
fn keep(
    transaction: &Transaction<'_>,
    owner: i64,
    key: &Key,
    plan: &Plan,
    row: &Row,
) -> rusqlite::Result<Option<Found>> {
    let text = row.text();
    if let Some(known) = find(transaction, key.text())? {
        return Ok(Some(known).filter(|known| known.as_ref() != Some(&text)));
    }
    let (scenario, seed) = (row.run.scenario_hash.as_str(), seed_value(row.run.seed));
    transaction
        .prepare_cached(&sums::insert("INSERT OR IGNORE", "scenarios"))?
        .execute([scenario, &plan.document()])?;
    transaction.prepare_cached(&sums::insert("INSERT", "trials"))?.execute(params![
        key.text(),
        CODE,
        scenario,
        seed,
        text
    ])?;
    transaction.prepare_cached("DELETE FROM claims WHERE key = ?1")?.execute([key.text()])?;
    transaction
        .prepare_cached("UPDATE runs SET finished = 1 WHERE key = ?1 AND owner = ?2")?
        .execute(params![key.text(), owner])?;
    Ok(None)
}

/// The text of a row, unless it is damaged.
pub(super) type Found = Option<String>;

/// The row of a trial. It is damaged if it is whole but that of another trial.
pub(super) fn find(database: &Connection, key: &str) -> rusqlite::Result<Option<Found>> {
    let sql = "SELECT CASE WHEN sum IS checksum(?1, code, scenario_hash, seed, row) THEN row END \
               FROM trials WHERE key = ?1";
    database.prepare_cached(sql)?.query_row([key], |row| row.get(0)).optional()
}

fn of_trial(key: &str) -> String {
    format!("the row of trial {key}")
}

/// A seed as the database keeps it.
pub(super) fn seed_value(seed: u64) -> Value {
    i64::try_from(seed).map_or_else(|_| Value::Text(seed.to_string()), Value::Integer)
}

/// That a trial has two rows.
pub(super) fn differs(key: &str, other: &str, known: &str, found: &str) -> LedgerError {
    let parse = |text| serde_json::from_str(text).unwrap_or_default();
    let paths: Vec<String> = blis_scenario::json::differences(&parse(known), &parse(found))
        .into_iter()
        .take(3)
        .map(|difference| format!("`{}`", difference.path))
        .collect();
    LedgerError::Differs { key: key.to_owned(), other: other.to_owned(), paths: paths.join(", ") }
}
