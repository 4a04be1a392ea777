//! What becomes of every policy in a real system: the same, something like it, or nothing yet.
//!
//! `coverage.txt` has one line a policy, for all policies of the registry; a test walks the
//! registry, so that a new policy does not pass without a line. The texts stand as comments in
//! exported files.

use blis_policy::kinds;
use std::fmt::Write;
use std::sync::LazyLock;

/// Who would do what a policy does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum System {
    /// llm-d's endpoint picker.
    LlmD,
    /// vLLM's server.
    Vllm,
}

impl System {
    /// The system that policies of `kind` belong to: what the gateway decides, and what an engine
    /// does.
    pub fn of(kind: &str) -> System {
        match kind {
            "admission" | "routing" | "scorer" | "filter" | "picker" => System::LlmD,
            _ => System::Vllm,
        }
    }

    /// Its name.
    pub const fn name(self) -> &'static str {
        match self {
            System::LlmD => "llm-d",
            System::Vllm => "vLLM",
        }
    }
}

/// How well a policy is met there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fit {
    /// The same; what to know nevertheless.
    Exact(&'static str),
    /// Something like it: what is different.
    Approximate(&'static str),
    /// Nothing: what is missing, and what to do instead.
    Missing(&'static str),
}

impl Fit {
    /// The word for it, and the text.
    pub const fn told(self) -> (&'static str, &'static str) {
        match self {
            Fit::Exact(text) => ("exact", text),
            Fit::Approximate(text) => ("approximate", text),
            Fit::Missing(text) => ("none", text),
        }
    }

    /// Whether there is nothing like it.
    pub const fn is_missing(self) -> bool {
        matches!(self, Fit::Missing(_))
    }
}

/// What becomes of one policy.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mapping {
    /// The kind, as `blis policies` names it.
    pub kind: &'static str,
    /// The policy.
    pub name: &'static str,
    /// How well it is met.
    pub fit: Fit,
    /// Plugins or flags that stand for it, by type or name.
    pub by: Vec<&'static str>,
}

/// The line of the policy `name` of `kind`.
///
/// # Panics
/// If it has none; a test walks the registry.
pub fn of(kind: &str, name: &str) -> &'static Mapping {
    find(kind, name).unwrap_or_else(|| panic!("{kind} `{name}` has no line in coverage.txt"))
}

fn find(kind: &str, name: &str) -> Option<&'static Mapping> {
    ALL.iter().find(|one| one.kind == kind && one.name == name)
}

/// What is said of a policy that is not in the registry.
const FOREIGN: Fit = Fit::Missing("a custom policy: write it as a plugin and register it there");

/// How well the policy `name` of `kind` is met, whoever made it.
pub(super) fn fit(kind: &str, name: &str) -> Fit {
    find(kind, name).map_or(FOREIGN, |mapping| mapping.fit)
}

/// The whole table as a page.
///
/// # Panics
/// Never: writing to a string cannot fail.
pub fn reference_markdown() -> String {
    let mut page = String::from(HEAD);
    for kind in kinds() {
        let system = System::of(kind.name);
        let title = format!("\n## {}: {}\n", kind.title, system.name());
        let header = "\n| policy | fit | by | what to know |\n|---|---|---|---|\n";
        page.push_str(&(title + header));
        for entry in &kind.entries {
            let Mapping { fit, by, .. } = of(kind.name, entry.name);
            let (word, text) = fit.told();
            let by: Vec<String> = by.iter().map(|name| format!("`{name}`")).collect();
            writeln!(page, "| `{}` | {word} | {} | {text} |", entry.name, by.join(", "))
                .expect("text can grow");
        }
    }
    page
}

const HEAD: &str = "\
# Policies in llm-d and vLLM

What `blis export` makes of each policy. *Exact*: the system does the same. *Approximate*: the closest
counterpart, with what differs. *None*: no counterpart; the text says what is missing and what to do
instead. Exported files carry these texts as comments.

The plugins are those of llm-d's endpoint picker with the configuration `llm-d.ai/v1`, which release
1.0 reads; the flags are those of vLLM 0.28. Sources
are in [decision 21](../decisions/0021-export.md). Written by `blis export coverage --format
markdown`.
";

/// All lines, kind by kind in the order of the registry.
static ALL: LazyLock<Vec<Mapping>> = LazyLock::new(|| {
    let lines = include_str!("coverage.txt").lines().filter(|line| !line.starts_with('#'));
    lines.map(mapping).collect()
});

fn mapping(line: &'static str) -> Mapping {
    let cells: Vec<&str> = line.split('|').map(str::trim).collect();
    let &[kind, name, fit, by, text] = cells.as_slice() else {
        panic!("coverage.txt: `{line}` has not five cells")
    };
    let fit = match fit {
        "exact" => Fit::Exact(text),
        "approximate" => Fit::Approximate(text),
        _ => Fit::Missing(text),
    };
    let by = by.split(", ").filter(|name| !name.is_empty()).collect();
    Mapping { kind, name, fit, by }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn every_policy_of_the_registry_has_a_line_and_every_line_a_policy() {
        let mut known = BTreeSet::new();
        for kind in kinds() {
            for entry in &kind.entries {
                let mapping = of(kind.name, entry.name);
                let (word, text) = mapping.fit.told();
                let told = matches!(mapping.fit, Fit::Exact(_)) || !text.is_empty();
                assert!(told, "{word}: say what differs for {} `{}`", kind.name, entry.name);
                known.insert((kind.name, entry.name));
            }
        }
        let table = include_str!("coverage.txt");
        for mapping in ALL.iter() {
            let cells = [mapping.kind, mapping.name, mapping.fit.told().0].join(" | ");
            assert!(table.contains(&format!("\n{cells} | ")), "`{cells}` is not a line");
        }
        assert!(known.len() > 60, "a short registry");
        let policies = || ALL.iter().filter(|line| line.kind != "part");
        assert_eq!(known.len(), policies().count(), "no line twice");
        for mapping in policies() {
            let line = (mapping.kind, mapping.name);
            assert!(known.contains(&line), "{line:?} is in the table, not in the registry");
        }
    }
}
