//! Measured saturations, as the ledger keeps them.

use super::{Ledger, LedgerError, lines, sums};
use blis_scenario::CODE;
use rusqlite::params;
use std::collections::BTreeMap;

impl Ledger {
    /// The saturations that this code has measured, by key, in arrivals a second.
    ///
    /// # Errors
    /// If the ledger cannot be read.
    pub fn saturations(&self) -> Result<BTreeMap<String, f64>, LedgerError> {
        let found: BTreeMap<String, Option<f64>> = self.ask(|database| {
            let sql = "SELECT key, CASE WHEN sum IS checksum(key, code, per_sec) THEN per_sec END \
                       FROM saturations WHERE code = ?1";
            lines(database, sql, [CODE], |line| Ok((line.get(0)?, line.get(1)?)))
        })?;
        let whole = |(key, value): (String, Option<f64>)| match value {
            Some(value) => Ok((key, value)),
            None => Err(self.damaged(format!("the saturation {key}"))),
        };
        found.into_iter().map(whole).collect()
    }

    /// Keeps saturations; those with a known key are the same.
    pub(crate) fn record_saturations(
        &self,
        found: &BTreeMap<String, f64>,
    ) -> Result<(), LedgerError> {
        self.change(|transaction| {
            let mut insert =
                transaction.prepare(&sums::insert("INSERT OR IGNORE", "saturations"))?;
            for (key, per_sec) in found {
                insert.execute(params![key, CODE, per_sec])?;
            }
            Ok(())
        })
    }
}
