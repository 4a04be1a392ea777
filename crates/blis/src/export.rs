//! `blis export`: a strategy as configuration of llm-d or vLLM.

use crate::args::ListFormat;
use crate::args::export::{CoverageArgs, ExportCommand, ExportToArgs, SystemArgs};
use crate::failure::Failure;
use crate::output::{self, Output};
use crate::report::grid::Grid;
use crate::report::json::text;
use crate::target::Target;
use blis_export::{self, System, coverage, llm_d, vllm};
use blis_policy::kinds;
use blis_scenario::json::Fields;
use blis_scenario::scenario::Draft;
use blis_scenario::{Plan, Problem};
use serde_json::Value;
use std::io::Write;
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
    if args.out == Path::new("-") {
        return output::print(&page);
    }
    let target = Target::of(&args.out)?;
    if args.scenario.as_deref().is_some_and(|input| target.is_input(input)) {
        let message = "--out: it is the scenario itself; name another file";
        return Err(Failure::Input(message.to_owned()));
    }
    let mut output = Output::create(&target)?;
    output.write_all(page.as_bytes()).map_err(|error| output.failure(&error))?;
    output.finish()
}

fn draft(args: &SystemArgs) -> Result<Draft, Problem> {
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
    let mut rows = Vec::new();
    for kind in kinds() {
        for entry in &kind.entries {
            rows.push((System::of(kind.name), coverage::of(kind.name, entry.name)));
        }
    }
    output::print(&match args.format {
        ListFormat::Markdown => coverage::reference_markdown(),
        ListFormat::Json => {
            let object = |(system, mapping): &(System, &coverage::Mapping)| {
                let (fit, told) = mapping.fit.told();
                let mut fields = Fields::default();
                fields.text("kind", mapping.kind);
                fields.text("policy", mapping.name);
                fields.text("system", system.name());
                fields.text("fit", fit);
                fields.value("by", mapping.by.to_vec());
                fields.text("note", told);
                fields.into_value()
            };
            text(&rows.iter().map(object).collect::<Vec<Value>>().into())
        }
        ListFormat::Table => {
            let row = |(system, mapping): &(System, &coverage::Mapping)| {
                let (kind, name) = (mapping.kind.to_owned(), mapping.name.to_owned());
                vec![kind, name, system.name().to_owned(), mapping.fit.told().0.to_owned()]
            };
            let header = ["kind", "policy", "system", "fit"].map(str::to_owned).to_vec();
            Grid { title: String::new(), header, rows: rows.iter().map(row).collect() }.text()
        }
    })
}
