//! JSON objects of reports: keys in order, and numbers that are finite or absent.

use crate::problem::is_hidden;
use serde::Serialize;
use serde_json::Value;
use std::borrow::Cow;

/// `value` as JSON, without what is absent.
///
/// # Panics
/// Never for plain values.
pub fn object(value: &impl Serialize) -> Value {
    present(serde_json::to_value(value).expect("plain values can be written as JSON"))
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

/// `text` with all that is hidden written as JSON writes it, but for line breaks and tabs: JSON
/// stays the same.
pub fn visible(text: &str) -> Cow<'_, str> {
    let hidden = |c: char| is_hidden(c) && !matches!(c, '\n' | '\t');
    if !text.contains(hidden) {
        return Cow::Borrowed(text);
    }
    let show = |c| if hidden(c) { format!("\\u{:04x}", u32::from(c)) } else { c.to_string() };
    Cow::Owned(text.chars().map(show).collect())
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
    fn hidden_characters_are_written_out_and_the_value_stays_the_same() {
        let value = json!({"a\u{202e}": "\u{9b}2J\u{7f}\n"});
        let text = text(&value);
        let shown = visible(&text);
        assert!(!shown.contains(|c| is_hidden(c) && c != '\n'), "{shown}");
        assert_eq!(serde_json::from_str::<Value>(&shown).expect("JSON"), value);
    }

    #[test]
    fn what_has_no_value_is_left_out_of_objects_and_kept_in_lists() {
        let value = json!({"a": null, "b": [null, {"c": f64::NAN, "d": 1}]});
        assert_eq!(present(value), json!({"b": [null, {"d": 1}]}));
    }
}
