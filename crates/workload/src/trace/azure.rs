//! The Azure LLM inference traces of 2023 and 2024: `TIMESTAMP`, `ContextTokens`,
//! `GeneratedTokens`.
//!
//! Timestamps are dates, so the trace's own time starts with the first row; the public files never
//! go back. They say nothing about contents, so no prompt shares anything with another.

use super::row::{Clock, Roster, Row, Rows, Unit, check_sum};
use super::table::{Columns, Table};
use super::{TraceError, date};

/// What an Azure file has.
pub(super) static COLUMNS: Columns = Columns {
    format: "azure",
    required: &["TIMESTAMP", "ContextTokens", "GeneratedTokens"],
    optional: &[],
};

const TIMESTAMP: usize = 0;
const CONTEXT_TOKENS: usize = 1;
const GENERATED_TOKENS: usize = 2;

/// Reads Azure rows.
pub(super) struct Azure {
    table: Table,
    clock: Clock,
}

impl Azure {
    pub(super) fn new(table: Table) -> Azure {
        Azure { table, clock: Clock::from_first_row(Unit::Date) }
    }
}

impl Rows for Azure {
    fn next_row(&mut self, roster: &mut Roster) -> Result<Option<Row>, TraceError> {
        let Azure { table, clock } = self;
        if !table.next_row()? {
            return Ok(None);
        }
        let nanos = table.value(TIMESTAMP, date::LEGAL, date::parse)?;
        let input = table.tokens(CONTEXT_TOKENS)?;
        let output = table.tokens(GENERATED_TOKENS)?;
        check_sum("ContextTokens", input.into(), output)
            .map_err(|error| table.refuse(CONTEXT_TOKENS, &error))?;
        let mut row = Row::new(table.place(), table.line(), roster.tenant(None));
        row.set_tokens(input, output);
        row.request.arrival = clock
            .read("TIMESTAMP", nanos, table.line())
            .map_err(|error| table.refuse(TIMESTAMP, &error))?;
        Ok(Some(row))
    }

    fn error(&self, line: u64, message: String) -> TraceError {
        self.table.error(line, message)
    }
}
