//! A mean over seeds and its interval: the one estimate that tables and verdicts rest on.

use super::bootstrap::bca;
use super::student;
use blis_core::math::exp;
use serde::Serialize;

/// With fewer values a bootstrap knows too little of their tails: its intervals are too short
/// whatever they are corrected for. Student's t is used alone.
const FEW: usize = 8;

/// A mean and how sure it is.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Estimate {
    /// The mean.
    pub mean: f64,
    /// Lower end of its interval.
    pub low: f64,
    /// Upper end of its interval.
    pub high: f64,
    /// Of how many values it is.
    #[serde(skip)]
    pub values: usize,
}

impl Estimate {
    /// That of a ratio, if this is one of its logarithm.
    #[must_use]
    pub fn exp(self) -> Estimate {
        let Estimate { mean, low, high, values } = self;
        Estimate { mean: exp(mean), low: exp(low), high: exp(high), values }
    }
}

/// The mean of independent `values` with the interval that leaves out the true mean with
/// probability `level` at most; `None` for fewer than two. From eight values on it is wide enough
/// for Student's t and for the bootstrap both: the first is right about few values and the second
/// about skewed ones. Values that are all equal have an interval of no width.
pub fn estimate(values: &[f64], level: f64) -> Option<Estimate> {
    let found = by_student(values, level)?;
    if values.len() < FEW || found.low >= found.high {
        return Some(found);
    }
    let (low, high) = bca(values, level);
    Some(Estimate { low: found.low.min(low), high: found.high.max(high), ..found })
}

/// A part of the interval of [`estimate`], found without drawing: who cannot tell from it cannot
/// tell from the whole.
pub fn by_student(values: &[f64], level: f64) -> Option<Estimate> {
    let (mean, half) = student::mean_and_half_width(values, level)?;
    if values.iter().all(|value| value.total_cmp(&values[0]).is_eq()) {
        // A sum divided by their number may be off in its last bit.
        let value = values[0];
        return Some(Estimate { mean: value, low: value, high: value, values: values.len() });
    }
    Some(Estimate { mean, low: mean - half, high: mean + half, values: values.len() })
}

#[cfg(test)]
mod tests {
    use super::*;
    use blis_core::Dice;
    use blis_core::random::Purpose;

    #[test]
    fn an_interval_worked_out_by_hand() {
        // Mean 3, variance 2.5, error sqrt(2.5 / 5) = 0.7071, t(4) = 2.77645.
        let found = estimate(&[1.0, 2.0, 3.0, 4.0, 5.0], 0.05).expect("five values");
        assert!((found.mean - 3.0).abs() < 1e-12);
        assert!((found.high - 3.0 - 2.776_445 * 0.5_f64.sqrt()).abs() < 1e-5);
        assert!((found.low + found.high - 6.0).abs() < 1e-12);
        assert_eq!(estimate(&[1.0], 0.05), None);
        let equal = estimate(&[0.1; 12], 0.05).expect("twelve values");
        assert_eq!((equal.mean, equal.low, equal.high), (0.1, 0.1, 0.1));
    }

    /// How many of 500 intervals hold the mean of what they are drawn from.
    fn held(n: u64, level: f64, mean: f64, draw: fn(&mut Dice) -> f64) -> usize {
        let holds = |key: &u64| {
            let mut dice = Dice::new(9, Purpose::Sampling, *key);
            let values: Vec<f64> = (0..n).map(|_| draw(&mut dice)).collect();
            estimate(&values, level).is_some_and(|found| found.low <= mean && mean <= found.high)
        };
        (0..500).filter(holds).count()
    }

    #[test]
    fn intervals_hold_the_true_mean_as_often_as_they_say() {
        // Two standard errors of 475 of 500 are 10.
        for n in [3, 5, 8, 12, 20] {
            let held = held(n, 0.05, 0.0, Dice::normal);
            assert!((465..=494).contains(&held), "{n} normal values: {held}");
        }
        // Differences of logarithms of latencies are skewed less than these (skewness 1).
        for n in [5, 8, 12, 20] {
            let held = held(n, 0.05, 4.0, |dice| dice.gamma(4.0));
            assert!((459..=494).contains(&held), "{n} gamma values: {held}");
        }
    }
}
