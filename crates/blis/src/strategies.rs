//! `blis strategies`: the strategies that ship, and the text of one.

use crate::args::{StrategiesArgs, TextFormat};
use crate::failure::Failure;
use crate::output;
use crate::report::json;
use crate::report::table::bold;
use blis_scenario::json::Fields;
use blis_scenario::strategy::{self, ParameterKind, Shipped, Strategy};
use serde_json::{Value, json};

/// Lists them, or prints the one that `args` name.
pub(crate) fn list(args: &StrategiesArgs) -> Result<(), Failure> {
    let text = match (&args.name, args.format) {
        (Some(name), TextFormat::Table) => find(name)?.text.to_owned(),
        (Some(name), TextFormat::Json) => json::text(&object(&find(name)?.read()?)),
        (None, TextFormat::Table) => listing()?,
        (None, TextFormat::Json) => {
            let all: Result<Vec<Value>, Failure> =
                strategy::ALL.iter().map(|shipped| Ok(object(&shipped.read()?))).collect();
            json::text(&Value::Array(all?))
        }
    };
    output::print(&text)
}

fn find(name: &str) -> Result<&'static Shipped, Failure> {
    // The error is that of a scenario that names it.
    Strategy::find(name)?;
    let shipped = strategy::ALL.iter().find(|shipped| shipped.name == name);
    shipped.ok_or_else(|| Failure::Input(format!("`{name}` is a file of your own")))
}

fn listing() -> Result<String, Failure> {
    let mut parts =
        vec![format!("{}\n", bold("Strategies (`--strategy NAME[PARAMETER=VALUE,...]`)"))];
    for shipped in strategy::ALL {
        let Strategy { name, help, parameters, .. } = shipped.read()?;
        parts.push(format!("  {name}: {help}\n"));
        let names: Vec<String> =
            parameters.iter().map(|p| format!("{}={}", p.name, p.default)).collect();
        if !names.is_empty() {
            parts.push(format!("      {}\n", names.join(", ")));
        }
    }
    parts.push("\n`blis strategies NAME` prints one, as a file to start from.\n".to_owned());
    Ok(parts.concat())
}

fn object(strategy: &Strategy) -> Value {
    let mut fields = Fields::default();
    fields.value("name", strategy.name.as_str());
    fields.value("help", strategy.help.as_str());
    let parameter = |p: &strategy::Parameter| {
        let (kind, legal) = match &p.kind {
            ParameterKind::Float { min, max, log } => {
                (if *log { "log" } else { "float" }, json!([min, max]))
            }
            ParameterKind::Int { min, max } => ("int", json!([min, max])),
            ParameterKind::Choice(choices) => ("choice", json!(choices)),
        };
        json!({"name": p.name, "kind": kind, "legal": legal, "default": p.default, "help": p.help})
    };
    fields.value("parameters", strategy.parameters.iter().map(parameter).collect::<Vec<_>>());
    fields.into_value()
}
