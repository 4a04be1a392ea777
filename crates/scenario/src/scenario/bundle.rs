//! The policy bundle (`--policy-config`): a small file that chooses policies and nothing else.
//!
//! Its values are set into the scenario's tree, below the flags and above the scenario file.

use crate::legal::Finite;
use crate::problems::Problems;
use crate::scenario::set_policy;
use crate::yaml::{self, Amount, Node};
use serde::Deserialize;
use std::path::Path;

/// The bundle as written; only used to refuse unknown fields, the values are taken from the tree.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct Bundle {
    admission: AdmissionFields,
    routing: RoutingFields,
    priority: PolicyField,
    scheduler: Option<String>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct AdmissionFields {
    policy: Option<String>,
    token_bucket_capacity: Option<Amount<Finite>>,
    token_bucket_refill_rate: Option<Amount<Finite>>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct RoutingFields {
    policy: Option<String>,
    scorers: Option<Node>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct PolicyField {
    policy: Option<String>,
}

/// Which field of a bundle is which field of a scenario; a single name is the policy of that kind.
/// Policies come before their settings, because a new policy drops the settings of the old one.
const FIELDS: [(&[&str], &[&str]); 7] = [
    (&["admission", "policy"], &["admission"]),
    (&["admission", "token_bucket_capacity"], &["admission", "params", "capacity"]),
    (&["admission", "token_bucket_refill_rate"], &["admission", "params", "refill-rate"]),
    (&["routing", "policy"], &["routing"]),
    (&["routing", "scorers"], &["routing", "scorers"]),
    (&["priority", "policy"], &["priority"]),
    (&["scheduler"], &["scheduler"]),
];

/// Sets what the bundle in the file `path` says into `tree`.
pub(super) fn apply(tree: &mut Node, path: &Path) -> Result<(), Problems> {
    let bundle = yaml::read_file(path)?;
    let _: Bundle = yaml::decode(&bundle)?;
    for (from, to) in FIELDS {
        let found = from.iter().try_fold(&bundle, |node, step| node.field(step));
        match (found, to) {
            (None, _) => {}
            (Some(value), [kind]) => set_policy(tree, kind, value.clone()),
            (Some(value), path) => tree.set(path, value.clone()),
        }
    }
    Ok(())
}
