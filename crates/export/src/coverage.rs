//! What becomes of every policy in a real system: the same, something like it, or nothing yet.
//!
//! One line a policy, for all policies of the registry; a test walks the registry, so that a new
//! policy does not pass without a line. The texts stand as comments in exported files.

use blis_policy::kinds;
use std::fmt::Write;

/// Who would do what a policy does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum System {
    /// llm-d's endpoint picker.
    LlmD,
    /// vLLM's server.
    Vllm,
}

impl System {
    /// The system that policies of `kind` belong to: what the gateway decides, and what an engine
    /// does.
    pub fn of(kind: &str) -> System {
        match kind {
            "admission" | "routing" | "scorer" | "filter" | "picker" => System::LlmD,
            _ => System::Vllm,
        }
    }

    /// Its name.
    pub const fn name(self) -> &'static str {
        match self {
            System::LlmD => "llm-d",
            System::Vllm => "vLLM",
        }
    }
}

/// How well a policy is met there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fit {
    /// The same; what to know nevertheless.
    Exact(&'static str),
    /// Something like it: what is different.
    Approximate(&'static str),
    /// Nothing: what is missing, and what to do instead.
    Missing(&'static str),
}

impl Fit {
    /// The word for it, and the text.
    pub const fn told(self) -> (&'static str, &'static str) {
        match self {
            Fit::Exact(text) => ("exact", text),
            Fit::Approximate(text) => ("approximate", text),
            Fit::Missing(text) => ("none", text),
        }
    }
}

/// What becomes of one policy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Mapping {
    /// The kind, as `blis policies` names it.
    pub kind: &'static str,
    /// The policy.
    pub name: &'static str,
    /// How well it is met.
    pub fit: Fit,
    /// Plugins or flags that stand for it, by type or name.
    pub by: &'static [&'static str],
}

/// The line of the policy `name` of `kind`.
///
/// # Panics
/// If it has none; a test walks the registry.
pub fn of(kind: &str, name: &str) -> &'static Mapping {
    let found = ALL.iter().find(|one| one.kind == kind && one.name == name);
    found.unwrap_or_else(|| panic!("{kind} `{name}` has no line in export/coverage.rs"))
}

/// What is said of a policy that is not in the registry.
const FOREIGN: Fit = Fit::Missing("a custom policy: write it as a plugin and register it there");

/// How well the policy `name` of `kind` is met, whoever made it.
pub(super) fn fit(kind: &str, name: &str) -> Fit {
    let found = ALL.iter().find(|one| one.kind == kind && one.name == name);
    found.map_or(FOREIGN, |mapping| mapping.fit)
}

/// The whole table as a page.
///
/// # Panics
/// Never: writing to a string cannot fail.
pub fn reference_markdown() -> String {
    let mut page = String::from(HEAD);
    for kind in kinds() {
        let system = System::of(kind.name);
        let title = format!("\n## {}: {}\n", kind.title, system.name());
        let header = "\n| policy | fit | by | what to know |\n|---|---|---|---|\n";
        page.push_str(&(title + header));
        for entry in &kind.entries {
            let Mapping { fit, by, .. } = of(kind.name, entry.name);
            let (word, text) = fit.told();
            let by: Vec<String> = by.iter().map(|name| format!("`{name}`")).collect();
            writeln!(page, "| `{}` | {word} | {} | {text} |", entry.name, by.join(", "))
                .expect("text can grow");
        }
    }
    page
}

const HEAD: &str = "\
# Policies in llm-d and vLLM

What `blis export` makes of each policy. *Exact*: the system does the same. *Approximate*: the closest
counterpart, with what differs. *None*: no counterpart; the text says what is missing and what to do
instead. Exported files carry these texts as comments.

The plugins are those of llm-d's endpoint picker with the configuration `llm-d.ai/v1alpha1`, which
release 0.8 documents and later ones still read; the flags are those of vLLM 0.28. Sources
are in [decision 21](../decisions/0021-export.md). Written by `blis export coverage --format
markdown`.
";

const fn exact(
    kind: &'static str,
    name: &'static str,
    by: &'static [&'static str],
    text: &'static str,
) -> Mapping {
    Mapping { kind, name, fit: Fit::Exact(text), by }
}

const fn near(
    kind: &'static str,
    name: &'static str,
    by: &'static [&'static str],
    text: &'static str,
) -> Mapping {
    Mapping { kind, name, fit: Fit::Approximate(text), by }
}

const fn none(kind: &'static str, name: &'static str, text: &'static str) -> Mapping {
    Mapping { kind, name, fit: Fit::Missing(text), by: &[] }
}

/// All lines, kind by kind in the order of the registry.
const ALL: &[Mapping] = &[
    // Admission.
    exact(
        "admission",
        "all-of",
        &[],
        "llm-d asks every admitter that is declared, and all must agree",
    ),
    exact(
        "admission",
        "always-admit",
        &[],
        "no admitter is declared; the default saturation detector still rejects requests of \
         negative priority when the pool is saturated",
    ),
    none("admission", "any-of", "admitters cannot be alternatives; choose one of the members"),
    none(
        "admission",
        "burst-throttle",
        "nothing watches the arrival rate; limit it at the proxy, e.g. with Envoy's rate limits \
         per class",
    ),
    none(
        "admission",
        "class-queue",
        "servers do not report queues per class; shed by negative priority with `slo-gated`, or \
         bound priority bands with `maxRequests` under flow control",
    ),
    near(
        "admission",
        "kv-gate",
        &["utilization-detector"],
        "the detector uses the mean of the pool instead of the chosen instance and ignores prompt \
         and class: it rejects requests of negative priority",
    ),
    near(
        "admission",
        "latency-slo",
        &["latency-slo-admitter", "predicted-latency-producer"],
        "predictions come from a trained model in a sidecar, targets from request headers; \
         requests of negative priority are rejected",
    ),
    exact(
        "admission",
        "probabilistic",
        &["probabilistic-admitter", "utilization-detector"],
        "only requests of negative priority may be rejected; the detector's own gate is opened as \
         wide as possible",
    ),
    none("admission", "reject-all", "pathological, for tests"),
    none(
        "admission",
        "session-backpressure",
        "admitters do not know whether a session is new; reject new sessions where they are \
         created",
    ),
    near(
        "admission",
        "slo-gated",
        &["utilization-detector"],
        "the detector compares the mean number of waiting requests with the threshold, not the \
         longest queue, and rejects all requests of negative priority, not a share",
    ),
    none(
        "admission",
        "token-bucket",
        "there is no token-based limit; limit the rate at the proxy, or bound a priority band \
         with `maxRequests` under flow control",
    ),
    near(
        "admission",
        "ttft-budget",
        &["latency-slo-admitter", "predicted-latency-producer"],
        "predictions come from a trained model in a sidecar; only requests of negative priority \
         are rejected; others that cannot meet their target are served late",
    ),
    // Routing.
    none("routing", "always-busiest", "pathological, for tests"),
    none(
        "routing",
        "consistent-hash",
        "nothing hashes sessions or prefixes; use a session-affinity or a prefix scorer",
    ),
    near(
        "routing",
        "epoch-adaptive",
        &[],
        "weights are fixed; the initial ones are exported; tune them with `blis optimize`",
    ),
    near(
        "routing",
        "kv-adaptive",
        &[],
        "a profile has one set of weights; the normal set is exported",
    ),
    near(
        "routing",
        "least-loaded",
        &["active-request-scorer", "max-score-picker"],
        "counts requests in flight from this picker, not what engines report",
    ),
    near(
        "routing",
        "power-of-two",
        &["active-request-scorer", "max-score-picker"],
        "compares all instances instead of two, so replicas of the picker herd more",
    ),
    exact("routing", "random", &["random-picker"], ""),
    near(
        "routing",
        "round-robin",
        &["random-picker"],
        "there is no round-robin picker; random choice has the same mean and more variance",
    ),
    near(
        "routing",
        "session-affinity",
        &["session-affinity-filter"],
        "a session stays on its instance however busy that is, until the instance is gone; \
         clients must send `x-session-id`, and newer pickers need `--allow-experimental-plugins`",
    ),
    exact("routing", "weighted", &[], "a weighted sum of scores from 0 to 1, as here"),
    // Scorers.
    none(
        "scorer",
        "cost-benefit",
        "no scorer weighs saved time against waiting; `latency-scorer` with its trained predictor \
         is the closest",
    ),
    none(
        "scorer",
        "kv-pressure",
        "engines report neither pending transfers nor thrashing; use \
         `kv-cache-utilization-scorer` until they do",
    ),
    none(
        "scorer",
        "kv-pressure-slo",
        "engines report neither pending transfers nor thrashing, and scorers do not know classes; \
         use `kv-cache-utilization-scorer`",
    ),
    exact("scorer", "kv-utilization", &["kv-cache-utilization-scorer"], ""),
    none(
        "scorer",
        "least-harm",
        "no scorer counts delay to others; `token-load-scorer`, which counts uncached tokens in \
         flight, is the closest",
    ),
    near(
        "scorer",
        "load-balance",
        &["active-request-scorer"],
        "scores relative to the busiest instance instead of 1/(1+load)",
    ),
    near(
        "scorer",
        "no-hit-lru",
        &["no-hit-lru-scorer"],
        "the same rule, by the order of recent cold requests",
    ),
    near(
        "scorer",
        "precise-prefix",
        &["precise-prefix-cache-producer", "prefix-cache-scorer", "token-producer"],
        "the same index of KV events; needs `--kv-events-config` on every server, and tokens from \
         a vLLM render endpoint",
    ),
    near(
        "scorer",
        "predicted-latency",
        &["latency-scorer", "predicted-latency-producer"],
        "a trained model predicts TTFT and TPOT, instead of a formula over uncached work and \
         backlog",
    ),
    near(
        "scorer",
        "prefix-affinity",
        &["approx-prefix-cache-producer", "prefix-cache-scorer"],
        "blocks have at least 64 tokens, estimated at four bytes per token; the LRU capacity is \
         converted to the same number of tokens",
    ),
    near(
        "scorer",
        "queue-depth",
        &["queue-scorer"],
        "counts waiting requests only, ours counts running ones too; `active-request-scorer` \
         counts both, but only those this picker sent",
    ),
    near(
        "scorer",
        "session",
        &["session-affinity-scorer", "session-id-producer"],
        "the same preference; clients must send `x-session-id`, and newer pickers need \
         `--allow-experimental-plugins`",
    ),
    near(
        "scorer",
        "slo-headroom",
        &["latency-scorer", "predicted-latency-producer"],
        "headroom from a trained model, for TTFT and TPOT; targets come from request headers",
    ),
    near(
        "scorer",
        "token-load",
        &["token-load-scorer", "inflight-load-producer"],
        "relative to a threshold; cached prefix tokens are not counted",
    ),
    // Filters.
    near(
        "filter",
        "kv-filter",
        &["utilization-detector"],
        "the detector as a filter; it also drops instances with stale metrics, and keeps all if \
         none is left",
    ),
    near(
        "filter",
        "prefix-affinity-filter",
        &["prefix-cache-affinity-filter", "approx-prefix-cache-producer", "inflight-load-producer"],
        "TTFT is estimated from tokens in flight and peak prefill throughput",
    ),
    near(
        "filter",
        "slo-headroom-filter",
        &["slo-headroom-tier-filter", "predicted-latency-producer"],
        "predictions come from a trained model in a sidecar, targets from request headers; there \
         is no margin",
    ),
    // Pickers.
    exact("picker", "max-score", &["max-score-picker"], "ties are broken at random"),
    exact("picker", "random", &["random-picker"], ""),
    exact("picker", "weighted-random", &["weighted-random-picker"], ""),
    // Orders.
    none(
        "order",
        "cache-first",
        "vLLM looks up the prefix cache only when it schedules a request; use `fcfs` and route by \
         prefix",
    ),
    near(
        "order",
        "edf",
        &["--scheduling-policy"],
        "send each request's deadline as `priority` (lower is sooner), e.g. in ms since a fixed \
         date",
    ),
    exact("order", "fcfs", &["--scheduling-policy"], ""),
    exact(
        "order",
        "priority-fcfs",
        &["--scheduling-policy"],
        "vLLM schedules the lowest number first, so send the negated priority",
    ),
    none("order", "reverse-priority", "pathological, for tests"),
    near(
        "order",
        "sjf",
        &["--scheduling-policy"],
        "send the number of prompt tokens as `priority`",
    ),
    // Priorities.
    none(
        "priority",
        "age",
        "priorities are fixed at submission; equal rates are `fcfs`, unequal ones have no \
         counterpart",
    ),
    exact("priority", "constant", &[], "requests are sent without `priority`"),
    near(
        "priority",
        "deadline",
        &[],
        "priorities are fixed at submission; send the deadline, which gives the same order until \
         requests are late",
    ),
    exact("priority", "slo-class", &[], "send the class's priority as `priority`"),
    near(
        "priority",
        "slo-tiered",
        &[],
        "priorities are fixed at submission: the base priorities are exported, without ageing; \
         let clients resend starved requests with a lower number, or bound important classes with \
         flow control",
    ),
    // Preemption.
    none("preempt", "fewest-blocks", "vLLM preempts the last one, or by priority; nothing to set"),
    none("preempt", "least-progress", "vLLM preempts the last one, or by priority; nothing to set"),
    exact(
        "preempt",
        "lowest-priority",
        &["--scheduling-policy"],
        "what `--scheduling-policy priority` does",
    ),
    exact(
        "preempt",
        "tail",
        &[],
        "what vLLM does with `--scheduling-policy fcfs`; with `priority` it preempts the lowest \
         priority",
    ),
    // Eviction.
    none("evict", "belady", "an oracle, for bounds only"),
    none(
        "evict",
        "intent-aware",
        "the server does not know what the router expects; it has LRU only",
    ),
    none(
        "evict",
        "lfu",
        "the GPU has LRU only; the CPU tier of the offloading connector also has ARC",
    ),
    exact("evict", "lru", &["--enable-prefix-caching"], ""),
    none(
        "evict",
        "session-aware",
        "the server has no sessions and LRU only; a CPU tier keeps blocks of live sessions longer",
    ),
    none("evict", "slo-aware", "blocks have no class; vLLM has LRU only"),
    // Offload.
    near(
        "offload",
        "on-evict",
        &["--kv-transfer-config"],
        "the connector copies blocks as they are completed, not when they are evicted, and no \
         step waits",
    ),
    near(
        "offload",
        "threshold",
        &["--kv-transfer-config"],
        "there is no threshold: the connector copies every completed block",
    ),
    near(
        "offload",
        "write-through",
        &["--kv-transfer-config"],
        "blocks are copied as they are completed, slightly earlier than here",
    ),
];

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn every_policy_of_the_registry_has_a_line_and_every_line_a_policy() {
        let mut known = BTreeSet::new();
        for kind in kinds() {
            for entry in &kind.entries {
                let mapping = of(kind.name, entry.name);
                let (word, text) = mapping.fit.told();
                let told = matches!(mapping.fit, Fit::Exact(_)) || !text.is_empty();
                assert!(told, "{word}: say what differs for {} `{}`", kind.name, entry.name);
                known.insert((kind.name, entry.name));
            }
        }
        assert!(known.len() > 60, "a short registry");
        assert_eq!(known.len(), ALL.len(), "no line twice");
        for mapping in ALL {
            let line = (mapping.kind, mapping.name);
            assert!(known.contains(&line), "{line:?} is in the table, not in the registry");
        }
    }
}
