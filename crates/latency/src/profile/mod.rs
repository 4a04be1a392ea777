//! `profile`: step time as a sum of physically named terms, fitted to measured steps.
//!
//! Made by `fit`, or by whoever has read its parameters from a file. A step occupies the engine for
//! the time that a server logs for it and the gap until the server begins the next. Must never know
//! how it was fitted, beyond what it says about itself.

pub mod host;
pub mod padding;
pub mod term;

use crate::shape::{HostTime, StepShape, StepTime};
use crate::window;
use blis_core::Span;
use blis_core::math::float;
use host::{HOST, Host};
use padding::Padding;
use term::{Features, Lens, Site, TERMS};

/// Largest legal coefficient in microseconds.
const LARGEST_US: f64 = 1e12;

/// What a step's shape is measured by, in the order of `variables`.
pub const VARIABLES: [&str; 6] = [
    "decode_seqs",
    "decode_context_mean",
    "decode_context_longest",
    "prefill_seqs",
    "prefill_tokens",
    "prefill_past_tokens",
];

/// The values of `VARIABLES`; `None` where a step has no such sequences, or nobody knows.
pub fn variables(shape: &StepShape) -> [Option<f64>; VARIABLES.len()] {
    let decodes = shape.decode_seqs > 0;
    let prefills = shape.prefill_seqs > 0;
    let seqs = f64::from(shape.decode_seqs);
    [
        decodes.then_some(seqs),
        decodes.then(|| float(shape.decode_context) / seqs),
        (shape.decode_longest > 0).then_some(f64::from(shape.decode_longest)),
        prefills.then_some(f64::from(shape.prefill_seqs)),
        prefills.then_some(f64::from(shape.prefill_tokens)),
        prefills.then_some(float(shape.prefill_past_tokens)),
    ]
}

/// Where a variable was seen.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Range {
    /// Smallest value fitted to.
    pub min: f64,
    /// Largest value fitted to.
    pub max: f64,
}

/// Coefficients of the gap until the server begins the next step, in microseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Gap {
    /// After every step.
    pub step_us: f64,
    /// For each sequence that decoded.
    pub decode_seq_us: f64,
    /// For each sequence that caught up.
    pub prefill_seq_us: f64,
}

/// Everything that makes a profile: plain values, to be read and written by others.
#[derive(Clone, Debug, PartialEq)]
pub struct Parameters {
    /// How the server pads its batches.
    pub padding: Padding,
    /// Longest context by mean context of a batch, where the longest is not known; at least 1.
    pub usual_spread: f64,
    /// Whether decode attention splits long contexts over the GPU: see `term::Lens`.
    pub split_attention: bool,
    /// Coefficients of `term::ALL`, in microseconds.
    pub terms_us: Features,
    /// What a step with prefill takes beyond its terms, by padded size in tokens, ascending: some
    /// sizes meet a slow kernel.
    pub sizes_us: Vec<(u32, f64)>,
    /// Gap between steps.
    pub gap: Gap,
    /// What the host takes beside the GPU; `None` if the terms have it in them.
    pub host: Option<Host>,
    /// Where each of `VARIABLES` was seen; `None`: never.
    pub ranges: [Option<Range>; VARIABLES.len()],
    /// Covariance of `terms_us` and `sizes_us`, in that order: a square in rows. Empty: not known.
    pub covariance: Vec<Vec<f64>>,
    /// How far whole runs of workloads that it was not fitted to were off, as a share (root mean
    /// square); 0: not known.
    pub drift: f64,
    /// Where it comes from, one sentence a line.
    pub provenance: Vec<String>,
}

/// Why parameters were refused.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum ProfileError {
    /// A coefficient is illegal.
    #[error("coefficient `{name}` is `{value}`; legal: a number from 0 to 1e12 (microseconds)")]
    Coefficient {
        /// Which one.
        name: String,
        /// The value found.
        value: f64,
    },
    /// The usual spread is illegal.
    #[error("the usual spread of contexts is `{0}`; legal: a number from 1 to 1000")]
    Spread(f64),
    /// The drift is illegal.
    #[error("the drift is `{0}`; legal: a number from 0 to 1")]
    Drift(f64),
    /// Sizes are out of order.
    #[error("size `{0}` is not larger than the size before it")]
    Order(u32),
    /// The covariance has the wrong number of rows or columns.
    #[error("the covariance has a side of `{found}`; legal: {expected}, or none at all")]
    Covariance {
        /// Rows or columns found.
        found: usize,
        /// Terms and sizes.
        expected: usize,
    },
}

/// Fitted step-time model.
#[derive(Clone, Debug, PartialEq)]
pub struct Profile {
    parameters: Parameters,
    lens: Lens,
}

impl Profile {
    /// A model with these parameters.
    ///
    /// # Errors
    /// If a coefficient is negative or not finite, or lists do not fit together.
    pub fn new(parameters: Parameters) -> Result<Profile, ProfileError> {
        check(&parameters)?;
        let lens = Lens {
            padding: parameters.padding.clone(),
            usual_spread: parameters.usual_spread,
            split_attention: parameters.split_attention,
        };
        Ok(Profile { parameters, lens })
    }

    /// What it was made from.
    pub fn parameters(&self) -> &Parameters {
        &self.parameters
    }

    /// How it looks at a shape.
    pub(crate) fn lens(&self) -> &Lens {
        &self.lens
    }

    /// How long the server is busy with a step, in microseconds, without the gap after it.
    pub fn step_micros(&self, shape: &StepShape, site: Site) -> f64 {
        let features = self.lens.features(shape, site);
        let pairs = self.parameters.terms_us.iter().zip(features);
        let mut micros: f64 = pairs.map(|(coefficient, value)| coefficient * value).sum();
        if let Some(size) = self.lens.size(shape, site) {
            let sizes = &self.parameters.sizes_us;
            if let Ok(at) = sizes.binary_search_by_key(&size, |&(size, _)| size) {
                micros += sizes[at].1;
            }
        }
        micros
    }

    /// The gap between the end of a step and the beginning of the next, in microseconds.
    pub fn gap_micros(&self, shape: &StepShape) -> f64 {
        let gap = &self.parameters.gap;
        gap.step_us
            + gap.decode_seq_us * f64::from(shape.decode_seqs)
            + gap.prefill_seq_us * f64::from(shape.prefill_seqs)
    }

    /// Which variables of a shape are outside the range that was fitted to, and by which value: the
    /// prediction is an extrapolation.
    pub fn outside(&self, shape: &StepShape) -> Vec<(&'static str, f64)> {
        let values = variables(shape);
        let all = VARIABLES.iter().zip(values).zip(&self.parameters.ranges);
        all.filter_map(|((&name, value), range)| {
            value.filter(|_| is_outside(value, *range)).map(|value| (name, value))
        })
        .collect()
    }

    /// The same model on a server that is slower by `factor` throughout.
    ///
    /// # Errors
    /// If a coefficient becomes illegal.
    pub fn scaled(&self, factor: f64) -> Result<Profile, ProfileError> {
        let mut parameters = self.parameters.clone();
        parameters.terms_us.iter_mut().for_each(|coefficient| *coefficient *= factor);
        parameters.sizes_us.iter_mut().for_each(|(_, coefficient)| *coefficient *= factor);
        let gap = &mut parameters.gap;
        for coefficient in [&mut gap.step_us, &mut gap.decode_seq_us, &mut gap.prefill_seq_us] {
            *coefficient *= factor;
        }
        let cells = parameters.covariance.iter_mut().flatten();
        cells.for_each(|cell| *cell *= factor * factor);
        Profile::new(parameters)
    }

    /// The same GPU with a host that is slower by `factor`.
    ///
    /// # Errors
    /// If a coefficient becomes illegal.
    pub fn with_slower_host(&self, factor: f64) -> Result<Profile, ProfileError> {
        let host = self.parameters.host.as_ref().map(|host| host.slower(factor));
        Profile::new(Parameters { host, ..self.parameters.clone() })
    }

    /// The same machine in an engine that captures graphs up to `largest` tokens (as many as were
    /// captured, if that is more); `None`: as many. A host that was not measured does not launch.
    #[must_use]
    pub fn with_graphs_up_to(&self, largest: Option<u32>) -> Profile {
        let mut changed = self.clone();
        let parameters = &mut changed.parameters;
        if let (Some(_), Some(largest)) = (&parameters.host, largest) {
            parameters.padding = parameters.padding.up_to(largest);
            changed.lens.padding = parameters.padding.clone();
        }
        changed
    }
}

/// Whether a variable has a value that was not fitted to.
fn is_outside(value: Option<f64>, range: Option<Range>) -> bool {
    let inside = |value| range.is_some_and(|range| range.min <= value && value <= range.max);
    value.is_some_and(|value| !inside(value))
}

fn check(parameters: &Parameters) -> Result<(), ProfileError> {
    let terms = term::ALL.iter().map(|term| term.name.to_owned()).zip(parameters.terms_us);
    let sizes = parameters.sizes_us.iter().map(|&(size, value)| (format!("size {size}"), value));
    let gap = &parameters.gap;
    let gaps = [
        ("gap step".to_owned(), gap.step_us),
        ("gap decode sequence".to_owned(), gap.decode_seq_us),
        ("gap prefill sequence".to_owned(), gap.prefill_seq_us),
    ];
    let host = parameters.host.iter().flat_map(|host| HOST.iter().zip(host.us));
    let host = host.map(|(term, value)| (format!("host {}", term.name), value));
    for (name, value) in terms.chain(sizes).chain(gaps).chain(host) {
        if !(0.0..=LARGEST_US).contains(&value) {
            return Err(ProfileError::Coefficient { name, value });
        }
    }
    if !(1.0..=1000.0).contains(&parameters.usual_spread) {
        return Err(ProfileError::Spread(parameters.usual_spread));
    }
    let drifts = [parameters.drift, parameters.host.as_ref().map_or(0.0, |host| host.drift)];
    if let Some(&drift) = drifts.iter().find(|drift| !(0.0..=1.0).contains(*drift)) {
        return Err(ProfileError::Drift(drift));
    }
    let disorder = parameters.sizes_us.windows(2).find(|pair| pair[0].0 >= pair[1].0);
    if let Some(pair) = disorder {
        return Err(ProfileError::Order(pair[1].0));
    }
    let expected = TERMS + parameters.sizes_us.len();
    let rows = parameters.covariance.len();
    if rows > 0 {
        let sides = parameters.covariance.iter().map(Vec::len).chain([rows]);
        if let Some(found) = sides.into_iter().find(|&side| side != expected) {
            return Err(ProfileError::Covariance { found, expected });
        }
    }
    Ok(())
}

impl StepTime for Profile {
    fn predict(&self, shape: &StepShape) -> Span {
        let seen = if shape.only_decodes() { window::middle(shape) } else { *shape };
        let micros = self.step_micros(&seen, Site::Served) + self.gap_micros(&seen);
        Span::from_micros_f64(micros).max(Span::from_nanos(1))
    }

    fn host(&self, shape: &StepShape) -> HostTime {
        let host = self.parameters.host.as_ref();
        host.map_or_else(HostTime::default, |host| {
            host.padded_time(shape, &self.parameters.padding)
        })
    }

    fn ingress(&self, _input_tokens: u32) -> Span {
        self.parameters.host.as_ref().map_or(Span::ZERO, Host::ingress)
    }

    fn output(&self, seqs: u32) -> Span {
        self.parameters.host.as_ref().map_or(Span::ZERO, |host| host.output(seqs))
    }

    fn context_free(&self) -> bool {
        false
    }

    fn repeats(&self, shape: &StepShape) -> u32 {
        if shape.only_decodes() { window::left(shape) } else { 1 }
    }

    fn wants_spread(&self) -> bool {
        true
    }

    fn beyond(&self, shape: &StepShape) -> u32 {
        let seen = if shape.only_decodes() { window::middle(shape) } else { *shape };
        let values = variables(&seen).into_iter().zip(&self.parameters.ranges).enumerate();
        let outside = values.filter(|(_, (value, range))| is_outside(*value, **range));
        outside.fold(0, |bits, (index, _)| bits | 1 << index)
    }
}

#[cfg(test)]
mod tests;
