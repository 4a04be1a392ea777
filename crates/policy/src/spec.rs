//! How a policy introduces itself, and how its text becomes a policy.
//!
//! Everywhere (flags, scenario files, studies) a policy is spelled `name` or
//! `name[parameter=value,...]`, by its name or its alias. `chosen` calls this file for every kind.
//! It must never panic, whatever the text.

use crate::view::{Needs, PerClass};
use blis_core::param::ParamError;
use blis_core::{Param, Span, Values};

/// Names longer than this are not compared with the known ones: nothing is near them.
const LONGEST_NAME: usize = 64;
/// The least Jaro-Winkler similarity that is worth a hint.
const NEAR: f64 = 0.75;

/// What a policy may know of the cluster when it is built.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Cluster {
    /// Number of instances.
    pub instances: u32,
    /// KV blocks of one instance.
    pub blocks: u32,
    /// Tokens of one block.
    pub block_size: u32,
    /// Most requests that an instance runs at once.
    pub max_running: u32,
    /// Tokens that an instance computes in a step at most.
    pub token_budget: u32,
    /// How long its steps take, roughly.
    pub step: StepCost,
    /// The time to first token that each class was promised, by `SloClass::index`.
    pub ttft_targets: PerClass<Option<Span>>,
}

/// A straight line through the step times of an engine: what a gateway can know of them, from
/// having watched. Policies that predict latencies use it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct StepCost {
    /// Of any step, in us.
    pub base_us: f64,
    /// Of each prompt token computed, in us.
    pub prefill_token_us: f64,
    /// Of each request that generates a token, in us.
    pub decode_us: f64,
}

impl Cluster {
    /// A cluster of one small instance, for tests to vary: the steps of an 8B model on two H100.
    pub const SMALL: Cluster = Cluster {
        instances: 1,
        blocks: 100,
        block_size: 16,
        max_running: 256,
        token_budget: 2_048,
        step: StepCost { base_us: 6_910.0, prefill_token_us: 17.67, decode_us: 2.84 },
        ttft_targets: [None; 5],
    };
}

/// A policy's introduction. `P` is the contract it fulfils, e.g. `dyn Order`.
pub struct Spec<P: ?Sized> {
    /// Spelling in files and flags: lower case, hyphens; the file is named like it, with
    /// underscores.
    pub name: &'static str,
    /// Short spelling, e.g. `pa`.
    pub alias: Option<&'static str>,
    /// One sentence: what it prefers.
    pub help: &'static str,
    /// Its parameters.
    pub params: &'static [Param],
    /// What it reads, given its parameters.
    pub needs: fn(&Values) -> Needs,
    /// Makes one.
    pub build: fn(&Values, &Cluster) -> Box<P>,
}

impl<P: ?Sized> Spec<P> {
    /// A policy made by `build`, with neither alias nor parameters, that reads nothing; its file
    /// says the rest.
    pub const fn built_by(build: fn(&Values, &Cluster) -> Box<P>) -> Spec<P> {
        Spec { name: "", alias: None, help: "", params: &[], needs: |_| Needs::NONE, build }
    }
}

#[cfg(test)]
impl<P: ?Sized> Spec<P> {
    /// One for tests: in a small cluster, with these parameters.
    pub(crate) fn made(&self, given: &[(&'static str, &'static str)]) -> Box<P> {
        let values = Values::parse(self.params, given.iter().copied()).expect("legal");
        (self.build)(&values, &Cluster::SMALL)
    }
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
    /// A composition of admission policies is not `name(policy; ...)`.
    #[error(
        "admission policy `{text}`: {problem}; write e.g. `all-of(slo-gated[threshold=8]; kv-gate)`"
    )]
    Composition {
        /// What was found.
        text: String,
        /// What is wrong with it.
        problem: String,
    },
    /// A list of weighted scorers is not `scorer:weight,...`, or its weights make no sense.
    #[error("scorers `{text}`: {problem}; write `scorer:weight,...`, e.g. `{example}`")]
    Weights {
        /// A list that makes sense.
        example: &'static str,
        /// What was found.
        text: String,
        /// What is wrong with it.
        problem: String,
    },
    /// A setting was given that nothing of the chosen strategy reads.
    #[error("`{setting}` is given, but {reader} does not read it{remedy}")]
    Unread {
        /// The setting, e.g. `scorers`.
        setting: &'static str,
        /// Who would have to read it, e.g. "routing policy `random`".
        reader: String,
        /// What would make it useful; empty, or starts with "; ".
        remedy: &'static str,
    },
    /// A setting was given that none of those reads who could.
    #[error("`{setting}` is given, but none of {readers} reads it; {remedy}")]
    NobodyReads {
        /// The setting, e.g. `priority`.
        setting: &'static str,
        /// Who could, e.g. "the scorers `qd:1`".
        readers: String,
        /// What would make it useful.
        remedy: &'static str,
    },
}

impl PolicyError {
    /// The kind of policy or the setting that is at fault, as the error calls it.
    pub fn part(&self) -> &'static str {
        match self {
            PolicyError::Unknown { kind, .. }
            | PolicyError::Param { kind, .. }
            | PolicyError::Syntax { kind, .. } => kind,
            PolicyError::Composition { .. } => "admission policy",
            PolicyError::Weights { .. } => "scorer",
            PolicyError::Unread { setting, .. } | PolicyError::NobodyReads { setting, .. } => {
                setting
            }
        }
    }
}

fn hint(nearest: Option<&&'static str>) -> String {
    nearest.map_or_else(String::new, |name| format!(", did you mean `{name}`?"))
}

/// A policy's text taken apart; nothing is looked up yet.
pub(crate) struct Parsed<'a> {
    /// The name or alias.
    pub(crate) name: &'a str,
    /// The parameters as written.
    pub(crate) given: Vec<(&'a str, &'a str)>,
}

/// Takes `text` apart into a name and its parameters.
pub(crate) fn parse<'a>(kind: &'static str, text: &'a str) -> Result<Parsed<'a>, PolicyError> {
    let wrong = |problem: String| PolicyError::Syntax { kind, text: text.to_owned(), problem };
    let text = text.trim();
    let (name, inside) = match text.split_once('[') {
        None => (text, None),
        Some((name, rest)) => {
            let inside = rest
                .strip_suffix(']')
                .ok_or_else(|| wrong("`[` without a `]` at the end".to_owned()))?;
            (name.trim_end(), Some(inside))
        }
    };
    if name.is_empty() {
        return Err(wrong("the name is missing".to_owned()));
    }
    if let Some(stray) = name.chars().find(|c| "],=:".contains(*c)) {
        return Err(wrong(format!("stray `{stray}`")));
    }
    let pair = |part: &'a str| {
        let (parameter, value) = part
            .split_once('=')
            .ok_or_else(|| wrong(format!("`{}` is not `parameter=value`", part.trim())))?;
        Ok((parameter.trim(), value.trim()))
    };
    let given = match inside {
        None => Vec::new(),
        Some(inside) => items(inside).map(pair).collect::<Result<_, _>>()?,
    };
    Ok(Parsed { name, given })
}

/// The parts of `text` between the commas that are not inside brackets or parentheses.
pub(crate) fn items(text: &str) -> impl Iterator<Item = &str> {
    let mut depth = 0_usize;
    text.split(move |c| {
        match c {
            '[' | '(' => depth += 1,
            ']' | ')' => depth = depth.saturating_sub(1),
            _ => {}
        }
        c == ',' && depth == 0
    })
}

/// The spelling nearest to `name`, if any is near enough to be what was meant.
pub(crate) fn nearest(
    name: &str,
    spellings: impl Iterator<Item = &'static str>,
) -> Option<&'static str> {
    if name.len() > LONGEST_NAME {
        return None;
    }
    let likeness = |known: &'static str| {
        // Aliases have two letters, for which Jaro-Winkler knows only "equal" and "different".
        let close = strsim::damerau_levenshtein(name, known) <= known.len() / 4;
        let likeness = strsim::jaro_winkler(name, known);
        (close || likeness > NEAR).then_some((known, likeness))
    };
    let best = spellings.filter_map(likeness).reduce(
        |best, next| {
            if next.1 > best.1 { next } else { best }
        },
    );
    best.map(|(known, _)| known)
}
