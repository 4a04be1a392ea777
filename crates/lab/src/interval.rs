//! The mean over replications, and how sure it is. Used by reports of several seeds.

use blis_core::math::float;

/// Two-sided 95 % quantiles of Student's t for 1 to 30 degrees of freedom.
const T_95: [f64; 30] = [
    12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228, 2.201, 2.179, 2.160,
    2.145, 2.131, 2.120, 2.110, 2.101, 2.093, 2.086, 2.080, 2.074, 2.069, 2.064, 2.060, 2.056,
    2.052, 2.048, 2.045, 2.042,
];
/// For more degrees of freedom: that of 30, which is a little too wide.
const T_95_MANY: f64 = 2.042;

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
        let t = T_95.get(freedom - 1).copied().unwrap_or(T_95_MANY);
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
        assert!((interval.half_width - 2.776 * 0.5_f64.sqrt()).abs() < 1e-12);
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
