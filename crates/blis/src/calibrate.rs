//! `blis calibrate`: fits a latency profile to what a server logged.

use crate::args::CalibrateArgs;
use crate::failure::Failure;
use crate::output::Output;
use crate::show;
use crate::target::Target;
use blis_fidelity::calibrate;
use blis_fidelity::measured::{self, grids};
use blis_scenario::profile::{self, ProfiledMachine};

/// Fits what `args` name, writes the profile and prints how good it is.
pub(crate) fn calibrate(args: &CalibrateArgs) -> Result<(), Failure> {
    let measured = measured::read_all(&args.steps, &args.requests)?;
    let padding = calibrate::padding(args.padding.as_deref(), &measured)
        .map_err(|message| Failure::Input(format!("--padding: {message}")))?;
    let runs = calibrate::runs(&measured, &grids(&args.grid, &args.steps), args.block_size)?;
    let target = args.out.as_deref().map(Target::out).transpose()?;
    let file = target.as_ref().map(Output::create).transpose()?;
    let mut found = calibrate::calibrate(runs, padding, machine(args))?;
    if measured.iter().any(|run| run.by_clients) {
        found = found.by_clients()?;
    }
    if let Some(file) = file {
        file.fill(&profile::text(&found.file))?;
    }
    if target.is_some_and(|target| target.is_stdout()) {
        return Ok(());
    }
    show::print(&blis_report::calibrate::document(&found), args.format)
}

fn machine(args: &CalibrateArgs) -> ProfiledMachine {
    let model = args.model.as_deref().map(calibrate::model_name);
    ProfiledMachine { model, hardware: args.hardware.clone(), tp: args.tp }
}
