//! Fits the efficiencies of the roofline to steps that were measured without a server.

use super::log::Row;
use crate::model::ModelShape;
use crate::roofline::{Efficiency, GpuSheet, Roofline, RooflineError};
use blis_core::math::float;

/// Each round tries steps half as wide as the last.
const ROUNDS: u32 = 9;

/// Passes over all efficiencies in a round, at most.
const PASSES: u32 = 40;

/// The mean absolute relative error of a roofline over `rows`.
pub fn mean_error(roofline: &Roofline, rows: &[Row]) -> f64 {
    let errors = rows.iter().map(|row| (roofline.step_micros(&row.shape) / row.micros - 1.0).abs());
    errors.sum::<f64>() / float(rows.len().max(1) as u64)
}

/// The efficiencies with which `model` on one GPU comes nearest to `rows`, found from `start` by
/// moving one at a time, by factors that get smaller. What one GPU cannot show stays as it is.
///
/// # Errors
/// If the data sheet or `start` is illegal.
pub fn fit_efficiency(
    model: ModelShape,
    gpu: GpuSheet,
    start: Efficiency,
    rows: &[Row],
) -> Result<Efficiency, RooflineError> {
    let error = |efficiency| Ok(mean_error(&Roofline::new(model, gpu, 1, efficiency)?, rows));
    let mut best = start;
    let mut least = error(best)?;
    let mut factor = 1.5;
    for _ in 0..ROUNDS {
        for _ in 0..PASSES {
            let before = least;
            for index in 0..FREE {
                for by in [factor, 1.0 / factor] {
                    let mut other = best;
                    *free(&mut other)[index] *= by;
                    let found = error(other)?;
                    if found < least {
                        (best, least) = (other, found);
                    }
                }
            }
            if before - least < 1e-9 {
                break;
            }
        }
        factor = 1.0 + (factor - 1.0) / 2.0;
    }
    Ok(best)
}

/// Efficiencies that one GPU shows.
const FREE: usize = 6;

fn free(efficiency: &mut Efficiency) -> [&mut f64; FREE] {
    let Efficiency { memory, compute, attention, layer_us, sequence_us, heads_to_saturate, .. } =
        efficiency;
    [memory, compute, attention, layer_us, sequence_us, heads_to_saturate]
}
