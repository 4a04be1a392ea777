//! Making room: what no run of this program can ask for again.

use super::{Ledger, LedgerError, sums};
use blis_scenario::CODE;

/// What was removed, or would be.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Removed {
    /// Trials of other code.
    pub trials: u64,
    /// Scenarios without a trial.
    pub scenarios: u64,
    /// Studies without a trial, with their verdicts.
    pub studies: u64,
    /// Records of runs that were begun, of trials that are gone or never finished.
    pub runs: u64,
    /// Lines that are damaged.
    pub damaged: u64,
}

/// Lines that go, in this order.
const STALE: [(&str, &str); 7] = [
    ("trials", "code <> ?1"),
    ("saturations", "code <> ?1"),
    ("scenarios", "scenario_hash NOT IN (SELECT scenario_hash FROM trials)"),
    ("study_trials", "study NOT IN (SELECT study FROM study_trials JOIN trials USING (key))"),
    ("studies", "study NOT IN (SELECT study FROM study_trials)"),
    ("verdicts", "study NOT IN (SELECT study FROM studies)"),
    ("runs", "key NOT IN (SELECT key FROM trials) AND key NOT IN (SELECT key FROM claims)"),
];

impl Ledger {
    /// Removes lines that are damaged, the trials that other code has run, which this program can
    /// never ask for, and what belonged to nothing else; the file shrinks accordingly.
    ///
    /// # Errors
    /// If the ledger cannot be written.
    pub fn collect_garbage(&self) -> Result<Removed, LedgerError> {
        // A damaged line need not be where its index says.
        self.ask(|database| database.execute_batch("REINDEX"))?;
        let removed = self.change(sweep)?;
        self.ask(|database| database.execute_batch("VACUUM"))?;
        Ok(removed)
    }

    /// What [`Ledger::collect_garbage`] would remove.
    ///
    /// # Errors
    /// If the ledger cannot be written, because it is tried and undone.
    pub fn garbage(&self) -> Result<Removed, LedgerError> {
        let mut state = self.lock();
        let transaction = state.database.transaction().map_err(|error| self.fail(&error))?;
        // Dropped without a commit, a transaction leaves no trace.
        sweep(&transaction).map_err(|error| self.fail(&error))
    }
}

fn sweep(transaction: &rusqlite::Transaction<'_>) -> rusqlite::Result<Removed> {
    let mut removed = Removed::default();
    for (table, _) in sums::TABLES {
        let sql = format!("DELETE FROM {table} WHERE {}", sums::damaged(table));
        removed.damaged += transaction.execute(&sql, [])? as u64;
    }
    for (table, stale) in STALE {
        let sql = format!("DELETE FROM {table} WHERE {stale}");
        let mut statement = transaction.prepare(&sql)?;
        let lines = match statement.parameter_count() {
            0 => statement.execute([])?,
            _ => statement.execute([CODE])?,
        } as u64;
        match table {
            "trials" => removed.trials = lines,
            "scenarios" => removed.scenarios = lines,
            "studies" => removed.studies = lines,
            "runs" => removed.runs = lines,
            _ => {}
        }
    }
    Ok(removed)
}
