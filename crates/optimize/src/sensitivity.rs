//! Which parameters matter, by how much, and where it does not matter what they are.
//!
//! Everything is read off a model of the measurements, on the scale on which it was fitted: shares
//! of variance, alone (first order) and with all interactions (total), shares of pairs, and for
//! each parameter the values that are as good as the recommended one. The standard errors come from
//! leaving out a tenth of the measurements at a time: they tell how far the shares can be trusted.

use crate::gp::{Data, Gp};
use crate::history::{History, near};
use crate::kind::{Kind, middle_of};
use crate::model::{Model, Role};
use crate::recommend::recommend;
use crate::sobol::Sobol;
use crate::space::Space;
use blis_core::Value;
use blis_core::math::float;
use blis_core::math::normal::quantile;

/// What a model says about the dimensions of its space.
#[derive(Clone, Debug, PartialEq)]
pub struct Sensitivity {
    /// One entry a dimension.
    pub dimensions: Vec<Influence>,
}

/// How much one dimension matters.
#[derive(Clone, Debug, PartialEq)]
pub struct Influence {
    /// Its name.
    pub name: String,
    /// Share of the variance that it explains alone.
    pub first: Share,
    /// Share of the variance that it is part of.
    pub total: Share,
    /// The values that are as good as the recommended one, the others unchanged.
    pub plateau: Plateau,
}

/// A share of the variance and its standard error.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Share {
    /// The share.
    pub value: f64,
    /// Its standard error, from leaving out measurements.
    pub error: f64,
}

/// Values of a dimension that are as good as the recommended one.
#[derive(Clone, Debug, PartialEq)]
pub enum Plateau {
    /// A range around the recommended value.
    Range {
        /// Where the expected objective is at most the noise of one measurement worse.
        within_noise: (f64, f64),
        /// Where it is not known to be worse than that, with a confidence of 95 %; never narrower.
        not_worse: (f64, f64),
    },
    /// Options, the recommended one among them.
    Options {
        /// Those whose expected objective is at most the noise of one measurement worse.
        within_noise: Vec<Value>,
        /// Those that are not known to be worse than that, with a confidence of 95 %.
        not_worse: Vec<Value>,
    },
    /// The dimension does not exist at the recommended point.
    Absent,
}

/// Base points of the estimates; a power of two keeps them even.
const BASE: u64 = 1024;

/// Parts of the measurements that are left out in turn.
const PARTS: usize = 10;

/// Steps along a dimension when a plateau is walked.
const STEPS: usize = 200;

/// Noise below this share of the spread counts as this much: measurements have few digits.
const LEAST_NOISE: f64 = 0.01;

/// The sensitivity of objective `objective`, with plateaus around what is recommended; `None`
/// before four measurements.
///
/// # Panics
/// If the problem has no such objective.
pub fn sensitivity(history: &History, objective: usize) -> Option<Sensitivity> {
    sensitivity_around(history, objective, recommend(history, objective)?)
}

/// The sensitivity of objective `objective`, with plateaus around measurement number `best`; `None`
/// before four measurements.
///
/// # Panics
/// If the problem has no such objective, or there is no such measurement.
pub fn sensitivity_around(history: &History, objective: usize, best: usize) -> Option<Sensitivity> {
    let samples = history.objective(objective);
    if samples.values.len() < 4 {
        return None;
    }
    let space = &history.problem().space;
    let choices = space.choices();
    let inputs = history.inputs();
    let model = Model::fit_with_care(&choices, &inputs, &samples, Role::Objective);
    let shares = shares(space, &model.gp);
    let parts: Vec<Shares> =
        left_out(history, &model, &choices).iter().map(|gp| self::shares(space, gp)).collect();
    let with_error = |pick: &dyn Fn(&Shares) -> f64| Share {
        value: pick(&shares),
        error: jackknife(&parts.iter().map(pick).collect::<Vec<f64>>()),
    };
    let noise = samples.variances.iter().any(Option::is_none);
    let noise = noise.then(|| model.gp.theta.noise.sqrt());
    let known = samples.values.iter().zip(&samples.variances);
    let variance = known
        .filter_map(|(&y, variance)| variance.map(|v| model.warp.variance(y, v)))
        .fold(0.0, f64::max);
    let tolerance = noise.unwrap_or(variance.sqrt()).max(LEAST_NOISE);
    let dimensions = space.dimensions().iter().enumerate();
    let dimensions = dimensions
        .map(|(j, dimension)| Influence {
            name: dimension.name.clone(),
            first: with_error(&|s: &Shares| s.first[j]),
            total: with_error(&|s: &Shares| s.total[j]),
            plateau: plateau(space, &model, &history.units()[best], (j, tolerance)),
        })
        .collect();
    Some(Sensitivity { dimensions })
}

/// Shares of variance of a function on the unit cube.
struct Shares {
    first: Vec<f64>,
    total: Vec<f64>,
}

fn shares(space: &Space, gp: &Gp) -> Shares {
    shares_of(space.len(), |u: &[f64]| {
        let mut unit = u.to_vec();
        space.snap(&mut unit);
        gp.mean(&unit)
    })
}

/// First-order shares by Saltelli (2010), total ones by Jansen, and of pairs by Saltelli (2002),
/// over pairs of points `a` and `b` of one even sequence; each both ways, which halves the error.
fn shares_of(dims: usize, f: impl Fn(&[f64]) -> f64) -> Shares {
    let sobol = Sobol::new(2 * dims, 0);
    let points: Vec<Vec<f64>> = (0..BASE).map(|index| sobol.point(index)).collect();
    let n = float(BASE);
    let (mut of_a, mut of_b) = (Vec::new(), Vec::new());
    let mut of_ab = vec![Vec::new(); dims];
    let mut of_ba = vec![Vec::new(); dims];
    for point in &points {
        let (a, b) = point.split_at(dims);
        of_a.push(f(a));
        of_b.push(f(b));
        for j in 0..dims {
            let mut mixed = a.to_vec();
            mixed[j] = b[j];
            of_ab[j].push(f(&mixed));
            let mut mixed = b.to_vec();
            mixed[j] = a[j];
            of_ba[j].push(f(&mixed));
        }
    }
    let mean = of_a.iter().chain(&of_b).sum::<f64>() / (2.0 * n);
    let squares = of_a.iter().chain(&of_b).map(|y| (y - mean) * (y - mean));
    let variance = (squares.sum::<f64>() / (2.0 * n)).max(1e-300);
    let average = |term: &dyn Fn(usize) -> f64| -> f64 {
        (0..of_a.len()).map(term).sum::<f64>() / n / variance
    };
    let first: Vec<f64> = (0..dims)
        .map(|j| {
            let from_b = |i: usize| (of_b[i] - mean) * (of_ab[j][i] - of_a[i]);
            let from_a = |i: usize| (of_a[i] - mean) * (of_ba[j][i] - of_b[i]);
            average(&|i| 0.5 * (from_a(i) + from_b(i))).clamp(0.0, 1.0)
        })
        .collect();
    let total: Vec<f64> = (0..dims)
        .map(|j| {
            let square = |x: f64| x * x;
            let moved = |i: usize| square(of_a[i] - of_ab[j][i]) + square(of_b[i] - of_ba[j][i]);
            average(&|i| 0.25 * moved(i))
        })
        .collect();
    Shares { first, total }
}

/// The process without each tenth of its measurements in turn, with unchanged parameters.
fn left_out(history: &History, model: &Model, choices: &[bool]) -> Vec<Gp> {
    let outputs = model.gp.outputs();
    let parts = PARTS.min(outputs.len());
    (0..parts)
        .map(|part| {
            let kept: Vec<usize> = (0..outputs.len()).filter(|i| i % parts != part).collect();
            let x: Vec<f64> = kept.iter().flat_map(|&i| history.units()[i].clone()).collect();
            let y: Vec<f64> = kept.iter().map(|&i| outputs[i]).collect();
            let variances: Vec<Option<f64>> =
                kept.iter().map(|&i| Some(model.gp.noise_of(i))).collect();
            let data = Data { choices, x: &x, y: &y, variances: &variances };
            Gp::condition(&data, model.gp.theta.clone())
        })
        .collect()
}

/// The standard error of an estimate whose values without each part are `parts`.
fn jackknife(parts: &[f64]) -> f64 {
    let n = float(parts.len() as u64);
    let mean = parts.iter().sum::<f64>() / n;
    ((n - 1.0) / n * parts.iter().map(|x| (x - mean) * (x - mean)).sum::<f64>()).sqrt()
}

fn plateau(space: &Space, model: &Model, best: &[f64], (j, tolerance): (usize, f64)) -> Plateau {
    if !space.exists(best, j) {
        return Plateau::Absent;
    }
    let here = model.belief(best);
    let judge = |u: f64| -> (bool, bool) {
        let mut unit = best.to_vec();
        unit[j] = u;
        space.snap(&mut unit);
        if near(&unit, best) {
            return (true, true);
        }
        let there = model.belief(&unit);
        let worse = there.mean - here.mean;
        let covariance = model.gp.covariance(&unit, best);
        let spread = (there.variance + here.variance - 2.0 * covariance).max(0.0).sqrt();
        (worse <= tolerance, worse - quantile(0.975) * spread <= tolerance)
    };
    if let Kind::Choice { options } = &space.dimensions()[j].kind {
        let judged: Vec<(bool, bool)> =
            (0..options.len()).map(|i| judge(middle_of(i, options.len()))).collect();
        let those = |pick: fn(&(bool, bool)) -> bool| {
            let kept = options.iter().zip(&judged).filter(|(_, judged)| pick(judged));
            kept.map(|(option, _)| option.clone()).collect()
        };
        return Plateau::Options { within_noise: those(|j| j.0), not_worse: those(|j| j.1) };
    }
    let walk = |pick: fn((bool, bool)) -> bool| {
        let end = |direction: f64| {
            let mut reached = best[j];
            for step in 1..=STEPS {
                let u = best[j] + direction * float(step as u64) / float(STEPS as u64);
                if !(0.0..=1.0).contains(&u) || !pick(judge(u)) {
                    break;
                }
                reached = u;
            }
            // The last step ends at the edge of the range.
            let edge = if direction < 0.0 { 0.0 } else { 1.0 };
            let to_edge = (edge - reached).abs() <= 1.0 / float(STEPS as u64);
            if to_edge && pick(judge(edge)) { edge } else { reached }
        };
        let value = |u: f64| space.dimensions()[j].number_at(u);
        (value(end(-1.0)), value(end(1.0)))
    };
    Plateau::Range { within_noise: walk(|j| j.0), not_worse: walk(|j| j.1) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::history::{Measured, Observation, Problem};
    use crate::space::{Dimension, Point};
    use blis_core::math::sin;
    use std::f64::consts::PI;

    /// Ishigami's function, whose shares are known.
    fn ishigami(u: &[f64]) -> f64 {
        let x = [0, 1, 2].map(|j| PI * (2.0 * u[j] - 1.0));
        let cubic = x[2] * x[2] * x[2] * x[2];
        sin(x[0]) + 7.0 * sin(x[1]) * sin(x[1]) + 0.1 * cubic * sin(x[0])
    }

    const FIRST: [f64; 3] = [0.3139, 0.4424, 0.0];
    const TOTAL: [f64; 3] = [0.5576, 0.4424, 0.2437];

    #[test]
    fn the_shares_of_a_known_function_come_out() {
        let shares = shares_of(3, ishigami);
        for j in 0..3 {
            assert!((shares.first[j] - FIRST[j]).abs() < 0.03, "{j}: {}", shares.first[j]);
            assert!((shares.total[j] - TOTAL[j]).abs() < 0.03, "{j}: {}", shares.total[j]);
        }
    }

    fn told(dimensions: Vec<Dimension>, n: u64, f: impl Fn(&[f64]) -> f64) -> History {
        let space = Space::new(dimensions).expect("a legal space");
        let sobol = Sobol::new(space.len(), 3);
        let mut history = History::new(Problem { space, objectives: 1, constraints: 0 });
        for index in 0..n {
            let mut unit = sobol.point(index);
            history.problem().space.snap(&mut unit);
            let point: Point = history.problem().space.point(&unit);
            let measured = Measured::exact(f(&unit));
            history.tell(Observation::of(point, measured)).expect("a point of the space");
        }
        history
    }

    fn number(name: &str) -> Dimension {
        Dimension::new(name, Kind::Float { min: 0.0, max: 1.0 })
    }

    #[test]
    fn a_model_of_two_hundred_measurements_gives_the_same_shares() {
        let history = told(vec![number("a"), number("b"), number("c")], 200, ishigami);
        let found = sensitivity(&history, 0).expect("enough was told");
        for (j, influence) in found.dimensions.iter().enumerate() {
            let (first, total) = (influence.first.value, influence.total.value);
            assert!((first - FIRST[j]).abs() < 0.08, "{j}: first {first}");
            assert!((total - TOTAL[j]).abs() < 0.08, "{j}: total {total}");
            assert!(influence.first.error < 0.2 && influence.first.error > 0.0, "{influence:?}");
        }
    }

    #[test]
    fn plateaus_hold_the_point_that_they_are_around_and_widen_with_doubt() {
        let bowl = |u: &[f64]| (u[0] - 0.3) * (u[0] - 0.3) + 0.1 * sin(9.0 * u[1]);
        let history = told(vec![number("a"), number("b")], 24, bowl);
        for around in 0..24 {
            let found = sensitivity_around(&history, 0, around).expect("enough was told");
            for (j, influence) in found.dimensions.iter().enumerate() {
                let Plateau::Range { within_noise: near, not_worse: open } = influence.plateau
                else {
                    panic!("a number has a range");
                };
                let value = history.units()[around][j];
                assert!(near.0 <= value && value <= near.1, "{value} outside {near:?}");
                assert!(open.0 <= near.0 && near.1 <= open.1, "{open:?} within {near:?}");
            }
        }
    }

    #[test]
    fn a_parameter_without_effect_has_a_plateau_over_its_whole_range() {
        let options = ["x", "y", "z"].map(|word| Value::Word(word.to_owned())).to_vec();
        let dimensions = vec![
            Dimension::new("steep", Kind::Float { min: 0.0, max: 10.0 }),
            Dimension::new("flat", Kind::Int { min: 1, max: 9 }),
            Dimension::new("kind", Kind::Choice { options }),
        ];
        let bowl = |u: &[f64]| {
            let penalty = if u[2] > 0.66 { 1.0 } else { 0.0 };
            4.0 * (u[0] - 0.5) * (u[0] - 0.5) + penalty
        };
        let history = told(dimensions, 40, bowl);
        let found = sensitivity(&history, 0).expect("enough was told");
        let [steep, flat, kind] = &found.dimensions[..] else { panic!("three dimensions") };
        let Plateau::Range { within_noise, .. } = &flat.plateau else { panic!("{flat:?}") };
        assert!((within_noise.0 - 1.0).abs() < 1e-9 && (within_noise.1 - 9.0).abs() < 1e-9);
        let Plateau::Range { within_noise, not_worse } = &steep.plateau else {
            panic!("{steep:?}")
        };
        assert!(within_noise.0 > 3.5 && within_noise.1 < 6.5, "{within_noise:?}");
        assert!(not_worse.0 > 3.0 && not_worse.1 < 7.0, "{not_worse:?}");
        let Plateau::Options { within_noise, .. } = &kind.plateau else { panic!("{kind:?}") };
        let words: Vec<String> = within_noise.iter().map(ToString::to_string).collect();
        assert_eq!(words, ["x", "y"]);
        assert!(flat.total.value < 0.02 && steep.total.value > 0.1, "{found:?}");
    }
}
