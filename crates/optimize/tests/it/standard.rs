//! Standard problems with known minima, for tests and for comparison with other optimisers.
//!
//! All are minimised. A `noise` is the standard deviation of what a measurement adds to the truth.

use blis_core::Value;
use blis_core::math::{cos, exp, float, ln, sin};
use blis_optimize::{Dimension, Kind, Point, Problem, Space};
use std::f64::consts::{E, PI};

/// A problem whose answer is known.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Standard {
    /// What it is called.
    pub(crate) name: &'static str,
    /// Standard deviation of the noise; 0 for exact measurements.
    pub(crate) noise: f64,
    /// Least feasible values, one an objective; for several objectives, the reference of the
    /// hypervolume.
    pub(crate) best: &'static [f64],
    /// How many constraints there are.
    pub(crate) constraints: usize,
    space: fn() -> Vec<Dimension>,
    truth: fn(&[f64]) -> Vec<f64>,
}

/// All of them.
pub(crate) const ALL: &[Standard] = &[
    Standard {
        name: "branin",
        noise: 0.0,
        best: &[0.397_887_357_729_739],
        constraints: 0,
        space: || vec![number("x", -5.0, 10.0), number("y", 0.0, 15.0)],
        truth: |x| vec![branin(x)],
    },
    Standard {
        name: "hartmann6",
        noise: 0.0,
        best: &[-3.322_368_011_415_511],
        constraints: 0,
        space: six_units,
        truth: |x| vec![hartmann6(x)],
    },
    Standard {
        name: "ackley5m",
        noise: 0.0,
        best: &[0.0],
        constraints: 0,
        space: ackley_space,
        truth: |x| vec![ackley_mixed(x)],
    },
    Standard {
        name: "serving6n",
        noise: 0.15,
        best: &[0.0],
        constraints: 0,
        space: serving_space,
        truth: |x| vec![serving(x)],
    },
    Standard {
        name: "hart6n",
        noise: 0.15,
        best: &[-3.322_368_011_415_511],
        constraints: 0,
        space: six_units,
        truth: |x| vec![hartmann6(x)],
    },
    Standard {
        name: "gardner",
        noise: 0.0,
        best: &[-1.888_751_361_450_59],
        constraints: 1,
        space: || vec![number("x", 0.0, 6.0), number("y", 0.0, 6.0)],
        truth: gardner,
    },
    Standard {
        name: "townsend",
        noise: 0.0,
        best: &[-2.023_988_4],
        constraints: 1,
        space: || vec![number("x", -2.25, 2.5), number("y", -2.5, 1.75)],
        truth: townsend,
    },
    Standard {
        name: "g4",
        noise: 0.0,
        best: &[-30_665.538_671_783],
        constraints: 6,
        space: || {
            let low = [78.0, 33.0, 27.0, 27.0, 27.0];
            let high = [102.0, 45.0, 45.0, 45.0, 45.0];
            (0..5).map(|i| number(&format!("x{}", i + 1), low[i], high[i])).collect()
        },
        truth: g4,
    },
    Standard {
        name: "zdt1",
        noise: 0.0,
        best: &[1.1, 11.0],
        constraints: 0,
        space: six_units,
        truth: zdt1,
    },
    Standard {
        name: "serving2",
        noise: 0.0,
        best: &[4.0, 4.0],
        constraints: 0,
        space: serving_space,
        truth: serving_pair,
    },
];

/// The problem called `name`.
pub(crate) fn by_name(name: &str) -> Option<&'static Standard> {
    ALL.iter().find(|problem| problem.name == name)
}

impl Standard {
    /// The problem as an optimiser sees it.
    ///
    /// # Panics
    /// Never: the spaces are legal.
    pub(crate) fn problem(&self) -> Problem {
        let space = Space::new((self.space)()).expect("a legal space");
        Problem { space, objectives: self.objectives(), constraints: self.constraints }
    }

    /// How many objectives there are.
    pub(crate) fn objectives(&self) -> usize {
        self.best.len()
    }

    /// The truth at `point`: objectives, then constraints. Choices count from 0.
    ///
    /// # Panics
    /// If the point is of another space.
    pub(crate) fn truth(&self, point: &Point) -> Vec<f64> {
        let problem = self.problem();
        let dimensions = problem.space.dimensions().iter().zip(&point.values);
        let x: Vec<f64> = dimensions
            .map(|(dimension, value)| match (&dimension.kind, value) {
                (_, Some(Value::Float(x))) => *x,
                (_, Some(Value::Int(n))) => float(*n),
                (Kind::Choice { options }, Some(value)) => {
                    let index = options.iter().position(|option| option == value);
                    float(index.expect("an option") as u64)
                }
                _ => panic!("standard problems have no conditions"),
            })
            .collect();
        (self.truth)(&x)
    }
}

fn number(name: &str, min: f64, max: f64) -> Dimension {
    Dimension::new(name, Kind::Float { min, max })
}

fn whole(name: &str, min: u64, max: u64) -> Dimension {
    Dimension::new(name, Kind::Int { min, max })
}

fn choice(name: &str, words: &[&str]) -> Dimension {
    let options = words.iter().map(|&word| Value::Word(word.to_owned())).collect();
    Dimension::new(name, Kind::Choice { options })
}

fn six_units() -> Vec<Dimension> {
    (1..=6).map(|i| number(&format!("x{i}"), 0.0, 1.0)).collect()
}

fn branin(x: &[f64]) -> f64 {
    let bend = x[1] - 5.1 / (4.0 * PI * PI) * x[0] * x[0] + 5.0 / PI * x[0] - 6.0;
    bend * bend + 10.0 * (1.0 - 1.0 / (8.0 * PI)) * cos(x[0]) + 10.0
}

fn hartmann6(x: &[f64]) -> f64 {
    const ALPHA: [f64; 4] = [1.0, 1.2, 3.0, 3.2];
    const A: [[f64; 6]; 4] = [
        [10.0, 3.0, 17.0, 3.5, 1.7, 8.0],
        [0.05, 10.0, 17.0, 0.1, 8.0, 14.0],
        [3.0, 3.5, 1.7, 10.0, 17.0, 8.0],
        [17.0, 8.0, 0.05, 10.0, 0.1, 14.0],
    ];
    const P: [[f64; 6]; 4] = [
        [0.1312, 0.1696, 0.5569, 0.0124, 0.8283, 0.5886],
        [0.2329, 0.4135, 0.8307, 0.3736, 0.1004, 0.9991],
        [0.2348, 0.1451, 0.3522, 0.2883, 0.3047, 0.6650],
        [0.4047, 0.8828, 0.8732, 0.5743, 0.1091, 0.0381],
    ];
    let hill = |i: usize| -> f64 {
        let sum: f64 = (0..6).map(|j| A[i][j] * (x[j] - P[i][j]) * (x[j] - P[i][j])).sum();
        ALPHA[i] * exp(-sum)
    };
    -(0..4).map(hill).sum::<f64>()
}

fn ackley_space() -> Vec<Dimension> {
    let mut dimensions: Vec<Dimension> =
        (1..=3).map(|i| number(&format!("x{i}"), -5.0, 10.0)).collect();
    dimensions.push(whole("n", 0, 15));
    dimensions.push(choice("c", &["a", "b", "c", "d", "e"]));
    dimensions
}

/// Ackley's function of five variables, of which one is a whole number and one of five values.
fn ackley_mixed(x: &[f64]) -> f64 {
    let of_choice = [3.0, -4.0, 0.0, 6.0, -2.0];
    let at = blis_core::math::count(x[4]);
    let x = [x[0], x[1], x[2], x[3] - 5.0, of_choice[usize::try_from(at).expect("an option")]];
    let squares = x.iter().map(|x| x * x).sum::<f64>() / 5.0;
    let waves = x.iter().map(|x| cos(2.0 * PI * x)).sum::<f64>() / 5.0;
    -20.0 * exp(-0.2 * squares.sqrt()) - exp(waves) + 20.0 + E
}

/// Six dimensions like those of a serving strategy.
fn serving_space() -> Vec<Dimension> {
    vec![
        number("weight", 0.0, 1.0),
        Dimension::new("timeout", Kind::Log { min: 1e-3, max: 10.0 }),
        whole("batch", 1, 64),
        whole("replicas", 1, 8),
        choice("router", &["a", "b", "c", "d"]),
        choice("order", &["x", "y", "z"]),
    ]
}

/// A made-up cost whose best weight depends on the router and whose best batch on the order.
fn serving(x: &[f64]) -> f64 {
    let router = usize::try_from(blis_core::math::count(x[4])).expect("an option");
    let order = usize::try_from(blis_core::math::count(x[5])).expect("an option");
    let best_weight = [0.8, 0.35, 0.6, 0.1][router];
    let best_batch = [40.0, 12.0, 24.0][order];
    let weight = x[0] - best_weight;
    let timeout = ln(x[1] / 0.1) / ln(10.0);
    let batch = ln(x[2] / best_batch) / ln(2.0);
    let replicas = x[3] - 5.0;
    let crossed = 0.3 * (weight + 0.2 * timeout) * (weight + 0.2 * timeout);
    [0.5, 0.0, 0.25, 0.8][router]
        + [0.3, 0.0, 0.15][order]
        + 3.0 * weight * weight
        + 0.25 * timeout * timeout
        + 0.12 * batch * batch
        + 0.05 * replicas * replicas
        + crossed
}

/// The cost, and another that wants the opposite of three of its dimensions.
fn serving_pair(x: &[f64]) -> Vec<f64> {
    let batch = 1.0 - ln(x[2]) / ln(64.0);
    let router = [0.0, 0.6, 0.4, 0.2][usize::try_from(blis_core::math::count(x[4])).unwrap_or(0)];
    vec![serving(x), 1.5 * batch + 0.8 * x[0] + 0.2 * (8.0 - x[3]) + router]
}

fn gardner(x: &[f64]) -> Vec<f64> {
    let objective = cos(2.0 * x[0]) * cos(x[1]) + sin(x[0]);
    vec![objective, cos(x[0]) * cos(x[1]) - sin(x[0]) * sin(x[1]) + 0.5]
}

fn townsend(x: &[f64]) -> Vec<f64> {
    let bump = cos((x[0] - 0.1) * x[1]);
    let objective = -bump * bump - x[0] * sin(3.0 * x[0] + x[1]);
    // The angle is undefined only at the origin, where the constraint is met anyway.
    let radius = x[0].hypot(x[1]);
    let (sin_t, cos_t) = if radius > 0.0 { (x[0] / radius, x[1] / radius) } else { (0.0, 1.0) };
    let cos_2t = 2.0 * cos_t * cos_t - 1.0;
    let cos_3t = 4.0 * cos_t * cos_t * cos_t - 3.0 * cos_t;
    let cos_4t = 2.0 * cos_2t * cos_2t - 1.0;
    let edge = 2.0 * cos_t - 0.5 * cos_2t - 0.25 * cos_3t - 0.125 * cos_4t;
    vec![objective, radius * radius - edge * edge - 4.0 * sin_t * sin_t]
}

/// Problem g04 of the constrained set of the 2006 congress on evolutionary computation.
fn g4(x: &[f64]) -> Vec<f64> {
    let objective =
        5.357_854_7 * x[2] * x[2] + 0.835_689_1 * x[0] * x[4] + 37.293_239 * x[0] - 40_792.141;
    let a = 85.334_407 + 0.005_685_8 * x[1] * x[4] + 0.000_626_2 * x[0] * x[3]
        - 0.002_205_3 * x[2] * x[4];
    let b = 80.512_49
        + 0.007_131_7 * x[1] * x[4]
        + 0.002_995_5 * x[0] * x[1]
        + 0.002_181_3 * x[2] * x[2];
    let c = 9.300_961
        + 0.004_702_6 * x[2] * x[4]
        + 0.001_254_7 * x[0] * x[2]
        + 0.001_908_5 * x[2] * x[3];
    vec![objective, a - 92.0, -a, b - 110.0, 90.0 - b, c - 25.0, 20.0 - c]
}

fn zdt1(x: &[f64]) -> Vec<f64> {
    let rest = 1.0 + 9.0 * x[1..].iter().sum::<f64>() / float(x.len() as u64 - 1);
    vec![x[0], rest * (1.0 - (x[0] / rest).sqrt())]
}
