//! How good the predictions are all together: whether intervals hold what was measured without
//! being wide, and how much a profile says about workloads of another kind.

use super::numbers::find;
use super::{Cell, Compared, Metric, Options, Quantity, Statistic, numbers_of};
use crate::measured::{Measured, first_runs};
use crate::replay::{plan, replay};
use blis_latency::fit::beyond::{Beyond, beyond as fits_beyond};
use blis_latency::fit::log::Run;
use blis_latency::fit::{Options as FitOptions, fit};
use blis_latency::profile::term::Site;
use blis_scenario::run::RunFailure;
use std::sync::Arc;

/// How many intervals hold.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Coverage {
    /// Numbers with an interval and something measured.
    pub cells: u32,
    /// Those whose interval has what was measured in it.
    pub covered: u32,
    /// Those whose interval is no wider than twice the spread of repeated runs and 10 %.
    pub narrow: u32,
}

/// How far off predictions may be, as shares.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Bounds([(Metric, Statistic, f64); 3]);

impl Bounds {
    const fn of(ttft_mean: f64, ttft_p99: f64, e2e_mean: f64) -> Bounds {
        Bounds([
            (Metric::Ttft, Statistic::Mean, ttft_mean),
            (Metric::Ttft, Statistic::P99, ttft_p99),
            (Metric::E2e, Statistic::Mean, e2e_mean),
        ])
    }

    /// Of runs on a machine that was fitted to.
    pub const SEEN: Bounds = Bounds::of(0.08, 0.15, 0.04);

    /// Of runs on another machine.
    pub const UNSEEN: Bounds = Bounds::of(0.1, 0.2, 0.05);

    /// Of runs at saturation, where 1 % of step time is 20 to 40 % of TTFT.
    pub const SATURATED: Bounds = Bounds::of(0.3, f64::INFINITY, 0.1);

    /// Of runs whose KV cache is far too small.
    pub const TIER: Bounds = Bounds::of(0.2, f64::INFINITY, f64::INFINITY);

    /// Those of a measured workload, by its name; the others are `usual`.
    pub fn of_workload(name: &str, usual: Bounds) -> Bounds {
        match name {
            name if name.starts_with("prefix80") => Bounds::SATURATED,
            name if name.starts_with("tier8") => Bounds::TIER,
            _ => usual,
        }
    }

    /// Those of `cells` that are farther off.
    pub fn missed(self, cells: &[Cell]) -> Vec<Cell> {
        let missed = |(metric, statistic, most): (Metric, Statistic, f64)| {
            let wanted = Quantity::Latency(metric, statistic);
            let cell = cells.iter().find(|cell| cell.quantity == wanted)?;
            (cell.error()?.abs() > most).then(|| cell.clone())
        };
        self.0.into_iter().filter_map(missed).collect()
    }
}

/// How many intervals of `all` hold.
pub fn coverage(all: &[Compared]) -> Coverage {
    let mut found = Coverage::default();
    for compared in all {
        for cell in &compared.cells {
            let (Some(covered), Some(width)) = (cell.is_covered(), cell.width()) else { continue };
            found.cells += 1;
            found.covered += u32::from(covered);
            found.narrow += u32::from(width <= widest(all, cell));
        }
    }
    found
}

/// How wide an interval may be, relative to what was measured: twice the spread of repeated runs
/// and 10 %.
pub fn widest(all: &[Compared], cell: &Cell) -> f64 {
    let spread = cell.spread().map_or_else(|| usual_spread(all, cell.quantity), f64::abs);
    2.0 * spread + 0.1
}

/// Mean spread of a number over the workloads that were run twice; what a workload that was run
/// once is taken to have.
fn usual_spread(all: &[Compared], quantity: Quantity) -> f64 {
    let cells = all.iter().flat_map(|compared| &compared.cells);
    let spreads = cells.filter(|cell| cell.quantity == quantity).filter_map(Cell::spread);
    let (sum, count) =
        spreads.fold((0.0, 0_u32), |(sum, count), spread| (sum + spread.abs(), count + 1));
    if count == 0 { 0.0 } else { sum / f64::from(count) }
}

/// What a fit to one workload and to pure steps says about another workload.
#[derive(Clone, Debug, PartialEq)]
pub struct Transfer {
    /// The workload that was fitted to.
    pub from: String,
    /// The workload that was predicted.
    pub to: String,
    /// Relative error of the mean E2E.
    pub e2e_mean: f64,
}

/// Fits to each workload alone, with those steps measured apart that only decode or only prefill,
/// and predicts all others.
///
/// # Errors
/// As [`super::validate`].
pub fn transfer(
    measured: &[Measured],
    runs: &[Run],
    options: &Options,
) -> Result<Vec<Transfer>, RunFailure> {
    let first = first_runs(measured);
    let mut found = Vec::new();
    for from in &first {
        let mut seen: Vec<Run> = runs.iter().filter(|run| run.name == from.name).cloned().collect();
        seen.extend(runs.iter().filter(|run| run.site == Site::Bare).map(pure));
        let fit_options = FitOptions::of(options.padding.clone());
        // A run that shows too few steps says nothing of the others.
        let Ok(profile) = fit(&seen, &fit_options).map(Arc::new) else { continue };
        for to in first.iter().filter(|to| to.name != from.name) {
            let fared = replay(&plan(to, &options.server)?, profile.clone())?;
            let mean = Quantity::Latency(Metric::E2e, Statistic::Mean);
            let predicted = find(&numbers_of(&fared), mean);
            let truth = find(&numbers_of(&to.fared()), mean);
            if let (Some(predicted), Some(truth)) = (predicted, truth) {
                let e2e_mean = predicted / truth - 1.0;
                found.push(Transfer { from: from.name.clone(), to: to.name.clone(), e2e_mean });
            }
        }
    }
    Ok(found)
}

/// How far fits are off on steps of a kind that they have not seen.
///
/// # Errors
/// If `runs` are too little to fit to.
pub fn beyond(runs: &[Run], options: &Options) -> Result<Vec<Beyond>, RunFailure> {
    fits_beyond(runs, &FitOptions::of(options.padding.clone())).map_err(super::refused)
}

/// The steps of a run that only decode or only prefill.
fn pure(run: &Run) -> Run {
    let mut run = run.clone();
    run.rows.retain(|row| row.shape.only_decodes() || row.shape.decode_seqs == 0);
    run
}
