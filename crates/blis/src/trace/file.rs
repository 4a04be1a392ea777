//! A native trace on its way: lines, and the number of them in the first one.
//!
//! Traces are written as requests come, and how many there are is known at the end. So a file
//! starts with a blank line, which is as good as none, and gets its header before it gets its name.
//! What goes to a pipe has no header.

use crate::failure::Failure;
use crate::output::Output;
use crate::target::Target;
use blis_core::{Request, Source};
use blis_workload::{After, write_follow_up, write_header, write_request};
use std::io::{self, Write};

/// The blanks that the header is written over: longer than that of 2^64 rows.
const ROOM: usize = 32;

/// A native trace that is being written.
pub(crate) struct TraceFile {
    output: Output,
    rows: u64,
}

impl TraceFile {
    /// Opens `target`.
    pub(crate) fn create(target: &Target) -> Result<TraceFile, Failure> {
        let mut output = Output::create(target)?;
        if output.can_rewrite() {
            let blank = writeln!(output, "{:ROOM$}", "");
            blank.map_err(|error| output.failure(&error))?;
        }
        Ok(TraceFile { output, rows: 0 })
    }

    /// Lines written so far.
    pub(crate) fn rows(&self) -> u64 {
        self.rows
    }

    /// Writes `request`, whose names `source` knows; with `after` as one that waits for an answer.
    pub(crate) fn write(
        &mut self,
        request: &Request,
        after: Option<&After>,
        source: &dyn Source,
    ) -> Result<(), Failure> {
        let tenant = source.tenant_name(request.tenant);
        let session = request.session.map(|session| source.session_name(session));
        let line = Line { request, after, tenant: &tenant, session: session.as_deref() };
        self.write_line(&line).map_err(|error| self.output.failure(&error))
    }

    /// Writes `line`; the error is for [`TraceFile::failure`].
    pub(crate) fn write_line(&mut self, line: &Line<'_>) -> io::Result<()> {
        let Line { request, after, tenant, session } = *line;
        self.rows += 1;
        match after {
            Some(after) => write_follow_up(&mut self.output, request, tenant, session, after),
            None => write_request(&mut self.output, request, tenant, session),
        }
    }

    /// What to say about a line that could not be written.
    pub(crate) fn failure(&self, error: &io::Error) -> Failure {
        self.output.failure(error)
    }

    /// Completes the trace.
    pub(crate) fn finish(mut self) -> Result<(), Failure> {
        // A trace of nothing has no legal header; it is for its reader to refuse.
        if self.output.can_rewrite() && self.rows > 0 {
            self.header().map_err(|error| self.output.failure(&error))?;
        }
        self.output.finish()
    }

    fn header(&mut self) -> io::Result<()> {
        let mut header = Vec::new();
        write_header(&mut header, self.rows)?;
        self.output.rewrite_start(header.trim_ascii_end())
    }
}

/// A line of a trace.
pub(crate) struct Line<'a> {
    pub(crate) request: &'a Request,
    /// What it waits for, if it does.
    pub(crate) after: Option<&'a After>,
    pub(crate) tenant: &'a str,
    pub(crate) session: Option<&'a str>,
}
