//! The bias-corrected and accelerated bootstrap interval of a mean (Efron 1987).
//!
//! Resampling draws from a stream of its own, the same for every question: two looks at the same
//! values give the same interval to the last bit.

use blis_core::Dice;
use blis_core::math::normal;
use blis_core::math::{count, float, pow};
use blis_core::random::Purpose;

/// How often values are drawn again. Corrected levels go down to about one in a thousand, of which
/// this leaves five on each side; Student's t stands guard beyond.
const RESAMPLES: usize = 10_000;

/// The interval that leaves out the mean that `values` come from with probability `level`, half of
/// it on each side; the values' own mean, twice, if they are all equal.
///
/// # Panics
/// If there are no values.
pub fn bca(values: &[f64], level: f64) -> (f64, f64) {
    assert!(!values.is_empty(), "no values to draw from");
    let mean = mean(values);
    let Some(acceleration) = acceleration(values, mean) else { return (mean, mean) };
    let means = resampled(values);
    let below = means.partition_point(|&other| other < mean);
    let equal = means[below..].partition_point(|&other| other <= mean);
    let share = (float(below as u64) + 0.5 * float(equal as u64)) / float(means.len() as u64);
    // All resamples on one side happens only to values that are nearly equal.
    let bias = normal::quantile(share.clamp(1e-6, 1.0 - 1e-6));
    let end = |tail: f64| {
        let shifted = bias + normal::quantile(tail);
        let corrected = bias + shifted / (1.0 - acceleration * shifted).max(1e-6);
        at(&means, normal::below(corrected))
    };
    (end(0.5 * level), end(1.0 - 0.5 * level))
}

/// The means of resamples, ascending.
fn resampled(values: &[f64]) -> Vec<f64> {
    let mut dice = Dice::new(0, Purpose::Resampling, values.len() as u64);
    let mut draw = |_| values[dice.below(values.len())];
    let n = float(values.len() as u64);
    let one = |_| (0..values.len()).map(&mut draw).sum::<f64>() / n;
    let mut means: Vec<f64> = (0..RESAMPLES).map(one).collect();
    means.sort_by(f64::total_cmp);
    means
}

/// A sixth of the skewness of the mean, from leaving out one value at a time; `None` if all values
/// are equal.
fn acceleration(values: &[f64], mean: f64) -> Option<f64> {
    let (mut squares, mut cubes) = (0.0, 0.0);
    for value in values {
        let off = value - mean;
        squares += off * off;
        cubes += off * off * off;
    }
    (squares > 0.0).then(|| cubes / (6.0 * pow(squares, 1.5)))
}

fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / float(values.len() as u64)
}

/// The value below which a `share` of the ascending `values` lies.
fn at(values: &[f64], share: f64) -> f64 {
    let rank = share * float(values.len() as u64 - 1);
    let index = usize::try_from(count(rank)).unwrap_or(usize::MAX);
    values[index.min(values.len() - 1)]
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The means of all 5^5 resamples of five skewed values: the bias is that of 1,683.5 of 3,125
    /// below the mean, the acceleration 0.0910, and the corrected tails 0.1040 and 0.9849.
    const REFERENCE: (f64, f64) = (2.4, 10.0);

    #[test]
    fn an_interval_is_that_of_all_resamples() {
        let (low, high) = bca(&[1.0, 2.0, 3.0, 5.0, 14.0], 0.1);
        assert!((low - REFERENCE.0).abs() <= 0.2 + 1e-9, "{low}, not {}", REFERENCE.0);
        assert!((high - REFERENCE.1).abs() <= 0.2 + 1e-9, "{high}, not {}", REFERENCE.1);
    }

    #[test]
    fn equal_values_have_an_interval_of_no_width() {
        assert_eq!(bca(&[2.5; 9], 0.05), (2.5, 2.5));
    }

    #[test]
    fn the_longer_tail_is_on_the_side_of_the_skew() {
        let values: Vec<f64> =
            (0..12).map(|key| Dice::new(5, Purpose::Sampling, key).exponential()).collect();
        let (low, high) = bca(&values, 0.05);
        let mean = mean(&values);
        assert!(high - mean > 1.3 * (mean - low), "{low} {mean} {high}");
        assert_eq!((low, high), bca(&values, 0.05), "the same values, the same interval");
    }
}
