//! The BurstGPT traces: `Timestamp` (seconds), `Request tokens`, `Response tokens` and labels.
//!
//! The second release counts from the first day of the first, so the trace's own time starts with
//! the first row; the public files never go back. Failed requests have no response tokens and are
//! skipped. `Session ID` (blank for API calls) makes a row a round of a session; the traces do not
//! say how much of a conversation is sent again, so no sharing is made up. `Model`, `Log Type`,
//! `Total tokens` and `Elapsed time` (of another system) are not read: a model is no tenant.

use super::TraceError;
use super::row::{Clock, Roster, Row, Unit};
use super::table::{Columns, Format, Table, decimal};
use blis_core::SessionId;
use std::collections::BTreeMap;

/// What a BurstGPT file has.
pub(super) static COLUMNS: Columns = Columns {
    format: "burstgpt",
    required: "Timestamp,Request tokens,Response tokens,Model,Total tokens,Log Type",
    optional: "Session ID,Elapsed time",
};

const TIMESTAMP: usize = 0;
const REQUEST_TOKENS: usize = 1;
const RESPONSE_TOKENS: usize = 2;
const SESSION_ID: usize = 6;

const SECONDS: &str = "a number of seconds, 0 or more";

/// Reads BurstGPT rows.
pub(super) struct BurstGpt {
    clock: Clock,
    /// How many rounds each session has had.
    rounds: BTreeMap<SessionId, u32>,
}

impl BurstGpt {
    pub(super) fn new() -> BurstGpt {
        BurstGpt { clock: Clock::from_first_row(Unit::Seconds), rounds: BTreeMap::new() }
    }
}

impl Format for BurstGpt {
    const COLUMNS: &'static Columns = &COLUMNS;

    fn row(&mut self, table: &Table, roster: &mut Roster) -> Result<Row, TraceError> {
        let nanos = table.value(TIMESTAMP, SECONDS, |text| decimal(text, 9))?;
        let (input, output) = (table.tokens(REQUEST_TOKENS)?, table.tokens(RESPONSE_TOKENS)?);
        table.check_sum(REQUEST_TOKENS, input.into(), output)?;
        let mut row = table.request(roster.tenant(None));
        row.set_tokens(input, output);
        row.request.arrival = table.arrival(TIMESTAMP, &mut self.clock, nanos)?;
        let session = table.text(SESSION_ID)?.map(|name| row.set_session(name, roster));
        if let Some(session) = session
            && input > 0
            && output > 0
        {
            let rounds = self.rounds.entry(session).or_default();
            row.request.round = *rounds;
            *rounds += 1;
        }
        Ok(row)
    }
}
