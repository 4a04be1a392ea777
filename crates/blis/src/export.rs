//! `blis export`: a strategy as configuration of llm-d or vLLM.

use crate::args::Layout;
use crate::args::export::{CoverageArgs, ExportCommand, ExportToArgs, SystemArgs};
use crate::failure::Failure;
use crate::output::{self, Output};
use crate::show;
use crate::target::Target;
use blis_export::{self, coverage, llm_d, vllm};
use blis_scenario::scenario::Draft;
use blis_scenario::{Plan, Problems};
use std::path::Path;

/// Does what `args` ask for.
pub(crate) fn export(args: &ExportToArgs) -> Result<(), Failure> {
    match &args.command {
        ExportCommand::LlmD(args) => written(args, llm_d::export),
        ExportCommand::Vllm(args) => written(args, vllm::export),
        ExportCommand::Coverage(args) => covered(args),
    }
}

fn written(args: &SystemArgs, text: fn(&Plan, &str) -> String) -> Result<(), Failure> {
    let draft = draft(args)?;
    let page = text(&blis_export::plan(&draft)?, &title(args));
    Output::whole(&Target::out(&args.out)?, &page)
}

fn draft(args: &SystemArgs) -> Result<Draft, Problems> {
    let mut draft = args.scenario.as_deref().map(Draft::read).transpose()?.unwrap_or_default();
    if let Some(spelled) = spelled(args) {
        draft.choose_strategy("--strategy", &spelled);
    }
    Ok(draft)
}

/// The strategy with its parameters, as scenarios spell it.
fn spelled(args: &SystemArgs) -> Option<String> {
    let name = args.strategy.as_deref()?;
    if args.set.is_empty() {
        return Some(name.to_owned());
    }
    let given = args.set.join(",");
    Some(match name.strip_suffix(']') {
        Some(open) => format!("{open},{given}]"),
        None => format!("{name}[{given}]"),
    })
}

/// What is exported, in words.
fn title(args: &SystemArgs) -> String {
    let strategy = spelled(args).map(|spelled| format!("strategy `{spelled}`"));
    let file = args.scenario.as_deref().and_then(Path::file_name);
    let scenario = file.map(|file| format!("scenario `{}`", file.to_string_lossy()));
    match (strategy, scenario) {
        (Some(strategy), Some(scenario)) => format!("{strategy} in {scenario}"),
        (Some(one), None) | (None, Some(one)) => one,
        (None, None) => "the default scenario".to_owned(),
    }
}

fn covered(args: &CoverageArgs) -> Result<(), Failure> {
    match args.format {
        Layout::Markdown => output::print(&coverage::reference_markdown()),
        layout => show::print(&blis_report::lists::coverage(), layout),
    }
}
