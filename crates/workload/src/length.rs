//! How long prompts and outputs are: distributions over whole numbers of tokens, 1 and up.
//!
//! A client mix draws from them, one keyed stream a request. A length must never draw from anything
//! but the dice it is given, and never returns more than [`MAX_TOKENS`]; 0 only as a count of
//! things, such as images, that was allowed to be 0.

use crate::error::{SpecError, ensure, within};
use blis_core::Dice;
use blis_core::math::{count, exp, float, ln, pow};

/// The longest prompt part or output that a distribution may give, in tokens. Prefix, input and
/// output together then still fit the 32-bit token counts of the engine.
pub const MAX_TOKENS: u32 = 1 << 30;

/// A distribution of lengths in tokens. Every sample is a whole number from 1 to [`MAX_TOKENS`].
#[derive(Clone, Debug, PartialEq)]
pub enum Length {
    /// Always this many tokens (1..=[`MAX_TOKENS`]).
    Constant(u32),
    /// Normal, clamped to `min..=max` and rounded to the nearest token.
    Gaussian {
        /// Mean before clamping, in tokens (`min`..=`max`).
        mean: f64,
        /// Standard deviation before clamping, in tokens (0..=[`MAX_TOKENS`]); 0 is a constant.
        std_dev: f64,
        /// Least length in tokens (>= 1).
        min: u32,
        /// Greatest length in tokens (`min`..=[`MAX_TOKENS`]).
        max: u32,
    },
    /// Exponential, rounded to the nearest token and clamped to `min..=max`.
    Exponential {
        /// Mean before rounding and clamping, in tokens (above 0, at most [`MAX_TOKENS`]).
        mean: f64,
        /// Least length in tokens (>= 1).
        min: u32,
        /// Greatest length in tokens (`min`..=[`MAX_TOKENS`]).
        max: u32,
    },
    /// Lognormal, rounded to the nearest token and clamped to `min..=max`.
    Lognormal {
        /// Mean of the logarithm of the length (-20..=20).
        mu: f64,
        /// Standard deviation of the logarithm of the length (0..=10).
        sigma: f64,
        /// Least length in tokens (>= 1).
        min: u32,
        /// Greatest length in tokens (`min`..=[`MAX_TOKENS`]).
        max: u32,
    },
    /// A Pareto tail with probability `mix_weight`, else lognormal; rounded to the nearest token.
    ParetoLognormal {
        /// Tail index of the Pareto part (0.01..=100).
        alpha: f64,
        /// Least value of the Pareto part in tokens (above 0, at most [`MAX_TOKENS`]).
        xm: f64,
        /// Mean of the logarithm of the lognormal part (-20..=20).
        mu: f64,
        /// Standard deviation of the logarithm of the lognormal part (0..=10).
        sigma: f64,
        /// Share of the Pareto part (0..=1).
        mix_weight: f64,
    },
    /// Given lengths with given weights.
    Empirical(Empirical),
    /// Geometric on 1, 2, 3, ...: after every token the output ends with probability 1 / mean.
    Geometric {
        /// Mean in tokens (1..=[`MAX_TOKENS`]); 1 is a constant.
        mean: f64,
    },
}

const LEAST_MEAN: f64 = 1e-3;

/// Lengths and how often each comes.
#[derive(Clone, Debug, PartialEq)]
pub struct Empirical {
    /// Ascending lengths, each with the chance of it or a shorter one; the last has 1.
    bins: Vec<(u32, f64)>,
}

impl Empirical {
    /// Ascending lengths, each with the chance of it or a shorter one.
    pub fn bins(&self) -> &[(u32, f64)] {
        &self.bins
    }

    /// Lengths in tokens (1..=[`MAX_TOKENS`], each once) with weights (0..=1e12, not all 0).
    ///
    /// # Errors
    /// If there is none, a length comes twice, or a length or a weight is out of its range.
    pub fn new(bins: impl IntoIterator<Item = (u32, f64)>) -> Result<Empirical, SpecError> {
        Empirical::from_least(bins, 1)
    }

    /// The same for counts of things, which may be 0.
    ///
    /// # Errors
    /// Like [`Empirical::new`].
    pub fn counts(bins: impl IntoIterator<Item = (u32, f64)>) -> Result<Empirical, SpecError> {
        Empirical::from_least(bins, 0)
    }

    fn from_least(
        bins: impl IntoIterator<Item = (u32, f64)>,
        least: u32,
    ) -> Result<Empirical, SpecError> {
        let mut bins: Vec<(u32, f64)> = bins.into_iter().collect();
        bins.sort_by_key(|&(length, _)| length);
        if let Some(pair) = bins.windows(2).find(|pair| pair[0].0 == pair[1].0) {
            return Err(SpecError::new(pair[0].0.to_string(), "two weights", "one a length"));
        }
        for &(length, weight) in &bins {
            tokens(&length.to_string(), length, least)?;
            within(&length.to_string(), weight, 0.0, 1e12)?;
        }
        let total: f64 = bins.iter().map(|&(_, weight)| weight).sum();
        let legal = || "at least one length with a weight above 0";
        ensure(total > 0.0, "params", "no weight", legal)?;
        let mut sum = 0.0;
        for (_, weight) in &mut bins {
            sum += *weight;
            *weight = sum / total;
        }
        Ok(Empirical { bins })
    }

    fn sample(&self, dice: &mut Dice) -> u32 {
        let chance = dice.unit();
        let at = self.bins.partition_point(|&(_, upto)| upto <= chance);
        self.bins[at.min(self.bins.len() - 1)].0
    }

    fn mean(&self) -> f64 {
        let mut before = 0.0;
        let mut mean = 0.0;
        for &(length, upto) in &self.bins {
            mean += f64::from(length) * (upto - before);
            before = upto;
        }
        mean
    }
}

impl Length {
    /// Checks every parameter; the error's field is relative to the distribution, e.g. `std_dev`.
    ///
    /// # Errors
    /// If a parameter is not finite or out of its range.
    pub fn validate(&self) -> Result<(), SpecError> {
        self.validate_from(1)
    }

    /// The same for a length or count that may be as low as `least`.
    pub(crate) fn validate_from(&self, least: u32) -> Result<(), SpecError> {
        let most = f64::from(MAX_TOKENS);
        match *self {
            Length::Constant(value) => tokens("value", value, least),
            Length::Gaussian { mean, std_dev, min, max } => {
                within("mean", mean, 0.0, most)?;
                within("std_dev", std_dev, 0.0, most)?;
                tokens("min", min, least)?;
                tokens("max", max, min)?;
                between(mean, min, max)
            }
            Length::Exponential { mean, min, max } => {
                within("mean", mean, LEAST_MEAN, most)?;
                tokens("min", min, least)?;
                tokens("max", max, min)
            }
            Length::Lognormal { mu, sigma, min, max } => {
                within("mu", mu, -20.0, 20.0)?;
                within("sigma", sigma, 0.0, 10.0)?;
                tokens("min", min, least)?;
                tokens("max", max, min)
            }
            Length::ParetoLognormal { alpha, xm, mu, sigma, mix_weight } => {
                within("alpha", alpha, 0.01, 100.0)?;
                within("xm", xm, LEAST_MEAN, most)?;
                within("mu", mu, -20.0, 20.0)?;
                within("sigma", sigma, 0.0, 10.0)?;
                within("mix_weight", mix_weight, 0.0, 1.0)
            }
            // Checked when it was made.
            Length::Empirical(_) => Ok(()),
            Length::Geometric { mean } => within("mean", mean, 1.0, most),
        }
    }

    /// Draws a length in tokens (1..=[`MAX_TOKENS`]).
    pub fn sample(&self, dice: &mut Dice) -> u32 {
        match *self {
            Length::Empirical(ref empirical) => empirical.sample(dice),
            Length::Lognormal { mu, sigma, min, max } => {
                clamp(exp(mu + sigma * dice.normal()), min, max)
            }
            Length::ParetoLognormal { alpha, xm, mu, sigma, mix_weight } => {
                let x = if dice.unit() < mix_weight {
                    xm / pow(dice.unit_open(), 1.0 / alpha)
                } else {
                    exp(mu + sigma * dice.normal())
                };
                clamp(x, 1, MAX_TOKENS)
            }
            Length::Constant(value) => value,
            Length::Gaussian { mean, std_dev, min, max } => {
                // A constant needs no draw, and the dice belong to this one length, so nothing else
                // shifts.
                let x = if std_dev > 0.0 { mean + std_dev * dice.normal() } else { mean };
                clamp(x, min, max)
            }
            Length::Exponential { mean, min, max } => clamp(mean * dice.exponential(), min, max),
            Length::Geometric { mean } => {
                if mean <= 1.0 {
                    return 1;
                }
                let tails = ln(dice.unit_open()) / ln(1.0 - 1.0 / mean);
                clamp(tails.ceil(), 1, MAX_TOKENS)
            }
        }
    }

    /// The exact mean of the samples in tokens, after rounding and clamping, where there is a
    /// closed form.
    pub fn mean(&self) -> Option<f64> {
        match *self {
            Length::Empirical(ref empirical) => Some(empirical.mean()),
            Length::Lognormal { .. } | Length::ParetoLognormal { .. } => None,
            Length::Constant(value) => Some(f64::from(value)),
            Length::Gaussian { mean, std_dev, min, max } => {
                (std_dev <= 0.0).then(|| f64::from(clamp(mean, min, max)))
            }
            // Both are the sum over k of the chance of at least k tokens, a finite geometric
            // series.
            Length::Exponential { mean, min, max } => {
                let ratio = exp(-1.0 / mean);
                let above_min = exp(-(f64::from(min) + 0.5) / mean);
                let terms = f64::from(max - min);
                Some(f64::from(min) + above_min * (1.0 - pow(ratio, terms)) / (1.0 - ratio))
            }
            Length::Geometric { mean } => {
                Some(mean * (1.0 - pow(1.0 - 1.0 / mean, f64::from(MAX_TOKENS))))
            }
        }
    }
}

fn tokens(field: &str, found: u32, min: u32) -> Result<(), SpecError> {
    // A `min` that is itself out of range was refused before `max` is looked at.
    let legal = || format!("a whole number from {min} to {MAX_TOKENS}");
    ensure((min..=MAX_TOKENS).contains(&found), field, found, legal)
}

/// Refuses a mean that clamping would never give.
fn between(mean: f64, min: u32, max: u32) -> Result<(), SpecError> {
    let legal = || format!("a number from {min} to {max} (`min` to `max`)");
    ensure((f64::from(min)..=f64::from(max)).contains(&mean), "mean", mean, legal)
}

/// `x` rounded to the nearest whole number in `min..=max`.
fn clamp(x: f64, min: u32, max: u32) -> u32 {
    let nearest = count(x.clamp(f64::from(min), f64::from(max)));
    assert!(float(nearest) <= f64::from(max), "clamped before rounding");
    u32::try_from(nearest).expect("clamped to a 32-bit range")
}

#[cfg(test)]
mod tests {
    use super::*;
    use blis_core::random::Purpose;

    fn draw(length: &Length, key: u64) -> u32 {
        length.sample(&mut Dice::new(1, Purpose::InputLength, key))
    }

    fn refusal(length: &Length) -> String {
        length.validate().expect_err("must be refused").to_string()
    }

    #[test]
    fn samples_never_leave_the_given_range() {
        let gaussian = Length::Gaussian { mean: 10.0, std_dev: 100.0, min: 3, max: 12 };
        let exponential = Length::Exponential { mean: 10.0, min: 2, max: 30 };
        for key in 0..10_000 {
            assert!((3..=12).contains(&draw(&gaussian, key)));
            assert!((2..=30).contains(&draw(&exponential, key)));
            assert!(draw(&Length::Geometric { mean: 1.001 }, key) >= 1);
        }
    }

    #[test]
    fn constants_are_constant() {
        for key in 0..100 {
            assert_eq!(draw(&Length::Constant(7), key), 7);
            assert_eq!(draw(&Length::Geometric { mean: 1.0 }, key), 1);
            let spread_free = Length::Gaussian { mean: 6.5, std_dev: 0.0, min: 1, max: 99 };
            assert_eq!(draw(&spread_free, key), 7);
        }
    }

    #[test]
    fn the_closed_form_of_the_mean_counts_rounding_and_clamping() {
        let about = |length: &Length, mean: f64| {
            let found = length.mean().expect("has a closed form");
            assert!((found - mean).abs() < 1e-6 * mean, "{length:?}: {found}");
        };
        about(&Length::Constant(7), 7.0);
        about(&Length::Geometric { mean: 128.0 }, 128.0);
        about(&Length::Geometric { mean: 1.0 }, 1.0);
        about(&Length::Gaussian { mean: 500.0, std_dev: 0.0, min: 1, max: 99 }, 99.0);
        // P(>= 2) = e^-1.5 and P(>= 3) = e^-2.5, and nothing is above 3.
        about(
            &Length::Exponential { mean: 1.0, min: 1, max: 3 },
            1.0 + 0.223_130_16 + 0.082_084_998_6,
        );
        assert_eq!(Length::Gaussian { mean: 5.0, std_dev: 1.0, min: 1, max: 9 }.mean(), None);
    }

    #[test]
    fn illegal_parameters_are_named_with_their_value_and_range() {
        let gaussian = |mean, std_dev, min, max| Length::Gaussian { mean, std_dev, min, max };
        for (length, message) in [
            (
                Length::Constant(0),
                "field `value`: found 0; legal: a whole number from 1 to 1073741824",
            ),
            (
                gaussian(f64::NAN, 1.0, 1, 2),
                "field `mean`: found NaN; legal: a number from 0 to 1073741824",
            ),
            (
                gaussian(1.0, -2.0, 1, 2),
                "field `std_dev`: found -2; legal: a number from 0 to 1073741824",
            ),
            (
                gaussian(1.0, 1.0, 0, 2),
                "field `min`: found 0; legal: a whole number from 1 to 1073741824",
            ),
            (
                gaussian(1.0, 1.0, 5, 2),
                "field `max`: found 2; legal: a whole number from 5 to 1073741824",
            ),
            (
                gaussian(9.0, 1.0, 1, 2),
                "field `mean`: found 9; legal: a number from 1 to 2 (`min` to `max`)",
            ),
            (
                gaussian(1.5, 1.0, 2, 3),
                "field `mean`: found 1.5; legal: a number from 2 to 3 (`min` to `max`)",
            ),
            (
                Length::Exponential { mean: f64::INFINITY, min: 1, max: 2 },
                "field `mean`: found inf; legal: a number from 0.001 to 1073741824",
            ),
            (
                Length::Exponential { mean: 1.0, min: 1, max: u32::MAX },
                "field `max`: found 4294967295; legal: a whole number from 1 to 1073741824",
            ),
            (
                Length::Geometric { mean: 0.5 },
                "field `mean`: found 0.5; legal: a number from 1 to 1073741824",
            ),
        ] {
            assert_eq!(refusal(&length), message);
        }
        assert!(gaussian(256.0, 100.0, 1, MAX_TOKENS).validate().is_ok());
        assert!(gaussian(7.0, 0.0, 7, 7).validate().is_ok());
    }
}
