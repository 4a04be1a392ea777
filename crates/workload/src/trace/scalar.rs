//! One JSON value: what kind it is, and what it may be as a time, a count, a name or a class.
//!
//! The readers of JSON lines use it. It knows no field by name; whoever asks says which one it is.

use crate::error::{SpecError, shown};
use blis_core::{SloClass, Span, Time};
use serde::Deserializer;
use serde::de::{self, DeserializeSeed, IgnoredAny, MapAccess, SeqAccess, Visitor};
use std::borrow::Cow;
use std::fmt;

pub(super) const ARRIVAL: &str = "a number from 0 to 315360000000000 (ten years)";
pub(super) const THINK: &str = "a number from 0 to 315360000000 (ten years)";
pub(super) const DEADLINE: &str = "a number above 0 and up to 315360000000 (ten years)";
pub(super) const TOKENS: &str = "a whole number from 1 to 4294967295";
pub(super) const NAME: &str = "a string that is not empty";

const NANOS_A_MICRO: u32 = 1_000;
pub(super) const NANOS_A_MILLI: u32 = 1_000_000;

/// A value of one of the fields but lists, before it is checked.
pub(super) enum Scalar<'a> {
    Null,
    Bool(bool),
    Unsigned(u64),
    Negative(i64),
    Float(f64),
    Text(Cow<'a, str>),
    List,
    Object,
}

impl<'a> Scalar<'a> {
    pub(super) fn name(self, field: &str) -> Result<Cow<'a, str>, SpecError> {
        match self {
            Scalar::Text(text) if !text.is_empty() => Ok(text),
            other => Err(SpecError::new(field, other, NAME)),
        }
    }

    pub(super) fn tokens(self, field: &str) -> Result<u32, SpecError> {
        self.whole(field, 1, TOKENS)
    }

    pub(super) fn whole(self, field: &str, min: u32, legal: &str) -> Result<u32, SpecError> {
        if let Scalar::Unsigned(found) = self
            && let Ok(whole) = u32::try_from(found)
            && whole >= min
        {
            return Ok(whole);
        }
        Err(SpecError::new(field, self, legal))
    }

    pub(super) fn arrival(self, field: &str) -> Result<Time, SpecError> {
        match self.span(NANOS_A_MICRO) {
            Some(span) => Ok(Time::ZERO + span),
            None => Err(SpecError::new(field, self, ARRIVAL)),
        }
    }

    pub(super) fn think(self, field: &str) -> Result<Span, SpecError> {
        self.span(NANOS_A_MILLI).ok_or_else(|| SpecError::new(field, self, THINK))
    }

    pub(super) fn deadline(self, field: &str) -> Result<Span, SpecError> {
        let span = self.span(NANOS_A_MILLI).filter(|span| *span > Span::ZERO);
        span.ok_or_else(|| SpecError::new(field, self, DEADLINE))
    }

    /// The value in units of that many nanoseconds, if it is a number from 0 to ten years.
    pub(super) fn span(&self, unit: u32) -> Option<Span> {
        match *self {
            Scalar::Unsigned(whole) => {
                let nanos = whole.checked_mul(u64::from(unit));
                nanos.map(Span::from_nanos).filter(|span| *span <= Span::LONGEST)
            }
            Scalar::Float(number) => {
                let nanos = number * f64::from(unit);
                let longest = Span::LONGEST.as_secs_f64() * 1e9;
                (0.0..=longest).contains(&nanos).then(|| Span::from_nanos_f64(nanos))
            }
            _ => None,
        }
    }

    pub(super) fn class(self, field: &str) -> Result<SloClass, SpecError> {
        let mut near = String::new();
        let names = SloClass::ALL.map(SloClass::name);
        if let Scalar::Text(text) = &self {
            if let Some(class) = SloClass::from_name(text) {
                return Ok(class);
            }
            near = hint(text, &names);
        }
        let legal = format!("one of `{}`", names.join("`, `"));
        Err(SpecError::new(field, format!("{self}{near}"), legal))
    }
}

impl fmt::Display for Scalar<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Scalar::Null => f.write_str("null"),
            Scalar::Bool(value) => write!(f, "{value}"),
            Scalar::Unsigned(value) => write!(f, "{value}"),
            Scalar::Negative(value) => write!(f, "{value}"),
            // Debug keeps the `.0` that makes 128.0 another thing than 128.
            Scalar::Float(value) => write!(f, "{value:?}"),
            Scalar::Text(text) => write!(f, "{:?}", shown(text)),
            Scalar::List => f.write_str("a list"),
            Scalar::Object => f.write_str("an object"),
        }
    }
}

/// Reads a value and has it checked by a function. It is checked while the parser still stands at
/// it, because only then does an error get its column.
pub(super) struct Reading<F>(pub(super) F);

impl<F> Reading<F> {
    fn done<'de, T, E: de::Error>(self, value: Scalar<'de>) -> Result<T, E>
    where
        F: FnOnce(Scalar<'de>) -> Result<T, SpecError>,
    {
        self.0(value).map_err(E::custom)
    }
}

impl<'de, T, F: FnOnce(Scalar<'de>) -> Result<T, SpecError>> DeserializeSeed<'de> for Reading<F> {
    type Value = T;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<T, D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de, T, F: FnOnce(Scalar<'de>) -> Result<T, SpecError>> Visitor<'de> for Reading<F> {
    type Value = T;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a value")
    }

    fn visit_unit<E: de::Error>(self) -> Result<T, E> {
        self.done(Scalar::Null)
    }

    fn visit_bool<E: de::Error>(self, value: bool) -> Result<T, E> {
        self.done(Scalar::Bool(value))
    }

    fn visit_u64<E: de::Error>(self, value: u64) -> Result<T, E> {
        self.done(Scalar::Unsigned(value))
    }

    fn visit_i64<E: de::Error>(self, value: i64) -> Result<T, E> {
        self.done(Scalar::Negative(value))
    }

    fn visit_f64<E: de::Error>(self, value: f64) -> Result<T, E> {
        self.done(Scalar::Float(value))
    }

    fn visit_borrowed_str<E: de::Error>(self, text: &'de str) -> Result<T, E> {
        self.done(Scalar::Text(Cow::Borrowed(text)))
    }

    fn visit_str<E: de::Error>(self, text: &str) -> Result<T, E> {
        self.done(Scalar::Text(Cow::Owned(text.to_owned())))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<T, A::Error> {
        while list.next_element::<IgnoredAny>()?.is_some() {}
        self.done(Scalar::List)
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<T, A::Error> {
        while map.next_entry::<IgnoredAny, IgnoredAny>()?.is_some() {}
        self.done(Scalar::Object)
    }
}

/// `text` as a message repeats it: cut if it is long, and with nothing that moves a terminal's
/// cursor.
pub(super) fn printable(text: &str) -> String {
    let mut printable = String::new();
    for letter in shown(text).chars() {
        if letter.is_control() {
            printable.extend(letter.escape_default());
        } else {
            printable.push(letter);
        }
    }
    printable
}

/// That `name` is no `kind` (a field, a column) of those `known`.
pub(super) fn unknown(kind: &str, name: &str, known: &[&str]) -> String {
    let near = hint(name, known);
    format!("unknown {kind} `{}`{near}; known: `{}`", printable(name), known.join("`, `"))
}

/// ", did you mean ...?" if one of `known` is near.
fn hint(name: &str, known: &[&str]) -> String {
    // No name is as long as that, and comparing takes time and memory by length.
    if name.len() > 80 {
        return String::new();
    }
    let near = known.iter().map(|known| (strsim::damerau_levenshtein(name, known), known));
    match near.min_by_key(|(distance, _)| *distance) {
        Some((distance, known)) if distance <= 1 + known.len() / 4 => {
            format!(", did you mean `{known}`?")
        }
        _ => String::new(),
    }
}
