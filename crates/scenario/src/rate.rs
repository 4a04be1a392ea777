//! A rate as it is written: requests per second, a share of the cluster's saturation, a ramp or
//! steps of either, or users who each wait for their answer.
//!
//! ```yaml
//! rate: 400
//! rate: 90%                                  # of saturation; the same as {of_saturation: 0.9}
//! rate: {ramp: {from: 3, to: 60, over_s: 600}}
//! rate: {steps: [{rate: 50%, for_s: 300}, {rate: 120%, for_s: 60}, {rate: 50%, for_s: 300}]}
//! rate: 64 users                             # the same as {users: {count: 64}}
//! rate: {users: {count: 64, think_time_s: 0.5, think_time: exponential, ramp_s: 30}}
//! ```
//!
//! What saturation is, and how it is measured, is in `settle.rs`.

use crate::legal::{PerSecond, Seconds, ShareOfSaturation, SliceSeconds};
use crate::problem::{Place, Problem, quoted};
use crate::yaml::{self, Amount, Node, Range, Whole, inline_schema};
use blis_core::Span;
use blis_workload::rate::MOST_USERS;
use blis_workload::{Rate, Think, Users};
use schemars::{JsonSchema, json_schema};
use serde::Deserialize;
use serde::de::{Deserializer, Error, MapAccess, Unexpected, Visitor};
use std::fmt;

/// A rate over time, as written.
#[derive(Clone, Debug, PartialEq)]
pub enum RateSpec {
    /// The same from start to end.
    Level(Level),
    /// A straight line from one to the other, and the last one for good.
    Ramp {
        /// At the start.
        from: Level,
        /// At the end.
        to: Level,
        /// Seconds from start to end.
        over_s: f64,
    },
    /// Each for so many seconds, and the last one for good.
    Steps(Vec<(Level, f64)>),
    /// As many as these users send.
    Users(Users),
}

/// A rate, and where it was written.
#[derive(Clone, Debug, PartialEq)]
pub struct Written {
    /// The rate.
    pub rate: RateSpec,
    /// Where.
    pub place: Place,
    /// The path of its field.
    pub path: &'static str,
}

impl Written {
    /// The `rate` that `tree` has at `path`.
    pub(crate) fn at(tree: &Node, path: &'static str, rate: RateSpec) -> Written {
        Written { rate, place: tree.place_of(path), path }
    }

    /// What is wrong with it.
    pub(crate) fn problem(&self, message: impl Into<String>) -> Problem {
        Problem::new(self.place.clone(), self.path, message)
    }
}

/// One rate, as written.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Level {
    /// Requests per second.
    PerSecond(f64),
    /// A share of the cluster's saturation.
    OfSaturation(f64),
}

impl RateSpec {
    /// Whether it can only be known once the cluster's saturation is.
    pub fn needs_saturation(&self) -> bool {
        let relative = |level: &Level| matches!(level, Level::OfSaturation(_));
        match self {
            RateSpec::Level(level) => relative(level),
            RateSpec::Ramp { from, to, .. } => relative(from) || relative(to),
            RateSpec::Steps(steps) => steps.iter().any(|(level, _)| relative(level)),
            RateSpec::Users(_) => false,
        }
    }

    /// The rate of a cluster with this saturation, in requests per second.
    pub fn rate(&self, saturation: f64) -> Rate {
        let per_sec = |level: Level| match level {
            Level::PerSecond(per_sec) => per_sec,
            Level::OfSaturation(share) => share * saturation,
        };
        let lasting = Span::from_secs_f64;
        match self {
            RateSpec::Level(level) => Rate::Steady(per_sec(*level)),
            RateSpec::Ramp { from, to, over_s } => {
                Rate::ramp(per_sec(*from), per_sec(*to), lasting(*over_s))
            }
            RateSpec::Steps(steps) => {
                Rate::steps(steps.iter().map(|&(level, for_s)| (per_sec(level), lasting(for_s))))
            }
            RateSpec::Users(users) => Rate::Users(*users),
        }
    }
}

const LEGAL: &str = "a number from 1e-9 to 1e9 (requests per second), a percentage of the \
                     cluster's saturation such as `90%`, or users such as `64 users`";
const KNOWN: &[&str] = &["of_saturation", "ramp", "steps", "users"];

/// A rate that is written as one word: a number or a percentage.
fn level<E: Error>(text: &str) -> Result<Level, E> {
    let (number, percent) = match text.strip_suffix('%') {
        Some(number) => (number, true),
        None => (text, false),
    };
    let refused = || E::invalid_value(Unexpected::Str(text), &LEGAL);
    let value = yaml::float(number).ok_or_else(refused)?;
    let (level, min, max) = if percent {
        let share = value / 100.0;
        (Level::OfSaturation(share), ShareOfSaturation::MIN, ShareOfSaturation::MAX)
    } else {
        (Level::PerSecond(value), PerSecond::MIN, PerSecond::MAX)
    };
    let (Level::PerSecond(found) | Level::OfSaturation(found)) = level;
    if (min..=max).contains(&found) { Ok(level) } else { Err(refused()) }
}

inline_schema! {
    [] RateSpec, generator => {
        let (ramp, step) =
            (generator.subschema_for::<RampFields>(), generator.subschema_for::<StepFields>());
        let share = generator.subschema_for::<Amount<ShareOfSaturation>>();
        let properties = serde_json::json!({
            "of_saturation": share,
            "ramp": ramp,
            "steps": { "type": "array", "items": step },
            "users": generator.subschema_for::<UsersFields>(),
        });
        let fields = serde_json::json!({
            "type": "object", "properties": properties, "additionalProperties": false,
        });
        let users = serde_json::json!({ "type": "string", "pattern": "^[0-9]+ ?users$" });
        json_schema!({ "anyOf": [generator.subschema_for::<LevelOrZero>(), users, fields] })
    };
    [] LevelOrZero, _generator => json_schema!({
        "anyOf": [{ "type": "number", "minimum": 0 }, { "type": "string", "pattern": "^[0-9.]+%$" }]
    });
}

impl<'de> Deserialize<'de> for RateSpec {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<RateSpec, D::Error> {
        deserializer.deserialize_any(RateVisitor)
    }
}

struct RateVisitor;

impl<'de> Visitor<'de> for RateVisitor {
    type Value = RateSpec;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{LEGAL}, or one of the fields {}", quoted(KNOWN))
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<RateSpec, E> {
        let Some(count) = text.strip_suffix("users") else {
            return level(text).map(RateSpec::Level);
        };
        let legal = format!("from 1 to {MOST_USERS} users");
        let count = count.trim().parse().ok().filter(|count| (1..=MOST_USERS).contains(count));
        let count = count.ok_or_else(|| E::invalid_value(Unexpected::Str(text), &&*legal))?;
        let think = Think::Constant(Span::ZERO);
        Ok(RateSpec::Users(Users { count, think, ramp: Span::ZERO }))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<RateSpec, A::Error> {
        let mut found = None;
        while let Some(name) = map.next_key::<String>()? {
            let rate = match name.as_str() {
                "of_saturation" => {
                    let share: Amount<ShareOfSaturation> = map.next_value()?;
                    RateSpec::Level(Level::OfSaturation(share.get()))
                }
                "ramp" => {
                    let RampFields { from, to, over_s } = map.next_value()?;
                    RateSpec::Ramp { from: from.0, to: to.0, over_s: over_s.get() }
                }
                "steps" => {
                    let steps: Vec<StepFields> = map.next_value()?;
                    if steps.is_empty() {
                        return Err(A::Error::custom("`steps` is empty; add at least one"));
                    }
                    let step = |fields: &StepFields| (fields.rate.0, fields.for_s.get());
                    RateSpec::Steps(steps.iter().map(step).collect())
                }
                "users" => RateSpec::Users(map.next_value::<UsersFields>()?.users()),
                other => return Err(A::Error::unknown_field(other, KNOWN)),
            };
            if found.replace(rate).is_some() {
                let message = format!("found several; legal: one of {}", quoted(KNOWN));
                return Err(A::Error::custom(message));
            }
        }
        found.ok_or_else(|| A::Error::custom(format!("no rate; legal: {LEGAL}")))
    }
}

/// How long somebody thinks, as a word.
#[derive(Clone, Copy, Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub(crate) enum ThinkWord {
    Constant,
    Exponential,
}

impl ThinkWord {
    /// Times to think with this mean.
    pub(crate) fn of(word: Option<ThinkWord>, mean: Span) -> Think {
        match word {
            None | Some(ThinkWord::Constant) => Think::Constant(mean),
            Some(ThinkWord::Exponential) => Think::Exponential(mean),
        }
    }
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct UsersFields {
    count: Whole<1, { MOST_USERS as u64 }>,
    think_time_s: Option<Amount<SliceSeconds>>,
    think_time: Option<ThinkWord>,
    ramp_s: Option<Amount<SliceSeconds>>,
}

impl UsersFields {
    fn users(&self) -> Users {
        let span = |seconds: Option<Amount<SliceSeconds>>| {
            Span::from_secs_f64(seconds.map_or(0.0, |seconds| seconds.get()))
        };
        Users {
            count: self.count.get_u32(),
            think: ThinkWord::of(self.think_time, span(self.think_time_s)),
            ramp: span(self.ramp_s),
        }
    }
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct RampFields {
    from: LevelOrZero,
    to: LevelOrZero,
    over_s: Amount<Seconds>,
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct StepFields {
    rate: LevelOrZero,
    for_s: Amount<Seconds>,
}

/// One rate within a ramp or among steps, which may be 0 for a while.
struct LevelOrZero(Level);

impl<'de> Deserialize<'de> for LevelOrZero {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<LevelOrZero, D::Error> {
        deserializer.deserialize_any(LevelVisitor)
    }
}

struct LevelVisitor;

impl<'de> Visitor<'de> for LevelVisitor {
    type Value = LevelOrZero;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "0, {LEGAL}, or `of_saturation`")
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<LevelOrZero, E> {
        let zero = yaml::float(text.strip_suffix('%').unwrap_or(text)) == Some(0.0);
        let level = if zero { Level::PerSecond(0.0) } else { level(text)? };
        Ok(LevelOrZero(level))
    }

    fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<LevelOrZero, A::Error> {
        match RateVisitor.visit_map(map)? {
            RateSpec::Level(level) => Ok(LevelOrZero(level)),
            RateSpec::Ramp { .. } | RateSpec::Steps(_) | RateSpec::Users(_) => {
                Err(A::Error::custom("only a rate can stand in a ramp or steps; write one"))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Deserialize)]
    struct Holder {
        rate: RateSpec,
    }

    fn read(text: &str) -> Result<RateSpec, String> {
        let tree = yaml::read_text("r.yaml", &format!("rate: {text}")).expect("well-formed");
        let holder: Result<Holder, _> = yaml::decode(&tree);
        holder.map(|holder| holder.rate).map_err(|problem| problem.to_string())
    }

    #[test]
    fn every_form_of_a_rate_is_read() {
        let share = |share| RateSpec::Level(Level::OfSaturation(share));
        assert_eq!(read("400"), Ok(RateSpec::Level(Level::PerSecond(400.0))));
        assert_eq!(read("90%"), Ok(share(0.9)));
        assert_eq!(read("{of_saturation: 0.9}"), Ok(share(0.9)));
        let ramp = read("{ramp: {from: 0, to: 120%, over_s: 600}}").expect("legal");
        assert!(ramp.needs_saturation());
        assert_eq!(ramp.rate(50.0), Rate::ramp(0.0, 60.0, Span::from_secs_f64(600.0)));
        let users = |count, think, ramp| {
            RateSpec::Users(Users { count, think, ramp: Span::from_secs_f64(ramp) })
        };
        assert_eq!(read("64 users"), Ok(users(64, Think::Constant(Span::ZERO), 0.0)));
        let fields = "{users: {count: 8, think_time_s: 2, think_time: exponential, ramp_s: 30}}";
        let think = Think::Exponential(Span::from_secs_f64(2.0));
        assert_eq!(read(fields), Ok(users(8, think, 30.0)));
        let steps = read("{steps: [{rate: 8, for_s: 1}, {rate: {of_saturation: 2}, for_s: 2}]}");
        let expected = [(8.0, Span::from_secs_f64(1.0)), (20.0, Span::from_secs_f64(2.0))];
        assert_eq!(steps.expect("legal").rate(10.0), Rate::steps(expected));
    }

    #[test]
    fn what_is_no_rate_is_refused_with_its_place() {
        assert!(LEGAL.contains("`64 users`"));
        for (text, place, message) in [
            ("-1", "7: rate", format!("found `-1`; legal: {LEGAL}")),
            ("0", "7: rate", format!("found `0`; legal: {LEGAL}")),
            ("inf", "7: rate", format!("found `inf`; legal: {LEGAL}")),
            ("9_0%", "7: rate", format!("found `9_0%`; legal: {LEGAL}")),
            ("1 user", "7: rate", format!("found `1 user`; legal: {LEGAL}")),
            ("0 users", "7: rate", "found `0 users`; legal: from 1 to 1000000 users".to_owned()),
            (
                "{of_saturation: 0}",
                "23: rate.of_saturation",
                "found `0`; legal: a number from 1e-6 to 1000 (1 is saturation)".to_owned(),
            ),
            (
                "{ramp: {from: 1, to: 2}}",
                "14: rate.ramp",
                "field `over_s` is missing; add it".to_owned(),
            ),
            ("{steps: []}", "7: rate", "`steps` is empty; add at least one".to_owned()),
            (
                "{slope: 1}",
                "7: rate",
                "unknown field `slope`; known: `of_saturation`, `ramp`, `steps`, `users`"
                    .to_owned(),
            ),
            (
                "{of_saturation: 1, ramp: {from: 1, to: 2, over_s: 3}}",
                "7: rate",
                "found several; legal: one of `of_saturation`, `ramp`, `steps`, `users`".to_owned(),
            ),
        ] {
            assert_eq!(read(text).expect_err(text), format!("r.yaml:1:{place}: {message}"));
        }
    }
}
