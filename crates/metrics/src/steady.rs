//! When a run had warmed up, by its times to first token in order of arrival, and whether it was
//! long enough, by the number of requests inside.

use blis_core::math::float;

/// Values of a batch of the warm-up rule.
const FIVE: usize = 5;
/// Batches that the length of a run is judged by.
const BATCHES: usize = 20;
/// With fewer values after the warm-up there is nothing to judge.
const FEWEST: usize = 5 * BATCHES;

/// How a series moves, seen in 20 batches of it.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Movement {
    /// The mean of the second half less that of the first, over the mean of all.
    pub(crate) drift: f64,
    /// The standard error of that, if batches are independent.
    pub(crate) error: f64,
    /// The correlation of neighbouring batches: near 1 where the series moves as a whole.
    pub(crate) correlation: f64,
}

/// How many of the first `values` to leave out so that the mean of the others is the surest: MSER-5
/// (White 1997). Means of five values stand for them; the cut with the smallest standard error of
/// what is left is taken. `None` if it is not within the first half: the run never settled.
pub(crate) fn warm_up(values: &[f64]) -> Option<usize> {
    let means: Vec<f64> = values.chunks_exact(FIVE).map(mean).collect();
    // From the end to the front, sums of what would be left.
    let (mut sum, mut squares, mut left) = (0.0, 0.0, 0.0);
    // Squares of values that are large and close to each other would cancel.
    let origin = mean(&means);
    let mut best = (means.len(), f64::INFINITY);
    for (cut, value) in means.iter().enumerate().rev() {
        let value = value - origin;
        (sum, squares, left) = (sum + value, squares + value * value, left + 1.0);
        let error = (squares - sum * sum / left) / (left * left);
        // The last few means are close to each other by chance.
        if left >= float(FIVE as u64) && error <= best.1 {
            best = (cut, error);
        }
    }
    (2 * best.0 <= means.len() && !means.is_empty()).then_some(best.0 * FIVE)
}

/// How `values` move; `None` for fewer than 100.
pub(crate) fn movement(values: &[f64]) -> Option<Movement> {
    if values.len() < FEWEST {
        return None;
    }
    let length = values.len() / BATCHES;
    let means: Vec<f64> = values.chunks_exact(length).take(BATCHES).map(mean).collect();
    let center = mean(&means);
    let off: Vec<f64> = means.iter().map(|value| value - center).collect();
    let squares: f64 = off.iter().map(|off| off * off).sum();
    if center <= 0.0 || squares <= 0.0 {
        return Some(Movement::default());
    }
    let (first, second) = means.split_at(BATCHES / 2);
    let variance = squared_error(first) + squared_error(second);
    let products: f64 = off.windows(2).map(|pair| pair[0] * pair[1]).sum();
    Some(Movement {
        drift: (mean(second) - mean(first)) / center,
        error: variance.sqrt() / center,
        correlation: products / squares,
    })
}

/// The square of the standard error of the mean of independent `values`.
fn squared_error(values: &[f64]) -> f64 {
    let (n, center) = (float(values.len() as u64), mean(values));
    values.iter().map(|value| (value - center) * (value - center)).sum::<f64>() / (n - 1.0) / n
}

fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / float(values.len().max(1) as u64)
}

#[cfg(test)]
mod tests {
    use super::*;
    use blis_core::Dice;
    use blis_core::math::{cos, exp};
    use blis_core::random::Purpose;

    fn noise(n: u64) -> Vec<f64> {
        (0..n).map(|key| Dice::new(1, Purpose::Sampling, key).exponential()).collect()
    }

    #[test]
    fn a_slow_start_is_cut_and_a_steady_run_is_not() {
        let steady = noise(4_000);
        assert!(warm_up(&steady).is_some_and(|cut| cut < 200), "{:?}", warm_up(&steady));
        let slow = |(i, value): (usize, &f64)| value + 20.0 * exp(-float(i as u64) / 150.0);
        let warming: Vec<f64> = steady.iter().enumerate().map(slow).collect();
        let cut = warm_up(&warming).expect("it settles");
        assert!((300..1_200).contains(&cut), "{cut}");
    }

    #[test]
    fn a_run_that_never_settles_has_no_warm_up() {
        let growing: Vec<f64> =
            noise(1_000).iter().enumerate().map(|(i, value)| value + float(i as u64)).collect();
        assert_eq!(warm_up(&growing), None);
        assert_eq!(warm_up(&[1.0; 3]), None, "nothing to tell from");
        assert_eq!(warm_up(&[1.0; 100]), Some(0));
    }

    #[test]
    fn batches_tell_whether_a_series_moves_as_a_whole() {
        let steady = movement(&noise(4_000)).expect("enough");
        // The standard error of 2,000 values is 2.2 % of their mean, that of a difference 3.2 %.
        assert!((0.02..0.05).contains(&steady.error), "{steady:?}");
        assert!(steady.drift.abs() < 0.1 && steady.correlation.abs() < 0.5, "{steady:?}");
        let tide = |(i, value): (usize, &f64)| value + 2.0 + cos(float(i as u64) / 640.0);
        let swaying: Vec<f64> = noise(4_000).iter().enumerate().map(tide).collect();
        assert!(movement(&swaying).is_some_and(|found| found.correlation > 0.5));
        let rising: Vec<f64> = (0..400).map(float).collect();
        assert!(movement(&rising).is_some_and(|found| (found.drift - 1.0).abs() < 0.01));
        assert_eq!(movement(&[1.0; 99]), None);
        assert_eq!(movement(&[1.0; 200]), Some(Movement::default()));
    }
}
