//! Ctrl-C: once asks the run to stop and shows what there is, twice leaves at once.

use crate::failure::INTERRUPTED;
use crate::output;
use blis_sim::{Observer, Progress};
use std::sync::atomic::{AtomicBool, Ordering};

static ASKED: AtomicBool = AtomicBool::new(false);

/// Starts listening. Without a handler (a system that has none) Ctrl-C ends the program as usual.
pub(crate) fn listen() {
    let _ = ctrlc::set_handler(|| {
        if ASKED.swap(true, Ordering::SeqCst) {
            leave();
        }
    });
}

/// Whether the run was asked to stop.
pub(crate) fn asked() -> bool {
    ASKED.load(Ordering::Relaxed)
}

#[expect(clippy::exit, reason = "the second Ctrl-C means now, whatever the other threads do")]
fn leave() {
    output::remove_unfinished();
    std::process::exit(INTERRUPTED.into());
}

/// Stops a run on Ctrl-C.
pub(crate) struct Interruptible;

impl Observer for Interruptible {
    fn go_on(&mut self, _: Progress) -> bool {
        !asked()
    }
}
