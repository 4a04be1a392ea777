//! The parameters of a strategy: what they may be, and what they are if nobody says.

use crate::problem::{Problem, quoted};
use crate::problems::{Problems, every};
use crate::yaml::{self, Kind, Node};
use serde::Deserialize;

/// A number of a strategy, or a choice.
#[derive(Clone, Debug, PartialEq)]
pub struct Parameter {
    /// Its name.
    pub name: String,
    /// What it may be.
    pub kind: ParameterKind,
    /// What it is if nobody says, as text.
    pub default: String,
    /// What it means.
    pub help: String,
}

/// What a parameter may be.
#[derive(Clone, Debug, PartialEq)]
pub enum ParameterKind {
    /// A number.
    Float {
        /// Least legal value.
        min: f64,
        /// Greatest legal value.
        max: f64,
        /// Whether it is searched by its logarithm.
        log: bool,
    },
    /// A whole number.
    Int {
        /// Least legal value.
        min: u64,
        /// Greatest legal value.
        max: u64,
    },
    /// One of a few words.
    Choice(Vec<String>),
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Fields {
    default: String,
    help: String,
    #[serde(default)]
    min: Option<String>,
    #[serde(default)]
    max: Option<String>,
    #[serde(default)]
    kind: Option<String>,
    #[serde(default)]
    choices: Option<Vec<String>>,
}

/// All parameters of the strategy in `tree`, in the order of the file.
pub(super) fn read_all(tree: &Node) -> Result<Vec<Parameter>, Problems> {
    let fields = match tree.field("parameters").map(|node| &node.kind) {
        None | Some(Kind::Null) => return Ok(Vec::new()),
        Some(Kind::Map(fields)) => fields,
        Some(_) => {
            let message = "legal: names, each with `default`, `min`, `max` and `help`";
            return Err(tree.problem("parameters", message));
        }
    };
    every(fields.iter().map(|(name, _, node)| read(name, node)))
}

fn read(name: &str, node: &Node) -> Result<Parameter, Problems> {
    let path = format!("parameters.{name}");
    let wrong =
        |message: String| Problems::from(Problem::new(node.place.clone(), path.clone(), message));
    let fields: Fields = yaml::decode(node).map_err(|problems| {
        problems.map(|problem| Problem { path: format!("{path}.{}", problem.path), ..problem })
    })?;
    let kind = match (&fields.choices, fields.kind.as_deref(), &fields.min, &fields.max) {
        (Some(choices), None, None, None) => ParameterKind::Choice(choices.clone()),
        (None, kind @ (None | Some("log")), Some(min), Some(max)) => {
            let log = kind.is_some();
            let number = |text: &String| yaml::float(text).filter(|x| !log || *x > 0.0);
            match (number(min), number(max)) {
                (Some(min), Some(max)) if min < max => ParameterKind::Float { min, max, log },
                _ => return Err(wrong("`min` and `max` are not a range of numbers".to_owned())),
            }
        }
        (None, Some("int"), Some(min), Some(max)) => match (yaml::whole(min), yaml::whole(max)) {
            (Some(min), Some(max)) if min < max => ParameterKind::Int { min, max },
            _ => return Err(wrong("`min` and `max` are not a range of whole numbers".to_owned())),
        },
        _ => {
            let legal = "`min` and `max` with or without `kind: int` or `kind: log`, or `choices`";
            return Err(wrong(format!("legal: {legal}")));
        }
    };
    let parameter =
        Parameter { name: name.to_owned(), kind, default: fields.default, help: fields.help };
    if !parameter.allows(&parameter.default) {
        let Parameter { default, .. } = &parameter;
        return Err(wrong(format!("its default is `{default}`; legal: {}", parameter.legal())));
    }
    Ok(parameter)
}

impl Parameter {
    /// Refuses a value that is not legal.
    pub(super) fn check(&self, node: &Node) -> Result<(), Problem> {
        let text = match &node.kind {
            Kind::Scalar { text, .. } => text.trim(),
            _ => "",
        };
        if self.allows(text) {
            return Ok(());
        }
        let path = format!("strategy.{}", self.name);
        let message = format!("`{}` is `{text}`; legal: {}", self.name, self.legal());
        Err(Problem::new(node.place.clone(), path, message))
    }

    /// Whether `text` is a legal value.
    pub fn allows(&self, text: &str) -> bool {
        match &self.kind {
            ParameterKind::Float { min, max, .. } => {
                yaml::float(text).is_some_and(|x| x >= *min && x <= *max)
            }
            ParameterKind::Int { min, max } => {
                yaml::whole(text).is_some_and(|n| n >= *min && n <= *max)
            }
            ParameterKind::Choice(choices) => choices.iter().any(|choice| choice == text),
        }
    }

    /// What is legal, in words.
    pub fn legal(&self) -> String {
        match &self.kind {
            ParameterKind::Float { min, max, .. } => format!("a number from {min} to {max}"),
            ParameterKind::Int { min, max } => format!("a whole number from {min} to {max}"),
            ParameterKind::Choice(choices) => quoted(choices),
        }
    }
}
