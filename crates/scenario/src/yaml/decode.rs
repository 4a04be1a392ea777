//! From a tree of located nodes into a serde type, with complaints that name place, path, value and
//! what is legal.

use super::node::{Kind, Node};
use super::number::{float, whole};
use crate::problem::{Place, Problem, nearest, none_of, quoted, shown, unknown};
use crate::problems::{Findings, Problems};
use serde::de::{
    DeserializeOwned, DeserializeSeed, Deserializer, Error, Expected, IntoDeserializer, MapAccess,
    SeqAccess, Unexpected, Visitor,
};
use serde::forward_to_deserialize_any;
use std::fmt;

/// Fills a `T` from `tree`.
///
/// # Errors
/// All fields that are unknown, missing, or whose values are not legal.
pub fn decode<T: DeserializeOwned>(tree: &Node) -> Result<T, Problems> {
    decode_and(tree, |value, _| Ok(value))
}

/// Fills a `T` from what is legal in `tree`, and checks that. The tree that `check` sees is marked
/// where it is broken, so that nothing there is taken for left out.
///
/// # Errors
/// All that is illegal, and what `check` finds besides.
pub fn decode_and<T: DeserializeOwned, R>(
    tree: &Node,
    check: impl FnOnce(T, &Node) -> Result<R, Problems>,
) -> Result<R, Problems> {
    let (mut tree, mut found) = (tree.clone(), Findings::default());
    let value = decode_rest(&mut tree, &mut found);
    match value.and_then(|value| found.keep(check(value, &tree))) {
        Some(value) => found.done(value),
        None => Err(found.into()),
    }
}

/// Fills a `T` from what is legal in `tree`. The rest is told in `found` and marked as broken.
/// `None` if there is nothing to fill it from.
fn decode_rest<T: DeserializeOwned>(tree: &mut Node, found: &mut Findings) -> Option<T> {
    let mut strict = true;
    loop {
        let value = T::deserialize(Decoder { node: tree, strict });
        match value.map_err(|fault| fault.about(tree)) {
            Ok(value) if strict => return Some(value),
            // All that is wrong by itself is known; now what becomes of lists with broken items.
            Ok(_) => strict = true,
            Err(fault) => {
                strict = false;
                let whole = fault.trail.is_empty();
                fault.tell(tree, found);
                if whole || found.is_full() {
                    return None;
                }
            }
        }
    }
}

/// A complaint on its way up; the decoder adds the place and the path.
#[derive(Debug)]
struct Fault {
    wrong: Wrong,
    found: Option<String>,
    place: Option<Place>,
    path: String,
    /// Which child of which child it is about, the last first.
    trail: Vec<usize>,
    /// The field that an unknown one was probably meant to be.
    meant: Option<&'static str>,
}

#[derive(Debug)]
enum Wrong {
    Value {
        legal: String,
    },
    Field {
        name: String,
        known: &'static [&'static str],
    },
    Word {
        name: String,
        known: &'static [&'static str],
    },
    Missing {
        name: &'static str,
    },
    Other {
        message: String,
    },
    /// It follows from something that was told before.
    Known,
}

impl From<Wrong> for Fault {
    fn from(wrong: Wrong) -> Fault {
        let (path, trail) = (String::new(), Vec::new());
        Fault { wrong, found: None, place: None, path, trail, meant: None }
    }
}

impl Fault {
    /// The complaint, about `node` unless something within it is meant.
    fn about(mut self, node: &Node) -> Fault {
        if self.place.is_none() {
            self.place = Some(node.place.clone());
            self.found = Some(describe(node));
        }
        self
    }

    /// The complaint, higher in the tree: it is about child number `index`, called `step`.
    fn within(mut self, index: usize, step: &str) -> Fault {
        let dot = if self.path.is_empty() || self.path.starts_with('[') { "" } else { "." };
        self.path = format!("{}{dot}{}", shown(step), self.path);
        self.trail.push(index);
        self
    }

    /// Marks what it is about in `tree` as broken, and tells it in `found` unless it follows from
    /// what is broken already.
    fn tell(self, tree: &mut Node, found: &mut Findings) {
        let node = tree.at(&self.trail);
        let follows = match &self.wrong {
            Wrong::Known => true,
            Wrong::Field { .. } => false,
            Wrong::Missing { name } => node.field(name).is_some(),
            _ => node.is_broken(),
        };
        node.kind = Kind::Broken;
        if let (Some(name), [last, way @ ..]) = (self.meant, &self.trail[..])
            && let Kind::Map(fields) = &mut tree.at(way).kind
            && fields.iter().all(|(known, ..)| known != name)
        {
            name.clone_into(&mut fields[*last].0);
        }
        if !follows {
            found.keep::<()>(Err(self.into_problem()));
        }
    }

    fn into_problem(self) -> Problem {
        let found = self.found.unwrap_or_else(|| "no value".to_owned());
        let message = match self.wrong {
            Wrong::Value { legal } => format!("{found}; legal: {legal}"),
            Wrong::Field { name, known } => unknown("field", &name, known),
            Wrong::Word { name, known } => none_of(known, &name),
            Wrong::Missing { name } => format!("field `{name}` is missing; add it"),
            Wrong::Other { message } => message,
            Wrong::Known => String::new(),
        };
        Problem::new(self.place.unwrap_or_default(), self.path, message)
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}", self.wrong)
    }
}

impl std::error::Error for Fault {}

impl Error for Fault {
    fn custom<T: fmt::Display>(message: T) -> Fault {
        Wrong::Other { message: message.to_string() }.into()
    }

    fn invalid_type(_: Unexpected<'_>, expected: &dyn Expected) -> Fault {
        Wrong::Value { legal: expected.to_string() }.into()
    }

    fn invalid_value(_: Unexpected<'_>, expected: &dyn Expected) -> Fault {
        Wrong::Value { legal: expected.to_string() }.into()
    }

    fn invalid_length(_: usize, expected: &dyn Expected) -> Fault {
        Wrong::Value { legal: expected.to_string() }.into()
    }

    fn unknown_field(name: &str, known: &'static [&'static str]) -> Fault {
        Wrong::Field { name: name.to_owned(), known }.into()
    }

    fn unknown_variant(name: &str, known: &'static [&'static str]) -> Fault {
        Wrong::Word { name: name.to_owned(), known }.into()
    }

    fn missing_field(name: &'static str) -> Fault {
        Wrong::Missing { name }.into()
    }
}

/// A value in words.
fn describe(node: &Node) -> String {
    match &node.kind {
        Kind::Null | Kind::Broken => "no value".to_owned(),
        Kind::List(items) => format!("found a list of {}", items.len()),
        Kind::Map(_) => "found a group of fields".to_owned(),
        Kind::Scalar { text, .. } => format!("found `{text}`"),
    }
}

#[derive(Clone, Copy)]
struct Decoder<'de> {
    node: &'de Node,
    /// Whether a list must do without its broken items, rather than only skip them for now.
    strict: bool,
}

impl<'de> Decoder<'de> {
    fn items(self, nodes: &'de [Node]) -> Items<'de> {
        Items { nodes, next: 0, strict: self.strict }
    }

    fn fields(self, entries: &'de [(String, Place, Node)]) -> Fields<'de> {
        Fields { entries, next: 0, strict: self.strict }
    }

    fn text(self) -> Option<&'de str> {
        match &self.node.kind {
            Kind::Scalar { text, .. } => Some(text),
            _ => None,
        }
    }

    /// The text of a scalar that was not quoted.
    fn plain(self) -> Option<&'de str> {
        match &self.node.kind {
            Kind::Scalar { text, quoted: false } => Some(text),
            _ => None,
        }
    }
}

/// The value is not what `visitor` reads.
fn refuse<'de, V: Visitor<'de>>(visitor: &V) -> Fault {
    Fault::invalid_type(Unexpected::Other("another kind"), visitor as &dyn Expected)
}

impl<'de> Deserializer<'de> for Decoder<'de> {
    type Error = Fault;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Fault> {
        match &self.node.kind {
            Kind::Null => visitor.visit_unit(),
            Kind::Scalar { text, .. } => visitor.visit_borrowed_str(text),
            Kind::List(items) => visitor.visit_seq(self.items(items)),
            Kind::Map(fields) => visitor.visit_map(self.fields(fields)),
            Kind::Broken => Err(Wrong::Known.into()),
        }
    }

    fn deserialize_bool<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Fault> {
        match self.text() {
            Some("true" | "yes" | "on") => visitor.visit_bool(true),
            Some("false" | "no" | "off") => visitor.visit_bool(false),
            _ => Err(Wrong::Value { legal: "`true` or `false`".to_owned() }.into()),
        }
    }

    fn deserialize_u64<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Fault> {
        match self.plain().and_then(whole) {
            Some(value) => visitor.visit_u64(value),
            None => Err(refuse(&visitor)),
        }
    }

    fn deserialize_f64<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Fault> {
        match self.plain().and_then(float) {
            Some(value) => visitor.visit_f64(value),
            None => Err(refuse(&visitor)),
        }
    }

    fn deserialize_str<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Fault> {
        match self.text() {
            Some(text) => visitor.visit_borrowed_str(text),
            None => Err(Wrong::Value { legal: "text".to_owned() }.into()),
        }
    }

    fn deserialize_string<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Fault> {
        self.deserialize_str(visitor)
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Fault> {
        // A field that is written has a value: `seed:` alone is more likely a slip than a wish for
        // the default. Groups and lists may be empty, and say so themselves.
        match self.node.kind {
            Kind::Broken => visitor.visit_none(),
            _ => visitor.visit_some(self),
        }
    }

    fn deserialize_seq<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Fault> {
        match &self.node.kind {
            Kind::List(items) => visitor.visit_seq(self.items(items)),
            Kind::Null => visitor.visit_seq(self.items(&[])),
            _ => Err(Wrong::Value { legal: "a list".to_owned() }.into()),
        }
    }

    fn deserialize_tuple<V: Visitor<'de>>(self, _: usize, visitor: V) -> Result<V::Value, Fault> {
        self.deserialize_seq(visitor)
    }

    fn deserialize_map<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Fault> {
        match &self.node.kind {
            Kind::Map(fields) => visitor.visit_map(self.fields(fields)),
            Kind::Null => visitor.visit_map(self.fields(&[])),
            _ => Err(Wrong::Value { legal: "a group of fields".to_owned() }.into()),
        }
    }

    fn deserialize_unit_struct<V: Visitor<'de>>(
        self,
        name: &'static str,
        visitor: V,
    ) -> Result<V::Value, Fault> {
        if name != Node::NAME {
            return self.deserialize_any(visitor);
        }
        // Whoever asks for a node gets this one, with its places.
        self.node.hand_over();
        visitor.visit_unit()
    }

    fn deserialize_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        known: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Fault> {
        match &self.node.kind {
            Kind::Map(_) | Kind::Null => self.deserialize_map(visitor),
            _ => Err(Wrong::Value { legal: format!("the fields {}", quoted(known)) }.into()),
        }
    }

    fn deserialize_enum<V: Visitor<'de>>(
        self,
        _: &'static str,
        known: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Fault> {
        match self.text() {
            Some(text) => visitor.visit_enum(text.into_deserializer()),
            None => Err(Wrong::Value { legal: format!("one of {}", quoted(known)) }.into()),
        }
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        visitor: V,
    ) -> Result<V::Value, Fault> {
        visitor.visit_newtype_struct(self)
    }

    forward_to_deserialize_any! {
        i8 i16 i32 i64 i128 u8 u16 u32 u128 f32 char bytes byte_buf unit tuple_struct
        identifier ignored_any
    }
}

struct Items<'de> {
    nodes: &'de [Node],
    next: usize,
    strict: bool,
}

impl<'de> SeqAccess<'de> for Items<'de> {
    type Error = Fault;

    fn next_element_seed<T: DeserializeSeed<'de>>(
        &mut self,
        seed: T,
    ) -> Result<Option<T::Value>, Fault> {
        let broken = |index: usize| self.nodes[index].kind == Kind::Broken;
        let next = (self.next..self.nodes.len()).find(|&index| self.strict || !broken(index));
        let Some(index) = next else { return Ok(None) };
        self.next = index + 1;
        let node = &self.nodes[index];
        match seed.deserialize(Decoder { node, strict: self.strict }) {
            Ok(item) => Ok(Some(item)),
            // The list cannot do without it.
            Err(_) if broken(index) => Err(Wrong::Known.into()),
            Err(fault) => Err(fault.about(node).within(index, &format!("[{index}]"))),
        }
    }
}

/// The fields of a map that are not broken.
struct Fields<'de> {
    entries: &'de [(String, Place, Node)],
    next: usize,
    strict: bool,
}

impl<'de> MapAccess<'de> for Fields<'de> {
    type Error = Fault;

    fn next_key_seed<K: DeserializeSeed<'de>>(
        &mut self,
        seed: K,
    ) -> Result<Option<K::Value>, Fault> {
        let left = &self.entries[self.next..];
        self.next += left.iter().take_while(|(.., node)| node.kind == Kind::Broken).count();
        let Some((name, place, _)) = self.entries.get(self.next) else { return Ok(None) };
        seed.deserialize(name.as_str().into_deserializer()).map(Some).map_err(|mut fault: Fault| {
            fault.place = Some(place.clone());
            if let Wrong::Field { name, known } = &fault.wrong {
                fault.meant = nearest(name, known.iter().copied());
            }
            fault.within(self.next, name)
        })
    }

    fn next_value_seed<V: DeserializeSeed<'de>>(&mut self, seed: V) -> Result<V::Value, Fault> {
        let index = self.next;
        let (name, _, node) = &self.entries[index];
        self.next += 1;
        seed.deserialize(Decoder { node, strict: self.strict })
            .map_err(|fault| fault.about(node).within(index, name))
    }
}
