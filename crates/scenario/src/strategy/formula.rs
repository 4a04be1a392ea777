//! The short spelling of formulas: `routing: {formula: ...}`, `admission: {admit_when: ...}`.
//!
//! It becomes the policy `formula` with its parameter before anything else is read, so that nobody
//! else knows of it.

use crate::yaml::{Kind, Node};
use blis_policy::formula::Formula;
use blis_policy::formula::signals::Role;
use serde::Deserialize;
use serde::de::{Deserializer, Error};

/// The fields that hold a formula, and the parameter that each part has for it.
const FIELDS: [&str; 2] = ["formula", "admit_when"];
const PARTS: [(&str, &str); 4] = [
    ("admission", "admit-when"),
    ("routing", "formula"),
    ("scheduler", "formula"),
    ("priority", "formula"),
];

/// Spells out the formulas of `tree`. One that stands beside a policy, and one for routing that is
/// not legal by itself, is left for decoding to refuse.
pub(crate) fn spell_out(tree: &mut Node) {
    for (part, parameter) in PARTS {
        let Some(node) = tree.field(part) else { continue };
        let Some((field, text)) = FIELDS.iter().find_map(|f| Some((*f, node.field(f)?))) else {
            continue;
        };
        if node.has("policy") || node.has("scorers") {
            continue;
        }
        let (text, mut node) = (text.clone(), node.clone());
        node.remove(field);
        if part == "routing" {
            let Some(scorers) = scorer(&text, node.field("params")) else { continue };
            node.remove("params");
            node.set(&["policy"], scalar(&text, "weighted"));
            node.set(&["scorers"], scorers);
        } else {
            node.set(&["policy"], scalar(&text, "formula"));
            node.set(&["params", parameter], text);
        }
        tree.set(&[part], node);
    }
}

/// A scalar that stands where `node` does.
fn scalar(node: &Node, text: &str) -> Node {
    let kind = Kind::Scalar { text: text.to_owned(), quoted: true };
    Node { place: node.place.clone(), kind }
}

/// The list of one scorer with that formula and `params`, if none of them would be read as more
/// than one value there.
fn scorer(formula: &Node, params: Option<&Node>) -> Option<Node> {
    let text = |node: &Node| match &node.kind {
        Kind::Scalar { text, .. } => text.trim().to_owned(),
        _ => String::new(),
    };
    Formula::read(Role::Scorer, &text(formula)).ok()?;
    let mut given = vec![format!("formula={}", text(formula))];
    if let Some(Kind::Map(fields)) = params.map(|params| &params.kind) {
        for (name, _, value) in fields {
            let value = text(value);
            is_one_parameter(name, &value).then(|| given.push(format!("{name}={value}")))?;
        }
    }
    Some(scalar(formula, &format!("formula[{}]:1", given.join(","))))
}

/// A legal formula of a scorer.
pub(crate) struct Score;

impl<'de> Deserialize<'de> for Score {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Score, D::Error> {
        let text = String::deserialize(deserializer)?;
        Formula::read(Role::Scorer, &text).map(|_| Score).map_err(D::Error::custom)
    }
}

/// Whether a parameter is one, however it is written between those of a policy.
pub(crate) fn is_one_parameter(name: &str, value: &str) -> bool {
    // Commas inside parentheses are those of a formula.
    let joined = value.contains(['[', ']']) || value.contains(',') && !value.contains('(');
    !name.contains([',', '=', '[', ']']) && !joined
}
