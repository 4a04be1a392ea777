//! Student's t distribution, for means of few values.

use blis_core::math::{exp, float, ln, ln_gamma};

/// The value that a t-distributed number with `freedom` degrees of freedom exceeds in absolute
/// value with probability `level`.
fn quantile(freedom: usize, level: f64) -> f64 {
    assert!(freedom > 0 && 0.0 < level && level < 1.0, "no quantile of {level} at {freedom}");
    let freedom = float(freedom as u64);
    let outside = |t: f64| incomplete_beta(0.5 * freedom, 0.5, freedom / (freedom + t * t));
    let mut high = 1.0;
    while outside(high) > level {
        high *= 2.0;
    }
    let mut low = 0.0;
    for _ in 0..80 {
        let middle = 0.5 * (low + high);
        if outside(middle) > level { low = middle } else { high = middle }
    }
    0.5 * (low + high)
}

/// The mean of `values` and half the width of the interval around it that leaves out the true mean
/// with probability `level`; `None` for fewer than two.
pub fn mean_and_half_width(values: &[f64], level: f64) -> Option<(f64, f64)> {
    let freedom = values.len().checked_sub(1).filter(|&freedom| freedom > 0)?;
    let n = float(values.len() as u64);
    let mean = values.iter().sum::<f64>() / n;
    let squares: f64 = values.iter().map(|value| (value - mean) * (value - mean)).sum();
    let error = (squares / float(freedom as u64) / n).sqrt();
    Some((mean, quantile(freedom, level) * error))
}

/// The regularised incomplete beta function, by its continued fraction.
fn incomplete_beta(a: f64, b: f64, x: f64) -> f64 {
    if x <= 0.0 || x >= 1.0 {
        return x.clamp(0.0, 1.0);
    }
    // The fraction converges quickly on this side of the mean only.
    if x > (a + 1.0) / (a + b + 2.0) {
        return 1.0 - incomplete_beta(b, a, 1.0 - x);
    }
    let front = ln_gamma(a + b) - ln_gamma(a) - ln_gamma(b) + a * ln(x) + b * ln(1.0 - x);
    exp(front) * fraction(a, b, x) / a
}

/// The continued fraction, evaluated from the front (Lentz).
fn fraction(a: f64, b: f64, x: f64) -> f64 {
    const TINY: f64 = 1e-300;
    let solid = |value: f64| if value.abs() < TINY { TINY } else { value };
    let mut above = 1.0;
    let mut below = 1.0 / solid(1.0 - (a + b) * x / (a + 1.0));
    let mut all = below;
    for step in 1..500 {
        let step = float(step);
        let twice = a + 2.0 * step;
        let even = step * (b - step) * x / ((twice - 1.0) * twice);
        let odd = -(a + step) * (a + b + step) * x / (twice * (twice + 1.0));
        for term in [even, odd] {
            below = 1.0 / solid(1.0 + term * below);
            above = solid(1.0 + term / above);
            all *= above * below;
        }
        if (above * below - 1.0).abs() < 1e-15 {
            break;
        }
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_are_those_of_the_tables() {
        for (freedom, level, t) in [
            (1, 0.05, 12.706_2),
            (2, 0.05, 4.302_65),
            (4, 0.05, 2.776_45),
            (4, 0.01, 4.604_09),
            (10, 0.001, 4.586_89),
            (30, 0.05, 2.042_27),
            (100, 0.05, 1.983_97),
            (1_000, 0.05, 1.962_34),
        ] {
            let found = quantile(freedom, level);
            assert!((found / t - 1.0).abs() < 2e-6, "{freedom}, {level}: {found}, not {t}");
        }
    }
}
