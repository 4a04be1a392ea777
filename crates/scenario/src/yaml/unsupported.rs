//! Fields that other programs read and this one does not.

use serde::Deserialize;
use serde::de::{Deserializer, MapAccess, SeqAccess, Visitor};
use std::fmt;

/// A field that is known but not supported: only whether it is there matters.
#[derive(Clone, Copy, Debug, Default)]
pub struct Unsupported {
    /// Whether it has a value.
    pub given: bool,
}

impl<'de> Deserialize<'de> for Unsupported {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Unsupported, D::Error> {
        deserializer.deserialize_any(UnsupportedVisitor)
    }
}

struct UnsupportedVisitor;

impl<'de> Visitor<'de> for UnsupportedVisitor {
    type Value = Unsupported;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("anything")
    }

    fn visit_unit<E>(self) -> Result<Unsupported, E> {
        Ok(Unsupported { given: false })
    }

    fn visit_str<E>(self, _: &str) -> Result<Unsupported, E> {
        Ok(Unsupported { given: true })
    }

    fn visit_seq<A: SeqAccess<'de>>(self, _: A) -> Result<Unsupported, A::Error> {
        Ok(Unsupported { given: true })
    }

    fn visit_map<A: MapAccess<'de>>(self, _: A) -> Result<Unsupported, A::Error> {
        Ok(Unsupported { given: true })
    }
}
