//! The flags that describe a scenario: one row each, from which a program makes its parser and its
//! help, and the patch on the scenario.
//!
//! A flag is the field it stands for, so it carries no default and no check of its own: both belong
//! to the scenario. The binary spells them `--num-instances`, Python `num_instances`.

use super::Draft;
use crate::problem::{Place, Problem, hint};

/// One flag.
#[derive(Clone, Copy, Debug)]
pub struct Flag {
    /// Its name, without dashes before it.
    pub name: &'static str,
    /// What its value is, for help.
    pub value: &'static str,
    /// The group it stands under in help.
    pub heading: &'static str,
    /// One sentence, with the default.
    pub help: &'static str,
    meaning: Meaning,
}

/// What a flag does to the scenario.
#[derive(Clone, Copy, Debug)]
enum Meaning {
    /// Sets the field at this path.
    Field(&'static str),
    /// Sets the field at this path to a comma-separated list.
    List(&'static str),
    /// Sets this amount of whichever workload there is.
    Amount(&'static str),
    /// Chooses the policy of this kind.
    Policy(&'static str),
    /// Chooses this kind of workload; the value is its path.
    Workload(&'static str),
    /// Chooses a built-in workload by name.
    BuiltIn,
    /// Chooses a strategy.
    Strategy,
}

use Meaning::{Amount, BuiltIn, Field, List, Policy, Strategy, Workload};

const MODEL: &str = "Model and machine";
const ENGINE: &str = "Engine";
const TIER: &str = "KV tier";
const CLUSTER: &str = "Cluster";
const POLICY: &str = "Policies";
const WORKLOAD: &str = "Workload";

const fn flag(
    heading: &'static str,
    name: &'static str,
    value: &'static str,
    meaning: Meaning,
    help: &'static str,
) -> Flag {
    Flag { name, value, heading, help, meaning }
}

/// All flags.
// Two lines a flag: formatted one argument a line, the table could not be read as one.
#[rustfmt::skip]
pub const FLAGS: &[Flag] = &[
    flag(MODEL, "model", "NAME", Field("model"),
        "Model in the catalogue [default: meta-llama/llama-3.1-8b-instruct]"),
    flag(MODEL, "hardware", "GPU", Field("hardware"),
        "GPU in the catalogue [default: H100]"),
    flag(MODEL, "tp", "N", Field("tp"),
        "Tensor parallelism [default: 2]"),
    flag(MODEL, "pp", "N", Field("pp"),
        "Stages of a pipeline, each on --tp GPUs [default: 1]"),
    flag(MODEL, "dp", "N", Field("dp"),
        "Ranks that share the experts, each with attention and KV cache of its own on --tp GPUs \
         [default: 1]"),
    flag(MODEL, "expert-parallel", "BOOL", Field("expert_parallel"),
        "Each GPU has whole experts [default: false]"),
    flag(MODEL, "latency-model", "MODEL", Field("latency.model"),
        "coefficients (alias blackbox), constant, operators, profile, roofline, or FILE.yaml [default: \
         coefficients if known for the machine, else its profile]"),
    flag(MODEL, "alpha-coeffs", "A0,A1,A2", List("latency.alpha_us"),
        "Fixed ingress, ingress per prompt token, output processing per token, in us"),
    flag(MODEL, "beta-coeffs", "B0,B1,B2", List("latency.beta_us"),
        "Fixed step time, per prefill token, per decode token, in us"),
    flag(ENGINE, "total-kv-blocks", "N", Field("engine.total_kv_blocks"),
        "KV blocks per instance [default: the machine's]"),
    flag(ENGINE, "block-size-in-tokens", "N", Field("engine.block_size"),
        "Tokens per KV block [default: 16] [alias: --block-size]"),
    flag(ENGINE, "max-num-running-reqs", "N", Field("engine.max_num_running_reqs"),
        "Most requests running at once [default: the preset's: 1024, or 256 on an A100 and GPUs with \
         less than 70 GiB]"),
    flag(ENGINE, "max-num-scheduled-tokens", "N", Field("engine.max_num_scheduled_tokens"),
        "Token budget per step [default: the preset's: 8192, or 2048 on an A100 and GPUs with less than \
         70 GiB]"),
    flag(ENGINE, "long-prefill-token-threshold", "N", Field("engine.long_prefill_token_threshold"),
        "Most prompt tokens per request and step; 0: no limit [default: 0]"),
    flag(ENGINE, "reserve-full-prompt", "BOOL", Field("engine.reserve_full_prompt"),
        "Schedule a request only if its whole prompt fits [default: true]"),
    flag(ENGINE, "async-scheduling", "BOOL", Field("engine.async_scheduling"),
        "Schedule the next step while the GPU computes, as vLLM does [default: the preset's]"),
    flag(ENGINE, "cache-on-allocation", "BOOL", Field("engine.cache_on_allocation"),
        "Cache full blocks once they are allocated, as vLLM does [default: the preset's]"),
    flag(ENGINE, "max-cudagraph-capture-size", "N", Field("engine.max_cudagraph_capture_size"),
        "Tokens of the largest captured graph, for profiles with a host [default: the preset's]"),
    flag(ENGINE, "gpu-memory-utilization", "SHARE", Field("engine.gpu_memory_utilization"),
        "Derive KV blocks from this fraction of GPU memory"),
    flag(ENGINE, "kv-cache-dtype", "TYPE", Field("engine.kv_cache_dtype"),
        "How the KV cache is stored: auto, bf16 or fp8 [default: auto, as the model says]"),
    flag(ENGINE, "prefill", "MODE", Field("engine.prefill"),
        "What prompts share steps with: mixed (with decodes), separate, or whole (and uncut) [default: mixed]"),
    flag(ENGINE, "preemption-mode", "MODE", Field("engine.preemption"),
        "What happens to the KV of a preempted request: recompute or swap [default: recompute]"),
    flag(ENGINE, "num-speculative-tokens", "N", Field("engine.num_speculative_tokens"),
        "Tokens of the draft that a step verifies for each decoding request; 0: none [default: 0]"),
    flag(ENGINE, "acceptance-rate", "P[,P...]", List("engine.acceptance_rate"),
        "Chance that a draft token is accepted if those before it are, or shares by position"),
    flag(ENGINE, "draft-step-us", "US", Field("engine.draft_step_us"),
        "Time that drafts add to a step that verifies some, in us [default: 0]"),
    flag(ENGINE, "draft-token-us", "US", Field("engine.draft_token_us"),
        "And for each draft token that it verifies, in us [default: 0]"),
    flag(TIER, "kv-cpu-blocks", "N", Field("kv_tier.cpu_blocks"),
        "Blocks in the CPU tier; 0: none [default: 0]"),
    flag(TIER, "kv-offload", "POLICY", Field("kv_tier.offload.policy"),
        "When to copy to it: threshold, on-evict, vllm or write-through [default: threshold]"),
    flag(TIER, "kv-offload-threshold", "SHARE", Field("kv_tier.offload.params.threshold"),
        "Copy idle blocks out above this GPU block occupancy [default: 0.9]"),
    flag(TIER, "kv-reload", "MODE", Field("kv_tier.reload"),
        "What waits for a reload: blocking (the step) or async (the request) [default: blocking]"),
    flag(TIER, "kv-link", "NAME", Field("kv_tier.link"),
        "Link speed by name, e.g. h200-pcie [default: the machine's]"),
    flag(TIER, "kv-transfer-bandwidth", "BLOCKS/US", Field("kv_tier.bandwidth_blocks_per_us"),
        "Link bandwidth in blocks per us, per direction [default: the link's]"),
    flag(TIER, "kv-transfer-base-latency", "US", Field("kv_tier.base_latency_us"),
        "Fixed latency of a transfer, in us [default: the link's]"),
    flag(CLUSTER, "num-instances", "N", Field("cluster.instances"),
        "Engine instances [default: 1]"),
    flag(CLUSTER, "num-gateways", "N", Field("cluster.gateways"),
        "Gateway replicas, each with its own view of the instances [default: 1]"),
    flag(CLUSTER, "admission-latency", "US", Field("gateway.admission_latency_us"),
        "Delay from arrival to admission, in us [default: 0]"),
    flag(CLUSTER, "routing-latency", "US", Field("gateway.routing_latency_us"),
        "Delay from admission to routing, in us [default: 0]"),
    flag(CLUSTER, "snapshot-refresh-interval", "US", Field("signals.snapshot_refresh_interval_us"),
        "Refresh interval of the router's view, in us; 0: always fresh [default: 0]"),
    flag(CLUSTER, "kv-event-delay", "US", Field("signals.kv_event_delay_us"),
        "Delay of KV events to the router, in us [default: 0]"),
    flag(CLUSTER, "horizon", "US", Field("horizon_us"),
        "Stop at this simulated time, in us [default: never]"),
    flag(CLUSTER, "max-gb", "GB", Field("max_gb"),
        "Most memory and output of a run by estimate, in GB [default: 4]"),
    flag(CLUSTER, "seed", "N", Field("seed"),
        "Seed of every random draw [default: the workload's, else 42]"),
    flag(POLICY, "strategy", "NAME[PARAMETER=VALUE,...]", Strategy,
        "Bundle of policies, by name or file; see `blis strategies` [default: none]"),
    flag(POLICY, "admission-policy", "POLICY", Policy("admission"),
        "Admission policy [default: always-admit]"),
    flag(POLICY, "token-bucket-capacity", "TOKENS", Field("admission.params.capacity"),
        "Capacity of token-bucket [default: 10000]"),
    flag(POLICY, "token-bucket-refill-rate", "TOKENS/S", Field("admission.params.refill-rate"),
        "Refill rate of token-bucket [default: 1000]"),
    flag(POLICY, "routing-policy", "POLICY", Policy("routing"),
        "Routing policy [default: round-robin]"),
    flag(POLICY, "routing-scorers", "S:W,...", Field("routing.scorers"),
        "Scorers and weights of the weighted router [default: pa:3,qd:2,kv:2]"),
    flag(POLICY, "lru-capacity", "BLOCKS", Field("routing.lru_capacity"),
        "Blocks per instance that prefix-affinity remembers, or auto [default: auto]"),
    flag(POLICY, "scheduler", "POLICY", Policy("scheduler"),
        "Order of the waiting queue [default: fcfs]"),
    flag(POLICY, "priority-policy", "POLICY", Policy("priority"),
        "Priority of waiting requests [default: constant]"),
    flag(POLICY, "preempt", "POLICY", Policy("preempt"),
        "Which request to preempt when blocks run out [default: tail]"),
    flag(POLICY, "evict", "POLICY", Policy("evict"),
        "Which cached blocks to evict first [default: lru]"),
    flag(WORKLOAD, "workload-spec", "FILE", Workload("spec"),
        "Workload specification (version 2 YAML)"),
    flag(WORKLOAD, "trace", "FILE", Workload("trace"),
        "Trace to replay: native JSONL or another known format"),
    flag(WORKLOAD, "workload", "NAME", BuiltIn,
        "Shipped workload (see `blis workloads`), or distribution"),
    flag(WORKLOAD, "rate", "PER_SEC", Amount("rate"),
        "Requests per second (sessions per second where the workload has sessions), 90% (of saturation), \
         or '64 users'; overrides --workload-spec [default: 1]"),
    flag(WORKLOAD, "num-requests", "N", Amount("num_requests"),
        "Number of requests; overrides --workload-spec; 0: until the horizon [default: 100, or a \
         preset's own; `run` and `why`: enough for a steady state]"),
    flag(WORKLOAD, "prompt-tokens", "N", Field("workload.distribution.prompt_tokens.mean"),
        "Mean prompt length [default: 512]"),
    flag(WORKLOAD, "prompt-tokens-stdev", "N", Field("workload.distribution.prompt_tokens.stdev"),
        "Standard deviation of prompt length [default: 256]"),
    flag(WORKLOAD, "prompt-tokens-min", "N", Field("workload.distribution.prompt_tokens.min"),
        "Shortest prompt [default: 2]"),
    flag(WORKLOAD, "prompt-tokens-max", "N", Field("workload.distribution.prompt_tokens.max"),
        "Longest prompt [default: 7000]"),
    flag(WORKLOAD, "output-tokens", "N", Field("workload.distribution.output_tokens.mean"),
        "Mean output length [default: 512]"),
    flag(WORKLOAD, "output-tokens-stdev", "N", Field("workload.distribution.output_tokens.stdev"),
        "Standard deviation of output length [default: 256]"),
    flag(WORKLOAD, "output-tokens-min", "N", Field("workload.distribution.output_tokens.min"),
        "Shortest output [default: 2]"),
    flag(WORKLOAD, "output-tokens-max", "N", Field("workload.distribution.output_tokens.max"),
        "Longest output [default: 7000]"),
    flag(WORKLOAD, "prefix-tokens", "N", Field("workload.distribution.prefix_tokens"),
        "Length of a prefix that all prompts share [default: 0]"),
    flag(WORKLOAD, "patience-ms", "MS", Field("workload.patience_ms"),
        "Clients give up after this long without a first token, in ms [default: never]"),
    flag(WORKLOAD, "trace-format", "FORMAT", Field("workload.trace_format"),
        "Format of --trace [default: detected]"),
    flag(WORKLOAD, "speedup", "X", Field("workload.speedup"),
        "Divide the arrival times of --trace by this; 2 doubles the rate [default: 1]"),
    flag(WORKLOAD, "trace-start", "S", Field("workload.trace_start_s"),
        "Drop arrivals before this time of --trace, in s; it becomes time 0"),
    flag(WORKLOAD, "trace-end", "S", Field("workload.trace_end_s"),
        "Drop arrivals from this time of --trace on, in s"),
    flag(WORKLOAD, "trace-sample", "SHARE", Field("workload.trace_sample"),
        "Keep this fraction of the sessions of --trace"),
    flag(WORKLOAD, "trace-limit", "N", Field("workload.trace_limit"),
        "Stop after this many requests of --trace"),
];

/// Flags that were given, each by its index in [`FLAGS`], with how it was spelled and its value.
#[derive(Clone, Debug, Default)]
pub struct Given {
    given: Vec<(usize, String, String)>,
}

impl Given {
    /// Adds the flag at `index`, which was spelled `spelling`, with the value `text`.
    pub fn push(&mut self, index: usize, spelling: String, text: String) {
        self.given.push((index, spelling, text));
    }

    /// Adds the flag `name`, spelled with underscores for hyphens, with the value `text`.
    ///
    /// # Errors
    /// If there is no such flag.
    pub fn push_named(&mut self, name: &str, text: String) -> Result<(), Problem> {
        let spelled = |flag: &Flag| flag.name.replace('-', "_");
        let Some(index) = FLAGS.iter().position(|flag| spelled(flag) == name) else {
            let known: Vec<String> = FLAGS.iter().map(spelled).collect();
            let hint = hint(name, known.iter().map(String::as_str));
            let message = format!("unknown setting `{name}`{hint}");
            return Err(Problem::new(Place::Unknown, name, message));
        };
        self.push(index, name.to_owned(), text);
        Ok(())
    }

    /// The same flags once for each strategy that is given, with its name; once if there is none.
    pub fn by_strategy(&self) -> Vec<(Option<String>, Given)> {
        let is_strategy = |(index, ..): &&(usize, String, String)| FLAGS[*index].is_repeated();
        let others = self.given.iter().filter(|flag| !is_strategy(flag));
        let others: Vec<(usize, String, String)> = others.cloned().collect();
        let with = |flag: &(usize, String, String)| {
            let mut given = others.clone();
            given.push(flag.clone());
            (Some(flag.2.clone()), Given { given })
        };
        let all: Vec<_> = self.given.iter().filter(is_strategy).map(with).collect();
        if all.is_empty() { vec![(None, self.clone())] } else { all }
    }

    /// Sets what the flags say into `draft`, in the order of [`FLAGS`].
    ///
    /// # Errors
    /// If flags contradict one another.
    pub fn apply(&self, draft: &mut Draft) -> Result<(), Problem> {
        self.check()?;
        let mut given: Vec<_> = self.given.iter().collect();
        // The kind of workload decides where amounts go, and a policy drops the settings of the one
        // before, so these are chosen first.
        given.sort_by_key(|(index, ..)| (!FLAGS[*index].chooses(), *index));
        for (index, spelling, text) in given {
            FLAGS[*index].apply(spelling, text, draft);
        }
        Ok(())
    }

    /// Refuses flags that contradict one another.
    ///
    /// # Errors
    /// If more than one kind of workload is given, or one flag twice.
    pub fn check(&self) -> Result<(), Problem> {
        let same =
            |at: usize| self.given[..at].iter().any(|(index, ..)| *index == self.given[at].0);
        if let Some(again) = (1..self.given.len()).find(|&at| same(at)) {
            let (index, spelling, _) = &self.given[again];
            let message = "is given twice; keep one of the two";
            return Err(Problem::new(
                Place::Flag(spelling.clone().into()),
                FLAGS[*index].name,
                message,
            ));
        }
        match self.workloads()[..] {
            [first, second, ..] => Err(Problem::new(
                Place::Flag(second.into()),
                "workload",
                format!("`{first}` is given as well; keep exactly one of the two"),
            )),
            _ => Ok(()),
        }
    }

    /// The flags that say where requests come from, as they are spelled.
    fn workloads(&self) -> Vec<&str> {
        let kinds = ["workload-spec", "trace", "workload"];
        kinds
            .into_iter()
            .filter_map(|kind| self.given.iter().find(|(index, ..)| FLAGS[*index].name == kind))
            .map(|(_, spelling, _)| spelling.as_str())
            .collect()
    }

    /// Whether there is one.
    pub fn has_workload(&self) -> bool {
        !self.workloads().is_empty()
    }
}

impl Flag {
    /// Whether it may be given several times, by those who compare strategies.
    pub fn is_repeated(&self) -> bool {
        matches!(self.meaning, Strategy)
    }

    fn chooses(&self) -> bool {
        matches!(self.meaning, Workload(_) | BuiltIn | Strategy | Policy(_))
    }

    fn apply(&self, name: &str, text: &str, draft: &mut Draft) {
        match self.meaning {
            Field(path) => draft.set(name, path, text),
            List(path) => draft.set_list(name, path, text),
            Amount(field) => draft.set_amount(name, field, text),
            Policy(kind) => draft.set_policy(name, kind, text),
            Workload(kind) => draft.choose_workload(name, kind, Some(text)),
            BuiltIn if text == "distribution" => {
                draft.choose_workload(name, "distribution", None);
            }
            BuiltIn => draft.choose_workload(name, "preset", Some(text)),
            Strategy => draft.choose_strategy(name, text),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn given(flags: &[(&str, &str)]) -> Result<Draft, Problem> {
        let (mut given, mut draft) = (Given::default(), Draft::default());
        for (name, text) in flags {
            given.push_named(name, (*text).to_owned())?;
        }
        given.apply(&mut draft)?;
        Ok(draft)
    }

    #[test]
    fn settings_are_named_with_underscores_and_are_the_flags() {
        let draft = given(&[("rate", "3"), ("workload", "distribution"), ("num_instances", "4")]);
        let plan = draft.expect("legal").plan().expect("legal");
        assert_eq!(plan.instances, 4);
        let Err(problem) = given(&[("num_instance", "4")]) else { panic!("unknown") };
        assert!(problem.message.ends_with("did you mean `num_instances`?"), "{problem}");
    }

    #[test]
    fn two_kinds_of_workload_contradict_one_another() {
        let Err(problem) = given(&[("trace", "a"), ("workload", "b")]) else { panic!("two") };
        assert_eq!(
            problem.to_string(),
            "workload: `trace` is given as well; keep exactly one of the two"
        );
    }
}
