//! Simulated time: whole nanoseconds, so that sums are exact and order is total.
//!
//! `Time` is an instant since the start of the run, `Span` a length of time. Everyone uses them;
//! nobody converts to floating point except to print or to draw a random gap.

use std::fmt;
use std::iter::Sum;
use std::ops::{Add, AddAssign, Div, Mul, Sub, SubAssign};

const NANOS_PER_MICRO: u64 = 1_000;
const NANOS_PER_SEC: f64 = 1e9;

/// An instant: nanoseconds since the start of the simulation.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Time(u64);

/// A length of time in nanoseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Span(u64);

impl Time {
    /// The start of the simulation.
    pub const ZERO: Time = Time(0);
    /// Later than anything that can happen.
    pub const NEVER: Time = Time(u64::MAX);

    /// The instant `nanos` nanoseconds after the start.
    pub const fn from_nanos(nanos: u64) -> Time {
        Time(nanos)
    }

    /// The instant `micros` microseconds after the start.
    pub const fn from_micros(micros: u64) -> Time {
        Time(micros * NANOS_PER_MICRO)
    }

    /// Nanoseconds since the start.
    pub const fn as_nanos(self) -> u64 {
        self.0
    }

    /// Microseconds since the start, for output.
    pub fn as_micros_f64(self) -> f64 {
        Span(self.0).as_micros_f64()
    }

    /// Seconds since the start, for output.
    pub fn as_secs_f64(self) -> f64 {
        Span(self.0).as_secs_f64()
    }

    /// The span since `earlier`.
    ///
    /// # Panics
    /// If `earlier` is later, which would be a broken invariant.
    pub fn since(self, earlier: Time) -> Span {
        assert!(earlier <= self, "time runs backwards: {earlier:?} is after {self:?}");
        Span(self.0 - earlier.0)
    }

    /// The span since `earlier`, or zero if `earlier` is later.
    pub const fn saturating_since(self, earlier: Time) -> Span {
        Span(self.0.saturating_sub(earlier.0))
    }
}

impl Span {
    /// No time at all.
    pub const ZERO: Span = Span(0);
    /// The longest span accepted from outside: ten years.
    pub const LONGEST: Span = Span(10 * 365 * 24 * 3_600 * 1_000_000_000);

    /// A span of `nanos` nanoseconds.
    pub const fn from_nanos(nanos: u64) -> Span {
        Span(nanos)
    }

    /// A span of `micros` microseconds.
    pub const fn from_micros(micros: u64) -> Span {
        Span(micros * NANOS_PER_MICRO)
    }

    /// A span of `micros` microseconds, rounded to the nearest nanosecond; negative and NaN become
    /// zero, anything above [`Span::LONGEST`] becomes that.
    pub fn from_micros_f64(micros: f64) -> Span {
        Span::from_nanos_f64(micros * 1e3)
    }

    /// A span of `secs` seconds, rounded and clamped like [`Span::from_micros_f64`].
    pub fn from_secs_f64(secs: f64) -> Span {
        Span::from_nanos_f64(secs * NANOS_PER_SEC)
    }

    /// A span of `nanos` nanoseconds, rounded and clamped like [`Span::from_micros_f64`].
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        clippy::cast_precision_loss,
        reason = "the value is clamped to 0..=LONGEST first, and the cast of NaN gives 0"
    )]
    pub fn from_nanos_f64(nanos: f64) -> Span {
        Span((nanos + 0.5).clamp(0.0, Span::LONGEST.0 as f64) as u64)
    }

    /// Nanoseconds.
    pub const fn as_nanos(self) -> u64 {
        self.0
    }

    /// Whole microseconds, rounded down.
    pub const fn as_micros(self) -> u64 {
        self.0 / NANOS_PER_MICRO
    }

    /// Microseconds, for output.
    #[expect(clippy::cast_precision_loss, reason = "output only; exact below 104 days")]
    pub fn as_micros_f64(self) -> f64 {
        self.0 as f64 / 1e3
    }

    /// Milliseconds, for output.
    #[expect(clippy::cast_precision_loss, reason = "output only; exact below 104 days")]
    pub fn as_millis_f64(self) -> f64 {
        self.0 as f64 / 1e6
    }

    /// Seconds, for output.
    #[expect(clippy::cast_precision_loss, reason = "output only; exact below 104 days")]
    pub fn as_secs_f64(self) -> f64 {
        self.0 as f64 / NANOS_PER_SEC
    }
}

impl Add<Span> for Time {
    type Output = Time;
    fn add(self, span: Span) -> Time {
        Time(self.0 + span.0)
    }
}

impl Sub<Span> for Time {
    type Output = Time;
    fn sub(self, span: Span) -> Time {
        Time(self.0 - span.0)
    }
}

impl AddAssign<Span> for Time {
    fn add_assign(&mut self, span: Span) {
        self.0 += span.0;
    }
}

impl Add for Span {
    type Output = Span;
    fn add(self, other: Span) -> Span {
        Span(self.0 + other.0)
    }
}

impl AddAssign for Span {
    fn add_assign(&mut self, other: Span) {
        self.0 += other.0;
    }
}

impl Sub for Span {
    type Output = Span;
    fn sub(self, other: Span) -> Span {
        Span(self.0 - other.0)
    }
}

impl SubAssign for Span {
    fn sub_assign(&mut self, other: Span) {
        self.0 -= other.0;
    }
}

impl Div<u64> for Span {
    type Output = Span;

    fn div(self, parts: u64) -> Span {
        Span(self.0 / parts)
    }
}

impl Mul<u64> for Span {
    type Output = Span;
    fn mul(self, times: u64) -> Span {
        Span(self.0 * times)
    }
}

impl Sum for Span {
    fn sum<I: Iterator<Item = Span>>(spans: I) -> Span {
        spans.fold(Span::ZERO, |total, span| total + span)
    }
}

impl fmt::Display for Time {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ns", self.0)
    }
}

impl fmt::Display for Span {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ns", self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn conversions_from_floats_round_and_clamp() {
        assert_eq!(Span::from_micros_f64(1.5).as_nanos(), 1_500);
        assert_eq!(Span::from_micros_f64(0.000_6).as_nanos(), 1);
        assert_eq!(Span::from_micros_f64(-3.0), Span::ZERO);
        assert_eq!(Span::from_micros_f64(f64::NAN), Span::ZERO);
        assert_eq!(Span::from_secs_f64(f64::INFINITY), Span::LONGEST);
    }

    #[test]
    fn since_and_plus_are_inverse() {
        let start = Time::from_micros(7);
        let end = start + Span::from_nanos(123);
        assert_eq!(end.since(start), Span::from_nanos(123));
        assert_eq!(start.saturating_since(end), Span::ZERO);
    }
}
