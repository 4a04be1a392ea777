//! Scenarios: everything that defines a run, as a file, as flags, or both.
//!
//! A [`Draft`] is what was written: the file's tree with the flags set into it. [`Draft::resolve`]
//! checks all of it, fills the defaults and gives a [`Plan`], from which runs are built. Nothing is
//! simulated before everything is checked, and a flag is the same thing as the field it stands for.

pub(crate) mod canonical;
mod cost;
pub mod flags;
mod latency;
mod machine;
pub mod oracles;
mod plan;
pub(crate) mod policies;
mod resolve;
pub mod schema;
mod speculation;
#[cfg(test)]
mod tests;
pub mod tier;
mod workload;

pub use oracles::Oracles;
pub use plan::{Plan, Trial, Workload};

use crate::files::Files;
use crate::problem::Place;
use crate::problems::{Problems, Together};
use crate::rate::{RateSpec, Written};
use crate::strategy;
use crate::yaml::{self, Kind, Node};
use blis_policy::Guests;
use std::path::{Path, PathBuf};

/// A scenario as it was written, not yet checked.
#[derive(Clone, Debug)]
pub struct Draft {
    tree: Node,
    guests: Guests,
}

/// A scenario that was checked, whose rate may still be a share of a saturation that nobody has
/// measured; see [`Checked::settle`].
#[derive(Clone, Debug)]
pub struct Checked {
    pub(crate) plan: Plan,
    pub(crate) rate: Option<Written>,
}

impl Checked {
    /// The plan as far as it is known: its rate is not, if it is a share of saturation.
    pub fn plan(&self) -> &Plan {
        &self.plan
    }

    /// What it means: its text, and a rate that is a share of saturation as it was written.
    pub fn meaning(&self) -> (String, Option<RateSpec>) {
        let Checked { plan, rate } = self;
        (canonical::canonical(plan), rate.as_ref().map(|written| written.rate.clone()))
    }
}

/// The kinds of workload, by their field under `workload`.
const WORKLOAD_KINDS: [&str; 5] = ["preset", "spec", "trace", "distribution", "mix"];

impl Default for Draft {
    fn default() -> Draft {
        Draft::from_tree(Node::empty())
    }
}

impl Draft {
    /// The scenario in the file `path`.
    ///
    /// # Errors
    /// If the file cannot be read or is not well-formed YAML.
    pub fn read(path: &Path) -> Result<Draft, Problems> {
        Ok(Draft::from_tree(yaml::read_file(path)?))
    }

    /// The scenario in `text`, as if it stood in a file called `name`.
    ///
    /// # Errors
    /// If it is not well-formed YAML.
    pub fn from_text(name: &str, text: &str) -> Result<Draft, Problems> {
        Ok(Draft::from_tree(yaml::read_text(name, text)?))
    }

    /// The scenario in `tree`.
    pub fn from_tree(tree: Node) -> Draft {
        Draft { tree, guests: Guests::default() }
    }

    /// The same, whose policies may be `guests` too.
    #[must_use]
    pub fn with_guests(self, guests: Guests) -> Draft {
        Draft { guests, ..self }
    }

    /// The scenario as a tree.
    pub fn into_tree(self) -> Node {
        self.tree
    }

    /// Sets the field at `path` (`a.b.c`) to what `flag` says.
    pub fn set(&mut self, flag: &str, path: &str, text: &str) {
        let steps: Vec<&str> = path.split('.').collect();
        self.tree.set(&steps, Node::from_flag(flag, text));
    }

    /// Sets the field at `path` to the comma-separated list that `flag` says.
    pub fn set_list(&mut self, flag: &str, path: &str, text: &str) {
        let steps: Vec<&str> = path.split('.').collect();
        let items: Vec<&str> = text.split(',').collect();
        self.tree.set(&steps, Node::list_from_flag(flag, &items));
    }

    /// Sets the policy of `kind` (e.g. `routing`) to what `flag` says. Settings of another policy
    /// that stood there go with it; those of the same policy stay.
    pub fn set_policy(&mut self, flag: &str, kind: &str, text: &str) {
        set_policy(&mut self.tree, kind, Node::from_flag(flag, text));
    }

    /// Chooses the strategy that `flag` says; the policies that were there go.
    pub fn choose_strategy(&mut self, flag: &str, text: &str) {
        strategy::choose(&mut self.tree, Node::from_flag(flag, text));
    }

    /// Chooses the kind of workload (`preset`, `spec`, `trace` or `distribution`) and drops all
    /// others, because the command line wins. `text` is the name of a `preset` or the path of a
    /// `spec` or `trace`.
    pub fn choose_workload(&mut self, flag: &str, kind: &str, text: Option<&str>) {
        let mut workload = self.tree.field("workload").cloned().unwrap_or_else(Node::empty);
        for other in WORKLOAD_KINDS.into_iter().filter(|other| *other != kind) {
            workload.remove(other);
        }
        if let Some(text) = text {
            workload.set(&[kind], Node::from_flag(flag, text));
        }
        self.tree.set(&["workload"], workload);
    }

    /// Sets the rate (`rate`) or the number of requests (`num_requests`) of whichever workload
    /// there is.
    pub fn set_amount(&mut self, flag: &str, field: &str, text: &str) {
        let workload = self.tree.field("workload");
        let has = |kind: &str| workload.is_some_and(|workload| workload.field(kind).is_some());
        let path = match field {
            "rate" if has("mix") => "workload.mix.aggregate_rate".to_owned(),
            _ if has("mix") => format!("workload.mix.{field}"),
            _ if has("preset") || has("spec") || has("trace") => format!("workload.{field}"),
            _ => format!("workload.distribution.{field}"),
        };
        self.set(flag, &path, text);
    }

    /// The same without its workload, for those who want its policies and engine alone.
    #[must_use]
    pub fn without_workload(&self) -> Draft {
        let mut tree = self.tree.clone();
        tree.remove("workload");
        Draft { tree, guests: self.guests.clone() }
    }

    /// The files that it is read from, besides the scenario file itself.
    pub fn workload_files(&self) -> Vec<PathBuf> {
        workload::files(&self.tree)
    }

    /// Checks everything and fills the defaults.
    ///
    /// # Errors
    /// All that is unknown, illegal, contradictory or not supported.
    pub fn resolve(&self) -> Result<Checked, Problems> {
        self.resolve_with(&Files::default())
    }

    /// The same; what was read from `files` before is not read again.
    ///
    /// # Errors
    /// Like [`Draft::resolve`].
    pub fn resolve_with(&self, files: &Files) -> Result<Checked, Problems> {
        let expanded = strategy::expand(&self.tree);
        let tree = expanded.as_ref().map_or_else(|_| self.without_strategy(), Node::clone);
        let checked = resolve::resolve(&tree, &self.guests, files);
        Ok((expanded, checked).together()?.1)
    }

    /// The tree, in which nobody knows what the strategy sets.
    fn without_strategy(&self) -> Node {
        let mut tree = self.tree.clone();
        tree.set(&[strategy::FIELD], Node { place: Place::Unknown, kind: Kind::Broken });
        tree
    }
}

/// Sets the policy of `kind` to `value`, like [`Draft::set_policy`].
fn set_policy(tree: &mut Node, kind: &str, value: Node) {
    let name = |node: &Node| match &node.kind {
        Kind::Scalar { text, .. } => text.split('[').next().map(|name| name.trim().to_owned()),
        _ => None,
    };
    strategy::formula::spell_out(tree);
    let old = tree.field(kind).and_then(|node| name(node.field("policy").unwrap_or(node)));
    if old.is_some() && old != name(&value) {
        tree.remove(kind);
    }
    tree.set(&[kind, "policy"], value);
}
