//! Rows of comma-separated values, with columns found by their names in the header.
//!
//! The CSV formats read through it. Columns are never bound by position, so that a file with its
//! columns in another order reads the same, and one with other columns is refused. Splitting and
//! unquoting is left to `csv-core`; lines come from [`Lines`], so that line numbers are exact
//! (blank lines, CRLF and line breaks in quotes included) and no row can fill the memory.
//!
//! A file that was cut off inside the last value of its last row cannot be told from a whole one:
//! the public Azure files end without a line end, too.

use super::lines::{Lines, MAX_LINE, nul};
use super::row::{Clock, Roster, Row, Rows, check_sum};
use super::scalar::{printable, unknown};
use super::{TraceError, TraceErrorKind};
use crate::error::SpecError;
use crate::names::SeenIds;
use blis_core::math::float;
use blis_core::{SloClass, Span, TenantId, Time};
use csv_core::{ReadRecordResult, Reader, ReaderBuilder, Terminator};

/// No format has as many columns.
const MAX_COLUMNS: usize = 128;

const ID: &str = "a whole number from 0 to 18446744073709551615";
const TOKENS: &str = "a whole number from 0 to 4294967295";

/// The columns of a format; a column is known by its place in `required` and then `optional`.
pub(super) struct Columns {
    /// Name of the format.
    pub(super) format: &'static str,
    /// Those that a file must have, as in a header.
    pub(super) required: &'static str,
    /// Those that it may have.
    pub(super) optional: &'static str,
}

impl Columns {
    pub(super) fn names(&self) -> impl Iterator<Item = &'static str> {
        self.required().chain(self.optional.split(',').filter(|name| !name.is_empty()))
    }

    fn required(&self) -> impl Iterator<Item = &'static str> {
        self.required.split(',')
    }

    fn name(&self, column: usize) -> &'static str {
        self.names().nth(column).expect("a column of the format")
    }
}

/// A format of rows of values: how to make a request of the row that a table stands at.
pub(super) trait Format: Send {
    /// What a file has.
    const COLUMNS: &'static Columns;

    fn row(&mut self, table: &Table, roster: &mut Roster) -> Result<Row, TraceError>;
}

/// The rows of a file in the format `F`.
pub(super) struct TableRows<F> {
    table: Table,
    format: F,
}

impl<F: Format> TableRows<F> {
    pub(super) fn open(lines: Lines, format: F) -> Result<TableRows<F>, TraceError> {
        Ok(TableRows { table: Table::open(lines, F::COLUMNS)?, format })
    }
}

impl<F: Format> Rows for TableRows<F> {
    fn next_row(&mut self, roster: &mut Roster) -> Result<Option<Row>, TraceError> {
        if !self.table.next_row()? {
            return Ok(None);
        }
        self.format.row(&self.table, roster).map(Some)
    }

    fn error(&self, line: u64, message: String) -> TraceError {
        self.table.error(line, message)
    }
}

/// A file of rows, of which one is read at a time.
pub(super) struct Table {
    lines: Lines,
    columns: &'static Columns,
    /// Which field of a row each column is.
    bound: Vec<Option<usize>>,
    width: usize,
    parser: Reader,
    line: Vec<u8>,
    /// Line on which the row began.
    start: u64,
    /// The fields of the row without quotes, one after the other.
    fields: Vec<u8>,
    ends: [usize; MAX_COLUMNS],
    /// Rows read so far.
    count: u64,
}

impl Table {
    /// The rows of `lines` below a header with `columns`.
    fn open(lines: Lines, columns: &'static Columns) -> Result<Table, TraceError> {
        let mut table = Table {
            lines,
            columns,
            bound: Vec::new(),
            width: 0,
            parser: ReaderBuilder::new().terminator(Terminator::Any(b'\n')).build(),
            line: Vec::new(),
            start: 0,
            fields: Vec::new(),
            ends: [0; MAX_COLUMNS],
            count: 0,
        };
        let Some(width) = table.read_fields()? else {
            let message = "no requests: every line of the trace is blank, or there is none";
            return Err(table.error(0, message.to_owned()));
        };
        table.width = width;
        table.bound = table.bind()?;
        Ok(table)
    }

    /// Reads the next row; false if there is none.
    fn next_row(&mut self) -> Result<bool, TraceError> {
        let Some(width) = self.read_fields()? else { return Ok(false) };
        if width != self.width {
            let ended = self.line.ends_with(b"\n");
            let cut = if width < self.width && !ended { ": the trace is cut off" } else { "" };
            let message =
                format!("the row has {width} columns and the header has {}{cut}", self.width);
            return Err(self.error(self.start, message));
        }
        self.count += 1;
        Ok(true)
    }

    /// A request for the row, without tokens so far.
    pub(super) fn request(&self, tenant: TenantId) -> Row {
        Row::new(self.count - 1, self.start, tenant)
    }

    /// The instant `nanos` that the row has in `column`, in the trace's own time.
    pub(super) fn arrival(
        &self,
        column: usize,
        clock: &mut Clock,
        nanos: u64,
    ) -> Result<Time, TraceError> {
        clock.read("", nanos, self.start).map_err(|error| self.refuse(column, error))
    }

    /// Refuses a prompt of `input` tokens, counted in `column`, that is too long together with
    /// what it generates.
    pub(super) fn check_sum(
        &self,
        column: usize,
        input: u64,
        output: u32,
    ) -> Result<(), TraceError> {
        check_sum("", input, output).map_err(|error| self.refuse(column, error))
    }

    /// What the row has in `column`; `None` if that is empty or the file does not have the column.
    pub(super) fn text(&self, column: usize) -> Result<Option<&str>, TraceError> {
        let Some(field) = self.bound[column] else { return Ok(None) };
        match str::from_utf8(self.field(field)) {
            Ok("") => Ok(None),
            Ok(text) => Ok(Some(text)),
            Err(_) => Err(self.wrong(column, "UTF-8 text")),
        }
    }

    /// The value in `column` as `parse` has it; what that refuses is not `legal`.
    pub(super) fn value<T>(
        &self,
        column: usize,
        legal: &str,
        parse: impl FnOnce(&str) -> Option<T>,
    ) -> Result<T, TraceError> {
        let text = self.text(column)?;
        text.and_then(parse).ok_or_else(|| self.wrong(column, legal))
    }

    /// The number of tokens in `column`.
    pub(super) fn tokens(&self, column: usize) -> Result<u32, TraceError> {
        self.value(column, TOKENS, |text| u32::try_from(whole(text)?).ok())
    }

    /// The number in `column`, which no row above has there.
    pub(super) fn fresh_id(&self, column: usize, seen: &mut SeenIds) -> Result<u64, TraceError> {
        let id = self.value(column, ID, whole)?;
        if seen.insert_number(id) {
            return Ok(id);
        }
        let found = format!("`{id}` for the second time");
        let legal = "an id that no row above has";
        Err(self.refuse(column, SpecError::new("", found, legal)))
    }

    /// The service class in `column`; the default if that is empty.
    pub(super) fn class(&self, column: usize) -> Result<SloClass, TraceError> {
        let Some(name) = self.text(column)? else { return Ok(SloClass::default()) };
        SloClass::from_name(name).ok_or_else(|| {
            let known = SloClass::ALL.map(SloClass::name);
            self.error_in(column, unknown("class", name, &known))
        })
    }

    /// That the value in `column` is not `legal`.
    pub(super) fn wrong(&self, column: usize, legal: &str) -> TraceError {
        let found = match self.bound[column].map(|field| self.field(field)) {
            None | Some(b"") => "nothing".to_owned(),
            Some(field) => format!("`{}`", printable(&String::from_utf8_lossy(field))),
        };
        self.refuse(column, SpecError::new("", found, legal))
    }

    /// That `error` is about the value in `column`.
    fn refuse(&self, column: usize, error: SpecError) -> TraceError {
        self.error_in(column, error.under(self.columns.name(column)).to_string())
    }

    /// What is wrong on line `line` as a whole; 0: where the table stands.
    fn error(&self, line: u64, message: String) -> TraceError {
        self.lines.error_on(line, 1, message)
    }

    /// What is wrong with the value in `column`. Where nothing is quoted, its last byte is known.
    fn error_in(&self, column: usize, message: String) -> TraceError {
        let place = match self.bound[column] {
            Some(field) if !self.line.contains(&b'"') => (self.ends[field] + field).max(1),
            _ => 1,
        };
        self.lines.error_on(self.start, place, message)
    }

    fn field(&self, field: usize) -> &[u8] {
        let start = if field == 0 { 0 } else { self.ends[field - 1] };
        &self.fields[start..self.ends[field]]
    }

    /// Splits the next row; how many fields it has, or `None` at the end of the file.
    fn read_fields(&mut self) -> Result<Option<usize>, TraceError> {
        if !self.lines.next(&mut self.line)? {
            return Ok(None);
        }
        self.start = self.lines.number();
        without_carriage_return(&mut self.line);
        let (mut read, mut written, mut width) = (0, 0, 0);
        loop {
            if let Some((column, message)) = nul(&self.line[read..]) {
                return Err(self.lines.error(column, message));
            }
            // Unquoting never makes a row longer.
            self.fields.resize(self.line.len() + 1, 0);
            let (result, more_read, more_written, more_ends) = self.parser.read_record(
                &self.line[read..],
                &mut self.fields[written..],
                &mut self.ends[width..],
            );
            read += more_read;
            written += more_written;
            width += more_ends;
            match result {
                ReadRecordResult::Record => return Ok(Some(width)),
                ReadRecordResult::End => return Ok(None),
                ReadRecordResult::OutputFull => {}
                ReadRecordResult::OutputEndsFull => {
                    let message = format!("the row has more than {MAX_COLUMNS} columns");
                    return Err(self.error(self.start, message));
                }
                ReadRecordResult::InputEmpty => self.read_on()?,
            }
        }
    }

    /// The row goes on behind what was read of it: in the next line if that was inside quotes.
    fn read_on(&mut self) -> Result<(), TraceError> {
        if !self.line.ends_with(b"\n") && quotes_are_closed(&self.line) {
            // The last row has no line end: the parser is told by having no more to read.
            return Ok(());
        }
        let message = match self.lines.more(&mut self.line) {
            Ok(true) => {
                without_carriage_return(&mut self.line);
                return Ok(());
            }
            Ok(false) => "the trace ends inside a value in quotes: it is cut off, or a quote is \
                          missing in this row"
                .to_owned(),
            Err(error) if error.kind == TraceErrorKind::Io => return Err(error),
            Err(_) => format!(
                "the row is longer than {MAX_LINE} bytes: a value in quotes does not end, or a \
                 quote is missing"
            ),
        };
        Err(self.error(self.start, message))
    }

    /// Finds the columns in the header, which was just read.
    fn bind(&self) -> Result<Vec<Option<usize>>, TraceError> {
        let known: Vec<&str> = self.columns.names().collect();
        let mut bound = vec![None; known.len()];
        for field in 0..self.width {
            let name = String::from_utf8_lossy(self.field(field));
            let Some(column) = known.iter().position(|known| **known == *name) else {
                let format = self.columns.format;
                let message = unknown("column", &name, &known);
                return Err(self.error(self.start, format!("format `{format}`: {message}")));
            };
            if bound[column].replace(field).is_some() {
                let message = format!("column `{name}`: given twice");
                return Err(self.error(self.start, message));
            }
        }
        let required: Vec<&str> = self.columns.required().collect();
        if let Some((missing, _)) = required.iter().zip(&bound).find(|(_, bound)| bound.is_none()) {
            let (format, required) = (self.columns.format, required.join("`, `"));
            let message =
                format!("format `{format}`: column `{missing}` is missing; required: `{required}`");
            return Err(self.error(self.start, message));
        }
        Ok(bound)
    }
}

/// `text` as a number, if it is nothing but digits.
pub(super) fn whole(text: &str) -> Option<u64> {
    let digits = text.bytes().all(|byte| byte.is_ascii_digit());
    if digits { text.parse().ok() } else { None }
}

/// `text` as a number from 0 with `places` decimals, in units of the last: "1.5" with three is
/// 1500. Exact where it is written in digits; up to ten years of nanoseconds in powers of ten.
pub(super) fn decimal(text: &str, places: u32) -> Option<u64> {
    let (digits, decimals) = text.split_once('.').unwrap_or((text, ""));
    let plain = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
    let unit = 10_u64.pow(places);
    if plain(digits) && plain(decimals) && !(digits.is_empty() && decimals.is_empty()) {
        let whole: u64 = if digits.is_empty() { 0 } else { digits.parse().ok()? };
        // Further decimals are cut off: nothing is resolved as finely.
        let decimals = &decimals[..decimals.len().min(places as usize)];
        let missing = places - u32::try_from(decimals.len()).ok()?;
        let rest: u64 = if decimals.is_empty() { 0 } else { decimals.parse().ok()? };
        return whole.checked_mul(unit)?.checked_add(rest * 10_u64.pow(missing));
    }
    // Python writes small numbers as 5e-05. What only names a number (inf) has no digits.
    let power = !text.starts_with(['+', '-'])
        && text.bytes().all(|byte| byte.is_ascii_digit() || b".eE+-".contains(&byte));
    let number: f64 = if power { text.parse().ok()? } else { return None };
    let scaled = number * float(unit);
    let longest = float(Span::LONGEST.as_nanos());
    (0.0..=longest).contains(&scaled).then(|| Span::from_nanos_f64(scaled).as_nanos())
}

fn quotes_are_closed(line: &[u8]) -> bool {
    line.split(|byte| *byte == b'"').count() % 2 == 1
}

/// A row ends in LF; CRLF is the same.
fn without_carriage_return(line: &mut Vec<u8>) {
    if line.ends_with(b"\r\n") {
        line.truncate(line.len() - 2);
        line.push(b'\n');
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn decimals_are_exact_and_what_is_no_number_is_refused() {
        for (text, expected) in [
            ("0", 0),
            ("19440110.0", 19_440_110_000_000_000),
            ("0.000000001", 1),
            ("1.0000000019", 1_000_000_001),
            (".5", 500_000_000),
            ("7.", 7_000_000_000),
            ("5e-05", 50_000),
            ("1.5E+1", 15_000_000_000),
        ] {
            assert_eq!(decimal(text, 9), Some(expected), "{text}");
        }
        for text in [
            "",
            ".",
            "-1",
            "-1e3",
            "+1",
            "nan",
            "inf",
            "1e308",
            "1e30",
            "0x10",
            "1_000",
            "1,5",
            " 1",
            "1 ",
            "1.5.2",
            "1e",
            "--",
            "18446744073709551616",
            "18446744074",
            "½",
        ] {
            assert_eq!(decimal(text, 9), None, "{text}");
        }
    }
}
