//! Strategies: named bundles of policies whose numbers are parameters with ranges.
//!
//! ```yaml
//! name: seeds-3-2-2
//! help: Prefix affinity, load and KV utilisation, in the order of arrival
//! parameters:
//!   pa: {default: 3, min: 0, max: 10, help: Weight of prefix affinity}
//! set:
//!   routing: {policy: weighted, scorers: "pa:{pa},qd:2"}
//! ```
//!
//! A scenario chooses one by name (`strategy: seeds-3-2-2[pa=4]`) or by file. What the scenario
//! says itself wins, field by field; a strategy that is chosen later, by a flag or by the arm of a
//! study, drops the policies that were there before ([`choose`]).

pub(crate) mod formula;
mod parameter;
mod template;
mod write;

pub use parameter::{Parameter, ParameterKind};

use crate::problem::{Place, Problem, hint, quoted, unknown};
use crate::problems::{Problems, Together, every, given};
use crate::yaml::{self, Kind, Named, Node, inline_schema, named_or};
use parameter::ParameterFields;
use schemars::JsonSchema;
use serde::Deserialize;
use serde::de::value::MapAccessDeserializer;
use serde::de::{Deserializer, Error, MapAccess, Unexpected, Visitor};
use std::fmt;
use std::path::Path;

/// A strategy that ships.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shipped {
    /// How it is called.
    pub name: &'static str,
    /// Its file.
    pub text: &'static str,
}

macro_rules! shipped {
    ($($name:literal)*) => {
        /// All strategies that ship, simplest first.
        pub const ALL: &[Shipped] = &[$(
            Shipped {
                name: $name,
                text: include_str!(concat!("../../../strategies/", $name, ".yaml")),
            },
        )*];
    };
}

shipped! {
    "round-robin"
    "least-loaded"
    "session-hash"
    "seeds-3-2-2"
    "llm-d-fallback-3-2-2"
    "llm-d-1.0"
    "llm-d-1.0-precise"
    "llm-d-prefix-active"
    "llm-d-three-scorers"
    "llm-d-three-scorers-precise"
    "llm-d-predicted-latency"
    "lmetric"
    "lmetric-formula"
    "dynamo-kv"
    "sglang-cache-aware"
    "no-kv"
    "pa4qd3"
    "kv-heavy"
    "kv-pressure"
    "kv-pressure-slo"
    "precise"
    "session-sticky"
    "predicted-latency"
    "slo-tiered"
    "slo-gated"
    "slo-compound"
    "least-harm-router"
    "least-harm"
    "all-layers"
    "three-layers"
}

/// The parts of a scenario that are policies: what a chosen strategy replaces.
pub const POLICIES: [&str; 6] =
    ["admission", "routing", "scheduler", "priority", "preempt", "evict"];
/// The parts of a scenario that a strategy may set.
const PARTS: [&str; 9] = [
    "admission",
    "routing",
    "scheduler",
    "priority",
    "preempt",
    "evict",
    "kv_tier",
    "engine",
    "signals",
];
/// The field of a scenario that names one.
pub const FIELD: &str = "strategy";

/// A strategy.
#[derive(Clone, Debug)]
pub struct Strategy {
    /// How it is called.
    pub name: String,
    /// What it does, in one sentence.
    pub help: String,
    /// Its numbers.
    pub parameters: Vec<Parameter>,
    /// The scenario fields that it sets, with `{parameter}` where a value goes.
    template: Node,
}

/// A strategy as written.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct StrategyFields {
    name: Option<String>,
    help: Option<String>,
    parameters: Named<ParameterFields>,
    set: Option<Node>,
}

impl Strategy {
    /// One without parameters that sets the fields in `template`.
    pub fn of(name: String, help: String, template: Node) -> Strategy {
        Strategy { name, help, parameters: Vec::new(), template }
    }

    /// The scenario fields that it sets, with `{parameter}` where a value goes.
    pub fn template(&self) -> &Node {
        &self.template
    }

    /// The strategy of that name, or in the file of that name, which ends in `.yaml`.
    ///
    /// # Errors
    /// If there is none, or it is not well made.
    pub fn find(name: &str) -> Result<Strategy, Problems> {
        let is_file = Path::new(name).extension().is_some_and(|e| e == "yaml" || e == "yml");
        if is_file {
            return Strategy::from_tree(&yaml::read_file(Path::new(name))?);
        }
        let shipped = ALL.iter().find(|shipped| shipped.name == name).ok_or_else(|| {
            let known: Vec<&str> = ALL.iter().map(|shipped| shipped.name).collect();
            let message = unknown("strategy", name, &known);
            Problem::new(Place::Unknown, FIELD, format!("{message}, or a file"))
        })?;
        shipped.read()
    }

    fn from_tree(tree: &Node) -> Result<Strategy, Problems> {
        yaml::decode_and(tree, |fields: StrategyFields, tree| {
            let parameters = every(
                fields
                    .parameters
                    .0
                    .iter()
                    .map(|(name, fields)| parameter::read(tree, name, fields)),
            );
            let template = tree.required("", "set", fields.set);
            let checked = given(&template, |template| {
                let used = given(&parameters, |parameters| check_used(parameters, template, tree));
                (check_parts(template), used).together()
            });
            let (name, help, parameters, template, _) = (
                tree.required("", "name", fields.name),
                tree.required("", "help", fields.help),
                parameters,
                template,
                checked,
            )
                .together()?;
            Ok(Strategy { name, help, parameters, template })
        })
    }

    /// The scenario fields that it sets when its parameters are `given`, as `named` writes them,
    /// and defaults otherwise.
    ///
    /// # Errors
    /// All parameters that are unknown, or whose value is not legal; if it names an oracle.
    ///
    /// # Panics
    /// Never: placeholders were checked when the strategy was read.
    pub fn fields(&self, given: &[(String, String)], named: &Node) -> Result<Node, Problems> {
        every(given.iter().map(|(name, text)| {
            let parameter = self.parameters.iter().find(|parameter| parameter.name == *name);
            let message = match parameter {
                Some(parameter) if parameter.allows(text) => return Ok(()),
                Some(parameter) => format!("`{name}` is `{text}`; legal: {}", parameter.legal()),
                None => self.unknown(name),
            };
            let place = named.place_of(&format!("params.{name}"));
            Err(Problem::new(place, format!("{FIELD}.{name}"), message))
        }))?;
        let value = |name: &str| {
            let given = given.iter().rev().find(|(given, _)| given == name);
            let default = || self.parameters.iter().find(|parameter| parameter.name == name);
            given.map_or_else(
                || default().expect("checked when it was read").default.as_str(),
                |(_, text)| text,
            )
        };
        let fields = template::fill(&self.template, &value);
        refuse_oracle(&fields)?;
        Ok(fields)
    }

    /// What to say of a parameter that it does not have.
    fn unknown(&self, name: &str) -> String {
        let known: Vec<&str> = self.parameters.iter().map(|p| p.name.as_str()).collect();
        match known[..] {
            [] => format!("strategy `{}` has no parameters", self.name),
            _ => unknown("parameter", name, &known),
        }
    }
}

/// Refuses what no strategy sets.
fn check_parts(template: &Node) -> Result<(), Problems> {
    let Kind::Map(fields) = &template.kind else { return Ok(()) };
    let unknown = fields.iter().filter(|(part, ..)| !PARTS.contains(&part.as_str()));
    every(unknown.map(|(part, place, _)| {
        let hint = hint(part, PARTS);
        let message = format!("is not part of a strategy{hint}; {}", quoted(&PARTS));
        Err::<(), _>(Problem::new(place.clone(), format!("set.{part}"), message))
    }))
    .map(drop)
}

/// Refuses placeholders that are no parameters, and parameters that are never used.
fn check_used(parameters: &[Parameter], template: &Node, tree: &Node) -> Result<(), Problems> {
    tree.whole(&["parameters", "set"])?;
    let used = template::placeholders(template);
    let known = |name: &String| parameters.iter().any(|parameter| parameter.name == *name);
    let unknown = used.iter().filter(|(name, _)| !known(name)).map(|(name, place)| {
        let message = format!("`{{{name}}}` is not among the parameters");
        Problems::from(Problem::new(place.clone(), "set", message))
    });
    let idle = |parameter: &&Parameter| used.iter().all(|(name, _)| *name != parameter.name);
    let idle = parameters.iter().filter(idle).map(|parameter| {
        let message = "is never used; write it as `{name}` under `set`, or remove it";
        tree.problem(format!("parameters.{}", parameter.name), message)
    });
    every(unknown.chain(idle).map(Err::<(), _>)).map(drop)
}

/// An oracle knows what nobody can know, so nobody can deploy it.
fn refuse_oracle(fields: &Node) -> Result<(), Problem> {
    let Some(evict) = fields.field("evict") else { return Ok(()) };
    let policy = evict.field("policy").unwrap_or(evict);
    let Kind::Scalar { text, .. } = &policy.kind else { return Ok(()) };
    let name = text.split('[').next().unwrap_or_default().trim();
    let kinds = blis_policy::kinds();
    let mut entries = kinds.iter().flat_map(|kind| &kind.entries);
    if !entries.any(|entry| entry.name == name && entry.needs.future) {
        return Ok(());
    }
    let message = format!(
        "found `{name}`, an oracle, which cannot be part of a strategy; for bounds, set `oracles: \
         [evict]` in a scenario"
    );
    Err(Problem::new(policy.place.clone(), "set.evict", message))
}

impl Shipped {
    /// Reads it.
    ///
    /// # Errors
    /// Never for those that ship; a test reads all of them.
    pub fn read(&self) -> Result<Strategy, Problems> {
        let name = format!("strategies/{}.yaml", self.name);
        Strategy::from_tree(&yaml::read_text(&name, self.text)?)
    }
}

/// Chooses the strategy that `value` names, or none if it is null; the policies that `tree` has go.
pub fn choose(tree: &mut Node, value: Node) {
    for part in POLICIES {
        tree.remove(part);
    }
    tree.remove(FIELD);
    if !matches!(value.kind, Kind::Null) {
        tree.set(&[FIELD], value);
    }
}

/// A strategy as a scenario names it: `name`, `name[parameter=value,...]`, or the fields `name` and
/// `params`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Choice {
    /// Its name, or the path of its file.
    pub name: String,
    /// Parameters, in the order written.
    pub params: Vec<(String, String)>,
}

impl Choice {
    /// The strategy that `named` names, which is the field `strategy` of a file.
    ///
    /// # Errors
    /// If it is not spelled like one.
    pub fn read(named: &Node) -> Result<Choice, Problems> {
        yaml::decode(named).map_err(|problems| problems.map(|problem| problem.under(FIELD)))
    }

    /// The strategy, and the scenario fields that it sets where `named` names it.
    ///
    /// # Errors
    /// If there is no such strategy, or a parameter is not legal.
    pub fn find(&self, named: &Node) -> Result<(Strategy, Node), Problems> {
        let strategy = Strategy::find(&beside(&named.place, &self.name)).map_err(|problems| {
            problems.map(|problem| match problem.place {
                Place::Unknown if problem.path == FIELD => {
                    Problem { place: named.place.clone(), ..problem }
                }
                // A file that cannot be read.
                Place::Unknown => {
                    let message = format!("`{}`: {}", problem.path, problem.message);
                    let (place, path) = (named.place.clone(), FIELD.to_owned());
                    Problem { place, path, message, ..problem }
                }
                _ => problem,
            })
        })?;
        let fields = strategy.fields(&self.params, named)?;
        Ok((strategy, fields))
    }
}

/// The long form of a choice. A short form that something was added to has its name under `policy`.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct LongChoice {
    #[serde(alias = "policy")]
    name: String,
    #[serde(default)]
    params: Named<String>,
}

const CHOICE: &str = "`name`, `name[parameter=value,...]`, or the fields `name` and `params`";

inline_schema! {
    [] Choice, _generator => named_or(&["name", "params"]);
}

impl<'de> Deserialize<'de> for Choice {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Choice, D::Error> {
        deserializer.deserialize_any(ChoiceVisitor)
    }
}

struct ChoiceVisitor;

impl<'de> Visitor<'de> for ChoiceVisitor {
    type Value = Choice;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(CHOICE)
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<Choice, E> {
        let (name, inside) = match text.split_once('[') {
            None => (text, None),
            Some((name, inside)) => (name, Some(inside.trim_end().strip_suffix(']'))),
        };
        let part = |part: &str| {
            let (name, value) = part.split_once('=')?;
            Some((name.trim().to_owned(), value.trim().to_owned()))
        };
        let params = match inside {
            None => Some(Vec::new()),
            Some(inside) => inside.and_then(|inside| inside.split(',').map(part).collect()),
        };
        let params = params.ok_or_else(|| E::invalid_value(Unexpected::Str(text), &CHOICE))?;
        Ok(Choice { name: name.trim().to_owned(), params })
    }

    fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<Choice, A::Error> {
        let LongChoice { name, params } = LongChoice::deserialize(MapAccessDeserializer::new(map))?;
        let mut choice: Choice = self.visit_str(&name)?;
        choice
            .params
            .extend(params.0.into_iter().map(|(name, text)| (name, text.trim().to_owned())));
        Ok(choice)
    }
}

/// `tree` with the fields of the strategy that it names, below its own.
///
/// # Errors
/// If there is no such strategy, or its parameters are illegal.
pub fn expand(tree: &Node) -> Result<Node, Problems> {
    let mut own = tree.clone();
    formula::spell_out(&mut own);
    let Some(named) = tree.field(FIELD) else { return Ok(own) };
    let (_, mut fields) = Choice::read(named)?.find(named)?;
    formula::spell_out(&mut fields);
    own.remove(FIELD);
    Ok(over(own, fields))
}

/// A file is named relative to the file that names it.
fn beside(place: &Place, name: &str) -> String {
    let is_file = name.contains('/') || name.contains(".y");
    match place {
        Place::File { file, .. } if is_file => {
            let folder = Path::new(&**file).parent().unwrap_or(Path::new(""));
            folder.join(name).to_string_lossy().into_owned()
        }
        _ => name.to_owned(),
    }
}

/// `own` with the fields of `below` that it does not have. Where both choose a policy of one kind
/// and not the same, the settings of the other do not fit.
fn over(own: Node, below: Node) -> Node {
    let policy = |node: &Node| match &node.field("policy").unwrap_or(node).kind {
        Kind::Scalar { text, .. } => text.split('[').next().map(|name| name.trim().to_owned()),
        _ => None,
    };
    if let (Some(a), Some(b)) = (policy(&own), policy(&below))
        && a != b
    {
        return own;
    }
    match (&own.kind, &below.kind) {
        (Kind::Map(_), Kind::Map(fields)) => {
            let mut merged = own.clone();
            for (name, _, value) in fields {
                let value = match own.field(name) {
                    Some(mine) => over(mine.clone(), value.clone()),
                    None => value.clone(),
                };
                merged.set(&[name], value);
            }
            merged
        }
        // The short form of a policy meets the long one.
        (Kind::Map(_), Kind::Scalar { .. }) if own.field("policy").is_none() => {
            let mut merged = own;
            merged.set(&["policy"], below);
            merged
        }
        _ => own,
    }
}

#[cfg(test)]
mod tests;
