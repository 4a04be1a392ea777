//! `--trace-out`: the requests of a run as they arrived.
//!
//! Everything is written with the arrival that it had, also what a client sent because of an answer
//! or after a rejection. So the trace is open loop, and the same cluster serves it in the same way.

use super::{Lines, Recorder, Sink};
use crate::failure::Failure;
use crate::target::Target;
use crate::trace::file::{Line, TraceFile};
use blis_metrics::Fact;
use blis_scenario::Names;
use std::io;

impl Sink for TraceFile {
    fn failure(&self, error: &io::Error) -> Failure {
        TraceFile::failure(self, error)
    }

    fn finish(self) -> Result<(), Failure> {
        TraceFile::finish(self)
    }
}

/// Opens the file `target`; `names` must keep requests and be given to the run as well.
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
