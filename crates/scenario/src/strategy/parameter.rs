//! The parameters of a strategy: what they may be, and what they are if nobody says.

use crate::problem::quoted;
use crate::problems::Problems;
use crate::yaml::{self, Node};
use schemars::JsonSchema;
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

/// A parameter as written.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct ParameterFields {
    default: String,
    help: String,
    min: Option<String>,
    max: Option<String>,
    kind: Option<String>,
    choices: Option<Vec<String>>,
}

/// The parameter `name` of the strategy in `tree`.
pub(super) fn read(
    tree: &Node,
    name: &str,
    fields: &ParameterFields,
) -> Result<Parameter, Problems> {
    let wrong = |message: String| tree.problem(format!("parameters.{name}"), message);
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
    let (default, help) = (fields.default.clone(), fields.help.clone());
    let parameter = Parameter { name: name.to_owned(), kind, default, help };
    if !parameter.allows(&parameter.default) {
        let Parameter { default, .. } = &parameter;
        return Err(wrong(format!("its default is `{default}`; legal: {}", parameter.legal())));
    }
    Ok(parameter)
}

impl Parameter {
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
