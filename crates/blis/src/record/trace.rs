//! Native traces: `--trace-out`, and those that `blis trace` writes.
//!
//! How many rows a trace has is known at its end. So a file starts with a blank line, which readers
//! skip, and gets its header before it gets its name. What goes to a pipe has no header.

use super::{Lines, Recorder, Sink};
use crate::failure::Failure;
use crate::output::Output;
use crate::target::Target;
use blis_core::{Request, Source};
use blis_metrics::Fact;
use blis_scenario::Names;
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

    /// Writes `line`; the error is for [`Sink::failure`].
    fn write_line(&mut self, line: &Line<'_>) -> io::Result<()> {
        let Line { request, after, tenant, session } = *line;
        self.rows += 1;
        match after {
            Some(after) => write_follow_up(&mut self.output, request, tenant, session, after),
            None => write_request(&mut self.output, request, tenant, session),
        }
    }

    fn header(&mut self) -> io::Result<()> {
        let mut header = Vec::new();
        write_header(&mut header, self.rows)?;
        self.output.rewrite_start(header.trim_ascii_end())
    }
}

/// A line of a trace.
struct Line<'a> {
    request: &'a Request,
    /// What it waits for, if it does.
    after: Option<&'a After>,
    tenant: &'a str,
    session: Option<&'a str>,
}

impl Sink for TraceFile {
    fn failure(&self, error: &io::Error) -> Failure {
        self.output.failure(error)
    }

    fn finish(mut self) -> Result<(), Failure> {
        // A trace of nothing has no legal header; it is for its reader to refuse.
        if self.output.can_rewrite() && self.rows > 0 {
            self.header().map_err(|error| self.output.failure(&error))?;
        }
        self.output.finish()
    }
}

/// Records the requests of a run in `target`, each with its arrival, so the trace is open loop;
/// `names` must keep requests and be given to the run as well.
pub(crate) fn create(target: &Target, names: Names) -> Result<Box<dyn Recorder>, Failure> {
    Ok(Lines::recorder(TraceFile::create(target)?, move |file, at, fact: &Fact<'_>| {
        let Fact::Arrived { request: id, class, input_tokens, .. } = fact else { return Ok(()) };
        let mut request = names.arrived(at);
        let same = (request.class, request.content.prompt_tokens()) == (*class, *input_tokens);
        assert!(same, "{id:?} is recorded as it arrived");
        request.id = *id;
        let tenant = names.tenant(request.tenant);
        let session = request.session.map(|session| names.session(session));
        let session = session.as_deref();
        file.write_line(&Line { request: &request, after: None, tenant: &tenant, session })
    }))
}
