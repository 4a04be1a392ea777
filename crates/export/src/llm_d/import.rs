//! An `EndpointPickerConfig` of llm-d as a strategy: the way back from [`super::export`].
//!
//! The file may also be Helm values that have the configuration as a text inside, as llm-d's guides
//! ship it. Every part without a counterpart gets a line; nothing is guessed.

use blis_scenario::yaml::{self, Kind, Node, quoted};
use blis_scenario::{Draft, Problem, Problems};
use std::collections::BTreeMap;
use std::fmt::Write;

/// What the document is called.
const KIND: &str = "EndpointPickerConfig";
const PRECISE: &str = "precise-prefix-cache-producer";

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
    let config = Config::read(&tree);
    let mut made = Made::default();
    for plugin in config.plugins.values() {
        if let Part::Admission(gate) = config.part(plugin) {
            made.gates.push(gate);
        }
    }
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
    for (field, why) in [
        ("flowControl", "flow control has no counterpart but admission policies"),
        ("saturationDetector", "see `slo-gated` and `kv-gate` for gates on queues and memory"),
    ] {
        if tree.field(field).is_some() {
            made.left_out.push(format!("`{field}`: {why}"));
        }
    }
    made.finish(name)
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
            find(&yaml::read_text("the configuration inside", text)?)
        }
        _ => Ok(None),
    }
}

/// Plugins by name.
struct Config<'a> {
    plugins: BTreeMap<&'a str, &'a Node>,
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
            "precise-prefix-cache-scorer" => Part::Scorer("precise-prefix".to_owned()),
            "prefix-cache-scorer" if hits() == "knowledge=precise" => {
                Part::Scorer("precise-prefix".to_owned())
            }
            "prefix-cache-scorer" => Part::Scorer("prefix-affinity".to_owned()),
            "no-hit-lru-scorer" => Part::Scorer(spell("no-hit-lru", &[hits()])),
            "token-load-scorer" => Part::Scorer(self.token_load(plugin)),
            "session-affinity-scorer" => Part::Scorer("session".to_owned()),
            "latency-scorer" => Part::Scorer("predicted-latency".to_owned()),
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
            "single-profile-handler" | "decode-filter" => Part::Given,
            _ => Part::Unknown,
        }
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

/// The filter by cached prefix.
fn affinity(plugin: &Node, hits: String) -> String {
    let given = |ours: &str, theirs: &str| Some(format!("{ours}={}", parameter(plugin, theirs)?));
    let predicted = parameter(plugin, "ttftSource") == Some("latencyPredictor");
    let values = [
        given("threshold", "affinityThreshold"),
        given("exploration", "explorationProbability"),
        given("max-penalty", "maxTTFTPenaltyMs"),
        predicted.then(|| "ttft=predicted".to_owned()),
        given("peak-prefill", "peakPrefillThroughput").filter(|_| !predicted),
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
            Part::Admission(_) | Part::Given => {}
            Part::Unknown => {
                let kind = text(plugin, "type").unwrap_or_default();
                self.left_out.push(format!("plugin `{name}` of type `{kind}`: no counterpart"));
            }
        }
    }

    fn finish(self, name: &str) -> Result<Imported, Problems> {
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
        // Whatever is wrong with a value is told before the strategy is.
        Draft::from_text("the imported strategy", &set)?.without_workload().resolve()?;
        let indented = format!("  {}\n", set.trim_end().replace('\n', "\n  "));
        let help = quoted("llm-d's endpoint picker, as configured");
        let text = format!("name: {}\nhelp: {help}\nset:\n{indented}", quoted(name));
        Ok(Imported { text, left_out: self.left_out })
    }
}

/// A policy with these parameters.
fn spell(name: &str, values: &[String]) -> String {
    if values.is_empty() { name.to_owned() } else { format!("{name}[{}]", values.join(",")) }
}

fn items(list: Option<&Node>) -> &[Node] {
    match list.map(|node| &node.kind) {
        Some(Kind::List(items)) => items,
        _ => &[],
    }
}

/// The scalar in `field` of `node`.
fn text<'a>(node: &'a Node, field: &str) -> Option<&'a str> {
    match &node.field(field)?.kind {
        Kind::Scalar { text, .. } => Some(text),
        _ => None,
    }
}

fn parameter<'a>(plugin: &'a Node, name: &str) -> Option<&'a str> {
    text(plugin.field("parameters")?, name)
}
