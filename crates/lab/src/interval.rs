//! The mean over replications, and how sure it is. Used by reports of several seeds.

use crate::stats::t_quantile;
use blis_core::math::float;

/// A mean and the half-width of its 95 % confidence interval.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Interval {
    /// The mean.
    pub mean: f64,
    /// Half of the interval's width.
    pub half_width: f64,
}

impl Interval {
    /// The interval of independent, roughly normal `values`; `None` for fewer than two.
    pub fn of(values: &[f64]) -> Option<Interval> {
        let freedom = values.len().checked_sub(1).filter(|&freedom| freedom > 0)?;
        let n = float(values.len() as u64);
        let mean = values.iter().sum::<f64>() / n;
        let squares: f64 = values.iter().map(|value| (value - mean) * (value - mean)).sum();
        let error = (squares / float(freedom as u64) / n).sqrt();
        let t = t_quantile(freedom, 0.05);
        Some(Interval { mean, half_width: t * error })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_interval_worked_out_by_hand() {
        // Mean 3, variance 2.5, error sqrt(2.5 / 5) = 0.7071, t(4) = 2.776.
        let interval = Interval::of(&[1.0, 2.0, 3.0, 4.0, 5.0]).expect("five values");
        assert!((interval.mean - 3.0).abs() < 1e-12);
        assert!((interval.half_width - 2.776_445 * 0.5_f64.sqrt()).abs() < 1e-6);
    }

    #[test]
    fn one_value_has_no_interval() {
        assert_eq!(Interval::of(&[1.0]), None);
        assert_eq!(Interval::of(&[]), None);
    }

    #[test]
    fn intervals_hold_the_true_mean_as_often_as_they_say() {
        let covers = |seed: u64| {
            let mut dice = blis_core::Dice::new(seed, blis_core::random::Purpose::Sampling, 0);
            let values: Vec<f64> = (0..6).map(|_| dice.normal()).collect();
            Interval::of(&values).is_some_and(|i| i.mean.abs() <= i.half_width)
        };
        let held = (0..4_000).filter(|&seed| covers(seed)).count();
        assert!((3_740..=3_860).contains(&held), "{held} of 4,000; 3,800 expected");
    }
}
