//! How good a fitted latency profile is.

use crate::model::{Block, Document, Table};
use crate::text::{counted, dash, grouped, percent, signed};
use blis_fidelity::calibrate::Calibration;
use blis_lab::verdict::number;

/// What a fit came to.
pub fn document(found: &Calibration) -> Document {
    let errors = found.errors().into_iter().map(|row| {
        [
            row.run,
            row.region.to_owned(),
            grouped(row.fitted.steps as u64),
            format!("{:.1}", row.fitted.seconds),
            percent(row.fitted.mean_absolute),
            signed(row.fitted.total),
            percent(row.left_out.map(|errors| errors.mean_absolute)),
            signed(row.left_out.map(|errors| errors.total)),
        ]
    });
    let header =
        ["run", "steps", "number", "time, s", "error", "bias", "unseen: error", "unseen: bias"];
    let errors = Table::new("errors by run and kind of step", header, errors).keyed(2);
    let coefficients = found.coefficients().into_iter().map(|row| {
        let error = dash(row.error, number);
        [row.name, number(row.value), error, row.unit.to_owned(), row.help.to_owned()]
    });
    let header = ["coefficient", "value", "±", "unit", "meaning"];
    let coefficients = Table::new("coefficients", header, coefficients);
    let drift = found.file.profile.parameters().drift;
    let about = format!(
        "Error is the mean absolute error, bias the error of the total time. Unseen: predicted by \
         a fit to the other workloads, whose RMS error over whole runs is {:.2} %.",
        100.0 * drift
    );
    let steps: usize = found.runs.iter().map(|run| run.rows.len()).sum();
    let (steps, runs) = (counted(steps as u64, "step"), counted(found.runs.len() as u64, "run"));
    let blocks = vec![errors.into(), Block::Prose(about), coefficients.into()];
    Document::new(format!("fit to {steps} of {runs}"), blocks, found.object())
}
