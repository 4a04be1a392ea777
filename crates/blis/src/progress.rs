//! Watches a run: shows a bar when it takes long, and stops it on Ctrl-C.

use crate::clock::Stopwatch;
use crate::interrupt;
use crate::output;
use blis_core::math::float;
use blis_lab::Metric;
use blis_lab::study::{Cell, Study};
use blis_lab::trial::{self, Watch as _};
use blis_lab::verdict::number;
use blis_report::text::grouped;
use blis_scenario::{Plan, Row};
use blis_sim::{Observer, Progress};
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use std::collections::BTreeMap;
use std::io::IsTerminal;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};

/// Runs shorter than this show no bar.
const PATIENCE_SECONDS: f64 = 0.5;
/// Where nobody looks at a terminal, a line is written so often.
const LINE_SECONDS: f64 = 15.0;

/// The observer of a run.
pub(crate) struct Watch {
    started: Stopwatch,
    expected: Option<u64>,
    wanted: bool,
    bar: Option<ProgressBar>,
}

impl Watch {
    /// Watches a run of `expected` requests, with a bar on a terminal unless `quiet`.
    pub(crate) fn new(expected: Option<u64>, quiet: bool) -> Watch {
        let wanted = !quiet && std::io::stderr().is_terminal();
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

/// Watches several runs at once: one bar for all of them, or a line now and then where nobody looks
/// at a terminal.
pub(crate) struct Trials {
    started: Stopwatch,
    shown: Shown,
    /// How many runs there are, as far as that is known beforehand.
    count: u64,
    /// How many there are, as they are needed.
    needed: AtomicU64,
    /// How many of them were known.
    known: AtomicU64,
    /// How many of them are done, those that were known included.
    done: AtomicU64,
    bar: OnceLock<ProgressBar>,
    /// When the last line was written.
    told: Mutex<f64>,
    /// What is run, where there are several things.
    about: Mutex<String>,
    standing: Mutex<Option<Standing>>,
}

/// How progress is shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Shown {
    /// By a bar.
    Bar,
    /// By a line now and then.
    Lines,
    /// Not at all.
    Nowhere,
}

/// The observer of one of several runs.
pub(crate) struct TrialWatch<'a> {
    trials: &'a Trials,
}

impl Trials {
    /// Watches `count` runs, and more if more are needed; shows nothing if `quiet`.
    pub(crate) fn new(count: u64, quiet: bool) -> Trials {
        let shown = match quiet {
            true => Shown::Nowhere,
            false if std::io::stderr().is_terminal() => Shown::Bar,
            false => Shown::Lines,
        };
        Trials {
            started: Stopwatch::start(),
            shown,
            count,
            needed: AtomicU64::new(0),
            known: AtomicU64::new(0),
            done: AtomicU64::new(0),
            bar: OnceLock::new(),
            told: Mutex::new(0.0),
            about: Mutex::default(),
            standing: Mutex::default(),
        }
    }

    /// Says from now on who is best so far.
    pub(crate) fn compare(&self, standing: Option<Standing>) {
        *lock(&self.standing) = standing;
    }

    /// Says what is run from now on, where there are several things.
    pub(crate) fn turn_to(&self, what: &str) {
        *lock(&self.about) = if what.is_empty() { String::new() } else { format!("{what}, ") };
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

    fn show(&self) {
        let seconds = self.started.wall_seconds();
        match self.shown {
            Shown::Bar if seconds > PATIENCE_SECONDS => {
                let (done, total) = self.count();
                let bar =
                    self.bar.get_or_init(|| styled(ProgressBar::new(total), "{bar:20} {msg}"));
                bar.set_length(total);
                bar.set_position(done);
                bar.set_message(self.text(seconds));
            }
            Shown::Lines => {
                let mut told = lock(&self.told);
                if seconds > *told + LINE_SECONDS {
                    *told = seconds;
                    output::note(&self.text(seconds));
                }
            }
            Shown::Bar | Shown::Nowhere => {}
        }
    }

    /// How many are done, of how many.
    fn count(&self) -> (u64, u64) {
        let done = self.done.load(Ordering::Relaxed);
        let needed = self.needed.load(Ordering::Relaxed);
        (done, self.count.max(needed).max(done))
    }

    /// How far it has come, after so many seconds.
    fn text(&self, seconds: f64) -> String {
        let (done, total) = self.count();
        let run = done - self.known.load(Ordering::Relaxed).min(done);
        let left = left(seconds, run, total - done);
        let left = left.map_or_else(String::new, |left| format!(", {} left", spoken(left)));
        let best = lock(&self.standing).as_ref().and_then(Standing::best);
        let best = best.map_or_else(String::new, |best| format!("; {best}"));
        let about = lock(&self.about).clone();
        format!("{about}{}/{} runs{left}{best}", grouped(done), grouped(total))
    }
}

/// What a mutex holds, whatever became of who held it before.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// How many seconds `left` runs still take if `run` of them took `seconds`; what was known before
/// took none.
fn left(seconds: f64, run: u64, left: u64) -> Option<f64> {
    (run > 0).then(|| seconds / float(run) * float(left))
}

/// Seconds in words.
fn spoken(seconds: f64) -> String {
    match seconds {
        less if less < 90.0 => format!("{less:.0} s"),
        less if less < 5_400.0 => format!("{:.0} min", less / 60.0),
        more => format!("{:.1} h", more / 3_600.0),
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

    fn needs(&self, trials: usize) {
        self.needed.fetch_add(trials as u64, Ordering::Relaxed);
    }

    fn takes_over(&self, trials: usize) {
        if self.shown != Shown::Nowhere {
            self.tell(&format!(
                "note: another process on this ledger has stopped; its {trials} runs are run here"
            ));
        }
    }

    fn known(&self, trials: usize) {
        self.known.fetch_add(trials as u64, Ordering::Relaxed);
        self.done.fetch_add(trials as u64, Ordering::Relaxed);
    }

    fn finished(&self) {
        self.done.fetch_add(1, Ordering::Relaxed);
        self.show();
    }

    fn measures(&self, what: &str) {
        self.turn_to(&format!("measuring saturation of {what}"));
        self.show();
        self.turn_to("");
    }

    fn compares(&self, plans: &[Plan]) {
        if let Some(standing) = &mut *lock(&self.standing) {
            for (cell, plan) in standing.cells.iter_mut().zip(plans) {
                // Pilots may have told something of the scenario before.
                *cell = Standings { scenario: plan.hash(), sum: 0.0, runs: 0, ..cell.clone() };
            }
        }
    }

    fn row(&self, plan: &Plan, row: &Row) {
        if let Some(standing) = &mut *lock(&self.standing) {
            standing.add(plan, row);
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

/// Which arm is best so far. Arms are compared where all else is the same.
pub(crate) struct Standing {
    metric: Metric,
    less: bool,
    cells: Vec<Standings>,
}

/// What is known of a cell.
#[derive(Clone, Debug)]
struct Standings {
    scenario: String,
    arm: String,
    /// What else it differs from others in.
    place: String,
    sum: f64,
    runs: u64,
}

impl Standing {
    /// That of the arms of `study` by its first number that a run has; `None` if nobody can say
    /// which of them is best.
    pub(crate) fn of(study: &Study) -> Option<Standing> {
        let metric = *study.metrics.iter().find(|metric| !metric.is_searched())?;
        let arm = study.factors.iter().position(|factor| factor == "arm")?;
        let cell = |cell: &Cell| {
            let mut place = cell.levels.clone();
            let arm = place.remove(arm);
            Standings {
                scenario: cell.plan.hash(),
                arm,
                place: place.join(", "),
                sum: 0.0,
                runs: 0,
            }
        };
        let cells = study.cells.iter().map(cell).collect();
        Some(Standing { metric, less: metric.less_is_better()?, cells })
    }

    fn add(&mut self, plan: &Plan, row: &Row) {
        let Some(value) = self.metric.of_run(row) else { return };
        let scenario = plan.hash();
        for cell in self.cells.iter_mut().filter(|cell| cell.scenario == scenario) {
            cell.sum += value;
            cell.runs += 1;
        }
    }

    /// The arm that is best in most places, in words.
    fn best(&self) -> Option<String> {
        let mut winners: BTreeMap<&str, (&Standings, u64)> = BTreeMap::new();
        for cell in self.cells.iter().filter(|cell| cell.runs > 0) {
            let best = winners.entry(&cell.place).or_insert((cell, 0));
            best.1 += 1;
            let better =
                if self.less { cell.mean() < best.0.mean() } else { cell.mean() > best.0.mean() };
            if better {
                best.0 = cell;
            }
        }
        // Alone, an arm is not the best of anything.
        let contested: Vec<&Standings> =
            winners.values().filter(|(_, arms)| *arms > 1).map(|(best, _)| *best).collect();
        let wins = |arm: &str| contested.iter().filter(|best| best.arm == arm).count();
        let best = contested.iter().rev().max_by_key(|best| wins(&best.arm))?;
        let name = self.metric.name();
        let value = match &contested[..] {
            [one] => format!("{} {}", number(one.mean()), self.metric.unit()).trim_end().to_owned(),
            all => format!("in {} of {} places", wins(&best.arm), all.len()),
        };
        Some(format!("best {name} so far: {}, {value}", best.arm))
    }
}

impl Standings {
    fn mean(&self) -> f64 {
        self.sum / float(self.runs)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cell(arm: &str, place: &str, values: &[f64]) -> Standings {
        let (arm, place) = (arm.to_owned(), place.to_owned());
        let runs = values.len() as u64;
        Standings { scenario: String::new(), arm, place, sum: values.iter().sum(), runs }
    }

    fn standing(metric: &str, cells: Vec<Standings>) -> Standing {
        let metric = Metric::parse(metric).expect("known");
        Standing { metric, less: metric.less_is_better().expect("known"), cells }
    }

    #[test]
    fn the_total_grows_when_more_seeds_are_needed() {
        let trials = Trials::new(10, true);
        trials.needs(8);
        trials.known(3);
        assert_eq!(trials.count(), (3, 10), "more was announced than is needed so far");
        trials.needs(8);
        trials.finished();
        assert_eq!(trials.count(), (4, 16));
        assert_eq!(trials.text(2.0), "4/16 runs, 24 s left", "what was known took no time");
    }

    #[test]
    fn the_time_left_is_told_in_words() {
        assert_eq!(left(5.0, 0, 3), None);
        assert_eq!([3.4, 89.0, 100.0, 7_200.0].map(spoken), ["3 s", "89 s", "2 min", "2.0 h"]);
    }

    #[test]
    fn the_best_arm_is_told_where_arms_can_be_compared() {
        let two = || vec![cell("a", "", &[3.0, 5.0]), cell("b", "", &[3.9])];
        let best = |metric| standing(metric, two()).best();
        let expected = format!("best ttft_mean so far: b, {} ms", number(3.9));
        assert_eq!(best("ttft_mean"), Some(expected));
        assert_eq!(best("hit_rate"), Some(format!("best hit_rate so far: a, {}", number(4.0))));
        let alone = vec![cell("a", "", &[3.0]), cell("b", "", &[])];
        assert_eq!(standing("ttft_mean", alone).best(), None);
        let mut places = two();
        places.extend([cell("a", "busy", &[1.0]), cell("b", "busy", &[2.0])]);
        places.extend([cell("a", "calm", &[2.0]), cell("b", "calm", &[1.0])]);
        let found = standing("ttft_mean", places).best();
        assert_eq!(found.as_deref(), Some("best ttft_mean so far: b, in 2 of 3 places"));
    }
}
