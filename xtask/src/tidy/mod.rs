//! House rules that neither the compiler nor clippy checks, in one function that lists what is
//! wrong.
//!
//! `cargo xtask tidy` prints the list; a test of this crate asserts that it is empty, so that
//! `cargo test --workspace` is all there is to run. Each rule has a test that shows it can fail.

mod cycles;
mod documents;
mod figures;
mod firewall;
mod layers;
mod manifest;
mod modules;
mod policies;
mod text;

use crate::tree::Tree;
use std::fmt;
use std::path::Path;

/// A rule of the house.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rule {
    /// Crates import only crates below them.
    Layers,
    /// The modules of a crate do not import one another in a circle.
    Cycles,
    /// serde stays at the edges.
    Serde,
    /// Only the binary prints, exits, or reads a clock or the environment.
    World,
    /// A file has at most 500 lines without its tests.
    Length,
    /// A line has at most 100 columns.
    Columns,
    /// No tabs, no trailing whitespace.
    Whitespace,
    /// A Rust file begins by saying what it is.
    Header,
    /// Unfinished code and test attributes that hide failures.
    Banned,
    /// No path of one machine.
    Paths,
    /// No host of a package registry.
    Hosts,
    /// Every Rust file is compiled.
    DeadFiles,
    /// A policy's file, name and header agree.
    PolicyFiles,
    /// The generated reference is up to date.
    Reference,
    /// The changelog has a section for what is being built.
    Changelog,
    /// Relative links lead somewhere.
    Links,
    /// Rust samples in documents are compiled.
    Samples,
    /// Quoted figures of studies are those of their pages.
    Figures,
    /// Every dependency has a written reason.
    Decisions,
}

/// Something that breaks a rule.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Finding {
    rule: Rule,
    path: String,
    /// From 1; 0 where the file as a whole is meant.
    line: usize,
    message: String,
}

impl Finding {
    fn new(rule: Rule, path: &str, line: usize, message: impl Into<String>) -> Finding {
        Finding { rule, path: path.to_owned(), line, message: message.into() }
    }
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.path)?;
        if self.line > 0 {
            write!(f, ":{}", self.line)?;
        }
        write!(f, ": {} [{:?}]", self.message, self.rule)
    }
}

const CHECKS: &[fn(&Tree) -> Vec<Finding>] = &[
    layers::check,
    cycles::check,
    firewall::check,
    text::check,
    modules::check,
    policies::check,
    documents::check,
    figures::check,
];

/// Lists everything under `root` that breaks a rule: `path:line: what to do [rule]`.
pub fn check(root: &Path) -> Vec<String> {
    let tree = Tree::read(root);
    let mut findings: Vec<Finding> = CHECKS.iter().flat_map(|check| check(&tree)).collect();
    for page in crate::reference::PAGES {
        findings.extend(documents::check_reference(&tree, page.place, &(page.make)()));
    }
    findings.sort_by(|a, b| (&a.path, a.line).cmp(&(&b.path, b.line)));
    findings.iter().map(ToString::to_string).collect()
}
