//! A policy of a plan as exports look at it: its kind, its name and its parameters.

use blis_core::Values;
use blis_policy::{Chosen, Policy};

/// A policy with its parameters.
#[derive(Clone, Debug)]
pub(super) struct Spelled {
    pub(super) kind: &'static str,
    pub(super) name: String,
    values: Values,
}

impl Spelled {
    /// The policy of `kind` that was chosen.
    pub(super) fn of<P: Policy + ?Sized>(kind: &'static str, chosen: &Chosen<P>) -> Spelled {
        Spelled { kind, name: chosen.name().to_owned(), values: chosen.values().clone() }
    }

    /// The same; `oracle`, if there is one, decides instead.
    pub(super) fn or_oracle<P: Policy + ?Sized>(
        kind: &'static str,
        chosen: &Chosen<P>,
        oracle: Option<String>,
    ) -> Spelled {
        match oracle {
            Some(name) => Spelled { kind, name, values: Values::defaults(&[]) },
            None => Spelled::of(kind, chosen),
        }
    }

    /// What it is, for comments.
    pub(super) fn part(&self) -> String {
        format!("{} `{}`", self.kind, self.name)
    }

    /// The value of a parameter as text.
    pub(super) fn value(&self, name: &str) -> String {
        self.value_of(name).unwrap_or_else(|| panic!("`{}` has no `{name}`", self.name))
    }

    /// The value of a parameter, if the policy has it.
    pub(super) fn value_of(&self, name: &str) -> Option<String> {
        let value = self.values.iter().find(|(param, _)| param.name == name);
        value.map(|(_, value)| value.to_string())
    }

    /// The value of a number; `None` for `auto`.
    pub(super) fn number(&self, name: &str) -> Option<f64> {
        self.value(name).parse().ok()
    }
}
