//! One line of JSON: parsed in one pass, and told exactly where it is wrong.
//!
//! The native and the Mooncake readers use it, each with a type of its own for the fields.

use super::lines::nul;
use super::scalar::unknown;
use crate::error::shown;
use serde::Deserializer;
use serde::de::{self, DeserializeSeed, IgnoredAny, MapAccess, Visitor};
use std::fmt;
use std::marker::PhantomData;

/// What `line` says, or the column and what is wrong. `ended` tells whether the line had an
/// end.
pub(super) fn parse<O: Object>(line: &[u8], ended: bool) -> Result<O::Read<'_>, (usize, String)> {
    let mut json = serde_json::Deserializer::from_slice(line);
    let read = json.deserialize_map(Fields::<O>(PhantomData));
    read.and_then(|read| json.end().map(|()| read)).map_err(|error| {
        // A line that is no JSON is told so, whatever is wrong with the fields before the damage:
        // 0x10 is not 0.
        let (column, message) = match serde_json::from_slice::<IgnoredAny>(line) {
            Ok(_) if error.is_data() => (error.column(), bare(&error)),
            Ok(_) => damage(line, ended, &error),
            Err(syntax) => damage(line, ended, &syntax),
        };
        // The parser has not read a byte when it finds that there are none.
        (column.max(1), message)
    })
}

fn damage(line: &[u8], ended: bool, error: &serde_json::Error) -> (usize, String) {
    if let Some(found) = nul(line) {
        return found;
    }
    let message = match (error.is_eof(), ended) {
        (true, true) => "the line ends inside its JSON object; a request must stand on one line",
        (true, false) => "the trace ends inside this line: its last line is cut off",
        (false, _) => return (error.column(), format!("not JSON: {}", bare(error))),
    };
    (error.column(), message.to_owned())
}

/// The error without the position that `serde_json` puts at its end.
fn bare(error: &serde_json::Error) -> String {
    let full = error.to_string();
    let place = format!(" at line {} column {}", error.line(), error.column());
    let message = full.strip_suffix(&place).unwrap_or(&full);
    // The parser repeats a text of the wrong type in full.
    let kinds = message.strip_prefix("invalid type: ").and_then(|m| m.rsplit_once(", expected "));
    match kinds {
        Some((found, expected)) => format!("invalid type: {}, expected {expected}", shown(found)),
        None => message.to_owned(),
    }
}

/// An object that stands on a line.
pub(super) trait Object {
    /// The fields that it may have, 32 at most. A constant of a type, so that the compiler knows
    /// the names where a key is compared with them, which is done for every field of every line.
    const NAMES: &'static [&'static str];
    /// What it is, for errors.
    const WHAT: &'static str;
    /// What is read from it.
    type Read<'de>: Default;

    /// Reads the value of the field `name`.
    fn read<'de, A: MapAccess<'de>>(
        object: &mut Self::Read<'de>,
        name: &'static str,
        map: &mut A,
    ) -> Result<(), A::Error>;
}

/// Reads the fields of `O`, each at most once.
struct Fields<O>(PhantomData<O>);

impl<'de, O: Object> Visitor<'de> for Fields<O> {
    type Value = O::Read<'de>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(O::WHAT)
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<O::Read<'de>, A::Error> {
        let mut object = O::Read::default();
        let mut seen = 0_u32;
        while let Some(field) = map.next_key_seed(Key::<O>(PhantomData))? {
            let name = O::NAMES[field];
            if seen & (1 << field) != 0 {
                return Err(de::Error::custom(format!("field `{name}`: given twice")));
            }
            seen |= 1 << field;
            O::read(&mut object, name, &mut map)?;
        }
        Ok(object)
    }
}

/// Reads the name of a field as its place among those of `O`.
struct Key<O>(PhantomData<O>);

impl<'de, O: Object> DeserializeSeed<'de> for Key<O> {
    type Value = usize;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<usize, D::Error> {
        deserializer.deserialize_str(self)
    }
}

impl<O: Object> Visitor<'_> for Key<O> {
    type Value = usize;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the name of a field")
    }

    fn visit_str<E: de::Error>(self, name: &str) -> Result<usize, E> {
        let place = O::NAMES.iter().position(|field| *field == name);
        place.ok_or_else(|| E::custom(unknown("field", name, O::NAMES)))
    }
}
