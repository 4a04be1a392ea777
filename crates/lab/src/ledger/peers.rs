//! Other processes that share the ledger: who has died, and who has stopped.
//!
//! A process holds a lock on a file of its own as long as it lives, and writes to it every second
//! as long as it goes on. Whoever waits for others looks at these files. No clock is read: one that
//! is stopped is one whose file has stayed the same for many looks.

use super::{Ledger, LedgerError, beside, lines};
use core::time::Duration;
use rusqlite::Transaction;
use std::collections::BTreeMap;
use std::fs::{self, File, TryLockError};
use std::io;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, Sender};
use std::thread::{self, JoinHandle};

/// How many processes may run trials at a time.
const MOST_NAMES: u32 = 10_000;
/// How often a process shows that it goes on.
const BEAT: Duration = Duration::from_secs(1);

/// This process, as others see it.
#[derive(Debug)]
pub(super) struct Owner {
    pub(super) id: i64,
    lock: PathBuf,
    /// Dropped first, which ends the thread that holds the lock.
    alive: Option<(Sender<()>, JoinHandle<()>)>,
}

impl Owner {
    /// A new file beside the ledger, locked; `enter` puts its name into the ledger.
    pub(super) fn new(
        ledger: &Path,
        enter: impl FnOnce(&str) -> Result<i64, LedgerError>,
    ) -> Result<Owner, LedgerError> {
        let fail = |error: io::Error| LedgerError::io(ledger, &error);
        let (lock, file) = lock_new(ledger).map_err(fail)?;
        let id = enter(&lock.file_name().unwrap_or_default().to_string_lossy())?;
        let (alive, end) = mpsc::channel();
        let thread = thread::Builder::new().spawn(move || beat(&file, &end)).map_err(fail)?;
        Ok(Owner { id, lock, alive: Some((alive, thread)) })
    }
}

impl Drop for Owner {
    fn drop(&mut self) {
        if let Some((alive, thread)) = self.alive.take() {
            drop(alive);
            let _ = thread.join();
        }
        let _ = fs::remove_file(&self.lock);
    }
}

/// Counts in `file` until the other end of `end` is dropped.
fn beat(file: &File, end: &Receiver<()>) {
    for count in 1_u64.. {
        if end.recv_timeout(BEAT) != Err(RecvTimeoutError::Timeout) {
            return;
        }
        // Others may take a process that cannot write for one that is stopped: no harm is done.
        let _ = file.write_all_at(&count.to_le_bytes(), 0);
    }
}

/// What a process that waits has seen of the others: the file of each, and for how many looks it
/// has been the same.
#[derive(Debug, Default)]
pub struct Seen(BTreeMap<i64, (Vec<u8>, u32)>);

impl Ledger {
    /// Takes the claims of processes that have not moved for `looks` calls with the same `seen`;
    /// the value is how many claims there were. One that goes on later finds the same rows.
    ///
    /// # Errors
    /// If the ledger cannot be written.
    pub fn take_over(&self, seen: &mut Seen, looks: u32) -> Result<usize, LedgerError> {
        let folder = self.path.parent().unwrap_or(Path::new(""));
        let me = self.lock().owner.as_ref().map(|owner| owner.id);
        let mut taken = 0;
        for (id, lock) in self.ask(owners)? {
            let now = fs::read(folder.join(lock)).unwrap_or_default();
            let (before, same) = seen.0.entry(id).or_default();
            *same = if *before == now { *same + 1 } else { 0 };
            *before = now;
            if *same >= looks && Some(id) != me {
                *same = 0;
                taken += self.change(|transaction| drop_claims(transaction, id))?;
            }
        }
        Ok(taken)
    }

    /// Forgets the claims of processes that have died, and removes their locks. To be called only
    /// while no other process can be opening the ledger.
    pub(super) fn bury_the_dead(&self) -> Result<(), LedgerError> {
        let folder = self.path.parent().unwrap_or(Path::new(""));
        if !self.ask(owners)?.is_empty() {
            self.change(|transaction| {
                for (id, lock) in owners(transaction)? {
                    if !lives(&folder.join(lock)) {
                        forget(transaction, id)?;
                    }
                }
                Ok(())
            })?;
        }
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
}

/// The processes that run trials, with their locks.
fn owners(database: &rusqlite::Connection) -> rusqlite::Result<Vec<(i64, String)>> {
    let sql = "SELECT id, lock FROM owners";
    lines(database, sql, [], |row| Ok((row.get(0)?, row.get(1)?)))
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
pub(super) fn lives(lock: &Path) -> bool {
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
pub(super) fn forget(transaction: &Transaction<'_>, owner: i64) -> rusqlite::Result<()> {
    drop_claims(transaction, owner)?;
    transaction.execute("DELETE FROM owners WHERE id = ?1", [owner])?;
    Ok(())
}

/// Forgets what a process has claimed; the value is how many claims there were.
pub(super) fn drop_claims(transaction: &Transaction<'_>, owner: i64) -> rusqlite::Result<usize> {
    transaction.execute("DELETE FROM claims WHERE owner = ?1", [owner])
}
