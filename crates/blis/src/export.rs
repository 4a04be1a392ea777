//! `blis export`: a strategy as configuration of llm-d or vLLM; `blis import`: the way back.

use crate::args::Layout;
use crate::args::export::{
    CoverageArgs, ExportCommand, ExportToArgs, ImportArgs, ImportCommand, SystemArgs,
};
use crate::failure::{CHECK_FAILED, DONE, Failure};
use crate::output::{self, Output};
use crate::show;
use crate::target::Target;
use blis_export::llm_d::Imported;
use blis_export::{self, Exported, coverage, llm_d, vllm};
use blis_lab::study;
use blis_scenario::problem::Place;
use blis_scenario::scenario::Draft;
use blis_scenario::yaml::{Kind, Node};
use blis_scenario::{Plan, Problems, yaml};
use std::path::Path;

/// Does what `args` ask for.
pub(crate) fn export(args: &ExportToArgs) -> Result<u8, Failure> {
    match &args.command {
        ExportCommand::LlmD(args) => written(args, llm_d::export),
        ExportCommand::Vllm(args) => written(args, vllm::export),
        ExportCommand::Coverage(args) => covered(args).map(|()| DONE),
    }
}

/// Writes the configuration, unless something that decides is missing in it.
fn written(args: &SystemArgs, export: fn(&Plan, &str) -> Exported) -> Result<u8, Failure> {
    let draft = draft(args)?;
    let Exported { text, missing } = export(&blis_export::plan(&draft)?, &title(args));
    let missing = missing.join(", ");
    if !missing.is_empty() && !args.allow_partial {
        return Err(Failure::Input(format!(
            "{}: no counterpart for {missing}; add `--allow-partial` to export the rest, which \
             will decide differently",
            title(args)
        )));
    }
    Output::whole(&Target::out(&args.out)?, &text)?;
    if missing.is_empty() {
        return Ok(DONE);
    }
    output::note(&format!("warning: left out, so it decides differently: {missing}"));
    Ok(CHECK_FAILED)
}

/// Reads a configuration as a strategy.
pub(crate) fn import(args: &ImportArgs) -> Result<(), Failure> {
    let ImportCommand::LlmD(from) = &args.command;
    let imported = imported(&from.config, &yaml::read_file(&from.config).map_err(Problems::from)?)?;
    Output::whole(&Target::out(&from.out)?, &imported.text)?;
    tell(&imported);
    Ok(())
}

fn imported(path: &Path, tree: &Node) -> Result<Imported, Problems> {
    let stem = path.file_stem().map(|stem| stem.to_string_lossy().into_owned());
    llm_d::import(tree, &stem.unwrap_or_default())
}

fn tell(imported: &Imported) {
    for part in &imported.left_out {
        output::note(&format!("note: left out: {part}"));
    }
}

/// The scenario fields of the strategy in `path`: a strategy's file, or a configuration that is
/// imported as one.
pub(crate) fn baseline(path: &Path) -> Result<Node, Problems> {
    let tree = yaml::read_file(path)?;
    let mut fields = Node::empty();
    if tree.has("set") {
        fields.set(&["strategy"], Node::from_flag("--baseline", &path.to_string_lossy()));
        return Ok(fields);
    }
    let imported = imported(path, &tree)?;
    tell(&imported);
    let strategy = yaml::read_text("--baseline", &imported.text)?;
    let Kind::Map(set) = strategy.field("set").unwrap_or(&Node::empty()).kind.clone() else {
        return Ok(fields);
    };
    // It replaces all policies, as a strategy does.
    fields.set(&["strategy"], Node { place: Place::Unknown, kind: Kind::Null });
    for (name, _, value) in set {
        fields.set(&[&name], value);
    }
    Ok(fields)
}

fn draft(args: &SystemArgs) -> Result<Draft, Problems> {
    let draft = args.scenario.as_deref().map(study::scenario_of).transpose()?.map(Draft::from_tree);
    let mut draft = draft.unwrap_or_default();
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
    let scenario = file.map(|file| format!("`{}`", file.to_string_lossy()));
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
