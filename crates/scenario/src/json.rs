//! JSON objects of reports: keys in order, and numbers that are finite or absent.

use serde::Serialize;
use serde_json::{Map, Number, Value};

/// Fields of a JSON object in the order they are added.
#[derive(Clone, Debug, Default)]
pub struct Fields(Map<String, Value>);

impl Fields {
    /// Those of `object`, without what is absent.
    ///
    /// # Panics
    /// If it does not serialise as an object.
    pub fn of(object: &impl Serialize) -> Fields {
        match serde_json::to_value(object).map(present) {
            Ok(Value::Object(fields)) => Fields(fields),
            other => panic!("no object: {other:?}"),
        }
    }

    /// Adds a count.
    pub fn count(&mut self, name: &str, value: u64) {
        self.0.insert(name.to_owned(), value.into());
    }

    /// Adds a number, if there is one.
    pub fn number(&mut self, name: &str, value: Option<f64>) {
        if let Some(number) = value.and_then(Number::from_f64) {
            self.0.insert(name.to_owned(), Value::Number(number));
        }
    }

    /// Adds text.
    pub fn text(&mut self, name: &str, value: impl Into<String>) {
        self.0.insert(name.to_owned(), Value::String(value.into()));
    }

    /// Adds anything.
    pub fn value(&mut self, name: &str, value: impl Into<Value>) {
        self.0.insert(name.to_owned(), value.into());
    }

    /// The object.
    pub fn into_value(self) -> Value {
        Value::Object(self.0)
    }

    /// Whether nothing was added.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

/// A value as indented text with a final newline.
///
/// # Panics
/// Never: plain values can be written as JSON.
pub fn text(value: &Value) -> String {
    let text = serde_json::to_string_pretty(value);
    let mut text = text.expect("plain values can be written as JSON");
    text.push('\n');
    text
}

/// `value` without the fields that have no value: a number without a sample is absent.
pub fn present(value: Value) -> Value {
    match value {
        Value::Object(fields) => {
            let kept = fields.into_iter().filter(|(_, value)| !value.is_null());
            Value::Object(kept.map(|(name, value)| (name, present(value))).collect())
        }
        Value::Array(values) => Value::Array(values.into_iter().map(present).collect()),
        other => other,
    }
}

/// A number, text or truth value that two objects do not share.
#[derive(Clone, Debug, PartialEq)]
pub struct Difference {
    /// Where it stands, e.g. `classes.critical.ttft_p99_ms`.
    pub path: String,
    /// What the first has there.
    pub first: Option<Value>,
    /// What the second has there.
    pub second: Option<Value>,
}

/// Where `first` and `second` differ, in the order of the first.
pub fn differences(first: &Value, second: &Value) -> Vec<Difference> {
    let mut found = Vec::new();
    compare("", Some(first), Some(second), &mut found);
    found
}

fn compare(path: &str, first: Option<&Value>, second: Option<&Value>, found: &mut Vec<Difference>) {
    if first == second {
        return;
    }
    match (first, second) {
        (Some(Value::Object(a)), Some(Value::Object(b))) => {
            let added = b.keys().filter(|name| !a.contains_key(*name));
            for name in a.keys().chain(added) {
                let path = if path.is_empty() { name.clone() } else { format!("{path}.{name}") };
                compare(&path, a.get(name), b.get(name), found);
            }
        }
        (Some(Value::Array(a)), Some(Value::Array(b))) => {
            for index in 0..a.len().max(b.len()) {
                compare(&format!("{path}[{index}]"), a.get(index), b.get(index), found);
            }
        }
        _ => found.push(Difference {
            path: path.to_owned(),
            first: first.cloned(),
            second: second.cloned(),
        }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn what_has_no_value_is_left_out_of_objects_and_kept_in_lists() {
        let value = json!({"a": null, "b": [null, {"c": f64::NAN, "d": 1}]});
        assert_eq!(present(value), json!({"b": [null, {"d": 1}]}));
    }
}
