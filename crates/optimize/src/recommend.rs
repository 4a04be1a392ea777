//! Which of the measured points to take.
//!
//! The best measured value is the luckiest one. A recommendation asks the model instead: of the
//! points that were measured and meet the constraints with high probability, the one with the least
//! expected value.

use crate::history::History;
use crate::model::{Model, Role};
use crate::normal::cumulative;

/// How sure the constraints must be met.
const SURE: f64 = 0.95;

/// The number of the measured point with the least expected objective `objective` among those that
/// meet the constraints with a probability of at least 95 %; if there is none, the point that most
/// probably meets them. `None` if nothing was told.
///
/// # Panics
/// If the problem has no such objective.
pub fn recommend(history: &History, objective: usize) -> Option<usize> {
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
    least.or_else(|| {
        let all = 0..expected.len();
        all.max_by(|&a, &b| {
            let by_chance = feasibility[a].total_cmp(&feasibility[b]);
            by_chance.then(expected[b].total_cmp(&expected[a]))
        })
    })
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
