//! Which part of a trace is used, and how fast: slices, samples, limits and speed.
//!
//! The order is fixed: slice, sample, limit, speed up. An edit must never depend on what was read
//! before, other than by counting: the same row is kept or dropped whatever stands around it.

use crate::error::{SpecError, ensure, within};
use blis_core::math::float;
use blis_core::random::{Dice, Purpose};
use blis_core::{Span, Time};

use super::TraceFormat;

const SPEEDUP: (f64, f64) = (1e-6, 1e6);
const SHARE: &str = "a number above 0 and up to 1";

/// How to read a trace.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct TraceOptions {
    /// Its format; `None`: the one that its first line is in.
    pub format: Option<TraceFormat>,
    /// What to change.
    pub edit: TraceEdit,
}

/// What to change of a trace while it is read. The default changes nothing.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct TraceEdit {
    /// Divides the arrival times that are left after slicing; 2 is twice the rate. Think times and
    /// deadlines are the client's own and stay.
    pub speedup: f64,
    /// Keeps requests that arrive at this instant of the trace's own time or later; it becomes 0.
    pub from: Option<Span>,
    /// Keeps requests that arrive before this instant of the trace's own time. Reading stops there.
    pub until: Option<Span>,
    /// Keeps a part of the sessions.
    pub sample: Option<Sample>,
    /// Keeps this many requests of those that are left, follow-ups included. Reading stops there.
    pub limit: Option<u64>,
}

/// A part of the sessions, each kept with all its requests or dropped. A request without a session
/// is one of its own, and a closed-loop session goes by its first request.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Sample {
    /// Probability that a session is kept.
    pub share: f64,
    /// Which ones: another seed keeps others.
    pub seed: u64,
}

impl Default for TraceEdit {
    fn default() -> TraceEdit {
        TraceEdit { speedup: 1.0, from: None, until: None, sample: None, limit: None }
    }
}

impl TraceEdit {
    /// Whether all values are legal.
    ///
    /// # Errors
    /// If one is not.
    pub fn validate(&self) -> Result<(), SpecError> {
        within("speedup", self.speedup, SPEEDUP.0, SPEEDUP.1)?;
        let seconds = |span: Span| format!("{} s", span.as_secs_f64());
        for (field, span) in [("from", self.from), ("until", self.until)] {
            let span = span.unwrap_or_default();
            let legal = || "at most 315360000 s (ten years)";
            ensure(span <= Span::LONGEST, field, seconds(span), legal)?;
        }
        let from = self.from.unwrap_or_default();
        if let Some(until) = self.until {
            let legal = || format!("more than {}, where the slice begins", seconds(from));
            ensure(until > from, "until", seconds(until), legal)?;
        }
        let share = self.sample.map_or(1.0, |sample| sample.share);
        ensure(share > 0.0 && share <= 1.0, "sample.share", share, || SHARE)?;
        ensure(self.limit != Some(0), "limit", 0, || "1 or more requests")
    }

    /// Where a request that arrives at `arrival` in the trace's own time lies.
    pub(super) fn slice(&self, arrival: Time) -> Slice {
        let arrival = arrival.since(Time::ZERO);
        if self.from.is_some_and(|from| arrival < from) {
            return Slice::Before;
        }
        if self.until.is_some_and(|until| arrival >= until) {
            return Slice::Behind;
        }
        Slice::Within(arrival - self.from.unwrap_or_default())
    }

    /// Whether the sample has the session with that key.
    pub(super) fn samples(&self, key: u64) -> bool {
        self.sample.is_none_or(|Sample { share, seed }| {
            Dice::new(seed, Purpose::Sampling, key).unit() < share
        })
    }

    /// When a request arrives that arrives `span` after the start of the slice.
    pub(super) fn arrival(&self, span: Span) -> Result<Time, SpecError> {
        if self.speedup.to_bits() == 1.0_f64.to_bits() {
            return Ok(Time::ZERO + span);
        }
        let nanos = float(span.as_nanos()) / self.speedup;
        if nanos > float(Span::LONGEST.as_nanos()) {
            let found = format!("{} for an arrival after {} s", self.speedup, span.as_secs_f64());
            let legal = "a number that leaves all arrivals within ten years";
            return Err(SpecError::new("speedup", found, legal));
        }
        Ok(Time::ZERO + Span::from_nanos_f64(nanos))
    }
}

/// Where a request lies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Slice {
    /// Too early.
    Before,
    /// So long after the start of the slice.
    Within(Span),
    /// Too late, as are all that follow.
    Behind,
}
