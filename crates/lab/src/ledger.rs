//! The ledger: every finished trial, in one SQLite file that several processes can share.
//!
//! A trial is found by its key, which is a hash of all that its row depends on, so a row never goes
//! stale: other code, another scenario or another seed is another key. A process that wants to run
//! a trial *claims* it first. It proves that it lives by a lock on a file, which the system lets go
//! of when the process ends in whatever way, so that the claims of the dead are known as such at
//! once, and that it goes on by writing to that file; see decision 11. Whoever runs studies opens a
//! ledger; nothing in here prints.

mod claims;
#[cfg(test)]
mod damage;
mod error;
mod export;
mod gc;
mod merge;
mod peers;
mod read;
mod saturations;
mod studies;
mod sums;
#[cfg(test)]
mod tests;
mod views;

pub use claims::Claim;
pub use error::LedgerError;
pub use export::export;
pub use gc::Removed;
pub use merge::Merged;
pub use peers::Seen;
pub use read::Entry;
pub(crate) use studies::{Experiment, PlannedCell};
pub use studies::{StudyCell, StudyEntry, VerdictRecord};

use core::time::Duration;
use peers::Owner;
use rusqlite::{Connection, OpenFlags, Transaction, TransactionBehavior};
use std::fs::{self, File, TryLockError};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Where the ledger is unless another is named.
pub const DEFAULT_PATH: &str = ".blis/ledger.db";

/// "blis" as a number, in the header of the file.
const APPLICATION: i64 = 0x626c_6973;
/// The layout that this program writes.
const LAYOUT: i64 = 3;
/// The statements that lead from each layout to the next, but for the last step, which gives every
/// line its checksum.
const MIGRATIONS: [&str; 2] =
    [include_str!("ledger/schema.sql"), include_str!("ledger/layout2.sql")];
/// How long to wait for another process to finish a write, which takes milliseconds.
const PATIENCE: Duration = Duration::from_mins(1);

/// An open ledger. Threads may share it.
#[derive(Debug)]
pub struct Ledger {
    path: PathBuf,
    state: Mutex<State>,
}

#[derive(Debug)]
struct State {
    database: Connection,
    /// Who this process is, once it has claimed something.
    owner: Option<Owner>,
}

impl Ledger {
    /// Opens the ledger at `path`; makes it, and its folder, if it is not there.
    ///
    /// # Errors
    /// If it cannot be made or written, is damaged, or is of a newer version.
    pub fn open(path: &Path) -> Result<Ledger, LedgerError> {
        if path == Path::new(":memory:") || path.as_os_str().is_empty() {
            return Err(LedgerError::NoFile(path.to_owned()));
        }
        if let Some(folder) = path.parent().filter(|folder| !folder.as_os_str().is_empty()) {
            fs::create_dir_all(folder).map_err(|error| LedgerError::io(folder, &error))?;
        }
        // Processes come in one at a time, so that one of them makes the tables.
        let door = File::options().create(true).append(true).open(beside(path, "-lock"));
        let door = door.map_err(|error| LedgerError::io(path, &error))?;
        enter(path, &door)?;
        let mut database = connect(path, OpenFlags::SQLITE_OPEN_CREATE)?;
        prepare(path, &mut database)?;
        let ledger = Ledger::with(path, database);
        ledger.bury_the_dead()?;
        Ok(ledger)
    }

    /// Opens the ledger at `path` to look at it.
    ///
    /// # Errors
    /// If there is none, or it cannot be read.
    pub fn open_existing(path: &Path) -> Result<Ledger, LedgerError> {
        if !path.exists() {
            return Err(LedgerError::Missing(path.to_owned()));
        }
        let look = |database: Connection| Ok((check(path, &database)?, database));
        let found = match connect(path, OpenFlags::empty()).and_then(look) {
            Err(LedgerError::Unwritable { .. }) => connect_frozen(path).and_then(look),
            found => found,
        };
        match found? {
            (LAYOUT, database) => Ok(Ledger::with(path, database)),
            _ => Ledger::open(path),
        }
    }

    fn with(path: &Path, database: Connection) -> Ledger {
        let state = Mutex::new(State { database, owner: None });
        Ledger { path: path.to_owned(), state }
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.path
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What the database library says, as an error of this ledger.
    fn fail(&self, error: &rusqlite::Error) -> LedgerError {
        LedgerError::sqlite(&self.path, error)
    }

    /// Does `work` in one transaction that no other process can come between.
    fn change<T>(
        &self,
        work: impl FnOnce(&Transaction<'_>) -> rusqlite::Result<T>,
    ) -> Result<T, LedgerError> {
        transact(&mut self.lock().database, work).map_err(|error| self.fail(&error))
    }

    /// Asks the database.
    fn ask<T>(
        &self,
        question: impl FnOnce(&Connection) -> rusqlite::Result<T>,
    ) -> Result<T, LedgerError> {
        question(&self.lock().database).map_err(|error| self.fail(&error))
    }
}

/// Does `work` in one transaction that no other process can come between.
fn transact<T>(
    database: &mut Connection,
    work: impl FnOnce(&Transaction<'_>) -> rusqlite::Result<T>,
) -> rusqlite::Result<T> {
    let transaction = database.transaction_with_behavior(TransactionBehavior::Immediate)?;
    let done = work(&transaction)?;
    transaction.commit()?;
    Ok(done)
}

/// Each line that a query finds, read.
fn lines<T, R: FromIterator<T>>(
    database: &Connection,
    sql: &str,
    parameters: impl rusqlite::Params,
    read: impl FnMut(&rusqlite::Row<'_>) -> rusqlite::Result<T>,
) -> rusqlite::Result<R> {
    database.prepare_cached(sql)?.query_map(parameters, read)?.collect()
}

/// Waits until `door` is free, but not for a process that is stopped behind it.
fn enter(path: &Path, door: &File) -> Result<(), LedgerError> {
    const LOOK: Duration = Duration::from_millis(10);
    for _ in 0..PATIENCE.as_millis() / LOOK.as_millis() {
        match door.try_lock() {
            Ok(()) => return Ok(()),
            Err(TryLockError::WouldBlock) => std::thread::sleep(LOOK),
            Err(TryLockError::Error(error)) => return Err(LedgerError::io(path, &error)),
        }
    }
    Err(LedgerError::Busy(path.to_owned()))
}

/// The file beside the ledger at `path` whose name ends with `ending`.
fn beside(path: &Path, ending: &str) -> PathBuf {
    let mut name = path.file_name().unwrap_or_default().to_owned();
    name.push(ending);
    path.with_file_name(name)
}

fn connect(path: &Path, more: OpenFlags) -> Result<Connection, LedgerError> {
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX | more;
    let open = || {
        let database = Connection::open_with_flags(path, flags)?;
        database.busy_timeout(PATIENCE)?;
        // A process that is killed loses nothing; a machine that loses power may lose the last
        // trials, which are then run again.
        database.pragma_update(None, "synchronous", "NORMAL")?;
        sums::define(&database)?;
        Ok(database)
    };
    open().map_err(|error| LedgerError::sqlite(path, &error))
}

/// Opens a ledger where nothing can be written, e.g. on a read-only disk: nobody changes it there.
fn connect_frozen(path: &Path) -> Result<Connection, LedgerError> {
    let rest = fs::metadata(beside(path, "-wal")).is_ok_and(|log| log.len() > 0);
    if rest {
        let detail = "what was written last is not yet in its place; copy the ledger and its \
                      `-wal` file to where they can be written";
        return Err(LedgerError::Unwritable { path: path.to_owned(), detail: detail.to_owned() });
    }
    let name = path.to_string_lossy();
    let name = name.replace('%', "%25").replace('?', "%3f").replace('#', "%23");
    let flags = OpenFlags::SQLITE_OPEN_READ_ONLY
        | OpenFlags::SQLITE_OPEN_NO_MUTEX
        | OpenFlags::SQLITE_OPEN_URI;
    Connection::open_with_flags(format!("file:{name}?immutable=1"), flags)
        .and_then(|database| sums::define(&database).map(|()| database))
        .map_err(|error| LedgerError::sqlite(path, &error))
}

/// The layout of a ledger; 0 if it is empty.
fn check(path: &Path, database: &Connection) -> Result<i64, LedgerError> {
    let number = |pragma: &str| {
        let found = database.pragma_query_value(None, pragma, |row| row.get::<_, i64>(0));
        found.map_err(|error| LedgerError::sqlite(path, &error))
    };
    let (application, layout) = (number("application_id")?, number("user_version")?);
    if application != APPLICATION && (application != 0 || number("schema_version")? != 0) {
        return Err(LedgerError::Foreign(path.to_owned()));
    }
    if layout == 0 && application == APPLICATION {
        let detail = "its version is 0, which blis never writes".to_owned();
        return Err(LedgerError::Damaged { path: path.to_owned(), detail });
    }
    if layout > LAYOUT {
        let path = path.to_owned();
        return Err(LedgerError::Newer { path, found: layout, known: LAYOUT });
    }
    Ok(layout)
}

/// Brings a ledger to the layout of this program.
fn prepare(path: &Path, database: &mut Connection) -> Result<(), LedgerError> {
    let layout = check(path, database)?;
    let done = usize::try_from(layout).unwrap_or_default();
    let migrate = |database: &mut Connection| {
        // Readers and one writer at a time do not wait for one another.
        database.pragma_update(None, "journal_mode", "WAL")?;
        let views = views::stale(database)?;
        if layout == LAYOUT && views.is_empty() {
            return Ok(());
        }
        transact(database, |transaction| {
            for statements in MIGRATIONS.iter().skip(done) {
                transaction.execute_batch(statements)?;
            }
            if layout < LAYOUT {
                transaction.execute_batch(&sums::migration())?;
            }
            views.iter().try_for_each(|view| transaction.execute_batch(view))?;
            transaction.pragma_update(None, "application_id", APPLICATION)?;
            transaction.pragma_update(None, "user_version", LAYOUT)
        })
    };
    migrate(database).map_err(|error| LedgerError::sqlite(path, &error))
}
