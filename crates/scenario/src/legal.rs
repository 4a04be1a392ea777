//! Ranges of numbers that several kinds of files share.

use crate::yaml::Range;
use blis_core::Time;
use blis_core::math::float;

/// Ten years in microseconds: the longest span that is read.
pub const LONGEST_US: u64 = 315_360_000_000_000;
/// The most requests of a run.
pub const MOST_REQUESTS: u64 = 1_000_000_000_000;

macro_rules! ranges {
    ($($(#[$doc:meta])* $name:ident: $min:expr, $max:expr, $legal:expr;)*) => { $(
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq)]
        pub struct $name;
        impl Range for $name {
            const MIN: f64 = $min;
            const MAX: f64 = $max;
            const LEGAL: &'static str = $legal;
        }
    )* };
}

ranges! {
    /// Requests per second.
    PerSecond: 1e-9, 1e9, "a number from 1e-9 to 1e9 (requests per second)";
    /// A latency coefficient.
    Coefficient: 0.0, 1e9, "a number from 0 to 1e9 (microseconds)";
    /// The time of a step.
    StepMicros: 1e-3, 1e9, "a number from 0.001 to 1e9 (microseconds)";
    /// How many times as long a host takes.
    HostFactor: 0.0, 100.0, "a number from 0 to 100";
    /// A latency target, or a window of time.
    TargetMillis: 0.0, 1e12, "a number from 0 to 1e12 (milliseconds)";
    /// A time that somebody waits: from a nanosecond to ten years.
    SpanMillis: 1e-6, float(LONGEST_US) / 1e3, "a number from 1e-6 to 315360000000 (milliseconds)";
    /// A share of a GPU's memory.
    Utilization: 0.01, 1.0, "a number from 0.01 to 1";
    /// A share below one.
    Share: 0.0, 0.99, "a number from 0 to 0.99";
    /// A chance.
    Chance: 0.0, 1.0, "a number from 0 to 1";
    /// An instant of a trace, or of a run.
    SliceSeconds: 0.0, 315_360_000.0, "a number from 0 to 315360000 (seconds, ten years)";
    /// A share of saturation.
    ShareOfSaturation: 1e-6, 1_000.0, "a number from 1e-6 to 1000 (1 is saturation)";
    /// How long a part of a rate lasts: from a microsecond to ten years.
    Seconds: 1e-6, 315_360_000.0, "a number from 1e-6 to 315360000 (seconds)";
    /// The most of a day over the least.
    PeakToTrough: 1.0, 1e6, "a number from 1 to 1e6";
    /// A speed or a latency of a network.
    NetworkAmount: 0.0, 1e12, "a number from 0 to 1e12";
    /// The speed of a link between memories.
    BlocksPerMicro: 1e-9, 1e9, "a number from 1e-9 to 1e9 (blocks per microsecond)";
    /// The latency of such a link.
    BaseMicros: 0.0, 1e12, "a number from 0 to 1e12 (microseconds)";
    /// Any number.
    Finite: f64::MIN, f64::MAX, "a number";
}

/// The instant `micros` microseconds after the start; `None` if that is more than ten years, which
/// no run reaches.
pub(crate) fn horizon(micros: u64) -> Option<Time> {
    (micros <= LONGEST_US).then(|| Time::from_micros(micros))
}
