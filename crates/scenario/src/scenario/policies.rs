//! The policies that a scenario chooses.

use crate::problem::Problem;
use crate::scenario::schema::{PolicyFields, Scenario};
use crate::yaml::{Node, whole};
use blis_core::param::ParamError;
use blis_policy::{Chosen, Gate, Guests, PartsText, Policies, Policy, PolicyError, Routing};

/// The scorers' parameter that `routing.lru_capacity` sets.
const LRU_CAPACITY: &str = "lru-capacity";

/// The policies of `scenario`, decoded from `tree`; some may be `guests`.
pub(super) fn choose(
    scenario: &Scenario,
    tree: &Node,
    guests: &Guests,
) -> Result<Policies, Problem> {
    let problem = |path: &'static str| move |error: PolicyError| policy_problem(tree, path, &error);
    let plain = Policies::default();
    let policies = Policies {
        admission: {
            let (text, more) = spelled(scenario.admission.as_ref(), "always-admit");
            Gate::new(text, more, guests).map_err(problem("admission"))?
        },
        routing: routing(scenario, tree, guests)?,
        order: chosen(scenario.scheduler.as_ref(), plain.order, guests)
            .map_err(problem("scheduler"))?,
        priority: chosen(scenario.priority.as_ref(), plain.priority, guests)
            .map_err(problem("priority"))?,
        preempt: chosen(scenario.preempt.as_ref(), plain.preempt, guests)
            .map_err(problem("preempt"))?,
        evict: chosen(scenario.evict.as_ref(), plain.evict, guests).map_err(problem("evict"))?,
        offload: chosen(scenario.kv_tier.offload.as_ref(), plain.offload, guests)
            .map_err(problem("kv_tier.offload"))?,
    };
    policies.check_priority_is_read().map_err(problem("priority"))?;
    Ok(policies)
}

/// The policy of `fields`; `default` if there are none.
fn chosen<P: Policy + ?Sized>(
    fields: Option<&PolicyFields>,
    default: Chosen<P>,
    guests: &Guests,
) -> Result<Chosen<P>, PolicyError> {
    let (text, more) = spelled(fields, default.name());
    if fields.is_none() { Ok(default) } else { Chosen::new(text, more, guests) }
}

/// The text of a policy, its name or `default`, and its further parameters.
fn spelled<'a>(
    fields: Option<&'a PolicyFields>,
    default: &'a str,
) -> (&'a str, &'a [(String, String)]) {
    fields.map_or((default, &[]), |fields| {
        (fields.policy.as_deref().unwrap_or(default), fields.params.as_slice())
    })
}

fn routing(scenario: &Scenario, tree: &Node, guests: &Guests) -> Result<Routing, Problem> {
    let Some(fields) = &scenario.routing else { return Ok(Policies::default().routing) };
    let lru_capacity = match fields.lru_capacity.as_deref() {
        None | Some("auto") => None,
        Some(text) => Some(whole(text).ok_or_else(|| {
            let path = "routing.lru_capacity";
            let message = format!("found `{text}`; legal: `auto` or a whole number of blocks");
            Problem::new(tree.place_of(path), path, message)
        })?),
    };
    let scorers = fields.scorers.as_deref();
    let (filters, picker) = (fields.filters.as_deref(), fields.picker.as_deref());
    let parts = PartsText { scorers, filters, picker, lru_capacity };
    let policy = fields.policy.as_deref().unwrap_or("round-robin");
    Routing::new(policy, &fields.params, &parts, guests)
        .map_err(|error| policy_problem(tree, routing_path(&error, &parts), &error))
}

/// The field of `routing` that `error` is about.
fn routing_path(error: &PolicyError, parts: &PartsText<'_>) -> &'static str {
    // The scorer's parameter stands apart, unless the list spells it out as well.
    let apart = parts.lru_capacity.is_some()
        && parts.scorers.is_none_or(|text| !text.contains(LRU_CAPACITY));
    match error {
        PolicyError::Param { source: ParamError::Illegal { name: LRU_CAPACITY, .. }, .. }
            if apart =>
        {
            "routing.lru_capacity"
        }
        _ => match error.part() {
            "scorer" | "scorers" => "routing.scorers",
            "filter" | "filters" => "routing.filters",
            "picker" => "routing.picker",
            LRU_CAPACITY => "routing.lru_capacity",
            _ => "routing.policy",
        },
    }
}

/// What is wrong with the policy at `path`: the field that holds the parameter, if it is one, else
/// the one that holds the name.
fn policy_problem(tree: &Node, path: &str, error: &PolicyError) -> Problem {
    let param = match error {
        PolicyError::Param { source: ParamError::Unknown { name, .. }, .. } => Some(name.as_str()),
        PolicyError::Param {
            source:
                ParamError::Illegal { name, .. }
                | ParamError::Twice { name }
                | ParamError::Unread { name, .. },
            ..
        } => Some(*name),
        _ => None,
    };
    let kind = path.strip_suffix(".policy").unwrap_or(path);
    let candidates =
        [param.map(|name| format!("{kind}.params.{name}")), Some(format!("{kind}.policy"))];
    let narrower = candidates.into_iter().flatten().find(|path| tree.has(path));
    let path = narrower.unwrap_or_else(|| path.to_owned());
    Problem::new(tree.place_of(&path), path, error.to_string())
}
