//! Strategies: named bundles of policies whose numbers are parameters with ranges.
//!
//! ```yaml
//! name: llm-d-default
//! help: Prefix affinity, load and KV utilisation, in the order of arrival
//! parameters:
//!   pa: {default: 3, min: 0, max: 10, help: Weight of prefix affinity}
//! set:
//!   routing: {policy: weighted, scorers: "pa:{pa},qd:2"}
//! ```
//!
//! A scenario chooses one by name (`strategy: llm-d-default[pa=4]`) or by file. What the scenario
//! says itself wins, field by field; a strategy that is chosen later, by a flag or by the arm of a
//! study, drops the policies that were there before ([`choose`]).

mod parameter;
mod template;
mod write;

pub use parameter::{Parameter, ParameterKind};

use crate::problem::{Place, Problem, hint, quoted};
use crate::problems::{Problems, Together, every, given};
use crate::yaml::{self, Kind, Node};
use serde::Deserialize;
use serde::de::IgnoredAny;
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
    "llm-d-default"
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

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct StrategyFields {
    name: String,
    help: String,
    #[serde(default)]
    #[expect(dead_code, reason = "read from the tree, with places")]
    parameters: Option<IgnoredAny>,
    #[expect(dead_code, reason = "read from the tree, with places")]
    set: IgnoredAny,
}

impl Strategy {
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
            let hint = hint(name, known.iter().copied());
            let known = quoted(&known);
            let message = format!("unknown strategy `{name}`{hint}; known: {known}, or a file");
            Problem::new(Place::Unknown, FIELD, message)
        })?;
        shipped.read()
    }

    fn from_tree(tree: &Node) -> Result<Strategy, Problems> {
        yaml::decode_and(tree, |StrategyFields { name, help, .. }, tree| {
            let template = tree.field("set").cloned().unwrap_or_else(Node::empty);
            let parameters = parameter::read_all(tree);
            let used = given(&parameters, |parameters| check_used(parameters, &template, tree));
            let (parameters, (), ()) = (parameters, check_parts(&template), used).together()?;
            Ok(Strategy { name, help, parameters, template })
        })
    }

    /// The scenario fields that it sets when its parameters are `given`, and defaults otherwise.
    ///
    /// # Errors
    /// All parameters that are unknown, or whose value is not legal; if it names an oracle.
    ///
    /// # Panics
    /// Never: placeholders were checked when the strategy was read.
    pub fn fields(&self, given: &[(String, Node)]) -> Result<Node, Problems> {
        every(given.iter().map(|(name, node)| {
            let parameter = self.parameters.iter().find(|parameter| parameter.name == *name);
            if let Some(parameter) = parameter {
                return parameter.check(node);
            }
            let known: Vec<&str> = self.parameters.iter().map(|p| p.name.as_str()).collect();
            let hint = hint(name, known.iter().copied());
            let message = match known[..] {
                [] => format!("strategy `{}` has no parameters", self.name),
                _ => format!("unknown parameter `{name}`{hint}; known: {}", quoted(&known)),
            };
            Err(Problem::new(node.place.clone(), format!("{FIELD}.{name}"), message))
        }))?;
        let value = |name: &str| {
            let given = given.iter().rev().find(|(given, _)| given == name);
            if let Some((_, Node { kind: Kind::Scalar { text, .. }, .. })) = given {
                return text.trim();
            }
            let parameter = self.parameters.iter().find(|parameter| parameter.name == name);
            &parameter.expect("checked when it was read").default
        };
        let fields = template::fill(&self.template, &value);
        refuse_oracle(&fields)?;
        Ok(fields)
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

/// Chooses the strategy that `value` names; the policies that `tree` has go.
pub fn choose(tree: &mut Node, value: Node) {
    for part in POLICIES {
        tree.remove(part);
    }
    tree.remove(FIELD);
    tree.set(&[FIELD], value);
}

/// `tree` with the fields of the strategy that it names, below its own.
///
/// # Errors
/// If there is no such strategy, or its parameters are illegal.
pub fn expand(tree: &Node) -> Result<Node, Problems> {
    let Some(named) = tree.field(FIELD) else { return Ok(tree.clone()) };
    let (name, given) = spelled(named)?;
    let place = |problem: Problem| match problem.place {
        Place::Unknown if problem.path == FIELD => {
            Problem { place: named.place.clone(), ..problem }
        }
        // A file that cannot be read.
        Place::Unknown => {
            let message = format!("`{}`: {}", problem.path, problem.message);
            Problem { place: named.place.clone(), path: FIELD.to_owned(), message, ..problem }
        }
        _ => problem,
    };
    let strategy = Strategy::find(&beside(&named.place, &name));
    let fields = strategy.and_then(|strategy| strategy.fields(&given));
    let fields = fields.map_err(|problems| problems.map(place))?;
    let mut own = tree.clone();
    own.remove(FIELD);
    Ok(over(own, fields))
}

/// A file is named relative to the file that names it.
pub fn beside(place: &Place, name: &str) -> String {
    let is_file = name.contains('/') || name.contains(".y");
    match place {
        Place::File { file, .. } if is_file => {
            let folder = Path::new(&**file).parent().unwrap_or(Path::new(""));
            folder.join(name).to_string_lossy().into_owned()
        }
        _ => name.to_owned(),
    }
}

/// The name and the parameters that a `strategy` field spells: `name[a=1,...]`, or `{name,
/// params}`.
///
/// # Errors
/// If it is neither.
pub fn spelled(node: &Node) -> Result<(String, Vec<(String, Node)>), Problem> {
    let illegal = |node: &Node| {
        let legal = "`name`, `name[parameter=value,...]`, or the fields `name` and `params`";
        Err(Problem::new(node.place.clone(), FIELD, format!("legal: {legal}")))
    };
    match &node.kind {
        Kind::Scalar { text, .. } => {
            let Some((name, inside)) = text.split_once('[') else {
                return Ok((text.trim().to_owned(), Vec::new()));
            };
            let Some(inside) = inside.trim_end().strip_suffix(']') else { return illegal(node) };
            let mut given = Vec::new();
            for part in inside.split(',') {
                let Some((parameter, value)) = part.split_once('=') else { return illegal(node) };
                let kind = Kind::Scalar { text: value.trim().to_owned(), quoted: false };
                let value = Node { place: node.place.clone(), kind };
                given.push((parameter.trim().to_owned(), value));
            }
            Ok((name.trim().to_owned(), given))
        }
        Kind::Map(fields) => {
            let mut all = (String::new(), Vec::new());
            for (field, _, value) in fields {
                match (field.as_str(), &value.kind) {
                    // A short form that something was added to has its name under `policy`.
                    ("name" | "policy", Kind::Scalar { .. }) => {
                        let (name, given) = spelled(value)?;
                        all.0 = name;
                        all.1.splice(0..0, given);
                    }
                    ("params", Kind::Map(params)) => {
                        let params = params.iter().map(|(name, _, value)| (name, value));
                        all.1.extend(params.map(|(name, value)| (name.clone(), value.clone())));
                    }
                    _ => return illegal(value),
                }
            }
            if all.0.is_empty() { illegal(node) } else { Ok(all) }
        }
        Kind::Null | Kind::List(_) | Kind::Broken => illegal(node),
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
