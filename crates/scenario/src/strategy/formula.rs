//! The short spelling of formulas: `routing: {formula: ...}`, `admission: {admit_when: ...}`.
//!
//! It becomes the policy `formula` with its parameter before anything else is read, so that nobody
//! else knows of it.

use crate::yaml::{Kind, Node};

/// The fields that hold a formula, and the parameter that each part has for it.
const FIELDS: [&str; 2] = ["formula", "admit_when"];
const PARTS: [(&str, &str); 4] = [
    ("admission", "admit-when"),
    ("routing", "formula"),
    ("scheduler", "formula"),
    ("priority", "formula"),
];

/// Spells out the formulas of `tree`. One that stands beside a policy is left for decoding to
/// refuse.
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
            let scorers = scorer(&text, node.field("params"));
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

/// The list of one scorer with that formula and `params`.
fn scorer(formula: &Node, params: Option<&Node>) -> Node {
    let text = |node: &Node| match &node.kind {
        Kind::Scalar { text, .. } => text.trim().to_owned(),
        _ => String::new(),
    };
    let mut given = vec![format!("formula={}", text(formula))];
    if let Some(Kind::Map(fields)) = params.map(|params| &params.kind) {
        given.extend(fields.iter().map(|(name, _, value)| format!("{name}={}", text(value))));
    }
    scalar(formula, &format!("formula[{}]:1", given.join(",")))
}
