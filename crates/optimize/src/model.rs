//! A surrogate of one measured quantity: a Gaussian process on a scale that suits it.

use crate::gp::{Belief, Data, Gp, Slope, Theta};
use crate::warp::{Shape, Warp};

/// What an output is modelled as.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Role {
    /// Something to minimise: only the order matters.
    Objective,
    /// Something to keep at or below 0.
    Constraint,
    /// Something whose own scale matters, such as one of two objectives of a front.
    Plain,
}

/// A fitted surrogate.
#[derive(Clone, Debug)]
pub(crate) struct Model {
    /// From measured values to the scale of `gp`.
    pub warp: Warp,
    /// The process.
    pub gp: Gp,
}

/// Measurements of one quantity.
#[derive(Clone, Debug)]
pub(crate) struct Samples {
    /// Measured values, all finite.
    pub values: Vec<f64>,
    /// Their variances, where known.
    pub variances: Vec<Option<f64>>,
}

/// A scale must make the data this much more probable, in ln, than no scale at all.
const MARGIN: f64 = 2.0;

/// Evaluations for the choice of a scale, and for the final fit.
const SHORT_FIT: usize = 16;
const LONG_FIT: usize = 60;

impl Model {
    /// Fits `samples` at the inputs `x` (one after the other) with one entry of `choices` for each
    /// dimension.
    pub(crate) fn fit(choices: &[bool], x: &[f64], samples: &Samples, role: Role) -> Model {
        let shapes = match role {
            Role::Objective => Shape::of_objective(&samples.values),
            Role::Constraint => Shape::of_constraint(&samples.values),
            Role::Plain => vec![Shape::Identity],
        };
        let start = Theta::start(choices.len());
        let mut warp = Warp::standard(Shape::Identity, &samples.values);
        let mut from = start.clone();
        if shapes.len() > 1 {
            let mut best = f64::NEG_INFINITY;
            for shape in shapes {
                let trial = Warp::standard(shape, &samples.values);
                let gp = fit(choices, x, samples, &trial, (&start, SHORT_FIT));
                let margin = if shape == Shape::Identity { 0.0 } else { MARGIN };
                let score = gp.posterior + trial.ln_jacobian(&samples.values) - margin;
                if score > best {
                    best = score;
                    warp = trial;
                    from = gp.theta;
                }
            }
        }
        let gp = fit(choices, x, samples, &warp, (&from, LONG_FIT));
        Model { warp, gp }
    }

    /// Like `fit`, but also from a start that takes the measurements at their word. It is for
    /// conclusions. A proposal may be wrong now and then, and with few data the second start
    /// mostly finds explanations that fit too well.
    pub(crate) fn fit_with_care(
        choices: &[bool],
        x: &[f64],
        samples: &Samples,
        role: Role,
    ) -> Model {
        let model = Model::fit(choices, x, samples, role);
        let rough = Theta::rough_start(choices.len());
        let gp = fit(choices, x, samples, &model.warp, (&rough, LONG_FIT));
        if gp.posterior > model.gp.posterior { Model { gp, ..model } } else { model }
    }

    /// What is believed at `x`, on the model's scale.
    pub(crate) fn belief(&self, x: &[f64]) -> Belief {
        self.gp.belief(x)
    }

    /// What is believed at `x`, with derivatives, on the model's scale.
    pub(crate) fn slope(&self, x: &[f64]) -> Slope {
        self.gp.slope(x)
    }

    /// The model after its own expectation came true at `x`.
    pub(crate) fn believing(&self, x: &[f64]) -> Model {
        Model { warp: self.warp, gp: self.gp.extended(x, self.gp.mean(x)) }
    }
}

fn fit(
    choices: &[bool],
    x: &[f64],
    samples: &Samples,
    warp: &Warp,
    (start, evaluations): (&Theta, usize),
) -> Gp {
    let y: Vec<f64> = samples.values.iter().map(|&y| warp.apply(y)).collect();
    let known = samples.values.iter().zip(&samples.variances);
    let variances: Vec<Option<f64>> =
        known.map(|(&y, variance)| variance.map(|v| warp.variance(y, v))).collect();
    let data = Data { choices, x, y: &y, variances: &variances };
    Gp::fit(&data, start, evaluations)
}
