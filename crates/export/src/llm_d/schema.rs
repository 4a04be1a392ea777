//! What llm-d's endpoint picker reads: the fields of its configuration, the types of plugins, their
//! parameters and ranges, each with the document that says so.
//!
//! Documents are files of `llm-d/llm-d-router` at the commit behind the `@`, unless another
//! repository is named; [decision 21](../../../../../docs/decisions/0021-export.md) says more.

use super::super::legal::{Field, LARGEST, Legal, problems as wrong};
use blis_scenario::yaml::{self, Kind, Node};

/// What a plugin can be in a profile.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// Leaves endpoints out.
    Filter,
    /// Gives scores, and has a weight.
    Scorer,
    /// Chooses; a profile has at most one.
    Picker,
    /// Works wherever it is declared, without a place in a profile.
    Declared,
}

/// A type of plugins.
pub struct PluginType {
    /// Its name.
    pub name: &'static str,
    /// What it can be in a profile.
    pub role: Role,
    /// The parameters that are ever written.
    fields: &'static [Field],
    /// Where its parameters are documented.
    pub source: &'static str,
}

const SHARE: Legal = Legal::Number(0.0, 1.0);
const ABOVE_ZERO: Legal = Legal::Number(f64::MIN_POSITIVE, LARGEST);
const COUNT: Legal = Legal::Whole(1.0, LARGEST);

const fn plugin(
    name: &'static str,
    role: Role,
    fields: &'static [Field],
    source: &'static str,
) -> PluginType {
    PluginType { name, role, fields, source }
}

/// The types of plugins that may be written.
pub const PLUGINS: &[PluginType] = &[
    plugin(
        "active-request-scorer",
        Role::Scorer,
        &[],
        "llm-d-inference-scheduler: plugins/scheduling/scorer/activerequest/README.md @06dd328",
    ),
    plugin(
        "approx-prefix-cache-producer",
        Role::Declared,
        &[
            ("autoTune", Legal::Flag),
            ("blockSizeTokens", Legal::Whole(64.0, LARGEST)),
            ("lruCapacityPerServer", COUNT),
        ],
        "plugins/requestcontrol/dataproducer/approximateprefix/README.md @ae33ce5",
    ),
    plugin(
        "endpoint-notification-source",
        Role::Declared,
        &[],
        "deploy/config/epp-precise-prefix-cache-config.yaml @cfa3f2f",
    ),
    plugin(
        "inflight-load-producer",
        Role::Declared,
        &[],
        "plugins/requestcontrol/dataproducer/inflightload/README.md @b2cb821",
    ),
    plugin(
        "kv-cache-utilization-scorer",
        Role::Scorer,
        &[],
        "plugins/scheduling/scorer/kvcacheutilization/README.md @e05ae34",
    ),
    plugin(
        "latency-scorer",
        Role::Scorer,
        &[("headroomSelectionStrategy", Legal::Word(&["least", "most"]))],
        "llm-d-inference-scheduler: plugins/scheduling/scorer/latency/README.md @12cb9ee",
    ),
    plugin(
        "latency-slo-admitter",
        Role::Declared,
        &[],
        "llm-d-inference-scheduler: plugins/requestcontrol/admitter/latencyslo/README.md @12cb9ee",
    ),
    plugin(
        "max-score-picker",
        Role::Picker,
        &[],
        "llm-d-inference-scheduler: plugins/scheduling/picker/maxscore/README.md @12cb9ee",
    ),
    plugin(
        "no-hit-lru-scorer",
        Role::Scorer,
        &[],
        "deploy/config/sim-epp-no-hit-lru.yaml @7f5acdf",
    ),
    plugin(
        "precise-prefix-cache-producer",
        Role::Declared,
        &[
            ("tokenProcessorConfig.blockSize", COUNT),
            (
                "indexerConfig.kvCacheBackendConfigs",
                Legal::List(&[
                    ("name", Legal::Word(&["gpu", "cpu", "storage"])),
                    ("weight", SHARE),
                ]),
            ),
            ("speculativeIndexing", Legal::Flag),
            ("speculativeTTL", Legal::Duration),
        ],
        "plugins/requestcontrol/dataproducer/preciseprefixcache/README.md @2b5e81f",
    ),
    plugin(
        "predicted-latency-producer",
        Role::Declared,
        &[("streamingMode", Legal::Flag)],
        "llm-d-inference-scheduler: plugins/requestcontrol/dataproducer/predictedlatency/README.md \
         @12cb9ee",
    ),
    plugin(
        "prefix-cache-affinity-filter",
        Role::Filter,
        &[
            ("affinityThreshold", SHARE),
            ("explorationProbability", SHARE),
            ("maxTTFTPenaltyMs", Legal::Number(0.0, LARGEST)),
            ("ttftSource", Legal::Word(&["latencyPredictor", "prefillThroughput"])),
            ("peakPrefillThroughput", ABOVE_ZERO),
        ],
        "plugins/scheduling/filter/prefixcacheaffinity/README.md @655726d",
    ),
    plugin(
        "prefix-cache-scorer",
        Role::Scorer,
        &[("prefixMatchInfoProducerName", Legal::Text)],
        "plugins/scheduling/scorer/prefix/README.md @b364753, .../preciseprefixcache/README.md @2b5e81f",
    ),
    plugin(
        "probabilistic-admitter",
        Role::Declared,
        &[
            ("queueDepthThreshold", COUNT),
            ("kvCacheUtilThreshold", SHARE),
            ("power", ABOVE_ZERO),
            ("k", ABOVE_ZERO),
        ],
        "plugins/requestcontrol/admitter/probabilisticadmitter/README.md @a3de268",
    ),
    plugin(
        "queue-scorer",
        Role::Scorer,
        &[],
        "llm-d-inference-scheduler: plugins/scheduling/scorer/queuedepth/README.md @1c6dd6a",
    ),
    plugin(
        "random-picker",
        Role::Picker,
        &[],
        "llm-d: docs/architecture/core/router/epp/scheduling.md @00d37d2",
    ),
    plugin(
        "session-affinity-filter",
        Role::Filter,
        &[
            ("strategy", Legal::Word(&["encoded_endpoint_header", "session_id"])),
            ("sessionIdConfig.sources", Legal::List(&[("header", Legal::Text)])),
            ("sessionIdConfig.evictionTtlSeconds", ABOVE_ZERO),
        ],
        "plugins/scheduling/filter/sessionaffinity/README.md @1092bb3",
    ),
    plugin(
        "session-affinity-scorer",
        Role::Scorer,
        &[("sessionIDProducerName", Legal::Text)],
        "plugins/scheduling/scorer/sessionaffinity/README.md @ce008b0",
    ),
    plugin(
        "session-id-producer",
        Role::Declared,
        &[("headerName", Legal::Text), ("ttl", Legal::Duration)],
        "plugins/requestcontrol/dataproducer/sessionid/README.md @a3b490f",
    ),
    plugin(
        "slo-headroom-tier-filter",
        Role::Filter,
        &[("epsilonExploreNeg", SHARE)],
        "llm-d-inference-scheduler: plugins/scheduling/filter/sloheadroomtier/README.md @12cb9ee",
    ),
    plugin(
        "token-load-scorer",
        Role::Scorer,
        &[("queueThresholdTokens", COUNT)],
        "plugins/scheduling/scorer/tokenload/README.md @6d91367",
    ),
    plugin(
        "token-producer",
        Role::Declared,
        &[("modelName", Legal::Text), ("vllm.url", Legal::Text)],
        "plugins/requestcontrol/dataproducer/tokenizer/README.md @04c854a",
    ),
    plugin(
        "utilization-detector",
        Role::Filter,
        &[
            ("queueDepthThreshold", COUNT),
            ("kvCacheUtilThreshold", Legal::Number(f64::MIN_POSITIVE, 1.0)),
        ],
        "plugins/flowcontrol/saturationdetector/utilization/README.md @c769ae9",
    ),
    plugin(
        "weighted-random-picker",
        Role::Picker,
        &[],
        "llm-d-inference-scheduler: plugins/scheduling/picker/weightedrandom/README.md @12cb9ee",
    ),
];

/// Fields of the whole, of `llm-d/llm-d: docs/api-reference/endpointpickerconfig.md @e9742c1` and
/// `docs/architecture/core/router/epp/configuration.md @029c5a3`.
const TOP: &[&str] =
    &["apiVersion", "kind", "plugins", "dataLayer", "flowControl", "schedulingProfiles"];
const FLOW_CONTROL: &[Field] = &[("saturationDetector.pluginRef", Legal::Text)];
const SOURCES: &[Field] =
    &[("pluginRef", Legal::Text), ("extractors", Legal::List(&[("pluginRef", Legal::Text)]))];

/// What llm-d would not read in `text`; empty if it reads all of it.
pub fn problems(text: &str) -> Vec<String> {
    let tree = match yaml::read_text("export", text) {
        Ok(tree) => tree,
        Err(problem) => return vec![problem.to_string()],
    };
    let mut found = Vec::new();
    let Kind::Map(fields) = &tree.kind else { return vec!["it is no map".to_owned()] };
    for (name, _, _) in fields {
        if !TOP.contains(&name.as_str()) {
            found.push(format!("{name}: unknown"));
        }
    }
    for (name, wanted) in [("apiVersion", "llm-d.ai/v1alpha1"), ("kind", "EndpointPickerConfig")] {
        if scalar(&tree, name).as_deref() != Some(wanted) {
            found.push(format!("{name}: it must be {wanted}"));
        }
    }
    let declared = declared(&tree, &mut found);
    references(&tree, &declared, &mut found);
    profiles(&tree, &declared, &mut found);
    found
}

/// The plugins by name, with their types.
fn declared(tree: &Node, found: &mut Vec<String>) -> Vec<(String, &'static PluginType)> {
    let mut all: Vec<(String, &PluginType)> = Vec::new();
    for (index, plugin) in items(tree.field("plugins")).iter().enumerate() {
        let path = format!("plugins[{index}]");
        let kind = scalar(plugin, "type").unwrap_or_default();
        let Some(known) = PLUGINS.iter().find(|known| known.name == kind) else {
            found.push(format!("{path}.type: unknown plugin `{kind}`"));
            continue;
        };
        let name = scalar(plugin, "name").unwrap_or(kind);
        if all.iter().any(|(other, _)| *other == name) {
            found.push(format!("{path}: `{name}` is declared twice"));
        }
        if let Some(parameters) = plugin.field("parameters") {
            let path = format!("{path} ({}) parameters.", known.name);
            found.extend(wrong(&path, parameters, known.fields));
        }
        all.push((name, known));
    }
    all
}

/// Sources and the saturation detector lead to plugins that are declared.
fn references(tree: &Node, all: &[(String, &PluginType)], found: &mut Vec<String>) {
    let mut refer = |path: &str, name: Option<String>| {
        if name.is_none_or(|name| all.iter().all(|(known, _)| *known != name)) {
            found.push(format!("{path}: no such plugin is declared"));
        }
    };
    if let Some(flow) = tree.field("flowControl") {
        let detector = flow.field("saturationDetector");
        refer("flowControl", detector.and_then(|detector| scalar(detector, "pluginRef")));
    }
    for source in items(tree.field("dataLayer").and_then(|layer| layer.field("sources"))) {
        refer("dataLayer.sources", scalar(source, "pluginRef"));
        for extractor in items(source.field("extractors")) {
            refer("dataLayer.sources.extractors", scalar(extractor, "pluginRef"));
        }
    }
    if let Some(flow) = tree.field("flowControl") {
        found.extend(wrong("flowControl.", flow, FLOW_CONTROL));
    }
    for source in items(tree.field("dataLayer").and_then(|layer| layer.field("sources"))) {
        found.extend(wrong("dataLayer.sources.", source, SOURCES));
    }
}

/// Profiles hold plugins that can be there, with weights where they score, and one picker.
fn profiles(tree: &Node, all: &[(String, &PluginType)], found: &mut Vec<String>) {
    let profiles = items(tree.field("schedulingProfiles"));
    if profiles.is_empty() {
        found.push("schedulingProfiles: there is none".to_owned());
    }
    for profile in profiles {
        let mut pickers = 0;
        for plugin in items(profile.field("plugins")) {
            let name = scalar(plugin, "pluginRef").unwrap_or_default();
            let known = all.iter().find(|(known, _)| *known == name);
            let Some((_, known)) = known else {
                found.push(format!("schedulingProfiles: `{name}` is not declared"));
                continue;
            };
            let weight = plugin.field("weight");
            let legal = weight.is_none_or(|weight| Legal::Number(0.0, LARGEST).allows(weight));
            match known.role {
                Role::Scorer if weight.is_some() && legal => {}
                Role::Scorer => found.push(format!("`{name}`: a scorer has a weight of 0 or more")),
                Role::Filter | Role::Picker if weight.is_none() => {
                    pickers += usize::from(known.role == Role::Picker);
                }
                Role::Filter | Role::Picker => found.push(format!("`{name}` has no weight")),
                Role::Declared => found.push(format!("`{name}` has no place in a profile")),
            }
        }
        if pickers != 1 {
            found.push(format!("a profile has one picker, not {pickers}"));
        }
    }
}

fn items(node: Option<&Node>) -> &[Node] {
    match node.map(|node| &node.kind) {
        Some(Kind::List(items)) => items,
        _ => &[],
    }
}

fn scalar(node: &Node, field: &str) -> Option<String> {
    match node.field(field).map(|node| &node.kind) {
        Some(Kind::Scalar { text, .. }) => Some(text.clone()),
        _ => None,
    }
}
