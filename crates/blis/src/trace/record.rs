//! `run --trace-out`: the requests of a run as they arrived.
//!
//! Everything is written with the arrival that it had, also what a client sent because of an answer
//! or after a rejection. So the trace is open loop, and the same cluster serves it in the same way.

use crate::failure::Failure;
use crate::target::Target;
use crate::trace::file::{Line, TraceFile};
use blis_core::Time;
use blis_metrics::{Fact, Listener};
use blis_scenario::Names;
use std::io;

/// Writes a line for every request that arrives.
pub(crate) struct Recorder {
    file: TraceFile,
    names: Names,
    /// The first write that failed; a listener cannot stop a run, so it is told at the end.
    failure: Option<io::Error>,
}

impl Recorder {
    /// Opens the file `target`; `names` must keep requests and be given to the run as well.
    pub(crate) fn create(target: &Target, names: Names) -> Result<Recorder, Failure> {
        Ok(Recorder { file: TraceFile::create(target)?, names, failure: None })
    }

    /// Completes the trace.
    pub(crate) fn finish(self) -> Result<(), Failure> {
        match self.failure {
            Some(error) => Err(self.file.failure(&error)),
            None => self.file.finish(),
        }
    }
}

impl Listener for Recorder {
    fn hear(&mut self, at: Time, fact: &Fact<'_>) {
        let Fact::Arrived { request: id, class, input_tokens, .. } = fact else { return };
        let mut request = self.names.arrived(at);
        let same = (request.class, request.content.prompt_tokens()) == (*class, *input_tokens);
        assert!(same, "{id:?} is recorded as it arrived");
        request.id = *id;
        if self.failure.is_some() {
            return;
        }
        let tenant = self.names.tenant(request.tenant);
        let session = request.session.map(|session| self.names.session(session));
        let session = session.as_deref();
        let line = Line { request: &request, after: None, tenant: &tenant, session };
        self.failure = self.file.write_line(&line).err();
    }
}
