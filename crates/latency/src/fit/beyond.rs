//! Extrapolation: how far a fit is off on steps that are beyond all it has seen.

use super::judge::{Errors, errors_of};
use super::log::Run;
use super::{FitError, Options, fit};
use crate::profile::Profile;
use crate::profile::term::Site;
use crate::shape::StepShape;
use blis_core::math::float;

/// Steps that lie on the far side of what a fit has seen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Edge {
    /// The mean context of the decodes is long.
    MeanContext,
    /// One context is long.
    LongestContext,
    /// Many sequences decode.
    Batch,
    /// Much of the sequences that catch up is cached.
    Past,
    /// Many tokens are prefilled.
    Prefill,
    /// Sequences hold the same blocks.
    Sharing,
}

impl Edge {
    /// All edges.
    pub const ALL: [Edge; 6] = [
        Edge::MeanContext,
        Edge::LongestContext,
        Edge::Batch,
        Edge::Past,
        Edge::Prefill,
        Edge::Sharing,
    ];

    /// What it is called in reports.
    pub const fn name(self) -> &'static str {
        match self {
            Edge::MeanContext => "mean context >= 1500",
            Edge::LongestContext => "longest context >= 2000",
            Edge::Batch => "batch >= 128",
            Edge::Past => "cached tokens >= 1024 a prompt",
            Edge::Prefill => "prefill >= 1024 tokens",
            Edge::Sharing => "a fifth of the context is shared",
        }
    }

    /// Whether a step lies beyond it.
    pub fn is_beyond(self, shape: &StepShape) -> bool {
        let seqs = u64::from(shape.decode_seqs);
        let prompts = u64::from(shape.prefill_seqs);
        match self {
            Edge::MeanContext => seqs > 0 && shape.decode_context >= 1500 * seqs,
            Edge::LongestContext => shape.decode_longest >= 2000,
            Edge::Batch => seqs >= 128,
            Edge::Past => prompts > 0 && shape.prefill_past_tokens >= 1024 * prompts,
            Edge::Prefill => shape.prefill_tokens >= 1024,
            Edge::Sharing => {
                let shared = 5.0 * float(shape.shared_context);
                shape.shared_context > 0 && shared >= float(shape.decode_context)
            }
        }
    }
}

/// Errors of three fits on the served steps beyond an edge.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Beyond {
    /// Which edge.
    pub edge: Edge,
    /// Of the fit to all steps.
    pub seen: Errors,
    /// Of a fit to no served step beyond the edge, but to those measured apart; `None` if too
    /// little is left to fit to.
    pub apart: Option<Errors>,
    /// Of a fit to no step beyond the edge at all; `None` if too little is left.
    pub unseen: Option<Errors>,
}

/// How far fits are off beyond each edge that served steps of `runs` lie beyond.
///
/// # Errors
/// If `runs` are too little to fit to.
pub fn beyond(runs: &[Run], options: &Options) -> Result<Vec<Beyond>, FitError> {
    let full = fit(runs, options)?;
    let mut found = Vec::new();
    for edge in Edge::ALL {
        let Some(seen) = errors_beyond(&full, runs, edge) else { continue };
        let of = |left: Vec<Run>| match fit(&left, options) {
            Ok(profile) => Ok(errors_beyond(&profile, runs, edge)),
            Err(FitError::TooFew { .. }) => Ok(None),
            Err(error) => Err(error),
        };
        let apart =
            of(without(runs, |run, shape| run.site == Site::Served && edge.is_beyond(shape)))?;
        let unseen = of(without(runs, |_, shape| edge.is_beyond(shape)))?;
        found.push(Beyond { edge, seen, apart, unseen });
    }
    Ok(found)
}

/// The errors on all served steps beyond an edge.
fn errors_beyond(profile: &Profile, runs: &[Run], edge: Edge) -> Option<Errors> {
    let served = runs.iter().filter(|run| run.site == Site::Served);
    let rows = served.flat_map(|run| &run.rows).filter(|row| edge.is_beyond(&row.shape));
    errors_of(rows, |row| profile.step_micros(&row.shape, Site::Served) / row.micros)
}

fn without(runs: &[Run], leave_out: impl Fn(&Run, &StepShape) -> bool) -> Vec<Run> {
    let mut left: Vec<Run> = runs.to_vec();
    for (run, whole) in left.iter_mut().zip(runs) {
        run.rows.retain(|row| !leave_out(whole, &row.shape));
    }
    left.retain(|run| !run.rows.is_empty());
    left
}
