//! The Azure LLM inference traces of 2023 and 2024: `TIMESTAMP`, `ContextTokens`,
//! `GeneratedTokens`.
//!
//! Timestamps are dates, so the trace's own time starts with the first row; the public files never
//! go back. They say nothing about contents, so no prompt shares anything with another.

use super::row::{Clock, Roster, Row, Unit};
use super::table::{Columns, Format, Table};
use super::{TraceError, date};

/// What an Azure file has.
pub(super) static COLUMNS: Columns =
    Columns { format: "azure", required: "TIMESTAMP,ContextTokens,GeneratedTokens", optional: "" };

const TIMESTAMP: usize = 0;
const CONTEXT_TOKENS: usize = 1;
const GENERATED_TOKENS: usize = 2;

/// Reads Azure rows.
pub(super) struct Azure(Clock);

impl Azure {
    pub(super) fn new() -> Azure {
        Azure(Clock::from_first_row(Unit::Date))
    }
}

impl Format for Azure {
    const COLUMNS: &'static Columns = &COLUMNS;

    fn row(&mut self, table: &Table, roster: &mut Roster) -> Result<Row, TraceError> {
        let nanos = table.value(TIMESTAMP, date::LEGAL, date::parse)?;
        let (input, output) = (table.tokens(CONTEXT_TOKENS)?, table.tokens(GENERATED_TOKENS)?);
        table.check_sum(CONTEXT_TOKENS, input.into(), output)?;
        let mut row = table.request(roster.tenant(None));
        row.set_tokens(input, output);
        row.request.arrival = table.arrival(TIMESTAMP, &mut self.0, nanos)?;
        Ok(row)
    }
}
