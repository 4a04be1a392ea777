//! Saturations that are known: those that this process has measured, and those in a ledger.
//!
//! A saturation is a pure function of its key, so remembering it changes nothing but the time that
//! reading a scenario takes. The one who runs experiments says which ledger to look in before it
//! reads its files, and keeps there what was measured once they are checked.

use crate::ledger::{Ledger, LedgerError};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};

static KNOWN: Mutex<Known> = Mutex::new(Known { found: BTreeMap::new(), ledger: None });

struct Known {
    /// In arrivals a second, by key.
    found: BTreeMap<String, f64>,
    /// Where to look for others.
    ledger: Option<PathBuf>,
}

/// Says that saturations may be found in the ledger at `path`, if there is one.
pub fn consult(path: &Path) {
    lock().ledger = Some(path.to_owned());
}

/// The saturation with this key, if it is known. A ledger that cannot be read knows nothing: who
/// wants to write to it will be told.
pub(super) fn look_up(key: &str) -> Option<f64> {
    let mut known = lock();
    if let Some(path) = known.ledger.take().filter(|path| path.exists()) {
        let kept = Ledger::open_existing(&path).and_then(|ledger| ledger.saturations());
        known.found.extend(kept.unwrap_or_default());
    }
    known.found.get(key).copied()
}

/// Remembers what was measured.
pub(super) fn remember(key: String, per_sec: f64) {
    lock().found.insert(key, per_sec);
}

impl Ledger {
    /// Keeps all saturations that this process knows.
    ///
    /// # Errors
    /// If the ledger cannot be written.
    pub fn keep_saturations(&self) -> Result<(), LedgerError> {
        let found = lock().found.clone();
        if found.is_empty() { Ok(()) } else { self.record_saturations(&found) }
    }
}

fn lock() -> MutexGuard<'static, Known> {
    KNOWN.lock().unwrap_or_else(PoisonError::into_inner)
}
