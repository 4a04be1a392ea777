//! The CSV half of a BLIS version-2 trace; its YAML half is not needed.
//!
//! Columns came with time (22, then 25 to 27 and more), so those that later versions added are
//! optional. A row says how long its prompt is *without* the prefix of its `prefix_group`: the
//! prompt is the group's prefix, which all its members share, and `input_tokens` tokens of its own.
//! The prefix has `prefix_length` tokens, or [`PREFIX`] in files from before that column. Rounds of
//! a session are labelled, and share nothing but that prefix. Rows whose `status` is not `ok` are
//! skipped and counted.
//!
//! What was measured (the times of sending and of chunks, `server_input_tokens`) is not read, nor
//! is `deadline_us`: versions do not agree on whether it counts from arrival.
//!
//! Observed traces list requests as they end, so rows are sorted, as far as the window of
//! [`super::row::Sorted`] allows.

use super::TraceError;
use super::row::{Roster, Row};
use super::table::{Columns, Format, Table, decimal};
use crate::names::{SeenIds, family_stream, name_key};
use blis_core::{Content, Segment, Span, Time};

/// What a version-2 trace has.
pub(super) static COLUMNS: Columns = Columns {
    format: "tracev2",
    required: "request_id,client_id,tenant_id,slo_class,session_id,round_index,\
               prefix_group,streaming,input_tokens,output_tokens,text_tokens,\
               image_tokens,audio_tokens,video_tokens,reason_ratio,arrival_time_us,\
               send_time_us,first_chunk_time_us,last_chunk_time_us,num_chunks,status,\
               error_message",
    optional: "prefix_length,model,deadline_us,server_input_tokens,finish_reason,\
               vllm_priority,slo_target_us,x_request_id,adapter,think_time_us",
};

const REQUEST_ID: usize = 0;
const TENANT_ID: usize = 2;
const SLO_CLASS: usize = 3;
const SESSION_ID: usize = 4;
const ROUND_INDEX: usize = 5;
const PREFIX_GROUP: usize = 6;
const INPUT_TOKENS: usize = 8;
const OUTPUT_TOKENS: usize = 9;
const ARRIVAL_TIME_US: usize = 15;
const STATUS: usize = 20;
const PREFIX_LENGTH: usize = 22;

/// The column that rows are sorted by.
pub(super) const ARRIVAL: &str = "arrival_time_us";

/// Tokens of a shared prefix in files that do not say.
const PREFIX: u32 = 50;

/// Which streams the prefixes are.
const PREFIX_FAMILY: u64 = 0x7632_7072_6566_6978;

pub(super) const MICROS: &str = "a number from 0 to 315360000000000 (ten years in µs)";

/// Reads version-2 rows.
#[derive(Default)]
pub(super) struct TraceV2(SeenIds);

/// The tokens of the shared prefix, if the row has one.
fn prefix(table: &Table) -> Result<Option<Segment>, TraceError> {
    let Some(group) = table.text(PREFIX_GROUP)? else { return Ok(None) };
    let stream = family_stream(PREFIX_FAMILY, name_key(group));
    let tokens = match table.text(PREFIX_LENGTH)? {
        Some(_) => table.tokens(PREFIX_LENGTH)?,
        None => PREFIX,
    };
    Ok(Some(Segment { stream, tokens }))
}

impl Format for TraceV2 {
    const COLUMNS: &'static Columns = &COLUMNS;

    fn row(&mut self, table: &Table, roster: &mut Roster) -> Result<Row, TraceError> {
        let id = table.fresh_id(REQUEST_ID, &mut self.0)?;
        let prefix = prefix(table)?;
        let mut row = table.request(roster.tenant(table.text(TENANT_ID)?));
        row.number = Some(id);
        row.failed = table.text(STATUS)? != Some("ok");
        row.request.class = table.class(SLO_CLASS)?;
        row.request.arrival = table.value(ARRIVAL_TIME_US, MICROS, micros)?;
        let (input, output) = (table.tokens(INPUT_TOKENS)?, table.tokens(OUTPUT_TOKENS)?);
        row.set_tokens(input, output);
        let shared = prefix.map_or(0, |prefix| prefix.tokens);
        table.check_sum(INPUT_TOKENS, u64::from(input) + u64::from(shared), output)?;
        if let Some(prefix) = prefix {
            let own = row.request.content.output_stream();
            let question = Segment { stream: own, tokens: input };
            row.request.content = Content::new([prefix, question], own);
        }
        let round = table.tokens(ROUND_INDEX)?;
        match table.text(SESSION_ID)? {
            Some(session) => {
                row.set_session(session, roster);
                row.request.round = round;
            }
            None if round == 0 => {}
            None => return Err(table.wrong(ROUND_INDEX, "0, or a `session_id`")),
        }
        Ok(row)
    }
}

/// The instant that `text` has in microseconds.
pub(super) fn micros(text: &str) -> Option<Time> {
    let nanos = decimal(text, 3)?;
    (nanos <= Span::LONGEST.as_nanos()).then(|| Time::from_nanos(nanos))
}
