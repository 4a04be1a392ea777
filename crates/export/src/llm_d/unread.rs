//! What `blis import llm-d` does not read of a configuration: fields without a counterpart get a
//! line, and values of the wrong kind are refused at their place.

use super::super::legal::{Legal, seconds};
use super::flow::number;
use super::import::{items, text};
use super::schema::parameters;
use blis_scenario::problems::{Findings, Problems};
use blis_scenario::yaml::{Kind, Node};

/// What the value of a field is.
enum Is {
    /// A list of these.
    List(&'static Is),
    /// Fields; others get a line.
    Fields(&'static [(&'static str, Is)]),
    /// A text for which this holds, and what is legal in words.
    Text(fn(&str) -> bool, &'static str),
    Any,
}

const NAME: Is = Is::Text(|text| !text.is_empty(), "a name");
const TIME: Is = Is::Text(|text| seconds(text).is_some(), "a time such as `30s`");
const COUNT: Is = Is::Text(|text| number(text).is_some_and(|it| it >= 0.0), "a number from 0");
const NUMBER: Is = Is::Text(|text| number(text).is_some(), "a number");
const DETECTOR: Is = Is::Fields(&[("pluginRef", NAME)]);

const BAND: Is = Is::Fields(&[
    ("priority", NUMBER),
    ("maxRequests", COUNT),
    ("fairnessPolicyRef", NAME),
    ("orderingPolicyRef", NAME),
    ("defaultRequestTTL", TIME),
]);

const CONFIGURATION: Is = Is::Fields(&[
    ("apiVersion", NAME),
    ("kind", NAME),
    ("metadata", Is::Any),
    ("dataLayer", Is::Any),
    ("featureGates", Is::List(&NAME)),
    ("plugins", Is::List(&Is::Fields(&[("name", NAME), ("type", NAME), ("parameters", Is::Any)]))),
    (
        "schedulingProfiles",
        Is::List(&Is::Fields(&[
            ("name", NAME),
            ("plugins", Is::List(&Is::Fields(&[("pluginRef", NAME), ("weight", COUNT)]))),
        ])),
    ),
    ("saturationDetector", DETECTOR),
    (
        "flowControl",
        Is::Fields(&[
            ("defaultRequestTTL", TIME),
            ("maxRequests", COUNT),
            ("saturationDetector", DETECTOR),
            ("priorityBands", Is::List(&BAND)),
        ]),
    ),
]);

/// The versions whose fields these are.
const VERSIONS: [&str; 3] =
    ["inference.networking.x-k8s.io/v1alpha1", "llm-d.ai/v1alpha1", "llm-d.ai/v1"];

/// A line for each part of `tree` that has no counterpart.
///
/// # Errors
/// If a value is not what its field takes.
pub(super) fn lines(tree: &Node) -> Result<Vec<String>, Problems> {
    let mut walk = Walk { tree, lines: Vec::new(), found: Findings::default() };
    walk.node(tree, "", &CONFIGURATION);
    walk.plugins();
    let Walk { mut lines, found, .. } = walk;
    let version = text(tree, "apiVersion").unwrap_or_default();
    if !VERSIONS.contains(&version) {
        lines.push(format!("`apiVersion: {version}`: read as if it were `{}`", VERSIONS[2]));
    }
    let gates = items(tree.field("featureGates")).iter();
    let gates = gates.map(|gate| gate.text().unwrap_or_default());
    let others = gates.filter(|gate| gate.split('=').next() != Some("flowControl"));
    lines.extend(others.map(|gate| format!("feature gate `{gate}`: no counterpart")));
    found.done(lines)
}

struct Walk<'a> {
    tree: &'a Node,
    lines: Vec<String>,
    found: Findings,
}

impl Walk<'_> {
    fn node(&mut self, node: &Node, path: &str, is: &Is) {
        let legal = match (is, &node.kind) {
            (Is::Any, _) | (_, Kind::Null) => return,
            (Is::List(item), Kind::List(items)) => {
                for (index, node) in items.iter().enumerate() {
                    self.node(node, &format!("{path}[{index}]"), item);
                }
                return;
            }
            (Is::Fields(known), Kind::Map(fields)) => {
                for (name, _, value) in fields {
                    let dot = if path.is_empty() { "" } else { "." };
                    let path = format!("{path}{dot}{name}");
                    match known.iter().find(|(known, _)| known == name) {
                        Some((_, is)) => self.node(value, &path, is),
                        None => self.lines.push(format!("`{path}`: no counterpart")),
                    }
                }
                return;
            }
            (Is::Text(holds, _), Kind::Scalar { text, .. }) if holds(text) => return,
            (Is::List(_), _) => "a list",
            (Is::Fields(_), _) => "fields",
            (Is::Text(_, legal), _) => legal,
        };
        self.refuse(node, path, legal);
    }

    /// The parameters of plugins, as far as the table has them; others get a line elsewhere.
    fn plugins(&mut self) {
        for (index, plugin) in items(self.tree.field("plugins")).iter().enumerate() {
            let legal = text(plugin, "type").and_then(parameters);
            if let (Some(given), Some(legal)) = (plugin.field("parameters"), legal) {
                self.parameter(given, &format!("plugins[{index}].parameters"), &legal);
            }
        }
    }

    fn parameter(&mut self, node: &Node, path: &str, legal: &Legal) {
        // llm-d takes numbers that are too small for its least.
        let legal = &match legal {
            Legal::Number(_, most) => Legal::Number(0.0, *most),
            Legal::Whole(_, most) => Legal::Whole(0.0, *most),
            other => other.clone(),
        };
        match (legal, &node.kind) {
            (_, Kind::Null) => {}
            (Legal::Map(known), Kind::Map(fields)) => {
                for (name, _, value) in fields {
                    if let Some(legal) = known.get(name) {
                        self.parameter(value, &format!("{path}.{name}"), legal);
                    }
                }
            }
            (Legal::List(legal), Kind::List(items)) => {
                for (index, item) in items.iter().enumerate() {
                    self.parameter(item, &format!("{path}[{index}]"), legal);
                }
            }
            (_, Kind::Scalar { text, .. }) if legal.allows(text) => {}
            // The table may not have all words.
            (Legal::Word(_), Kind::Scalar { text, .. }) => {
                self.lines.push(format!("`{path}: {text}`: no counterpart"));
            }
            _ => self.refuse(node, path, &legal.told()),
        }
    }

    fn refuse(&mut self, node: &Node, path: &str, legal: &str) {
        let message = format!("found `{}`; legal: {legal}", node.to_json().trim_matches('"'));
        self.found.keep::<()>(Err(self.tree.problem(path, message)));
    }
}
