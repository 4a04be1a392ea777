//! How much a measurement at a place promises, in logarithms, with derivatives.
//!
//! Expected improvement for one objective, expected growth of the dominated area for two, and the
//! probability of meeting each constraint. Everything is on the scales of the models.

use crate::gp::{Belief, Slope};
use crate::model::Model;
use crate::normal::{ln_cumulative, ln_density, ln_difference, ln_improvement, ln_sum};
use blis_core::math::{exp, ln};

/// What is hoped for.
#[derive(Clone, Debug)]
pub(crate) enum Goal {
    /// One objective below `best`, if this much of the model's deviation gets credit.
    Below {
        /// The mark to beat.
        best: f64,
        /// 1 is expected improvement; less follows what is known further down.
        doubt: f64,
    },
    /// Two objectives beyond this front, within the reference.
    Beyond(Front),
    /// Any point that meets the constraints.
    Feasible,
}

/// A front of two objectives: the first rises, the second falls.
#[derive(Clone, Debug)]
pub(crate) struct Front {
    points: Vec<[f64; 2]>,
    reference: [f64; 2],
}

/// The promise of a place, given models of objectives and constraints.
#[derive(Clone, Debug)]
pub(crate) struct Acquisition {
    /// One model an objective that the goal reads.
    pub objectives: Vec<Model>,
    /// One model a constraint.
    pub constraints: Vec<Model>,
    /// What is hoped for.
    pub goal: Goal,
}

/// A number that depends on beliefs, with its derivatives by their means and deviations.
#[derive(Clone, Debug)]
struct Promise {
    value: f64,
    by_mean: Vec<f64>,
    by_deviation: Vec<f64>,
}

/// ln of the expected improvement below `best`: value, by mean, by deviation.
fn ln_expected_improvement(best: f64, mean: f64, deviation: f64) -> [f64; 3] {
    let z = (best - mean) / deviation;
    let h = ln_improvement(z);
    let by_mean = -exp(ln_cumulative(z) - h) / deviation;
    [ln(deviation) + h, by_mean, exp(ln_density(z) - h) / deviation]
}

/// ln of the probability of being at most `limit`: value, by mean, by deviation.
fn ln_probability(limit: f64, mean: f64, deviation: f64) -> [f64; 3] {
    let z = (limit - mean) / deviation;
    let value = ln_cumulative(z);
    let mills = exp(ln_density(z) - value);
    [value, -mills / deviation, -mills * z / deviation]
}

impl Front {
    /// The front of `points` below `reference`.
    pub(crate) fn new(points: &[Vec<f64>], reference: [f64; 2]) -> Front {
        let within = |point: &&Vec<f64>| point[0] < reference[0] && point[1] < reference[1];
        let inside: Vec<Vec<f64>> = points.iter().filter(within).cloned().collect();
        let kept = crate::pareto::front(&inside);
        let mut points: Vec<[f64; 2]> =
            kept.into_iter().map(|i| [inside[i][0], inside[i][1]]).collect();
        points.sort_by(|a, b| a[0].total_cmp(&b[0]));
        Front { points, reference }
    }

    /// ln of the expected growth of the dominated area.
    ///
    /// The free area is cut into strips along the first objective. In the strip that ends at `end`
    /// and begins at `begin`, the free height reaches up to `top`; the parts of the strip that a
    /// point gains are E(end - x)⁺ - E(begin - x)⁺ wide and E(top - y)⁺ high, independently.
    fn ln_expected_growth(&self, beliefs: &[Belief; 2]) -> Promise {
        let [m, d]: [[f64; 2]; 2] = [beliefs.map(|b| b.mean), beliefs.map(|b| b.variance.sqrt())];
        let strips = self.points.len() + 1;
        let mut terms = Vec::with_capacity(strips);
        let mut slopes = Vec::with_capacity(strips);
        let mut begin = [f64::NEG_INFINITY, 0.0, 0.0];
        for strip in 0..strips {
            let edge = self.points.get(strip).map_or(self.reference[0], |point| point[0]);
            let top = if strip == 0 { self.reference[1] } else { self.points[strip - 1][1] };
            let end = ln_expected_improvement(edge, m[0], d[0]);
            let high = ln_expected_improvement(top, m[1], d[1]);
            let ratio = exp(begin[0] - end[0]);
            let rest = (1.0 - ratio).max(1e-300);
            let of_width = |i: usize| (end[i] - ratio * begin[i]) / rest;
            if end[0] > begin[0] {
                terms.push(ln_difference(end[0], begin[0]) + high[0]);
                slopes.push([of_width(1), high[1], of_width(2), high[2]]);
            }
            begin = end;
        }
        let value = ln_sum(&terms);
        let mut sums = [0.0; 4];
        for (term, slope) in terms.iter().zip(&slopes) {
            let share = exp(term - value);
            for (sum, slope) in sums.iter_mut().zip(slope) {
                *sum += share * slope;
            }
        }
        Promise { value, by_mean: sums[..2].to_vec(), by_deviation: sums[2..].to_vec() }
    }
}

impl Acquisition {
    /// ln of the promise at `x`.
    pub(crate) fn value(&self, x: &[f64]) -> f64 {
        let beliefs = |models: &[Model]| -> Vec<Belief> {
            models.iter().map(|model| model.belief(x)).collect()
        };
        let objectives = beliefs(&self.objectives);
        self.promise(&objectives, &beliefs(&self.constraints)).value
    }

    /// ln of the promise at `x`, and its derivatives by the coordinates.
    pub(crate) fn value_and_gradient(&self, x: &[f64], gradient: &mut [f64]) -> f64 {
        let models = self.objectives.iter().chain(&self.constraints);
        let slopes: Vec<Slope> = models.map(|model| model.slope(x)).collect();
        let beliefs: Vec<Belief> = slopes.iter().map(|slope| slope.belief).collect();
        let (objectives, constraints) = beliefs.split_at(self.objectives.len());
        let promise = self.promise(objectives, constraints);
        gradient.fill(0.0);
        for (k, slope) in slopes.iter().enumerate() {
            let by_variance = promise.by_deviation[k] / (2.0 * slope.belief.variance.sqrt());
            for (j, sum) in gradient.iter_mut().enumerate() {
                *sum += promise.by_mean[k] * slope.mean[j] + by_variance * slope.variance[j];
            }
        }
        promise.value
    }

    /// The acquisition after its own expectation came true at `x`.
    pub(crate) fn believing(&self, x: &[f64]) -> Acquisition {
        let learn = |models: &[Model]| models.iter().map(|model| model.believing(x)).collect();
        let objectives: Vec<Model> = learn(&self.objectives);
        let constraints: Vec<Model> = learn(&self.constraints);
        let met = constraints.iter().all(|model| model.gp.mean(x) <= model.warp.apply(0.0));
        let goal = match &self.goal {
            &Goal::Below { best, doubt } if met => {
                Goal::Below { best: best.min(objectives[0].gp.mean(x)), doubt }
            }
            Goal::Beyond(front) if met => {
                let mut points: Vec<Vec<f64>> = front.points.iter().map(|p| p.to_vec()).collect();
                points.push(objectives.iter().map(|model| model.gp.mean(x)).collect());
                Goal::Beyond(Front::new(&points, front.reference))
            }
            goal => goal.clone(),
        };
        Acquisition { objectives, constraints, goal }
    }

    fn promise(&self, objectives: &[Belief], constraints: &[Belief]) -> Promise {
        let mut promise = match &self.goal {
            &Goal::Below { best, doubt } => {
                let belief = objectives[0];
                let [value, by_mean, by_deviation] =
                    ln_expected_improvement(best, belief.mean, doubt * belief.variance.sqrt());
                Promise { value, by_mean: vec![by_mean], by_deviation: vec![doubt * by_deviation] }
            }
            Goal::Beyond(front) => front.ln_expected_growth(&[objectives[0], objectives[1]]),
            Goal::Feasible => {
                let none = vec![0.0; objectives.len()];
                Promise { value: 0.0, by_mean: none.clone(), by_deviation: none }
            }
        };
        for (model, belief) in self.constraints.iter().zip(constraints) {
            let limit = model.warp.apply(0.0);
            let [value, by_mean, by_deviation] =
                ln_probability(limit, belief.mean, belief.variance.sqrt());
            promise.value += value;
            promise.by_mean.push(by_mean);
            promise.by_deviation.push(by_deviation);
        }
        promise
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use blis_core::Dice;
    use blis_core::random::Purpose;

    const CASES: [(f64, f64, f64); 5] =
        [(0.0, 0.3, 0.5), (0.0, -1.0, 0.2), (1.0, 1.0, 2.0), (0.0, 2.0, 0.25), (-3.0, 0.0, 0.6)];

    /// The mean of `f` of a normal variable, by Simpson's rule.
    fn mean_of(f: impl Fn(f64) -> f64, mean: f64, deviation: f64) -> f64 {
        let n = 200_000;
        let h = 24.0 / f64::from(n);
        let weight = |i: i32| {
            if i == 0 || i == n {
                1.0
            } else if i % 2 == 1 {
                4.0
            } else {
                2.0
            }
        };
        let term = |i: i32| {
            let z = -12.0 + f64::from(i) * h;
            weight(i) * exp(ln_density(z)) * f(mean + deviation * z)
        };
        (0..=n).map(term).sum::<f64>() * h / 3.0
    }

    #[test]
    fn improvement_and_probability_agree_with_quadrature() {
        for (limit, mean, deviation) in CASES {
            let [value, ..] = ln_expected_improvement(limit, mean, deviation);
            let expected = mean_of(|y| (limit - y).max(0.0), mean, deviation);
            assert!((exp(value) / expected - 1.0).abs() < 1e-6, "{} {expected}", exp(value));
            let [value, ..] = ln_probability(limit, mean, deviation);
            let z = (limit - mean) / deviation;
            assert!((value - ln_cumulative(z)).abs() < 1e-12);
        }
    }

    #[test]
    fn derivatives_agree_with_differences() {
        let h = 1e-6;
        for f in [ln_expected_improvement, ln_probability] {
            for (limit, mean, deviation) in CASES.into_iter().chain([(0.0, 40.0, 1.0)]) {
                let [_, by_mean, by_deviation] = f(limit, mean, deviation);
                let slope = |a: [f64; 3], b: [f64; 3]| (a[0] - b[0]) / (2.0 * h);
                let numeric = slope(f(limit, mean + h, deviation), f(limit, mean - h, deviation));
                assert!((by_mean / numeric - 1.0).abs() < 1e-5, "{by_mean} {numeric}");
                let numeric = slope(f(limit, mean, deviation + h), f(limit, mean, deviation - h));
                assert!((by_deviation - numeric).abs() < 1e-4 * (1.0 + numeric.abs()));
            }
        }
    }

    fn example_front() -> Front {
        let points = [[0.1, 0.9], [0.3, 0.5], [0.35, 0.48], [0.8, 0.1], [0.9, 0.9], [3.0, 0.0]];
        Front::new(&points.map(|p| p.to_vec()), [1.2, 1.1])
    }

    #[test]
    fn expected_growth_of_the_area_agrees_with_simulation() {
        let front = example_front();
        assert_eq!(front.points.len(), 4, "dominated and outside points are dropped");
        let points: Vec<Vec<f64>> = front.points.iter().map(|p| p.to_vec()).collect();
        let now = crate::pareto::hypervolume(&points, &front.reference);
        for (key, (a, b)) in
            [((0.2, 0.3), (0.3, 0.2)), ((0.05, 0.1), (0.4, 0.3)), ((1.0, 0.5), (0.0, 0.4))]
                .into_iter()
                .enumerate()
        {
            let beliefs = [a, b].map(|(mean, deviation): (f64, f64)| Belief {
                mean,
                variance: deviation * deviation,
            });
            let exact = exp(front.ln_expected_growth(&beliefs).value);
            let mut dice = Dice::new(3, Purpose::Search, key as u64);
            let (mut sum, mut squares) = (0.0, 0.0);
            let n = 40_000;
            for _ in 0..n {
                let mut grown = points.clone();
                grown.push(vec![a.0 + a.1 * dice.normal(), b.0 + b.1 * dice.normal()]);
                let gain = crate::pareto::hypervolume(&grown, &front.reference) - now;
                sum += gain;
                squares += gain * gain;
            }
            let mean = sum / f64::from(n);
            let error = ((squares / f64::from(n) - mean * mean) / f64::from(n)).sqrt();
            assert!((exact - mean).abs() < 4.0 * error, "{exact}, not {mean} +- {error}");
        }
    }

    #[test]
    fn derivatives_of_the_growth_agree_with_differences() {
        let front = example_front();
        let h = 1e-6;
        for start in [[0.2, 0.3, 0.3, 0.2], [0.9, 1.5, 0.1, 0.2], [2.5, 2.5, 0.1, 0.1]] {
            let growth = |v: [f64; 4]| {
                front.ln_expected_growth(&[
                    Belief { mean: v[0], variance: v[2] * v[2] },
                    Belief { mean: v[1], variance: v[3] * v[3] },
                ])
            };
            let promise = growth(start);
            let analytic = [&promise.by_mean[..], &promise.by_deviation[..]].concat();
            for i in 0..4 {
                let (mut up, mut down) = (start, start);
                up[i] += h;
                down[i] -= h;
                let numeric = (growth(up).value - growth(down).value) / (2.0 * h);
                let error = (analytic[i] - numeric).abs();
                assert!(error < 1e-3 * (1.0 + numeric.abs()), "{i}: {} {numeric}", analytic[i]);
            }
        }
    }
}
