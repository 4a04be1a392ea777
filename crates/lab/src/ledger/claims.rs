//! Who runs what: claims, their owners, and the rows that they end with.

use super::{Ledger, LedgerError, State, beside, sums, transact};
use crate::key::Key;
use blis_scenario::CODE;
use blis_scenario::row::Row;
use blis_scenario::scenario::Plan;
use rusqlite::{Connection, OptionalExtension, Transaction, params, types::Value};
use std::fs::{self, File, TryLockError};
use std::io;
use std::path::{Path, PathBuf};

/// How many processes may run trials at a time.
const MOST_NAMES: u32 = 10_000;

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

/// This process, as others see it: a file that it keeps locked as long as it lives.
#[derive(Debug)]
pub(super) struct Owner {
    id: i64,
    lock: PathBuf,
    /// Holds the lock.
    _file: File,
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
                if owner == me || lock.as_ref().is_some_and(|lock| lives(&folder.join(lock))) {
                    return Ok(Ok(false));
                }
                forget(transaction, owner)?;
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

    /// Forgets the claims of processes that have died, and removes their locks. To be called only
    /// while no other process can be opening the ledger.
    pub(super) fn bury_the_dead(&self) -> Result<(), LedgerError> {
        let folder = self.path.parent().unwrap_or(Path::new(""));
        let owners = |transaction: &Transaction<'_>| {
            let mut statement = transaction.prepare("SELECT id, lock FROM owners")?;
            let rows = statement.query_map([], |row| Ok((row.get(0)?, row.get(1)?)))?;
            rows.collect::<rusqlite::Result<Vec<(i64, String)>>>()
        };
        if self.ask(|database| {
            database.query_row("SELECT NOT EXISTS (SELECT 1 FROM owners)", [], |row| row.get(0))
        })? {
            return self.remove_locks();
        }
        self.change(|transaction| {
            for (id, lock) in owners(transaction)? {
                if !lives(&folder.join(lock)) {
                    forget(transaction, id)?;
                }
            }
            Ok(())
        })?;
        self.remove_locks()
    }

    /// Removes the locks that nobody holds: their processes died before they were known.
    fn remove_locks(&self) -> Result<(), LedgerError> {
        let prefix = beside(&self.path, "-owner-");
        let prefix = prefix.file_name().unwrap_or_default().as_encoded_bytes().to_owned();
        let folder = self.path.parent().filter(|folder| !folder.as_os_str().is_empty());
        let entries = fs::read_dir(folder.unwrap_or(Path::new(".")));
        for entry in entries.map_err(|error| LedgerError::io(&self.path, &error))?.flatten() {
            if entry.file_name().as_encoded_bytes().starts_with(&prefix) {
                lives(&entry.path());
            }
        }
        Ok(())
    }

    /// Who this process is.
    fn owner(&self, state: &mut State) -> Result<i64, LedgerError> {
        if let Some(owner) = &state.owner {
            return Ok(owner.id);
        }
        let (lock, file) = lock_new(&self.path).map_err(|e| LedgerError::io(&self.path, &e))?;
        let name = lock.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let id = transact(&mut state.database, |transaction| {
            transaction.execute("INSERT INTO owners (lock) VALUES (?1)", [name])?;
            Ok(transaction.last_insert_rowid())
        })
        .map_err(|error| self.fail(&error))?;
        state.owner = Some(Owner { id, lock, _file: file });
        Ok(id)
    }
}

impl Drop for Ledger {
    fn drop(&mut self) {
        let state = self.state.get_mut().unwrap_or_else(std::sync::PoisonError::into_inner);
        if let Some(owner) = state.owner.take() {
            // If this fails, the next who opens the ledger does it.
            let _ = transact(&mut state.database, |transaction| forget(transaction, owner.id));
            let _ = fs::remove_file(&owner.lock);
        }
    }
}

/// A new locked file beside the ledger.
fn lock_new(ledger: &Path) -> io::Result<(PathBuf, File)> {
    for number in 0..MOST_NAMES {
        let path = beside(ledger, &format!("-owner-{number}"));
        match File::create_new(&path) {
            Ok(file) => {
                file.lock()?;
                // Somebody may have taken it for one of the dead before it was locked.
                if path.exists() {
                    return Ok((path, file));
                }
            }
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
            Err(error) => return Err(error),
        }
    }
    Err(io::Error::other("too many processes share it"))
}

/// Whether the process that holds this lock lives. The lock of a dead one is removed.
fn lives(lock: &Path) -> bool {
    let file = match File::open(lock) {
        Ok(file) => file,
        // Rather wait for the dead than run a trial twice.
        Err(error) => return error.kind() != io::ErrorKind::NotFound,
    };
    match file.try_lock() {
        Ok(()) => {
            let _ = fs::remove_file(lock);
            false
        }
        Err(TryLockError::WouldBlock | TryLockError::Error(_)) => true,
    }
}

/// Forgets a process and what it has claimed.
fn forget(transaction: &Transaction<'_>, owner: i64) -> rusqlite::Result<()> {
    transaction.execute("DELETE FROM claims WHERE owner = ?1", [owner])?;
    transaction.execute("DELETE FROM owners WHERE id = ?1", [owner])?;
    Ok(())
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
