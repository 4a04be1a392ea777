//! The native format: one request a line, as JSON.
//!
//! What it must never do is guess: whatever is not exactly understood is refused.
//!
//! The first line may be `{"rows":N}`, the number of requests below it, so that a file that was cut
//! off between two lines is noticed. A line with `after` is sent when the answer to the line above
//! it is complete and the client has thought for `think_ms`; so a session is one line with an
//! arrival and the lines that follow up on one another right below it, and no more than one session
//! is read at a time.

use super::TraceError;
use super::json::{Object, parse};
use super::line::{FIELDS, Line};
use super::lines::Lines;
use super::row::{Clock, Roster, Row, Rows, Unit, check_sum};
use super::scalar::{self, Reading, Scalar, printable};
use crate::error::SpecError;
use crate::names::{SeenIds, own_stream, plain_number};
use blis_core::{Content, Segment, SessionId};
use serde::de::MapAccess;
use std::fmt;

/// The only field of the first line, if it is a header.
pub(super) const ROWS: &str = "rows";

const ROWS_LEGAL: &str = "the number of requests in the trace, 1 or more";

/// Reads native lines.
pub(super) struct Native {
    lines: Lines,
    line: Vec<u8>,
    clock: Clock,
    ids: SeenIds,
    /// Requests read so far.
    count: u64,
    /// How many there are, if the trace says so.
    declared: Option<u64>,
    /// The id of the line above.
    above: Option<Id>,
    /// Its session.
    session: Option<SessionId>,
}

/// The id of a line, as cheaply as it can be kept.
enum Id {
    Number(u64),
    Text(Box<str>),
}

impl Id {
    fn is(&self, name: &str) -> bool {
        match self {
            Id::Number(number) => plain_number(name) == Some(*number),
            Id::Text(text) => **text == *name,
        }
    }
}

impl fmt::Display for Id {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Id::Number(number) => write!(f, "{number}"),
            Id::Text(text) => f.write_str(&printable(text)),
        }
    }
}

impl Native {
    pub(super) fn new(lines: Lines) -> Native {
        Native {
            lines,
            line: Vec::new(),
            clock: Clock::from_zero(Unit::Micros),
            ids: SeenIds::default(),
            count: 0,
            declared: None,
            above: None,
            session: None,
        }
    }

    fn row(&mut self, mut line: Line<'_>, roster: &mut Roster) -> Result<Row, SpecError> {
        let place = self.count;
        let tenant = roster.tenant(line.tenant.as_deref());
        let mut row = Row::new(place, self.lines.number(), tenant);
        let arrival = self.arrival(&line, &mut row)?;
        let output_tokens =
            line.output_tokens.ok_or_else(|| missing("output_tokens", scalar::TOKENS))?;
        row.request.content = content(&mut line, place, output_tokens)?;
        row.request.output_tokens = output_tokens;
        let id = self.id(&line, place)?;
        if line.round > 0 && line.session.is_none() {
            let legal = "0, or name the session it belongs to";
            return Err(SpecError::new("round", line.round, legal));
        }
        if let Some(session) = &line.session {
            row.set_session(session, roster);
        }
        if row.think.is_some() && row.request.session != self.session {
            let found = line.session.as_ref().map(|name| format!("`{}`", printable(name)));
            let legal = "the session of the line that it follows up on";
            let found = found.unwrap_or_else(|| "nothing".to_owned());
            return Err(SpecError::new("session", found, legal));
        }
        self.session = row.request.session;
        if let Some(nanos) = arrival {
            row.request.arrival = self.clock.read("arrival_us", nanos, self.lines.number())?;
        }
        row.request.class = line.class.unwrap_or_default();
        row.request.round = line.round;
        row.request.deadline = line.deadline;
        row.request.patience = line.patience;
        match &id {
            Id::Number(number) => row.number = Some(*number),
            Id::Text(text) => row.request.name = Some(text.clone()),
        }
        self.above = Some(id);
        self.count += 1;
        Ok(row)
    }

    /// The arrival in nanoseconds; `None` for a follow-up, which gets its think time.
    fn arrival(&self, line: &Line<'_>, row: &mut Row) -> Result<Option<u64>, SpecError> {
        let Some(after) = &line.after else {
            if let Some(think) = line.think {
                let found = super::write::millis(think);
                return Err(SpecError::new("think_ms", found, "to leave it out without `after`"));
            }
            let arrival = line.arrival.ok_or_else(|| {
                let legal = format!("{}, or `after` and the id of the line above", scalar::ARRIVAL);
                missing("arrival_us", &legal)
            })?;
            return Ok(Some(arrival.as_nanos()));
        };
        if let Some(arrival) = line.arrival {
            let found = super::write::micros(arrival);
            let legal = "to leave it out with `after`: a follow-up arrives after the answer";
            return Err(SpecError::new("arrival_us", found, legal));
        }
        let found = format!("`{}`", printable(after));
        match &self.above {
            Some(above) if above.is(after) => {}
            Some(above) => {
                return Err(SpecError::new("after", found, format!("`{above}`, the line above")));
            }
            None => {
                let legal = "to stand right below the line it names, and this is the first";
                return Err(SpecError::new("after", found, legal));
            }
        }
        row.think = Some(line.think.unwrap_or_default());
        Ok(None)
    }

    /// The id of the line: what it says, or its place. Either way it is taken.
    fn id(&mut self, line: &Line<'_>, place: u64) -> Result<Id, SpecError> {
        let id = match &line.id {
            Some(name) => match plain_number(name) {
                Some(number) => Id::Number(number),
                None => Id::Text((**name).into()),
            },
            None => Id::Number(place),
        };
        let fresh = match &id {
            Id::Number(number) => self.ids.insert_number(*number),
            Id::Text(name) => self.ids.insert(name),
        };
        if fresh {
            return Ok(id);
        }
        let found = format!("`{id}` for the second time");
        let legal = "an id that no line above has (a line without one has its number, from 0)";
        Err(SpecError::new("id", found, legal))
    }

    /// Takes the line for a header, if it is one.
    fn header(&mut self, line: &[u8], ended: bool) -> Result<bool, TraceError> {
        if self.count > 0 || self.declared.is_some() || !starts_as_header(line) {
            return Ok(false);
        }
        let header = parse::<Header>(line, ended)
            .map_err(|(column, message)| self.lines.error(column, message))?;
        self.declared = Some(header.rows);
        Ok(true)
    }

    fn read(&mut self, line: &mut Vec<u8>, roster: &mut Roster) -> Result<Option<Row>, TraceError> {
        while self.lines.next(line)? {
            let (text, ended) = (line.trim_ascii_end(), line.ends_with(b"\n"));
            if self.header(text, ended)? {
                continue;
            }
            let parsed = parse::<Line<'_>>(text, ended)
                .map_err(|(column, message)| self.lines.error(column, message))?;
            let row = self.row(parsed, roster);
            return row.map(Some).map_err(|error| self.lines.error(1, error.to_string()));
        }
        self.end().map(|()| None)
    }

    fn end(&self) -> Result<(), TraceError> {
        match self.declared {
            Some(declared) if declared != self.count => {
                let count = self.count;
                let why = if count < declared { "it is cut off" } else { "lines were added" };
                Err(self.lines.error(
                    1,
                    format!(
                        "the trace has {count} requests and its first line says {declared}: {why}"
                    ),
                ))
            }
            _ => Ok(()),
        }
    }
}

impl Rows for Native {
    fn next_row(&mut self, roster: &mut Roster) -> Result<Option<Row>, TraceError> {
        // The buffer is taken out while a request borrows from it, and put back for the next line.
        let mut line = std::mem::take(&mut self.line);
        let row = self.read(&mut line, roster);
        self.line = line;
        row
    }

    fn error(&self, line: u64, message: String) -> TraceError {
        self.lines.error_on(line, 1, message)
    }
}

/// Whether the first field of the object is that of a header.
fn starts_as_header(line: &[u8]) -> bool {
    let Some(rest) = line.trim_ascii_start().strip_prefix(b"{") else { return false };
    rest.trim_ascii_start().starts_with(b"\"rows\"")
}

/// The first line, if it says how many follow.
#[derive(Default)]
struct Header {
    rows: u64,
}

impl Object for Header {
    const NAMES: &'static [&'static str] = &[ROWS];
    const WHAT: &'static str = "a JSON object with `rows`";
    type Read<'de> = Header;

    fn read<'de, A: MapAccess<'de>>(
        header: &mut Header,
        _: &'static str,
        map: &mut A,
    ) -> Result<(), A::Error> {
        header.rows = map.next_value_seed(Reading(|value| match value {
            Scalar::Unsigned(rows) if rows > 0 => Ok(rows),
            other => Err(SpecError::new(ROWS, other, ROWS_LEGAL)),
        }))?;
        Ok(())
    }
}

fn missing(field: &str, legal: &str) -> SpecError {
    SpecError::new(field, "nothing", legal)
}

/// The tokens of a request. A prompt without names is a stream of its own, which its output
/// continues.
fn content(line: &mut Line<'_>, place: u64, output_tokens: u32) -> Result<Content, SpecError> {
    let own = own_stream(place);
    let segments = match (line.prompt.take(), line.input_tokens) {
        (Some(prompt), _) => prompt,
        (None, Some(tokens)) => vec![Segment { stream: own, tokens }],
        (None, None) => return Err(missing("prompt", "a prompt, or `input_tokens`")),
    };
    let total: u64 = segments.iter().map(|segment| u64::from(segment.tokens)).sum();
    if let Some(stated) = line.input_tokens
        && u64::from(stated) != total
    {
        let legal = format!("{total}, the sum of the segments of `prompt`, or no `input_tokens`");
        return Err(SpecError::new("input_tokens", stated, legal));
    }
    check_sum("prompt", total, output_tokens)?;
    Ok(Content::new(segments, line.output_stream.unwrap_or(own)))
}

/// Whether a line with these field names is of this format; each counts.
pub(super) fn fields() -> impl Iterator<Item = &'static str> {
    FIELDS.into_iter().chain([ROWS])
}
