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
const FOREIGN: Fit =
    Fit::Missing("a policy of your own: write it as a plugin, and register it there");

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

What `blis export` makes of each policy. *Exact*: the system does the same. *Approximate*: the nearest
thing there is, with what differs. *None*: there is nothing yet; the text says what is missing and what
to do instead. Exported files carry these texts as comments.

The plugins are those of llm-d's endpoint picker with the configuration `llm-d.ai/v1alpha1`, which
release 0.8 documents and later ones still read; the flags are those of vLLM 0.28. Where each fact comes
from stands in [decision 21](../decisions/0021-export.md). Written by `blis export coverage --format
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
        "no admitter is declared; the default saturation detector still turns requests of negative priority away when the pool is saturated",
    ),
    none("admission", "any-of", "admitters cannot be alternatives; choose one of the members"),
    none(
        "admission",
        "burst-throttle",
        "nothing watches the rate of arrivals; limit the rate at the proxy, e.g. by Envoy's rate limits for each class",
    ),
    none(
        "admission",
        "class-queue",
        "servers report no queues by class; shed by negative priority with `slo-gated`, or bound priority bands by `maxRequests` under flow control",
    ),
    near(
        "admission",
        "kv-gate",
        &["utilization-detector"],
        "the detector looks at the mean of the pool instead of the chosen instance, and at neither the prompt nor single classes: it turns away requests of negative priority",
    ),
    near(
        "admission",
        "latency-slo",
        &["latency-slo-admitter", "predicted-latency-producer"],
        "predictions come from a trained model in a sidecar, targets from request headers; requests of negative priority are turned away",
    ),
    exact(
        "admission",
        "probabilistic",
        &["probabilistic-admitter", "utilization-detector"],
        "requests of negative priority are the ones that may be turned away; the detector's own gate is opened as wide as it goes",
    ),
    none("admission", "reject-all", "pathological, for tests"),
    none(
        "admission",
        "session-backpressure",
        "admitters do not know whether a session is new; turn new sessions away where they are created",
    ),
    near(
        "admission",
        "slo-gated",
        &["utilization-detector"],
        "the detector compares the mean of the waiting requests with the threshold, not the longest queue, and turns away all requests of negative priority, not a share",
    ),
    none(
        "admission",
        "token-bucket",
        "there is no limit by tokens; limit the rate at the proxy, or bound a priority band by `maxRequests` under flow control",
    ),
    near(
        "admission",
        "ttft-budget",
        &["latency-slo-admitter", "predicted-latency-producer"],
        "predictions come from a trained model in a sidecar; only requests of negative priority are turned away, others whose target is lost are served late",
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
        "weights cannot learn; those of the start are exported: search for better ones with `blis optimize`",
    ),
    near(
        "routing",
        "kv-adaptive",
        &[],
        "a profile has one set of weights; that for plenty of blocks is exported",
    ),
    near(
        "routing",
        "least-loaded",
        &["active-request-scorer", "max-score-picker"],
        "counts what this picker sent and has no answer of, not what engines report",
    ),
    near(
        "routing",
        "power-of-two",
        &["active-request-scorer", "max-score-picker"],
        "all instances are compared instead of two: several replicas of the picker herd more",
    ),
    exact("routing", "random", &["random-picker"], ""),
    near(
        "routing",
        "round-robin",
        &["random-picker"],
        "no picker deals in turn; random choice is as even in the mean, with more variance",
    ),
    near(
        "routing",
        "session-affinity",
        &["session-affinity-filter"],
        "a session never leaves its instance, however busy that is, unless it is gone; clients must send `x-session-id`, and newer pickers want `--allow-experimental-plugins`",
    ),
    exact(
        "routing",
        "weighted",
        &[],
        "scores of 0 to 1 are multiplied by their weights and added up, as here",
    ),
    // Scorers.
    none(
        "scorer",
        "cost-benefit",
        "no scorer weighs saved time against waiting; `latency-scorer` with its trained predictor comes nearest",
    ),
    none(
        "scorer",
        "kv-pressure",
        "engines report neither pending transfers nor thrashing; use `kv-cache-utilization-scorer` until they do",
    ),
    none(
        "scorer",
        "kv-pressure-slo",
        "engines report neither pending transfers nor thrashing, and scorers do not know classes; use `kv-cache-utilization-scorer`",
    ),
    exact("scorer", "kv-utilization", &["kv-cache-utilization-scorer"], ""),
    none(
        "scorer",
        "least-harm",
        "no scorer counts what others lose; `token-load-scorer`, which counts uncached tokens in flight, comes nearest",
    ),
    near(
        "scorer",
        "load-balance",
        &["active-request-scorer"],
        "falls in proportion to the busiest instance instead of by 1/(1+load)",
    ),
    near(
        "scorer",
        "no-hit-lru",
        &["no-hit-lru-scorer"],
        "the same rule over the order of the last cold requests",
    ),
    near(
        "scorer",
        "precise-prefix",
        &["precise-prefix-cache-producer", "prefix-cache-scorer", "token-producer"],
        "the same index of KV events; needs `--kv-events-config` on every server, and tokens from a vLLM render endpoint",
    ),
    near(
        "scorer",
        "predicted-latency",
        &["latency-scorer", "predicted-latency-producer"],
        "a trained model predicts time to first token and time per token, instead of uncached work and backlog",
    ),
    near(
        "scorer",
        "prefix-affinity",
        &["approx-prefix-cache-producer", "prefix-cache-scorer"],
        "prompts are cut into blocks of at least 64 tokens, estimated at four bytes a token; the memory is converted to as many tokens",
    ),
    near(
        "scorer",
        "queue-depth",
        &["queue-scorer"],
        "counts waiting requests alone, where the simulated one counts running ones too; `active-request-scorer` counts both, as far as this picker sent them",
    ),
    near(
        "scorer",
        "session",
        &["session-affinity-scorer", "session-id-producer"],
        "the same preference; clients must send `x-session-id`, and newer pickers want `--allow-experimental-plugins`",
    ),
    near(
        "scorer",
        "slo-headroom",
        &["latency-scorer", "predicted-latency-producer"],
        "headroom of a trained prediction, over time to first token and time per token; targets come from request headers",
    ),
    near(
        "scorer",
        "token-load",
        &["token-load-scorer", "inflight-load-producer"],
        "relative to a threshold; tokens of cached prefixes are not counted there",
    ),
    // Filters.
    near(
        "filter",
        "kv-filter",
        &["utilization-detector"],
        "the detector as a filter; it leaves out instances with stale metrics too, and keeps all if none is left",
    ),
    near(
        "filter",
        "prefix-affinity-filter",
        &["prefix-cache-affinity-filter", "approx-prefix-cache-producer", "inflight-load-producer"],
        "time to first token is estimated from the tokens in flight and a peak throughput of prefill",
    ),
    near(
        "filter",
        "slo-headroom-filter",
        &["slo-headroom-tier-filter", "predicted-latency-producer"],
        "predictions come from a trained model in a sidecar, targets from request headers; there is no margin",
    ),
    // Pickers.
    exact("picker", "max-score", &["max-score-picker"], "ties fall at random"),
    exact("picker", "random", &["random-picker"], ""),
    exact("picker", "weighted-random", &["weighted-random-picker"], ""),
    // Orders.
    none(
        "order",
        "cache-first",
        "vLLM looks at the prefix cache only when a request's turn has come; prefer `fcfs` and route by prefix",
    ),
    near(
        "order",
        "edf",
        &["--scheduling-policy"],
        "send each request with its deadline as `priority` (lower is sooner), e.g. in ms since a fixed day",
    ),
    exact("order", "fcfs", &["--scheduling-policy"], ""),
    exact(
        "order",
        "priority-fcfs",
        &["--scheduling-policy"],
        "vLLM schedules the lowest number first, so send the negated priority with each request",
    ),
    none("order", "reverse-priority", "pathological, for tests"),
    near(
        "order",
        "sjf",
        &["--scheduling-policy"],
        "send each request with its number of prompt tokens as `priority`",
    ),
    // Priorities.
    none(
        "priority",
        "age",
        "the priority of a request is fixed when it is sent; equal slopes are `fcfs`, unequal ones have no counterpart",
    ),
    exact("priority", "constant", &[], "requests are sent without `priority`"),
    near(
        "priority",
        "deadline",
        &[],
        "the priority of a request is fixed when it is sent; send its deadline, which orders requests alike until they are late",
    ),
    exact("priority", "slo-class", &[], "each request is sent with the `priority` of its class"),
    near(
        "priority",
        "slo-tiered",
        &[],
        "the priority of a request is fixed when it is sent: the bases are exported, and nobody ages; let clients resend starved requests with a lower number, or bound the important classes by flow control",
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
        "what vLLM does with `--scheduling-policy fcfs`; with `priority` it preempts the least important",
    ),
    // Eviction.
    none("evict", "belady", "an oracle, for bounds only"),
    none(
        "evict",
        "intent-aware",
        "the server is not told what the router expects; only LRU is there",
    ),
    none(
        "evict",
        "lfu",
        "only LRU is there on the GPU; the CPU tier of the offloading connector also has ARC",
    ),
    exact("evict", "lru", &["--enable-prefix-caching"], ""),
    none(
        "evict",
        "session-aware",
        "the server knows no sessions; only LRU is there: a CPU tier keeps blocks of live sessions longer",
    ),
    none("evict", "slo-aware", "blocks carry no class; only LRU is there"),
    // Offload.
    near(
        "offload",
        "on-evict",
        &["--kv-transfer-config"],
        "the connector copies blocks out as they are completed, not when they are dropped, and nobody waits for it",
    ),
    near(
        "offload",
        "threshold",
        &["--kv-transfer-config"],
        "there is no threshold: the connector copies every completed block out",
    ),
    exact("offload", "vllm", &["--kv-transfer-config"], ""),
    near(
        "offload",
        "write-through",
        &["--kv-transfer-config"],
        "blocks are copied out as they are completed, a little earlier than here",
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
