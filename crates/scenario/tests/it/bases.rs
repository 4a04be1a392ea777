//! The scenarios that the null effects start from, and what must happen in each.

use blis_metrics::Report;

/// What is run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Base {
    /// Four instances with few places and a small token budget, weighted routing, two classes that
    /// share a system prompt.
    Cluster,
    /// One such instance, routed to by load and memory.
    Single,
    /// As the cluster, but one class.
    OneClass,
    /// As the cluster, but no two prompts have anything in common, and routing by load and memory.
    Unshared,
    /// Three instances whose limits are out of reach.
    Roomy,
    /// The same, with a warm-up.
    Warmed,
    /// Two instances short of KV blocks: requests are preempted and cached blocks evicted.
    Tight,
    /// Two instances that serve eight tenants of one class, each with a system prompt of its own:
    /// more than there are KV blocks for, so that it matters which are evicted. Nobody is
    /// preempted.
    Evicting,
    /// Prompts of 100 tokens of their own; routing by prefix and load.
    Own,
    /// The same, but the first 10 tokens of all prompts are equal: less than a block.
    ShortPrefix,
    /// A scenario that says little.
    Brief,
    /// The same with every default written out.
    WrittenOut,
    /// The same with its keys in another order.
    Reordered,
}

use Base::{
    Brief, Cluster, Evicting, OneClass, Own, Reordered, Roomy, ShortPrefix, Single, Tight,
    Unshared, Warmed, WrittenOut,
};

const BRIEF: &str = "
cluster: {instances: 2}
workload:
  distribution:
    rate: 60
    num_requests: 150
    prompt_tokens: {mean: 300}
    output_tokens: {mean: 50, max: 60}
";

const REORDERED: &str = "
workload:
  distribution:
    output_tokens: {mean: 50, max: 60}
    prompt_tokens: {mean: 300}
    num_requests: 150
    rate: 60
cluster: {instances: 2}
";

const WRITTEN_OUT: &str = "
seed: 42
model: meta-llama/llama-3.1-8b-instruct
hardware: H100
tp: 2
latency: {model: coefficients}
cluster: {instances: 2}
engine:
  preset: vllm-0.26
  total_kv_blocks: 132139
  block_size: 16
  max_num_running_reqs: 1024
  max_num_scheduled_tokens: 8192
  async_scheduling: true
  cache_on_allocation: true
  long_prefill_token_threshold: 0
  reserve_full_prompt: true
  watermark: 0
gateway: {admission_latency_us: 0, routing_latency_us: 0}
signals: {snapshot_refresh_interval_us: 0}
admission: always-admit
routing: round-robin
scheduler: fcfs
priority: constant
preempt: tail
evict: lru
workload:
  distribution:
    rate: 60
    num_requests: 150
    arrival: constant
    prompt_tokens: {mean: 300, stdev: 256, min: 2, max: 7000}
    output_tokens: {mean: 50, stdev: 256, min: 2, max: 60}
    prefix_tokens: 0
";

/// What all clients have in common; after the prefix, prompts have at most 400 tokens.
const CLIENT: &str = "rate_fraction: 1, arrival: {process: gamma, cv: 2}, \
                      output_distribution: {type: geometric, params: {mean: 30}}";
const VARIED: &str = "input_distribution: {type: gaussian, \
                      params: {mean: 150, std_dev: 90, min: 5, max: 400}}";

impl Base {
    /// The scenario.
    pub(crate) fn text(self) -> String {
        let capped =
            "{total_kv_blocks: 500, max_num_running_reqs: 8, max_num_scheduled_tokens: 256}";
        let weighted = |scorers: &str| format!("{{policy: weighted, scorers: '{scorers}'}}");
        let strategy = weighted("pa:3,qd:2,kv:2");
        let shared = |class: &str| {
            let prefix = "prefix_group: system-prompt, prefix_length: 128";
            format!("- {{id: {class}, slo_class: {class}, {CLIENT}, {VARIED}, {prefix}}}")
        };
        let two = format!("{}\n      {}", shared("critical"), shared("batch"));
        let client = |rest: &str| format!("- {{id: one, {CLIENT}, {rest}}}");
        match self {
            Cluster => written(4, capped, &strategy, 160, &two),
            Single => written(1, capped, &weighted("qd:2,kv:2"), 40, &two),
            OneClass => written(4, capped, &strategy, 160, &shared("standard")),
            Unshared => written(4, capped, &weighted("qd:3,kv:3"), 160, &client(VARIED)),
            Roomy => {
                let engine = "{total_kv_blocks: 30000}";
                let routing = "{policy: weighted, scorers: 'pa:3,qd:2', lru_capacity: 20000}";
                written(3, engine, routing, 160, &two)
            }
            Warmed => format!("{}warmup_s: 0.7\n", Roomy.text()),
            Tight => {
                let engine =
                    "{preset: vllm-a100, total_kv_blocks: 64, max_num_scheduled_tokens: 256}";
                written(2, engine, &strategy, 50, &two)
            }
            Evicting => {
                let tenant = |tenant: u32| {
                    let prefix = format!("prefix_group: tenant-{tenant}, prefix_length: 256");
                    format!("- {{id: tenant-{tenant}, {CLIENT}, {VARIED}, {prefix}}}")
                };
                let tenants: Vec<String> = (0..8).map(tenant).collect();
                let engine = "{total_kv_blocks: 260, max_num_running_reqs: 4}";
                written(2, engine, "round-robin", 40, &tenants.join("\n      "))
            }
            Own => {
                let input = "input_distribution: {type: constant, params: {value: 100}}";
                written(4, capped, &weighted("pa:1,qd:1"), 160, &client(input))
            }
            ShortPrefix => {
                let input = "prefix_group: greeting, prefix_length: 10, \
                             input_distribution: {type: constant, params: {value: 90}}";
                written(4, capped, &weighted("pa:1,qd:1"), 160, &client(input))
            }
            Brief => BRIEF.to_owned(),
            WrittenOut => WRITTEN_OUT.to_owned(),
            Reordered => REORDERED.to_owned(),
        }
    }

    /// The base is one in which something happens.
    #[track_caller]
    pub(crate) fn guard(self, report: &Report) {
        let cluster = &report.cluster;
        assert!(cluster.completed > 100, "{self:?} completes {}", cluster.completed);
        let queue = report.decomposition.cluster.expect("there are first tokens").mean.queue;
        assert!(queue > 1.0, "{self:?} queues for {queue} ms");
        let shares = !matches!(self, Unshared | Own | ShortPrefix | Brief | WrittenOut | Reordered);
        assert_eq!(report.kv.cached_tokens > 5_000, shares, "{self:?}: {:?}", report.kv);
        let (preempted, evicted) = (cluster.preemptions, report.kv.evicted_blocks);
        assert_eq!(
            preempted > 10 && evicted > 100,
            self == Tight,
            "{self:?}: {preempted}, {evicted}"
        );
        let only_evicts = preempted == 0 && evicted > 1_000;
        assert!(self != Evicting || only_evicts, "{preempted}, {evicted}");
    }
}

fn written(instances: u32, engine: &str, routing: &str, rate: u32, clients: &str) -> String {
    format!(
        "cluster: {{instances: {instances}}}\nengine: {engine}\nrouting: {routing}\n\
         workload:\n  mix:\n    aggregate_rate: {rate}\n    num_requests: 300\n    \
         clients:\n      {clients}\n"
    )
}
