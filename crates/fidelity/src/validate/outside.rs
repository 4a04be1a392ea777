//! Which of a run's steps are outside what a profile was fitted to.

use blis_core::math::float;
use blis_latency::fit::log::Run;
use blis_latency::profile::{Profile, VARIABLES};

/// The steps of a run that are outside what a profile was fitted to.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Outside {
    /// How many there are.
    pub steps: usize,
    /// All steps of the run.
    pub of: usize,
    /// In which variables, and which of their values is farthest out.
    pub variables: Vec<(&'static str, f64)>,
}

impl Outside {
    /// Those of `run`.
    pub(super) fn of(profile: &Profile, run: &Run) -> Outside {
        let ranges = &profile.parameters().ranges;
        let mut farthest: [Option<(f64, f64)>; VARIABLES.len()] = [None; VARIABLES.len()];
        let mut steps = 0;
        for row in &run.rows {
            let outside = profile.outside(&row.shape);
            steps += usize::from(!outside.is_empty());
            for (name, value) in outside {
                let at = VARIABLES.iter().position(|variable| *variable == name).expect("its name");
                let off = ranges[at]
                    .map_or(f64::INFINITY, |range| (range.min - value).max(value - range.max));
                if farthest[at].is_none_or(|(_, known)| off > known) {
                    farthest[at] = Some((value, off));
                }
            }
        }
        let named = VARIABLES.into_iter().zip(farthest);
        let variables = named.filter_map(|(name, far)| far.map(|(value, _)| (name, value)));
        Outside { steps, of: run.rows.len(), variables: variables.collect() }
    }

    /// The share of steps that are outside.
    pub fn share(&self) -> f64 {
        float(self.steps as u64) / float(self.of.max(1) as u64)
    }
}
