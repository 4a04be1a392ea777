//! From texts to policies: what a scenario or a flag says becomes a checked policy of each kind.
//!
//! Called once per run, before anything happens. It must never panic, whatever the texts.

use crate::admission::{all_of, any_of};
use crate::contract::{Admission, Evict, Offload, Order, Preempt, Priority, Router};
use crate::guest::Guests;
use crate::routing::weighted::{self, Parts};
use crate::routing::{self, epoch_adaptive, filters, kv_adaptive, pickers};
use crate::spec::{
    Built, Cluster, PolicyError, build_from_text, build_spec, canonical, find, parse, values,
};
use crate::view::Needs;
use crate::weights::{self, Profiles, WeightedScorers};
use crate::{evict, offload, preempt, priority};
use blis_core::Values;

/// The settings of routing. No `Default`, so that a new one must be thought of wherever it is read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RoutingText<'a> {
    /// The routing policy: `name` or `name[parameter=value,...]`.
    pub policy: &'a str,
    /// Scorers with weights, e.g. `pa:3,qd:2,kv:2`, or with two profiles `pa:3/2,qd:2,kv:2/5`; read
    /// by routers that are made of scorers, such as `weighted`.
    pub scorers: Option<&'a str>,
    /// Filters, e.g. `kv-filter,slo-headroom-filter`; read by the same.
    pub filters: Option<&'a str>,
    /// The picker; read by the same.
    pub picker: Option<&'a str>,
    /// The parameter `lru-capacity` of the scorer `prefix-affinity`.
    pub lru_capacity: Option<u64>,
}

/// The router that `text` spells.
///
/// # Errors
/// If a text is malformed, or names what does not exist; if a setting is given that nobody reads.
pub fn build_router(
    text: &RoutingText<'_>,
    cluster: &Cluster,
) -> Result<Built<dyn Router>, PolicyError> {
    router(text, &Guests::default(), cluster)
}

/// The router that `text` spells, where scorers may be `guests`.
pub(crate) fn router(
    text: &RoutingText<'_>,
    guests: &Guests,
    cluster: &Cluster,
) -> Result<Built<dyn Router>, PolicyError> {
    const KIND: &str = "routing policy";
    let parsed = parse(KIND, text.policy)?;
    let spec = find(KIND, routing::ALL, parsed.name)?;
    if let Some(made) = COMPOSED.iter().find(|made| made.name == spec.name) {
        let values = values(KIND, spec, &parsed.given)?;
        return compose(made, &values, text, guests, cluster);
    }
    for (setting, given) in [
        ("scorers", text.scorers.is_some()),
        ("filters", text.filters.is_some()),
        ("picker", text.picker.is_some()),
        ("lru-capacity", text.lru_capacity.is_some()),
    ] {
        if given {
            let reader = format!("{KIND} `{}`", spec.name);
            return Err(PolicyError::Unread { setting, reader, remedy: "; `weighted` does" });
        }
    }
    build_spec(KIND, spec, &parsed.given, cluster)
}

/// A router that is made of filters, scorers with weights, and a picker.
struct Composed {
    name: &'static str,
    /// The scorers when none are given.
    scorers: fn(&Values) -> &'static str,
    profiles: Profiles,
    /// What it reads besides its parts.
    needs: Needs,
    /// Makes it of its parts; the error is what is wrong with the scorers.
    make: Make,
}

type Make = fn(Parts, &Values, &Cluster) -> Result<Box<dyn Router>, String>;

/// All of them.
const COMPOSED: &[Composed] = &[
    Composed {
        name: epoch_adaptive::SPEC.name,
        scorers: epoch_adaptive::default_scorers,
        profiles: Profiles::One,
        needs: epoch_adaptive::OWN_NEEDS,
        make: |parts, values, cluster| {
            Ok(Box::new(epoch_adaptive::EpochAdaptive::new(parts, values, cluster)?))
        },
    },
    Composed {
        name: kv_adaptive::SPEC.name,
        scorers: |_| kv_adaptive::DEFAULT_SCORERS,
        profiles: Profiles::Two,
        needs: kv_adaptive::OWN_NEEDS,
        make: |parts, values, _| Ok(Box::new(kv_adaptive::KvAdaptive::new(parts, values))),
    },
    Composed {
        name: weighted::SPEC.name,
        scorers: |_| weighted::DEFAULT_SCORERS,
        profiles: Profiles::One,
        needs: Needs::NONE,
        make: |parts, _, _| Ok(Box::new(parts.weighted())),
    },
];

fn compose(
    made: &Composed,
    values: &Values,
    text: &RoutingText<'_>,
    guests: &Guests,
    cluster: &Cluster,
) -> Result<Built<dyn Router>, PolicyError> {
    let list = text.scorers.unwrap_or_else(|| (made.scorers)(values));
    let capacity = text.lru_capacity;
    let scorers = WeightedScorers::parse_with(list, made.profiles, capacity, guests, cluster)?;
    let picker = text.picker.unwrap_or(weighted::DEFAULT_PICKER);
    let picker = build_from_text("picker", pickers::ALL, picker, cluster)?;
    let mut needs = made.needs.or(scorers.needs);
    let mut filters = Vec::new();
    let mut spelled = String::new();
    for item in text.filters.into_iter().flat_map(weights::items) {
        let parsed = parse("filter", item)?;
        let spec = find("filter", filters::ALL, parsed.name)?;
        let built = build_spec("filter", spec, &parsed.given, cluster)?;
        needs = needs.or(built.needs);
        spelled = format!("{spelled}{}; ", built.canonical);
        filters.push((spec.name, built.policy));
    }
    let name = canonical(made.name, values);
    let canonical = format!("{name}({spelled}{}; {})", scorers.canonical, picker.canonical);
    let policy = (made.make)(Parts { filters, scorers, picker: picker.policy }, values, cluster)
        .map_err(|problem| {
            let example = made.profiles.example();
            PolicyError::Weights { text: list.to_owned(), problem, example }
        })?;
    Ok(Built { policy, needs, canonical })
}

/// The admission policy that `text` spells: `name`, `name[parameter=value,...]`, or a composition
/// like `all-of(slo-gated; any-of(kv-gate; token-bucket))`.
///
/// # Errors
/// If the text is malformed, or names what does not exist.
pub fn build_admission(text: &str, cluster: &Cluster) -> Result<Built<dyn Admission>, PolicyError> {
    gate(text, &Guests::default(), cluster)
}

/// The admission policy that `text` spells, where any may be one of `guests`.
pub(crate) fn gate(
    text: &str,
    guests: &Guests,
    cluster: &Cluster,
) -> Result<Built<dyn Admission>, PolicyError> {
    build_gate(text, guests, cluster, DEEPEST)
}

/// How deep compositions may be nested, and how many members they may have.
const DEEPEST: u32 = 4;
const MOST_MEMBERS: usize = 16;

fn build_gate(
    text: &str,
    guests: &Guests,
    cluster: &Cluster,
    depth: u32,
) -> Result<Built<dyn Admission>, PolicyError> {
    const KIND: &str = "admission policy";
    let wrong = |problem: String| PolicyError::Composition { text: text.to_owned(), problem };
    let text = text.trim();
    let composed = text.find('(').filter(|open| !text[..*open].contains('['));
    let Some(open) = composed else {
        let parsed = parse(KIND, text)?;
        if is_composition(parsed.name) {
            return Err(wrong(format!("`{}` needs members", parsed.name)));
        }
        return guests.admissions().build(&parsed, cluster).map(|(_, built)| built);
    };
    let name = guests.admissions().house_name(text[..open].trim())?;
    if !is_composition(name) {
        return Err(wrong(format!("`{name}` has no members")));
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
    let mut needs = Needs::NONE;
    let mut spelled = Vec::new();
    let mut gates = Vec::new();
    for member in texts {
        let built = build_gate(member, guests, cluster, depth - 1)?;
        needs = needs.or(built.needs);
        spelled.push(built.canonical);
        gates.push(built.policy);
    }
    let policy: Box<dyn Admission> = if name == any_of::SPEC.name {
        Box::new(any_of::AnyOf::new(gates))
    } else {
        Box::new(all_of::AllOf::new(gates))
    };
    Ok(Built { policy, needs, canonical: format!("{name}({})", spelled.join("; ")) })
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

/// The order of waiting requests that `text` spells.
///
/// # Errors
/// If the text is malformed, or names what does not exist.
pub fn build_order(text: &str, cluster: &Cluster) -> Result<Built<dyn Order>, PolicyError> {
    Guests::default().build_order(text, cluster)
}

/// The priority policy that `text` spells.
///
/// # Errors
/// If the text is malformed, or names what does not exist.
pub fn build_priority(text: &str, cluster: &Cluster) -> Result<Built<dyn Priority>, PolicyError> {
    build_from_text("priority policy", priority::ALL, text, cluster)
}

/// The preemption policy that `text` spells.
///
/// # Errors
/// If the text is malformed, or names what does not exist.
pub fn build_preempt(text: &str, cluster: &Cluster) -> Result<Built<dyn Preempt>, PolicyError> {
    build_from_text("preemption policy", preempt::ALL, text, cluster)
}

/// The eviction policy that `text` spells.
///
/// # Errors
/// If the text is malformed, or names what does not exist.
pub fn build_evict(text: &str, cluster: &Cluster) -> Result<Built<dyn Evict>, PolicyError> {
    build_from_text("eviction policy", evict::ALL, text, cluster)
}

/// The offload policy that `text` spells.
///
/// # Errors
/// If the text is malformed, or names what does not exist.
pub fn build_offload(text: &str, cluster: &Cluster) -> Result<Built<dyn Offload>, PolicyError> {
    build_from_text("offload policy", offload::ALL, text, cluster)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const CLUSTER: Cluster = Cluster { instances: 4, ..Cluster::SMALL };

    /// Pieces of texts, in any order.
    const TEXTS: &str = "(fcfs|sjf|token-bucket|capacity|kv|pa|all-of\\(|any-of\\(kv-gate|\\)|;|\
         [\\[\\],:=0-9.e-]|\\PC){0,10}";

    fn routing<'a>(policy: &'a str, scorers: Option<&'a str>) -> RoutingText<'a> {
        RoutingText { policy, scorers, filters: None, picker: None, lru_capacity: None }
    }

    fn refusal(text: &RoutingText<'_>) -> String {
        build_router(text, &CLUSTER).expect_err("must be refused").to_string()
    }

    #[test]
    fn weighted_reads_what_its_scorers_read() {
        let needs = |scorers| build_router(&routing("weighted", scorers), &CLUSTER).unwrap().needs;
        assert_eq!(needs(Some("pa:1")), Needs::NONE);
        assert_eq!(needs(Some("pa:1,kv:1,qd:0")), Needs { kv: true, ..Needs::NONE });
    }

    #[test]
    fn the_canonical_spelling_of_weighted_names_scorers_and_picker() {
        let built = build_router(&routing("weighted", Some("qd:4,pa:2")), &CLUSTER).unwrap();
        assert_eq!(built.canonical, "weighted(prefix-affinity:1,queue-depth:2; max-score)");
    }

    #[test]
    fn adaptive_routers_are_spelled_with_their_parameters_and_parts() {
        let two = routing("kv-adaptive[hysteresis=0.2]", Some("pa:3/2,qd:2,kv:2/5"));
        let text = RoutingText { filters: Some("kv-filter"), ..two };
        assert_eq!(
            build_router(&text, &CLUSTER).unwrap().canonical,
            "kv-adaptive[hysteresis=0.2](kv-filter; \
             kv-utilization:2/5,prefix-affinity:3/2,queue-depth:2/2; max-score)"
        );
        let learned = build_router(&routing("epoch-adaptive", Some("pp:1,qd:1")), &CLUSTER);
        assert!(learned.unwrap_err().to_string().contains("`prefix-affinity`"));
        let learned = routing("epoch-adaptive[moves=precise-prefix]", Some("pp:1,qd:1"));
        let needs = build_router(&learned, &CLUSTER).unwrap().needs;
        assert_eq!(needs, Needs { load: true, events: true, answers: true, ..Needs::NONE });
        assert!(refusal(&routing("weighted", Some("pa:3/2"))).contains("`3/2`, not a number"));
    }

    #[test]
    fn the_needs_of_a_router_made_of_scorers_are_told_for_the_default_ones() {
        for made in COMPOSED {
            let spec = find("routing policy", routing::ALL, made.name).unwrap();
            let built = build_router(&routing(made.name, None), &CLUSTER).unwrap();
            assert_eq!(built.needs, (spec.needs)(&Values::defaults(spec.params)), "{}", made.name);
        }
    }

    #[test]
    fn a_setting_that_nobody_reads_is_refused() {
        let error = refusal(&routing("round-robin", Some("pa:1")));
        assert_eq!(
            error,
            "`scorers` is given, but routing policy `round-robin` does not read it; `weighted` does"
        );
        let picker = RoutingText { picker: Some("max-score"), ..routing("random", None) };
        assert!(refusal(&picker).contains("`picker` is given"));
        let capacity = RoutingText { lru_capacity: Some(5), ..routing("random", None) };
        assert!(refusal(&capacity).contains("`lru-capacity` is given"));
        let capacity = RoutingText { lru_capacity: Some(5), ..routing("weighted", Some("qd:1")) };
        assert!(refusal(&capacity).contains("add `prefix-affinity`"));
    }

    #[test]
    fn parameters_of_routers_are_checked() {
        assert!(refusal(&routing("least-loaded[ties=first]", None)).contains("`lowest-index`"));
        assert!(refusal(&routing("weighted[pa=3]", None)).contains("this policy has none"));
        assert!(refusal(&routing("wieghted", None)).contains("did you mean `weighted`?"));
    }

    fn composed(text: &str) -> Result<String, String> {
        let built = build_admission(text, &CLUSTER);
        built.map(|built| built.canonical).map_err(|error| error.to_string())
    }

    #[test]
    fn compositions_are_spelled_with_their_members_in_order_and_read_what_they_read() {
        let text = "all-of( slo-gated[threshold=5,batch=0.5];any-of(kv-gate ; token-bucket) )";
        let built = build_admission(text, &CLUSTER).expect("legal");
        let canonical = "all-of(slo-gated[batch=0.5]; any-of(kv-gate; token-bucket))";
        assert_eq!(built.canonical, canonical);
        assert_eq!(built.needs, Needs { load: true, kv: true, ..Needs::NONE });
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
            ("all-off(kv-gate)", "did you mean `all-of`?"),
            ("all-of(kv-gat)", "did you mean `kv-gate`?"),
            ("any-of(any-of(any-of(any-of(any-of(kv-gate)))))", "nested deeper than 4"),
            (many.as_str(), "more than 16 members"),
        ] {
            let error = composed(text).expect_err(text);
            assert!(error.contains(complaint), "{text}: {error}");
        }
    }

    proptest! {
        #[test]
        fn any_text_is_built_or_refused_and_its_canonical_form_is_stable(
            text in TEXTS,
        ) {
            let _ = build_order(&text, &CLUSTER);
            let _ = build_priority(&text, &CLUSTER);
            let _ = build_preempt(&text, &CLUSTER);
            let _ = build_evict(&text, &CLUSTER);
            let _ = build_offload(&text, &CLUSTER);
            let _ = build_router(&routing(&text, None), &CLUSTER);
            for made in COMPOSED {
                let _ = build_router(&routing(made.name, Some(&text)), &CLUSTER);
                let filters = RoutingText { filters: Some(&text), ..routing(made.name, None) };
                let _ = build_router(&filters, &CLUSTER);
            }
            if let Ok(built) = build_admission(&text, &CLUSTER) {
                let again = build_admission(&built.canonical, &CLUSTER).unwrap();
                prop_assert_eq!(again.canonical, built.canonical);
            }
        }
    }
}
