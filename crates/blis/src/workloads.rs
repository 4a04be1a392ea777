//! `blis workloads`: the workloads and the sets of targets that ship, and the text of one workload.

use crate::args::{Layout, WorkloadsArgs};
use crate::failure::Failure;
use crate::output;
use crate::show;
use blis_report::lists;
use blis_scenario::{json, presets};

/// Lists them, or prints the workload that `args` name.
pub(crate) fn list(args: &WorkloadsArgs) -> Result<(), Failure> {
    let Some(name) = &args.name else { return show::print(&lists::workloads(), args.format) };
    let preset = presets::find(name).map_err(Failure::Input)?;
    match args.format {
        Layout::Json => output::print(&json::text(&lists::preset(preset))),
        _ => output::print(preset.text),
    }
}
