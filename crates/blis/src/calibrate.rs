//! `blis calibrate`: fits a latency profile to what a server logged.

use crate::args::{CalibrateArgs, TextFormat};
use crate::failure::Failure;
use crate::output::{self, Output};
use crate::report::json;
use crate::report::table::{bold, grouped, table};
use crate::trace;
use blis_fidelity::calibrate::{self, Calibration};
use blis_fidelity::measured::{self, grids};
use blis_scenario::profile::{self, ProfiledMachine};
use std::io::Write;
use std::path::PathBuf;

/// Fits what `args` name, writes the profile and prints how good it is.
pub(crate) fn calibrate(args: &CalibrateArgs) -> Result<(), Failure> {
    let measured = measured::read_all(&args.steps, &args.requests)?;
    let padding = calibrate::padding(args.padding.as_deref(), &measured)
        .map_err(|message| Failure::Input(format!("--padding: {message}")))?;
    let runs = calibrate::runs(&measured, &grids(&args.grid, &args.steps), args.block_size)?;
    let target = match &args.out {
        Some(out) => Some(trace::target(out, &inputs(args))?),
        None => None,
    };
    let file = target.as_ref().map(Output::create).transpose()?;
    let found = calibrate::calibrate(runs, padding, machine(args))?;
    if let Some(mut file) = file {
        let text = profile::text(&found.file);
        file.write_all(text.as_bytes()).map_err(|error| file.failure(&error))?;
        file.finish()?;
    }
    if target.is_some_and(|target| target.is_stdout()) {
        return Ok(());
    }
    output::print(&match args.format {
        TextFormat::Table => text(&found),
        TextFormat::Json => json::text(&found.object()),
    })
}

fn inputs(args: &CalibrateArgs) -> Vec<PathBuf> {
    args.steps.iter().chain(&args.requests).chain(&args.grid).cloned().collect()
}

fn machine(args: &CalibrateArgs) -> ProfiledMachine {
    let model = args.model.as_deref().map(calibrate::model_name);
    ProfiledMachine { model, hardware: args.hardware.clone(), tp: args.tp }
}

/// A share in per cent, with its sign.
pub(crate) fn signed(share: f64) -> String {
    format!("{:+.1} %", 100.0 * share)
}

fn text(found: &Calibration) -> String {
    let mut errors = table(&["run", "steps", "number", "s", "error", "bias", "unseen", "bias"]);
    let (mut run, absent) = (String::new(), || "-".to_owned());
    for row in found.errors() {
        let first = run != row.run;
        run.clone_from(&row.run);
        errors.add_row(vec![
            if first { row.run } else { String::new() },
            row.region.to_owned(),
            grouped(row.fitted.steps as u64),
            format!("{:.1}", row.fitted.seconds),
            format!("{:.1} %", 100.0 * row.fitted.mean_absolute),
            signed(row.fitted.total),
            row.left_out.map_or_else(absent, |e| format!("{:.1} %", 100.0 * e.mean_absolute)),
            row.left_out.map_or_else(absent, |errors| signed(errors.total)),
        ]);
    }
    let mut coefficients = table(&["coefficient", "value", "+-", "unit", "meaning"]);
    for row in found.coefficients() {
        coefficients.add_row(vec![
            row.name,
            significant(row.value),
            row.error.map_or_else(|| "-".to_owned(), significant),
            row.unit.to_owned(),
            row.help.to_owned(),
        ]);
    }
    let drift = found.file.profile.parameters().drift;
    let steps: usize = found.runs.iter().map(|run| run.rows.len()).sum();
    let head = format!("{} steps of {} runs", grouped(steps as u64), found.runs.len());
    format!(
        "{}\n\n{}\n\nerror: mean of absolute errors; bias: of the time of all these steps together; \
         unseen: by a fit\nto the other workloads, of which whole runs are off by {:.2} % (root mean \
         square)\n\n{}\n",
        bold(&head),
        errors.trim_fmt(),
        100.0 * drift,
        coefficients.trim_fmt()
    )
}

/// Four digits.
fn significant(value: f64) -> String {
    match value.abs() {
        large if large >= 1000.0 => format!("{value:.0}"),
        large if large >= 10.0 => format!("{value:.1}"),
        large if large >= 0.1 => format!("{value:.3}"),
        small if small > 0.0 => format!("{value:.6}"),
        _ => "0".to_owned(),
    }
}
