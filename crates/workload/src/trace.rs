//! Traces: requests from files, read as they are asked for.
//!
//! The lab opens a [`TraceSource`] for `--trace` and the binary writes native traces with
//! [`write_request`]; what was written reads back as the same requests. All formats stream: apart
//! from the names of tenants and sessions, a hash for every request id that does not count up, and
//! sessions under way, memory does not grow with the trace. A reader must never guess: whatever is
//! not exactly understood is refused with its file, line, column, field, value and what is legal.
//!
//! The native format is one JSON object a line:
//!
//! ```text
//! {"rows":2}
//! {"id":"17","arrival_us":1200,"prompt":[["sys",512],["r17",256]],"output_tokens":128,
//!  "output_stream":"r17","class":"critical","tenant":"a","session":"s3","round":0,
//!  "deadline_ms":5000}
//! {"id":"18","after":"17","think_ms":300,"prompt":[["sys",512],["r17",400]],...,"round":1}
//! ```
//!
//! Required are `arrival_us` or `after`, `output_tokens`, and `prompt` or `input_tokens`. `null` is
//! the same as leaving a field out. Times may have fractions, down to the nanosecond (exact in the
//! first 26 days of a trace). Names of streams are global to the file; one that is a plain number
//! below 2^63 is the stream's id itself. The first line may say how many requests there are, so
//! that a lost end is noticed. A line with `after` is sent `think_ms` after the answer to the line
//! right above it is complete; if that is turned away or can never be served, its client gives up,
//! and the lines that follow up on it are never sent.
//!
//! The other formats are described in the files of this folder.

mod azure;
mod burstgpt;
mod chain;
mod date;
mod edit;
mod error;
mod format;
mod h200;
mod json;
mod legacy;
mod line;
mod lines;
mod mooncake;
mod native;
mod row;
mod scalar;
mod table;
mod tracev2;
mod write;

pub use edit::{Sample, TraceEdit, TraceOptions};
pub use error::{Skipped, TraceError, TraceErrorKind};
pub use format::TraceFormat;
pub use write::{After, write_follow_up, write_header, write_request};

use crate::names::session_name;
use blis_core::{Ending, Request, RequestId, SessionId, Source, TenantId, Time};
use chain::{Chains, FollowUp, Group};
use edit::Slice;
use lines::Lines;
use row::{Roster, Row, Rows, Sorted};
use std::collections::VecDeque;
use std::error::Error;
use std::fs::File;
use std::io::{BufRead, BufReader};
use std::path::Path;
use table::TableRows;

const BUFFER: usize = 256 << 10;

/// What a whole trace holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TraceSummary {
    /// Number of requests (>= 1), follow-ups included.
    pub requests: u64,
    /// How many of them follow up on others.
    pub follow_ups: u64,
    /// Arrival of the first.
    pub first: Time,
    /// Arrival of the last that has one.
    pub last: Time,
    /// Prompt tokens of all.
    pub input_tokens: u64,
    /// Output tokens of all.
    pub output_tokens: u64,
    /// Rows that no request was made of.
    pub skipped: Skipped,
}

/// A request of a trace as the file has it.
#[derive(Clone, Debug, PartialEq)]
pub struct TraceEntry {
    /// The request. A follow-up has no arrival yet.
    pub request: Request,
    /// What it follows up on, if it does.
    pub after: Option<After>,
}

/// The requests of a trace file, read as they are asked for.
pub struct TraceSource {
    format: TraceFormat,
    edit: TraceEdit,
    rows: Box<dyn Rows>,
    roster: Roster,
    /// How many requests there are and whether some follow up on others, if somebody has read it.
    expected: Option<(u64, bool)>,
    /// Rows that were read, and requests that were made of them.
    read: u64,
    sent: u64,
    skipped: Skipped,
    /// Whether the request that follow-ups are read for was kept.
    keeping: bool,
    /// Whether requests always carry their names: once some are follow-ups, the order of the file
    /// is not that of arrival, by which they are numbered.
    explicit: bool,
    /// The request whose follow-ups are read.
    held: Option<Group>,
    /// Follow-ups that [`TraceSource::read_entry`] gives next.
    entries: VecDeque<TraceEntry>,
    chains: Chains,
    ended: bool,
    failed: Option<TraceError>,
}

impl TraceSource {
    /// The trace in the file at `path`.
    ///
    /// # Errors
    /// If the file cannot be opened, its format is not known, its header is not legal or `options`
    /// are not.
    pub fn open(path: &Path, options: &TraceOptions) -> Result<TraceSource, TraceError> {
        let name = path.display().to_string();
        match File::open(path) {
            Ok(file) => {
                let reader = Box::new(BufReader::with_capacity(BUFFER, file));
                TraceSource::from_reader(reader, &name, options)
            }
            Err(error) => Err(of_whole(&name, error.to_string(), TraceErrorKind::Io)),
        }
    }

    /// The trace that `reader` gives; errors call it `name`.
    ///
    /// # Errors
    /// As [`TraceSource::open`].
    pub fn from_reader(
        reader: Box<dyn BufRead + Send>,
        name: &str,
        options: &TraceOptions,
    ) -> Result<TraceSource, TraceError> {
        let TraceOptions { format, edit } = *options;
        edit.validate()
            .map_err(|error| of_whole(name, error.to_string(), TraceErrorKind::Content))?;
        let (lines, first) = Lines::open(reader, name)?;
        let format = match format {
            Some(format) => format,
            None => TraceFormat::detect(&first.text)
                .map_err(|message| lines.error_on(first.number, 1, message))?,
        };
        let rows: Box<dyn Rows> = match format {
            TraceFormat::Native => Box::new(native::Native::new(lines)),
            TraceFormat::Mooncake => Box::new(mooncake::Mooncake::new(lines)),
            TraceFormat::Azure => Box::new(TableRows::open(lines, azure::Azure::new())?),
            TraceFormat::BurstGpt => Box::new(TableRows::open(lines, burstgpt::BurstGpt::new())?),
            TraceFormat::TraceV2 => {
                let rows = TableRows::open(lines, tracev2::TraceV2::default())?;
                Box::new(Sorted::new(rows, tracev2::ARRIVAL))
            }
            TraceFormat::Legacy => Box::new(TableRows::open(lines, legacy::Legacy::new())?),
            TraceFormat::H200 => {
                let rows = TableRows::open(lines, h200::H200::default())?;
                Box::new(Sorted::new(rows, h200::ARRIVAL))
            }
        };
        Ok(TraceSource::new(format, edit, rows))
    }

    fn new(format: TraceFormat, edit: TraceEdit, rows: Box<dyn Rows>) -> TraceSource {
        TraceSource {
            format,
            edit,
            rows,
            roster: Roster::default(),
            expected: None,
            read: 0,
            sent: 0,
            skipped: Skipped::default(),
            keeping: false,
            explicit: false,
            held: None,
            entries: VecDeque::new(),
            chains: Chains::default(),
            ended: false,
            failed: None,
        }
    }

    /// The format that is read.
    pub fn format(&self) -> TraceFormat {
        self.format
    }

    /// Rows read so far: of what lies behind a slice or a limit at most the first.
    pub fn rows_read(&self) -> u64 {
        self.read
    }

    /// The rows so far that no request was made of.
    pub fn skipped(&self) -> Skipped {
        self.skipped
    }

    /// The same source, which knows that there are `requests` requests and whether some of them
    /// follow up on others.
    #[must_use]
    pub fn expecting(mut self, requests: u64, closed_loop: bool) -> TraceSource {
        self.expected = Some((requests, closed_loop));
        self
    }

    /// Reads all that is left. Callers run it over the file before a simulation, so that a bad line
    /// is refused before anything else happens.
    ///
    /// # Errors
    /// If the trace is unreadable or malformed.
    pub fn summarize(mut self) -> Result<TraceSummary, TraceError> {
        let mut summary: Option<TraceSummary> = None;
        while let Some(Group { head, rest }) = self.read_group()? {
            let all = summary.get_or_insert(TraceSummary {
                requests: 0,
                follow_ups: 0,
                first: head.arrival,
                last: head.arrival,
                input_tokens: 0,
                output_tokens: 0,
                skipped: Skipped::default(),
            });
            all.last = head.arrival;
            all.follow_ups += rest.len() as u64;
            for request in [&head].into_iter().chain(rest.iter().map(|next| &next.request)) {
                all.requests += 1;
                all.input_tokens += u64::from(request.content.prompt_tokens());
                all.output_tokens += u64::from(request.output_tokens);
            }
        }
        let skipped = self.skipped;
        summary.map(|all| TraceSummary { skipped, ..all }).ok_or_else(|| self.no_requests())
    }

    /// The next request that has an arrival, or `None` at the end. After an error it gives the same
    /// error again. Follow-ups are sent by [`Source::follow_up`].
    ///
    /// # Errors
    /// If the trace is unreadable or malformed.
    pub fn read_request(&mut self) -> Result<Option<Request>, TraceError> {
        let Some(Group { head, rest }) = self.read_group()? else { return Ok(None) };
        self.chains.add(head.name.as_deref(), rest);
        Ok(Some(head))
    }

    /// The next request in the order of the file, follow-ups included, or `None` at the end: for
    /// those who copy a trace and run nothing.
    ///
    /// # Errors
    /// If the trace is unreadable or malformed.
    pub fn read_entry(&mut self) -> Result<Option<TraceEntry>, TraceError> {
        if let Some(entry) = self.entries.pop_front() {
            return Ok(Some(entry));
        }
        let Some(Group { head, rest }) = self.read_group()? else { return Ok(None) };
        let mut above = head.name.clone();
        for FollowUp { request, think } in rest {
            let next = request.name.clone();
            // Never the default: requests of a chain carry their names.
            let name = above.unwrap_or_default();
            self.entries.push_back(TraceEntry { request, after: Some(After { name, think }) });
            above = next;
        }
        Ok(Some(TraceEntry { request: head, after: None }))
    }

    /// The next request that has an arrival, with all that follow up on it.
    fn read_group(&mut self) -> Result<Option<Group>, TraceError> {
        while self.failed.is_none() && !self.ended {
            match self.read_kept() {
                Ok(Some(row)) => {
                    let complete = self.hold(row);
                    let group =
                        if self.format.has_follow_ups() { complete } else { self.held.take() };
                    if group.is_some() {
                        return Ok(group);
                    }
                }
                Ok(None) => self.ended = true,
                Err(error) => self.failed = Some(error),
            }
        }
        match (self.held.take(), &self.failed) {
            (Some(group), _) => Ok(Some(group)),
            (None, Some(error)) => Err(error.clone()),
            (None, None) if self.sent == 0 => Err(self.no_requests()),
            (None, None) => Ok(None),
        }
    }

    /// Takes `row` for the next group or for the last one's; gives the group that is complete.
    fn hold(&mut self, row: Row) -> Option<Group> {
        let Some(think) = row.think else { return self.held.replace(Group::new(row.request)) };
        let group = self.held.as_mut().expect("follow-ups are kept with what they follow");
        let number = group.head.id.0;
        group.head.name.get_or_insert_with(|| number.to_string().into());
        group.rest.push_back(FollowUp { request: row.request, think });
        None
    }

    /// The next row that the edit keeps, as it is sent.
    fn read_kept(&mut self) -> Result<Option<Row>, TraceError> {
        while self.edit.limit.is_none_or(|limit| self.sent < limit) {
            let Some(mut row) = self.rows.next_row(&mut self.roster)? else { break };
            self.read += 1;
            if row.think.is_some() {
                self.explicit = true;
            } else {
                match self.edit.slice(row.request.arrival) {
                    Slice::Before => self.keeping = false,
                    Slice::Behind => break,
                    Slice::Within(span) => {
                        self.keeping = self.edit.samples(row.key) && !self.skip(&row);
                        row.request.arrival = self
                            .edit
                            .arrival(span)
                            .map_err(|error| self.rows.error(row.line, error.to_string()))?;
                    }
                }
            }
            if self.keeping {
                self.number(&mut row);
                return Ok(Some(row));
            }
        }
        Ok(None)
    }

    /// Whether no request can be made of `row`; if so it is counted.
    fn skip(&mut self, row: &Row) -> bool {
        let count = if row.failed {
            &mut self.skipped.failed
        } else if row.request.content.prompt_tokens() == 0 {
            &mut self.skipped.without_input
        } else if row.request.output_tokens == 0 {
            &mut self.skipped.without_output
        } else {
            return false;
        };
        *count += 1;
        true
    }

    /// Gives `row` its number, and its name if that is another.
    fn number(&mut self, row: &mut Row) {
        let number = self.sent;
        self.sent += 1;
        row.request.id = RequestId(number);
        if let Some(name) = row.number
            && (name != number || self.explicit)
        {
            row.request.name = Some(name.to_string().into());
        }
    }

    fn no_requests(&self) -> TraceError {
        let message = match (self.read, self.skipped.total()) {
            (0, _) if self.format == TraceFormat::Native => {
                "every line of the trace is blank, or there is none".to_owned()
            }
            (0, _) => "the trace has no rows".to_owned(),
            (read, 0) => format!("the edit leaves none of the {read} rows that were read"),
            (read, _) => format!("none of {read} rows can be used: {}", self.skipped),
        };
        self.rows.error(0, format!("no requests: {message}"))
    }
}

impl Source for TraceSource {
    fn next_request(&mut self) -> Result<Option<Request>, Box<dyn Error + Send + Sync>> {
        Ok(self.read_request()?)
    }

    /// Until the file was read once, a format that may have follow-ups wants to hear of every end.
    fn is_closed_loop(&self) -> bool {
        self.expected.map_or_else(|| self.format.has_follow_ups(), |(_, closed)| closed)
    }

    fn follow_up(&mut self, ended: &Request, ending: Ending, at: Time) -> Option<Request> {
        self.chains.next(ended, ending, at)
    }

    fn expected(&self) -> Option<u64> {
        self.expected.map(|(requests, _)| requests)
    }

    fn tenant_name(&self, tenant: TenantId) -> String {
        self.roster.tenants.name(tenant.0).to_owned()
    }

    fn session_name(&self, session: SessionId) -> String {
        let named = self.roster.sessions.get(&session);
        named.map_or_else(|| session_name(session), |name| (**name).to_owned())
    }
}

/// An error that is not about a line.
fn of_whole(path: &str, message: String, kind: TraceErrorKind) -> TraceError {
    TraceError { path: path.to_owned(), line: 0, column: 0, message, kind }
}
