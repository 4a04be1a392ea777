//! What every format makes of a row, and the order in which rows may come.
//!
//! A reader of a format implements [`Rows`]; [`super::TraceSource`] pulls from it. A row here is
//! what the file says: slicing, sampling and numbering come later.

use super::TraceError;
use super::date;
use super::write::decimal;
use crate::error::SpecError;
use crate::names::{Names, PRIVATE, name_key, number_key, own_stream, session};
use blis_core::{Content, Request, RequestId, Segment, SessionId, SloClass, Span, TenantId, Time};
use std::cmp::Ordering;
use std::collections::{BTreeMap, BinaryHeap};

/// Reads the rows of one format.
pub(super) trait Rows: Send {
    /// The next row; `None` at the end.
    fn next_row(&mut self, roster: &mut Roster) -> Result<Option<Row>, TraceError>;

    /// What is wrong on line `line` as a whole; 0: where the reader stands.
    fn error(&self, line: u64, message: String) -> TraceError;
}

/// The names that requests carry as numbers.
#[derive(Default)]
pub(super) struct Roster {
    pub(super) tenants: Names,
    /// Those whose numbers do not tell it.
    pub(super) sessions: BTreeMap<SessionId, Box<str>>,
}

/// One row of a trace.
pub(super) struct Row {
    /// The request; its arrival in the trace's own time, its id its place in the file.
    pub(super) request: Request,
    /// The id that the trace gives it, if that is a plain number. Any other is in the request.
    pub(super) number: Option<u64>,
    /// Its line, from 1.
    pub(super) line: u64,
    /// What the sampling draw is keyed by: its session, or its place in the file.
    pub(super) key: u64,
    /// Set if it is sent that long after the answer to the row before it, and has no arrival.
    pub(super) think: Option<Span>,
    /// Whether the trace says that it was not answered.
    pub(super) failed: bool,
}

impl Roster {
    /// The tenant of that name; `None`: of a row that names none.
    pub(super) fn tenant(&mut self, name: Option<&str>) -> TenantId {
        TenantId(self.tenants.number(name.unwrap_or("default")))
    }

    pub(super) fn session(&mut self, name: &str) -> SessionId {
        let id = session(name);
        if id.0 >= PRIVATE {
            self.sessions.entry(id).or_insert_with(|| name.into());
        }
        id
    }
}

impl Row {
    /// The row at `place` (from 0) on `line`, without tokens so far.
    pub(super) fn new(place: u64, line: u64, tenant: TenantId) -> Row {
        let request = Request {
            id: RequestId(place),
            name: None,
            arrival: Time::ZERO,
            content: Content::new([], own_stream(place)),
            output_tokens: 0,
            class: SloClass::default(),
            tenant,
            session: None,
            round: 0,
            attempt: 0,
            deadline: None,
            patience: None,
        };
        Row { request, number: None, line, key: number_key(place), think: None, failed: false }
    }

    /// Makes it a round of the session of that name.
    pub(super) fn set_session(&mut self, name: &str, roster: &mut Roster) -> SessionId {
        let session = roster.session(name);
        self.request.session = Some(session);
        self.key = name_key(name);
        session
    }

    /// Gives it a prompt of `input` tokens that nobody shares, and as many tokens to generate.
    pub(super) fn set_tokens(&mut self, input: u32, output: u32) {
        let own = own_stream(self.request.id.0);
        self.request.content = Content::new([Segment { stream: own, tokens: input }], own);
        self.request.output_tokens = output;
    }
}

/// Refuses prompts that are too long together with what they generate.
pub(super) fn check_sum(field: &str, input: u64, output_tokens: u32) -> Result<(), SpecError> {
    if u32::try_from(input + u64::from(output_tokens)).is_ok() {
        return Ok(());
    }
    let found = format!("{input} tokens and {output_tokens} of output");
    Err(SpecError::new(field, found, format!("together at most {}", u32::MAX)))
}

/// How a format writes its times.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Unit {
    Micros,
    Millis,
    Seconds,
    Date,
}

impl Unit {
    /// `nanos` as the format writes it.
    fn show(self, nanos: u64) -> String {
        match self {
            Unit::Micros => decimal(nanos, 3),
            Unit::Millis => decimal(nanos, 6),
            Unit::Seconds => decimal(nanos, 9),
            Unit::Date => date::show(nanos),
        }
    }

    /// Ten years, in words.
    fn longest(self) -> String {
        match self {
            Unit::Date => "ten years".to_owned(),
            unit => format!("{} (ten years)", unit.show(Span::LONGEST.as_nanos())),
        }
    }
}

/// Turns the times of a format into the trace's own time, and sees to it that they never go back.
pub(super) struct Clock {
    unit: Unit,
    /// The instant that is 0 in the trace's own time; `None` until the first row.
    origin: Option<u64>,
    last: u64,
    last_line: u64,
}

impl Clock {
    /// A clock that starts where the format's own does.
    pub(super) fn from_zero(unit: Unit) -> Clock {
        Clock { unit, origin: Some(0), last: 0, last_line: 0 }
    }

    /// A clock that starts with the first row, for formats with dates or counts since some day.
    pub(super) fn from_first_row(unit: Unit) -> Clock {
        Clock { unit, origin: None, last: 0, last_line: 0 }
    }

    /// The instant `nanos` that the row on `line` has in `field`.
    pub(super) fn read(&mut self, field: &str, nanos: u64, line: u64) -> Result<Time, SpecError> {
        let found = || self.unit.show(nanos);
        if nanos < self.last {
            let last = self.unit.show(self.last);
            let legal = format!("at least {last}, the arrival on line {}", self.last_line);
            return Err(SpecError::new(field, found(), legal));
        }
        let origin = *self.origin.get_or_insert(nanos);
        let time = nanos - origin;
        if time > Span::LONGEST.as_nanos() {
            let longest = self.unit.longest();
            let from = self.unit.show(origin);
            let legal = match (self.unit, origin) {
                (_, 0) => format!("at most {longest}"),
                (Unit::Date, _) => format!("at most {longest} after {from}, the first row"),
                _ => format!("at most {longest} more than {from}, the first row"),
            };
            return Err(SpecError::new(field, found(), legal));
        }
        (self.last, self.last_line) = (nanos, line);
        Ok(Time::from_nanos(time))
    }
}

/// How many rows are looked ahead in formats whose files are not in the order of arrival.
const WINDOW: usize = 1 << 16;

/// Puts rows into the order of arrival, as far as [`WINDOW`] rows allow. For formats whose writers
/// log a session at once, or requests when they end; memory stays bounded.
pub(super) struct Sorted<R> {
    rows: R,
    field: &'static str,
    waiting: BinaryHeap<Waiting>,
    last: (Time, u64),
    ended: bool,
}

impl<R: Rows> Sorted<R> {
    /// `rows`, whose arrivals are microseconds in `field`.
    pub(super) fn new(rows: R, field: &'static str) -> Sorted<R> {
        let waiting = BinaryHeap::new();
        Sorted { rows, field, waiting, last: (Time::ZERO, 0), ended: false }
    }
}

impl<R: Rows> Rows for Sorted<R> {
    fn next_row(&mut self, roster: &mut Roster) -> Result<Option<Row>, TraceError> {
        while !self.ended && self.waiting.len() < WINDOW {
            match self.rows.next_row(roster)? {
                Some(row) => self.waiting.push(Waiting(row)),
                None => self.ended = true,
            }
        }
        let Some(Waiting(row)) = self.waiting.pop() else { return Ok(None) };
        let (last, last_line) = self.last;
        if row.request.arrival < last {
            let show = |time: Time| Unit::Micros.show(time.as_nanos());
            let legal = format!(
                "at least {}, the arrival on line {last_line}: rows may be out of order by at most \
                 {WINDOW}; sort the file by `{}`",
                show(last),
                self.field
            );
            let error = SpecError::new(self.field, show(row.request.arrival), legal);
            return Err(self.rows.error(row.line, error.to_string()));
        }
        self.last = (row.request.arrival, row.line);
        Ok(Some(row))
    }

    fn error(&self, line: u64, message: String) -> TraceError {
        self.rows.error(line, message)
    }
}

/// A row that waits for its turn: the greatest is the next.
struct Waiting(Row);

impl Waiting {
    fn turn(&self) -> (Time, u64) {
        (self.0.request.arrival, self.0.line)
    }
}

impl Ord for Waiting {
    fn cmp(&self, other: &Waiting) -> Ordering {
        other.turn().cmp(&self.turn())
    }
}

impl PartialOrd for Waiting {
    fn partial_cmp(&self, other: &Waiting) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Waiting {
    fn eq(&self, other: &Waiting) -> bool {
        self.turn() == other.turn()
    }
}

impl Eq for Waiting {}
