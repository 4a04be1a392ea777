//! What every engine promises, and how well they search.

mod engines;
mod quality;
mod standard;

use blis_core::Dice;
use blis_core::random::Purpose;
use blis_optimize::{Measured, Observation, Optimizer, Point};
use standard::Standard;

/// Measures `point` of `standard`; the noise depends on `seed` and `call` only.
pub(crate) fn measure(standard: &Standard, point: Point, seed: u64, call: usize) -> Observation {
    let truth = standard.truth(&point);
    let mut dice = Dice::new(seed, Purpose::Sampling, call as u64);
    let measured: Vec<f64> = truth.iter().map(|y| y + standard.noise * dice.normal()).collect();
    let (objectives, constraints) = measured.split_at(standard.objectives());
    Observation {
        point,
        objectives: objectives.iter().map(|&y| Measured::noisy(y)).collect(),
        constraints: constraints.iter().map(|&y| Measured::exact(y)).collect(),
    }
}

/// Asks and tells until `calls` points are measured, `batch` at a time.
pub(crate) fn search(
    engine: &mut dyn Optimizer,
    standard: &Standard,
    (seed, calls, batch): (u64, usize, usize),
) {
    while engine.history().observations().len() < calls {
        let done = engine.history().observations().len();
        let points = engine.ask(batch.min(calls - done));
        if points.is_empty() {
            return;
        }
        for (i, point) in points.into_iter().enumerate() {
            engine.tell(measure(standard, point, seed, done + i)).expect("a point of the problem");
        }
    }
}
