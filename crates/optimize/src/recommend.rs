//! Which of the measured points to take.
//!
//! The best measured value is the luckiest one. A recommendation asks the model instead: of the
//! points that were measured and meet the constraints with high probability, the one with the least
//! expected value.

use crate::history::History;
use crate::model::{Model, Role};
use crate::normal::cumulative;
use crate::space::Point;
use blis_core::math::normal::quantile;

/// A measured point, and what is believed about it.
#[derive(Clone, Debug, PartialEq)]
pub struct Recommendation {
    /// Its index among the observations.
    pub index: usize,
    /// The point.
    pub point: Point,
    /// The objective there, as the model believes it without the noise of a measurement.
    pub objective: Estimate,
    /// Probability that all constraints are met there.
    pub feasibility: f64,
}

/// A believed value with its central interval of 95 %.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Estimate {
    /// The middle: the median, which is also the mean on the scale of the model.
    pub value: f64,
    /// Lower end.
    pub low: f64,
    /// Upper end.
    pub high: f64,
}

/// How sure the constraints must be met.
const SURE: f64 = 0.95;

/// The measured point with the least expected objective `objective` among those that meet the
/// constraints with a probability of at least 95 %; if there is none, the point that most probably
/// meets them. `None` if nothing was told.
///
/// # Panics
/// If the problem has no such objective.
pub fn recommend(history: &History, objective: usize) -> Option<Recommendation> {
    assert!(objective < history.problem().objectives, "no objective {objective}");
    if history.observations().is_empty() {
        return None;
    }
    let choices = history.problem().space.choices();
    let inputs = history.inputs();
    let samples = history.objective(objective);
    let model = Model::fit_with_care(&choices, &inputs, &samples, Role::Objective);
    let feasibility = feasibilities(history, &choices, &inputs);
    let expected: Vec<f64> = history.units().iter().map(|unit| model.gp.mean(unit)).collect();
    let sure = (0..expected.len()).filter(|&i| feasibility[i] >= SURE);
    let least = sure.min_by(|&a, &b| expected[a].total_cmp(&expected[b]));
    let index = least.or_else(|| {
        let all = 0..expected.len();
        all.max_by(|&a, &b| {
            let by_chance = feasibility[a].total_cmp(&feasibility[b]);
            by_chance.then(expected[b].total_cmp(&expected[a]))
        })
    })?;
    Some(Recommendation {
        index,
        point: history.observations()[index].point.clone(),
        objective: estimate(&model, &history.units()[index]),
        feasibility: feasibility[index],
    })
}

/// What `model` believes at `unit`, as it would be measured.
pub(crate) fn estimate(model: &Model, unit: &[f64]) -> Estimate {
    let belief = model.belief(unit);
    let reach = quantile(0.975) * belief.variance.sqrt();
    let back = |t: f64| model.warp.inverse(t);
    Estimate {
        value: back(belief.mean),
        low: back(belief.mean - reach),
        high: back(belief.mean + reach),
    }
}

/// For each observation, the probability that all constraints are met there. An exact measurement
/// leaves no doubt.
fn feasibilities(history: &History, choices: &[bool], inputs: &[f64]) -> Vec<f64> {
    let mut probability = vec![1.0; history.observations().len()];
    for k in 0..history.problem().constraints {
        let samples = history.constraint(k);
        let exact = |i: usize| samples.variances[i] == Some(0.0);
        let all_exact = (0..probability.len()).all(exact);
        let model =
            (!all_exact).then(|| Model::fit_with_care(choices, inputs, &samples, Role::Constraint));
        for (i, slot) in probability.iter_mut().enumerate() {
            *slot *= match &model {
                Some(model) if !exact(i) => {
                    let belief = model.belief(&history.units()[i]);
                    let limit = model.warp.apply(0.0);
                    cumulative((limit - belief.mean) / belief.variance.sqrt())
                }
                _ if samples.values[i] <= 0.0 => 1.0,
                _ => 0.0,
            };
        }
    }
    probability
}
