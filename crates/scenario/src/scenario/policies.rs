//! The policies that a scenario chooses.

use crate::problems::{Findings, Problems, Together};
use crate::scenario::schema::{PolicyFields, RoutingFields, Scenario};
use crate::scenario::tier;
use crate::strategy;
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
) -> Result<Policies, Problems> {
    let mut plain = Policies::default();
    if tier::runs_connector(scenario) {
        plain.offload = Chosen::parse(tier::CONNECTOR).expect("it is registered");
    }
    let reader = Reader { tree, guests };
    let policies = (
        reader.admission(scenario.admission.as_ref()),
        reader.routing(scenario.routing.as_ref()),
        reader.chosen("kv_tier.offload", scenario.kv_tier.offload.as_ref(), plain.offload),
        (
            reader.chosen("scheduler", scenario.scheduler.as_ref(), plain.order),
            reader.chosen("priority", scenario.priority.as_ref(), plain.priority),
            reader.chosen("preempt", scenario.preempt.as_ref(), plain.preempt),
            reader.chosen("evict", scenario.evict.as_ref(), plain.evict),
        )
            .together(),
    )
        .together();
    let (admission, routing, offload, (order, priority, preempt, evict)) = policies?;
    let policies = Policies { admission, routing, order, priority, preempt, evict, offload };
    tree.whole(&["strategy", "scheduler", "preempt", "evict"])?;
    let unread = policies.check_priority_is_read();
    unread.map_err(|error| reader.problem("priority", &error))?;
    Ok(policies)
}

/// Reads the policies of a scenario.
struct Reader<'a> {
    tree: &'a Node,
    guests: &'a Guests,
}

/// Parameters of a policy as they are written.
type Params = [(String, String)];

impl Reader<'_> {
    fn admission(&self, fields: Option<&PolicyFields>) -> Result<Gate, Problems> {
        let Some(fields) = fields else { return Ok(Policies::default().admission) };
        let make = |text: &str, params: &_| Gate::new(text, params, self.guests);
        self.made("admission", fields, "always-admit", make)
    }

    /// The policy of `fields`, which stand at `path`; `default` if there are none.
    fn chosen<P: Policy + ?Sized>(
        &self,
        path: &str,
        fields: Option<&PolicyFields>,
        default: Chosen<P>,
    ) -> Result<Chosen<P>, Problems> {
        let Some(fields) = fields else { return Ok(default) };
        let make = |text: &str, params: &_| Chosen::new(text, params, self.guests);
        self.made(path, fields, default.name(), make)
    }

    /// What `make` makes of `fields`, which stand at `path`. Parameters that it refuses are left
    /// out and told, one by one.
    fn made<T>(
        &self,
        path: &str,
        fields: &PolicyFields,
        default: &str,
        make: impl Fn(&str, &Params) -> Result<T, PolicyError>,
    ) -> Result<T, Problems> {
        let text = self.name(path, fields.policy.as_deref())?.unwrap_or(default);
        let (mut params, mut found) = (fields.params.clone(), Findings::default());
        loop {
            let error = match make(text, &params) {
                Ok(made) => return found.done(made),
                Err(error) => error,
            };
            found.keep::<()>(Err(self.problem(path, &error)));
            if !leave_out(&mut params, &error) {
                return Err(found.into());
            }
        }
    }

    /// The name of the policy at `path`, if it has one. Without, it may be that of a strategy.
    fn name<'a>(&self, path: &str, given: Option<&'a str>) -> Result<Option<&'a str>, Problems> {
        self.tree.whole(&[&format!("{path}.policy")])?;
        self.tree.whole(if given.is_none() { &[strategy::FIELD] } else { &[] })?;
        Ok(given)
    }

    fn routing(&self, fields: Option<&RoutingFields>) -> Result<Routing, Problems> {
        let Some(fields) = fields else { return Ok(Policies::default().routing) };
        let text = self.name("routing", fields.policy.as_deref())?.unwrap_or("round-robin");
        let mut found = Findings::default();
        let lru_capacity = fields.lru_capacity.as_deref().filter(|text| *text != "auto");
        let lru_capacity = lru_capacity.and_then(|text| {
            found.keep(whole(text).ok_or_else(|| {
                let message = format!("found `{text}`; legal: `auto` or a whole number of blocks");
                self.tree.problem("routing.lru_capacity", message)
            }))
        });
        let (scorers, filters) = (fields.scorers.as_deref(), fields.filters.as_deref());
        let picker = fields.picker.as_deref();
        let mut parts = PartsText { scorers, filters, picker, lru_capacity };
        let mut params = fields.params.clone();
        loop {
            let error = match Routing::new(text, &params, &parts, self.guests) {
                Ok(made) => return found.done(made),
                Err(error) => error,
            };
            let path = routing_path(&error, &parts);
            found.keep::<()>(Err(self.problem(path, &error)));
            let left_out = match path {
                "routing.scorers" => parts.scorers.take().is_some(),
                "routing.filters" => parts.filters.take().is_some(),
                "routing.picker" => parts.picker.take().is_some(),
                "routing.lru_capacity" => parts.lru_capacity.take().is_some(),
                _ => leave_out(&mut params, &error),
            };
            if !left_out {
                return Err(found.into());
            }
        }
    }

    /// What is wrong with the policy at `path`: the field that holds the parameter, if it is one,
    /// else the one that holds the name.
    fn problem(&self, path: &str, error: &PolicyError) -> Problems {
        let kind = path.strip_suffix(".policy").unwrap_or(path);
        let param = parameter(error).map(|name| format!("{kind}.params.{name}"));
        let candidates = [param, Some(format!("{kind}.policy"))];
        let narrower = candidates.into_iter().flatten().find(|path| self.tree.has(path));
        self.tree.problem(narrower.unwrap_or_else(|| path.to_owned()), error.to_string())
    }
}

/// Leaves out the parameter that `error` is about; whether it was there.
fn leave_out(params: &mut Vec<(String, String)>, error: &PolicyError) -> bool {
    let before = params.len();
    params.retain(|(name, _)| parameter(error) != Some(name));
    params.len() < before
}

/// The parameter that `error` is about.
fn parameter(error: &PolicyError) -> Option<&str> {
    let PolicyError::Param { source, .. } = error else { return None };
    Some(match source {
        ParamError::Unknown { name, .. } => name,
        ParamError::Illegal { name, .. }
        | ParamError::Formula { name, .. }
        | ParamError::Twice { name }
        | ParamError::Unread { name, .. } => name,
    })
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
