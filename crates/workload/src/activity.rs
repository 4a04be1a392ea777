//! When a client is there: windows, the hours of a day, a drain at the end.
//!
//! An activity is a share of the client's full rate, constant in stretches. Where several parts
//! are given the client is as active as the most active of them. Its arrival process stands still
//! while it is away, so that it has its own rate and its own burstiness whenever it is there.

use crate::error::{SpecError, within};
use blis_core::math::float;
use blis_core::{Span, Time};

/// The parts of a client's activity; none: always there.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Activity {
    /// The client is as active as the most active of these.
    pub parts: Vec<ActivityPart>,
}

/// One part of an activity.
#[derive(Clone, Debug, PartialEq)]
pub enum ActivityPart {
    /// There from an instant up to, but not at, another.
    Window {
        /// Its start.
        from: Time,
        /// Its end, after its start.
        until: Time,
    },
    /// More by day than by night: each hour of the day has its share, every day alike. The run
    /// starts at midnight.
    Diurnal {
        /// The hour with the full rate (0..=23).
        peak_hour: u32,
        /// How much more there is at the peak than in the quietest hour (1..=1e6).
        peak_to_trough: f64,
    },
    /// There up to an instant, then less in ten equal steps, then gone.
    Drain {
        /// When it begins to go.
        from: Time,
        /// How long that takes (above 0).
        over: Span,
    },
}

const HOUR: u64 = 3_600_000_000_000;
const HOURS: u64 = 24;
const DRAIN_STEPS: u32 = 10;

impl Activity {
    /// Checks every number; the error's field is relative to the activity, e.g. `parts[0].until`.
    ///
    /// # Errors
    /// If a number is out of its range.
    pub fn validate(&self) -> Result<(), SpecError> {
        for (index, part) in self.parts.iter().enumerate() {
            part.validate().map_err(|error| error.under(&format!("parts[{index}]")))?;
        }
        Ok(())
    }

    /// Whether the client is always there in full.
    pub fn is_constant(&self) -> bool {
        self.parts.is_empty()
    }

    /// Whether the client is gone for good at some time.
    pub fn ends(&self) -> bool {
        let endless = |part: &ActivityPart| matches!(part, ActivityPart::Diurnal { .. });
        !self.parts.is_empty() && !self.parts.iter().any(endless)
    }

    /// Whether the client is there at `at`.
    pub fn is_active(&self, at: Time) -> bool {
        self.stretch(at).0 > 0.0
    }

    /// The share of the full rate at `at`, and until when it holds at least.
    pub(crate) fn stretch(&self, at: Time) -> (f64, Time) {
        if self.parts.is_empty() {
            return (1.0, Time::NEVER);
        }
        self.parts
            .iter()
            .map(|part| part.stretch(at))
            .fold((0.0, Time::NEVER), |(share, until), (other, other_until)| {
                (f64::max(share, other), until.min(other_until))
            })
    }
}

impl ActivityPart {
    fn validate(&self) -> Result<(), SpecError> {
        match *self {
            ActivityPart::Window { from, until } if from >= until => {
                let legal = format!("later than the start, {from}");
                Err(SpecError::new("until", until, legal))
            }
            ActivityPart::Diurnal { peak_hour, .. } if u64::from(peak_hour) >= HOURS => {
                Err(SpecError::new("peak_hour", peak_hour, "a whole number from 0 to 23"))
            }
            ActivityPart::Diurnal { peak_to_trough, .. } => {
                within("peak_to_trough", peak_to_trough, 1.0, 1e6)
            }
            ActivityPart::Drain { over, .. } if over.as_nanos() < u64::from(DRAIN_STEPS) => {
                Err(SpecError::new("over", over, "at least 10 ns"))
            }
            ActivityPart::Window { .. } | ActivityPart::Drain { .. } => Ok(()),
        }
    }

    fn stretch(&self, at: Time) -> (f64, Time) {
        match *self {
            ActivityPart::Window { from, until } => match at {
                at if at < from => (0.0, from),
                at if at < until => (1.0, until),
                _ => (0.0, Time::NEVER),
            },
            ActivityPart::Diurnal { peak_hour, peak_to_trough } => {
                let hour = at.as_nanos() / HOUR;
                let end = Time::from_nanos((hour + 1).saturating_mul(HOUR));
                (hour_share(hour % HOURS, peak_hour, peak_to_trough), end)
            }
            ActivityPart::Drain { from, over } => {
                if at < from {
                    return (1.0, from);
                }
                let step = over.as_nanos() / u64::from(DRAIN_STEPS);
                let done = (at.as_nanos() - from.as_nanos()) / step;
                let Some(left) = u64::from(DRAIN_STEPS).checked_sub(done).filter(|&n| n > 0) else {
                    return (0.0, Time::NEVER);
                };
                let end = from + Span::from_nanos((done + 1) * step);
                (float(left) / f64::from(DRAIN_STEPS), end)
            }
        }
    }
}

/// The share of the full rate in `hour`: a cosine over the day, 1 at the peak and
/// 1 / `peak_to_trough` twelve hours away.
fn hour_share(hour: u64, peak_hour: u32, peak_to_trough: f64) -> f64 {
    let angle = std::f64::consts::TAU * (float(hour) - f64::from(peak_hour)) / float(HOURS);
    let trough = 1.0 / peak_to_trough;
    0.5 * (1.0 + blis_core::math::cos(angle)) * (1.0 - trough) + trough
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hours(hours: u64) -> Time {
        Time::from_nanos(hours * HOUR)
    }

    fn shares(part: ActivityPart, times: impl IntoIterator<Item = u64>) -> Vec<f64> {
        let activity = Activity { parts: vec![part] };
        times.into_iter().map(|hour| activity.stretch(hours(hour)).0).collect()
    }

    #[test]
    fn a_window_holds_from_its_start_and_not_at_its_end() {
        let window = ActivityPart::Window { from: hours(2), until: hours(4) };
        assert_eq!(shares(window, 0..6), [0.0, 0.0, 1.0, 1.0, 0.0, 0.0]);
    }

    #[test]
    fn a_day_peaks_at_its_hour_and_repeats() {
        let day = ActivityPart::Diurnal { peak_hour: 14, peak_to_trough: 4.0 };
        let two_days = shares(day, 0..48);
        assert_eq!(two_days[..24], two_days[24..]);
        assert!((two_days[14] - 1.0).abs() < 1e-12 && (two_days[2] - 0.25).abs() < 1e-12);
        // The cosine's mean is 0, so a day has the mean of peak and trough.
        let mean = two_days.iter().sum::<f64>() / 48.0;
        assert!((mean - 0.625).abs() < 1e-12, "{mean}");
    }

    #[test]
    fn a_drain_goes_in_ten_steps() {
        let drain = ActivityPart::Drain { from: hours(5), over: Span::from_nanos(10 * HOUR) };
        let shares = shares(drain, [0, 4, 5, 6, 14, 15, 99]);
        assert_eq!(shares, [1.0, 1.0, 1.0, 0.9, 0.1, 0.0, 0.0]);
    }

    #[test]
    fn the_most_active_part_counts() {
        let activity = Activity {
            parts: vec![
                ActivityPart::Diurnal { peak_hour: 0, peak_to_trough: 10.0 },
                ActivityPart::Window { from: hours(12), until: hours(13) },
            ],
        };
        assert!((activity.stretch(hours(12)).0 - 1.0).abs() < 1e-12);
        assert!(activity.stretch(hours(13)).0 < 0.2);
        assert!(!activity.ends() && !activity.is_constant());
    }

    #[test]
    fn illegal_parts_are_named() {
        let refusal = |part: ActivityPart| {
            Activity { parts: vec![part] }.validate().expect_err("illegal").to_string()
        };
        let empty = ActivityPart::Window { from: hours(2), until: hours(2) };
        assert!(refusal(empty).starts_with("field `parts[0].until`: found "));
        let hour = ActivityPart::Diurnal { peak_hour: 24, peak_to_trough: 2.0 };
        assert_eq!(
            refusal(hour),
            "field `parts[0].peak_hour`: found 24; legal: a whole number from 0 to 23"
        );
        let ratio = ActivityPart::Diurnal { peak_hour: 3, peak_to_trough: 0.5 };
        assert_eq!(
            refusal(ratio),
            "field `parts[0].peak_to_trough`: found 0.5; legal: a number from 1 to 1000000"
        );
    }
}
