//! The native trace: one request a line, as JSON.
//!
//! The lab opens a [`TraceSource`] for `--trace` and the binary writes one with [`write_request`];
//! what was written reads back as the same requests. The reader streams: apart from the names of
//! tenants and sessions and a hash for every request id that does not count up, memory does not
//! grow with the trace. It must never guess: whatever is not exactly understood is refused with its
//! file, line, column, field, value and what is legal.
//!
//! ```text
//! {"id":"17","arrival_us":1200,"prompt":[["sys",512],["r17",256]],"output_tokens":128,
//!  "output_stream":"r17","class":"critical","tenant":"a","session":"s3","round":0}
//! ```
//!
//! Required are `arrival_us`, `output_tokens`, and `prompt` or `input_tokens`. `null` is the same
//! as leaving a field out. Times may have fractions, down to the nanosecond (exact in the first 26
//! days of a trace). Names of streams are global to the file; one that is a plain number below 2^63
//! is the stream's id itself. `deadline_ms`, `after` and `think_ms` are refused until something
//! reads them.

mod line;
mod scalar;
mod write;

pub use write::write_request;

use crate::error::{SpecError, shown};
use crate::names::{Names, SeenIds, own_stream, plain_number};
use blis_core::{Content, Request, RequestId, Segment, SessionId, Source, TenantId, Time};
use line::Line;
use std::error::Error;
use std::fmt;
use std::fs::File;
use std::io::{self, BufRead, BufReader, Read};
use std::path::Path;

/// Longest line in bytes. A longer one is no request, and must not fill the memory.
const MAX_LINE: usize = 64 << 20;
const BUFFER: usize = 256 << 10;
const BYTE_ORDER_MARK: &[u8] = b"\xEF\xBB\xBF";

/// Why a trace could not be read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub struct TraceError {
    /// The trace's path or name.
    pub path: String,
    /// Line from 1; 0 if the file could not be opened.
    pub line: u64,
    /// Byte within the line, from 1: the last one of the value at fault, or 1 if that is not a
    /// single value.
    pub column: usize,
    /// What is wrong.
    pub message: String,
    /// Whether the content or the reading is at fault.
    pub kind: TraceErrorKind,
}

/// What is at fault.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TraceErrorKind {
    /// The trace is not legal.
    Content,
    /// The operating system could not open or read it.
    Io,
}

impl fmt::Display for TraceError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let TraceError { path, line, column, message, kind: _ } = self;
        if *line == 0 {
            return write!(f, "{path}: {message}");
        }
        write!(f, "{path}:{line}:{column}: {message}")
    }
}

/// What a whole trace holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TraceSummary {
    /// Number of requests (>= 1).
    pub requests: u64,
    /// Arrival of the first.
    pub first: Time,
    /// Arrival of the last.
    pub last: Time,
    /// Prompt tokens of all.
    pub input_tokens: u64,
    /// Output tokens of all.
    pub output_tokens: u64,
}

/// The requests of a trace file, read as they are asked for.
pub struct TraceSource {
    path: String,
    reader: Box<dyn BufRead + Send>,
    line: Vec<u8>,
    line_number: u64,
    sent: u64,
    expected: Option<u64>,
    last_arrival: (Time, u64),
    ids: SeenIds,
    tenants: Names,
    sessions: Names,
    failed: Option<TraceError>,
}

impl TraceSource {
    /// The trace in the file at `path`.
    ///
    /// # Errors
    /// If the file cannot be opened.
    pub fn open(path: &Path) -> Result<TraceSource, TraceError> {
        let name = path.display().to_string();
        match File::open(path) {
            Ok(file) => Ok(TraceSource::from_reader(
                Box::new(BufReader::with_capacity(BUFFER, file)),
                &name,
            )),
            Err(error) => Err(TraceError {
                path: name,
                line: 0,
                column: 0,
                message: error.to_string(),
                kind: TraceErrorKind::Io,
            }),
        }
    }

    /// The trace that `reader` gives; errors call it `name`.
    pub fn from_reader(reader: Box<dyn BufRead + Send>, name: &str) -> TraceSource {
        TraceSource {
            path: name.to_owned(),
            reader,
            line: Vec::new(),
            line_number: 0,
            sent: 0,
            expected: None,
            last_arrival: (Time::ZERO, 0),
            ids: SeenIds::default(),
            tenants: Names::default(),
            sessions: Names::default(),
            failed: None,
        }
    }

    /// The same source, which knows that there are `requests` requests, for progress bars.
    #[must_use]
    pub fn expecting(mut self, requests: u64) -> TraceSource {
        self.expected = Some(requests);
        self
    }

    /// Reads all that is left. Callers run it over the file before a simulation, so that a bad line
    /// is refused before anything else happens.
    ///
    /// # Errors
    /// If the trace is unreadable or malformed.
    pub fn summarize(mut self) -> Result<TraceSummary, TraceError> {
        let mut summary: Option<TraceSummary> = None;
        while let Some(request) = self.read_request()? {
            let all = summary.get_or_insert(TraceSummary {
                requests: 0,
                first: request.arrival,
                last: request.arrival,
                input_tokens: 0,
                output_tokens: 0,
            });
            all.requests += 1;
            all.last = request.arrival;
            all.input_tokens += u64::from(request.content.prompt_tokens());
            all.output_tokens += u64::from(request.output_tokens);
        }
        summary.ok_or_else(|| self.no_requests())
    }

    /// The next request, or `None` at the end. After an error it gives the same error again.
    ///
    /// # Errors
    /// If the trace is unreadable or malformed.
    pub fn read_request(&mut self) -> Result<Option<Request>, TraceError> {
        if let Some(error) = &self.failed {
            return Err(error.clone());
        }
        // The buffer is taken out while a request borrows from it, and put back for the next line.
        let mut line = std::mem::take(&mut self.line);
        let result = self.fill(&mut line).and_then(|more| {
            if !more {
                return if self.sent > 0 { Ok(None) } else { Err(self.no_requests()) };
            }
            let parsed = line::parse(trimmed(&line, self.line_number), line.ends_with(b"\n"))
                .map_err(|(column, message)| self.error(column, message))?;
            let request = self.request(parsed).map_err(|error| self.error(1, error.to_string()))?;
            Ok(Some(request))
        });
        self.line = line;
        self.failed = result.as_ref().err().cloned();
        result
    }

    /// Reads the next line that is not blank; false at the end of the file.
    fn fill(&mut self, line: &mut Vec<u8>) -> Result<bool, TraceError> {
        loop {
            line.clear();
            self.line_number += 1;
            let limit = MAX_LINE as u64 + 1;
            match self.reader.by_ref().take(limit).read_until(b'\n', line) {
                Ok(0) => return Ok(false),
                Ok(length) if length > MAX_LINE => {
                    let message = format!("the line is longer than {MAX_LINE} bytes");
                    return Err(self.error(MAX_LINE, message));
                }
                Ok(_) if trimmed(line, self.line_number).is_empty() => {}
                Ok(_) => return Ok(true),
                Err(error) => return Err(self.unreadable(&error)),
            }
        }
    }

    fn request(&mut self, mut line: Line<'_>) -> Result<Request, SpecError> {
        let id = RequestId(self.sent);
        let arrival = line.arrival.ok_or_else(|| missing("arrival_us", scalar::ARRIVAL))?;
        self.check_order(arrival)?;
        let output_tokens =
            line.output_tokens.ok_or_else(|| missing("output_tokens", scalar::TOKENS))?;
        let content = content(&mut line, id, output_tokens)?;
        let name = self.name(&line, id)?;
        if line.round > 0 && line.session.is_none() {
            let legal = "0, or name the session it belongs to";
            return Err(SpecError::new("round", line.round, legal));
        }
        let tenant = TenantId(self.tenants.number(line.tenant.as_deref().unwrap_or("default")));
        let session = line.session.map(|name| SessionId(self.sessions.number(&name).into()));
        self.sent += 1;
        self.last_arrival = (arrival, self.line_number);
        Ok(Request {
            id,
            name,
            arrival,
            content,
            output_tokens,
            class: line.class.unwrap_or_default(),
            tenant,
            session,
            round: line.round,
            attempt: 0,
            deadline: None,
        })
    }

    fn check_order(&self, arrival: Time) -> Result<(), SpecError> {
        let (last, last_line) = self.last_arrival;
        if arrival >= last {
            return Ok(());
        }
        let legal = format!("at least {}, the arrival on line {last_line}", write::micros(last));
        Err(SpecError::new("arrival_us", write::micros(arrival), legal))
    }

    /// The request's name; `None` if it is its number. Either way it is taken.
    fn name(&mut self, line: &Line<'_>, id: RequestId) -> Result<Option<Box<str>>, SpecError> {
        let fresh = match &line.id {
            Some(name) => self.ids.insert(name),
            None => self.ids.insert_number(id.0),
        };
        let name = line.id.as_deref();
        if !fresh {
            let number = id.0.to_string();
            let found = format!("`{}` for the second time", shown(name.unwrap_or(&number)));
            let legal = "an id that no line above has (a line without one has its number, from 0)";
            return Err(SpecError::new("id", found, legal));
        }
        Ok(name.filter(|name| plain_number(name) != Some(id.0)).map(Into::into))
    }

    fn no_requests(&self) -> TraceError {
        self.error(1, "no requests: every line of the trace is blank, or there is none".to_owned())
    }

    fn unreadable(&self, error: &io::Error) -> TraceError {
        let kind = TraceErrorKind::Io;
        TraceError { kind, ..self.error(1, format!("cannot read: {error}")) }
    }

    fn error(&self, column: usize, message: String) -> TraceError {
        TraceError {
            path: self.path.clone(),
            line: self.line_number,
            column,
            message,
            kind: TraceErrorKind::Content,
        }
    }
}

impl Source for TraceSource {
    fn next_request(&mut self) -> Result<Option<Request>, Box<dyn Error + Send + Sync>> {
        Ok(self.read_request()?)
    }

    fn expected(&self) -> Option<u64> {
        self.expected
    }

    fn tenant_name(&self, tenant: TenantId) -> String {
        self.tenants.name(tenant.0).to_owned()
    }

    fn session_name(&self, session: SessionId) -> String {
        let number = u32::try_from(session.0).expect("a session that this source has numbered");
        self.sessions.name(number).to_owned()
    }
}

/// The line without its end, blanks before it, and the byte order mark that may start the file.
fn trimmed(line: &[u8], line_number: u64) -> &[u8] {
    let marked = if line_number == 1 { line.strip_prefix(BYTE_ORDER_MARK) } else { None };
    marked.unwrap_or(line).trim_ascii_end()
}

fn missing(field: &str, legal: &str) -> SpecError {
    SpecError::new(field, "nothing", legal)
}

/// The tokens of a request. A prompt without names is a stream of its own, which its output
/// continues.
fn content(line: &mut Line<'_>, id: RequestId, output_tokens: u32) -> Result<Content, SpecError> {
    let own = own_stream(id.0);
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
    if total + u64::from(output_tokens) > u64::from(u32::MAX) {
        let found = format!("{total} tokens and {output_tokens} of output");
        return Err(SpecError::new("prompt", found, format!("together at most {}", u32::MAX)));
    }
    Ok(Content::new(segments, line.output_stream.unwrap_or(own)))
}
