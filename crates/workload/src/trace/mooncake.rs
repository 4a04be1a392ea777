//! The Mooncake format: JSON lines with `timestamp` (ms), `input_length`, `output_length` and
//! `hash_ids`.
//!
//! An id stands for [`BLOCK`] tokens of a prompt, the last one for what is left, and equal ids mean
//! that the prompts are equal up to there; so every id is a stream. That is all the sharing there
//! is: what was generated is never taken for what is prompted later. The public traces have these
//! four fields. Tools that write the format may leave `hash_ids` out (the prompt is then nobody
//! else's) and add `session_id`, which is a label here; their `delay` asks for a closed loop
//! without saying after which request, and is refused like any unknown field.

use super::TraceError;
use super::json::{Object, parse};
use super::lines::Lines;
use super::row::{Clock, Roster, Row, Rows, Unit, check_sum};
use super::scalar::{NANOS_A_MILLI, Reading, Scalar};
use crate::error::SpecError;
use crate::names::PRIVATE;
use blis_core::{Content, Segment, StreamId};
use serde::Deserializer;
use serde::de::{DeserializeSeed, MapAccess, SeqAccess, Visitor};
use std::fmt;

/// Tokens of a block in the Mooncake traces.
const BLOCK: u32 = 512;

/// The fields that a line may have.
pub(super) const FIELDS: [&str; 5] =
    ["timestamp", "input_length", "output_length", "hash_ids", "session_id"];

const TIMESTAMP: &str = "a number of milliseconds, 0 or more, up to 315360000000 (ten years)";
const LENGTH: &str = "a whole number from 0 to 4294967295";
const IDS: &str = "a list of whole numbers from 0 to 9223372036854775807";
const SESSION: &str = "a string that is not empty, or a whole number";

/// Reads Mooncake lines.
pub(super) struct Mooncake {
    lines: Lines,
    line: Vec<u8>,
    clock: Clock,
    count: u64,
}

/// The fields of a line; `None` where it has none.
#[derive(Default)]
struct Line {
    timestamp: Option<u64>,
    input_length: Option<u32>,
    output_length: Option<u32>,
    hash_ids: Option<Vec<u64>>,
    session: Option<String>,
}

impl Mooncake {
    pub(super) fn new(lines: Lines) -> Mooncake {
        Mooncake { lines, line: Vec::new(), clock: Clock::from_first_row(Unit::Millis), count: 0 }
    }

    fn row(&mut self, line: &Line, roster: &mut Roster) -> Result<Row, SpecError> {
        let mut row = Row::new(self.count, self.lines.number(), roster.tenant(None));
        let nothing = |field: &str, legal: &str| SpecError::new(field, "nothing", legal);
        let nanos = line.timestamp.ok_or_else(|| nothing("timestamp", TIMESTAMP))?;
        let input = line.input_length.ok_or_else(|| nothing("input_length", LENGTH))?;
        let output = line.output_length.ok_or_else(|| nothing("output_length", LENGTH))?;
        check_sum("input_length", input.into(), output)?;
        row.set_tokens(input, output);
        if let Some(ids) = &line.hash_ids {
            let own = row.request.content.output_stream();
            row.request.content = Content::new(segments(ids, input)?, own);
        }
        if let Some(session) = &line.session {
            row.set_session(session, roster);
        }
        row.request.arrival = self.clock.read("timestamp", nanos, self.lines.number())?;
        self.count += 1;
        Ok(row)
    }
}

/// The blocks of a prompt of `input` tokens.
fn segments(ids: &[u64], input: u32) -> Result<impl Iterator<Item = Segment>, SpecError> {
    let blocks = input.div_ceil(BLOCK) as usize;
    if ids.len() != blocks {
        let found = format!("{} ids for an `input_length` of {input}", ids.len());
        let legal = format!("{blocks}: one for every {BLOCK} tokens, the last for what is left");
        return Err(SpecError::new("hash_ids", found, legal));
    }
    Ok((0..).zip(ids).map(move |(block, id)| {
        let tokens = (input - block * BLOCK).min(BLOCK);
        Segment { stream: StreamId(*id), tokens }
    }))
}

impl Rows for Mooncake {
    fn next_row(&mut self, roster: &mut Roster) -> Result<Option<Row>, TraceError> {
        if !self.lines.next(&mut self.line)? {
            return Ok(None);
        }
        let (text, ended) = (self.line.trim_ascii_end(), self.line.ends_with(b"\n"));
        let line = parse::<Line>(text, ended)
            .map_err(|(column, message)| self.lines.error(column, message))?;
        let row = self.row(&line, roster);
        row.map(Some).map_err(|error| self.lines.error(1, error.to_string()))
    }

    fn error(&self, line: u64, message: String) -> TraceError {
        self.lines.error_on(line, 1, message)
    }
}

impl Object for Line {
    const NAMES: &'static [&'static str] = &FIELDS;
    const WHAT: &'static str = "a JSON object with the fields of a request";
    type Read<'de> = Line;

    fn read<'de, A: MapAccess<'de>>(
        line: &mut Line,
        name: &'static str,
        map: &mut A,
    ) -> Result<(), A::Error> {
        if name == "hash_ids" {
            line.hash_ids = Some(map.next_value_seed(Ids)?);
            return Ok(());
        }
        map.next_value_seed(Reading(|value| line.set(name, value)))
    }
}

impl Line {
    fn set(&mut self, name: &'static str, value: Scalar<'_>) -> Result<(), SpecError> {
        match name {
            "timestamp" => {
                let span = value.span(NANOS_A_MILLI);
                let span = span.ok_or_else(|| SpecError::new(name, value, TIMESTAMP))?;
                self.timestamp = Some(span.as_nanos());
            }
            "input_length" => self.input_length = Some(value.whole(name, 0, LENGTH)?),
            "output_length" => self.output_length = Some(value.whole(name, 0, LENGTH)?),
            _ => self.session = Some(session(value, name)?),
        }
        Ok(())
    }
}

fn session(value: Scalar<'_>, field: &str) -> Result<String, SpecError> {
    match value {
        Scalar::Unsigned(number) => Ok(number.to_string()),
        Scalar::Text(text) if !text.is_empty() => Ok(text.into_owned()),
        other => Err(SpecError::new(field, other, SESSION)),
    }
}

/// Reads the list of block ids.
struct Ids;

impl<'de> DeserializeSeed<'de> for Ids {
    type Value = Vec<u64>;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Vec<u64>, D::Error> {
        deserializer.deserialize_seq(self)
    }
}

impl<'de> Visitor<'de> for Ids {
    type Value = Vec<u64>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "`hash_ids` to be {IDS}")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Vec<u64>, A::Error> {
        let mut ids = Vec::new();
        loop {
            let id = |value| match value {
                // Those from there on are the requests' own streams.
                Scalar::Unsigned(id) if id < PRIVATE => Ok(id),
                other => Err(SpecError::new(format!("hash_ids[{}]", ids.len()), other, IDS)),
            };
            match list.next_element_seed(Reading(id))? {
                Some(id) => ids.push(id),
                None => return Ok(ids),
            }
        }
    }
}
