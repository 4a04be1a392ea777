//! Monotone scales for outputs: what a Gaussian process is fitted to.
//!
//! Latency explodes at saturation, and one huge value would flatten everything else. A few scales
//! are tried and the one that makes the data most probable is taken. A scale keeps the order of
//! values; for a constraint it also keeps 0, where feasible ends.

use crate::normal;
use blis_core::math::{float, ln, ln_1p, pow};

/// How values are spread before they are standardised.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Shape {
    /// As they are.
    Identity,
    /// The logarithm, for positive values.
    Log,
    /// Yeo and Johnson's power of (value - middle) / spread.
    Power {
        /// The power; 1 changes nothing.
        lambda: f64,
        /// Median of the values.
        middle: f64,
        /// Interquartile range of the values.
        spread: f64,
    },
    /// sign(value) * ln(1 + |value| / spread): large violations are drawn in, 0 stays.
    Bilog {
        /// Median of the absolute values.
        spread: f64,
    },
}

/// A shape, then a shift and a factor that give the data mean 0 and variance 1.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Warp {
    shape: Shape,
    shift: f64,
    factor: f64,
}

impl Shape {
    /// The shapes worth trying for an objective.
    pub(crate) fn of_objective(values: &[f64]) -> Vec<Shape> {
        let mut shapes = vec![Shape::Identity];
        if values.iter().all(|&y| y > 0.0) {
            shapes.push(Shape::Log);
        }
        let (middle, spread) = (quantile(values, 0.5), spread(values));
        if spread > 0.0 {
            let lambda = best_lambda(values, middle, spread);
            if (lambda - 1.0).abs() > 0.1 {
                shapes.push(Shape::Power { lambda, middle, spread });
            }
        }
        shapes
    }

    /// The shapes worth trying for a constraint.
    pub(crate) fn of_constraint(values: &[f64]) -> Vec<Shape> {
        let sizes: Vec<f64> = values.iter().map(|y| y.abs()).collect();
        let spread = quantile(&sizes, 0.5);
        if spread > 0.0 {
            vec![Shape::Identity, Shape::Bilog { spread }]
        } else {
            vec![Shape::Identity]
        }
    }

    fn apply(self, y: f64) -> f64 {
        match self {
            Shape::Identity => y,
            // A believed value can be below every measured one, and even below 0.
            Shape::Log => ln(y.max(f64::MIN_POSITIVE)),
            Shape::Power { lambda, middle, spread } => yeo_johnson((y - middle) / spread, lambda),
            Shape::Bilog { spread } => ln_1p(y.abs() / spread).copysign(y),
        }
    }

    /// d apply / dy.
    fn slope(self, y: f64) -> f64 {
        match self {
            Shape::Identity => 1.0,
            Shape::Log => 1.0 / y.max(f64::MIN_POSITIVE),
            Shape::Power { lambda, middle, spread } => {
                yeo_johnson_slope((y - middle) / spread, lambda) / spread
            }
            Shape::Bilog { spread } => 1.0 / (spread + y.abs()),
        }
    }
}

impl Warp {
    /// The shape with the shift and factor that standardise `values`.
    pub(crate) fn standard(shape: Shape, values: &[f64]) -> Warp {
        let shaped: Vec<f64> = values.iter().map(|&y| shape.apply(y)).collect();
        let n = float(shaped.len().max(1) as u64);
        let mean = shaped.iter().sum::<f64>() / n;
        let variance = shaped.iter().map(|t| (t - mean) * (t - mean)).sum::<f64>() / n;
        let deviation = variance.sqrt();
        // Equal values have no spread; any factor shows that.
        let tiny = 1e-12 * (1.0 + mean.abs());
        let factor = if deviation > tiny { 1.0 / deviation } else { 1.0 };
        Warp { shape, shift: mean, factor }
    }

    /// A value on the model's scale.
    pub(crate) fn apply(&self, y: f64) -> f64 {
        (self.shape.apply(y) - self.shift) * self.factor
    }

    /// The variance of a measurement around `y`, on the model's scale.
    pub(crate) fn variance(&self, y: f64, variance: f64) -> f64 {
        let slope = self.shape.slope(y) * self.factor;
        variance * slope * slope
    }

    /// ln of the density that the scale takes from `values` and gives to the model.
    pub(crate) fn ln_jacobian(&self, values: &[f64]) -> f64 {
        values.iter().map(|&y| ln((self.shape.slope(y) * self.factor).max(1e-300))).sum()
    }
}

/// The value below which a share `p` of `values` lies.
pub(crate) fn quantile(values: &[f64], p: f64) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    if sorted.is_empty() {
        return 0.0;
    }
    let place = p * float((sorted.len() - 1) as u64);
    let below = usize::try_from(blis_core::math::count(place.floor())).expect("an index");
    let above = (below + 1).min(sorted.len() - 1);
    sorted[below] + (place - place.floor()) * (sorted[above] - sorted[below])
}

fn spread(values: &[f64]) -> f64 {
    let quartiles = quantile(values, 0.75) - quantile(values, 0.25);
    if quartiles > 0.0 { quartiles } else { quantile(values, 1.0) - quantile(values, 0.0) }
}

fn yeo_johnson(x: f64, lambda: f64) -> f64 {
    if x >= 0.0 {
        if lambda.abs() < 1e-9 { ln_1p(x) } else { (pow(1.0 + x, lambda) - 1.0) / lambda }
    } else {
        -yeo_johnson(-x, 2.0 - lambda)
    }
}

fn yeo_johnson_slope(x: f64, lambda: f64) -> f64 {
    if x >= 0.0 { pow(1.0 + x, lambda - 1.0) } else { pow(1.0 - x, 1.0 - lambda) }
}

/// The power that makes `values` most normal, by golden-section search.
fn best_lambda(values: &[f64], middle: f64, spread: f64) -> f64 {
    let score = |lambda: f64| {
        let warp = Warp::standard(Shape::Power { lambda, middle, spread }, values);
        warp.ln_jacobian(values)
            + values.iter().map(|&y| normal::ln_density(warp.apply(y))).sum::<f64>()
    };
    let (mut low, mut high) = (-2.0, 2.0);
    let golden = 0.5 * (5.0_f64.sqrt() - 1.0);
    for _ in 0..20 {
        let (a, b) = (high - golden * (high - low), low + golden * (high - low));
        if score(a) > score(b) {
            high = b;
        } else {
            low = a;
        }
    }
    0.5 * (low + high)
}

#[cfg(test)]
mod tests {
    use super::*;
    use blis_core::math::exp;

    fn shapes() -> Vec<Shape> {
        let power = |lambda| Shape::Power { lambda, middle: 3.0, spread: 2.0 };
        vec![
            Shape::Identity,
            Shape::Log,
            power(-0.7),
            power(0.0),
            power(0.5),
            power(2.0),
            Shape::Bilog { spread: 0.3 },
        ]
    }

    #[test]
    fn shapes_keep_order_and_know_their_slope() {
        for shape in shapes() {
            let mut last = f64::NEG_INFINITY;
            for step in 1..200 {
                let y = 0.05 * f64::from(step);
                let t = shape.apply(y);
                assert!(t > last, "{shape:?} at {y}");
                last = t;
                let h = 1e-6;
                let numeric = (shape.apply(y + h) - shape.apply(y - h)) / (2.0 * h);
                let slope = shape.slope(y);
                assert!((slope / numeric - 1.0).abs() < 1e-5, "{shape:?} at {y}: {slope}");
            }
        }
    }

    #[test]
    fn a_constraint_keeps_its_limit_at_zero() {
        let values = [-3.0, -0.1, 0.2, 50.0, 900.0];
        for shape in Shape::of_constraint(&values) {
            assert!(shape.apply(0.0).abs() < 1e-15, "{shape:?}");
            let warp = Warp::standard(shape, &values);
            for y in values {
                assert_eq!(warp.apply(y) <= warp.apply(0.0), y <= 0.0, "{shape:?} at {y}");
            }
        }
    }

    #[test]
    fn exploding_values_are_offered_a_logarithm_and_a_small_power() {
        let values: Vec<f64> = (0..30).map(|i| exp(f64::from(i) * 0.4)).collect();
        let shapes = Shape::of_objective(&values);
        assert!(shapes.contains(&Shape::Log), "{shapes:?}");
        let small = |s: &Shape| matches!(s, Shape::Power { lambda, .. } if *lambda < 0.5);
        assert!(shapes.iter().any(small), "{shapes:?}");
    }

    #[test]
    fn equal_values_do_not_divide_by_zero() {
        let warp = Warp::standard(Shape::Identity, &[2.0, 2.0, 2.0]);
        assert!(warp.apply(2.0).abs() < 1e-12);
    }
}
