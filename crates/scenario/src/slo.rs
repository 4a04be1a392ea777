//! A library of latency targets: what services promise, by class, and where the numbers are from.
//!
//! A scenario, a specification or a preset names a set (`slo: chat`) or writes targets out;
//! goodput counts who met them. Published targets rarely have classes. Where a source gives one
//! pair of limits, `critical` and `standard` have it, `sheddable` has four times as much, and
//! `batch` and `background`, which wait for no one, have none. Other rules are said in the entry.
//!
//! Targets never reach a policy from here.

mod library;

pub use library::ALL;

use crate::legal::TargetMillis;
use crate::problem::unknown;
use crate::yaml::{Amount, inline_schema};
use blis_core::SloClass;
use blis_metrics::{SloTarget, SloTargets};
use schemars::{JsonSchema, json_schema};
use serde::Deserialize;
use serde::de::value::MapAccessDeserializer;
use serde::de::{Deserializer, Error, MapAccess, Visitor};
use std::fmt;

/// `slo:`.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct SloFields {
    /// Targets of class `critical`.
    pub critical: TargetFields,
    /// Targets of class `standard`.
    pub standard: TargetFields,
    /// Targets of class `sheddable`.
    pub sheddable: TargetFields,
    /// Targets of class `batch`.
    pub batch: TargetFields,
    /// Targets of class `background`.
    pub background: TargetFields,
}

/// The targets of one class.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct TargetFields {
    /// Longest time to first token.
    pub ttft_ms: Option<Amount<TargetMillis>>,
    /// Largest mean inter-token latency.
    pub itl_ms: Option<Amount<TargetMillis>>,
    /// Longest time to the last token.
    pub e2e_ms: Option<Amount<TargetMillis>>,
}

/// A named set of targets.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SloSet {
    /// How it is called.
    pub name: &'static str,
    /// What it is for, in one line.
    pub summary: &'static str,
    /// Where its numbers come from.
    pub source: &'static str,
    /// The targets of `critical`, `standard`, `sheddable`, `batch` and `background`.
    pub classes: [SloTarget; SloClass::ALL.len()],
}

impl SloSet {
    /// Its targets.
    pub fn targets(&self) -> SloTargets {
        SloClass::ALL
            .into_iter()
            .zip(self.classes)
            .fold(SloTargets::default(), |targets, (class, target)| targets.with(class, target))
    }
}

/// The set called `name`.
pub fn find(name: &str) -> Option<&'static SloSet> {
    ALL.iter().find(|set| set.name == name)
}

/// `given`, and where it leaves a target open, that of `fallback`.
#[must_use]
pub fn or(given: &SloTargets, fallback: &SloTargets) -> SloTargets {
    SloClass::ALL.into_iter().fold(SloTargets::default(), |targets, class| {
        let (given, fallback) = (given.of(class), fallback.of(class));
        let target = SloTarget {
            ttft_ms: given.ttft_ms.or(fallback.ttft_ms),
            itl_ms: given.itl_ms.or(fallback.itl_ms),
            e2e_ms: given.e2e_ms.or(fallback.e2e_ms),
        };
        targets.with(class, target)
    })
}

/// The targets that `fields` say.
pub fn written(fields: &SloFields) -> SloTargets {
    let SloFields { critical, standard, sheddable, batch, background } = fields;
    let target = |fields: &TargetFields| SloTarget {
        ttft_ms: fields.ttft_ms.map(|ms| ms.get()),
        itl_ms: fields.itl_ms.map(|ms| ms.get()),
        e2e_ms: fields.e2e_ms.map(|ms| ms.get()),
    };
    SloTargets::default()
        .with(SloClass::Critical, target(critical))
        .with(SloClass::Standard, target(standard))
        .with(SloClass::Sheddable, target(sheddable))
        .with(SloClass::Batch, target(batch))
        .with(SloClass::Background, target(background))
}

/// Targets as written: the name of a set, or targets by class.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct SloSpec {
    /// The targets.
    pub targets: SloTargets,
}

inline_schema! {
    [] SloSpec, generator => {
        let sets: Vec<&str> = ALL.iter().map(|set| set.name).collect();
        let by_class = generator.subschema_for::<SloFields>();
        json_schema!({ "anyOf": [{ "enum": sets }, by_class] })
    };
}

impl<'de> Deserialize<'de> for SloSpec {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<SloSpec, D::Error> {
        deserializer.deserialize_any(SloVisitor)
    }
}

struct SloVisitor;

impl<'de> Visitor<'de> for SloVisitor {
    type Value = SloSpec;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the name of a set of targets, e.g. `chat`, or targets by class")
    }

    fn visit_unit<E>(self) -> Result<SloSpec, E> {
        Ok(SloSpec::default())
    }

    fn visit_str<E: Error>(self, name: &str) -> Result<SloSpec, E> {
        let set = find(name).ok_or_else(|| {
            let known: Vec<&str> = ALL.iter().map(|set| set.name).collect();
            let unknown = unknown("set of targets", name, &known);
            E::custom(format!("{unknown}; or write targets by class"))
        })?;
        Ok(SloSpec { targets: set.targets() })
    }

    fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<SloSpec, A::Error> {
        let fields = SloFields::deserialize(MapAccessDeserializer::new(map))?;
        Ok(SloSpec { targets: written(&fields) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::yaml;

    fn read(text: &str) -> Result<SloTargets, String> {
        let tree = yaml::read_text("s.yaml", &format!("slo: {text}")).expect("well-formed");
        let node = tree.field("slo").expect("it is there");
        yaml::decode::<SloSpec>(node)
            .map(|spec| spec.targets)
            .map_err(|problem| problem.to_string())
    }

    #[test]
    fn targets_are_a_name_or_written_out() {
        let chat = find("chat").expect("shipped").targets();
        assert_eq!(read("chat"), Ok(chat));
        let written = read("{batch: {e2e_ms: 9}}").expect("legal");
        assert_eq!(written.of(SloClass::Batch).e2e_ms, Some(9.0));
        assert_eq!(read("~"), Ok(SloTargets::default()));
        let message = read("caht").expect_err("unknown");
        assert!(
            message.starts_with(
                "s.yaml:1:6: unknown set of targets `caht`, did you mean `chat`?; known: `chat`, "
            ) && message.ends_with("; or write targets by class"),
            "{message}"
        );
        assert_eq!(
            read("{critical: {tftt_ms: 5}}").expect_err("unknown field"),
            "s.yaml:1:18: critical.tftt_ms: unknown field `tftt_ms`, did you mean `ttft_ms`?; known: \
             `ttft_ms`, `itl_ms`, `e2e_ms`"
        );
    }

    #[test]
    fn every_set_has_its_own_name_a_source_and_legal_targets_of_falling_strictness() {
        for (index, set) in ALL.iter().enumerate() {
            assert!(ALL[..index].iter().all(|other| other.name != set.name), "{} twice", set.name);
            assert_eq!(find(set.name), Some(set));
            assert!(!set.summary.is_empty() && !set.summary.contains('\n'), "{}", set.name);
            assert!(set.source.len() > 40, "{}: where are the numbers from?", set.name);
            assert_ne!(set.targets(), SloTargets::default(), "{} promises nothing", set.name);
            let kinds: [fn(&SloTarget) -> Option<f64>; 3] =
                [|target| target.ttft_ms, |target| target.itl_ms, |target| target.e2e_ms];
            for of in kinds {
                let limits: Vec<f64> =
                    set.classes.iter().map(|t| of(t).unwrap_or(f64::INFINITY)).collect();
                assert!(limits.iter().all(|&ms| ms > 0.0), "{}: {limits:?}", set.name);
                assert!(limits.is_sorted(), "{}: a lesser class has more: {limits:?}", set.name);
            }
        }
    }

    #[test]
    fn targets_that_are_left_open_come_from_the_fallback() {
        let given = read("{critical: {ttft_ms: 1}}").expect("legal");
        let both = or(&given, &find("chat").expect("shipped").targets());
        let critical = both.of(SloClass::Critical);
        assert_eq!((critical.ttft_ms, critical.itl_ms), (Some(1.0), Some(100.0)));
        assert_eq!(both.of(SloClass::Standard).ttft_ms, Some(250.0));
    }
}
