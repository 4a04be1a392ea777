//! One line of a trace: from bytes to checked fields.
//!
//! Only [`super::TraceSource`] calls it. Every field is checked as it is read, so that an error has
//! the column of its value; what needs other fields or other lines is checked there. Names are
//! borrowed from the line.

use super::scalar::{Check, Reading, Scalar, hint};
use crate::error::{SpecError, shown};
use crate::names::stream;
use blis_core::{Segment, SloClass, StreamId, Time};
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
}

const FIELDS: [&str; 13] = [
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
    "after",
    "think_ms",
];

/// The fields after these are known only to be refused.
const SUPPORTED: usize = 10;

const ROUND: &str = "a whole number from 0 to 4294967295";
const PROMPT: &str = "a list, not empty, of [\"stream\", tokens] pairs";
const PAIR: &str = "a pair of a stream's name and a number of tokens";

/// The fields of `line`, or the column and what is wrong. `ended` tells whether the line had an
/// end.
pub(super) fn parse(line: &[u8], ended: bool) -> Result<Line<'_>, (usize, String)> {
    let parsed: Result<Line<'_>, serde_json::Error> = serde_json::from_slice(line);
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
    if line.starts_with(b"\x1F\x8B") {
        return (1, "the trace is compressed with gzip; decompress it first".to_owned());
    }
    if let Some(place) = line.iter().position(|byte| *byte == 0) {
        return (
            place + 1,
            "the line contains a NUL byte: the trace is damaged or not text".to_owned(),
        );
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

impl<'de> Deserialize<'de> for Line<'de> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Line<'de>, D::Error> {
        deserializer.deserialize_map(LineVisitor)
    }
}

struct LineVisitor;

impl<'de> Visitor<'de> for LineVisitor {
    type Value = Line<'de>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a JSON object with the fields of a request")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Line<'de>, A::Error> {
        let mut line = Line::default();
        let mut seen = [false; FIELDS.len()];
        while let Some(Key(field)) = map.next_key()? {
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
            _ => {
                let feature =
                    if field == "deadline_ms" { "deadlines" } else { "closed-loop sessions" };
                let legal = format!("to leave it out: {feature} are not supported yet");
                return Err(SpecError::new(field, value, legal));
            }
        }
        Ok(())
    }
}

/// The place in `FIELDS` of an object's key.
struct Key(usize);

impl<'de> Deserialize<'de> for Key {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Key, D::Error> {
        deserializer.deserialize_str(KeyVisitor)
    }
}

struct KeyVisitor;

impl Visitor<'_> for KeyVisitor {
    type Value = Key;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the name of a field")
    }

    fn visit_str<E: de::Error>(self, name: &str) -> Result<Key, E> {
        FIELDS.iter().position(|field| *field == name).map(Key).ok_or_else(|| {
            let known = &FIELDS[..SUPPORTED];
            let near = hint(name, known);
            let name = shown(name);
            E::custom(format!("unknown field `{name}`{near}; known: `{}`", known.join("`, `")))
        })
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
