//! Admission policies that were chosen, alone or composed: `all-of(slo-gated; any-of(kv-gate;
//! token-bucket))`.
//!
//! It must never panic, whatever the text.

use crate::admission::{all_of, any_of, flow_control};
use crate::chosen::guest::Guests;
use crate::chosen::{Chosen, Policy, find};
use crate::contract::Admission;
use crate::spec::{Cluster, PolicyError, parse};
use crate::view::Needs;
use std::fmt;

/// How deep compositions may be nested, and how many members they may have.
const DEEPEST: u32 = 4;
const MOST_MEMBERS: usize = 16;

/// An admission policy, or a composition of some.
#[derive(Clone, Debug)]
pub enum Gate {
    /// One that decides itself.
    One(Chosen<dyn Admission>),
    /// `all-of` or `any-of`, and its members.
    Composed(Chosen<dyn Admission>, Vec<Gate>),
}

impl Gate {
    /// The gate that `text` spells: `name`, `name[parameter=value,...]` or `name(gate; ...)`, with
    /// the parameters `more` besides. Any may be one of `guests`.
    ///
    /// # Errors
    /// If the text is malformed, names what does not exist, or is nested too deeply.
    pub fn new(
        text: &str,
        more: &[(String, String)],
        guests: &Guests,
    ) -> Result<Gate, PolicyError> {
        Gate::nested(text, more, guests, DEEPEST)
    }

    fn nested(
        text: &str,
        more: &[(String, String)],
        guests: &Guests,
        depth: u32,
    ) -> Result<Gate, PolicyError> {
        let wrong = |problem: String| PolicyError::Composition { text: text.to_owned(), problem };
        let text = text.trim();
        let composed = text.find('(').filter(|open| !text[..*open].contains('['));
        let Some(open) = composed else {
            let name = parse(<dyn Admission>::KIND, text)?.name;
            if is_composition(name) {
                return Err(wrong(format!("`{name}` needs members")));
            }
            if name == flow_control::SPEC.name && depth < DEEPEST {
                return Err(wrong(format!("`{name}` holds requests, so it stands alone")));
            }
            return Chosen::new(text, more, guests).map(Gate::One);
        };
        let spec = find::<dyn Admission>(text[..open].trim(), Policy::of(guests))?;
        if !is_composition(spec.name) {
            return Err(wrong(format!("`{}` has no members", spec.name)));
        }
        let inside = text[open + 1..]
            .strip_suffix(')')
            .ok_or_else(|| wrong("`(` without a `)` at the end".to_owned()))?;
        if depth == 0 {
            return Err(wrong(format!("nested deeper than {DEEPEST}")));
        }
        let texts = members(inside);
        if texts.len() > MOST_MEMBERS {
            return Err(wrong(format!("more than {MOST_MEMBERS} members")));
        }
        let head = Chosen::new(spec.name, more, guests)?;
        let gate = |text| Gate::nested(text, &[], guests, depth - 1);
        Ok(Gate::Composed(head, texts.into_iter().map(gate).collect::<Result<_, _>>()?))
    }

    /// What it reads.
    pub fn needs(&self) -> Needs {
        match self {
            Gate::One(chosen) => chosen.needs(),
            Gate::Composed(_, members) => {
                members.iter().fold(Needs::NONE, |needs, member| needs.or(member.needs()))
            }
        }
    }

    /// Makes it.
    pub fn build(&self, cluster: &Cluster) -> Box<dyn Admission> {
        match self {
            Gate::One(chosen) => chosen.build(cluster),
            Gate::Composed(head, members) => {
                let members = members.iter().map(|member| member.build(cluster)).collect();
                if head.name() == any_of::SPEC.name {
                    Box::new(any_of::AnyOf::new(members))
                } else {
                    Box::new(all_of::AllOf::new(members))
                }
            }
        }
    }
}

/// The full spelling, members in order.
impl fmt::Display for Gate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Gate::One(chosen) => write!(f, "{chosen}"),
            Gate::Composed(head, members) => {
                let members: Vec<String> = members.iter().map(Gate::to_string).collect();
                write!(f, "{head}({})", members.join("; "))
            }
        }
    }
}

fn is_composition(name: &str) -> bool {
    [all_of::SPEC.name, any_of::SPEC.name].contains(&name)
}

/// The members between the parentheses of a composition; those of members stay whole.
fn members(inside: &str) -> Vec<&str> {
    let mut open = 0_u32;
    let at_top = |c: char| {
        match c {
            '(' => open += 1,
            ')' => open = open.saturating_sub(1),
            _ => {}
        }
        c == ';' && open == 0
    };
    inside.split(at_top).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn composed(text: &str) -> Result<String, String> {
        let gate = Gate::new(text, &[], &Guests::NONE);
        gate.map(|gate| gate.to_string()).map_err(|error| error.to_string())
    }

    #[test]
    fn compositions_are_spelled_with_their_members_in_order_and_read_what_they_read() {
        let text = "all-of( slo-gated[threshold=5,batch=0.5];any-of(kv-gate ; token-bucket) )";
        let gate = Gate::new(text, &[], &Guests::NONE).expect("legal");
        let canonical = "all-of(slo-gated[batch=0.5]; any-of(kv-gate; token-bucket))";
        assert_eq!(gate.to_string(), canonical);
        assert_eq!(gate.needs(), Needs { load: true, kv: true, ..Needs::NONE });
        assert_eq!(composed(canonical).as_deref(), Ok(canonical));
        let deepest = "all-of(all-of(all-of(all-of(kv-gate))))";
        assert_eq!(composed(deepest).as_deref(), Ok(deepest));
    }

    #[test]
    fn malformed_compositions_are_refused_with_what_is_wrong() {
        let many = format!("any-of(kv-gate{})", "; kv-gate".repeat(16));
        for (text, complaint) in [
            ("all-of", "`all-of` needs members; write e.g. `all-of(slo-gated[threshold=8]; kv-g"),
            ("all-of()", "admission policy ``: the name is missing"),
            ("all-of(kv-gate;)", "the name is missing"),
            ("all-of(kv-gate", "`(` without a `)` at the end"),
            ("all-of(kv-gate)[x=1]", "`(` without a `)` at the end"),
            ("all-of[x=1](kv-gate)", "`[` without a `]` at the end"),
            ("kv-gate(slo-gated)", "`kv-gate` has no members"),
            ("all-of(kv-gate; flow-control)", "`flow-control` holds requests, so it stands alone"),
            ("all-off(kv-gate)", "did you mean `all-of`?"),
            ("all-of(kv-gat)", "did you mean `kv-gate`?"),
            ("any-of(any-of(any-of(any-of(any-of(kv-gate)))))", "nested deeper than 4"),
            (many.as_str(), "more than 16 members"),
        ] {
            let error = composed(text).expect_err(text);
            assert!(error.contains(complaint), "{text}: {error}");
        }
    }

    #[test]
    fn a_composition_has_no_parameters_of_its_own() {
        let more = [("x".to_owned(), "1".to_owned())];
        let error = Gate::new("all-of(kv-gate)", &more, &Guests::NONE).expect_err("has none");
        let expected = "admission policy `all-of`: unknown parameter `x`: this policy has none";
        assert_eq!(error.to_string(), expected);
    }

    proptest! {
        #[test]
        fn any_text_is_read_or_refused_and_its_full_spelling_is_stable(
            text in "(token-bucket|capacity|all-of\\(|any-of\\(kv-gate|\\)|;|[\\[\\],:=0-9.e-]|\\PC){0,10}",
        ) {
            if let Ok(spelled) = composed(&text) {
                prop_assert_eq!(composed(&spelled), Ok(spelled.clone()));
            }
        }
    }
}
