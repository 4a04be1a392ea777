//! From a tree of located nodes into a serde type, with complaints that name place, path, value and
//! what is legal.

use super::node::{Kind, Node};
use super::number::{float, whole};
use crate::problem::{Place, Problem, hint, quoted, shown};
use serde::Deserialize;
use serde::de::{
    DeserializeSeed, Deserializer, EnumAccess, Error, Expected, IntoDeserializer, MapAccess,
    SeqAccess, Unexpected, VariantAccess, Visitor,
};
use serde::forward_to_deserialize_any;
use std::fmt;

/// Fills a `T` from `node`.
///
/// # Errors
/// If a field is unknown, missing, or its value is not legal.
pub fn decode<'de, T: Deserialize<'de>>(node: &'de Node) -> Result<T, Problem> {
    T::deserialize(Decoder(node)).map_err(Fault::into_problem)
}

/// A complaint on its way up; the decoder adds the place and the path.
#[derive(Debug)]
struct Fault {
    wrong: Wrong,
    found: Option<String>,
    place: Option<Place>,
    path: String,
}

#[derive(Debug)]
enum Wrong {
    Value { legal: String },
    Field { name: String, known: &'static [&'static str] },
    Word { name: String, known: &'static [&'static str] },
    Missing { name: &'static str },
    Other { message: String },
}

impl From<Wrong> for Fault {
    fn from(wrong: Wrong) -> Fault {
        Fault { wrong, found: None, place: None, path: String::new() }
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

    /// The complaint, `step` higher in the tree.
    fn within(mut self, step: &str) -> Fault {
        let dot = if self.path.is_empty() || self.path.starts_with('[') { "" } else { "." };
        self.path = format!("{}{dot}{}", shown(step), self.path);
        self
    }

    fn into_problem(self) -> Problem {
        let found = self.found.unwrap_or_else(|| "no value".to_owned());
        let message = match self.wrong {
            Wrong::Value { legal } => format!("{found}; legal: {legal}"),
            Wrong::Field { name, known } => {
                let hint = hint(&name, known.iter().copied());
                format!("unknown field `{name}`{hint}; known: {}", quoted(known))
            }
            Wrong::Word { name, known } => {
                let hint = hint(&name, known.iter().copied());
                format!("found `{name}`{hint}; legal: {}", quoted(known))
            }
            Wrong::Missing { name } => format!("field `{name}` is missing; add it"),
            Wrong::Other { message } => message,
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
        Kind::Null => "no value".to_owned(),
        Kind::List(items) => format!("found a list of {}", items.len()),
        Kind::Map(_) => "found a group of fields".to_owned(),
        Kind::Scalar { text, .. } => format!("found `{text}`"),
    }
}

#[derive(Clone, Copy)]
struct Decoder<'de>(&'de Node);

impl<'de> Decoder<'de> {
    fn text(self) -> Option<&'de str> {
        match &self.0.kind {
            Kind::Scalar { text, .. } => Some(text),
            _ => None,
        }
    }

    /// The text of a scalar that was not quoted.
    fn plain(self) -> Option<&'de str> {
        match &self.0.kind {
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
        match &self.0.kind {
            Kind::Null => visitor.visit_unit(),
            Kind::Scalar { text, .. } => visitor.visit_borrowed_str(text),
            Kind::List(items) => visitor.visit_seq(Items { items, next: 0 }),
            Kind::Map(fields) => visitor.visit_map(Fields { fields, next: 0 }),
        }
        .map_err(|fault| fault.about(self.0))
    }

    fn deserialize_bool<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Fault> {
        match self.text() {
            Some("true" | "yes" | "on") => visitor.visit_bool(true),
            Some("false" | "no" | "off") => visitor.visit_bool(false),
            _ => Err(Fault::from(Wrong::Value { legal: "`true` or `false`".to_owned() })),
        }
        .map_err(|fault| fault.about(self.0))
    }

    fn deserialize_u64<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Fault> {
        match self.plain().and_then(whole) {
            Some(value) => visitor.visit_u64(value),
            None => Err(refuse(&visitor)),
        }
        .map_err(|fault| fault.about(self.0))
    }

    fn deserialize_f64<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Fault> {
        match self.plain().and_then(float) {
            Some(value) => visitor.visit_f64(value),
            None => Err(refuse(&visitor)),
        }
        .map_err(|fault| fault.about(self.0))
    }

    fn deserialize_str<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Fault> {
        match self.text() {
            Some(text) => visitor.visit_borrowed_str(text),
            None => Err(Fault::from(Wrong::Value { legal: "text".to_owned() })),
        }
        .map_err(|fault| fault.about(self.0))
    }

    fn deserialize_string<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Fault> {
        self.deserialize_str(visitor)
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Fault> {
        // A field that is written has a value: `seed:` alone is more likely a slip than a wish for
        // the default. Groups and lists may be empty, and say so themselves.
        visitor.visit_some(self)
    }

    fn deserialize_seq<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Fault> {
        match &self.0.kind {
            Kind::List(items) => visitor.visit_seq(Items { items, next: 0 }),
            Kind::Null => visitor.visit_seq(Items { items: &[], next: 0 }),
            _ => Err(Wrong::Value { legal: "a list".to_owned() }.into()),
        }
        .map_err(|fault| fault.about(self.0))
    }

    fn deserialize_tuple<V: Visitor<'de>>(self, _: usize, visitor: V) -> Result<V::Value, Fault> {
        self.deserialize_seq(visitor)
    }

    fn deserialize_map<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Fault> {
        match &self.0.kind {
            Kind::Map(fields) => visitor.visit_map(Fields { fields, next: 0 }),
            Kind::Null => visitor.visit_map(Fields { fields: &[], next: 0 }),
            _ => Err(Wrong::Value { legal: "a group of fields".to_owned() }.into()),
        }
        .map_err(|fault| fault.about(self.0))
    }

    fn deserialize_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        known: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Fault> {
        match &self.0.kind {
            Kind::Map(_) | Kind::Null => self.deserialize_map(visitor),
            _ => Err(Fault::from(Wrong::Value { legal: format!("the fields {}", quoted(known)) })
                .about(self.0)),
        }
    }

    fn deserialize_enum<V: Visitor<'de>>(
        self,
        _: &'static str,
        known: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Fault> {
        match self.text() {
            Some(text) => visitor.visit_enum(Word(text)),
            None => Err(Wrong::Value { legal: format!("one of {}", quoted(known)) }.into()),
        }
        .map_err(|fault| fault.about(self.0))
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        visitor: V,
    ) -> Result<V::Value, Fault> {
        visitor.visit_newtype_struct(self)
    }

    forward_to_deserialize_any! {
        i8 i16 i32 i64 i128 u8 u16 u32 u128 f32 char bytes byte_buf unit unit_struct tuple_struct
        identifier ignored_any
    }
}

struct Items<'de> {
    items: &'de [Node],
    next: usize,
}

impl<'de> SeqAccess<'de> for Items<'de> {
    type Error = Fault;

    fn next_element_seed<T: DeserializeSeed<'de>>(
        &mut self,
        seed: T,
    ) -> Result<Option<T::Value>, Fault> {
        let Some(item) = self.items.get(self.next) else { return Ok(None) };
        let step = format!("[{}]", self.next);
        self.next += 1;
        seed.deserialize(Decoder(item)).map(Some).map_err(|fault| fault.about(item).within(&step))
    }

    fn size_hint(&self) -> Option<usize> {
        Some(self.items.len() - self.next)
    }
}

struct Fields<'de> {
    fields: &'de [(String, Place, Node)],
    next: usize,
}

impl<'de> MapAccess<'de> for Fields<'de> {
    type Error = Fault;

    fn next_key_seed<K: DeserializeSeed<'de>>(
        &mut self,
        seed: K,
    ) -> Result<Option<K::Value>, Fault> {
        let Some((name, place, _)) = self.fields.get(self.next) else { return Ok(None) };
        seed.deserialize(name.as_str().into_deserializer()).map(Some).map_err(|mut fault: Fault| {
            fault.place = Some(place.clone());
            fault.within(name)
        })
    }

    fn next_value_seed<V: DeserializeSeed<'de>>(&mut self, seed: V) -> Result<V::Value, Fault> {
        let (name, _, node) = &self.fields[self.next];
        self.next += 1;
        seed.deserialize(Decoder(node)).map_err(|fault| fault.about(node).within(name))
    }
}

/// A word that chooses a variant without content.
struct Word<'de>(&'de str);

impl<'de> EnumAccess<'de> for Word<'de> {
    type Error = Fault;
    type Variant = Self;

    fn variant_seed<V: DeserializeSeed<'de>>(self, seed: V) -> Result<(V::Value, Self), Fault> {
        seed.deserialize(self.0.into_deserializer()).map(|value| (value, self))
    }
}

impl<'de> VariantAccess<'de> for Word<'de> {
    type Error = Fault;

    fn unit_variant(self) -> Result<(), Fault> {
        Ok(())
    }

    fn newtype_variant_seed<T: DeserializeSeed<'de>>(self, _: T) -> Result<T::Value, Fault> {
        Err(Fault::custom("only plain words are read here"))
    }

    fn tuple_variant<V: Visitor<'de>>(self, _: usize, _: V) -> Result<V::Value, Fault> {
        Err(Fault::custom("only plain words are read here"))
    }

    fn struct_variant<V: Visitor<'de>>(
        self,
        _: &'static [&'static str],
        _: V,
    ) -> Result<V::Value, Fault> {
        Err(Fault::custom("only plain words are read here"))
    }
}
