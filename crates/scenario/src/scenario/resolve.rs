//! From a tree to a plan: every check, every default, in one place and before anything runs.

use crate::files::Files;
use crate::legal::{LONGEST_US, horizon};
use crate::limit;
use crate::problem::Place;
use crate::problems::{Problems, Together, given};
use crate::scenario::machine::{self, Machine};
use crate::scenario::oracles::Oracles;
use crate::scenario::plan::{Plan, Workload};
use crate::scenario::schema::{GatewayFields, KvDtype, Scenario, SignalFields};
use crate::scenario::speculation;
use crate::scenario::tier::{self, Tier};
use crate::scenario::workload::{self, Resolved};
use crate::scenario::{Checked, policies};
use crate::slo;
use crate::yaml::{self, Kind, Node, Whole};
use blis_core::{Span, Time};
use blis_policy::{Guests, Policies};
use blis_sim::{Engine, Freshness, Gateway, Signals};
use blis_workload::Client;

const DEFAULT_SEED: u64 = 42;

/// Checks `tree`, whose policies may be `guests`, and fills the defaults. What was read from
/// `files` is not read again.
pub(super) fn resolve(tree: &Node, guests: &Guests, files: &Files) -> Result<Checked, Problems> {
    check_is_scenario(tree)?;
    yaml::decode_and(tree, |scenario, tree| Reader { scenario, tree, guests, files }.read())
}

/// A scenario as written, and the tree that it was decoded from.
struct Reader<'a> {
    scenario: Scenario,
    tree: &'a Node,
    guests: &'a Guests,
    files: &'a Files,
}

/// The parts of a plan that are checked on their own.
struct Parts {
    machine: Machine,
    engine: Engine,
    tier: Tier,
    policies: Policies,
    sent: Resolved,
}

impl Reader<'_> {
    fn read(&self) -> Result<Checked, Problems> {
        let Parts { machine, mut engine, tier, policies, sent } = self.parts()?;
        let scenario = &self.scenario;
        engine.tier = tier.kv;
        engine.preemption = tier.preemption;
        let mut notes = tier.notes;
        notes.extend(sent.notes);
        if policies.evict.needs().future {
            notes.push(format!(
                "`{}` knows future requests: the result is a bound, not a strategy",
                policies.evict
            ));
        }
        let oracles = Oracles::of(&scenario.oracles);
        let [instances, gateways] = counts(scenario);
        notes.extend(oracles.note());
        let plan = Plan {
            name: scenario.name.clone(),
            seed: scenario.seed.map(Whole::get).or(sent.seed).unwrap_or(DEFAULT_SEED),
            model: machine.model,
            hardware: machine.hardware,
            parallel: machine.parallel,
            kv_cache_dtype: scenario.engine.kv_cache_dtype.and_then(KvDtype::of_vllm),
            instances,
            gateways,
            engine,
            gateway: gateway(&scenario.gateway),
            signals: signals(&scenario.signals),
            hears_events: policies.gateway_needs().events,
            latency: machine.latency,
            latency_name: machine.latency_name,
            latency_caveat: machine.latency_caveat,
            policies,
            oracles,
            horizon: sent.horizon,
            warmup: Time::ZERO
                + Span::from_secs_f64(scenario.warmup_s.map_or(0.0, |given| given.get())),
            slo: slo::or(&scenario.slo.targets, &sent.slo.unwrap_or_default()),
            workload: sent.workload,
            patience: scenario.workload.patience_ms.map(|ms| Span::from_micros_f64(ms.get() * 1e3)),
            workload_name: workload::name(&scenario.workload),
            saturation: None,
            max_gb: max_gb(scenario),
            notes,
            files: sent.files,
            canonical: String::new(),
            tree: document(self.tree),
            identity: 0,
        };
        Ok(Checked { plan, rate: sent.rate.filter(|written| written.rate.needs_saturation()) })
    }

    /// Every check.
    fn parts(&self) -> Result<Parts, Problems> {
        let Reader { scenario, tree, guests, files } = self;
        let machine = machine::machine(scenario, tree);
        let engine = given(&machine, |machine| machine::engine(&scenario.engine, machine, tree));
        let tier = tier::tier(scenario, &machine, tree);
        let policies = policies::choose(scenario, tree, guests);
        let model = machine::model(scenario);
        let sent = workload::Reader {
            scenario,
            tree,
            model: tree.whole(&["model"]).is_ok().then_some(&model),
            horizon: scenario.horizon_us.and_then(|micros| horizon(micros.get())),
            files,
        };
        let sent = sent.read();
        let drafts = speculation::speculation(&scenario.engine, tree);
        let checks = (
            given(&policies, |policies| check_events(&scenario.signals, policies, tree)),
            given(&policies, |policies| given(&sent, |sent| check_oracle(policies, sent, tree))),
            given(&sent, check_has_saturation),
            check_size(scenario, tree),
            scenario.name.as_ref().map_or(Ok(()), |name| tree.check_name("name", name)),
        );
        let (machine, mut engine, tier, policies, sent, (drafts, _)) =
            (machine, engine, tier, policies, sent, (drafts, checks.together()).together())
                .together()?;
        engine.speculation = drafts;
        if engine.stages > 1 && (tier.kv.is_some() || engine.speculation.is_some()) {
            let message = "a pipeline with a CPU tier or with drafts is not modelled; remove it, or \
                `kv_tier` and `num_speculative_tokens`";
            return Err(tree.problem("pp", message));
        }
        Ok(Parts { machine, engine, tier, policies, sent })
    }
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
fn check_events(fields: &SignalFields, policies: &Policies, tree: &Node) -> Result<(), Problems> {
    tree.whole(&["strategy", "admission", "routing"])?;
    let given = [
        ("signals.kv_event_delay_us", fields.kv_event_delay_us),
        ("signals.speculative_ttl_us", fields.speculative_ttl_us),
    ];
    match given.iter().find(|(_, value)| value.is_some_and(|micros| micros.get() > 0)) {
        Some((path, _)) if !policies.gateway_needs().events => {
            let message = "is set, but no policy reads KV events; add a scorer that does, e.g. \
                `precise-prefix`";
            Err(tree.problem(*path, message))
        }
        _ => Ok(()),
    }
}

/// Recognises a workload specification where a scenario was expected.
fn check_is_scenario(tree: &Node) -> Result<(), Problems> {
    if tree.has("version") && (tree.has("clients") || tree.has("cohorts")) {
        let message = "this is a workload specification, not a scenario; give it with \
                       `--workload-spec`, or as `workload.spec` of a scenario";
        return Err(tree.problem("version", message));
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
fn check_oracle(policies: &Policies, sent: &Resolved, tree: &Node) -> Result<(), Problems> {
    if !policies.evict.needs().future || !sent.workload.is_closed_loop() {
        return Ok(());
    }
    let path = if tree.has("evict.policy") { "evict.policy" } else { "evict" };
    let message = format!(
        "found `{}`, which must know all requests in advance, but clients of this workload wait \
         for responses or retry; use another policy, e.g. `lru`, or `oracles: [evict]`, which \
         records them in a first run",
        policies.evict
    );
    Err(tree.problem(path, message))
}

/// What a run may take, in GB.
fn max_gb(scenario: &Scenario) -> u64 {
    scenario.max_gb.map_or(limit::USUAL_GB, Whole::get)
}

/// Replicas of the gateway and instances must fit memory together.
fn check_size(scenario: &Scenario, tree: &Node) -> Result<(), Problems> {
    tree.whole(&["cluster", "max_gb"])?;
    let [instances, gateways] = counts(scenario);
    match limit::of_cluster(instances, gateways, max_gb(scenario)) {
        Some(message) => Err(tree.problem("cluster", message)),
        None => Ok(()),
    }
}

/// How many instances and replicas of the gateway there are.
fn counts(scenario: &Scenario) -> [u32; 2] {
    let cluster = &scenario.cluster;
    [cluster.instances.map_or(1, Whole::get_u32), cluster.gateways.map_or(1, Whole::get_u32)]
}

/// Clients with a single session have no rate that could be a share of saturation.
fn check_has_saturation(sent: &Resolved) -> Result<(), Problems> {
    let single = |client: &Client| client.sessions.as_ref().is_some_and(|s| s.single);
    match (&sent.rate, &sent.workload) {
        (Some(written), Workload::Mix(mix))
            if written.rate.needs_saturation() && mix.clients.iter().any(single) =>
        {
            let message = "a client with a single session has no rate, so it cannot be a share of \
                           saturation; give requests per second";
            Err(written.problem(message).into())
        }
        _ => Ok(()),
    }
}
