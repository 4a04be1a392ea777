//! One line of a native trace: from bytes to checked fields.
//!
//! Only [`super::native`] calls it. Every field is checked as it is read, so that an error has
//! the column of its value; what needs other fields or other lines is checked there. Names are
//! borrowed from the line.

use super::json::Object;
use super::scalar::{Reading, Scalar};
use crate::error::SpecError;
use crate::names::stream;
use blis_core::{Segment, SloClass, Span, StreamId, Time};
use serde::Deserializer;
use serde::de::{self, DeserializeSeed, IgnoredAny, MapAccess, SeqAccess, Visitor};
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

impl Object for Line<'_> {
    const NAMES: &'static [&'static str] = &FIELDS;
    const WHAT: &'static str = "a JSON object with the fields of a request";
    type Read<'de> = Line<'de>;

    fn read<'de, A: MapAccess<'de>>(
        line: &mut Line<'de>,
        name: &'static str,
        map: &mut A,
    ) -> Result<(), A::Error> {
        if name == "prompt" {
            line.prompt = map.next_value_seed(Prompt)?;
            return Ok(());
        }
        map.next_value_seed(Reading(|value| line.set(name, value)))
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
        let of_half = |half: usize| {
            move |error: SpecError| error.under(&format!("prompt[{}][{half}]", self.index))
        };
        let name = |value: Scalar<'de>| Ok(stream(&value.name("").map_err(of_half(0))?));
        let Some(stream) = list.next_element_seed(Reading(name))? else {
            return Err(self.wrong("an empty list"));
        };
        let tokens = |value: Scalar<'de>| value.tokens("").map_err(of_half(1));
        let Some(tokens) = list.next_element_seed(Reading(tokens))? else {
            return Err(self.wrong("a list of one"));
        };
        if list.next_element::<IgnoredAny>()?.is_some() {
            return Err(self.wrong("a list of more than two"));
        }
        Ok(Segment { stream, tokens })
    }
}
