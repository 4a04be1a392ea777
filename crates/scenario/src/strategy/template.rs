//! Templates: a tree of scenario fields with `{parameter}` where a value goes.

use crate::problem::Place;
use crate::yaml::{Kind, Node};

/// The names between braces, and where they stand.
pub(super) fn placeholders(node: &Node) -> Vec<(String, Place)> {
    match &node.kind {
        Kind::Null | Kind::Broken => Vec::new(),
        Kind::Scalar { text, .. } => parts(text)
            .filter_map(|part| match part {
                Part::Placeholder(name) => Some((name.to_owned(), node.place.clone())),
                Part::Text(_) => None,
            })
            .collect(),
        Kind::List(items) => items.iter().flat_map(placeholders).collect(),
        Kind::Map(fields) => fields.iter().flat_map(|(.., value)| placeholders(value)).collect(),
    }
}

/// The tree with every placeholder replaced by its value.
pub(super) fn fill<'a>(node: &Node, value: &dyn Fn(&str) -> &'a str) -> Node {
    let kind = match &node.kind {
        Kind::Null | Kind::Broken => node.kind.clone(),
        Kind::Scalar { text, quoted } => {
            let mut filled = String::new();
            let mut alone = false;
            for part in parts(text) {
                match part {
                    Part::Text(text) => filled.push_str(text),
                    Part::Placeholder(name) => {
                        filled.push_str(value(name));
                        alone = text.len() == name.len() + 2;
                    }
                }
            }
            // Braces must be quoted in YAML; what is nothing but a placeholder is its value.
            Kind::Scalar { text: filled, quoted: *quoted && !alone }
        }
        Kind::List(items) => Kind::List(items.iter().map(|item| fill(item, value)).collect()),
        Kind::Map(fields) => {
            let fill = |(name, place, node): &(String, Place, Node)| {
                (name.clone(), place.clone(), fill(node, value))
            };
            Kind::Map(fields.iter().map(fill).collect())
        }
    };
    Node { place: node.place.clone(), kind }
}

enum Part<'a> {
    Text(&'a str),
    Placeholder(&'a str),
}

/// Text and placeholders of `text`, in order.
fn parts(text: &str) -> impl Iterator<Item = Part<'_>> {
    let mut rest = text;
    std::iter::from_fn(move || {
        if rest.is_empty() {
            return None;
        }
        if let Some(open) = rest.strip_prefix('{')
            && let Some((name, behind)) = open.split_once('}')
        {
            rest = behind;
            return Some(Part::Placeholder(name));
        }
        let next = rest.char_indices().skip(1).find(|(_, c)| *c == '{');
        let end = next.map_or(rest.len(), |(at, _)| at);
        let (before, behind) = rest.split_at(end);
        rest = behind;
        Some(Part::Text(before))
    })
}
