//! How a policy introduces itself, and how its text becomes a policy.
//!
//! Everywhere (flags, scenario files, studies) a policy is spelled `name` or
//! `name[parameter=value,...]`, by its name or its alias. `build` calls this file for every kind.
//! It must never panic, whatever the text.

use crate::view::{Needs, PerClass};
use blis_core::param::ParamError;
use blis_core::{Param, Span, Values};
use std::fmt;

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
    /// Blocks of the CPU tier behind them; 0: none.
    pub cpu_blocks: u32,
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
        cpu_blocks: 0,
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

#[cfg(test)]
impl<P: ?Sized> Spec<P> {
    /// One for tests: in a small cluster, with these parameters.
    pub(crate) fn made(&self, given: &[(&'static str, &'static str)]) -> Box<P> {
        let values = Values::parse(self.params, given.iter().copied()).expect("legal");
        (self.build)(&values, &Cluster::SMALL)
    }
}

/// A policy made from its text.
pub struct Built<P: ?Sized> {
    /// The policy.
    pub policy: Box<P>,
    /// What it reads.
    pub needs: Needs,
    /// Its full spelling: the name, and every parameter that differs from its default; for routers
    /// made of them, filters, scorers and picker. Equal spellings decide equally.
    pub canonical: String,
}

impl<P: ?Sized> fmt::Debug for Built<P> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Built").field(&self.canonical).finish()
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

/// The policy of `registry` whose name or alias is `name`.
///
/// # Errors
/// If there is none; the error carries the nearest name.
pub fn find<'r, P: ?Sized>(
    kind: &'static str,
    registry: &[&'r Spec<P>],
    name: &str,
) -> Result<&'r Spec<P>, PolicyError> {
    let named = |spec: &&&Spec<P>| spec.name == name || spec.alias == Some(name);
    if let Some(spec) = registry.iter().find(named) {
        return Ok(spec);
    }
    let spellings = registry.iter().flat_map(|spec| [Some(spec.name), spec.alias]).flatten();
    Err(PolicyError::Unknown {
        kind,
        name: name.to_owned(),
        known: registry.iter().map(|spec| spec.name).collect(),
        nearest: nearest(name, spellings),
    })
}

/// The policy that `text` spells, checked and made.
///
/// # Errors
/// If the text is malformed, the name unknown, or a parameter unknown, repeated or out of range.
pub fn build_from_text<P: ?Sized>(
    kind: &'static str,
    registry: &[&Spec<P>],
    text: &str,
    cluster: &Cluster,
) -> Result<Built<P>, PolicyError> {
    let parsed = parse(kind, text)?;
    build_spec(kind, find(kind, registry, parsed.name)?, &parsed.given, cluster)
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
        Some(inside) => inside.split(',').map(pair).collect::<Result<_, _>>()?,
    };
    Ok(Parsed { name, given })
}

/// Makes the policy of `spec` with the parameters `given`.
pub(crate) fn build_spec<P: ?Sized>(
    kind: &'static str,
    spec: &Spec<P>,
    given: &[(&str, &str)],
    cluster: &Cluster,
) -> Result<Built<P>, PolicyError> {
    let values = values(kind, spec, given)?;
    Ok(Built {
        policy: (spec.build)(&values, cluster),
        needs: (spec.needs)(&values),
        canonical: canonical(spec.name, &values),
    })
}

/// The parameters of `spec` with what is `given`.
pub(crate) fn values<P: ?Sized>(
    kind: &'static str,
    spec: &Spec<P>,
    given: &[(&str, &str)],
) -> Result<Values, PolicyError> {
    values_of(kind, spec.name, spec.params, given)
}

/// The parameters `params` of the policy `name` with what is `given`.
pub(crate) fn values_of(
    kind: &'static str,
    name: &'static str,
    params: &'static [Param],
    given: &[(&str, &str)],
) -> Result<Values, PolicyError> {
    Values::parse(params, given.iter().copied()).map_err(|source| PolicyError::Param {
        kind,
        name,
        source,
    })
}

/// `name`, or `name[parameter=value,...]` with the parameters that differ from their defaults.
pub(crate) fn canonical(name: &str, values: &Values) -> String {
    let changed: Vec<String> = values
        .iter()
        .filter(|(param, value)| **value != param.kind.default_value())
        .map(|(param, value)| format!("{}={value}", param.name))
        .collect();
    if changed.is_empty() { name.to_owned() } else { format!("{name}[{}]", changed.join(",")) }
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{admission, routing};

    const CLUSTER: Cluster = Cluster { instances: 2, ..Cluster::SMALL };

    fn canonical_of(text: &str) -> Result<String, String> {
        build_from_text("admission policy", admission::ALL, text, &CLUSTER)
            .map(|built| built.canonical)
            .map_err(|error| error.to_string())
    }

    #[test]
    fn the_canonical_spelling_names_what_differs_from_the_defaults() {
        for (text, canonical) in [
            ("always-admit", "always-admit"),
            (" token-bucket ", "token-bucket"),
            ("token-bucket[capacity=10000]", "token-bucket"),
            ("token-bucket[refill-rate=5, capacity = 1e4]", "token-bucket[refill-rate=5]"),
            (
                "token-bucket[refill-rate=0.5,capacity=7]",
                "token-bucket[capacity=7,refill-rate=0.5]",
            ),
        ] {
            assert_eq!(canonical_of(text).as_deref(), Ok(canonical), "{text}");
        }
    }

    #[test]
    fn malformed_texts_are_refused_with_what_is_wrong() {
        for (text, complaint) in [
            ("", "the name is missing"),
            ("[capacity=1]", "the name is missing"),
            ("token-bucket[capacity=1", "without a `]`"),
            ("token-bucket[capacity=1]x", "without a `]`"),
            ("token-bucket]", "stray `]`"),
            ("token-bucket[]", "`` is not `parameter=value`"),
            ("token-bucket[capacity]", "`capacity` is not `parameter=value`"),
            ("token-bucket[capacity=1,capacity=2]", "given twice"),
            ("token-bucket[capacity=0]", "a number from 1 to"),
            ("token-bucket[rate=1]", "known: `capacity`, `refill-rate`"),
            ("always-admit[x=1]", "this policy has none"),
            ("token-buckt", "did you mean `token-bucket`?"),
        ] {
            let error = canonical_of(text).expect_err(text);
            assert!(error.contains(complaint), "{text}: {error}");
        }
    }

    #[test]
    fn a_misspelt_name_gets_the_nearest_known_one() {
        let nearest = |name: &str| match find("scorer", routing::scorers::ALL, name).err() {
            Some(PolicyError::Unknown { nearest, .. }) => nearest,
            other => panic!("{name}: {other:?}"),
        };
        assert_eq!(nearest("prefix_affinity"), Some("prefix-affinity"));
        assert_eq!(nearest("queuedepth"), Some("queue-depth"));
        assert_eq!(nearest("kv-utilisation"), Some("kv-utilization"));
        assert_eq!(nearest("zzz"), None);
        assert_eq!(nearest(&"q".repeat(100_000)), None);
    }
}
