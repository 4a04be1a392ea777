//! One line of JSON: parsed in one pass, and told exactly where it is wrong.
//!
//! The native and the Mooncake readers use it, each with a type of its own for the fields.

use super::lines::nul;
use super::scalar::unknown;
use crate::error::shown;
use serde::de::{self, DeserializeSeed, IgnoredAny, Visitor};
use serde::{Deserialize, Deserializer};
use std::fmt;

/// What `line` says, or the column and what is wrong. `ended` tells whether the line had an
/// end.
pub(super) fn parse<'a, T: Deserialize<'a>>(
    line: &'a [u8],
    ended: bool,
) -> Result<T, (usize, String)> {
    let parsed: Result<T, serde_json::Error> = serde_json::from_slice(line);
    parsed.map_err(|error| {
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

/// The fields that an object may have. A constant of a type, so that the compiler knows the names
/// where a key is compared with them, which is done for every field of every line.
pub(super) trait Fields {
    const NAMES: &'static [&'static str];
}

/// Reads the name of a field as its place among those of `F`.
pub(super) struct Key<F>(pub(super) F);

impl<'de, F: Fields> DeserializeSeed<'de> for Key<F> {
    type Value = usize;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<usize, D::Error> {
        deserializer.deserialize_str(self)
    }
}

impl<F: Fields> Visitor<'_> for Key<F> {
    type Value = usize;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the name of a field")
    }

    fn visit_str<E: de::Error>(self, name: &str) -> Result<usize, E> {
        let place = F::NAMES.iter().position(|field| *field == name);
        place.ok_or_else(|| E::custom(unknown("field", name, F::NAMES)))
    }
}
