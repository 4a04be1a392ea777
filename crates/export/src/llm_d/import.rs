//! An `EndpointPickerConfig` of llm-d as a strategy: the way back from [`super::export`].
//!
//! The file may also be Helm values that have the configuration as a text inside, as llm-d's guides
//! ship it. Every part without a counterpart gets a line; nothing is guessed.

use super::super::legal::seconds;
use super::{flow, unread};
use blis_core::math::count;
use blis_scenario::problem::Place;
use blis_scenario::yaml::{self, Kind, Node, quoted};
use blis_scenario::{Draft, Problem, Problems};
use std::collections::BTreeMap;
use std::fmt::Write;

/// What the document is called.
const KIND: &str = "EndpointPickerConfig";
const APPROX: &str = "approx-prefix-cache-producer";
pub(super) const PRECISE: &str = "precise-prefix-cache-producer";

/// A configuration as a strategy.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Imported {
    /// The strategy's file.
    pub text: String,
    /// What it leaves out, a line each.
    pub left_out: Vec<String>,
}

/// What a plugin becomes.
enum Part {
    Filter(String),
    Scorer(String),
    Picker(&'static str),
    Admission(String),
    /// A router that keeps sessions where they are.
    Sessions(String),
    /// It needs no counterpart: the simulator always does that.
    Given,
    Unknown,
}

/// Reads the configuration in `tree` as a strategy called `name`.
///
/// # Errors
/// If it is no configuration of an endpoint picker, or one that no strategy can be made of.
pub fn import(tree: &Node, name: &str) -> Result<Imported, Problems> {
    let Some(tree) = find(tree)? else {
        let message = format!("no `kind: {KIND}`, neither here nor in a text inside");
        return Err(tree.problem("", message));
    };
    let left_out = unread::lines(&tree)?;
    let config = Config::read(&tree);
    let mut made = Made { left_out, ..Made::default() };
    let profiles = items(tree.field("schedulingProfiles"));
    let default = |profile: &&Node| text(profile, "name") == Some("default");
    let profile = profiles.iter().find(default).or(profiles.first());
    for other in
        profiles.iter().filter(|other| !profile.is_some_and(|one| std::ptr::eq(one, *other)))
    {
        let name = text(other, "name").unwrap_or_default();
        made.left_out.push(format!("profile `{name}`: one profile routes here"));
    }
    for used in items(profile.and_then(|profile| profile.field("plugins"))) {
        made.add(&config, text(used, "pluginRef").unwrap_or_default(), text(used, "weight"));
    }
    if profile.is_none() {
        // The default profile has all plugins.
        for name in config.plugins.keys().filter(|name| config.routes(name)) {
            made.add(&config, name, None);
        }
    }
    let flow = flow::read(&config, &tree, &mut made.left_out);
    made.gates.extend(flow);
    for (name, plugin) in &config.plugins {
        made.declared(&config, name, plugin);
    }
    made.finish(name, &tree)
}

/// The configuration itself: the document, or one that is written in a text of it.
fn find(node: &Node) -> Result<Option<Node>, Problem> {
    match &node.kind {
        Kind::Map(_) if text(node, "kind") == Some(KIND) => Ok(Some(node.clone())),
        Kind::Map(fields) => {
            let mut found = fields.iter().map(|(_, _, value)| find(value));
            found.find(|found| !matches!(found, Ok(None))).unwrap_or(Ok(None))
        }
        Kind::Scalar { text, .. } if text.contains(KIND) => {
            let name = match &node.place {
                Place::File { file, .. } => format!("{file}, the configuration inside"),
                _ => "the configuration inside".to_owned(),
            };
            find(&yaml::read_text(&name, text)?)
        }
        _ => Ok(None),
    }
}

/// What the simulator always does, or reads where something else refers to it.
const GIVEN: [&str; 18] = [
    APPROX,
    "concurrency-detector",
    "core-metrics-extractor",
    "decode-filter",
    "edf-ordering-policy",
    "endpoint-notification-source",
    "fcfs-ordering-policy",
    "global-strict-fairness-policy",
    "inflight-load-producer",
    "metrics-data-source",
    PRECISE,
    "predicted-latency-producer",
    "round-robin-fairness-policy",
    "session-id-producer",
    "single-profile-handler",
    "slo-deadline-ordering-policy",
    "token-producer",
    "tokenizer",
];

/// The parameters that are taken over or need no counterpart (`*`: all), by types of plugins.
const TAKEN: [(&[&str], &[&str]); 14] = [
    (&["active-request-scorer"], &["idleThreshold", "maxBusyScore"]),
    (&[APPROX], &["autoTune", "blockSizeTokens", "lruCapacityPerServer"]),
    (&["concurrency-detector"], &["concurrencyMode", "maxConcurrency", "maxTokenConcurrency"]),
    (&["utilization-detector", "concurrency-detector"], &["headroom"]),
    (&["utilization-detector"], &["kvCacheUtilThreshold", "queueDepthThreshold"]),
    (&["utilization-detector"], &["metricsStalenessThreshold"]),
    (&["latency-scorer"], &["headroomSelectionStrategy", "tpotWeight", "ttftWeight"]),
    (&["prefix-cache-affinity-filter"], &["affinityThreshold", "explorationProbability"]),
    (&["prefix-cache-affinity-filter"], &["maxTTFTPenaltyMs", "maxTokensInFlightPenalty"]),
    (&["prefix-cache-affinity-filter"], &["peakPrefillThroughput", "ttftSource"]),
    (&["probabilistic-admitter"], &["*"]),
    (&[PRECISE, "precise-prefix-cache-scorer", "token-producer", "tokenizer"], &["*"]),
    (&["predicted-latency-producer", "session-affinity-filter", "session-id-producer"], &["*"]),
    (
        &["slo-headroom-tier-filter", "token-load-scorer"],
        &["epsilonExploreNeg", "queueThresholdTokens"],
    ),
];

/// Plugins by name.
pub(super) struct Config<'a> {
    pub(super) plugins: BTreeMap<&'a str, &'a Node>,
}

impl<'a> Config<'a> {
    fn read(tree: &'a Node) -> Config<'a> {
        let named = |plugin: &'a Node| {
            let name = text(plugin, "name").or(text(plugin, "type"));
            (name.unwrap_or_default(), plugin)
        };
        Config { plugins: items(tree.field("plugins")).iter().map(named).collect() }
    }

    /// The `knowledge` of a plugin that takes its hits from the producer named in `field`.
    fn knowledge(&self, plugin: &Node, field: &str) -> &'static str {
        let name = parameter(plugin, field).unwrap_or_default();
        let kind = self.plugins.get(name).and_then(|producer| text(producer, "type"));
        if kind.unwrap_or(name) == PRECISE { "precise" } else { "approximate" }
    }

    fn part(&self, plugin: &Node) -> Part {
        let spelled = |name: &str, pairs: &[(&str, &str)]| {
            let given = pairs.iter().filter_map(|(ours, theirs)| {
                Some(format!("{ours}={}", parameter(plugin, theirs)?))
            });
            spell(name, &given.collect::<Vec<_>>())
        };
        let hits =
            || format!("knowledge={}", self.knowledge(plugin, "prefixMatchInfoProducerName"));
        match text(plugin, "type").unwrap_or_default() {
            "queue-scorer" => Part::Scorer("queue".to_owned()),
            "running-requests-size-scorer" => Part::Scorer("running-requests".to_owned()),
            "kv-cache-utilization-scorer" => Part::Scorer("kv-utilization".to_owned()),
            "active-request-scorer" => Part::Scorer(spelled(
                "active-request",
                &[("idle", "idleThreshold"), ("max-busy", "maxBusyScore")],
            )),
            "precise-prefix-cache-scorer" => Part::Scorer(precise(plugin)),
            "prefix-cache-scorer" if hits() == "knowledge=precise" => {
                Part::Scorer(self.kind(PRECISE).map_or("precise-prefix".to_owned(), precise))
            }
            "prefix-cache-scorer" => Part::Scorer(self.approximate(plugin)),
            "no-hit-lru-scorer" => Part::Scorer(spell("no-hit-lru", &[hits()])),
            "token-load-scorer" => Part::Scorer(self.token_load(plugin)),
            "session-affinity-scorer" => Part::Scorer(self.session(plugin)),
            "latency-scorer" => Part::Scorer(latency(plugin)),
            "lmetric-scorer" => Part::Scorer(spell("lmetric", &[hits()])),
            "session-affinity-filter" => Part::Sessions(sessions(plugin)),
            "slo-headroom-tier-filter" => Part::Filter(spelled(
                "slo-headroom-filter",
                &[("exploration", "epsilonExploreNeg")],
            )),
            "utilization-detector" => {
                Part::Filter(spelled("kv-filter", &[("max-utilization", "kvCacheUtilThreshold")]))
            }
            "prefix-cache-affinity-filter" => Part::Filter(affinity(plugin, hits())),
            "max-score-picker" => Part::Picker("max-score"),
            "random-picker" => Part::Picker("random"),
            "weighted-random-picker" => Part::Picker("weighted-random"),
            "probabilistic-admitter" => Part::Admission(spelled(
                "probabilistic",
                &[
                    ("queue-threshold", "queueDepthThreshold"),
                    ("kv-threshold", "kvCacheUtilThreshold"),
                    ("power", "power"),
                    ("k", "k"),
                ],
            )),
            "latency-slo-admitter" => Part::Admission("latency-slo".to_owned()),
            kind if GIVEN.contains(&kind) => Part::Given,
            _ => Part::Unknown,
        }
    }

    /// Whether a profile that names no plugins has this one.
    fn routes(&self, name: &str) -> bool {
        let plugin = self.plugins[name];
        let part = self.part(plugin);
        let routes =
            matches!(part, Part::Filter(_) | Part::Scorer(_) | Part::Picker(_) | Part::Sessions(_));
        routes && text(plugin, "type") != Some("utilization-detector")
    }

    /// The first plugin of that type.
    fn kind(&self, kind: &str) -> Option<&'a Node> {
        self.plugins.values().copied().find(|plugin| text(plugin, "type") == Some(kind))
    }

    /// The scorer by what was sent, with the size of its producer's memory if that is given, in
    /// blocks of 16 tokens.
    fn approximate(&self, plugin: &Node) -> String {
        let name = parameter(plugin, "prefixMatchInfoProducerName").unwrap_or(APPROX);
        let producer = self.plugins.get(name).copied().or(self.kind(APPROX));
        let given = |name| flow::number(parameter(producer?, name)?);
        let fixed = producer.and_then(|it| parameter(it, "autoTune")) == Some("false");
        let capacity = fixed.then(|| given("lruCapacityPerServer").unwrap_or(31_250.0));
        let block = given("blockSizeTokens").unwrap_or_default().max(64.0);
        let capacity = capacity.map(|blocks| format!("lru-capacity={}", blocks * block / 16.0));
        spell("prefix-affinity", &capacity.into_iter().collect::<Vec<_>>())
    }

    /// The scorer by session, which lasts as long as its producer says.
    fn session(&self, plugin: &Node) -> String {
        let name = parameter(plugin, "sessionIDProducerName").unwrap_or("session-id-producer");
        let ttl = self.plugins.get(name).and_then(|producer| parameter(producer, "ttl"));
        let ttl = ttl.and_then(seconds).map(|seconds| format!("ttl={seconds}"));
        spell("session", &ttl.into_iter().collect::<Vec<_>>())
    }

    fn token_load(&self, plugin: &Node) -> String {
        let producer = parameter(plugin, "inFlightLoadProducerName");
        let counts = self.plugins.get(producer.unwrap_or("inflight-load-producer"));
        let knowledge = counts
            .map_or("approximate", |counts| self.knowledge(counts, "prefixMatchInfoProducerName"));
        let mut values = vec!["count=projected".to_owned(), "normalise=threshold".to_owned()];
        let threshold = parameter(plugin, "queueThresholdTokens");
        values.extend(threshold.map(|tokens| format!("threshold={tokens}")));
        values.push(format!("knowledge={knowledge}"));
        spell("token-load", &values)
    }
}

/// The scorer by KV events, with what a block of the CPU tier is worth.
fn precise(plugin: &Node) -> String {
    let indexer = plugin.field("parameters").and_then(|given| given.field("indexerConfig"));
    let tiers = items(indexer.and_then(|indexer| indexer.field("kvCacheBackendConfigs")));
    let cpu = tiers.iter().find(|tier| text(tier, "name") == Some("cpu"));
    let weight =
        cpu.and_then(|cpu| text(cpu, "weight")).map(|weight| format!("cpu-weight={weight}"));
    spell("precise-prefix", &weight.into_iter().collect::<Vec<_>>())
}

/// The scorer by predicted times, with the share that the time per output token has.
fn latency(plugin: &Node) -> String {
    let weight = |name, default| parameter(plugin, name).and_then(flow::number).unwrap_or(default);
    let (ttft, tpot) = (weight("ttftWeight", 0.8), weight("tpotWeight", 0.2));
    let share = if ttft + tpot > 0.0 { tpot / (ttft + tpot) } else { 0.0 };
    spell("predicted-latency", &["normalise=llm-d".to_owned(), format!("tpot-share={share}")])
}

/// The router that keeps sessions where they are, for as long as the filter says.
fn sessions(plugin: &Node) -> String {
    let config = plugin.field("parameters").and_then(|given| given.field("sessionIdConfig"));
    let ttl = config.and_then(|config| text(config, "evictionTtlSeconds"));
    let ttl = ttl.map(|ttl| format!("ttl={ttl}"));
    spell("session-affinity", &ttl.into_iter().collect::<Vec<_>>())
}

/// The prefill throughput that llm-d assumes if none is given, in tokens/s.
const PEAK_PREFILL: &str = "15928";

/// The filter by cached prefix.
fn affinity(plugin: &Node, hits: String) -> String {
    let given = |ours: &str, theirs: &str| Some(format!("{ours}={}", parameter(plugin, theirs)?));
    let predicted = parameter(plugin, "ttftSource") == Some("latencyPredictor");
    let always = parameter(plugin, "maxTTFTPenaltyMs") == Some("0");
    // Older releases can bound the tokens in flight instead: at 1,000 tokens a second, a token is a
    // millisecond.
    let tokens = parameter(plugin, "maxTokensInFlightPenalty").filter(|_| always);
    let peak = parameter(plugin, "peakPrefillThroughput").unwrap_or(PEAK_PREFILL);
    let peak = if tokens.is_some() { "1000" } else { peak };
    let values = [
        given("threshold", "affinityThreshold"),
        given("exploration", "explorationProbability"),
        tokens.map(|tokens| format!("max-penalty={tokens}")),
        given("max-penalty", "maxTTFTPenaltyMs").filter(|_| tokens.is_none()),
        predicted.then(|| "ttft=predicted".to_owned()),
        (!predicted).then(|| format!("peak-prefill={peak}")),
        Some(hits),
    ];
    spell("prefix-affinity-filter", &values.into_iter().flatten().collect::<Vec<_>>())
}

/// What has been put together so far.
#[derive(Default)]
struct Made {
    gates: Vec<String>,
    filters: Vec<String>,
    scorers: Vec<String>,
    picker: Option<&'static str>,
    /// A router that keeps sessions where they are.
    sessions: Option<String>,
    /// How long the index believes what it expects, in us.
    speculation: Option<u64>,
    left_out: Vec<String>,
}

impl Made {
    fn add(&mut self, config: &Config<'_>, name: &str, weight: Option<&str>) {
        let Some(plugin) = config.plugins.get(name) else {
            self.left_out.push(format!("plugin `{name}`: it is not declared"));
            return;
        };
        match config.part(plugin) {
            Part::Filter(filter) => self.filters.push(filter),
            Part::Scorer(scorer) => {
                self.scorers.push(format!("{scorer}:{}", weight.unwrap_or("1")));
            }
            Part::Picker(picker) => self.picker = Some(picker),
            Part::Sessions(router) => self.sessions = Some(router),
            Part::Admission(_) | Part::Given | Part::Unknown => {}
        }
    }

    /// A plugin that is declared: what works without a place in a profile, and what is left out.
    fn declared(&mut self, config: &Config<'_>, name: &str, plugin: &Node) {
        let part = config.part(plugin);
        let kind = text(plugin, "type").unwrap_or_default();
        if kind.starts_with("precise-prefix-cache-")
            && parameter(plugin, "speculativeIndexing") == Some("true")
        {
            let ttl = parameter(plugin, "speculativeTTL").and_then(seconds).unwrap_or(2.0);
            self.speculation = Some(count(ttl * 1e6));
        }
        if let Part::Admission(gate) = &part {
            self.gates.push(gate.clone());
        }
        if matches!(part, Part::Unknown) {
            self.left_out.push(format!("plugin `{name}` of type `{kind}`: no counterpart"));
            return;
        }
        let Some(Kind::Map(given)) = plugin.field("parameters").map(|node| &node.kind) else {
            return;
        };
        let taken = TAKEN.iter().filter(|(kinds, _)| kinds.contains(&kind));
        let taken: Vec<&str> = taken.flat_map(|(_, taken)| taken.iter().copied()).collect();
        for (parameter, ..) in given {
            let known = parameter.ends_with("ProducerName") || taken.contains(&"*");
            if !known && !taken.contains(&parameter.as_str()) {
                self.left_out.push(format!("parameter `{parameter}` of `{name}`: no counterpart"));
            }
        }
    }

    fn finish(self, name: &str, tree: &Node) -> Result<Imported, Problems> {
        let mut set = String::new();
        let mut line = |text: String| writeln!(set, "{text}").expect("text can grow");
        match &self.gates[..] {
            [] => {}
            [gate] => line(format!("admission: {}", quoted(gate))),
            gates => {
                line(format!("admission: {}", quoted(&format!("all-of({})", gates.join("; ")))));
            }
        }
        match (&self.scorers[..], self.picker) {
            _ if self.sessions.is_some() => {
                line(format!("routing: {}", quoted(&self.sessions.unwrap_or_default())));
            }
            ([], Some("random") | None) if self.filters.is_empty() => {
                line("routing: random".to_owned());
            }
            (scorers, picker) => {
                line("routing:".to_owned());
                line("  policy: weighted".to_owned());
                if !self.filters.is_empty() {
                    line(format!("  filters: {}", quoted(&self.filters.join(","))));
                }
                line(format!("  scorers: {}", quoted(&scorers.join(","))));
                line(format!("  picker: {}", picker.unwrap_or("max-score")));
            }
        }
        if let Some(ttl) = self.speculation.filter(|_| set.contains("precise")) {
            writeln!(set, "signals: {{speculative_ttl_us: {ttl}}}").expect("text can grow");
        }
        // Whatever is wrong with a value is told before the strategy is.
        let draft = Draft::from_text("the imported strategy", &set)?.without_workload();
        draft.resolve().map_err(|problems| {
            let here = |it: Problem| Problem { place: tree.place.clone(), ..it };
            problems.into_iter().map(here).collect::<Problems>()
        })?;
        let indented = format!("  {}\n", set.trim_end().replace('\n', "\n  "));
        let help = quoted("llm-d's endpoint picker, as configured");
        let text = format!("name: {}\nhelp: {help}\nset:\n{indented}", quoted(name));
        Ok(Imported { text, left_out: self.left_out })
    }
}

/// A policy with these parameters.
pub(super) fn spell(name: &str, values: &[String]) -> String {
    if values.is_empty() { name.to_owned() } else { format!("{name}[{}]", values.join(",")) }
}

pub(super) fn items(list: Option<&Node>) -> &[Node] {
    list.map_or(&[], Node::items)
}

/// The scalar in `field` of `node`.
pub(super) fn text<'a>(node: &'a Node, field: &str) -> Option<&'a str> {
    node.field(field)?.text()
}

pub(super) fn parameter<'a>(plugin: &'a Node, name: &str) -> Option<&'a str> {
    text(plugin.field("parameters")?, name)
}
