//! Finds where two results differ, leaving out what is meant to differ.

use serde_json::{Map, Value};
use std::collections::BTreeSet;

const CLOCK: &str = "read from a clock";
const BUILD: &str = "names the build";
const HASH: &str = "a hash of text that no user sees, which may change with the build";
const PROSE: &str = "a sentence for people";

/// The keys, at any depth, whose values may differ, and why.
pub(crate) const EXPLAINED: &[(&str, &str)] = &[
    ("wall_seconds", CLOCK),
    ("cpu_seconds", CLOCK),
    ("finished", CLOCK),
    ("version", BUILD),
    ("code", BUILD),
    ("key", HASH),
    ("scenario_hash", HASH),
    ("basis", PROSE),
    ("description", PROSE),
    ("help", PROSE),
    ("legal", PROSE),
    ("note", PROSE),
    ("summary", PROSE),
    ("title", PROSE),
    ("why", PROSE),
    ("text", "with its comments; `blis workloads NAME` is compared without them"),
];

/// Differences of one file that are listed; the rest is counted.
const LISTED: usize = 5;

/// Lists how `after` differs from `before`; the ending of `name` says how to read them.
pub(crate) fn differences(name: &str, before: &str, after: &str) -> Vec<String> {
    if before == after {
        return Vec::new();
    }
    let mut found = match name.rsplit('.').next() {
        Some("json") => json(before, after),
        Some("jsonl") => by_line(before, after, json),
        Some("yaml") => yaml(before, after),
        Some("csv") => by_line(before, after, cells),
        _ => by_line(&without_comments(before), &without_comments(after), cells),
    };
    let more = found.len().saturating_sub(LISTED);
    if more > 0 {
        found.truncate(LISTED);
        found.push(format!("and {more} more differences"));
    }
    found
}

/// Once the explained keys are left out, equal values are equal text: both are as `serde_json`
/// writes them.
fn json(before: &str, after: &str) -> Vec<String> {
    let read =
        |text| serde_json::from_str::<Value>(text).ok().filter(|value| is_plain(text, value));
    match (read(before), read(after)) {
        (Some(before), Some(after)) => values(before, after),
        _ => cells(before, after),
    }
}

fn is_plain(text: &str, value: &Value) -> bool {
    let text = text.trim_end();
    [serde_json::to_string_pretty(value), serde_json::to_string(value)]
        .into_iter()
        .flatten()
        .any(|written| written == text)
}

/// Comments are for people, so that YAML is compared by what it says.
fn yaml(before: &str, after: &str) -> Vec<String> {
    match [before, after].map(serde_saphyr::from_str::<Value>) {
        [Ok(before), Ok(after)] => values(before, after),
        _ => by_line(before, after, cells),
    }
}

fn values(mut before: Value, mut after: Value) -> Vec<String> {
    prune(&mut before);
    prune(&mut after);
    let mut found = Vec::new();
    walk("", &before, &after, &mut found);
    found
}

/// Removes what is explained.
fn prune(value: &mut Value) {
    match value {
        Value::Array(items) => items.iter_mut().for_each(prune),
        Value::Object(fields) => {
            fields.retain(|key, _| !EXPLAINED.iter().any(|(known, _)| known == key));
            fields.values_mut().for_each(prune);
        }
        _ => {}
    }
}

fn walk(path: &str, before: &Value, after: &Value, found: &mut Vec<String>) {
    match (before, after) {
        (Value::Object(a), Value::Object(b)) => walk_fields(path, a, b, found),
        (Value::Array(a), Value::Array(b)) if a.len() == b.len() => {
            for (index, (a, b)) in a.iter().zip(b).enumerate() {
                walk(&format!("{path}[{index}]"), a, b, found);
            }
        }
        (a, b) if a == b => {}
        (a, b) => found.push(format!("{path}: {}, then {}", short(a), short(b))),
    }
}

fn walk_fields(
    path: &str,
    a: &Map<String, Value>,
    b: &Map<String, Value>,
    found: &mut Vec<String>,
) {
    let at = |key: &str| if path.is_empty() { key.to_owned() } else { format!("{path}.{key}") };
    let keys: BTreeSet<&String> = a.keys().chain(b.keys()).collect();
    let before = found.len();
    for key in keys {
        match (a.get(key), b.get(key)) {
            (Some(a), Some(b)) => walk(&at(key), a, b, found),
            (Some(_), None) => found.push(format!("{}: gone", at(key))),
            _ => found.push(format!("{}: new", at(key))),
        }
    }
    if found.len() == before && !a.keys().eq(b.keys()) {
        found.push(format!("{path}: the keys are in another order"));
    }
}

fn short(value: &Value) -> String {
    let text = value.to_string();
    if text.chars().count() <= 60 {
        text
    } else {
        text.chars().take(57).chain("...".chars()).collect()
    }
}

/// Compares line by line, and says which one it is.
fn by_line(before: &str, after: &str, same: impl Fn(&str, &str) -> Vec<String>) -> Vec<String> {
    let (a, b) = (before.lines().count(), after.lines().count());
    if a != b {
        return vec![format!("{a} lines, then {b}")];
    }
    let pairs = before.lines().zip(after.lines()).enumerate().filter(|(_, (a, b))| a != b);
    pairs
        .flat_map(|(index, (a, b))| {
            same(a, b).into_iter().map(move |text| format!("line {}: {text}", index + 1))
        })
        .collect()
}

/// The first cell in which two lines differ.
fn cells(before: &str, after: &str) -> Vec<String> {
    let (a, b): (Vec<&str>, Vec<&str>) = (before.split(',').collect(), after.split(',').collect());
    let differs = a.iter().zip(&b).find(|(a, b)| a != b);
    let (a, b) = differs.map_or((before, after), |(a, b)| (*a, *b));
    let [a, b] = [a, b].map(|cell| short(&Value::from(cell)));
    vec![format!("{a}, then {b}")]
}

fn without_comments(text: &str) -> String {
    let lines = text.lines().filter(|line| !line.starts_with('#'));
    lines.collect::<Vec<_>>().join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(name: &str, before: &str, after: &str) -> Vec<String> {
        differences(name, before, after)
    }

    #[test]
    fn explained_keys_are_left_out_at_any_depth() {
        let before = r#"[{"offered":3,"wall_seconds":0.1}]"#;
        assert!(found("a.json", before, r#"[{"offered":3,"wall_seconds":0.2}]"#).is_empty());
        assert_eq!(found("a.json", before, r#"[{"offered":4}]"#), ["[0].offered: 3, then 4"]);
    }

    #[test]
    fn new_gone_and_moved_keys_are_told() {
        let text = r#"{"a":1,"b":{"c":2}}"#;
        assert_eq!(found("x.json", text, r#"{"a":1,"b":{"d":2}}"#), ["b.c: gone", "b.d: new"]);
        let moved = r#"{"b":{"c":2},"a":1}"#;
        assert_eq!(found("x.json", text, moved), [": the keys are in another order"]);
    }

    #[test]
    fn text_that_only_means_the_same_is_not_the_same() {
        assert_eq!(found("x.json", "{\"a\":1.0}", "{\"a\":1e0}").len(), 1);
        assert_eq!(found("x.json", "{\"a\":1.0}", "{\"a\":1}"), ["a: 1.0, then 1"]);
    }

    #[test]
    fn tables_differ_by_cell_and_by_length() {
        assert_eq!(found("x.csv", "a,b\n1,2\n", "a,b\n1,3\n"), ["line 2: \"2\", then \"3\""]);
        assert_eq!(found("x.csv", "a\n1\n", "a\n"), ["2 lines, then 1"]);
        let (ones, twos) = ("1\n".repeat(8), "2\n".repeat(8));
        assert_eq!(found("x.csv", &ones, &twos).last().unwrap(), "and 3 more differences");
    }

    #[test]
    fn comments_may_change_and_what_they_are_about_may_not() {
        assert!(found("x.yaml", "# old\na: 1 # x\n", "# new\na: 1\n").is_empty());
        assert_eq!(found("x.yaml", "a: 1\n", "a: 2\n"), ["a: 1, then 2"]);
        assert!(found("x.txt", "# old\nvllm serve\n", "vllm serve\n").is_empty());
        assert_eq!(found("x.txt", "vllm a\n", "vllm b\n").len(), 1);
    }

    #[test]
    fn every_explained_key_says_why() {
        assert!(EXPLAINED.iter().all(|(_, why)| !why.is_empty()));
    }
}
