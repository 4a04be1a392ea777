//! The plugins that stand for the policies of a plan.

use super::super::spelled::Spelled;
use super::super::write::Yaml;
use super::super::{Fit, Note, coverage};
use super::{Plugin, flow};
use blis_core::math::{count, float};
use blis_policy::Gate;
use blis_scenario::scenario::Plan;

/// Blocks of the approximate producer have at least so many tokens.
const LEAST_BLOCK: u32 = 64;
/// A threshold that nothing reaches.
pub(super) const NEVER: f64 = 999_999_999.0;
/// What a block in storage is worth to the precise producer, which wants all tiers or none.
const STORAGE_WEIGHT: f64 = 0.3;

const APPROX: &str = "approx-prefix-cache-producer";
const PRECISE: &str = "precise-prefix-cache-producer";
const DETECTOR: &str = "utilization-detector";

/// What has been put together so far.
pub(super) struct Parts<'a> {
    plan: &'a Plan,
    pub(super) plugins: Vec<Plugin>,
    /// Plugins of the profile by name, with the weights of scorers.
    pub(super) profile: Vec<(&'static str, Option<f64>)>,
    pub(super) notes: Vec<Note>,
    /// Thresholds of the saturation detector: waiting requests, and the share of blocks in use.
    detector: Option<(f64, f64)>,
    /// The section of flow control.
    pub(super) flow: Option<Yaml>,
}

impl<'a> Parts<'a> {
    pub(super) fn new(plan: &'a Plan) -> Parts<'a> {
        let (plugins, profile, notes) = (Vec::new(), Vec::new(), Vec::new());
        Parts { plan, plugins, profile, notes, detector: None, flow: None }
    }

    pub(super) fn has(&self, kind: &str) -> bool {
        self.plugins.iter().any(|plugin| plugin.kind == kind)
    }

    pub(super) fn hears_events(&self) -> bool {
        self.has(PRECISE)
    }

    /// Who enters.
    pub(super) fn admission(&mut self, gate: &Gate) {
        match gate {
            Gate::One(gate) => self.gate(&Spelled::of("admission", gate)),
            Gate::Composed(head, members) => {
                self.note(&Spelled::of("admission", head), Vec::new());
                for member in members.iter().filter(|_| head.name() == "all-of") {
                    self.admission(member);
                }
            }
        }
    }

    fn gate(&mut self, gate: &Spelled) {
        let number = |name: &str| gate.number(name).unwrap_or_default();
        match gate.name.as_str() {
            "slo-gated" => self.detect(number("threshold").max(1.0), 1.0),
            "kv-gate" => {
                let blocks = f64::from(self.plan.engine.total_kv_blocks.max(1));
                let free = number("free-share").max(number("free-blocks") / blocks);
                self.detect(NEVER, (1.0 - free).clamp(0.01, 1.0));
            }
            "probabilistic" => {
                let parameters = [
                    ("queueDepthThreshold", number("queue-threshold").ceil().max(1.0)),
                    ("kvCacheUtilThreshold", number("kv-threshold")),
                    ("power", number("power")),
                    ("k", number("k")),
                ];
                let parameters = parameters.map(|(name, value)| (name, Yaml::Number(value)));
                self.plugin("probabilistic-admitter", parameters.into());
                self.detect(NEVER, 1.0);
            }
            "flow-control" => {
                let (kind, parameters, section) = flow::section(gate);
                if kind == "concurrency-detector" {
                    self.in_flight(None);
                }
                self.plugin(kind, parameters);
                self.plugin(flow::fairness(gate), Vec::new());
                self.plugin(flow::order(gate), Vec::new());
                self.flow = Some(section);
            }
            "latency-slo" | "ttft-budget" => {
                self.predictor();
                self.plugin("latency-slo-admitter", Vec::new());
            }
            _ => {}
        }
        self.note(gate, Vec::new());
    }

    /// Where requests go.
    pub(super) fn routing(&mut self) {
        let routing = &self.plan.policies.routing;
        let oracle = self.plan.oracles.routing.then(|| self.plan.routing());
        let policy = Spelled::or_oracle("routing", &routing.router, oracle);
        self.note(&policy, Vec::new());
        match policy.name.as_str() {
            "least-loaded" | "power-of-two" => self.least_loaded(),
            "random" | "round-robin" => self.picker("random-picker"),
            "session-affinity" => {
                let ttl = policy.number("ttl").unwrap_or_default();
                let header = Yaml::Map(vec![("header", Yaml::text("x-session-id"))]);
                let config = Yaml::Map(vec![
                    ("sources", Yaml::List(vec![header])),
                    ("evictionTtlSeconds", Yaml::Number(ttl)),
                ]);
                self.unweighed(
                    "session-affinity-filter",
                    vec![("strategy", Yaml::text("session_id")), ("sessionIdConfig", config)],
                );
                self.least_loaded();
            }
            _ => {}
        }
        if let Some(parts) = routing.parts.as_ref().filter(|_| !self.plan.oracles.routing) {
            for filter in &parts.filters {
                self.filter(&Spelled::of("filter", filter));
            }
            for (scorer, weight) in parts.scorers.iter() {
                self.scorer(&Spelled::of("scorer", scorer), weight);
            }
            let picker = Spelled::of("picker", &parts.picker);
            let more = match (picker.name.as_str(), picker.value_of("ties"), picker.value_of("top"))
            {
                ("max-score", Some(ties), _) if ties == "lowest-index" => {
                    vec!["Ties by index have no counterpart".to_owned()]
                }
                ("random", _, Some(top)) if top != "auto" => {
                    vec![format!("Drawing from the best {top} alone has no counterpart")]
                }
                _ => Vec::new(),
            };
            self.note(&picker, more);
            self.picker(match picker.name.as_str() {
                "random" => "random-picker",
                "weighted-random" => "weighted-random-picker",
                _ => "max-score-picker",
            });
        }
    }

    fn scorer(&mut self, scorer: &Spelled, weight: f64) {
        let mut more = Vec::new();
        match scorer.name.as_str() {
            "prefix-affinity" => {
                let blocks = scorer.number("lru-capacity");
                self.approximate(blocks);
                self.prefix_scorer("approximate-prefix", APPROX, weight);
            }
            "precise-prefix" => {
                self.precise(scorer.number("cpu-weight").unwrap_or(1.0));
                self.prefix_scorer("precise-prefix", PRECISE, weight);
                if scorer.value("normalise") == "min-max" {
                    more.push(
                        "Scores relative to the other instances have no counterpart".to_owned(),
                    );
                }
            }
            "queue" | "queue-depth" => self.scorer_plugin("queue-scorer", Vec::new(), weight),
            "running-requests" => {
                self.scorer_plugin("running-requests-size-scorer", Vec::new(), weight);
            }
            "kv-utilization" => {
                self.scorer_plugin("kv-cache-utilization-scorer", Vec::new(), weight);
            }
            "active-request" => {
                self.in_flight(None);
                let given = |name: &str, default: f64| {
                    scorer.number(name).filter(|n| (n - default).abs() > 0.0)
                };
                let idle = given("idle", 0.0).map(|n| ("idleThreshold", Yaml::Number(n)));
                let busy = given("max-busy", 1.0).map(|n| ("maxBusyScore", Yaml::Number(n)));
                let parameters = idle.into_iter().chain(busy).collect();
                self.scorer_plugin("active-request-scorer", parameters, weight);
            }
            "load-balance" => {
                self.in_flight(None);
                self.scorer_plugin("active-request-scorer", Vec::new(), weight);
            }
            "no-hit-lru" => {
                self.hits(scorer);
                self.scorer_plugin("no-hit-lru-scorer", Vec::new(), weight);
            }
            "slo-headroom" => {
                self.predictor();
                let headroom = vec![("headroomSelectionStrategy", Yaml::text("most"))];
                self.scorer_plugin("latency-scorer", headroom, weight);
            }
            "predicted-latency" => more.extend(self.latency(scorer, weight)),
            "session" => {
                let ttl = format!("{}s", scorer.number("ttl").unwrap_or_default());
                let header = ("headerName", Yaml::text("x-session-id"));
                self.plugin("session-id-producer", vec![header, ("ttl", Yaml::Text(ttl))]);
                let producer = ("sessionIDProducerName", Yaml::text("session-id-producer"));
                self.scorer_plugin("session-affinity-scorer", vec![producer], weight);
            }
            "token-load" => more = self.token_load(scorer, weight),
            _ => more.push(format!("Left out, with its weight of {weight}")),
        }
        self.note(scorer, more);
    }

    /// The scorer by predicted times; what is different about it.
    fn latency(&mut self, scorer: &Spelled, weight: f64) -> Option<String> {
        self.predictor();
        let alike = scorer.value("normalise") == "llm-d";
        let tpot = scorer.number("tpot-share").filter(|_| alike).unwrap_or_default();
        let weights = [("ttftWeight", 1.0 - tpot), ("tpotWeight", tpot)];
        let weights = weights.map(|(name, share)| (name, Yaml::Number(share)));
        self.scorer_plugin("latency-scorer", weights.into(), weight);
        let idle = "Idle servers come first there, and scores are cut to hundredths";
        (!alike).then(|| idle.to_owned())
    }

    /// The scorer by tokens under way; what is different about it.
    fn token_load(&mut self, scorer: &Spelled, weight: f64) -> Vec<String> {
        let producer = self.hits(scorer);
        self.in_flight(Some(producer));
        let threshold = scorer.number("threshold").unwrap_or_default().ceil();
        let parameters = vec![("queueThresholdTokens", Yaml::Number(threshold))];
        self.scorer_plugin("token-load-scorer", parameters, weight);
        let mut more = Vec::new();
        if scorer.value("normalise") == "min-max" {
            more.push(
                "Scores relative to the other instances have no counterpart: set \
                 `queueThresholdTokens` to what a busy server has in flight"
                    .to_owned(),
            );
        }
        if scorer.value("count") != "projected" {
            more.push("Uncached tokens count, and those of the request itself".to_owned());
        }
        more
    }

    fn filter(&mut self, filter: &Spelled) {
        let number = |name: &str| filter.number(name).unwrap_or_default();
        match filter.name.as_str() {
            "kv-filter" => {
                self.detect(NEVER, number("max-utilization").clamp(0.01, 1.0));
                self.profile.push((DETECTOR, None));
            }
            "prefix-affinity-filter" => {
                let producer = self.hits(filter);
                self.in_flight(Some(producer));
                let prefill_us = self.plan.cluster().step.prefill_token_us;
                let of_steps = if prefill_us > 0.0 { float(count(1e6 / prefill_us)) } else { 1e6 };
                let throughput = filter.number("peak-prefill").unwrap_or(of_steps);
                let mut parameters = vec![
                    ("affinityThreshold", Yaml::Number(number("threshold"))),
                    ("explorationProbability", Yaml::Number(number("exploration"))),
                    ("maxTTFTPenaltyMs", Yaml::Number(number("max-penalty"))),
                ];
                if filter.value("ttft") == "predicted" {
                    self.predictor();
                    parameters.push(("ttftSource", Yaml::text("latencyPredictor")));
                } else {
                    parameters.push(("ttftSource", Yaml::text("prefillThroughput")));
                    let throughput = Yaml::Number(throughput.max(1.0));
                    parameters.push(("peakPrefillThroughput", throughput));
                }
                parameters.push(("prefixMatchInfoProducerName", Yaml::text(producer)));
                self.unweighed("prefix-cache-affinity-filter", parameters);
            }
            "slo-headroom-filter" => {
                self.predictor();
                let explore = ("epsilonExploreNeg", Yaml::Number(number("exploration")));
                self.unweighed("slo-headroom-tier-filter", vec![explore]);
            }
            _ => {}
        }
        self.note(filter, Vec::new());
    }

    /// Declares where `policy` takes its hits from, and names it.
    fn hits(&mut self, policy: &Spelled) -> &'static str {
        if policy.value_of("knowledge").is_some_and(|knowledge| knowledge == "precise") {
            self.precise(policy.number("cpu-weight").unwrap_or(1.0));
            return PRECISE;
        }
        self.approximate(None);
        APPROX
    }

    /// Declares the saturation detector, if anything reads it, and a picker, if there is none yet.
    pub(super) fn finish(&mut self) {
        if let Some((queue, kv)) = self.detector {
            let parameters = vec![
                ("queueDepthThreshold", Yaml::Number(queue.ceil())),
                ("kvCacheUtilThreshold", Yaml::Number(kv)),
            ];
            self.plugin(DETECTOR, parameters);
        }
        if !self.plugins.iter().any(|plugin| plugin.kind.ends_with("-picker")) {
            self.picker("max-score-picker");
        }
    }

    /// The stricter of what the saturation detector was told and this.
    fn detect(&mut self, queue: f64, kv: f64) {
        let (old_queue, old_kv) = self.detector.unwrap_or((NEVER, 1.0));
        self.detector = Some((old_queue.min(queue), old_kv.min(kv)));
    }

    /// The memory of what was sent, of `blocks` blocks of the engine; by default as large as llm-d
    /// makes it.
    fn approximate(&mut self, blocks: Option<f64>) {
        let engine = &self.plan.engine;
        let Some(blocks) = blocks else {
            return self.plugin(APPROX, vec![("autoTune", Yaml::Flag(true))]);
        };
        let tokens = blocks * f64::from(engine.block_size);
        let block = engine.block_size.max(LEAST_BLOCK);
        let capacity = (tokens / f64::from(block)).floor().max(1.0);
        self.plugin(
            APPROX,
            vec![
                ("autoTune", Yaml::Flag(false)),
                ("blockSizeTokens", Yaml::Number(f64::from(block))),
                ("lruCapacityPerServer", Yaml::Number(capacity)),
            ],
        );
    }

    /// The index of what KV events tell.
    fn precise(&mut self, cpu_weight: f64) {
        let model = Yaml::Text(self.plan.model.clone());
        let render = Yaml::Map(vec![("url", Yaml::text("http://localhost:8000"))]);
        self.plugin("token-producer", vec![("modelName", model), ("vllm", render)]);
        self.plugin("endpoint-notification-source", Vec::new());
        let size = Yaml::Number(f64::from(self.plan.engine.block_size));
        let mut parameters = vec![("tokenProcessorConfig", Yaml::Map(vec![("blockSize", size)]))];
        if self.plan.engine.tier.is_some() {
            let tier = |name: &str, weight: f64| {
                Yaml::Map(vec![("name", Yaml::text(name)), ("weight", Yaml::Number(weight))])
            };
            let tiers =
                vec![tier("gpu", 1.0), tier("cpu", cpu_weight), tier("storage", STORAGE_WEIGHT)];
            let tiers = Yaml::Map(vec![("kvCacheBackendConfigs", Yaml::List(tiers))]);
            parameters.push(("indexerConfig", tiers));
        }
        if let Some(ttl) = self.plan.signals.speculation {
            parameters.push(("speculativeIndexing", Yaml::Flag(true)));
            let ttl = format!("{}ms", ttl.as_millis_f64());
            parameters.push(("speculativeTTL", Yaml::Text(ttl)));
        }
        self.plugin(PRECISE, parameters);
    }

    fn predictor(&mut self) {
        self.plugin("predicted-latency-producer", vec![("streamingMode", Yaml::Flag(true))]);
    }

    /// Declares the counts of requests and tokens under way, less the hits that `producer` knows.
    fn in_flight(&mut self, producer: Option<&str>) {
        self.plugin("inflight-load-producer", Vec::new());
        let kind = |plugin: &&mut Plugin| plugin.kind == "inflight-load-producer";
        if let (Some(name), Some(plugin)) = (producer, self.plugins.iter_mut().find(kind)) {
            // Whoever declared it first may have had no need of hits.
            plugin.parameters = vec![("prefixMatchInfoProducerName", Yaml::text(name))];
        }
    }

    /// Declares a plugin of `kind`, unless there is one.
    fn plugin(&mut self, kind: &'static str, parameters: Vec<(&'static str, Yaml)>) {
        if !self.has(kind) {
            self.plugins.push(Plugin { kind, name: None, parameters });
        }
    }

    fn prefix_scorer(&mut self, name: &'static str, producer: &str, weight: f64) {
        let parameters = vec![("prefixMatchInfoProducerName", Yaml::text(producer))];
        self.plugins.push(Plugin { kind: "prefix-cache-scorer", name: Some(name), parameters });
        self.weigh(name, weight);
    }

    fn scorer_plugin(
        &mut self,
        kind: &'static str,
        parameters: Vec<(&'static str, Yaml)>,
        weight: f64,
    ) {
        self.plugin(kind, parameters);
        self.weigh(kind, weight);
    }

    /// Gives the scorer a weight. Two that become one add their weights.
    fn weigh(&mut self, name: &'static str, weight: f64) {
        match self.profile.iter_mut().find(|(known, _)| *known == name) {
            Some((_, known)) => *known = Some(known.unwrap_or_default() + weight),
            None => self.profile.push((name, Some(weight))),
        }
    }

    /// Declares a plugin of the profile that has no weight.
    fn unweighed(&mut self, kind: &'static str, parameters: Vec<(&'static str, Yaml)>) {
        self.plugin(kind, parameters);
        self.profile.push((kind, None));
    }

    fn picker(&mut self, kind: &'static str) {
        self.unweighed(kind, Vec::new());
    }

    /// Sends requests to where the fewest are.
    fn least_loaded(&mut self) {
        self.in_flight(None);
        self.scorer_plugin("active-request-scorer", Vec::new(), 1.0);
        self.picker("max-score-picker");
    }

    fn note(&mut self, policy: &Spelled, more: Vec<String>) {
        let mut fit = coverage::fit(policy.kind, &policy.name);
        if let (Fit::Exact(text), false) = (fit, more.is_empty()) {
            // A parameter makes the difference.
            fit = Fit::Approximate(text);
        }
        self.notes.push(Note { part: policy.part(), policy: true, fit, more });
    }
}
