//! Strategies as files: what a search found, ready to be chosen by name of the file.

use super::{Parameter, ParameterKind, Strategy};
use crate::yaml::{self, Kind, quoted};
use std::fmt::Write;

impl Strategy {
    /// Its file under another name, in which the parameters that are `given` have these defaults.
    pub fn text(&self, name: &str, given: &[(String, String)]) -> String {
        let mut out = format!("name: {}\nhelp: {}\n", quoted(name), quoted(&self.help));
        if !self.parameters.is_empty() {
            out += "parameters:\n";
        }
        for parameter in &self.parameters {
            let value = given.iter().rev().find(|(name, _)| *name == parameter.name);
            let value = value.map_or(&parameter.default, |(_, value)| value);
            let Parameter { name, kind, help, .. } = parameter;
            let (value, help) = (scalar(value), quoted(help));
            let range = range(kind);
            writeln!(out, "  {}: {{default: {value}, {range}, help: {help}}}", quoted(name))
                .expect("text can grow");
        }
        out += "set:\n";
        if let Kind::Map(fields) = &self.template.kind {
            for (part, _, value) in fields {
                writeln!(out, "  {part}: {}", value.to_json()).expect("text can grow");
            }
        }
        out
    }
}

fn range(kind: &ParameterKind) -> String {
    match kind {
        ParameterKind::Float { min, max, log } => {
            format!("min: {min}, max: {max}{}", if *log { ", kind: log" } else { "" })
        }
        ParameterKind::Int { min, max } => format!("min: {min}, max: {max}, kind: int"),
        ParameterKind::Choice(choices) => {
            let choices: Vec<String> = choices.iter().map(|choice| quoted(choice)).collect();
            format!("choices: [{}]", choices.join(", "))
        }
    }
}

/// Numbers as they are, words in quotes.
fn scalar(text: &str) -> String {
    if yaml::float(text).is_some() { text.to_owned() } else { quoted(text) }
}
