//! A checked scenario with all defaults filled in, from which any number of runs can be built.

use crate::files::{Content, open_trace};
use crate::hash;
use crate::legal::LONGEST_US;
use crate::problem::Problem;
use crate::scenario::Draft;
use crate::scenario::canonical::canonical;
use crate::scenario::oracles::Oracles;
use crate::yaml::Node;
use blis_core::math::float;
use blis_core::{RequestId, Source, Span, Time};
use blis_latency::{Parallel, StepTime};
use blis_metrics::SloTargets;
use blis_policy::evict::belady;
use blis_policy::{Chosen, Cluster, Policies};
use blis_sim::{Config, Engine, Gateway, Instead, Pace, Pool, Signals};
use blis_workload::{Activity, Mix, Rate, TraceOptions};
use std::path::PathBuf;
use std::sync::Arc;

/// When a run without a horizon ends at the latest: after a century, far from the end of the clock,
/// so that no legal span can carry a run past it.
const LAST: Time = Time::from_micros(10 * LONGEST_US);

/// A checked scenario. Building a run from it can only fail if a trace file changes meanwhile.
#[derive(Clone, Debug)]
pub struct Plan {
    /// A short name for reports.
    pub name: Option<String>,
    /// The seed of a single run.
    pub seed: u64,
    /// The model's name.
    pub model: String,
    /// The GPU's name; absent if no fit of the catalogue is used.
    pub hardware: Option<String>,
    /// How the GPUs of an instance share the model; absent if no fit of the catalogue is used.
    pub parallel: Option<Parallel>,
    /// What vLLM calls the type of the KV cache; absent if it is the model's own.
    pub kv_cache_dtype: Option<&'static str>,
    /// Number of instances.
    pub instances: u32,
    /// Number of replicas of the gateway.
    pub gateways: u32,
    /// The engine of each instance.
    pub engine: Engine,
    /// Delays of the gateway.
    pub gateway: Gateway,
    /// How fresh the router's view is.
    pub signals: Signals,
    /// Whether a policy of the gateway listens to KV events.
    pub hears_events: bool,
    /// How long things take.
    pub latency: Arc<dyn StepTime>,
    /// The same, in words.
    pub latency_name: String,
    /// What whoever reads the times must know of them, e.g. that they are not measured.
    pub latency_caveat: Option<String>,
    /// The policies.
    pub policies: Policies,
    /// The decisions that oracles take instead of them.
    pub oracles: Oracles,
    /// When to stop at the latest.
    pub horizon: Option<Time>,
    /// Requests that arrive earlier are not counted.
    pub warmup: Time,
    /// Targets by class.
    pub slo: SloTargets,
    /// What is sent.
    pub workload: Workload,
    /// How long clients that do not say it themselves wait for the first token.
    pub patience: Option<Span>,
    /// What that is called: the name of a preset or a file, or how it is written out.
    pub workload_name: String,
    /// The cluster's saturation on this workload in arrivals per second, if the rate is a share of
    /// it.
    pub saturation: Option<f64>,
    /// Most memory and output of a run in GB, by estimate.
    pub max_gb: u64,
    /// What was accepted although it changes nothing, and other things that the user should know.
    pub notes: Vec<String>,
    /// The files that a specification of the workload names and that were read as well.
    pub files: Vec<PathBuf>,
    pub(crate) canonical: String,
    /// The scenario as it was written.
    pub(crate) tree: Node,
    /// A long hash of `canonical`.
    pub identity: u128,
}

/// What distinguishes one run of a plan from another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Trial {
    /// Seed of the workload and of the policies' random choices.
    pub seed: u64,
    /// Whether runs of equal steps are taken at once.
    pub pace: Pace,
    /// Whether every invariant is checked along the way.
    pub audit: bool,
    /// Time between samples of all instances, for those who listen to them; `None`: no samples.
    pub sample_interval: Option<Span>,
    /// A request that goes elsewhere than the router says, to see what would have been.
    pub overrule: Option<(RequestId, Instead)>,
    /// Whether the distributions of latencies are reported.
    pub curves: bool,
    /// Whether chunks and what routers considered are stated, for those who listen to them.
    pub details: bool,
}

impl Trial {
    /// The plain run with `seed`: as fast as it goes, with nothing besides.
    pub const fn new(seed: u64) -> Trial {
        Trial {
            seed,
            pace: Pace::FastForward,
            audit: false,
            sample_interval: None,
            overrule: None,
            curves: false,
            details: false,
        }
    }
}

/// What is sent.
#[derive(Clone, Debug)]
pub enum Workload {
    /// Generated requests; the seed is the run's.
    Mix(Mix),
    /// Requests read from a file.
    Trace {
        /// The file.
        path: PathBuf,
        /// How to read it.
        options: TraceOptions,
        /// How many requests it gives.
        requests: u64,
        /// Whether some of them follow up on others.
        closed_loop: bool,
        /// What the file held when it was checked; a run reads that or fails.
        content: Arc<Content>,
    },
}

impl Workload {
    /// Whether some requests depend on when others end.
    pub fn is_closed_loop(&self) -> bool {
        match self {
            Workload::Mix(mix) => mix.is_closed_loop(),
            Workload::Trace { closed_loop, .. } => *closed_loop,
        }
    }
}

impl Plan {
    /// How the GPUs of an instance share the model; as one does if that is not known.
    pub fn shared(&self) -> Parallel {
        self.parallel.unwrap_or(Parallel::tensor(1))
    }

    /// What `sim` needs for `trial`, but for the future, which oracles are told of.
    pub fn config(&self, trial: &Trial) -> Config {
        let Oracles { routing, scheduler, evict: _ } = self.oracles;
        Config {
            pools: vec![Pool {
                name: "default".to_owned(),
                count: self.instances,
                engine: self.engine,
                latency: self.latency.clone(),
            }],
            gateway: self.gateway,
            signals: self.signals,
            patience: self.patience,
            policies: self.built(trial.details),
            oracles: blis_sim::Oracles { routing, scheduler },
            future: None,
            seed: trial.seed,
            overrule: trial.overrule,
            horizon: Some(self.horizon.unwrap_or(LAST)),
            warmup: self.warmup,
            pace: trial.pace,
            audit: trial.audit,
            sample_interval: trial.sample_interval,
        }
    }

    /// The policies, made for one run.
    fn built(&self, details: bool) -> blis_sim::Policies {
        let mut policies = self.policies.clone();
        if self.oracles.evict {
            policies.evict = Chosen::plain(&belady::SPEC);
        }
        let built = blis_sim::Policies::new(&policies, self.gateways, &self.cluster());
        if details { built.detailed(&policies, &self.cluster()) } else { built }
    }

    /// The kind of its latency model: `coefficients`, `constant`, `operators`, `profile`,
    /// `roofline`.
    pub fn latency_kind(&self) -> &str {
        self.latency_name.split(' ').next().unwrap_or_default()
    }

    /// The full spelling of the router, or of the oracle that decides for it.
    pub fn routing(&self) -> String {
        if self.oracles.routing {
            return "oracle:look-ahead".to_owned();
        }
        self.policies.routing.to_string()
    }

    /// The full spelling of the order, or of the oracle that decides for it.
    pub fn scheduler(&self) -> String {
        if self.oracles.scheduler {
            return "oracle:shortest-remaining".to_owned();
        }
        self.policies.order.to_string()
    }

    /// The full spelling of the evictor, or of the oracle that decides for it. In a closed loop it
    /// learns the requests from a run with the policy that it replaces.
    pub fn evict(&self) -> String {
        let evict = &self.policies.evict;
        match (self.oracles.evict, self.workload.is_closed_loop()) {
            (false, _) => evict.to_string(),
            (true, false) => "oracle:belady".to_owned(),
            (true, true) => format!("oracle:belady(recorded with {evict})"),
        }
    }

    /// The requests of a run with `seed`.
    ///
    /// # Errors
    /// If the trace file can no longer be opened, or has another content by now.
    pub fn source(&self, seed: u64) -> Result<Box<dyn Source>, Problem> {
        match &self.workload {
            Workload::Mix(mix) => Ok(Box::new(Mix { seed, ..mix.clone() }.source())),
            Workload::Trace { path, options, requests, closed_loop, content } => {
                let trace = open_trace(path, options, content)?;
                Ok(Box::new(trace.expecting(*requests, *closed_loop)))
            }
        }
    }

    /// How many requests a run will see, if that is known beforehand.
    pub fn expected_requests(&self) -> Option<u64> {
        match &self.workload {
            Workload::Mix(mix) => mix.expected(),
            Workload::Trace { requests, closed_loop, .. } => {
                Some(*requests).filter(|_| !closed_loop)
            }
        }
    }

    /// The most requests that a run may have, if that is known.
    pub fn requests(&self) -> Option<u64> {
        match &self.workload {
            Workload::Mix(mix) => mix.num_requests,
            Workload::Trace { requests, .. } => Some(*requests),
        }
    }

    /// The scenario as text: every field with its value, defaults included, always in the same
    /// order. The seed and the names are left out: they are not part of what is compared.
    pub fn canonical(&self) -> &str {
        &self.canonical
    }

    /// A hash of [`Plan::canonical`], as 16 hexadecimal digits. Stable across versions of the
    /// program as long as the scenario means the same.
    pub fn hash(&self) -> String {
        format!("{:016x}", hash::hash(self.canonical.as_bytes()))
    }

    /// The scenario as it was written, in JSON and on one line: with every patch and flag in it,
    /// with paths that are good from anywhere on this machine, and without the seed.
    pub fn document(&self) -> String {
        self.tree.to_json()
    }

    /// The same, with a warm-up of so many seconds.
    #[must_use]
    pub fn warmed(&self, seconds: f64) -> Plan {
        let mut plan = self.clone();
        plan.warmup = Time::ZERO + Span::from_secs_f64(seconds);
        plan.tree.set(&["warmup_s"], Node::from_flag("warmup", &seconds.to_string()));
        plan.name_itself();
        plan
    }

    /// How many requests a run has, if that can be changed without changing what is asked: they
    /// come at a rate that stays the same, until there are so many.
    pub fn steady_requests(&self) -> Option<u64> {
        let Workload::Mix(mix) = &self.workload else { return None };
        let always = mix.clients.iter().all(|client| client.activity == Activity::default());
        let steady = !matches!(mix.rate, Rate::Shaped(_)) && always;
        let endless = self.horizon.is_none() && mix.horizon.is_none();
        mix.num_requests.filter(|_| steady && endless)
    }

    /// For how many seconds requests arrive, on average, if a run can be made longer.
    pub fn arrivals_s(&self) -> Option<f64> {
        let Workload::Mix(Mix { rate: Rate::Steady(rate), .. }) = self.workload else {
            return None;
        };
        self.steady_requests().map(|requests| float(requests) / rate)
    }

    /// Whether requests come faster than the saturation that was measured, and not just by its
    /// error.
    pub fn is_above_saturation(&self) -> bool {
        let Workload::Mix(Mix { rate: Rate::Steady(rate), .. }) = self.workload else {
            return false;
        };
        self.steady_requests().is_some() && self.saturation.is_some_and(|most| rate > 1.02 * most)
    }

    /// The same with so many requests, if it has a number of them.
    #[must_use]
    pub fn with_requests(&self, requests: u64) -> Plan {
        let mut plan = self.clone();
        if let Workload::Mix(mix) = &mut plan.workload {
            mix.num_requests = Some(requests);
        }
        let mut draft = Draft::from_tree(plan.tree);
        draft.set_amount("length", "num_requests", &requests.to_string());
        plan.tree = draft.into_tree();
        plan.name_itself();
        plan
    }

    /// Writes down what it is, once all of it is known.
    pub(crate) fn name_itself(&mut self) {
        self.canonical = canonical(self);
        self.identity = hash::hash_long(self.canonical.as_bytes());
    }

    /// What policies know of the cluster.
    pub fn cluster(&self) -> Cluster {
        super::cost::cluster(self.instances, &self.engine, &*self.latency, &self.slo)
    }
}
