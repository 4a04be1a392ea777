//! When requests arrive: gaps of mean 1, and the clock that scales them to a client's rate.
//!
//! A client mix draws one gap a request and advances its client's clock. The clock carries the part
//! of a nanosecond that rounding leaves over, so neither a mean nor a constant rate drifts, however
//! long the run. Nothing here may depend on when a request is served: arrivals are open loop.

use crate::error::{SpecError, within};
use crate::rate::Stretch;
use blis_core::math::{count, exp, float, gamma, pow};
use blis_core::{Dice, Time};

/// An arrival process, by the distribution of the gaps between arrivals.
#[derive(Clone, Debug, PartialEq)]
pub enum Arrival {
    /// Exponential gaps: CV 1, no memory.
    Poisson,
    /// Gamma gaps: bursty above CV 1, more regular than Poisson below.
    Gamma {
        /// Coefficient of variation of the gaps (0.01..=100).
        cv: f64,
    },
    /// Weibull gaps: bursty above CV 1, more regular than Poisson below.
    Weibull(Weibull),
    /// Equal gaps.
    Constant,
}

/// A Weibull distribution of mean 1.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Weibull {
    shape: f64,
    scale: f64,
}

impl Weibull {
    /// Its parameters.
    pub fn shape_and_scale(&self) -> (f64, f64) {
        (self.shape, self.scale)
    }

    /// The one with coefficient of variation `cv` (0.01..=10.4).
    ///
    /// # Errors
    /// If `cv` is not finite or out of its range.
    pub fn new(cv: f64) -> Result<Weibull, SpecError> {
        within("cv", cv, 0.01, 10.4)?;
        // The coefficient of variation falls as the shape rises: halve the interval 60 times.
        let (mut low, mut high) = (0.1_f64, 1_000.0_f64);
        for _ in 0..60 {
            let middle = 0.5 * (low + high);
            if variation(middle) > cv { low = middle } else { high = middle }
        }
        let shape = 0.5 * (low + high);
        Ok(Weibull { shape, scale: 1.0 / gamma(1.0 + 1.0 / shape) })
    }

    /// Chance of a gap of at most `x`.
    pub fn cdf(&self, x: f64) -> f64 {
        1.0 - exp(-pow(x.max(0.0) / self.scale, self.shape))
    }
}

/// Coefficient of variation of a Weibull distribution.
fn variation(shape: f64) -> f64 {
    let mean = gamma(1.0 + 1.0 / shape);
    (gamma(1.0 + 2.0 / shape) / (mean * mean) - 1.0).max(0.0).sqrt()
}

impl Arrival {
    /// Checks every parameter; the error's field is relative to the process, e.g. `cv`.
    ///
    /// # Errors
    /// If the coefficient of variation is not finite or out of its range.
    pub fn validate(&self) -> Result<(), SpecError> {
        match *self {
            Arrival::Poisson | Arrival::Constant | Arrival::Weibull(_) => Ok(()),
            Arrival::Gamma { cv } => within("cv", cv, 0.01, 100.0),
        }
    }

    /// Draws a gap (>= 0, mean 1).
    pub fn gap(&self, dice: &mut Dice) -> f64 {
        match *self {
            Arrival::Poisson => dice.exponential(),
            Arrival::Gamma { cv } => {
                let scale = cv * cv;
                scale * dice.gamma(1.0 / scale)
            }
            Arrival::Weibull(Weibull { shape, scale }) => {
                scale * pow(dice.exponential(), 1.0 / shape)
            }
            Arrival::Constant => 1.0,
        }
    }
}

/// The arrival times of one client: whole nanoseconds, and the fraction that they leave over.
#[derive(Clone, Debug)]
pub struct ArrivalClock {
    now: Time,
    /// What `now` is short of the exact time, in -0.5..=0.5 ns.
    left_over: f64,
    mean_gap_ns: f64,
}

impl ArrivalClock {
    /// A clock at the start of the run whose gaps have a mean of 1 / `rate_per_sec` (> 0).
    pub fn new(rate_per_sec: f64) -> ArrivalClock {
        ArrivalClock { now: Time::ZERO, left_over: 0.0, mean_gap_ns: 1e9 / rate_per_sec }
    }

    /// Moves on by `gap` mean gaps (>= 0) and returns the new time, rounded to the nearest
    /// nanosecond. Past the end of the clock it stays at [`Time::NEVER`].
    pub fn advance(&mut self, gap: f64) -> Time {
        self.move_on(gap * self.mean_gap_ns)
    }

    /// Moves on until `gap` requests are expected at a rate that is `stretch` of the time, which
    /// may be 0 for a while; if it is 0 for ever, to [`Time::NEVER`].
    pub(crate) fn advance_along(&mut self, gap: f64, stretch: impl Fn(Time) -> Stretch) -> Time {
        let mut gap = gap;
        while self.now < Time::NEVER {
            let here = stretch(self.now);
            let left = float(here.until.as_nanos() - self.now.as_nanos()) - self.left_over;
            let requests = here.requests(left);
            if gap < requests {
                return self.move_on(here.nanos(gap));
            }
            gap -= requests;
            (self.now, self.left_over) = (here.until, 0.0);
        }
        self.now
    }

    fn move_on(&mut self, nanos: f64) -> Time {
        let exact = nanos + self.left_over;
        let whole = count(exact);
        self.left_over = exact - float(whole);
        self.now = Time::from_nanos(self.now.as_nanos().saturating_add(whole));
        self.now
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn constant_arrivals_do_not_drift_over_a_million_gaps() {
        for (rate, nanos) in
            [(3.0, 333_333_333_333_333), (20.0, 50_000_000_000_000), (7e5, 1_428_571_429)]
        {
            let mut clock = ArrivalClock::new(rate);
            let last = (0..1_000_000).map(|_| clock.advance(1.0)).last();
            assert_eq!(last, Some(Time::from_nanos(nanos)), "rate {rate}");
        }
    }

    #[test]
    fn rates_above_one_a_nanosecond_lose_no_time() {
        let mut clock = ArrivalClock::new(4e9);
        let times: Vec<u64> = (0..8).map(|_| clock.advance(1.0).as_nanos()).collect();
        assert_eq!(times.last(), Some(&2), "eight gaps of a quarter: {times:?}");
    }

    #[test]
    fn a_gap_beyond_the_clock_ends_at_never() {
        let mut clock = ArrivalClock::new(1e-12);
        assert_eq!(clock.advance(1.0), Time::NEVER);
        assert_eq!(clock.advance(f64::INFINITY), Time::NEVER);
    }

    #[test]
    fn an_illegal_cv_is_refused() {
        for cv in [0.0, -1.0, f64::NAN, f64::INFINITY, 1e308] {
            let error = Arrival::Gamma { cv }.validate().expect_err("must be refused").to_string();
            assert_eq!(error, format!("field `cv`: found {cv}; legal: a number from 0.01 to 100"));
        }
        assert!(Arrival::Gamma { cv: 3.5 }.validate().is_ok());
    }
}
