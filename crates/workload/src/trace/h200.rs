//! The requests that were measured on an H200, one row each.
//!
//! Sharing is what the server saw: the first `prefix_tokens` tokens are the same in a whole
//! `prefix_group`; the rest of a prompt is the start of its session's one stream of tokens, which
//! its output continues, or a stream of its own. -1 means no group or no session. What was measured
//! (`scheduled_us`, `cached_tokens`, `ttft_us`, `e2e_us`, `preemptions`) is not read: it is the
//! truth to compare a simulation with, not an input of it. A `priority` as vLLM has it, 0 the most
//! important, is a service class. A row with `think_us` is sent that long after the answer to the
//! row above it, a round of the same session.
//!
//! The files list the rounds of a session together, so rows are sorted, as far as the window of
//! [`super::row::Sorted`] allows. Times are those of the measured run, not counted from the first
//! row.

use super::TraceError;
use super::row::{Roster, Row};
use super::table::{Columns, Format, Table, whole};
use super::tracev2::{MICROS, micros};
use crate::names::{SeenIds, family_stream};
use blis_core::{Content, Segment, SloClass, Span, Time};

/// What a file of measured requests has.
pub(super) static COLUMNS: Columns = Columns {
    format: "h200",
    required: "request_id,arrival_us,session_id,round,prefix_group,prefix_tokens,\
               input_tokens,output_tokens",
    optional: "scheduled_us,cached_tokens,ttft_us,e2e_us,preemptions,priority,think_us",
};

const REQUEST_ID: usize = 0;
const ARRIVAL_US: usize = 1;
const SESSION_ID: usize = 2;
const ROUND: usize = 3;
const PREFIX_GROUP: usize = 4;
const PREFIX_TOKENS: usize = 5;
const INPUT_TOKENS: usize = 6;
const OUTPUT_TOKENS: usize = 7;
const PRIORITY: usize = 13;
const THINK_US: usize = 14;

/// The column that rows are sorted by.
pub(super) const ARRIVAL: &str = "arrival_us";

/// Which streams the prefix groups and the sessions are.
const GROUP_FAMILY: u64 = 0x6832_3030_6772_6F75;
const SESSION_FAMILY: u64 = 0x6832_3030_7365_7373;

const ID_OR_NONE: &str = "a whole number from 0 to 18446744073709551615, or -1 for none";

/// Reads rows of measured requests.
#[derive(Default)]
pub(super) struct H200 {
    ids: SeenIds,
    /// The session of the row above.
    session: Option<u64>,
    /// The arrival that follow-ups are sorted by: that of the first row of their chain.
    head: Time,
}

/// The number in `column`, `None` for -1.
fn id_or_none(table: &Table, column: usize) -> Result<Option<u64>, TraceError> {
    table.value(column, ID_OR_NONE, |text| match text {
        "-1" => Some(None),
        text => whole(text).map(Some),
    })
}

/// The service class of vLLM's priority.
fn class(table: &Table) -> Result<SloClass, TraceError> {
    if table.text(PRIORITY)?.is_none() {
        return Ok(SloClass::default());
    }
    table.value(PRIORITY, "a whole number from 0 to 4", |text| {
        SloClass::ALL.get(usize::try_from(whole(text)?).ok()?).copied()
    })
}

/// The shared prefix and how many tokens follow it.
fn prompt(table: &Table) -> Result<(Option<Segment>, u32), TraceError> {
    let group = id_or_none(table, PREFIX_GROUP)?;
    let (prefix, input) = (table.tokens(PREFIX_TOKENS)?, table.tokens(INPUT_TOKENS)?);
    let Some(rest) = input.checked_sub(prefix) else {
        let legal = format!("at most {input}, the `input_tokens`, which contain it");
        return Err(table.wrong(PREFIX_TOKENS, &legal));
    };
    match group {
        Some(group) => {
            let stream = family_stream(GROUP_FAMILY, group);
            Ok((Some(Segment { stream, tokens: prefix }), rest))
        }
        None if prefix == 0 => Ok((None, rest)),
        None => Err(table.wrong(PREFIX_TOKENS, "0 where `prefix_group` is -1")),
    }
}

impl H200 {
    /// How long after the answer to the row above the next row is sent, if it waits for that.
    fn think(&self, table: &Table, session: Option<u64>) -> Result<Option<Span>, TraceError> {
        if table.text(THINK_US)?.is_none() {
            return Ok(None);
        }
        if session.is_none() || session != self.session {
            return Err(table.wrong(SESSION_ID, "where `think_us` is set, that of the row above"));
        }
        table.value(THINK_US, MICROS, micros).map(|think| Some(think.since(Time::ZERO)))
    }
}

impl Format for H200 {
    const COLUMNS: &'static Columns = &COLUMNS;

    fn row(&mut self, table: &Table, roster: &mut Roster) -> Result<Row, TraceError> {
        let id = table.fresh_id(REQUEST_ID, &mut self.ids)?;
        let (prefix, rest) = prompt(table)?;
        let session = id_or_none(table, SESSION_ID)?;
        let mut row = table.request(roster.tenant(None));
        row.number = Some(id);
        row.request.class = class(table)?;
        row.think = self.think(table, session)?;
        if row.think.is_none() {
            self.head = table.value(ARRIVAL_US, MICROS, micros)?;
        }
        row.request.arrival = self.head;
        self.session = session;
        row.set_tokens(rest, table.tokens(OUTPUT_TOKENS)?);
        let input = table.tokens(INPUT_TOKENS)?;
        table.check_sum(INPUT_TOKENS, input.into(), row.request.output_tokens)?;
        let round = table.tokens(ROUND)?;
        let stream = match session {
            Some(session) => {
                row.set_session(&session.to_string(), roster);
                row.request.round = round;
                family_stream(SESSION_FAMILY, session)
            }
            None if round == 0 => row.request.content.output_stream(),
            None => return Err(table.wrong(ROUND, "0 where `session_id` is -1")),
        };
        let segments = prefix.into_iter().chain([Segment { stream, tokens: rest }]);
        row.request.content = Content::new(segments, stream);
        Ok(row)
    }
}
