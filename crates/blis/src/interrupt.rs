//! Ctrl-C and SIGTERM: what runs is asked to stop and shows what there is. A command that does not
//! look, and a second Ctrl-C, end the program at once.

use crate::failure::INTERRUPTED;
use crate::output;
use blis_sim::{Observer, Progress};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

static ASKED: AtomicBool = AtomicBool::new(false);
static SEEN: AtomicBool = AtomicBool::new(false);

/// How long a command has to notice.
const PATIENCE: Duration = Duration::from_millis(800);

/// Starts listening. Without a handler (a system that has none) Ctrl-C ends the program as usual.
pub(crate) fn listen() {
    let _ = ctrlc::set_handler(|| {
        if ASKED.swap(true, Ordering::SeqCst) {
            leave();
        }
        std::thread::sleep(PATIENCE);
        if !SEEN.load(Ordering::SeqCst) {
            output::note("error: interrupted");
            leave();
        }
    });
}

/// Whether the program was asked to stop. Whoever looks must stop then.
pub(crate) fn asked() -> bool {
    let asked = ASKED.load(Ordering::Relaxed);
    if asked {
        SEEN.store(true, Ordering::SeqCst);
    }
    asked
}

#[expect(clippy::exit, reason = "it means now, whatever the other threads do")]
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
