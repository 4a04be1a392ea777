//! What vLLM's server reads: `schema.yaml` has the flags that are ever written, their ranges, and
//! where that stands.
//!
//! [Decision 21](../../../../../docs/decisions/0021-export.md) says more.

use super::super::legal::{Legal, table};
use super::super::write::shell_words;
use blis_scenario::yaml;
use std::collections::BTreeMap;
use std::sync::LazyLock;

/// The flags that may be written.
static FLAGS: LazyLock<BTreeMap<String, Legal>> =
    LazyLock::new(|| table(include_str!("schema.yaml")));

/// What vLLM would not read in the command line `text`; empty if it reads all of it.
pub fn problems(text: &str) -> Vec<String> {
    let lines: Vec<&str> = text.lines().filter(|line| !line.starts_with('#')).collect();
    let words = shell_words(&lines.join("\n"));
    let mut found = Vec::new();
    let flags = match &words[..] {
        [vllm, serve, _, flags @ ..] if vllm == "vllm" && serve == "serve" => flags,
        _ => return vec!["it is not `vllm serve MODEL`".to_owned()],
    };
    let mut seen = Vec::new();
    let mut flags = flags.iter().peekable();
    while let Some(name) = flags.next() {
        let value = flags.next_if(|value| !value.starts_with("--"));
        if seen.contains(&name) {
            found.push(format!("{name}: it is given twice"));
        }
        seen.push(name);
        match FLAGS.get(name) {
            Some(legal) => found.extend(problems_of(name, legal, value.map(String::as_str))),
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
