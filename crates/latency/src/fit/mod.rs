//! Fits the `profile` model to measured steps.
//!
//! Weighted least squares of the relative error with coefficients that are not negative, with
//! weights that make it nearly the mean absolute error, so that a step interrupted by something
//! else does not bend the fit. Every workload weighs the same, however long its run. Deterministic:
//! the same rows give the same bits.

pub mod beyond;
mod design;
pub mod efficiency;
mod host;
pub mod judge;
pub mod log;
pub mod nnls;
pub mod resample;
pub mod trace;

use crate::profile::host::Host;
use crate::profile::padding::Padding;
use crate::profile::term::{
    ALL, Features, GPU_ALONE, IN_STEP, KV_READ, KV_READ_SHARED, Lens, Site, TERMS,
};
use crate::profile::{Gap, Parameters, Profile, Range, VARIABLES, variables};
use crate::shape::StepShape;
use blis_core::math::float;
use design::{Design, PRIOR_STEPS, SHARED_READ, row_weights};
use log::{Row, Run};
use nnls::Normal;
use std::collections::BTreeMap;

/// Relative errors below this weigh alike: about the noise of one step.
const FLOOR: f64 = 0.02;

/// The same where the host is logged apart: what is left is the GPU's time, whose mean matters
/// near saturation; only what is no GPU's time at all is held back.
const GPU_FLOOR: f64 = 0.3;

/// Times that the steps are looked for whose time on the GPU shows, each with the fit before.
const LOOKS: usize = 3;

/// A padded size meets a slow kernel if its steps take so much longer than the others say, as a
/// share; looked at only where the host is logged apart, and has graphs of a hundred sizes.
const SLOW: f64 = 0.05;

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
    if runs.iter().all(|run| run.trace.is_none()) {
        let way =
            Way { terms: |at| at < IN_STEP, floor: FLOOR, sizes: None, host: None, before: None };
        return fit_rows(runs, options, &way);
    }
    let host = host::fit(runs);
    let look = |profile: Option<&Profile>| -> Vec<Run> {
        runs.iter().map(|run| run.seen_by(&host, profile)).collect()
    };
    let mut way = Way {
        terms: |at| GPU_ALONE.contains(&ALL[at].name),
        floor: GPU_FLOOR,
        sizes: Some(Vec::new()),
        host: Some(host.clone()),
        before: None,
    };
    let mut profile = fit_rows(&look(None), options, &way)?;
    for _ in 1..LOOKS {
        way.before = Some(profile.clone());
        profile = fit_rows(&look(Some(&profile)), options, &way)?;
    }
    let seen = look(Some(&profile));
    way.sizes = Some(slow_sizes(&seen, &profile));
    way.before = Some(profile);
    let profile = fit_rows(&seen, options, &way)?;
    Ok(Profile::new(Parameters { ranges: ranges(runs), ..profile.parameters().clone() })?)
}

/// What a fit is made of.
struct Way {
    /// Which terms may be more than 0, by their place.
    terms: fn(usize) -> bool,
    /// Relative errors below this weigh alike.
    floor: f64,
    /// Padded sizes that may take longer than the others; `None`: all.
    sizes: Option<Vec<u32>>,
    /// What the host takes, where that is not in the steps.
    host: Option<Host>,
    /// A fit before this one.
    before: Option<Profile>,
}

impl Way {
    /// What errors are relative to: how long the fit before says that the step takes. Relative to
    /// what was measured, long steps would count for less than short ones, and the fit be too
    /// short in all; a sum of absolute errors does not mind.
    fn expected(&self, row: &Row, site: Site) -> f64 {
        self.before.as_ref().map_or(row.micros, |fit| fit.step_micros(&row.shape, site))
    }
}

/// Fits to the rows of `runs`.
fn fit_rows(runs: &[Run], options: &Options, way: &Way) -> Result<Profile, FitError> {
    let lens = Lens {
        padding: options.padding.clone(),
        usual_spread: usual_spread(runs),
        split_attention: way.host.is_some(),
    };
    let design = Design::new(runs, options, &lens, way)?;
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
        split_attention: lens.split_attention,
        terms_us,
        sizes_us: sizes.collect(),
        gap: fit_gap(runs),
        host: way.host.clone(),
        ranges: ranges(runs),
        covariance,
        drift: 0.0,
        provenance: options.provenance.clone(),
    };
    Ok(Profile::new(parameters)?)
}

/// The padded sizes whose steps take longer than `profile` says, by the median of their errors and
/// as many steps again that say otherwise.
fn slow_sizes(runs: &[Run], profile: &Profile) -> Vec<u32> {
    let mut errors: BTreeMap<u32, Vec<f64>> = BTreeMap::new();
    for row in runs.iter().flat_map(|run| &run.rows) {
        if let Some(size) = profile.lens().size(&row.shape, Site::Served) {
            let error = row.micros / profile.step_micros(&row.shape, Site::Served) - 1.0;
            errors.entry(size).or_default().push(error);
        }
    }
    let is_slow = |errors: &mut Vec<f64>| {
        errors.sort_by(f64::total_cmp);
        let steps = float(errors.len() as u64);
        errors[errors.len() / 2] * steps / (steps + PRIOR_STEPS) > SLOW
    };
    errors.into_iter().filter_map(|(size, mut found)| is_slow(&mut found).then_some(size)).collect()
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

/// Least squares of the gaps; every workload weighs the same.
fn fit_gap(runs: &[Run]) -> Gap {
    let mut normal = Normal::new(3);
    for (run, [weight, _]) in runs.iter().zip(row_weights(runs, 0.0)) {
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
