//! The policies of a scenario: texts that were checked once and are built for every run.

use crate::problem::Problem;
use crate::scenario::oracles::Oracles;
use crate::scenario::plan::PolicyNames;
use crate::scenario::schema::{PolicyFields, RoutingFields, Scenario};
use crate::yaml::{Node, whole};
use blis_core::param::ParamError;
use blis_policy::{
    Admission, Built, Cluster, Evict, Guests, Needs, Offload, Order, PolicyError, Preempt,
    Priority, Router, RoutingText, build_evict, build_offload, build_preempt, build_priority,
};
use blis_sim::GatewayPolicies;

/// The scorers' parameter that `routing.lru_capacity` sets.
const LRU_CAPACITY: &str = "lru-capacity";

/// The priority policy that tells nobody apart, and the default.
const NO_PRIORITIES: &str = "constant";

/// The evictor that is told of the requests to come.
const FORESEEING: &str = "belady";

/// The scorers of the strategy that saturation is measured with.
pub(crate) const REFERENCE_SCORERS: &str = "pa:3,qd:2,kv:2";

/// The texts of all policies.
#[derive(Clone, Debug)]
pub(crate) struct Policies {
    admission: String,
    routing: String,
    scorers: Option<String>,
    filters: Option<String>,
    picker: Option<String>,
    lru_capacity: Option<u64>,
    scheduler: String,
    priority: String,
    preempt: String,
    evict: String,
    offload: String,
    guests: Guests,
}

/// The policies of one run.
pub(crate) struct BuiltPolicies {
    admission: Built<dyn Admission>,
    router: Built<dyn Router>,
    order: Built<dyn Order>,
    priority: Built<dyn Priority>,
    preempt: Built<dyn Preempt>,
    evict: Built<dyn Evict>,
    offload: Built<dyn Offload>,
}

impl Policies {
    /// The texts that `scenario`, decoded from `tree`, spells; some may name `guests`.
    pub(super) fn read(
        scenario: &Scenario,
        tree: &Node,
        guests: &Guests,
    ) -> Result<Policies, Problem> {
        let routing = scenario.routing.clone().unwrap_or_default();
        let lru_capacity = match routing.lru_capacity.as_deref() {
            None | Some("auto") => None,
            Some(text) => Some(whole(text).ok_or_else(|| {
                let path = "routing.lru_capacity";
                let message = format!("found `{text}`; legal: `auto` or a whole number of blocks");
                Problem::new(tree.place_of(path), path, message)
            })?),
        };
        let texts = Policies::spelled(scenario, routing, lru_capacity);
        Ok(Policies { guests: guests.clone(), ..texts })
    }

    fn spelled(scenario: &Scenario, routing: RoutingFields, lru_capacity: Option<u64>) -> Policies {
        let policy = PolicyFields { policy: routing.policy, params: routing.params };
        Policies {
            admission: spell(scenario.admission.as_ref(), "always-admit"),
            routing: spell(Some(&policy), "round-robin"),
            scorers: routing.scorers,
            filters: routing.filters,
            picker: routing.picker,
            lru_capacity,
            scheduler: spell(scenario.scheduler.as_ref(), "fcfs"),
            priority: spell(scenario.priority.as_ref(), NO_PRIORITIES),
            preempt: spell(scenario.preempt.as_ref(), "tail"),
            evict: spell(scenario.evict.as_ref(), "lru"),
            offload: spell(scenario.kv_tier.offload.as_ref(), "threshold"),
            guests: Guests::default(),
        }
    }

    /// Those that a cluster's saturation is measured with.
    pub(crate) fn reference() -> Policies {
        let scorers = Some(REFERENCE_SCORERS.to_owned());
        Policies {
            routing: "weighted".to_owned(),
            scorers,
            ..Policies::spelled(&Scenario::default(), RoutingFields::default(), None)
        }
    }

    /// Builds them all; the error carries the path of the field at fault.
    pub(crate) fn build(
        &self,
        cluster: &Cluster,
    ) -> Result<BuiltPolicies, (&'static str, PolicyError)> {
        let routing = RoutingText {
            policy: &self.routing,
            scorers: self.scorers.as_deref(),
            filters: self.filters.as_deref(),
            picker: self.picker.as_deref(),
            lru_capacity: self.lru_capacity,
        };
        let built = BuiltPolicies {
            admission: self
                .guests
                .build_admission(&self.admission, cluster)
                .map_err(|error| ("admission", error))?,
            router: self
                .guests
                .build_router(&routing, cluster)
                .map_err(|error| (self.routing_path(&error), error))?,
            order: self
                .guests
                .build_order(&self.scheduler, cluster)
                .map_err(|error| ("scheduler", error))?,
            priority: build_priority(&self.priority, cluster)
                .map_err(|error| ("priority", error))?,
            preempt: build_preempt(&self.preempt, cluster).map_err(|error| ("preempt", error))?,
            evict: build_evict(&self.evict, cluster).map_err(|error| ("evict", error))?,
            offload: build_offload(&self.offload, cluster)
                .map_err(|error| ("kv_tier.offload", error))?,
        };
        built.check_priority_is_read().map_err(|error| ("priority", error))?;
        Ok(built)
    }

    /// The field of `routing` that an error of its builder is about.
    fn routing_path(&self, error: &PolicyError) -> &'static str {
        // The scorer's parameter stands apart, unless the list spells it out as well.
        let apart = self.lru_capacity.is_some()
            && self.scorers.as_deref().is_none_or(|text| !text.contains(LRU_CAPACITY));
        match error {
            PolicyError::Param {
                source: ParamError::Illegal { name: LRU_CAPACITY, .. }, ..
            } if apart => "routing.lru_capacity",
            PolicyError::Weights { .. }
            | PolicyError::Unknown { kind: "scorer", .. }
            | PolicyError::Param { kind: "scorer", .. }
            | PolicyError::Syntax { kind: "scorer", .. }
            | PolicyError::Unread { setting: "scorers", .. } => "routing.scorers",
            PolicyError::Unknown { kind: "filter", .. }
            | PolicyError::Param { kind: "filter", .. }
            | PolicyError::Syntax { kind: "filter", .. }
            | PolicyError::Unread { setting: "filters", .. } => "routing.filters",
            PolicyError::Unknown { kind: "picker", .. }
            | PolicyError::Param { kind: "picker", .. }
            | PolicyError::Syntax { kind: "picker", .. }
            | PolicyError::Unread { setting: "picker", .. } => "routing.picker",
            PolicyError::Unread { .. } => "routing.lru_capacity",
            PolicyError::Unknown { .. }
            | PolicyError::Param { .. }
            | PolicyError::Syntax { .. }
            | PolicyError::Composition { .. } => "routing.policy",
        }
    }
}

impl BuiltPolicies {
    /// Their full spellings.
    pub(crate) fn names(&self) -> PolicyNames {
        PolicyNames {
            admission: self.admission.canonical.clone(),
            routing: self.router.canonical.clone(),
            scheduler: self.order.canonical.clone(),
            priority: self.priority.canonical.clone(),
            preempt: self.preempt.canonical.clone(),
            evict: self.evict.canonical.clone(),
            offload: self.offload.canonical.clone(),
        }
    }

    /// Priorities that nobody reads would change nothing, and look as if they did not help.
    fn check_priority_is_read(&self) -> Result<(), PolicyError> {
        let BuiltPolicies { order, priority, preempt, evict, .. } = self;
        let readers = [order.needs, preempt.needs, evict.needs];
        if priority.canonical == NO_PRIORITIES || readers.iter().any(|needs| needs.priority) {
            return Ok(());
        }
        let [order, preempt, evict] = [&order.canonical, &preempt.canonical, &evict.canonical];
        Err(PolicyError::Unread {
            setting: "priority",
            reader: format!("none of scheduler `{order}`, preempt `{preempt}` and evict `{evict}`"),
            remedy: "; give the scheduler `priority-fcfs`",
        })
    }

    /// What the policies of the engine read.
    fn engine_needs(&self) -> Needs {
        let BuiltPolicies { order, priority, preempt, evict, offload, .. } = self;
        let needs = order.needs.or(priority.needs).or(preempt.needs);
        needs.or(evict.needs).or(offload.needs)
    }

    /// Whether a policy of the gateway listens to KV events.
    pub(super) fn hear_events(&self) -> bool {
        self.admission.needs.or(self.router.needs).events
    }

    /// Whether a policy is an oracle, and must be told of the requests to come.
    pub(super) fn need_the_future(&self) -> bool {
        self.evict.needs.future
    }

    /// Those of a further replica of the gateway.
    pub(super) fn into_gateway(self) -> GatewayPolicies {
        GatewayPolicies { admission: self.admission.policy, router: self.router.policy }
    }

    /// What `sim` takes, with the policies of further replicas of the gateway.
    pub(super) fn into_sim(
        self,
        more: Vec<GatewayPolicies>,
        oracles: Oracles,
        cluster: &Cluster,
    ) -> blis_sim::Policies {
        let mut engine_needs = self.engine_needs();
        let evict = if oracles.evict {
            let foreseeing = build_evict(FORESEEING, cluster).expect("it has no parameters");
            engine_needs = engine_needs.or(foreseeing.needs);
            foreseeing.policy
        } else {
            self.evict.policy
        };
        let first =
            GatewayPolicies { admission: self.admission.policy, router: self.router.policy };
        blis_sim::Policies {
            gateways: std::iter::once(first).chain(more).collect(),
            admission_needs: self.admission.needs,
            router_needs: self.router.needs,
            engine_needs,
            priority: self.priority.policy,
            order: self.order.policy,
            preempt: self.preempt.policy,
            evict,
            offload: self.offload.policy,
        }
    }
}

/// One text from a name, its bracketed parameters and further ones.
fn spell(fields: Option<&PolicyFields>, default: &str) -> String {
    let Some(fields) = fields else { return default.to_owned() };
    let policy = fields.policy.as_deref().map_or(default, str::trim);
    if fields.params.is_empty() {
        return policy.to_owned();
    }
    let params: Vec<String> =
        fields.params.iter().map(|(name, value)| format!("{name}={value}")).collect();
    let params = params.join(",");
    match policy.strip_suffix(']') {
        Some(open) => format!("{open},{params}]"),
        None => format!("{policy}[{params}]"),
    }
}
