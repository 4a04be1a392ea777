//! The equations of a fit: one for each row, and those that say what is preferred where the rows do
//! not tell.

use super::log::{Row, Run};
use super::nnls::Normal;
use super::{FitError, Options, Way, judge};
use crate::profile::term::{
    Features, HOST_CONTEXT, HOST_SEQ, KV_READ, KV_READ_SHARED, Lens, Site, TERMS,
};
use blis_core::math::float;

/// Rounds of weights; the coefficients move by less than 0.1 % in the last.
const ROUNDS: usize = 10;

/// A padded size counts as if so many more steps said that it is like its neighbours, so that one
/// interrupted step of a rare size is not taken for the size.
pub(super) const PRIOR_STEPS: f64 = 4.0;

/// The same for a size that was measured apart, which was not interrupted: a median says more about
/// the size than its neighbours do. If it did not, a fit to a workload that did not meet a slow
/// size would take the one row that says so for an outlier.
const APART_PRIOR_STEPS: f64 = 0.2;

/// What a context token takes that another sequence of the batch reads too, as a share of one that
/// none does: it comes from the GPU's cache instead of its memory. Measured apart, by a paged
/// kernel on an H200 (`data/h200/shared_reads.csv`).
pub(super) const SHARED_READ: f64 = 0.62;

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

/// The weight of a row of each run, one that only decodes and one with prefill: all workloads
/// together weigh as many rows as there are.
pub(super) fn row_weights(runs: &[Run], bare_share: f64) -> Vec<[f64; 2]> {
    let rows_of = |run: &Run| float(run.rows.len() as u64);
    let total: f64 = runs.iter().map(rows_of).sum();
    if runs.iter().any(|run| run.trace.is_some()) {
        return traced_weights(runs, total);
    }
    let bare: f64 = runs.iter().filter(|run| run.site == Site::Bare).map(rows_of).sum();
    let share = if bare > 0.0 { bare_share } else { 0.0 };
    let workload_rows = |workload: &str| -> f64 {
        runs.iter().filter(|run| run.workload == workload).map(rows_of).sum()
    };
    let workloads = float(judge::workloads(runs).len() as u64);
    let weight = |run: &Run| match run.site {
        Site::Bare => share * total / bare,
        Site::Served => (1.0 - share) * total / workloads / workload_rows(&run.workload),
    };
    runs.iter().map(|run| [weight(run); 2]).collect()
}

/// The same where only those rows are known whose time on the GPU shows. Steps with prefill show
/// seldom where there is little to do, so the steps of a kind weigh by the root of their number.
fn traced_weights(runs: &[Run], total: f64) -> Vec<[f64; 2]> {
    let count = |workload: &str, prefill: bool| {
        let same = runs.iter().filter(|run| run.workload == workload).flat_map(|run| &run.rows);
        float(same.filter(|row| row.shape.only_decodes() != prefill).count() as u64)
    };
    let weight = |run: &Run, prefill| 1.0 / count(&run.workload, prefill).max(1.0).sqrt();
    let weights: Vec<[f64; 2]> =
        runs.iter().map(|run| [false, true].map(|prefill| weight(run, prefill))).collect();
    let of = |(run, weights): (&Run, &[f64; 2])| -> f64 {
        run.rows.iter().map(|row| weights[usize::from(!row.shape.only_decodes())]).sum()
    };
    let all: f64 = runs.iter().zip(&weights).map(of).sum();
    weights.into_iter().map(|pair| pair.map(|weight| weight * total / all)).collect()
}

/// One row as an equation: `columns * coefficients = target`, everything divided by `scale`.
struct Equation {
    /// Divided by the scales of the columns besides.
    columns: Features,
    /// Which of the sizes that the server pads to, if it has prefill.
    size: Option<usize>,
    scale: f64,
    target: f64,
    weight: f64,
    /// Errors of rows of one block may depend on one another.
    block: usize,
}

pub(super) struct Design {
    equations: Vec<Equation>,
    /// Padded sizes of steps with prefill, ascending.
    pub(super) sizes: Vec<u32>,
    /// Mean measured time by size.
    size_micros: Vec<f64>,
    /// Whether a size was measured apart.
    size_apart: Vec<bool>,
    /// Columns are divided by this, so that all are about 1.
    scale: Features,
    /// What the preferences are about, in the mean of all rows: see `PREFERRED`.
    means: [f64; 3],
    /// Relative errors below this weigh alike.
    floor: f64,
}

/// The columns that preferences are about.
const PREFERRED: [usize; 3] = [KV_READ_SHARED, HOST_SEQ, HOST_CONTEXT];

impl Design {
    pub(super) fn new(
        runs: &[Run],
        options: &Options,
        lens: &Lens,
        way: &Way,
    ) -> Result<Design, FitError> {
        let size_of = |run: &Run, row: &Row| {
            let wanted = |size: &u32| way.sizes.as_ref().is_none_or(|sizes| sizes.contains(size));
            lens.size(&row.shape, run.site).filter(wanted)
        };
        let rows = runs.iter().flat_map(|run| run.rows.iter().map(move |row| (run, row)));
        let mut sizes: Vec<u32> = rows.filter_map(|(run, row)| size_of(run, row)).collect();
        sizes.sort_unstable();
        sizes.dedup();
        let weights = row_weights(runs, options.bare_share);
        let mut design = Design {
            equations: Vec::new(),
            size_micros: vec![0.0; sizes.len()],
            size_apart: vec![false; sizes.len()],
            sizes,
            scale: [1.0; TERMS],
            means: [0.0; 3],
            floor: way.floor,
        };
        let mut rows_of_size = vec![0.0; design.sizes.len()];
        for (run, weights) in runs.iter().zip(&weights) {
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
                let scale = way.expected(row, run.site);
                let mut columns = lens.features(&row.shape, run.site);
                for (at, value) in columns.iter_mut().enumerate() {
                    *value = if (way.terms)(at) { *value / scale } else { 0.0 };
                }
                let weight = row.weight * weights[usize::from(!row.shape.only_decodes())];
                let block = index / BLOCK;
                design.equations.push(Equation {
                    columns,
                    size,
                    scale,
                    target: row.micros / scale,
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
        self.means = PREFERRED.map(|column| self.mean(column));
        self.scale = largest.map(|value| if value > 0.0 { value } else { 1.0 });
        for equation in &mut self.equations {
            for (value, scale) in equation.columns.iter_mut().zip(self.scale) {
                *value /= scale;
            }
        }
        Ok(self)
    }

    fn side(&self) -> usize {
        TERMS + self.sizes.len()
    }

    /// The scaled columns of an equation; those of sizes are scaled by the size's mean time.
    fn columns(&self, equation: &Equation, line: &mut [f64]) {
        line[..TERMS].copy_from_slice(&equation.columns);
        line[TERMS..].fill(0.0);
        if let Some(size) = equation.size {
            line[TERMS + size] = self.size_micros[size] / equation.scale;
        }
    }

    /// The coefficients in microseconds, and their covariance.
    pub(super) fn solve(&self) -> (Vec<f64>, Vec<Vec<f64>>) {
        let mut line = vec![0.0; self.side()];
        let [shared, host @ ..] = self.means;
        let mut scaled: Option<Vec<f64>> = None;
        let mut normal = Normal::new(self.side());
        for _ in 0..=ROUNDS {
            normal = Normal::new(self.side());
            for equation in &self.equations {
                self.columns(equation, &mut line);
                let weight =
                    equation.weight * self.trust(&line, equation.target, scaled.as_deref());
                normal.add(&line, equation.target, weight);
            }
            for (size, &apart) in self.size_apart.iter().enumerate() {
                line.fill(0.0);
                line[TERMS + size] = 1.0;
                let steps = if apart { APART_PRIOR_STEPS } else { PRIOR_STEPS };
                normal.add(&line, 0.0, steps * 0.5 / self.floor);
            }
            self.prefer_measured_saving(shared, &mut line, &mut normal);
            for (column, mean) in [HOST_SEQ, HOST_CONTEXT].into_iter().zip(host) {
                line.fill(0.0);
                line[column] = mean / self.scale[column];
                normal.add(&line, 0.0, HOST_PRIOR_STEPS * 0.5 / self.floor);
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

    /// How much a row's squared error counts: inversely to its error, which makes the sum of
    /// squares a sum of absolute errors beyond the floor.
    fn trust(&self, line: &[f64], target: f64, scaled: Option<&[f64]>) -> f64 {
        let miss = scaled.map_or(self.floor, |scaled| (dot(line, scaled) - target).abs());
        1.0 / miss.max(self.floor)
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
        normal.add(line, 0.0, SHARING_PRIOR_STEPS * 0.5 / self.floor);
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
                let weight = equation.weight * self.trust(&line, equation.target, Some(scaled));
                let miss = equation.target - dot(&line, scaled);
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

pub(super) fn dot(a: &[f64], b: &[f64]) -> f64 {
    a.iter().zip(b).map(|(a, b)| a * b).sum()
}
