//! Lists of policies as JSON, for `blis policies` and for Python.

use crate::json::present;
use blis_core::{Param, ParamKind, Value as ParamValue};
use blis_policy::{Entry, Kind};
use serde_json::{Value, json};

/// A kind of policy with all there are.
pub fn object(kind: &Kind) -> Value {
    present(json!({
        "kind": kind.name,
        "title": kind.title,
        "yaml_key": kind.yaml_key,
        "policies": kind.entries.iter().map(entry_object).collect::<Vec<Value>>(),
    }))
}

fn entry_object(entry: &Entry) -> Value {
    json!({
        "name": entry.name,
        "alias": entry.alias,
        "help": entry.help,
        "params": entry.params.iter().map(param_object).collect::<Vec<Value>>(),
    })
}

fn param_object(param: &Param) -> Value {
    let (min, max) = match param.kind {
        ParamKind::Float { min, max, .. } | ParamKind::Log { min, max, .. } => {
            (json!(min), json!(max))
        }
        ParamKind::Int { min, max, .. } | ParamKind::IntOrAuto { min, max } => {
            (json!(min), json!(max))
        }
        ParamKind::Flag { .. } | ParamKind::Choice { .. } | ParamKind::Formula { .. } => {
            (Value::Null, Value::Null)
        }
    };
    json!({
        "name": param.name,
        "legal": param.kind.legal(),
        "default": plain(&param.kind.default_value()),
        "min": min,
        "max": max,
        "unit": Some(param.unit).filter(|unit| !unit.is_empty()),
        "help": param.help,
    })
}

fn plain(value: &ParamValue) -> Value {
    match value {
        ParamValue::Float(x) => Value::from(*x),
        ParamValue::Int(n) => Value::from(*n),
        ParamValue::Flag(b) => Value::from(*b),
        ParamValue::Word(word) => Value::from(word.as_str()),
    }
}
