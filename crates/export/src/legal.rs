//! What values of configuration may be: the tables of both systems are made of these.

use blis_scenario::problem::quoted;
use blis_scenario::yaml::{self, Kind, Node};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use std::collections::BTreeMap;

/// Tables write this for the largest legal number where there is none.
const MANY: f64 = 9e15;

/// What a value may be.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum Legal {
    /// Nothing: a flag of a command line without a value.
    Switch,
    /// Anything; it is checked elsewhere.
    Any,
    /// `true` or `false`.
    Flag,
    /// Any text.
    Text,
    /// A time with its unit, e.g. `200ms`.
    Duration,
    /// One of these.
    Word(Vec<String>),
    /// A number from the first to the second, both included.
    Number(f64, f64),
    /// A whole number, likewise.
    Whole(f64, f64),
    /// A list of such values.
    List(Box<Legal>),
    /// A map with these fields; none is required.
    Map(BTreeMap<String, Legal>),
}

/// A table of the program, from its YAML.
///
/// # Panics
/// If it is not such a table; every export reads it.
pub(super) fn table<T: DeserializeOwned>(text: &str) -> T {
    let tree = yaml::read_text("schema.yaml", text).unwrap_or_else(|problem| panic!("{problem}"));
    serde_json::from_str(&tree.to_json()).expect("schema.yaml is a table of legal values")
}

impl Legal {
    /// What is wrong with `node`, which stands at `path`.
    pub(super) fn problems(&self, path: &str, node: &Node) -> Vec<String> {
        match (self, &node.kind) {
            (Legal::Map(fields), Kind::Map(all)) => {
                let problems = |(name, _, value): &(String, _, Node)| {
                    let path = format!("{path}.{name}");
                    match fields.get(name) {
                        Some(legal) => legal.problems(&path, value),
                        None => vec![format!("{path}: unknown")],
                    }
                };
                all.iter().flat_map(problems).collect()
            }
            (Legal::List(legal), Kind::List(items)) => {
                items.iter().flat_map(|item| legal.problems(path, item)).collect()
            }
            (Legal::Any, _) => Vec::new(),
            (_, Kind::Scalar { text, .. }) if self.allows(text) => Vec::new(),
            _ => vec![format!("{path}: found `{}`; legal: {}", node.to_json(), self.told())],
        }
    }

    /// What is legal, in words.
    pub(super) fn told(&self) -> String {
        let range = |what: &str, least: f64, most: f64| {
            let most = if most < MANY { format!(" to {most}") } else { String::new() };
            format!("{what} from {least}{most}")
        };
        match self {
            Legal::Switch => "no value".to_owned(),
            Legal::Any => "anything".to_owned(),
            Legal::Flag => "`true` or `false`".to_owned(),
            Legal::Text => "a text".to_owned(),
            Legal::Duration => "a time such as `30s`".to_owned(),
            Legal::Word(words) => quoted(words),
            Legal::Number(least, most) => range("a number", *least, *most),
            Legal::Whole(least, most) => range("a whole number", *least, *most),
            Legal::List(_) => "a list".to_owned(),
            Legal::Map(_) => "fields".to_owned(),
        }
    }

    /// Whether a value that is written so is legal; no text is a list or fields.
    pub(super) fn allows(&self, text: &str) -> bool {
        let within = |least: f64, most: f64, n: f64| (least..=most).contains(&n);
        let number = text.parse::<f64>();
        match self {
            Legal::Flag => matches!(text, "true" | "false"),
            Legal::Text => !text.is_empty(),
            Legal::Duration => seconds(text).is_some(),
            Legal::Word(words) => words.iter().any(|word| word == text),
            Legal::Number(least, most) => number.is_ok_and(|n| within(*least, *most, n)),
            Legal::Whole(least, most) => {
                number.is_ok_and(|n| within(*least, *most, n) && n.fract().abs() < 1e-12)
            }
            Legal::Switch | Legal::Any | Legal::List(_) | Legal::Map(_) => false,
        }
    }
}

/// A time as Go writes it, e.g. `1m30s`, in seconds.
pub(super) fn seconds(text: &str) -> Option<f64> {
    let units = [("ms", 1e-3), ("us", 1e-6), ("ns", 1e-9), ("h", 3_600.0), ("m", 60.0), ("s", 1.0)];
    let (mut rest, mut sum) = (text, 0.0);
    while !rest.is_empty() {
        let end = rest.find(|c: char| !c.is_ascii_digit() && c != '.')?;
        let (digits, behind) = rest.split_at(end);
        let (unit, size) = units.iter().find(|(unit, _)| behind.starts_with(unit))?;
        sum += digits.parse::<f64>().ok()? * size;
        rest = &behind[unit.len()..];
    }
    (!text.is_empty()).then_some(sum)
}

#[cfg(test)]
mod tests {
    use super::*;

    const FIELDS: &str = "map:
  size: {whole: [1, 10]}
  deep: {map: {share: {number: [0, 1]}}}
  ttl: duration
  tiers: {list: {map: {name: {word: [gpu, cpu]}}}}
";

    #[test]
    fn what_is_not_in_the_table_or_out_of_range_is_a_problem() {
        let legal: Legal = table(FIELDS);
        let found = |text: &str| legal.problems("p", &yaml::read_text("x", text).expect("YAML"));
        assert!(
            found("{size: 3, deep: {share: 0.5}, ttl: 200ms, tiers: [{name: gpu}]}").is_empty()
        );
        for text in [
            "{size: 11}",
            "{size: 1.5}",
            "{size: {a: 1}}",
            "{deep: {share: 2}}",
            "{deep: {other: 1}}",
            "{deep: 1}",
            "{ttl: soon}",
            "{ttl: -1s}",
            "{tiers: [{name: disk}]}",
            "{tiers: [{name: gpu, size: 1}]}",
            "{tiers: gpu}",
            "{sise: 3}",
        ] {
            assert_eq!(found(text).len(), 1, "{text}: {:?}", found(text));
        }
    }
}
