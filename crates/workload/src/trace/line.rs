//! One line of a native trace: from bytes to checked fields.
//!
//! Only [`super::native`] calls it. Every field is checked as it is read, so that an error has
//! the column of its value; what needs other fields or other lines is checked there. Names are
//! borrowed from the line.

use super::json::{Fields, Key};
use super::scalar::{Check, Reading, Scalar};
use crate::error::SpecError;
use crate::names::stream;
use blis_core::{Segment, SloClass, Span, StreamId, Time};
use serde::de::{self, DeserializeSeed, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer};
use std::borrow::Cow;
use std::fmt;

/// The fields of a line; `None` where it has none.
#[derive(Default)]
pub(super) struct Line<'a> {
    pub(super) id: Option<Cow<'a, str>>,
    pub(super) arrival: Option<Time>,
    pub(super) prompt: Option<Vec<Segment>>,
    pub(super) input_tokens: Option<u32>,
    pub(super) output_tokens: Option<u32>,
    pub(super) output_stream: Option<StreamId>,
    pub(super) class: Option<SloClass>,
    pub(super) tenant: Option<Cow<'a, str>>,
    pub(super) session: Option<Cow<'a, str>>,
    pub(super) round: u32,
    pub(super) deadline: Option<Span>,
    pub(super) patience: Option<Span>,
    pub(super) after: Option<Cow<'a, str>>,
    pub(super) think: Option<Span>,
}

/// The fields that a line may have.
pub(super) const FIELDS: [&str; 14] = [
    "id",
    "arrival_us",
    "prompt",
    "input_tokens",
    "output_tokens",
    "output_stream",
    "class",
    "tenant",
    "session",
    "round",
    "deadline_ms",
    "patience_ms",
    "after",
    "think_ms",
];

const ROUND: &str = "a whole number from 0 to 4294967295";
const PROMPT: &str = "a list, not empty, of [\"stream\", tokens] pairs";
const PAIR: &str = "a pair of a stream's name and a number of tokens";

impl<'de> Deserialize<'de> for Line<'de> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Line<'de>, D::Error> {
        deserializer.deserialize_map(LineVisitor)
    }
}

struct LineVisitor;

impl Fields for LineVisitor {
    const NAMES: &'static [&'static str] = &FIELDS;
}

impl<'de> Visitor<'de> for LineVisitor {
    type Value = Line<'de>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a JSON object with the fields of a request")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Line<'de>, A::Error> {
        let mut line = Line::default();
        let mut seen = [false; FIELDS.len()];
        while let Some(field) = map.next_key_seed(Key(LineVisitor))? {
            let name = FIELDS[field];
            if std::mem::replace(&mut seen[field], true) {
                return Err(de::Error::custom(format!("field `{name}`: given twice")));
            }
            if name == "prompt" {
                line.prompt = map.next_value_seed(Prompt)?;
            } else {
                map.next_value_seed(Reading(Field { line: &mut line, name }))?;
            }
        }
        Ok(line)
    }
}

impl<'de> Line<'de> {
    fn set(&mut self, field: &'static str, value: Scalar<'de>) -> Result<(), SpecError> {
        if let Scalar::Null = value {
            return Ok(());
        }
        match field {
            "id" => self.id = Some(value.name(field)?),
            "arrival_us" => self.arrival = Some(value.arrival(field)?),
            "input_tokens" => self.input_tokens = Some(value.tokens(field)?),
            "output_tokens" => self.output_tokens = Some(value.tokens(field)?),
            "output_stream" => self.output_stream = Some(stream(&value.name(field)?)),
            "class" => self.class = Some(value.class(field)?),
            "tenant" => self.tenant = Some(value.name(field)?),
            "session" => self.session = Some(value.name(field)?),
            "round" => self.round = value.whole(field, 0, ROUND)?,
            "deadline_ms" => self.deadline = Some(value.deadline(field)?),
            "patience_ms" => self.patience = Some(value.deadline(field)?),
            "after" => self.after = Some(value.name(field)?),
            _ => self.think = Some(value.think(field)?),
        }
        Ok(())
    }
}

/// Puts the value into the field `name` of a line.
struct Field<'l, 'de> {
    line: &'l mut Line<'de>,
    name: &'static str,
}

impl<'de> Check<'de> for Field<'_, 'de> {
    type Checked = ();

    fn check(self, value: Scalar<'de>) -> Result<(), SpecError> {
        self.line.set(self.name, value)
    }
}

/// Reads the list of segments; `null` is no list.
struct Prompt;

impl<'de> DeserializeSeed<'de> for Prompt {
    type Value = Option<Vec<Segment>>;

    fn deserialize<D: Deserializer<'de>>(self, d: D) -> Result<Self::Value, D::Error> {
        d.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Prompt {
    type Value = Option<Vec<Segment>>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "`prompt` to be {PROMPT}")
    }

    fn visit_unit<E>(self) -> Result<Self::Value, E> {
        Ok(None)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Self::Value, A::Error> {
        let mut segments = Vec::with_capacity(2);
        while let Some(segment) = list.next_element_seed(Pair { index: segments.len() })? {
            segments.push(segment);
        }
        if segments.is_empty() {
            return Err(de::Error::custom(SpecError::new("prompt", "an empty list", PROMPT)));
        }
        Ok(Some(segments))
    }
}

/// Reads one `["stream", tokens]` pair.
#[derive(Clone, Copy)]
struct Pair {
    index: usize,
}

impl Pair {
    fn wrong<E: de::Error>(self, found: &str) -> E {
        E::custom(SpecError::new(format!("prompt[{}]", self.index), found, PAIR))
    }
}

impl<'de> DeserializeSeed<'de> for Pair {
    type Value = Segment;

    fn deserialize<D: Deserializer<'de>>(self, d: D) -> Result<Segment, D::Error> {
        d.deserialize_seq(self)
    }
}

impl<'de> Visitor<'de> for Pair {
    type Value = Segment;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "`prompt[{}]` to be {PAIR}", self.index)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Segment, A::Error> {
        let Some(stream) = list.next_element_seed(Reading(PairStream(self.index)))? else {
            return Err(self.wrong("an empty list"));
        };
        let Some(tokens) = list.next_element_seed(Reading(PairTokens(self.index)))? else {
            return Err(self.wrong("a list of one"));
        };
        if list.next_element::<IgnoredAny>()?.is_some() {
            return Err(self.wrong("a list of more than two"));
        }
        Ok(Segment { stream, tokens })
    }
}

/// The first half of the pair with this index.
struct PairStream(usize);

impl<'de> Check<'de> for PairStream {
    type Checked = StreamId;

    fn check(self, value: Scalar<'de>) -> Result<StreamId, SpecError> {
        let name = value.name("0");
        Ok(stream(&name.map_err(|error| pair_error(self.0, 0, error))?))
    }
}

/// The second half of the pair with this index.
struct PairTokens(usize);

impl<'de> Check<'de> for PairTokens {
    type Checked = u32;

    fn check(self, value: Scalar<'de>) -> Result<u32, SpecError> {
        value.tokens("1").map_err(|error| pair_error(self.0, 1, error))
    }
}

fn pair_error(index: usize, half: usize, error: SpecError) -> SpecError {
    SpecError { field: format!("prompt[{index}][{half}]"), ..error }
}
