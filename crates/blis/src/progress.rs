//! Watches a run: shows a bar when it takes long, and stops it on Ctrl-C.

use crate::clock::Stopwatch;
use crate::interrupt;
use crate::output;
use blis_lab::trial::{self, Watch as _};
use blis_sim::{Observer, Progress};
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use std::io::IsTerminal;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, OnceLock, PoisonError};

/// Runs shorter than this show no bar.
const PATIENCE_SECONDS: f64 = 0.5;

/// Whether long runs show a bar.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Bar {
    /// To people who look at a terminal.
    OnTerminals,
    /// To nobody.
    Hidden,
}

impl Bar {
    fn is_wanted(self) -> bool {
        self == Bar::OnTerminals && std::io::stderr().is_terminal()
    }
}

/// The observer of a run.
pub(crate) struct Watch {
    started: Stopwatch,
    expected: Option<u64>,
    wanted: bool,
    bar: Option<ProgressBar>,
}

impl Watch {
    /// Watches a run of `expected` requests.
    pub(crate) fn new(expected: Option<u64>, bar: Bar) -> Watch {
        let wanted = bar.is_wanted();
        Watch { started: Stopwatch::start(), expected, wanted, bar: None }
    }

    fn show(&mut self, progress: Progress) {
        let expected = self.expected;
        let bar = self.bar.get_or_insert_with(|| new_bar(expected));
        bar.set_position(progress.closed);
        bar.set_message(format!("{:.1} simulated seconds", progress.now.as_secs_f64()));
    }
}

impl Observer for Watch {
    fn go_on(&mut self, progress: Progress) -> bool {
        if self.wanted && self.started.wall_seconds() > PATIENCE_SECONDS {
            self.show(progress);
        }
        !interrupt::asked()
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        if let Some(bar) = &self.bar {
            bar.finish_and_clear();
        }
    }
}

fn new_bar(expected: Option<u64>) -> ProgressBar {
    match expected {
        Some(requests) => styled(
            ProgressBar::new(requests),
            "{bar:30} {human_pos}/{human_len} requests, {msg}, {eta} left",
        ),
        None => styled(ProgressBar::no_length(), "{spinner} {human_pos} requests, {msg}"),
    }
}

fn styled(bar: ProgressBar, template: &str) -> ProgressBar {
    bar.set_draw_target(ProgressDrawTarget::stderr());
    bar.set_style(ProgressStyle::with_template(template).expect("the template is legal"));
    bar
}

/// Watches several runs at once: one bar for all of them.
pub(crate) struct Trials {
    started: Stopwatch,
    wanted: bool,
    count: u64,
    bar: OnceLock<ProgressBar>,
    done: AtomicU64,
    about: Mutex<String>,
}

/// The observer of one of several runs.
pub(crate) struct TrialWatch<'a> {
    trials: &'a Trials,
}

impl Trials {
    /// Watches `count` runs.
    pub(crate) fn new(count: u64, bar: Bar) -> Trials {
        let wanted = bar.is_wanted();
        let (bar, done, about) = (OnceLock::new(), AtomicU64::new(0), Mutex::default());
        Trials { started: Stopwatch::start(), wanted, count, bar, done, about }
    }

    /// Says what is run from now on, where there are several things.
    pub(crate) fn turn_to(&self, what: &str) {
        let what = format!("{what}, ");
        *self.about.lock().unwrap_or_else(PoisonError::into_inner) = what;
    }

    /// Tells the user something without tearing the bar apart.
    pub(crate) fn tell(&self, line: &str) {
        match self.bar.get() {
            Some(bar) => bar.suspend(|| output::note(line)),
            None => output::note(line),
        }
    }

    /// The observer of one of them.
    pub(crate) fn watch(&self) -> TrialWatch<'_> {
        TrialWatch { trials: self }
    }
}

impl Observer for TrialWatch<'_> {
    fn go_on(&mut self, _: Progress) -> bool {
        !interrupt::asked()
    }
}

impl Drop for TrialWatch<'_> {
    fn drop(&mut self) {
        self.trials.finished();
    }
}

impl trial::Watch for Trials {
    fn go_on(&self) -> bool {
        !interrupt::asked()
    }

    fn finished(&self) {
        let done = self.done.fetch_add(1, Ordering::Relaxed) + 1;
        if self.wanted && self.started.wall_seconds() > PATIENCE_SECONDS {
            let bar = self.bar.get_or_init(|| {
                let template = "{bar:30} {human_pos}/{human_len} runs, {msg}{eta} left";
                styled(ProgressBar::new(self.count), template)
            });
            bar.set_message(self.about.lock().unwrap_or_else(PoisonError::into_inner).clone());
            // Seeds are added while hypotheses are open.
            bar.set_length(done.max(self.count));
            bar.set_position(done);
        }
    }
}

impl Drop for Trials {
    fn drop(&mut self) {
        if let Some(bar) = self.bar.get() {
            bar.finish_and_clear();
        }
    }
}
