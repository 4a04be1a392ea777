//! Ctrl-C: the interpreter notes it, and only its main thread may ask whether it did.
#![expect(clippy::disallowed_types, reason = "how often to ask is a matter of the clock")]

use crate::failure::caught;
use crate::policy::Tally;
use blis_lab::Failure;
use blis_lab::trial::Watch;
use blis_sim::{Observer, Progress};
use core::time::Duration;
use pyo3::prelude::*;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::time::Instant;

/// How often the interpreter is asked: soon enough for a person, and seldom enough not to cost
/// anything.
const BETWEEN: Duration = Duration::from_millis(50);

/// What the interpreter has to raise, e.g. that Ctrl-C was pressed.
fn pending() -> Option<PyErr> {
    Python::attach(|py| py.check_signals().err())
}

/// Observes one run, in the thread that it runs in, and stops it when the interpreter or one of its
/// policies in Python has raised something.
pub(crate) struct Signals {
    asked: Instant,
    raised: Option<PyErr>,
    policies: Vec<Arc<Tally>>,
}

impl Signals {
    pub(crate) fn new(policies: Vec<Arc<Tally>>) -> Signals {
        Signals { asked: Instant::now(), raised: None, policies }
    }

    /// What was raised.
    pub(crate) fn raised(self) -> Option<PyErr> {
        let of_policies = self.policies.iter().find_map(|tally| tally.take_error());
        of_policies.or(self.raised)
    }
}

impl Observer for Signals {
    fn go_on(&mut self, _: Progress) -> bool {
        if self.policies.iter().any(|tally| tally.failed()) {
            return false;
        }
        if self.raised.is_none() && self.asked.elapsed() >= BETWEEN {
            self.raised = pending();
            self.asked = Instant::now();
        }
        self.raised.is_none()
    }
}

/// Watches many trials, which run in threads of their own.
struct Stop(AtomicBool);

impl Watch for Stop {
    fn go_on(&self) -> bool {
        !self.0.load(Ordering::Relaxed)
    }
}

/// Does `work` in another thread without the interpreter's lock, and stops it when the interpreter
/// has something to raise.
pub(crate) fn interruptible<T: Send>(
    py: Python<'_>,
    work: impl FnOnce(&dyn Watch) -> Result<T, Failure> + Send,
) -> PyResult<T> {
    let stop = Stop(AtomicBool::new(false));
    let mut raised = None;
    let done = py.detach(|| {
        std::thread::scope(|scope| {
            let (tell, told) = channel();
            let (stop, raised) = (&stop, &mut raised);
            scope.spawn(move || drop(tell.send(caught(|| work(stop)))));
            loop {
                match told.recv_timeout(BETWEEN) {
                    Ok(done) => return Some(done),
                    Err(RecvTimeoutError::Disconnected) => return None,
                    Err(RecvTimeoutError::Timeout) if raised.is_none() => {
                        *raised = pending();
                        stop.0.store(raised.is_some(), Ordering::Relaxed);
                    }
                    Err(RecvTimeoutError::Timeout) => {}
                }
            }
        })
    });
    match (raised, done) {
        (Some(error), _) => Err(error),
        (None, Some(done)) => done.map_err(|failure| crate::failure::lab(py, &failure)),
        (None, None) => Err(crate::failure::plain(py, "InternalError", "a worker thread died")),
    }
}
