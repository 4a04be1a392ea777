//! `blis policies`: every policy with its parameters, from the registry.

use crate::args::{ListFormat, PoliciesArgs};
use crate::failure::Failure;
use crate::output;
use crate::report::json;
use blis_core::Param;
use blis_policy::{Kind, kinds, reference_markdown};
use blis_scenario::policies;

/// Lists what `args` ask for.
pub(crate) fn list(args: &PoliciesArgs) -> Result<(), Failure> {
    let mut chosen = kinds();
    if let Some(name) = &args.kind {
        let known: Vec<&str> = chosen.iter().map(|kind| kind.name).collect();
        if !known.contains(&name.as_str()) {
            let hint = blis_scenario::problem::hint(name, known.iter().copied());
            let known = blis_scenario::problem::quoted(&known);
            return Err(Failure::Input(format!("unknown kind `{name}`{hint}; known: {known}")));
        }
        chosen.retain(|kind| kind.name == name);
    }
    let text = match args.format {
        ListFormat::Markdown if args.kind.is_none() => reference_markdown(),
        ListFormat::Markdown => {
            return Err(Failure::Input("the reference page has all kinds; remove the kind".into()));
        }
        ListFormat::Json => json::text(&chosen.iter().map(policies::object).collect()),
        ListFormat::Table => chosen.iter().map(kind_text).collect::<Vec<_>>().join("\n"),
    };
    output::print(&text)
}

fn kind_text(kind: &Kind) -> String {
    let mut lines = vec![format!("{} (`{}`)\n", kind.title, kind.yaml_key)];
    for entry in &kind.entries {
        let alias = entry.alias.map_or_else(String::new, |alias| format!(" ({alias})"));
        lines.push(format!("  {}{alias}: {}\n", entry.name, entry.help));
        lines.extend(entry.params.iter().map(|param| format!("      {}\n", param_text(param))));
    }
    lines.concat()
}

fn param_text(param: &Param) -> String {
    let unit = if param.unit.is_empty() { String::new() } else { format!(" {}", param.unit) };
    let default = param.kind.default_value();
    let legal = param.kind.legal();
    format!("{} = {default}{unit}: {} ({legal})", param.name, param.help)
}
