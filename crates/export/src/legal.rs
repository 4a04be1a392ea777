//! What values of configuration may be: the tables of both systems are made of these.

use blis_scenario::yaml::{Kind, Node};

/// What a value may be.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Legal {
    /// `true` or `false`.
    Flag,
    /// Any text.
    Text,
    /// One of these.
    Word(&'static [&'static str]),
    /// A number from the first to the second, both included.
    Number(f64, f64),
    /// A whole number, likewise.
    Whole(f64, f64),
    /// A time with its unit, e.g. `200ms`.
    Duration,
    /// A list of maps with these fields.
    List(&'static [Field]),
}

/// A field by its path, e.g. `a.b`, and what it may be.
pub(super) type Field = (&'static str, Legal);

/// The largest number that is an exact whole one.
pub(super) const LARGEST: f64 = 9_007_199_254_740_992.0;

impl Legal {
    /// Whether `node` is one.
    pub(super) fn allows(self, node: &Node) -> bool {
        let text = match &node.kind {
            Kind::Scalar { text, .. } => Some(text.as_str()),
            _ => None,
        };
        let number = || text.and_then(|text| text.parse::<f64>().ok());
        match self {
            Legal::Flag => matches!(text, Some("true" | "false")),
            Legal::Text => text.is_some_and(|text| !text.is_empty()),
            Legal::Word(words) => text.is_some_and(|text| words.contains(&text)),
            Legal::Number(least, most) => number().is_some_and(|n| (least..=most).contains(&n)),
            Legal::Whole(least, most) => {
                number().is_some_and(|n| (least..=most).contains(&n) && n.fract().abs() < 1e-12)
            }
            Legal::Duration => text.is_some_and(is_duration),
            Legal::List(fields) => match &node.kind {
                Kind::List(items) => items.iter().all(|item| problems("", item, fields).is_empty()),
                _ => false,
            },
        }
    }
}

fn is_duration(text: &str) -> bool {
    let units = ["ms", "us", "ns", "s", "m", "h"];
    let number = units.iter().find_map(|unit| text.strip_suffix(unit));
    number.and_then(|number| number.parse::<f64>().ok()).is_some_and(|number| number >= 0.0)
}

/// What is wrong with the fields of `node`, which stands at `path`: those that are not in `fields`,
/// or not legal.
pub(super) fn problems(path: &str, node: &Node, fields: &[Field]) -> Vec<String> {
    let mut found = Vec::new();
    collect(path, "", node, fields, &mut found);
    found
}

fn collect(base: &str, path: &str, node: &Node, fields: &[Field], found: &mut Vec<String>) {
    if let Some((_, legal)) = fields.iter().find(|(known, _)| *known == path) {
        if !legal.allows(node) {
            found.push(format!("{base}{path}: found `{}`; legal: {legal:?}", node.to_json()));
        }
        return;
    }
    match &node.kind {
        Kind::Map(all)
            if path.is_empty() || fields.iter().any(|(known, _)| is_below(known, path)) =>
        {
            for (name, _, value) in all {
                let path = if path.is_empty() { name.clone() } else { format!("{path}.{name}") };
                collect(base, &path, value, fields, found);
            }
        }
        _ => found.push(format!("{base}{path}: unknown")),
    }
}

fn is_below(known: &str, path: &str) -> bool {
    known.strip_prefix(path).is_some_and(|rest| rest.starts_with('.'))
}

#[cfg(test)]
mod tests {
    use super::*;
    use blis_scenario::yaml;

    const FIELDS: &[Field] = &[
        ("size", Legal::Whole(1.0, 10.0)),
        ("deep.share", Legal::Number(0.0, 1.0)),
        ("ttl", Legal::Duration),
        ("tiers", Legal::List(&[("name", Legal::Word(&["gpu", "cpu"]))])),
    ];

    #[test]
    fn what_is_not_in_the_table_or_out_of_range_is_a_problem() {
        let found = |text: &str| problems("p.", &yaml::read_text("x", text).expect("YAML"), FIELDS);
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
