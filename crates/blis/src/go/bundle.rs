//! The policy bundle (`--policy-config`): a small file of the Go program that chooses policies and
//! nothing else. It stands for flags, which go before it if they are given as well.

use crate::failure::Failure;
use blis_scenario::legal::Finite;
use blis_scenario::yaml::{self, Amount, Node};
use serde::Deserialize;
use std::collections::BTreeMap;
use std::path::Path;

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct Bundle {
    admission: Admission,
    routing: Routing,
    priority: Priority,
    scheduler: Option<String>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct Admission {
    policy: Option<String>,
    token_bucket_capacity: Option<Amount<Finite>>,
    token_bucket_refill_rate: Option<Amount<Finite>>,
    /// Of `tier-shed`, in a strategy branch.
    tier_shed_threshold: Option<Node>,
    tier_shed_min_priority: Option<Node>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct Routing {
    policy: Option<String>,
    scorers: Option<Vec<Scorer>>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Scorer {
    name: String,
    weight: Amount<Finite>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct Priority {
    policy: Option<String>,
    /// Of `static-class-weight`, in a strategy branch.
    class_weights: BTreeMap<String, Amount<Finite>>,
    /// Of `deadline-aware`, in a strategy branch.
    deadlines: Option<Node>,
    epsilon: Option<Node>,
}

/// The flags that the bundle in the file `path` stands for, by name without dashes.
pub(crate) fn flags(path: &Path) -> Result<Vec<(&'static str, String)>, Failure> {
    let bundle: Bundle = yaml::decode(&yaml::read_file(path)?)?;
    let Bundle { admission, routing, priority, scheduler } = bundle;
    let number = |amount: Amount<Finite>| amount.get().to_string();
    let scorer = |scorer: &Scorer| format!("{}:{}", scorer.name, scorer.weight.get());
    let scorers = |all: Vec<Scorer>| all.iter().map(scorer).collect::<Vec<_>>().join(",");
    let sheds = admission.tier_shed_threshold.or(admission.tier_shed_min_priority);
    let hurries = priority.deadlines.or(priority.epsilon);
    let weights = priority.class_weights.iter();
    let weights: Vec<String> =
        weights.map(|(class, weight)| format!("{class}={}", weight.get())).collect();
    let priorities = match weights.len() {
        0 => priority.policy,
        _ => Some(format!("slo-class[{}]", weights.join(","))),
    };
    for (found, name, instead) in
        [(sheds, "tier-shed", "slo-gated"), (hurries, "deadline-aware", "deadline")]
    {
        if found.is_some() {
            let file = path.display();
            let message = format!("{file}: there is no `{name}`; use `{instead}`");
            return Err(Failure::Input(message));
        }
    }
    let flags = [
        ("admission-policy", admission.policy),
        ("token-bucket-capacity", admission.token_bucket_capacity.map(number)),
        ("token-bucket-refill-rate", admission.token_bucket_refill_rate.map(number)),
        ("routing-policy", routing.policy),
        ("routing-scorers", routing.scorers.map(scorers)),
        ("priority-policy", priorities),
        ("scheduler", scheduler),
    ];
    Ok(flags.into_iter().filter_map(|(name, value)| Some((name, value?))).collect())
}
