//! What vLLM's server reads: `schema.yaml` has the flags that are ever written, their ranges, and
//! where that stands.
//!
//! [Decision 21](../../../../../docs/decisions/0021-export.md) says more.

use super::super::legal::{Legal, table};
use blis_scenario::yaml;
use std::collections::BTreeMap;
use std::sync::LazyLock;

/// The flags that may be written.
static FLAGS: LazyLock<BTreeMap<String, Legal>> =
    LazyLock::new(|| table(include_str!("schema.yaml")));

/// What vLLM would not read in the command line `text`; empty if it reads all of it.
pub fn problems(text: &str) -> Vec<String> {
    let mut lines = text.lines().filter(|line| !line.starts_with('#'));
    let mut found = Vec::new();
    let first = lines.next().unwrap_or_default().trim_end_matches('\\').trim();
    if first.strip_prefix("vllm serve ").is_none_or(|model| model.contains(' ')) {
        found.push(format!("`{first}` is not `vllm serve MODEL`"));
    }
    let mut seen = Vec::new();
    for line in lines {
        let line = line.trim_end_matches('\\').trim();
        let (name, value) = match line.split_once(' ') {
            None => (line, None),
            Some((name, value)) => (name, Some(value.trim().trim_matches('\''))),
        };
        if seen.contains(&name) {
            found.push(format!("{name}: it is given twice"));
        }
        seen.push(name);
        match FLAGS.get(name) {
            Some(legal) => found.extend(problems_of(name, legal, value)),
            None => found.push(format!("{name}: unknown")),
        }
    }
    found
}

fn problems_of(name: &str, legal: &Legal, value: Option<&str>) -> Vec<String> {
    match (legal, value) {
        (Legal::Switch, None) => Vec::new(),
        (_, None) => vec![format!("{name}: it needs a value")],
        (_, Some(value)) => match yaml::read_text(name, &format!("value: {value}")) {
            Ok(tree) => legal.problems(name, tree.field("value").unwrap_or(&tree)),
            Err(problem) => vec![problem.to_string()],
        },
    }
}
