//! How long runs are, and what is left out of them.
//!
//! A claim about requests that come at a steady rate is one about the steady state. So runs are
//! doubled until the numbers of requests inside are steady wherever a claim is about latencies,
//! first by a pilot of each cell and then by all seeds of the first look; arms that are compared
//! stay of one length. A study that says what to leave out needs no pilot. Scenarios that end by
//! themselves (traces, ramps, horizons) are run as they are written.

use super::Study;
use crate::design::{PILOT_SEED, Warmup};
use crate::failure::Failure;
use crate::metric::Metric;
use crate::trial::Runner;
use crate::verdict::cells_of_latencies;
use blis_core::math::{float, ln};
use blis_metrics::{Saturation, Steady};
use blis_scenario::row::Row;
use blis_scenario::scenario::Plan;
use std::collections::BTreeMap;

/// The most requests of a run that is made longer, for each instance, and by how much it is at
/// most.
const MOST_PER_INSTANCE: u64 = 32_000;
const MOST_TIMES: u64 = 16;
/// The same where arms are only ranked: who has not settled then is left out.
const MOST_TIMES_RANKED: u64 = 4;
/// Runs whose mean number of requests inside is less certain than this, as a standard deviation of
/// its logarithm, are too short. A queue that forgets after t requests makes the means of runs of n
/// requests differ by about the root of 2 t / n, and an empty start makes them too low by about
/// t / n: 0.7 % for this. Tails are further off (a test says how far), and two arms on the same
/// requests share most of that.
const MOST_NOISE: f64 = 0.12;
/// Correlations of 20 numbers come out too small by about this.
const CORRELATION_LOW: f64 = 0.1;

/// How long runs are, and what is left out of them.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Lengths {
    /// What is left out of each run, in s; `None`: what the scenarios say.
    pub warmup: Option<f64>,
    /// How many times as long as written the runs of each cell are; empty: no longer.
    pub times: Vec<u64>,
}

impl Lengths {
    /// How many times as long as written the runs of `cell` are.
    pub fn of(&self, cell: usize) -> u64 {
        self.times.get(cell).copied().unwrap_or(1)
    }
}

/// Whether the cluster kept up in these runs of one cell: what half of them say, or worse; `None`
/// if nobody knows.
pub(crate) fn load(rows: &[Row]) -> Option<Saturation> {
    let mut all: Vec<Saturation> = rows.iter().filter_map(|row| row.report.saturation).collect();
    all.sort_unstable();
    all.get(all.len().saturating_sub(1) / 2).copied()
}

/// Whether these runs of one cell were too short to be steady, and not for an overload: each of
/// them moves as a whole, or what they say differs too much.
pub(super) fn are_too_short(rows: &[Row]) -> bool {
    let steady = rows.iter().map(|row| &row.report.steady);
    load(rows) != Some(Saturation::Overloaded)
        && (Steady::are_too_short(steady) || within(rows).max(between(rows)) > MOST_NOISE)
}

/// The standard deviation of the mean number of requests inside, as a share of it, by how it moves
/// from one twentieth of a run to the next. Quiet runs by chance look alike, but not inside.
fn within(rows: &[Row]) -> f64 {
    let n = float(rows.len().max(1) as u64);
    let mean = |of: fn(&Steady) -> Option<f64>| {
        rows.iter().filter_map(|row| of(&row.report.steady)).sum::<f64>() / n
    };
    // A run's halves differ by twice the error of the whole.
    let variance = mean(|steady| steady.drift_error.map(|error| error * error / 4.0));
    let r = (mean(|steady| steady.batch_correlation) + CORRELATION_LOW).clamp(0.0, 0.95);
    (variance * (1.0 + r) / (1.0 - r)).sqrt()
}

/// The same by how much runs differ; 0 for fewer than three.
fn between(rows: &[Row]) -> f64 {
    let inside = rows.iter().filter_map(|row| row.report.mean_in_system);
    let logs: Vec<f64> = inside.filter(|&mean| mean > 0.0).map(ln).collect();
    if logs.len() < 3 {
        return 0.0;
    }
    let n = float(logs.len() as u64);
    let mean = logs.iter().sum::<f64>() / n;
    (logs.iter().map(|log| (log - mean) * (log - mean)).sum::<f64>() / (n - 1.0)).sqrt()
}

impl Study {
    /// Finds with a pilot of each cell, whose seed is no other's, how long its runs must be and
    /// what to leave out of them: the longest that any needs, the same for all but those whose arm,
    /// workload or swept values say it themselves.
    ///
    /// # Errors
    /// The failure of the first run, in their order, that failed.
    pub fn lengths(&self, runner: &Runner<'_>) -> Result<Lengths, Failure> {
        let mut lengths = Lengths { warmup: None, times: vec![1; self.cells.len()] };
        match self.warmup {
            Warmup::Given => return Ok(lengths),
            Warmup::Seconds(seconds) => {
                return Ok(Lengths { warmup: Some(seconds), ..lengths });
            }
            Warmup::Auto => {}
        }
        let claimed = cells_of_latencies(&self.hypotheses, &self.design);
        let mut rows: Vec<Vec<Row>> = vec![Vec::new(); self.cells.len()];
        let own = |cell: usize| self.cells[cell].own_warmup;
        let mut open: Vec<usize> =
            (0..rows.len()).filter(|&cell| claimed.contains(&cell) || !own(cell)).collect();
        while !open.is_empty() {
            let plans = self.plans(&lengths);
            let trials: Vec<(&Plan, u64)> =
                open.iter().map(|&cell| (&plans[cell], PILOT_SEED)).collect();
            for (&cell, row) in open.iter().zip(runner.rows(&trials)?) {
                rows[cell] = vec![row];
            }
            open = self.lengthen(&mut lengths, &rows);
        }
        // A cell that grows without bound never settles: what it would leave out says nothing.
        let grows = |cell: usize, rows: &[Row]| {
            self.cells[cell].plan.is_above_saturation()
                || load(rows) == Some(Saturation::Overloaded)
        };
        let shared =
            rows.iter().enumerate().filter(|&(cell, rows)| !own(cell) && !grows(cell, rows));
        let cuts = shared.flat_map(|(_, rows)| rows).filter_map(|row| row.report.steady.warmup_s);
        // To the millisecond, so that it can be written down.
        lengths.warmup = Some((cuts.fold(0.0, f64::max) * 1e3).ceil() / 1e3);
        self.outlast(&mut lengths);
        Ok(lengths)
    }

    /// Doubles runs of which less than half would count, with all that they are compared with.
    pub(super) fn outlast(&self, lengths: &mut Lengths) {
        let least = 2.0 * lengths.warmup.unwrap_or(0.0);
        let is_short = |&cell: &usize, times: u64| {
            let lasts = self.cells[cell].plan.arrivals_s().map(|one| one * float(times));
            !self.cells[cell].own_warmup && lasts.is_some_and(|seconds| seconds < least)
        };
        for place in self.places().into_iter().filter(|_| self.wants_steady()) {
            for cell in &place {
                while is_short(cell, lengths.of(*cell)) && lengths.of(*cell) < MOST_TIMES {
                    for &cell in &place {
                        lengths.times[cell] *= 2;
                    }
                }
            }
        }
    }

    /// Whether the cluster kept up in these runs of `cell`. Runs that should be steady and are too
    /// short do not tell.
    pub(super) fn load_in(&self, rows: &[Row], cell: usize) -> Option<Saturation> {
        let known = load(rows);
        let doubtful = known == Some(Saturation::Stable) && self.is_unsettled(rows, cell);
        if doubtful { Some(Saturation::Growing) } else { known }
    }

    /// Whether these runs of `cell` should be steady and are too short.
    pub(super) fn is_unsettled(&self, rows: &[Row], cell: usize) -> bool {
        self.cells[cell].plan.steady_requests().is_some()
            && self.wants_steady()
            && are_too_short(rows)
    }

    /// Whether it asks about the steady state.
    pub(super) fn wants_steady(&self) -> bool {
        self.warmup != Warmup::Given && !self.as_written
    }

    /// Doubles the runs of cells that were too short, and of those that they are compared with, as
    /// far as that is allowed. The value is the cells that must be run again.
    pub(super) fn lengthen(&self, lengths: &mut Lengths, rows: &[Vec<Row>]) -> Vec<usize> {
        if self.hypotheses.is_empty() || !self.wants_steady() {
            return Vec::new();
        }
        let fits = |cell: usize, most_times: u64| {
            let plan = &self.cells[cell].plan;
            let times = 2 * lengths.of(cell);
            let most = MOST_PER_INSTANCE * u64::from(plan.instances);
            let fits = |requests: u64| requests.saturating_mul(times) <= most;
            times <= most_times && plan.steady_requests().is_some_and(fits)
        };
        let claimed = cells_of_latencies(&self.hypotheses, &self.design);
        let ranks = self.ranked_by().is_some_and(Metric::is_latency);
        let is_short = |cells: &Vec<usize>| {
            // Above saturation no length that is allowed makes a difference.
            let grows = |&&cell: &&usize| {
                self.load_in(&rows[cell], cell) == Some(Saturation::Growing)
                    && !self.cells[cell].plan.is_above_saturation()
            };
            let short = |cell: &usize| claimed.contains(cell) && are_too_short(&rows[*cell]);
            let all_fit = |most_times| cells.iter().all(|&cell| fits(cell, most_times));
            // One bad arm that just does not keep up is no reason.
            let most_grow = || 2 * cells.iter().filter(grows).count() > cells.len();
            cells.iter().any(short) && all_fit(MOST_TIMES)
                || ranks && all_fit(MOST_TIMES_RANKED) && most_grow()
        };
        let again: Vec<usize> = self.places().into_iter().filter(is_short).flatten().collect();
        for &cell in &again {
            lengths.times[cell] *= 2;
        }
        again
    }

    /// Its cells, those together that differ in their arms alone.
    pub(super) fn places(&self) -> Vec<Vec<usize>> {
        let arm = self.design.factor("arm");
        let mut places: BTreeMap<Vec<usize>, Vec<usize>> = BTreeMap::new();
        for cell in 0..self.cells.len() {
            let mut levels = self.design.levels(cell);
            if let Some(arm) = arm {
                levels[arm] = 0;
            }
            places.entry(levels).or_default().push(cell);
        }
        places.into_values().collect()
    }

    /// The scenarios of its cells at these lengths.
    pub fn plans(&self, lengths: &Lengths) -> Vec<Plan> {
        let plan = |cell: usize| {
            let plan = self.plan(cell, lengths.warmup);
            match (lengths.of(cell), plan.steady_requests()) {
                (times @ 2.., Some(requests)) => plan.with_requests(times * requests),
                _ => plan,
            }
        };
        (0..self.cells.len()).map(plan).collect()
    }
}
