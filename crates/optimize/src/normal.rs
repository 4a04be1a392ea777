//! The normal distribution far out in its tails, in logarithms.
//!
//! Improvements that are too small for a float still have to be compared: most of a search space
//! improves on the best by less than 1e-300. Called by the acquisition functions.

use blis_core::math::{erfc, exp, ln, ln_1p};
use std::f64::consts::{FRAC_1_SQRT_2, PI};

/// Below this the asymptotic series is exact to more digits than the direct formula.
const FAR: f64 = -25.0;

/// ln of the density.
pub(crate) fn ln_density(z: f64) -> f64 {
    -0.5 * z * z - 0.5 * ln(2.0 * PI)
}

/// The cumulative distribution.
pub(crate) fn cumulative(z: f64) -> f64 {
    0.5 * erfc(-z * FRAC_1_SQRT_2)
}

/// ln of the cumulative distribution.
pub(crate) fn ln_cumulative(z: f64) -> f64 {
    if z > 0.0 {
        ln_1p(-0.5 * erfc(z * FRAC_1_SQRT_2))
    } else if z > FAR {
        ln(cumulative(z))
    } else {
        let q = 1.0 / (z * z);
        let series = -q * (1.0 - 3.0 * q * (1.0 - 5.0 * q * (1.0 - 7.0 * q)));
        ln_density(z) - ln(-z) + ln_1p(series)
    }
}

/// ln h(z), where h(z) = density + z * cumulative is the mean of max(0, z - X) for a standard
/// normal X: the expected improvement in units of the standard deviation.
pub(crate) fn ln_improvement(z: f64) -> f64 {
    if z > -1.0 {
        return ln(exp(ln_density(z)) + z * cumulative(z));
    }
    // h = density * (1 + z * Mills), which is a small difference of numbers near 1.
    let q = 1.0 / (z * z);
    let share = if z > FAR {
        1.0 + z * exp(ln_cumulative(z) - ln_density(z))
    } else {
        q * (1.0 - 3.0 * q * (1.0 - 5.0 * q * (1.0 - 7.0 * q)))
    };
    ln_density(z) + ln(share)
}

/// ln(exp(a) - exp(b)) for a >= b.
pub(crate) fn ln_difference(a: f64, b: f64) -> f64 {
    if b == f64::NEG_INFINITY { a } else { a + ln_1p(-exp(b - a)) }
}

/// ln of the sum of exponentials.
pub(crate) fn ln_sum(terms: &[f64]) -> f64 {
    let greatest = terms.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    if greatest == f64::NEG_INFINITY {
        return greatest;
    }
    greatest + ln(terms.iter().map(|term| exp(term - greatest)).sum())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The integral over all x > 0 of `f`, by Simpson's rule on 0..40.
    fn integral(f: impl Fn(f64) -> f64) -> f64 {
        let n = 400_000;
        let h = 40.0 / f64::from(n);
        let weight = |i: i32| {
            if i == 0 || i == n {
                1.0
            } else if i % 2 == 1 {
                4.0
            } else {
                2.0
            }
        };
        (0..=n).map(|i| weight(i) * f(f64::from(i) * h)).sum::<f64>() * h / 3.0
    }

    #[test]
    fn logarithms_agree_with_quadrature_from_the_middle_to_the_far_tail() {
        // Scaled by the density at z, the integrands stay within a float wherever z is.
        for z in [3.0, 0.5, -0.5, -0.99, -1.01, -4.0, -12.0, -24.9, -25.1, -37.0, -80.0] {
            let scaled = |t: f64| exp(z * t - 0.5 * t * t);
            let phi = ln(integral(scaled)) + ln_density(z);
            let h = ln(integral(|t| t * scaled(t))) + ln_density(z);
            assert!((ln_cumulative(z) - phi).abs() < 1e-8, "z {z}: {} {phi}", ln_cumulative(z));
            assert!((ln_improvement(z) - h).abs() < 1e-7, "z {z}: {} {h}", ln_improvement(z));
        }
    }

    #[test]
    fn the_far_formulas_meet_the_near_ones_and_keep_falling() {
        let mut last = (f64::INFINITY, f64::INFINITY);
        for step in 0..4000 {
            let z = 10.0 - 0.05 * f64::from(step);
            let now = (ln_cumulative(z), ln_improvement(z));
            assert!(now.0.is_finite() && now.1.is_finite(), "z {z}: {now:?}");
            assert!(now.0 <= last.0 && now.1 < last.1, "z {z}: {now:?} after {last:?}");
            last = now;
        }
    }

    #[test]
    fn sums_and_differences_of_exponentials_survive_underflow() {
        assert!((ln_sum(&[-2000.0, -2000.0]) - (-2000.0 + ln(2.0))).abs() < 1e-12);
        assert!((ln_difference(-2000.0, -2000.0 - ln(2.0)) - (-2000.0 - ln(2.0))).abs() < 1e-12);
        assert!((ln_difference(-3.0, f64::NEG_INFINITY) + 3.0).abs() < 1e-12);
    }
}
