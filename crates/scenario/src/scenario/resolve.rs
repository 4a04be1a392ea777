//! From a tree to a plan: every check, every default, in one place and before anything runs.

use crate::legal::LONGEST_US;
use crate::problem::{Place, Problem};
use crate::rate::RateSpec;
use crate::scenario::oracles::Oracles;
use crate::scenario::plan::{Plan, Workload};
use crate::scenario::schema::{GatewayFields, Scenario, SignalFields};
use crate::scenario::{Checked, horizon, machine, policies, tier, workload};
use crate::slo;
use crate::yaml::{self, Kind, Node, Whole};
use blis_core::{Span, Time};
use blis_policy::Guests;
use blis_sim::{Freshness, Gateway, Signals};
use blis_workload::Client;

const DEFAULT_SEED: u64 = 42;

/// Checks `tree`, whose policies may be `guests`, and fills the defaults.
pub(super) fn resolve(tree: &Node, guests: &Guests) -> Result<Checked, Problem> {
    check_is_scenario(tree)?;
    let scenario: Scenario = yaml::decode(tree)?;
    let machine = machine::machine(&scenario, tree)?;
    let mut engine = machine::engine(&scenario.engine, &machine, tree)?;
    let mut notes = tier::set_tier(&mut engine, &scenario, &machine, tree)?;
    let instances = scenario.cluster.instances.map_or(1, Whole::get_u32);
    let given_horizon = scenario.horizon_us.and_then(|micros| horizon(micros.get()));
    let reader = workload::Reader {
        scenario: &scenario,
        tree,
        model: &machine.model,
        horizon: given_horizon,
    };
    let sent = reader.read()?;
    notes.extend(sent.notes);
    let slo = slo::or(&scenario.slo.targets, &sent.slo.unwrap_or_default());
    let policies = policies::choose(&scenario, tree, guests)?;
    let hears_events = policies.gateway_needs().events;
    check_events(&scenario.signals, hears_events, tree)?;
    let evict = &policies.evict;
    if evict.needs().future {
        check_oracle(&evict.to_string(), &sent.workload, tree)?;
        notes.push(format!(
            "`{evict}` knows the requests to come: what it gives is a bound, not a strategy"
        ));
    }
    let oracles = Oracles::of(&scenario.oracles);
    notes.extend(oracles.note());
    let plan = Plan {
        name: scenario.name.clone(),
        seed: scenario.seed.map(Whole::get).or(sent.seed).unwrap_or(DEFAULT_SEED),
        model: machine.model,
        hardware: machine.hardware,
        tp: machine.tp,
        instances,
        gateways: scenario.cluster.gateways.map_or(1, Whole::get_u32),
        engine,
        gateway: gateway(&scenario.gateway),
        signals: signals(&scenario.signals),
        hears_events,
        latency: machine.latency,
        latency_name: machine.latency_name,
        latency_caveat: machine.latency_caveat,
        policies,
        oracles,
        horizon: sent.horizon,
        warmup: Time::ZERO
            + Span::from_secs_f64(scenario.warmup_s.map_or(0.0, |given| given.get())),
        slo,
        workload: sent.workload,
        patience: scenario.workload.patience_ms.map(|ms| Span::from_micros_f64(ms.get() * 1e3)),
        workload_name: workload::name(&scenario.workload),
        saturation: None,
        notes,
        files: sent.files,
        canonical: String::new(),
        tree: document(tree),
        identity: 0,
    };
    let rate = sent.rate.filter(RateSpec::needs_saturation);
    if rate.is_some() {
        check_has_saturation(&plan.workload, tree)?;
    }
    Ok(Checked { plan, rate })
}

/// The delays of the gateway.
fn gateway(fields: &GatewayFields) -> Gateway {
    Gateway {
        admission_latency: span(fields.admission_latency_us),
        routing_latency: span(fields.routing_latency_us),
    }
}

/// How fresh the gateway's view is.
fn signals(fields: &SignalFields) -> Signals {
    type Micros = Whole<0, { LONGEST_US }>;
    let all = fields.snapshot_refresh_interval_us;
    let freshness = |given: Option<Micros>| match span(given.or(all)) {
        Span::ZERO => Freshness::Immediate,
        interval => Freshness::Periodic { interval },
    };
    Signals {
        load: freshness(fields.load_refresh_interval_us),
        kv: freshness(fields.kv_refresh_interval_us),
        event_delay: span(fields.kv_event_delay_us),
        speculation: Some(span(fields.speculative_ttl_us)).filter(|ttl| *ttl > Span::ZERO),
    }
}

/// How fast KV events are means nothing if nobody listens to them.
fn check_events(fields: &SignalFields, heard: bool, tree: &Node) -> Result<(), Problem> {
    let given = [
        ("signals.kv_event_delay_us", fields.kv_event_delay_us),
        ("signals.speculative_ttl_us", fields.speculative_ttl_us),
    ];
    match given.iter().find(|(_, value)| value.is_some_and(|micros| micros.get() > 0)) {
        Some((path, _)) if !heard => {
            let message = "is given, but no policy of this strategy listens to KV events; add a \
                           scorer that does, e.g. `precise-prefix`";
            Err(Problem::new(tree.place_of(path), *path, message))
        }
        _ => Ok(()),
    }
}

/// Recognises a workload specification where a scenario was expected.
fn check_is_scenario(tree: &Node) -> Result<(), Problem> {
    if tree.has("version") && (tree.has("clients") || tree.has("cohorts")) {
        let message = "this is a workload specification, not a scenario; give it with \
                       `--workload-spec`, or as `workload.spec` of a scenario";
        return Err(Problem::new(tree.place_of("version"), "version", message));
    }
    Ok(())
}

/// `tree` as a document that means the same wherever it is read on this machine.
fn document(tree: &Node) -> Node {
    let mut tree = tree.clone();
    for (field, path) in workload::paths(&tree) {
        let path = std::path::absolute(&path).unwrap_or(path);
        let text = path.to_string_lossy().into_owned();
        tree.set(field, Node { place: Place::Unknown, kind: Kind::Scalar { text, quoted: true } });
    }
    tree.remove("seed");
    tree
}

/// A given number of microseconds; 0 if there is none.
fn span(given: Option<Whole<0, { LONGEST_US }>>) -> Span {
    Span::from_micros(given.map_or(0, Whole::get))
}

/// An oracle must be able to know the requests to come.
fn check_oracle(name: &str, workload: &Workload, tree: &Node) -> Result<(), Problem> {
    if !workload.is_closed_loop() {
        return Ok(());
    }
    let path = if tree.has("evict.policy") { "evict.policy" } else { "evict" };
    let message = format!(
        "found `{name}`, which must know all requests beforehand, but clients of this workload \
         wait for answers before they ask again, or retry; give another policy, e.g. `lru`, or \
         `oracles: [evict]`, which learns them from a run with that policy"
    );
    Err(Problem::new(tree.place_of(path), path, message))
}

/// Only generated requests have a rate that can be a share of saturation.
fn check_has_saturation(workload: &Workload, tree: &Node) -> Result<(), Problem> {
    let single = |client: &Client| client.sessions.as_ref().is_some_and(|s| s.single);
    let message = match workload {
        Workload::Trace { .. } => {
            "a trace has its own arrivals, so its rate cannot be a share of saturation"
        }
        Workload::Mix(mix) if mix.clients.iter().any(single) => {
            "clients with a single session have no rate that could be a share of saturation; give \
             requests per second"
        }
        Workload::Mix(_) => return Ok(()),
    };
    let path = "workload.rate";
    Err(Problem::new(tree.place_of(path), path, message))
}
