//! Files that are written while a run goes, as it states its facts.

pub(crate) mod decisions;
pub(crate) mod inversions;
pub(crate) mod perfetto;
pub(crate) mod requests;
pub(crate) mod results;
pub(crate) mod timeline;
pub(crate) mod trace;

use crate::failure::Failure;
use crate::output::Output;
use blis_core::Time;
use blis_metrics::{Fact, Listener};
use blis_scenario::RunResult;
use std::io;

/// Something that listens to a run and leaves a file.
pub(crate) trait Recorder: Listener {
    /// Completes the file.
    fn finish(self: Box<Self>, result: &RunResult) -> Result<(), Failure>;
}

/// A file on its way.
pub(crate) trait Sink {
    /// What to say about a write that failed.
    fn failure(&self, error: &io::Error) -> Failure;
    /// Completes it.
    fn finish(self) -> Result<(), Failure>;
}

impl Sink for Output {
    fn failure(&self, error: &io::Error) -> Failure {
        Output::failure(self, error)
    }

    fn finish(self) -> Result<(), Failure> {
        Output::finish(self)
    }
}

/// Writes lines about facts with the function `write`.
pub(crate) struct Lines<S, W> {
    sink: S,
    write: W,
    /// The first write that failed; a listener cannot stop a run, so it is told at the end.
    failure: Option<io::Error>,
}

impl<S, W> Lines<S, W>
where
    S: Sink + 'static,
    W: FnMut(&mut S, Time, &Fact<'_>) -> io::Result<()> + 'static,
{
    /// Lines that `write` writes to `sink`.
    pub(crate) fn recorder(sink: S, write: W) -> Box<dyn Recorder> {
        Box::new(Lines { sink, write, failure: None })
    }
}

impl<S, W: FnMut(&mut S, Time, &Fact<'_>) -> io::Result<()>> Listener for Lines<S, W> {
    fn hear(&mut self, at: Time, fact: &Fact<'_>) {
        if self.failure.is_none() {
            self.failure = (self.write)(&mut self.sink, at, fact).err();
        }
    }
}

impl<S: Sink, W: FnMut(&mut S, Time, &Fact<'_>) -> io::Result<()>> Recorder for Lines<S, W> {
    fn finish(self: Box<Self>, _: &RunResult) -> Result<(), Failure> {
        match self.failure {
            Some(error) => Err(self.sink.failure(&error)),
            None => self.sink.finish(),
        }
    }
}
