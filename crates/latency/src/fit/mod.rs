//! Fits the `profile` model to measured steps.
//!
//! Weighted least squares of the relative error with coefficients that are not negative, with
//! weights that make it nearly the mean absolute error, so that a step interrupted by something
//! else does not bend the fit. Every workload weighs the same, however long its run. Deterministic:
//! the same rows give the same bits.

pub mod beyond;
pub mod efficiency;
pub mod judge;
pub mod log;
pub mod nnls;
pub mod resample;

use crate::profile::padding::Padding;
use crate::profile::term::{
    Features, HOST_CONTEXT, HOST_SEQ, KV_READ, KV_READ_SHARED, Lens, Site, TERMS,
};
use crate::profile::{Gap, Parameters, Profile, Range, VARIABLES, variables};
use crate::shape::StepShape;
use blis_core::math::float;
use log::{Row, Run};
use nnls::Normal;

/// Rounds of weights; the coefficients move by less than 0.1 % in the last.
const ROUNDS: usize = 10;

/// Relative errors below this weigh alike: about the noise of one step.
const FLOOR: f64 = 0.02;

/// A padded size counts as if so many more steps said that it is like its neighbours, so that one
/// interrupted step of a rare size is not taken for the size.
const PRIOR_STEPS: f64 = 4.0;

/// The same for a size that was measured apart, which was not interrupted: a median says more about
/// the size than its neighbours do. If it did not, a fit to a workload that did not meet a slow
/// size would take the one row that says so for an outlier.
const APART_PRIOR_STEPS: f64 = 0.2;

/// What a context token takes that another sequence of the batch reads too, as a share of one that
/// none does: it comes from the GPU's cache instead of its memory. Measured apart, by a paged
/// kernel on an H200 (`data/h200/shared_reads.csv`).
const SHARED_READ: f64 = 0.62;

/// That counts as if so many more steps said it. In a workload in which everybody shares the same
/// prefix, what sharing saves can hardly be told from what a sequence costs, and without a
/// preference a fit to that workload alone gives all to one and takes it from the other.
const SHARING_PRIOR_STEPS: f64 = 100.0;

/// As if so many more steps said that the host does nothing by the sequence, and as many that it
/// does nothing by the context. In one workload contexts are alike, so that the two cannot be told
/// apart; without a preference a fit gives all to one, and is wrong where contexts are longer or
/// sequences more.
const HOST_PRIOR_STEPS: f64 = 50.0;

/// Rows in a block whose errors may depend on one another, for the covariance.
const BLOCK: usize = 64;

/// Longer gaps are interruptions, not the server's habit; in microseconds.
const LONGEST_GAP_US: f64 = 2000.0;

/// Below this share of all context, what is shared says nothing.
const SHARED_SHARE: f64 = 0.02;

/// How to fit.
#[derive(Clone, Debug, PartialEq)]
pub struct Options {
    /// How the server pads its batches.
    pub padding: Padding,
    /// Share of the weight that all steps without a server have together.
    pub bare_share: f64,
    /// Where the steps come from, one sentence a line.
    pub provenance: Vec<String>,
}

impl Options {
    /// The usual way, for a server that pads so.
    pub fn of(padding: Padding) -> Options {
        Options { padding, bare_share: 0.1, provenance: Vec::new() }
    }
}

/// Why a fit was refused.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum FitError {
    /// Too little to fit to.
    #[error(
        "`{found}` steps of a server are too few for {needed} coefficients; legal: 10 times that"
    )]
    TooFew {
        /// Steps found.
        found: usize,
        /// Coefficients.
        needed: usize,
    },
    /// A measured time is illegal.
    #[error("step {index} of `{run}` took `{value}`; legal: more than 0 microseconds")]
    Time {
        /// Which run.
        run: String,
        /// Which of its rows, from 0.
        index: usize,
        /// The value found.
        value: f64,
    },
    /// The result is not a legal profile.
    #[error("the fit gave an illegal profile: {0}")]
    Profile(#[from] crate::profile::ProfileError),
}

/// Fits a profile to `runs`.
///
/// # Errors
/// If there are too few steps, or a step took no time.
pub fn fit(runs: &[Run], options: &Options) -> Result<Profile, FitError> {
    fit_weighted(runs, options, &|_| 1.0)
}

/// As `fit`, with the weight of each workload multiplied by `emphasis`.
fn fit_weighted(
    runs: &[Run],
    options: &Options,
    emphasis: &dyn Fn(&str) -> f64,
) -> Result<Profile, FitError> {
    let lens = Lens { padding: options.padding.clone(), usual_spread: usual_spread(runs) };
    let design = Design::new(runs, options, &lens, emphasis)?;
    let (coefficients, covariance) = design.solve();
    let mut terms_us: Features = [0.0; TERMS];
    terms_us.copy_from_slice(&coefficients[..TERMS]);
    if !sharing_was_seen(runs) {
        terms_us[KV_READ_SHARED] = SHARED_READ * terms_us[KV_READ];
    }
    let sizes = design.sizes.iter().copied().zip(coefficients[TERMS..].iter().copied());
    let parameters = Parameters {
        padding: lens.padding,
        usual_spread: lens.usual_spread,
        terms_us,
        sizes_us: sizes.collect(),
        gap: fit_gap(runs, emphasis),
        ranges: ranges(runs),
        covariance,
        drift: 0.0,
        provenance: options.provenance.clone(),
    };
    Ok(Profile::new(parameters)?)
}

/// Whether so much context was shared that what sharing saves can be told.
fn sharing_was_seen(runs: &[Run]) -> bool {
    let shapes = runs.iter().flat_map(|run| &run.rows).map(|row| row.shape);
    let decodes = shapes.filter(StepShape::only_decodes);
    let (shared, all) = decodes.fold((0.0, 0.0), |(shared, all), shape| {
        (shared + float(shape.shared_context), all + float(shape.decode_context))
    });
    shared > SHARED_SHARE * all
}

/// Mean of longest by mean context where both are known; 1 where they never are.
fn usual_spread(runs: &[Run]) -> f64 {
    let shapes = runs.iter().filter(|run| run.site == Site::Served).flat_map(|run| &run.rows);
    let known = shapes.map(|row| row.shape).filter(|shape| shape.decode_longest > 0);
    let ratios = known.map(|shape| {
        let mean = float(shape.decode_context) / f64::from(shape.decode_seqs);
        (f64::from(shape.decode_longest) / mean).max(1.0)
    });
    let (sum, rows) = ratios.fold((0.0, 0.0), |(sum, rows), ratio| (sum + ratio, rows + 1.0));
    if rows > 0.0 { sum / rows } else { 1.0 }
}

/// The weight of a row of each run: all workloads together weigh as many rows as there are.
fn row_weights(runs: &[Run], bare_share: f64, emphasis: &dyn Fn(&str) -> f64) -> Vec<f64> {
    let rows_of = |run: &Run| float(run.rows.len() as u64);
    let total: f64 = runs.iter().map(rows_of).sum();
    let bare: f64 = runs.iter().filter(|run| run.site == Site::Bare).map(rows_of).sum();
    let share = if bare > 0.0 { bare_share } else { 0.0 };
    let workload_rows = |workload: &str| -> f64 {
        runs.iter().filter(|run| run.workload == workload).map(rows_of).sum()
    };
    let mut workloads: Vec<&str> = runs
        .iter()
        .filter(|run| run.site == Site::Served)
        .map(|run| run.workload.as_str())
        .collect();
    workloads.sort_unstable();
    workloads.dedup();
    let emphases: f64 = workloads.iter().map(|workload| emphasis(workload)).sum();
    let weight = |run: &Run| match run.site {
        Site::Bare => share * total / bare,
        Site::Served => {
            let part = emphasis(&run.workload) / emphases;
            (1.0 - share) * total * part / workload_rows(&run.workload)
        }
    };
    runs.iter().map(weight).collect()
}

/// One row as an equation: `columns * coefficients = 1`, everything divided by the measured time.
struct Equation {
    columns: Features,
    /// Which of the sizes that the server pads to, if it has prefill.
    size: Option<usize>,
    micros: f64,
    weight: f64,
    /// Errors of rows of one block may depend on one another.
    block: usize,
}

struct Design {
    equations: Vec<Equation>,
    /// Padded sizes of steps with prefill, ascending.
    sizes: Vec<u32>,
    /// Mean measured time by size.
    size_micros: Vec<f64>,
    /// Whether a size was measured apart.
    size_apart: Vec<bool>,
    /// Columns are divided by this, so that all are about 1.
    scale: Features,
}

impl Design {
    fn new(
        runs: &[Run],
        options: &Options,
        lens: &Lens,
        emphasis: &dyn Fn(&str) -> f64,
    ) -> Result<Design, FitError> {
        let size_of = |run: &Run, row: &Row| lens.size(&row.shape, run.site);
        let rows = runs.iter().flat_map(|run| run.rows.iter().map(move |row| (run, row)));
        let mut sizes: Vec<u32> = rows.filter_map(|(run, row)| size_of(run, row)).collect();
        sizes.sort_unstable();
        sizes.dedup();
        let weights = row_weights(runs, options.bare_share, emphasis);
        let mut design = Design {
            equations: Vec::new(),
            size_micros: vec![0.0; sizes.len()],
            size_apart: vec![false; sizes.len()],
            sizes,
            scale: [1.0; TERMS],
        };
        let mut rows_of_size = vec![0.0; design.sizes.len()];
        for (run, &weight) in runs.iter().zip(&weights) {
            for (index, row) in run.rows.iter().enumerate() {
                if !(row.micros > 0.0 && row.micros.is_finite()) {
                    let (run, value) = (run.name.clone(), row.micros);
                    return Err(FitError::Time { run, index, value });
                }
                let size =
                    size_of(run, row).and_then(|size| design.sizes.binary_search(&size).ok());
                if let Some(size) = size {
                    design.size_micros[size] += row.micros;
                    design.size_apart[size] |= run.site == Site::Bare;
                    rows_of_size[size] += 1.0;
                }
                let columns = lens.features(&row.shape, run.site).map(|value| value / row.micros);
                let block = index / BLOCK;
                design.equations.push(Equation {
                    columns,
                    size,
                    micros: row.micros,
                    weight,
                    block,
                });
            }
        }
        for (micros, rows) in design.size_micros.iter_mut().zip(rows_of_size) {
            *micros /= rows;
        }
        design.check_and_scale(runs)
    }

    fn check_and_scale(mut self, runs: &[Run]) -> Result<Design, FitError> {
        let served = runs.iter().filter(|run| run.site == Site::Served);
        let found = served.map(|run| run.rows.len()).sum();
        let needed = TERMS + self.sizes.len();
        if found < 10 * needed {
            return Err(FitError::TooFew { found, needed });
        }
        let mut largest = [0.0_f64; TERMS];
        for equation in &self.equations {
            for (largest, value) in largest.iter_mut().zip(equation.columns) {
                *largest = largest.max(value);
            }
        }
        self.scale = largest.map(|value| if value > 0.0 { value } else { 1.0 });
        Ok(self)
    }

    fn side(&self) -> usize {
        TERMS + self.sizes.len()
    }

    /// The scaled columns of an equation; those of sizes are scaled by the size's mean time.
    fn columns(&self, equation: &Equation, line: &mut [f64]) {
        line.fill(0.0);
        for ((cell, value), scale) in line.iter_mut().zip(equation.columns).zip(self.scale) {
            *cell = value / scale;
        }
        if let Some(size) = equation.size {
            line[TERMS + size] = self.size_micros[size] / equation.micros;
        }
    }

    /// The coefficients in microseconds, and their covariance.
    fn solve(&self) -> (Vec<f64>, Vec<Vec<f64>>) {
        let mut line = vec![0.0; self.side()];
        let shared = self.mean(KV_READ_SHARED);
        let host = [HOST_SEQ, HOST_CONTEXT].map(|column| (column, self.mean(column)));
        let mut scaled: Option<Vec<f64>> = None;
        let mut normal = Normal::new(self.side());
        for _ in 0..=ROUNDS {
            normal = Normal::new(self.side());
            for equation in &self.equations {
                self.columns(equation, &mut line);
                let weight = equation.weight * trust(&line, scaled.as_deref());
                normal.add(&line, 1.0, weight);
            }
            for (size, &apart) in self.size_apart.iter().enumerate() {
                line.fill(0.0);
                line[TERMS + size] = 1.0;
                let steps = if apart { APART_PRIOR_STEPS } else { PRIOR_STEPS };
                normal.add(&line, 0.0, steps * 0.5 / FLOOR);
            }
            self.prefer_measured_saving(shared, &mut line, &mut normal);
            for (column, mean) in host {
                line.fill(0.0);
                line[column] = mean / self.scale[column];
                normal.add(&line, 0.0, HOST_PRIOR_STEPS * 0.5 / FLOOR);
            }
            scaled = Some(normal.solve_not_negative());
        }
        let scaled = scaled.unwrap_or_default();
        let units: Vec<f64> = self
            .scale
            .iter()
            .map(|scale| 1.0 / scale)
            .chain(self.size_micros.iter().copied())
            .collect();
        let covariance = self.covariance(&normal, &scaled, &units);
        (scaled.iter().zip(&units).map(|(value, unit)| value * unit).collect(), covariance)
    }

    /// The mean of a column over all rows, by their weights.
    fn mean(&self, column: usize) -> f64 {
        let weights: f64 = self.equations.iter().map(|equation| equation.weight).sum();
        let values =
            self.equations.iter().map(|equation| equation.weight * equation.columns[column]);
        values.sum::<f64>() / weights
    }

    /// Adds the preference that blocks which others read already take `SHARED_READ` of the time, in
    /// a step of which so much is `shared`.
    fn prefer_measured_saving(&self, shared: f64, line: &mut [f64], normal: &mut Normal) {
        line.fill(0.0);
        line[KV_READ_SHARED] = shared / self.scale[KV_READ_SHARED];
        line[KV_READ] = -SHARED_READ * shared / self.scale[KV_READ];
        normal.add(line, 0.0, SHARING_PRIOR_STEPS * 0.5 / FLOOR);
    }

    /// The covariance of the coefficients that are not at their bound: errors of neighbouring steps
    /// depend on one another, so what is summed are blocks, not steps.
    fn covariance(&self, normal: &Normal, scaled: &[f64], units: &[f64]) -> Vec<Vec<f64>> {
        let free: Vec<usize> = (0..self.side()).filter(|&i| scaled[i] > 0.0).collect();
        let inverse = normal.inverse(&free);
        let mut line = vec![0.0; self.side()];
        let mut spread = vec![vec![0.0; free.len()]; free.len()];
        for block in self.equations.chunk_by(|a, b| a.block == b.block) {
            let mut pull = vec![0.0; self.side()];
            for equation in block {
                self.columns(equation, &mut line);
                let weight = equation.weight * trust(&line, Some(scaled));
                let miss = 1.0 - dot(&line, scaled);
                for (pull, value) in pull.iter_mut().zip(&line) {
                    *pull += weight * miss * value;
                }
            }
            let moved: Vec<f64> = inverse
                .iter()
                .map(|row| row.iter().zip(&free).map(|(cell, &i)| cell * pull[i]).sum())
                .collect();
            for (row, &left) in spread.iter_mut().zip(&moved) {
                for (cell, &right) in row.iter_mut().zip(&moved) {
                    *cell += left * right;
                }
            }
        }
        let mut covariance = vec![vec![0.0; self.side()]; self.side()];
        for (row, &i) in spread.iter().zip(&free) {
            for (cell, &j) in row.iter().zip(&free) {
                covariance[i][j] = cell * units[i] * units[j];
            }
        }
        covariance
    }
}

fn dot(a: &[f64], b: &[f64]) -> f64 {
    a.iter().zip(b).map(|(a, b)| a * b).sum()
}

/// How much a row's squared error counts: inversely to its error, which makes the sum of squares a
/// sum of absolute errors.
fn trust(line: &[f64], scaled: Option<&[f64]>) -> f64 {
    let miss = scaled.map_or(FLOOR, |scaled| (dot(line, scaled) - 1.0).abs());
    1.0 / miss.max(FLOOR)
}

/// Least squares of the gaps; every workload weighs the same.
fn fit_gap(runs: &[Run], emphasis: &dyn Fn(&str) -> f64) -> Gap {
    let mut normal = Normal::new(3);
    for (run, weight) in runs.iter().zip(row_weights(runs, 0.0, emphasis)) {
        for row in &run.rows {
            let Some(gap) = row.gap_micros.filter(|&gap| gap <= LONGEST_GAP_US) else { continue };
            let decodes = f64::from(row.shape.decode_seqs);
            let prefills = f64::from(row.shape.prefill_seqs);
            normal.add(&[1.0, decodes, prefills], gap, weight);
        }
    }
    let solution = normal.solve_not_negative();
    Gap { step_us: solution[0], decode_seq_us: solution[1], prefill_seq_us: solution[2] }
}

/// Where each variable was seen.
fn ranges(runs: &[Run]) -> [Option<Range>; VARIABLES.len()] {
    let mut ranges: [Option<Range>; VARIABLES.len()] = [None; VARIABLES.len()];
    for row in runs.iter().flat_map(|run| &run.rows) {
        for (range, value) in ranges.iter_mut().zip(variables(&row.shape)) {
            let Some(value) = value else { continue };
            let seen = range.unwrap_or(Range { min: value, max: value });
            *range = Some(Range { min: seen.min.min(value), max: seen.max.max(value) });
        }
    }
    ranges
}

#[cfg(test)]
mod tests;
