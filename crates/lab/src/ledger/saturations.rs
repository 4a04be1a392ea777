//! Measured saturations, as the ledger keeps them.

use super::{Ledger, LedgerError};
use blis_scenario::CODE;
use rusqlite::params;
use std::collections::BTreeMap;

impl Ledger {
    /// The saturations that this code has measured, by key, in arrivals a second.
    ///
    /// # Errors
    /// If the ledger cannot be read.
    pub fn saturations(&self) -> Result<BTreeMap<String, f64>, LedgerError> {
        self.ask(|database| {
            let sql = "SELECT key, per_sec FROM saturations WHERE code = ?1";
            let mut statement = database.prepare(sql)?;
            let rows = statement.query_map([CODE], |line| Ok((line.get(0)?, line.get(1)?)))?;
            rows.collect()
        })
    }

    /// Keeps saturations; those with a known key are the same.
    pub(crate) fn record_saturations(
        &self,
        found: &BTreeMap<String, f64>,
    ) -> Result<(), LedgerError> {
        self.change(|transaction| {
            let mut insert =
                transaction.prepare("INSERT OR IGNORE INTO saturations VALUES (?1, ?2, ?3)")?;
            for (key, per_sec) in found {
                insert.execute(params![key, CODE, per_sec])?;
            }
            Ok(())
        })
    }
}
