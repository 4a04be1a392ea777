//! The physical lines of a trace, numbered, and errors that say which one is at fault.
//!
//! Every format reads through it. It must never hold more than one line, however long the trace,
//! and no line longer than [`MAX_LINE`].

use super::{TraceError, TraceErrorKind};
use std::io::{self, BufRead, Cursor, Read};

/// Longest line (or row, if quoted values span lines) in bytes. A longer one is no request, and
/// must not fill the memory.
pub(super) const MAX_LINE: usize = 64 << 20;

/// How far to look for the first line when the format is to be found out.
const PEEK: u64 = 64 << 10;

const BYTE_ORDER_MARK: &[u8] = b"\xEF\xBB\xBF";
const GZIP: &[u8] = b"\x1F\x8B";
const UTF_16: [&[u8]; 2] = [b"\xFF\xFE", b"\xFE\xFF"];

/// The first line that is not blank, or the beginning of it.
pub(super) struct First {
    pub(super) number: u64,
    pub(super) text: Vec<u8>,
}

/// A trace, line by line.
pub(super) struct Lines {
    path: String,
    reader: Box<dyn BufRead + Send>,
    number: u64,
}

impl Lines {
    /// The lines of `reader`, and the first of them to know the format by. Nothing is sought, so
    /// that pipes can be read.
    pub(super) fn open(
        mut reader: Box<dyn BufRead + Send>,
        path: &str,
    ) -> Result<(Lines, First), TraceError> {
        let mut head = Vec::new();
        let (mut start, mut number) = (0, 1);
        let read = loop {
            let limit = PEEK - start as u64;
            match reader.by_ref().take(limit).read_until(b'\n', &mut head) {
                Ok(length) if length > 0 && is_blank(&head[start..]) => {
                    start = head.len();
                    number += 1;
                }
                read => break read,
            }
        };
        let first = First { number, text: unmarked(&head).trim_ascii().to_vec() };
        let wrong_text = unreadable_text(&head);
        let reader = Box::new(Cursor::new(head).chain(reader));
        let lines = Lines { path: path.to_owned(), reader, number: 1 };
        match (read, wrong_text) {
            (Err(error), _) => Err(lines.unreadable(&error)),
            (_, Some(message)) => Err(lines.error(1, message.to_owned())),
            _ => Ok((Lines { number: 0, ..lines }, first)),
        }
    }

    /// Number of the line read last, from 1.
    pub(super) fn number(&self) -> u64 {
        self.number
    }

    /// Puts the next line that is not blank into `line`, with its end; false if there is none.
    pub(super) fn next(&mut self, line: &mut Vec<u8>) -> Result<bool, TraceError> {
        loop {
            line.clear();
            if !self.more(line)? {
                return Ok(false);
            }
            if self.number == 1 && line.starts_with(BYTE_ORDER_MARK) {
                line.drain(..BYTE_ORDER_MARK.len());
            }
            if !is_blank(line) {
                return Ok(true);
            }
        }
    }

    /// Adds the next line to `line`, blank or not; false if there is none.
    pub(super) fn more(&mut self, line: &mut Vec<u8>) -> Result<bool, TraceError> {
        self.number += 1;
        let limit = (MAX_LINE - line.len()) as u64 + 1;
        match self.reader.by_ref().take(limit).read_until(b'\n', line) {
            Ok(_) if line.len() > MAX_LINE => {
                let message = format!("the line is longer than {MAX_LINE} bytes");
                Err(self.error(MAX_LINE, message))
            }
            Ok(length) => Ok(length > 0),
            Err(error) => Err(self.unreadable(&error)),
        }
    }

    /// What is wrong at `column` of the line read last.
    pub(super) fn error(&self, column: usize, message: String) -> TraceError {
        self.error_on(self.number, column, message)
    }

    /// What is wrong at `column` of line `line`; 0: the line read last.
    pub(super) fn error_on(&self, line: u64, column: usize, message: String) -> TraceError {
        let line = if line == 0 { self.number } else { line };
        let kind = TraceErrorKind::Content;
        TraceError { path: self.path.clone(), line, column, message, kind }
    }

    fn unreadable(&self, error: &io::Error) -> TraceError {
        let kind = TraceErrorKind::Io;
        TraceError { kind, ..self.error(1, format!("cannot read: {error}")) }
    }
}

/// Where the first NUL byte of `line` is, from 1, and what that means.
pub(super) fn nul(line: &[u8]) -> Option<(usize, String)> {
    if !line.contains(&0) {
        return None;
    }
    let place = line.iter().position(|byte| *byte == 0)?;
    Some((place + 1, "the line contains a NUL byte: the trace is damaged or not text".to_owned()))
}

fn unreadable_text(head: &[u8]) -> Option<&'static str> {
    if head.starts_with(GZIP) {
        return Some("the trace is compressed with gzip; decompress it first");
    }
    let wide = UTF_16.iter().any(|mark| head.starts_with(mark));
    wide.then_some("the trace is UTF-16 text; save it as UTF-8")
}

fn unmarked(line: &[u8]) -> &[u8] {
    line.strip_prefix(BYTE_ORDER_MARK).unwrap_or(line)
}

fn is_blank(line: &[u8]) -> bool {
    unmarked(line).trim_ascii_end().is_empty()
}
