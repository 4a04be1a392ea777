//! Lists of policies as JSON, for `blis policies` and for Python.

use crate::json::Fields;
use blis_core::{Param, ParamKind, Value as ParamValue};
use blis_policy::{Entry, Kind};
use serde_json::Value;

/// A kind of policy with all there are.
pub fn object(kind: &Kind) -> Value {
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
