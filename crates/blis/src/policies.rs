//! `blis policies`: every policy with its parameters, from the registry.

use crate::args::{ListFormat, PoliciesArgs};
use crate::failure::Failure;
use crate::output;
use crate::report::json;
use blis_core::{Param, ParamKind, Value as ParamValue};
use blis_lab::json::Fields;
use blis_policy::{Entry, Kind, kinds, reference_markdown};
use serde_json::Value;

/// Lists what `args` ask for.
pub(crate) fn list(args: &PoliciesArgs) -> Result<(), Failure> {
    let mut chosen = kinds();
    if let Some(name) = &args.kind {
        let known: Vec<&str> = chosen.iter().map(|kind| kind.name).collect();
        if !known.contains(&name.as_str()) {
            let hint = blis_lab::problem::hint(name, known.iter().copied());
            let known = blis_lab::problem::quoted(&known);
            return Err(Failure::Input(format!("unknown kind `{name}`{hint}; known: {known}")));
        }
        chosen.retain(|kind| kind.name == name);
    }
    let text = match args.format {
        ListFormat::Markdown if args.kind.is_none() => reference_markdown(),
        ListFormat::Markdown => {
            return Err(Failure::Input("the reference page has all kinds; remove the kind".into()));
        }
        ListFormat::Json => json::text(&chosen.iter().map(kind_object).collect()),
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

fn kind_object(kind: &Kind) -> Value {
    let mut fields = Fields::default();
    fields.text("kind", kind.name);
    fields.text("title", kind.title);
    fields.text("yaml_key", kind.yaml_key);
    fields.value("policies", kind.entries.iter().map(entry_object).collect::<Vec<Value>>());
    fields.into_value()
}

fn entry_object(entry: &Entry) -> Value {
    let mut fields = Fields::default();
    fields.text("name", entry.name);
    if let Some(alias) = entry.alias {
        fields.text("alias", alias);
    }
    fields.text("help", entry.help);
    fields.value("params", entry.params.iter().map(param_object).collect::<Vec<Value>>());
    fields.into_value()
}

fn param_object(param: &Param) -> Value {
    let mut fields = Fields::default();
    fields.text("name", param.name);
    fields.text("legal", param.kind.legal());
    fields.value("default", plain(&param.kind.default_value()));
    match param.kind {
        ParamKind::Float { min, max, .. } | ParamKind::Log { min, max, .. } => {
            fields.number("min", Some(min));
            fields.number("max", Some(max));
        }
        ParamKind::Int { min, max, .. } | ParamKind::IntOrAuto { min, max } => {
            fields.count("min", min);
            fields.count("max", max);
        }
        ParamKind::Flag { .. } | ParamKind::Choice { .. } => {}
    }
    if !param.unit.is_empty() {
        fields.text("unit", param.unit);
    }
    fields.text("help", param.help);
    fields.into_value()
}

fn plain(value: &ParamValue) -> Value {
    match value {
        ParamValue::Float(x) => Value::from(*x),
        ParamValue::Int(n) => Value::from(*n),
        ParamValue::Flag(b) => Value::from(*b),
        ParamValue::Word(word) => Value::from(word.as_str()),
    }
}
