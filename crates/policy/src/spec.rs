//! How a policy introduces itself, and how names are looked up.

use crate::view::Needs;
use blis_core::param::ParamError;
use blis_core::{Param, Values};

/// What a policy may know of the cluster when it is built.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cluster {
    /// Number of instances.
    pub instances: u32,
    /// KV blocks of one instance.
    pub blocks: u32,
    /// Tokens of one block.
    pub block_size: u32,
}

/// A policy's introduction. `P` is the contract it fulfils, e.g. `dyn Order`.
pub struct Spec<P: ?Sized> {
    /// Spelling in files and flags: lower case, hyphens; the file is named like it, with underscores.
    pub name: &'static str,
    /// Short spelling, e.g. `pa`.
    pub alias: Option<&'static str>,
    /// One sentence: what it prefers.
    pub help: &'static str,
    /// Its parameters.
    pub params: &'static [Param],
    /// The polled values it reads.
    pub needs: Needs,
    /// Makes one.
    pub build: fn(&Values, &Cluster) -> Box<P>,
}

/// Why a policy could not be made.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum PolicyError {
    /// No policy of this kind has that name.
    #[error("unknown {kind} `{name}`{}; known: `{}`", hint(.nearest.as_ref()), .known.join("`, `"))]
    Unknown {
        /// The kind, e.g. `scorer`.
        kind: &'static str,
        /// What was asked for.
        name: String,
        /// What there is.
        known: Vec<&'static str>,
        /// The nearest name, if any is near.
        nearest: Option<&'static str>,
    },
    /// A parameter was refused.
    #[error("{kind} `{name}`: {source}")]
    Param {
        /// The kind.
        kind: &'static str,
        /// The policy.
        name: &'static str,
        /// Why.
        source: ParamError,
    },
    /// The policy's text is not `name` or `name[parameter=value,...]`.
    #[error("{kind} `{text}`: {problem}; write `name` or `name[parameter=value,...]`")]
    Syntax {
        /// The kind.
        kind: &'static str,
        /// What was found.
        text: String,
        /// What is wrong with it.
        problem: String,
    },
}

fn hint(nearest: Option<&&'static str>) -> String {
    nearest.map_or_else(String::new, |name| format!(", did you mean `{name}`?"))
}
