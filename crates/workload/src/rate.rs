//! How many requests a second a mix sends, and how that changes in the course of a run; or how many
//! users send them, each as soon as it has an answer.
//!
//! A rate is a line through points: flat, a ramp, or steps (two points at one instant). Arrivals
//! follow it exactly: a gap of g mean gaps ends when the area under the rate has grown by g (see
//! [`crate::ArrivalClock`]), so a ramp has no steps of its own, and any process keeps its shape.

use crate::error::{SpecError, ensure, within, within_ten_years};
use crate::session::Think;
use blis_core::math::float;
use blis_core::{Span, Time};

/// Requests per second over time.
#[derive(Clone, Debug, PartialEq)]
pub enum Rate {
    /// The same from start to end (1e-9..=1e9).
    Steady(f64),
    /// A line through these points; level before the first and after the last. At least one is
    /// above 0.
    Shaped(Vec<RatePoint>),
    /// As many as so many users send.
    Users(Users),
}

/// Users who each send a request or hold a closed-loop session, wait for the answer, think, and go
/// on with the next of the mix.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Users {
    /// How many (1..=[`MOST_USERS`]): no more requests than that are under way.
    pub count: u32,
    /// From an answer to the next request of the same user.
    pub think: Think,
    /// The time in which they come, one after the other.
    pub ramp: Span,
}

/// Most users.
pub const MOST_USERS: u32 = 1_000_000;

impl Users {
    /// When the user with that number, from 0, sends its first request.
    pub(crate) fn joins(&self, user: u32) -> Time {
        let nanos = u128::from(self.ramp.as_nanos()) * u128::from(user) / u128::from(self.count);
        Time::ZERO + Span::from_nanos(u64::try_from(nanos).expect("within the ramp"))
    }
}

/// The rate at an instant.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RatePoint {
    /// When; not before the point before it. The later one of two at the same instant holds from
    /// there on.
    pub at: Time,
    /// Requests per second (0..=1e9).
    pub per_sec: f64,
}

/// A stretch of time in which a rate is a straight line.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Stretch {
    /// Requests per nanosecond at its start.
    pub(crate) per_nano: f64,
    /// By how much that changes in each nanosecond.
    pub(crate) slope: f64,
    /// Where it ends.
    pub(crate) until: Time,
}

/// Highest rate in requests per second.
const MOST: f64 = 1e9;
/// Lowest rate above 0.
const LEAST: f64 = 1e-9;

impl Rate {
    /// A rate that goes from one value to another in a straight line, and stays there.
    pub fn ramp(from: f64, to: f64, over: Span) -> Rate {
        let point = |at, per_sec| RatePoint { at, per_sec };
        Rate::Shaped(vec![point(Time::ZERO, from), point(Time::ZERO + over, to)])
    }

    /// A rate that stays at each of these values for a while, and at the last one for good.
    pub fn steps(steps: impl IntoIterator<Item = (f64, Span)>) -> Rate {
        let mut points = Vec::new();
        let mut at = Time::ZERO;
        for (per_sec, lasting) in steps {
            points.push(RatePoint { at, per_sec });
            at += lasting;
            points.push(RatePoint { at, per_sec });
        }
        Rate::Shaped(points)
    }

    /// Where it changes at once, but for its start.
    pub(crate) fn jumps(&self) -> Vec<Time> {
        let Rate::Shaped(points) = self else { return Vec::new() };
        let jump = |pair: &[RatePoint]| pair[0].at == pair[1].at && pair[1].per_sec > 0.0;
        points.windows(2).filter(|pair| jump(pair)).map(|pair| pair[1].at).collect()
    }

    /// Checks every number; the error's field is relative to the rate, e.g. `points[1].at`.
    ///
    /// # Errors
    /// If a rate or a time is out of its range, or a time is before the one above it.
    pub fn validate(&self) -> Result<(), SpecError> {
        match self {
            Rate::Steady(per_sec) => within("", *per_sec, LEAST, MOST),
            Rate::Users(users) => {
                let legal = || format!("a whole number from 1 to {MOST_USERS}");
                ensure((1..=MOST_USERS).contains(&users.count), "users", users.count, legal)?;
                let (Think::Constant(think) | Think::Exponential(think)) = users.think;
                within_ten_years("think", think)?;
                within_ten_years("ramp", users.ramp)
            }
            Rate::Shaped(points) => {
                let mut before = Time::ZERO;
                for (index, point) in points.iter().enumerate() {
                    let field = |name: &str| format!("points[{index}].{name}");
                    within(&field("per_sec"), point.per_sec, 0.0, MOST)?;
                    if point.at < before || point.at > Time::ZERO + Span::LONGEST {
                        let legal = format!(
                            "a change from {} to {} s (ten years) after the start",
                            before.as_secs_f64(),
                            Span::LONGEST.as_secs_f64()
                        );
                        let found = format!("one at {} s", point.at.as_secs_f64());
                        return Err(SpecError::new(field("at"), found, legal));
                    }
                    before = point.at;
                }
                let some = points.iter().any(|point| point.per_sec >= LEAST);
                ensure(some, "points", "no rate above 0", || "at least one rate above 0")
            }
        }
    }

    /// The rate, if it is always the same. Users take requests in the order in which they would
    /// arrive at the highest rate.
    pub(crate) fn steady(&self) -> Option<f64> {
        match self {
            Rate::Steady(per_sec) => Some(*per_sec),
            Rate::Users(_) => Some(MOST),
            Rate::Shaped(_) => None,
        }
    }

    /// When it stops changing; `None` if it never changes. A workload without a number of requests
    /// and without a horizon ends there.
    pub fn last_change(&self) -> Option<Time> {
        match self {
            Rate::Steady(_) | Rate::Users(_) => None,
            Rate::Shaped(points) => points.last().map(|point| point.at),
        }
    }

    /// How many requests are expected before `until`.
    pub fn requests_before(&self, until: Time) -> f64 {
        let mut at = Time::ZERO;
        let mut requests = 0.0;
        while at < until {
            let stretch = self.stretch(at);
            let end = stretch.until.min(until);
            requests += stretch.requests(float(end.as_nanos() - at.as_nanos()));
            at = end;
        }
        requests
    }

    /// The stretch that holds at `at`.
    pub(crate) fn stretch(&self, at: Time) -> Stretch {
        let level = |per_sec: f64, until| Stretch { per_nano: per_sec / 1e9, slope: 0.0, until };
        let points = match self {
            Rate::Steady(per_sec) => return level(*per_sec, Time::NEVER),
            Rate::Users(_) => return level(MOST, Time::NEVER),
            Rate::Shaped(points) => points,
        };
        let next = points.partition_point(|point| point.at <= at);
        match (next.checked_sub(1).map(|before| points[before]), points.get(next)) {
            (None, None) => level(0.0, Time::NEVER),
            (None, Some(first)) => level(first.per_sec, first.at),
            (Some(last), None) => level(last.per_sec, Time::NEVER),
            (Some(from), Some(to)) => {
                let length = float(to.at.as_nanos() - from.at.as_nanos());
                let slope = (to.per_sec - from.per_sec) / 1e9 / length;
                let gone = float(at.as_nanos() - from.at.as_nanos());
                Stretch { per_nano: from.per_sec / 1e9 + slope * gone, slope, until: to.at }
            }
        }
    }
}

impl Stretch {
    /// Requests expected in its first `nanos` nanoseconds.
    pub(crate) fn requests(&self, nanos: f64) -> f64 {
        // A rate of 0 that lasts for ever would be 0 times infinity.
        (self.per_nano + 0.5 * self.slope * nanos) * nanos
    }

    /// After how many nanoseconds `requests` are expected, which are no more than it has.
    pub(crate) fn nanos(&self, requests: f64) -> f64 {
        if self.slope == 0.0 {
            return requests / self.per_nano;
        }
        // The root of the quadratic in the form that loses no digits when the slope is small.
        let under_root = self.per_nano * self.per_nano + 2.0 * self.slope * requests;
        2.0 * requests / (self.per_nano + under_root.max(0.0).sqrt())
    }

    /// The same with the rate times `factor`, no longer than `until`.
    pub(crate) fn scaled(self, factor: f64, until: Time) -> Stretch {
        Stretch {
            per_nano: self.per_nano * factor,
            slope: self.slope * factor,
            until: self.until.min(until),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn seconds(secs: u64) -> Time {
        Time::from_micros(secs * 1_000_000)
    }

    fn close(found: f64, expected: f64) {
        assert!((found - expected).abs() < 1e-9 * expected.max(1.0), "{found}, not {expected}");
    }

    #[test]
    fn a_ramp_has_the_area_of_its_trapezium() {
        let ramp = Rate::ramp(3.0, 60.0, Span::from_secs_f64(100.0));
        close(ramp.requests_before(seconds(100)), 3_150.0);
        close(ramp.requests_before(seconds(50)), 50.0 * (3.0 + 31.5) / 2.0);
        close(ramp.requests_before(seconds(110)), 3_150.0 + 600.0);
        assert_eq!(ramp.last_change(), Some(seconds(100)));
    }

    #[test]
    fn steps_hold_their_rate_and_then_the_last_one() {
        let second = Span::from_secs_f64(1.0);
        let steps = Rate::steps([(8.0, second), (0.0, second), (16.0, second)]);
        for (until, requests) in [(1, 8.0), (2, 8.0), (3, 24.0), (5, 56.0)] {
            close(steps.requests_before(seconds(until)), requests);
        }
    }

    #[test]
    fn the_time_of_a_request_is_the_inverse_of_the_requests_in_a_time() {
        for (from, to) in [(5.0, 5.0), (0.0, 9.0), (9.0, 0.0), (3.0, 60.0)] {
            let stretch = Rate::ramp(from, to, Span::from_secs_f64(10.0)).stretch(Time::ZERO);
            for part in [0.001, 0.3, 0.9] {
                close(stretch.nanos(stretch.requests(part * 1e10)), part * 1e10);
            }
        }
    }

    #[test]
    fn illegal_rates_are_refused_with_their_place() {
        let at = |secs, per_sec| RatePoint { at: seconds(secs), per_sec };
        for (rate, message) in [
            (
                Rate::Steady(0.0),
                "field ``: found 0; legal: a number from 0.000000001 to 1000000000",
            ),
            (
                Rate::Shaped(vec![at(0, 1.0), at(1, f64::NAN)]),
                "field `points[1].per_sec`: found NaN; legal: a number from 0 to 1000000000",
            ),
            (
                Rate::Shaped(vec![at(0, 0.0)]),
                "field `points`: found no rate above 0; legal: at least one rate above 0",
            ),
        ] {
            assert_eq!(rate.validate().expect_err("illegal").to_string(), message);
        }
        let back = Rate::Shaped(vec![at(2, 1.0), at(1, 1.0)]).validate().expect_err("goes back");
        assert_eq!(back.field, "points[1].at");
    }
}
