//! Length distributions: their names, their parameters, and whether these are legal.

use crate::legal::Finite;
use crate::problem::{self, hint, quoted};
use crate::problems::{Problems, every};
use crate::workload_spec::client::Reader;
use crate::workload_spec::words::message;
use crate::yaml::{Amount, Kind, Node};
use blis_core::math::{count, float};
use blis_workload::{Empirical, Input, Length, MAX_TOKENS, Media};
use schemars::JsonSchema;
use serde::Deserialize;
use std::collections::BTreeMap;

/// A distribution as written.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub(super) struct LengthSpec {
    r#type: String,
    params: BTreeMap<String, Amount<Finite>>,
    /// The Go program reads lengths from files; here it is refused.
    file: Option<Node>,
}

const KNOWN: [&str; 7] = [
    "constant",
    "empirical",
    "exponential",
    "gaussian",
    "geometric",
    "lognormal",
    "pareto_lognormal",
];

impl Reader<'_> {
    /// The distribution at `field`, of whole numbers from 1 on.
    pub(super) fn length(&self, field: &str, spec: &LengthSpec) -> Result<Length, Problems> {
        let length = self.distribution(field, spec, 1)?;
        match length.validate() {
            Ok(()) => Ok(length),
            Err(error) => {
                let field = format!("{field}.params.{}", error.field);
                Err(self.problem(&field, message(&error)))
            }
        }
    }

    /// The distribution at `field`, of counts of things, which may be 0.
    pub(super) fn count(&self, field: &str, spec: &LengthSpec) -> Result<Length, Problems> {
        let count = self.distribution(field, spec, 0)?;
        // How low a count may be is known to the input that it is a part of.
        let things = Media { kind: "", count, tokens: Length::Constant(1) };
        let mut input = Input { text: None, media: vec![things] };
        if let Err(error) = input.validate() {
            let name = error.field.trim_start_matches("_count.");
            return Err(self.problem(&format!("{field}.params.{name}"), message(&error)));
        }
        Ok(input.media.remove(0).count)
    }

    fn distribution(&self, field: &str, spec: &LengthSpec, least: u32) -> Result<Length, Problems> {
        let at = |name: &str| format!("{field}.{name}");
        if spec.file.as_ref().is_some_and(|node| node.kind != Kind::Null) {
            let message = "lengths are not read from a file; write them as `params`, e.g. `{type: \
                           empirical, params: {100: 0.5, 500: 0.5}}`";
            return Err(self.problem(&at("file"), message));
        }
        let (required, optional): (&[&str], &[&str]) = match spec.r#type.as_str() {
            "gaussian" => (&["mean", "std_dev", "min", "max"], &[]),
            "exponential" => (&["mean"], &["min", "max"]),
            "constant" => (&["value"], &[]),
            "geometric" => (&["mean"], &[]),
            "lognormal" => (&["mu", "sigma"], &["min", "max"]),
            "pareto_lognormal" => (&["alpha", "xm", "mu", "sigma", "mix_weight"], &[]),
            "empirical" => return self.empirical(&at("params"), spec, least),
            other => {
                let hint = hint(other, KNOWN);
                let found =
                    if other.is_empty() { "nothing".to_owned() } else { format!("`{other}`") };
                let message = format!("found {found}{hint}; legal: {}", quoted(&KNOWN));
                return Err(self.problem(&at("type"), message));
            }
        };
        let known = [required, optional].concat();
        let unknown = spec.params.keys().filter(|name| !known.contains(&name.as_str()));
        every(unknown.map(|name| {
            let message = problem::unknown("parameter", name, &known);
            Err::<(), _>(self.problem(&at(&format!("params.{name}")), message))
        }))?;
        self.whole(&[field])?;
        if let Some(name) = required.iter().find(|name| !spec.params.contains_key(**name)) {
            let message = format!("parameter `{name}` of `{}` is missing; add it", spec.r#type);
            return Err(self.problem(&at("params"), message));
        }
        self.make(&at("params"), spec, least)
    }

    /// Lengths as parameters, each with its weight.
    fn empirical(&self, field: &str, spec: &LengthSpec, least: u32) -> Result<Length, Problems> {
        let bins = every(spec.params.iter().map(|(name, weight)| {
            let length = name.parse::<u32>().map_err(|_| {
                let message = format!(
                    "found `{name}`; legal: a length, a whole number from {least} to {MAX_TOKENS}"
                );
                self.problem(&format!("{field}.{name}"), message)
            })?;
            Ok::<_, Problems>((length, weight.get()))
        }))?;
        self.whole(&[field])?;
        let made = if least == 0 { Empirical::counts(bins) } else { Empirical::new(bins) };
        made.map(Length::Empirical).map_err(|error| {
            let field = match error.field.as_str() {
                "params" => field.to_owned(),
                name => format!("{field}.{name}"),
            };
            self.problem(&field, message(&error))
        })
    }

    fn make(&self, field: &str, spec: &LengthSpec, least: u32) -> Result<Length, Problems> {
        let get = |name: &str| spec.params.get(name).map(Amount::get);
        let number = |name: &str| get(name).unwrap_or_default();
        let tokens = |name: &str, default: u32| match get(name) {
            None => Ok(default),
            Some(value) => u32::try_from(count(value))
                .ok()
                .filter(|&tokens| float(tokens.into()).to_bits() == value.abs().to_bits())
                .filter(|_| value >= 0.0)
                .ok_or_else(|| {
                    let legal = format!("a whole number from {least} to {MAX_TOKENS}");
                    let message = format!("found `{value}`; legal: {legal}");
                    self.problem(&format!("{field}.{name}"), message)
                }),
        };
        // A least length of 0 means 1: no prompt and no output is empty. Things may be absent.
        let min = tokens("min", 1)?.max(least);
        let max = tokens("max", MAX_TOKENS)?;
        let mean = number("mean");
        Ok(match spec.r#type.as_str() {
            "gaussian" => Length::Gaussian { mean, std_dev: number("std_dev"), min, max },
            "exponential" => Length::Exponential { mean, min, max },
            "geometric" => Length::Geometric { mean },
            "lognormal" => Length::Lognormal { mu: number("mu"), sigma: number("sigma"), min, max },
            "pareto_lognormal" => Length::ParetoLognormal {
                alpha: number("alpha"),
                xm: number("xm"),
                mu: number("mu"),
                sigma: number("sigma"),
                mix_weight: number("mix_weight"),
            },
            _ => Length::Constant(tokens("value", 1)?),
        })
    }
}
