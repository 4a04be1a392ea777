//! A group of fields that may be left out: as absent as one that is written without a value.
//!
//! The Go program writes `lifecycle: null` for a client without one, and whoever writes nothing
//! after `lifecycle:` asks for nothing. Elsewhere a field without a value is refused.

use crate::yaml::inline_schema;
use schemars::json_schema;
use serde::Deserialize;
use serde::de::value::MapAccessDeserializer;
use serde::de::{Deserializer, MapAccess, Visitor};
use std::fmt;
use std::marker::PhantomData;

/// The fields of a `T`, if there are any.
#[derive(Clone, Debug)]
pub(super) struct Group<T>(pub(super) Option<T>);

impl<T> Group<T> {
    /// The fields, if they are given.
    pub(super) fn given(&self) -> Option<&T> {
        self.0.as_ref()
    }
}

impl<T> Default for Group<T> {
    fn default() -> Group<T> {
        Group(None)
    }
}

inline_schema! {
    [T: schemars::JsonSchema] Group<T>, generator => {
        json_schema!({ "anyOf": [generator.subschema_for::<T>(), { "const": null }] })
    };
}

impl<'de, T: Deserialize<'de>> Deserialize<'de> for Group<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Group<T>, D::Error> {
        deserializer.deserialize_any(GroupVisitor(PhantomData))
    }
}

struct GroupVisitor<T>(PhantomData<T>);

impl<'de, T: Deserialize<'de>> Visitor<'de> for GroupVisitor<T> {
    type Value = Group<T>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a group of fields")
    }

    fn visit_unit<E>(self) -> Result<Group<T>, E> {
        Ok(Group(None))
    }

    fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<Group<T>, A::Error> {
        T::deserialize(MapAccessDeserializer::new(map)).map(|fields| Group(Some(fields)))
    }
}
