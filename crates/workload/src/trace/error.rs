//! Why a trace could not be read, and what was left out of one that could.

use std::fmt;

/// Why a trace could not be read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub struct TraceError {
    /// The trace's path or name.
    pub path: String,
    /// Line from 1; 0 if the file could not be opened.
    pub line: u64,
    /// Byte within the line, from 1: the last one of the value at fault, or 1 if that is not a
    /// single value or stands in quotes in a CSV row.
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

/// Rows that no request was made of. Recorded traces have them: a failed request has no output. The
/// native format has none, because there such a line is an error.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Skipped {
    /// Rows that say that the request failed.
    pub failed: u64,
    /// Other rows without prompt tokens.
    pub without_input: u64,
    /// Other rows without generated tokens.
    pub without_output: u64,
}

impl Skipped {
    /// How many rows in all.
    pub fn total(&self) -> u64 {
        self.failed + self.without_input + self.without_output
    }
}

/// The reasons and how often each occurred, e.g. "2 failed, 1 without output tokens".
impl fmt::Display for Skipped {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let reasons = [
            (self.failed, "failed"),
            (self.without_input, "without prompt tokens"),
            (self.without_output, "without output tokens"),
        ];
        let mut separator = "";
        for (count, reason) in reasons.into_iter().filter(|(count, _)| *count > 0) {
            write!(f, "{separator}{count} {reason}")?;
            separator = ", ";
        }
        Ok(())
    }
}
