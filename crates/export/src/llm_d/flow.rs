//! Flow control in both directions: the section `flowControl` and the saturation detector, and the
//! gates that stand for them.

use super::super::legal::seconds;
use super::super::spelled::Spelled;
use super::super::write::Yaml;
use super::import::{Config, items, parameter, spell, text};
use super::parts::NEVER;
use blis_core::SloClass;
use blis_scenario::yaml::Node;

const REQUESTS: &str = "max-concurrency";
const TOKENS: &str = "max-tokens";

/// The priority of each class, by `SloClass::index`: negative ones may be shed.
const PRIORITIES: [f64; 5] = [1.0, 0.0, -1.0, -2.0, -3.0];

/// The type of the detector, its parameters, and the section for a `gate` of flow control.
pub(super) fn section(gate: &Spelled) -> (&'static str, Vec<(&'static str, Yaml)>, Yaml) {
    let number = |name: &str| Yaml::Number(gate.number(name).unwrap_or_default());
    let whole = |name: &str| Yaml::Number(gate.number(name).unwrap_or_default().ceil());
    let detector = gate.value("detector");
    let (kind, parameters) = if detector == "utilization" {
        let staleness = format!("{}ms", gate.value("staleness"));
        let parameters = vec![
            ("queueDepthThreshold", whole("queue-threshold")),
            ("kvCacheUtilThreshold", number("kv-threshold")),
            ("metricsStalenessThreshold", Yaml::Text(staleness)),
        ];
        ("utilization-detector", parameters)
    } else {
        let mut parameters = vec![("concurrencyMode", Yaml::text(&detector))];
        if detector != "tokens" {
            parameters.push(("maxConcurrency", whole(REQUESTS)));
        }
        if detector != "requests" {
            parameters.push(("maxTokenConcurrency", whole(TOKENS)));
        }
        ("concurrency-detector", parameters)
    };
    let band = |class: SloClass| {
        Yaml::Map(vec![
            ("priority", Yaml::Number(PRIORITIES[class.index()])),
            ("maxRequests", number(class.name())),
            ("fairnessPolicyRef", Yaml::text(fairness(gate))),
            ("orderingPolicyRef", Yaml::text(order(gate))),
        ])
    };
    let most = Some(("maxRequests", number("max-waiting")));
    let limited = gate.number("max-waiting").is_some_and(|most| most < 1e9);
    let mut fields: Vec<_> = most.filter(|_| limited).into_iter().collect();
    fields.extend([
        ("defaultRequestTTL", Yaml::Text(format!("{}s", gate.value("ttl")))),
        ("saturationDetector", Yaml::Map(vec![("pluginRef", Yaml::text(kind))])),
        ("priorityBands", Yaml::List(SloClass::ALL.map(band).into())),
    ]);
    (kind, parameters, Yaml::Map(fields))
}

/// The plugin that chooses among tenants.
pub(super) fn fairness(gate: &Spelled) -> &'static str {
    match gate.value("fairness").as_str() {
        "round-robin" => "round-robin-fairness-policy",
        _ => "global-strict-fairness-policy",
    }
}

/// The plugin that chooses among the requests of a tenant.
pub(super) fn order(gate: &Spelled) -> &'static str {
    match gate.value("order").as_str() {
        "slo-deadline" => "slo-deadline-ordering-policy",
        _ => "fcfs-ordering-policy",
    }
}

/// The gates that stand for the saturation detector in `tree`; lines about what has no counterpart
/// are added to `left_out`.
pub(super) fn read(config: &Config<'_>, tree: &Node, left_out: &mut Vec<String>) -> Vec<String> {
    let section = tree.field("flowControl");
    let named = section.and_then(|flow| flow.field("saturationDetector"));
    let named = named.or(tree.field("saturationDetector"));
    let name = named.and_then(|named| text(named, "pluginRef"));
    let detector = config.plugins.get(name.unwrap_or("utilization-detector")).copied();
    if let Some(name) = name.filter(|_| detector.is_none()) {
        left_out.push(format!("`saturationDetector`: there is no plugin `{name}`"));
    }
    let enabled = items(tree.field("featureGates")).iter().any(|gate| {
        let gate = gate.to_json();
        ["flowControl", "flowControl=true"].contains(&gate.trim_matches('"'))
    });
    if enabled {
        return vec![held(config, section, detector, left_out)];
    }
    if section.is_some_and(|flow| ["maxRequests", "priorityBands"].iter().any(|it| flow.has(it))) {
        left_out.push("`flowControl`: its feature gate is off".to_owned());
    }
    let used = detector.filter(|_| name.is_some());
    used.map_or_else(Vec::new, |detector| refused(detector, left_out))
}

/// Without flow control, requests of negative priority are rejected while the pool is saturated.
fn refused(detector: &Node, left_out: &mut Vec<String>) -> Vec<String> {
    let kind = text(detector, "type").unwrap_or_default();
    if kind != "utilization-detector" {
        left_out.push(format!("`{kind}` without flow control: see `slo-gated` and `kv-gate`"));
        return Vec::new();
    }
    let number = |name, default| parameter(detector, name).and_then(number).unwrap_or(default);
    let (queue, kv) = (number("queueDepthThreshold", 5.0), number("kvCacheUtilThreshold", 0.8));
    let mut gates = Vec::new();
    if queue < NEVER {
        gates.push(spell("slo-gated", &[format!("threshold={queue}")]));
    }
    if kv < 1.0 {
        // As the nearest number with few digits, so that 0.95 comes back from 1 - 0.95.
        let free = (1e9 * (1.0 - kv)).round() / 1e9;
        gates.push(spell("kv-gate", &[format!("free-share={free}")]));
    }
    gates
}

/// The gate that holds requests.
fn held(
    config: &Config<'_>,
    section: Option<&Node>,
    detector: Option<&Node>,
    left_out: &mut Vec<String>,
) -> String {
    let mut values = Vec::new();
    let given = |name: &str| detector.and_then(|detector| parameter(detector, name));
    let mut taken = |ours: &str, value: Option<String>| {
        values.extend(value.map(|value| format!("{ours}={value}")));
    };
    let owned = |value: Option<&str>| value.map(str::to_owned);
    if detector.and_then(|detector| text(detector, "type")) == Some("concurrency-detector") {
        let mode = given("concurrencyMode").unwrap_or("requests");
        taken("detector", owned(Some(mode)));
        taken(REQUESTS, owned(given("maxConcurrency").filter(|_| mode != "tokens")));
        taken(TOKENS, owned(given("maxTokenConcurrency").filter(|_| mode != "requests")));
    } else {
        taken("queue-threshold", owned(given("queueDepthThreshold")));
        taken("kv-threshold", owned(given("kvCacheUtilThreshold")));
        let staleness = given("metricsStalenessThreshold").and_then(seconds);
        taken("staleness", staleness.map(|seconds| (seconds * 1e3).to_string()));
    }
    let Some(section) = section else { return spell("flow-control", &values) };
    let limit = |node: &Node| text(node, "maxRequests").and_then(number).filter(|&n| n > 0.0);
    taken("max-waiting", limit(section).map(|most| most.to_string()));
    // Without a limit requests wait for as long as it takes.
    let ttl = text(section, "defaultRequestTTL").and_then(seconds);
    taken("ttl", ttl.map(|ttl| if ttl > 0.0 { ttl } else { 86_400.0 }.to_string()));
    let bands = bands(items(section.field("priorityBands")), left_out);
    for (class, band) in &bands {
        taken(class.name(), limit(band).map(|most| most.to_string()));
    }
    let kind = |name: &str| config.plugins.get(name).and_then(|plugin| text(plugin, "type"));
    let policies = |field: &str| {
        let named = bands.iter().find_map(|(_, band)| text(band, field));
        named.map(|name| kind(name).unwrap_or(name))
    };
    if policies("fairnessPolicyRef") == Some("round-robin-fairness-policy") {
        taken("fairness", owned(Some("round-robin")));
    }
    if policies("orderingPolicyRef") == Some("slo-deadline-ordering-policy") {
        taken("order", owned(Some("slo-deadline")));
    }
    spell("flow-control", &values)
}

/// The band of each class: positive priorities are critical, 0 is standard, and negative ones are
/// the others, from above.
fn bands<'a>(all: &'a [Node], left_out: &mut Vec<String>) -> Vec<(SloClass, &'a Node)> {
    let priority = |band: &&Node| text(band, "priority").and_then(number).unwrap_or_default();
    let mut sorted: Vec<&Node> = all.iter().collect();
    sorted.sort_by(|a, b| priority(b).total_cmp(&priority(a)));
    let mut free = SloClass::ALL.to_vec();
    let mut found: Vec<(SloClass, &Node)> = Vec::new();
    for band in sorted {
        let level = priority(&band);
        let fits = |class: &SloClass| match class {
            SloClass::Critical => level > 0.0,
            SloClass::Standard => level.abs() < f64::EPSILON,
            _ => level < 0.0,
        };
        let Some(place) = free.iter().position(fits) else {
            left_out.push(format!("priority band {level}: no class is left for it"));
            continue;
        };
        let differs = |field: &str| {
            found.first().is_some_and(|(_, first)| text(first, field) != text(band, field))
        };
        for field in ["fairnessPolicyRef", "orderingPolicyRef"] {
            if differs(field) {
                left_out.push(format!("`{field}` of priority band {level}: all have one"));
            }
        }
        if band.field("defaultRequestTTL").is_some() {
            left_out.push(format!("`defaultRequestTTL` of priority band {level}: all have one"));
        }
        found.push((free.remove(place), band));
    }
    found
}

/// A quantity of Kubernetes, e.g. `500` or `1k`.
pub(super) fn number(text: &str) -> Option<f64> {
    let units = [("Ki", 1_024.0), ("Mi", 1_048_576.0), ("k", 1e3), ("M", 1e6), ("G", 1e9)];
    let unit = units.iter().find_map(|(unit, size)| Some((text.strip_suffix(unit)?, *size)));
    let (digits, size) = unit.unwrap_or((text, 1.0));
    digits.parse::<f64>().ok().filter(|number| number.is_finite()).map(|number| number * size)
}
