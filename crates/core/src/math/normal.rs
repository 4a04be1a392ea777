//! The standard normal distribution.

use super::erfc;
use std::f64::consts::SQRT_2;

/// Beyond this, both tails are below the smallest float.
const FAR: f64 = 38.0;

/// The probability of a value below `x`.
pub fn below(x: f64) -> f64 {
    0.5 * erfc(-x / SQRT_2)
}

/// The value that is exceeded with probability `1 - p`. Found by halving: a handful of calls a
/// verdict do not need to be fast, and this is as exact as `below` is.
pub fn quantile(p: f64) -> f64 {
    if p > 0.5 {
        // The tail that is resolved best.
        return -quantile(1.0 - p);
    }
    let (mut low, mut high) = (-FAR, 0.0);
    for _ in 0..70 {
        let middle = 0.5 * (low + high);
        if below(middle) < p { low = middle } else { high = middle }
    }
    0.5 * (low + high)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_are_those_of_the_tables() {
        for (p, z) in [(0.975, 1.959_963_985), (0.5, 0.0), (0.001, -3.090_232_306)] {
            assert!((quantile(p) - z).abs() < 1e-8, "{p}: {}", quantile(p));
        }
        for p in [1e-9, 0.025, 0.8, 0.999] {
            assert!((below(quantile(p)) / p - 1.0).abs() < 1e-9, "p {p}");
        }
    }
}
