//! What llm-d's endpoint picker reads: `schema.yaml` has the fields of its configuration, the types
//! of plugins, their parameters and ranges, each with the document that says so.
//!
//! [Decision 21](../../../../../docs/decisions/0021-export.md) says more.

use super::super::legal::{Legal, table};
use super::import::{PRECISE, items, text};
use blis_scenario::yaml::{self, Node};
use serde::Deserialize;
use std::collections::BTreeMap;
use std::sync::LazyLock;

#[derive(Deserialize)]
struct Schema {
    /// The configuration as a whole.
    document: Legal,
    plugins: BTreeMap<String, PluginType>,
}

/// What a plugin can be in a profile.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Role {
    /// Leaves endpoints out.
    Filter,
    /// Gives scores, and has a weight.
    Scorer,
    /// Chooses; a profile has at most one.
    Picker,
    /// Works wherever it is declared, without a place in a profile.
    Declared,
}

/// A type of plugins.
#[derive(Deserialize)]
struct PluginType {
    /// What it can be in a profile.
    role: Role,
    /// The parameters that are ever written or read.
    #[serde(default)]
    parameters: BTreeMap<String, Legal>,
}

static SCHEMA: LazyLock<Schema> = LazyLock::new(|| table(include_str!("schema.yaml")));

/// The weight of a scorer.
const WEIGHT: Legal = Legal::Number(0.0, 9e15);

/// The parameters of plugins of type `kind`, if it is in the table.
pub(super) fn parameters(kind: &str) -> Option<Legal> {
    // The scorer of older releases has its producer inside.
    let kind = if kind == "precise-prefix-cache-scorer" { PRECISE } else { kind };
    Some(Legal::Map(SCHEMA.plugins.get(kind)?.parameters.clone()))
}

/// What llm-d would not read in `text`; empty if it reads all of it.
pub fn problems(text: &str) -> Vec<String> {
    let tree = match yaml::read_text("export", text) {
        Ok(tree) => tree,
        Err(problem) => return vec![problem.to_string()],
    };
    let mut found = SCHEMA.document.problems("", &tree);
    for name in ["apiVersion", "kind"] {
        if tree.field(name).is_none() {
            found.push(format!("{name}: it is not there"));
        }
    }
    let declared = declared(&tree, &mut found);
    references(&tree, &declared, &mut found);
    profiles(&tree, &declared, &mut found);
    found
}

/// The plugins by name, with their roles.
fn declared<'a>(tree: &'a Node, found: &mut Vec<String>) -> BTreeMap<&'a str, Role> {
    let mut all = BTreeMap::new();
    for (index, plugin) in items(tree.field("plugins")).iter().enumerate() {
        let path = format!("plugins[{index}]");
        let kind = text(plugin, "type").unwrap_or_default();
        let Some(known) = SCHEMA.plugins.get(kind) else {
            found.push(format!("{path}.type: unknown plugin `{kind}`"));
            continue;
        };
        if let (Some(given), Some(legal)) = (plugin.field("parameters"), parameters(kind)) {
            found.extend(legal.problems(&format!("{path} ({kind}) parameters"), given));
        }
        let name = text(plugin, "name").unwrap_or(kind);
        if all.insert(name, known.role).is_some() {
            found.push(format!("{path}: it is declared twice"));
        }
    }
    all
}

/// Sources and the saturation detector lead to plugins that are declared.
fn references(tree: &Node, all: &BTreeMap<&str, Role>, found: &mut Vec<String>) {
    let mut refer = |path: &str, node: Option<&Node>| {
        let name = node.and_then(|node| text(node, "pluginRef"));
        if name.is_none_or(|name| !all.contains_key(name)) {
            found.push(format!("{path}: no such plugin is declared"));
        }
    };
    if let Some(flow) = tree.field("flowControl") {
        refer("flowControl", flow.field("saturationDetector"));
    }
    for source in items(tree.field("dataLayer").and_then(|layer| layer.field("sources"))) {
        refer("dataLayer.sources", Some(source));
        for extractor in items(source.field("extractors")) {
            refer("dataLayer.sources.extractors", Some(extractor));
        }
    }
}

/// Profiles hold plugins that can be there, with weights where they score, and one picker.
fn profiles(tree: &Node, all: &BTreeMap<&str, Role>, found: &mut Vec<String>) {
    let profiles = items(tree.field("schedulingProfiles"));
    if profiles.is_empty() {
        found.push("schedulingProfiles: there is none".to_owned());
    }
    for profile in profiles {
        let mut pickers = 0;
        for plugin in items(profile.field("plugins")) {
            let name = text(plugin, "pluginRef").unwrap_or_default();
            let weight = plugin.field("weight");
            match all.get(name) {
                None => found.push(format!("schedulingProfiles: `{name}` is not declared")),
                Some(Role::Declared) => found.push(format!("`{name}` has no place in a profile")),
                Some(Role::Scorer) => match weight {
                    Some(weight) => found.extend(WEIGHT.problems(name, weight)),
                    None => found.push(format!("`{name}`: a scorer has a weight")),
                },
                Some(role) => {
                    pickers += usize::from(*role == Role::Picker);
                    if weight.is_some() {
                        found.push(format!("`{name}` has no weight"));
                    }
                }
            }
        }
        if pickers != 1 {
            found.push(format!("a profile has one picker, not {pickers}"));
        }
    }
}
