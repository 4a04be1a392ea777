//! The mean over replications, and how sure it is. Used by reports of several seeds.

use crate::stats::mean_and_half_width;
use blis_core::math::{exp, ln};

/// A mean and its 95 % confidence interval.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Interval {
    /// The mean.
    pub mean: f64,
    /// Lower end of the interval.
    pub low: f64,
    /// Upper end of the interval.
    pub high: f64,
}

impl Interval {
    /// The interval of independent `values`, by Student's t; `None` for fewer than two. Of ratios
    /// (latencies and rates), if all are positive, it is that of the geometric mean, from the
    /// logarithms: a percentile has a long tail over seeds, its logarithm has not.
    pub fn of(values: &[f64], ratios: bool) -> Option<Interval> {
        if ratios && values.iter().all(|&value| value > 0.0) {
            let logs: Vec<f64> = values.iter().map(|&value| ln(value)).collect();
            let (mean, half) = mean_and_half_width(&logs, 0.05)?;
            return Some(Interval {
                mean: exp(mean),
                low: exp(mean - half),
                high: exp(mean + half),
            });
        }
        let (mean, half) = mean_and_half_width(values, 0.05)?;
        Some(Interval { mean, low: mean - half, high: mean + half })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use blis_core::Dice;
    use blis_core::random::Purpose;

    #[test]
    fn an_interval_worked_out_by_hand() {
        // Mean 3, variance 2.5, error sqrt(2.5 / 5) = 0.7071, t(4) = 2.776.
        let values = [1.0, 2.0, 3.0, 4.0, 5.0];
        let half = 2.776_445 * 0.5_f64.sqrt();
        let near = |found: f64, expected: f64| (found / expected - 1.0).abs() < 1e-6;
        let found = Interval::of(&values, false).expect("five values");
        assert!(near(found.mean, 3.0) && near(found.high, 3.0 + half), "{found:?}");
        let found = Interval::of(&values.map(exp), true).expect("five values");
        assert!(near(found.mean, exp(3.0)) && near(found.low, exp(3.0 - half)), "{found:?}");
    }

    #[test]
    fn one_value_has_no_interval() {
        assert_eq!(Interval::of(&[1.0], true), None);
        assert_eq!(Interval::of(&[], false), None);
    }

    /// What a run with one seed tells.
    type Draw = fn(&mut Dice) -> f64;

    /// How many of 2,000 intervals of `n` draws hold their geometric mean, whose logarithm is 0.
    fn held(n: u64, draw: Draw) -> usize {
        let holds = |key: &u64| {
            let mut dice = Dice::new(17, Purpose::Sampling, n << 32 | *key);
            let values: Vec<f64> = (0..n).map(|_| draw(&mut dice)).collect();
            Interval::of(&values, true).is_some_and(|found| found.low <= 1.0 && 1.0 <= found.high)
        };
        (0..2_000).filter(holds).count()
    }

    /// The 99th percentile of 100 waits with a heavy tail, over its geometric mean.
    fn heavy_percentile(dice: &mut Dice) -> f64 {
        let mut waits: Vec<f64> = (0..100).map(|_| 1.5 * dice.normal()).collect();
        waits.sort_by(f64::total_cmp);
        exp(waits[98] - MEAN_OF_SECOND * 1.5)
    }

    /// The mean of the second largest of 100 normal values.
    const MEAN_OF_SECOND: f64 = 2.148_141;

    #[test]
    fn intervals_of_tables_hold_the_truth_93_to_97_times_in_a_hundred() {
        let cases: [(&str, Draw); 4] = [
            ("narrow", |dice| exp(0.1 * dice.normal())),
            ("wide", |dice| exp(0.5 * dice.normal())),
            ("heavy", |dice| exp(1.5 * dice.normal())),
            ("p99 of a heavy tail", heavy_percentile),
        ];
        for (name, draw) in cases {
            for n in [3, 10] {
                let held = held(n, draw);
                assert!((1_860..=1_940).contains(&held), "{name}, {n} seeds: {held} of 2,000");
            }
        }
    }
}
