//! The mean over replications, and how sure it is. Used by reports of several seeds.

use crate::stats::mean_and_half_width;

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
        let (mean, half_width) = mean_and_half_width(values, 0.05)?;
        Some(Interval { mean, half_width })
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
}
