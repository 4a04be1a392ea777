//! The tree of located nodes that a YAML file, or a set of flags, becomes.

use super::number::float;
use crate::problem::{Place, Problem, is_hidden};
use crate::problems::Problems;
use serde::Deserialize;
use serde::de::{Deserializer, Error, MapAccess, SeqAccess, Visitor};
use serde_saphyr::{Location, Spanned, Tagged};
use std::cell::Cell;
use std::fmt;
use std::sync::Arc;

/// A value and where it was written. As a field of a type that is decoded, it is that part of the
/// tree as it stands.
#[derive(Clone, Debug, PartialEq)]
pub struct Node {
    /// Where.
    pub place: Place,
    /// What.
    pub kind: Kind,
}

/// What a node is. Scalars keep their text; what it means is for the field to say.
#[derive(Clone, Debug, PartialEq)]
pub enum Kind {
    /// Nothing: `key:` without a value, `~`, `null`.
    Null,
    /// Text, a number or a truth value.
    Scalar {
        /// As written, without quotes.
        text: String,
        /// Whether it can only be text, e.g. because it was quoted.
        quoted: bool,
    },
    /// A list.
    List(Vec<Node>),
    /// Fields in the order of the file: name, where the name stands, value.
    Map(Vec<(String, Place, Node)>),
    /// Something illegal that was told already. It is there, and nobody knows what it means.
    Broken,
}

impl Node {
    /// A scalar that stands on the command line as the value of `flag`.
    pub fn from_flag(flag: &str, text: &str) -> Node {
        Node {
            place: Place::Flag(flag.into()),
            kind: Kind::Scalar { text: text.to_owned(), quoted: false },
        }
    }

    /// A list that stands on the command line as the value of `flag`.
    pub fn list_from_flag(flag: &str, items: &[&str]) -> Node {
        let items = items.iter().map(|item| Node::from_flag(flag, item.trim())).collect();
        Node { place: Place::Flag(flag.into()), kind: Kind::List(items) }
    }

    /// An empty map that stands nowhere.
    pub fn empty() -> Node {
        Node { place: Place::Unknown, kind: Kind::Map(Vec::new()) }
    }

    /// The value of field `name`, if this is a map that has it.
    pub fn field(&self, name: &str) -> Option<&Node> {
        match &self.kind {
            Kind::Map(fields) => fields.iter().find(|(key, ..)| key == name).map(|(.., node)| node),
            _ => None,
        }
    }

    /// The text, if this is a scalar.
    pub fn text(&self) -> Option<&str> {
        match &self.kind {
            Kind::Scalar { text, .. } => Some(text),
            _ => None,
        }
    }

    /// The items of a list; nothing else has any.
    pub fn items(&self) -> &[Node] {
        match &self.kind {
            Kind::List(items) => items,
            _ => &[],
        }
    }

    /// Whether there is a field at `path` (`a.b.c`).
    pub fn has(&self, path: &str) -> bool {
        path.split('.').try_fold(self, |node, step| node.field(step)).is_some()
    }

    /// Sets the field at `path`, making maps on the way. A policy's short form (`routing:
    /// weighted`) becomes the long one (`routing: {policy: weighted}`). A list on the way is left
    /// as it is: decoding refuses it.
    pub fn set(&mut self, path: &[&str], value: Node) {
        let Some((first, rest)) = path.split_first() else {
            *self = value;
            return;
        };
        match &mut self.kind {
            Kind::Null => self.kind = Kind::Map(Vec::new()),
            Kind::Scalar { .. } => {
                let short = self.clone();
                self.kind = Kind::Map(vec![("policy".to_owned(), short.place.clone(), short)]);
            }
            Kind::List(_) | Kind::Map(_) | Kind::Broken => {}
        }
        let Kind::Map(fields) = &mut self.kind else { return };
        if let Some((_, place, node)) = fields.iter_mut().find(|(key, ..)| key == first) {
            if rest.is_empty() {
                *place = value.place.clone();
            }
            node.set(rest, value);
        } else {
            let mut node = Node { place: value.place.clone(), kind: Kind::Null };
            let place = value.place.clone();
            node.set(rest, value);
            fields.push(((*first).to_owned(), place, node));
        }
    }

    /// Removes the field `name`, if this is a map that has it.
    pub fn remove(&mut self, name: &str) {
        if let Kind::Map(fields) = &mut self.kind {
            fields.retain(|(key, ..)| key != name);
        }
    }

    /// The place of the field at `path` (`a.b[3].c`), or of the nearest thing around it.
    pub fn place_of(&self, path: &str) -> Place {
        self.nearest(path).0.place.clone()
    }

    /// The field at `path`, or the nearest thing around it; and whether it is the field.
    fn nearest(&self, path: &str) -> (&Node, bool) {
        let mut node = self;
        for step in path.split(['.', '[']).filter(|step| !step.is_empty()) {
            let next = match (&node.kind, step.strip_suffix(']')) {
                (Kind::List(items), Some(index)) => {
                    index.parse::<usize>().ok().and_then(|index| items.get(index))
                }
                (Kind::Map(_), None) => node.field(step),
                _ => None,
            };
            let Some(next) = next else { return (node, false) };
            node = next;
        }
        (node, true)
    }

    /// What is wrong with the field at `path`; nothing to add if it is broken already.
    pub fn problem(&self, path: impl Into<String>, message: impl Into<String>) -> Problems {
        let path = path.into();
        match self.whole(&[&path]) {
            Ok(()) => Problem::new(self.place_of(&path), path, message).into(),
            Err(known) => known,
        }
    }

    /// The value of the field `name`, which the group at `path` cannot do without.
    ///
    /// # Errors
    /// If it is not there.
    pub fn required<T>(&self, path: &str, name: &str, value: Option<T>) -> Result<T, Problems> {
        value.ok_or_else(|| match self.whole(&[&format!("{path}.{name}")]) {
            Ok(()) => {
                let message = format!("field `{name}` is missing; add it");
                Problem::new(self.place_of(path), path, message).into()
            }
            Err(known) => known,
        })
    }

    /// Refuses a name, which stands at `path`, in which there is nothing to read.
    ///
    /// # Errors
    /// If it is blank.
    pub fn check_name(&self, path: impl Into<String>, name: &str) -> Result<(), Problems> {
        if name.chars().any(|c| !c.is_whitespace() && !is_hidden(c)) {
            return Ok(());
        }
        Err(self.problem(path, "found a blank name; give one that can be read"))
    }

    /// Checks that nothing in the fields at `paths` is broken, so that what is found to be wrong
    /// with them does not follow from that.
    ///
    /// # Errors
    /// If something is; what, was told before.
    pub fn whole(&self, paths: &[&str]) -> Result<(), Problems> {
        let broken = |path: &&str| match self.nearest(path) {
            (node, true) => node.is_broken(),
            (around, false) => around.kind == Kind::Broken,
        };
        if paths.iter().any(broken) { Err(Problems::KNOWN) } else { Ok(()) }
    }

    /// Whether it is broken, or something in it.
    pub(super) fn is_broken(&self) -> bool {
        match &self.kind {
            Kind::Broken => true,
            Kind::Null | Kind::Scalar { .. } => false,
            Kind::List(items) => items.iter().any(Node::is_broken),
            Kind::Map(fields) => fields.iter().any(|(.., node)| node.is_broken()),
        }
    }

    /// The node that `trail` leads to: which child of which child, the last first.
    pub(super) fn at(&mut self, trail: &[usize]) -> &mut Node {
        let Some((&index, rest)) = trail.split_last() else { return self };
        match &mut self.kind {
            Kind::List(items) => items[index].at(rest),
            Kind::Map(fields) => fields[index].2.at(rest),
            Kind::Null | Kind::Scalar { .. } | Kind::Broken => unreachable!("it has no children"),
        }
    }
}

impl Node {
    /// The tree as JSON on one line, which is read back as the same tree but for its places.
    pub fn to_json(&self) -> String {
        let mut out = String::new();
        self.write_json(&mut out);
        out
    }

    fn write_json(&self, out: &mut String) {
        match &self.kind {
            Kind::Null | Kind::Broken => out.push_str("null"),
            Kind::Scalar { text, quoted } => match plain_json(text).filter(|_| !quoted) {
                Some(plain) => out.push_str(&plain),
                None => write_text(text, out),
            },
            Kind::List(items) => {
                out.push('[');
                for (index, item) in items.iter().enumerate() {
                    out.push_str(if index > 0 { "," } else { "" });
                    item.write_json(out);
                }
                out.push(']');
            }
            Kind::Map(fields) => {
                out.push('{');
                for (index, (name, _, value)) in fields.iter().enumerate() {
                    out.push_str(if index > 0 { "," } else { "" });
                    write_text(name, out);
                    out.push(':');
                    value.write_json(out);
                }
                out.push('}');
            }
        }
    }
}

/// What JSON can say without quotes: truth values, and numbers as they were written if it can.
fn plain_json(text: &str) -> Option<String> {
    let legal = serde_json::from_str::<serde_json::Number>(text).is_ok();
    match (text, float(text)) {
        ("true" | "false", _) => Some(text.to_owned()),
        (_, Some(_)) if legal => Some(text.to_owned()),
        (_, Some(number)) => Some(number.to_string()),
        _ => None,
    }
}

fn write_text(text: &str, out: &mut String) {
    for c in serde_json::Value::from(text).to_string().chars() {
        // JSON leaves these as they are; the reader wants to see none.
        if c.is_control() {
            out.extend(format!("\\u{:04x}", u32::from(c)).chars());
        } else {
            out.push(c);
        }
    }
}

thread_local! {
    /// A node on its way from the decoder to the field that asked for it. Handed over as values of
    /// serde's data model, it would be compiled once for every type that is ever decoded.
    static HANDED: Cell<Option<Node>> = const { Cell::new(None) };
}

impl Node {
    /// What a node calls itself when it asks a decoder for one.
    pub(super) const NAME: &str = "Node";

    /// Leaves a copy for the node that asks next, which is told so by `visit_unit`.
    pub(super) fn hand_over(&self) {
        HANDED.set(Some(self.clone()));
    }
}

impl<'de> Deserialize<'de> for Node {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Node, D::Error> {
        deserializer.deserialize_unit_struct(Node::NAME, NodeVisitor)
    }
}

struct NodeVisitor;

impl Visitor<'_> for NodeVisitor {
    type Value = Node;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a part of a file")
    }

    fn visit_unit<E: Error>(self) -> Result<Node, E> {
        HANDED.take().ok_or_else(|| E::custom("no node was handed over"))
    }
}

/// What the YAML library hands over.
pub(super) struct Raw(Spanned<Tagged<RawKind>>);

/// Tags that say what a value looks like anyway. Any other would change its meaning.
const HARMLESS_TAGS: [&str; 7] = ["str", "int", "float", "bool", "null", "seq", "map"];

enum RawKind {
    Null,
    /// A number or truth value, formatted; the source text is preferred.
    Typed(String),
    Text(String),
    List(Vec<Raw>),
    Map(Vec<(Spanned<String>, Raw)>),
}

impl Raw {
    /// The tree, with the source text of numbers.
    pub(super) fn into_node(self, file: &Arc<str>, text: &str) -> Result<Node, Problem> {
        let Spanned { value: Tagged(value, tag), referenced, defined } = self.0;
        let place =
            |at: Location| Place::File { file: file.clone(), line: at.line(), column: at.column() };
        if let Some(tag) = tag {
            let name = tag.strip_prefix("tag:yaml.org,2002:");
            if name.is_none_or(|name| !HARMLESS_TAGS.contains(&name)) {
                return Err(Problem::new(place(referenced), "", unknown_tag(&tag)));
            }
        }
        let kind = match value {
            RawKind::Null => Kind::Null,
            RawKind::Text(text) => Kind::Scalar { text, quoted: true },
            RawKind::Typed(formatted) => {
                Kind::Scalar { text: as_written(text, defined).unwrap_or(formatted), quoted: false }
            }
            RawKind::List(items) => {
                let nodes = items.into_iter().map(|item| item.into_node(file, text));
                Kind::List(nodes.collect::<Result<_, _>>()?)
            }
            RawKind::Map(fields) => {
                let entries = fields.into_iter().map(|(key, node)| {
                    Ok((key.value, place(key.referenced), node.into_node(file, text)?))
                });
                Kind::Map(entries.collect::<Result<_, _>>()?)
            }
        };
        Ok(Node { place: place(referenced), kind })
    }
}

/// What is wrong with a tag.
pub(super) fn unknown_tag(tag: &str) -> String {
    let tag = tag.replace("tag:yaml.org,2002:", "!!");
    format!("tag `{tag}` is not read; remove it")
}

/// The source text of a number, however the YAML library understands it: `0x10` stays what it is.
fn as_written(text: &str, at: Location) -> Option<String> {
    let start = usize::try_from(at.span().byte_offset()?).ok()?;
    let length = usize::try_from(at.span().byte_len()?).ok()?;
    let written = text.get(start..start.checked_add(length)?)?.trim();
    let plain = written.starts_with(|c: char| c.is_ascii_alphanumeric() || "+-.".contains(c));
    plain.then(|| written.to_owned())
}

impl<'de> Deserialize<'de> for Raw {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Raw, D::Error> {
        Spanned::deserialize(deserializer).map(Raw)
    }
}

impl<'de> Deserialize<'de> for RawKind {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<RawKind, D::Error> {
        deserializer.deserialize_any(RawVisitor)
    }
}

struct RawVisitor;

impl<'de> Visitor<'de> for RawVisitor {
    type Value = RawKind;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a value")
    }

    fn visit_unit<E>(self) -> Result<RawKind, E> {
        Ok(RawKind::Null)
    }

    fn visit_none<E>(self) -> Result<RawKind, E> {
        Ok(RawKind::Null)
    }

    fn visit_bool<E>(self, value: bool) -> Result<RawKind, E> {
        Ok(RawKind::Typed(value.to_string()))
    }

    fn visit_u64<E>(self, value: u64) -> Result<RawKind, E> {
        Ok(RawKind::Typed(value.to_string()))
    }

    fn visit_i64<E>(self, value: i64) -> Result<RawKind, E> {
        Ok(RawKind::Typed(value.to_string()))
    }

    fn visit_f64<E>(self, value: f64) -> Result<RawKind, E> {
        Ok(RawKind::Typed(value.to_string()))
    }

    fn visit_str<E>(self, value: &str) -> Result<RawKind, E> {
        Ok(RawKind::Text(value.to_owned()))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<RawKind, A::Error> {
        let mut list = Vec::new();
        while let Some(item) = items.next_element()? {
            list.push(item);
        }
        Ok(RawKind::List(list))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut fields: A) -> Result<RawKind, A::Error> {
        let mut map = Vec::new();
        while let Some(entry) = fields.next_entry()? {
            map.push(entry);
        }
        Ok(RawKind::Map(map))
    }
}
