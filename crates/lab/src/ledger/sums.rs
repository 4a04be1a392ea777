//! Checksums: every line that a number or a sentence is read from has one, so that damage is found
//! and never passes for a result.

use super::{Ledger, LedgerError, lines};
use blis_scenario::hash;
use rusqlite::functions::{Context, FunctionFlags};
use rusqlite::{Connection, Result, types::ValueRef};

/// Tables whose lines have a checksum, and the columns that it is taken of. The first names a line.
pub(super) const TABLES: [(&str, &[&str]); 6] = [
    ("trials", &["key", "code", "scenario_hash", "seed", "row"]),
    ("scenarios", &["scenario_hash", "document"]),
    ("studies", &["study", "name", "question", "factors", "metrics", "code", "version"]),
    ("study_trials", &["study", "cell", "levels", "seed", "key"]),
    (
        "verdicts",
        &[
            "study",
            "number",
            "hypothesis",
            "prediction",
            "mechanism",
            "outcome",
            "why",
            "seeds",
            "level",
            "effects",
        ],
    ),
    ("saturations", &["key", "code", "per_sec"]),
];

/// So many damaged lines are named.
const NAMED: usize = 3;

/// Makes `checksum(...)` known to the statements of this connection.
pub(super) fn define(database: &Connection) -> Result<()> {
    let flags = FunctionFlags::SQLITE_UTF8 | FunctionFlags::SQLITE_DETERMINISTIC;
    database.create_scalar_function("checksum", -1, flags, |values| Ok(checksum(values)))
}

/// A hash of values, with their types and lengths.
fn checksum(values: &Context<'_>) -> i64 {
    let mut state = hash::START;
    for index in 0..values.len() {
        let number;
        let (kind, bytes): (u8, &[u8]) = match values.get_raw(index) {
            ValueRef::Null => (0, &[]),
            ValueRef::Integer(value) => {
                number = value.to_le_bytes();
                (1, &number)
            }
            ValueRef::Real(value) => {
                number = value.to_le_bytes();
                (2, &number)
            }
            ValueRef::Text(text) => (3, text),
            ValueRef::Blob(blob) => (4, blob),
        };
        state = hash::hash_more(state, &[kind]);
        state = hash::hash_more(state, &bytes.len().to_le_bytes());
        state = hash::hash_more(state, bytes);
    }
    state.cast_signed()
}

/// The statement that puts a line with its checksum into `table`; `verb` says what becomes of one
/// that is there.
pub(super) fn insert(verb: &str, table: &str) -> String {
    let columns = columns(table);
    let values: Vec<String> = (1..=columns.len()).map(|number| format!("?{number}")).collect();
    let (columns, values) = (columns.join(", "), values.join(", "));
    format!("{verb} INTO {table} ({columns}, sum) VALUES ({values}, checksum({values}))")
}

/// The columns of `table` that its checksum is taken of.
pub(super) fn columns(table: &str) -> &'static [&'static str] {
    TABLES.iter().find(|(name, _)| *name == table).map_or(&[], |(_, columns)| columns)
}

/// What holds for the lines of `table` that are damaged.
pub(super) fn damaged(table: &str) -> String {
    format!("sum IS NOT checksum({})", columns(table).join(", "))
}

/// The statements that lead from a layout without checksums to one with them. Who has damaged a
/// line before is not found.
pub(super) fn migration() -> String {
    let table = |(table, columns): &(&str, &[&str])| {
        let columns = columns.join(", ");
        format!(
            "ALTER TABLE {table} ADD COLUMN sum INTEGER NOT NULL DEFAULT 0;
             UPDATE {table} SET sum = checksum({columns});"
        )
    };
    TABLES.iter().map(table).collect()
}

impl Ledger {
    /// What is damaged: lines by their table and key, and what the database library says of the
    /// file.
    ///
    /// # Errors
    /// If the damage is such that the ledger cannot be read at all.
    pub fn damage(&self) -> Result<Vec<String>, LedgerError> {
        self.ask(|database| {
            let mut found = Vec::new();
            for (table, columns) in TABLES {
                let name = columns[0];
                let sql = format!("SELECT {name} FROM {table} WHERE {}", damaged(table));
                let mut statement = database.prepare(&sql)?;
                let mut lines = statement.query([])?;
                while let Some(line) = lines.next()? {
                    let key = line.get_ref(0)?.as_bytes_or_null().ok().flatten();
                    let key = String::from_utf8_lossy(key.unwrap_or_default()).into_owned();
                    found.push(format!("{table}: {name} {key}"));
                }
            }
            let told: Vec<String> =
                lines(database, "PRAGMA integrity_check", [], |line| line.get(0))?;
            found.extend(told.into_iter().filter(|line| line != "ok"));
            Ok(found)
        })
    }

    /// Refuses a ledger of which anything is damaged.
    pub(super) fn verify(&self) -> Result<(), LedgerError> {
        let found = self.damage()?;
        if found.is_empty() {
            return Ok(());
        }
        let more = if found.len() > NAMED { ", ..." } else { "" };
        let named = found[..found.len().min(NAMED)].join(", ");
        Err(self.damaged(format!("{named}{more}")))
    }

    /// That something in it is damaged.
    pub(super) fn damaged(&self, detail: String) -> LedgerError {
        LedgerError::Damaged { path: self.path.clone(), detail }
    }
}
