//! How good a profile is: its errors by region and by workload, and on workloads it has not seen.

use super::log::{Row, Run};
use super::{FitError, Options, fit};
use crate::profile::Profile;
use crate::profile::term::Site;
use crate::shape::StepShape;
use blis_core::math::float;

/// Errors over some steps. Relative to the measured time, 0.01 is one per cent; predictions that
/// are too long are positive.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Errors {
    /// Steps.
    pub steps: usize,
    /// Mean of the absolute relative errors.
    pub mean_absolute: f64,
    /// Mean of the relative errors.
    pub mean: f64,
    /// Relative error of the time that all steps take together: what decides near saturation.
    pub total: f64,
    /// Measured time of all steps, in seconds.
    pub seconds: f64,
}

/// A kind of step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Region {
    /// All steps.
    All,
    /// Every sequence decodes.
    Decode,
    /// Some sequences catch up.
    Prefill,
    /// The mean context of the decodes is at least 1,500 tokens.
    LongContext,
    /// At least 128 sequences decode.
    LargeBatch,
    /// At most 8 sequences decode, and none catches up.
    SmallBatch,
}

impl Region {
    /// All regions; they overlap.
    pub const ALL: [Region; 6] = [
        Region::All,
        Region::Decode,
        Region::Prefill,
        Region::LongContext,
        Region::LargeBatch,
        Region::SmallBatch,
    ];

    /// What it is called in reports.
    pub const fn name(self) -> &'static str {
        match self {
            Region::All => "all",
            Region::Decode => "decode only",
            Region::Prefill => "with prefill",
            Region::LongContext => "context >= 1500",
            Region::LargeBatch => "batch >= 128",
            Region::SmallBatch => "batch <= 8",
        }
    }

    /// Whether a step belongs to it.
    pub fn contains(self, shape: &StepShape) -> bool {
        let seqs = shape.decode_seqs;
        match self {
            Region::All => true,
            Region::Decode => shape.only_decodes(),
            Region::Prefill => !shape.only_decodes(),
            Region::LongContext => seqs > 0 && shape.decode_context >= 1500 * u64::from(seqs),
            Region::LargeBatch => seqs >= 128,
            Region::SmallBatch => shape.only_decodes() && seqs <= 8,
        }
    }
}

/// The errors of `profile` over the steps of `run` in `region`; `None` if there are none.
pub fn errors(profile: &Profile, run: &Run, region: Region) -> Option<Errors> {
    let seen = profile.parameters().host.as_ref().map(|host| run.seen_by(host, Some(profile)));
    let rows = &seen.as_ref().unwrap_or(run).rows;
    let rows = rows.iter().filter(|row| region.contains(&row.shape));
    errors_of(rows, |row| profile.step_micros(&row.shape, run.site) / row.micros)
}

pub(super) fn errors_of<'a>(
    rows: impl Iterator<Item = &'a Row>,
    ratio: impl Fn(&Row) -> f64,
) -> Option<Errors> {
    let (mut steps, mut absolute, mut sum, mut predicted, mut measured) = (0, 0.0, 0.0, 0.0, 0.0);
    for row in rows {
        let error = ratio(row) - 1.0;
        steps += 1;
        absolute += error.abs();
        sum += error;
        predicted += row.micros * (1.0 + error);
        measured += row.micros;
    }
    let rows = float(steps as u64);
    (steps > 0).then(|| Errors {
        steps,
        mean_absolute: absolute / rows,
        mean: sum / rows,
        total: predicted / measured - 1.0,
        seconds: measured / 1e6,
    })
}

/// The served workloads of `runs`, each once, in alphabetical order.
pub fn workloads(runs: &[Run]) -> Vec<&str> {
    let served = runs.iter().filter(|run| run.site == Site::Served);
    let mut names: Vec<&str> = served.map(|run| run.workload.as_str()).collect();
    names.sort_unstable();
    names.dedup();
    names
}

/// For each workload, the profile that was fitted to all others.
///
/// # Errors
/// If what is left is too little to fit to.
pub fn leave_one_out(runs: &[Run], options: &Options) -> Result<Vec<(String, Profile)>, FitError> {
    let without = |workload: &str| {
        let others: Vec<Run> =
            runs.iter().filter(|run| run.workload != workload).cloned().collect();
        Ok((workload.to_owned(), fit(&others, options)?))
    };
    workloads(runs).into_iter().map(without).collect()
}

/// How far whole runs of unseen workloads are off: the root mean square of the total errors of
/// profiles that were fitted without them. A run on another machine is off by as much even if the
/// fit is perfect.
pub fn drift(runs: &[Run], left_out: &[(String, Profile)]) -> f64 {
    let totals = runs.iter().filter(|run| run.site == Site::Served).filter_map(|run| {
        let (_, profile) = left_out.iter().find(|(workload, _)| *workload == run.workload)?;
        errors(profile, run, Region::All).map(|errors| errors.total)
    });
    let (squares, runs) =
        totals.fold((0.0, 0.0), |(squares, runs), total| (squares + total * total, runs + 1.0));
    if runs > 0.0 { (squares / runs).sqrt() } else { 0.0 }
}
