//! The scenario file as it is written: every field optional, every number with its legal range.
//!
//! Filled by [`crate::yaml::decode`] from a file and the flags set into it. What the values mean
//! together is `resolve`'s work. Names are the file's names: changing one changes the
//! interface.

use crate::legal::{
    Chance, Coefficient, Finite, HostFactor, LONGEST_US, MOST_REQUESTS, Share, SliceSeconds,
    SpanMillis, StepMicros, Utilization,
};
use crate::rate::RateSpec;
use crate::scenario::machine::PrefillField;
use crate::scenario::oracles::OracleField;
use crate::scenario::tier::{KvTierFields, PreemptionField};
use crate::slo::SloSpec;
use crate::strategy;
use crate::strategy::formula::{Score, is_one_parameter};
use crate::workload_spec::{ClientSpec, CohortSpec};
use crate::yaml::{Amount, OneOrMany, Whole, inline_schema, named_or};
use blis_sim::LONGEST_DRAFT;
use schemars::JsonSchema;
use serde::Deserialize;
use serde::de::{Deserializer, Error, MapAccess, SeqAccess, Visitor};
use std::fmt;

/// A scenario as written.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Scenario {
    /// A short name for reports.
    pub name: Option<String>,
    /// What it is about.
    pub description: Option<String>,
    /// Seed of the workload and of the policies' random choices.
    pub seed: Option<Whole<0, { u64::MAX }>>,
    /// Name or alias of a model in the catalogue.
    pub model: Option<String>,
    /// Name of a GPU in the catalogue.
    pub hardware: Option<String>,
    /// Tensor parallelism.
    pub tp: Option<Whole<1, 1024>>,
    /// Stages of a pipeline, each on `tp` GPUs.
    pub pp: Option<Whole<1, 64>>,
    /// Ranks that share the experts, each with attention and KV cache of its own on `tp` GPUs.
    pub dp: Option<Whole<1, 1024>>,
    /// Whether each GPU has whole experts.
    pub expert_parallel: Option<bool>,
    /// How long things take.
    pub latency: LatencyFields,
    /// The cluster.
    pub cluster: ClusterFields,
    /// The engine of each instance.
    pub engine: EngineFields,
    /// The CPU tier behind its KV blocks.
    pub kv_tier: KvTierFields,
    /// Delays of the gateway.
    pub gateway: GatewayFields,
    /// How fresh the router's view is.
    pub signals: SignalFields,
    /// A strategy. Its fields take the place of this one, below the scenario's own, before the
    /// scenario is decoded.
    pub strategy: Option<strategy::Choice>,
    /// Who enters.
    pub admission: Option<PolicyFields>,
    /// Where they go.
    pub routing: Option<RoutingFields>,
    /// Who is scheduled first.
    pub scheduler: Option<PolicyFields>,
    /// How important a waiting request is.
    pub priority: Option<PolicyFields>,
    /// Who is preempted.
    pub preempt: Option<PolicyFields>,
    /// Which cached blocks go first.
    pub evict: Option<PolicyFields>,
    /// Which decisions oracles take instead.
    pub oracles: Vec<OracleField>,
    /// When to stop at the latest; beyond ten years is never.
    pub horizon_us: Option<Whole<1, { u64::MAX }>>,
    /// Requests that arrive earlier than this many seconds are simulated but not counted.
    pub warmup_s: Option<Amount<SliceSeconds>>,
    /// Most memory and output that a run may take by estimate.
    pub max_gb: Option<Whole<1, 1_000_000>>,
    /// Targets by class, or the name of a set of them. Where it leaves one open, the workload's own
    /// is used.
    pub slo: SloSpec,
    /// What is sent.
    pub workload: WorkloadFields,
}

/// `latency:`.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct LatencyFields {
    /// `coefficients` (alias `blackbox`), `constant`, `operators`, `profile`, `roofline`, or the
    /// path of a profile, relative to the scenario file.
    pub model: Option<String>,
    /// Ingress fixed, ingress per prompt token, output processing per token.
    pub alpha_us: Option<Vec<Amount<Coefficient>>>,
    /// Step fixed, per prefill token, per decode token.
    pub beta_us: Option<Vec<Amount<Coefficient>>>,
    /// Step time of the model `constant`.
    pub step_us: Option<Amount<StepMicros>>,
    /// With `operators`: the host's time in a step, as a multiple of the measured server's.
    pub host_factor: Option<Amount<HostFactor>>,
}

/// `cluster:`.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct ClusterFields {
    /// Number of engine instances.
    pub instances: Option<Whole<1, 100_000>>,
    /// Number of replicas of the gateway.
    pub gateways: Option<Whole<1, 1_000>>,
}

/// `engine:`.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct EngineFields {
    /// Where the budgets' defaults come from.
    pub preset: Option<Preset>,
    /// KV blocks of an instance, on all its ranks together.
    pub total_kv_blocks: Option<Whole<1, 2_147_483_648>>,
    /// Tokens of a block.
    pub block_size: Option<Whole<1, 65_536>>,
    /// Most requests running at once, on each rank.
    pub max_num_running_reqs: Option<Whole<1, 1_000_000>>,
    /// Token budget of a step, on each rank.
    pub max_num_scheduled_tokens: Option<Whole<1, 2_147_483_648>>,
    /// Most tokens of one request in a step; 0: no limit but the budget.
    pub long_prefill_token_threshold: Option<Whole<0, 2_147_483_648>>,
    /// Whether a request is scheduled only if blocks for its whole prompt are free.
    pub reserve_full_prompt: Option<bool>,
    /// Whether the next step is scheduled while the GPU computes.
    pub async_scheduling: Option<bool>,
    /// Whether full blocks are cached once they are allocated, not once they are computed.
    pub cache_on_allocation: Option<bool>,
    /// Tokens of the largest captured graph; larger steps with prefill are launched without one.
    pub max_cudagraph_capture_size: Option<Whole<1, 65_536>>,
    /// Share of the blocks that stays free when a request is admitted to a batch.
    pub watermark: Option<Amount<Share>>,
    /// Share of a GPU's memory that the server may use; KV blocks are counted from it.
    pub gpu_memory_utilization: Option<Amount<Utilization>>,
    /// How numbers of the KV cache are stored.
    pub kv_cache_dtype: Option<KvDtype>,
    /// What prompts share steps with.
    pub prefill: Option<PrefillField>,
    /// What becomes of the KV of a preempted request.
    pub preemption: Option<PreemptionField>,
    /// Tokens of the draft that a step verifies beside the next token of a request; 0: none.
    pub num_speculative_tokens: Option<Whole<0, { LONGEST_DRAFT as u64 }>>,
    /// The chance that a token of a draft is accepted if those before it are; or by position, the
    /// share of drafts that are accepted up to there.
    pub acceptance_rate: Option<OneOrMany<Amount<Chance>>>,
    /// What drafts take longer in a step that verifies some.
    pub draft_step_us: Option<Amount<Coefficient>>,
    /// And for each token of a draft that it verifies.
    pub draft_token_us: Option<Amount<Coefficient>>,
}

/// How numbers of the KV cache are stored.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum KvDtype {
    /// As the model's configuration says; bf16 if it says nothing.
    #[default]
    Auto,
    /// In 16 bits.
    Bf16,
    /// In 8 bits.
    Fp8,
}

impl KvDtype {
    /// What vLLM calls it; `None` for the model's own.
    pub(super) const fn of_vllm(self) -> Option<&'static str> {
        match self {
            KvDtype::Auto => None,
            KvDtype::Bf16 => Some("bfloat16"),
            KvDtype::Fp8 => Some("fp8"),
        }
    }
}

/// Settings that belong together.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Preset {
    /// 2,048 tokens, 256 requests: the vLLM server on GPUs below the H100.
    VllmA100,
    /// 8,192 tokens, 1,024 requests: today's vLLM server on an H100.
    VllmH100,
    /// 16,384 tokens, 1,024 requests: today's vLLM server on a B200.
    VllmB200,
    /// The server of vLLM 0.26: asynchronous scheduling, blocks cached once they are allocated, and
    /// the budgets that it takes on the machine's GPU. Our default.
    #[default]
    #[serde(rename = "vllm-0.26")]
    Vllm026,
}

/// `gateway:`.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct GatewayFields {
    /// From arrival to the admission decision.
    pub admission_latency_us: Option<Whole<0, LONGEST_US>>,
    /// From admission to the routing decision.
    pub routing_latency_us: Option<Whole<0, LONGEST_US>>,
}

/// `signals:`.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct SignalFields {
    /// Time between polls of an instance; 0: always fresh.
    pub snapshot_refresh_interval_us: Option<Whole<0, LONGEST_US>>,
    /// The same, for queues and batches alone.
    pub load_refresh_interval_us: Option<Whole<0, LONGEST_US>>,
    /// The same, for KV memory alone.
    pub kv_refresh_interval_us: Option<Whole<0, LONGEST_US>>,
    /// How long KV events take to reach the router.
    pub kv_event_delay_us: Option<Whole<0, LONGEST_US>>,
    /// For how long a prompt counts as cached where it was sent, until KV events tell; 0: not.
    pub speculative_ttl_us: Option<Whole<0, LONGEST_US>>,
}

/// A policy: `name`, `name[parameter=value,...]`, or `{policy: name, params: {parameter: value}}`.
#[derive(Clone, Debug)]
pub struct PolicyFields {
    /// Name, or name with parameters in brackets; `None`: the kind's default.
    pub policy: Option<String>,
    /// More parameters, in the order written.
    pub params: Vec<(String, String)>,
}

/// `routing:`; the short form is the policy alone.
#[derive(Clone, Debug, Default)]
pub struct RoutingFields {
    /// The policy, like [`PolicyFields::policy`].
    pub policy: Option<String>,
    /// More parameters of it.
    pub params: Vec<(String, String)>,
    /// Scorers and weights of `weighted`.
    pub scorers: Option<String>,
    /// Filters of `weighted`.
    pub filters: Option<String>,
    /// Picker of `weighted`.
    pub picker: Option<String>,
    /// Blocks that the router remembers per instance, or `auto`.
    pub lru_capacity: Option<String>,
}

/// `workload:`; exactly one of `preset`, `spec`, `trace`, `distribution` and `mix`.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct WorkloadFields {
    /// Name of a workload that ships.
    pub preset: Option<String>,
    /// Path of a workload specification, relative to the scenario file.
    pub spec: Option<String>,
    /// Path of a trace, relative to the scenario file.
    pub trace: Option<String>,
    /// One kind of client with normal lengths.
    pub distribution: Option<DistributionFields>,
    /// Clients written out.
    pub mix: Option<MixFields>,
    /// Replaces the rate of `preset` or `spec`.
    pub rate: Option<RateSpec>,
    /// Replaces the number of requests of `preset` or `spec`; 0: no limit but the horizon.
    pub num_requests: Option<Whole<0, MOST_REQUESTS>>,
    /// Format of `trace`; by default the one that its first line is in.
    pub trace_format: Option<String>,
    /// Divides the arrival times of `trace`.
    pub speedup: Option<Amount<Finite>>,
    /// Uses `trace` from this second of its own time on.
    pub trace_start_s: Option<Amount<SliceSeconds>>,
    /// Uses `trace` up to this second of its own time.
    pub trace_end_s: Option<Amount<SliceSeconds>>,
    /// Share of the sessions of `trace` that is used; which ones follows from the seed 0.
    pub trace_sample: Option<Amount<Finite>>,
    /// Uses so many requests of `trace`.
    pub trace_limit: Option<Whole<1, MOST_REQUESTS>>,
    /// How long clients that do not say it themselves wait for the first token.
    pub patience_ms: Option<Amount<SpanMillis>>,
}

/// `workload.distribution:`.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct DistributionFields {
    /// Requests per second.
    pub rate: Option<RateSpec>,
    /// How many requests; 0: no limit but the horizon.
    pub num_requests: Option<Whole<0, MOST_REQUESTS>>,
    /// Arrival process.
    pub arrival: Option<String>,
    /// Coefficient of variation of a gamma process.
    pub cv: Option<Amount<Finite>>,
    /// Prompt length after the prefix.
    pub prompt_tokens: TokenFields,
    /// Output length.
    pub output_tokens: TokenFields,
    /// Tokens that all prompts have in common.
    pub prefix_tokens: Option<Whole<0, 1_073_741_824>>,
}

/// A normal distribution of tokens.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct TokenFields {
    /// Mean, within `min` and `max`.
    pub mean: Option<Amount<Finite>>,
    /// Standard deviation.
    pub stdev: Option<Amount<Finite>>,
    /// Least length.
    pub min: Option<Whole<1, 1_073_741_824>>,
    /// Greatest length.
    pub max: Option<Whole<1, 1_073_741_824>>,
}

/// `workload.mix:`.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct MixFields {
    /// Requests per second of all clients together.
    pub aggregate_rate: Option<RateSpec>,
    /// How many requests; 0: no limit but the horizon.
    pub num_requests: Option<Whole<0, MOST_REQUESTS>>,
    /// The clients, as in a workload specification.
    pub clients: Vec<ClientSpec>,
    /// The cohorts, as in a workload specification.
    pub cohorts: Vec<CohortSpec>,
}

inline_schema! {
    [] PolicyFields, _generator => named_or(FIELDS);
    [] RoutingFields, _generator => named_or(ROUTING_FIELDS);
}

impl<'de> Deserialize<'de> for PolicyFields {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<PolicyFields, D::Error> {
        let fields = deserializer.deserialize_any(Choice { routing: false })?;
        Ok(PolicyFields { policy: fields.policy, params: fields.params })
    }
}

impl<'de> Deserialize<'de> for RoutingFields {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<RoutingFields, D::Error> {
        deserializer.deserialize_any(Choice { routing: true })
    }
}

/// Reads the short form or the long form of a policy.
struct Choice {
    routing: bool,
}

const FIELDS: &[&str] = &["policy", "params", "formula", "admit_when"];
const ROUTING_FIELDS: &[&str] =
    &["policy", "scorers", "filters", "picker", "lru_capacity", "params", "formula"];

impl<'de> Visitor<'de> for Choice {
    type Value = RoutingFields;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("`name`, `name[parameter=value,...]`, or the fields `policy` and `params`")
    }

    fn visit_str<E>(self, text: &str) -> Result<RoutingFields, E> {
        Ok(RoutingFields { policy: Some(text.to_owned()), ..RoutingFields::default() })
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<RoutingFields, A::Error> {
        let known = if self.routing { ROUTING_FIELDS } else { FIELDS };
        let mut fields = RoutingFields::default();
        let mut misplaced = None;
        while let Some(name) = map.next_key_seed(OneOf(known))? {
            match name {
                "policy" => fields.policy = map.next_value()?,
                // Those in their place are spelled out before anything is decoded.
                "formula" | "admit_when" => {
                    if self.routing {
                        map.next_value::<Score>()?;
                    } else {
                        map.next_value::<String>()?;
                    }
                    misplaced = Some(name);
                }
                "scorers" => fields.scorers = map.next_value::<Option<Scorers>>()?.map(|s| s.0),
                "filters" => fields.filters = map.next_value()?,
                "picker" => fields.picker = map.next_value()?,
                "lru_capacity" => fields.lru_capacity = map.next_value()?,
                _ => fields.params = map.next_value::<Params>()?.0,
            }
        }
        misplaced.map_or(Ok(fields), |name| {
            Err(A::Error::custom(format!(
                "`{name}` takes the place of `policy` and `scorers`, in `routing`, `admission`, \
                 `scheduler` and `priority`; remove it, or them"
            )))
        })
    }
}

/// A field name out of a list.
struct OneOf(&'static [&'static str]);

impl<'de> serde::de::DeserializeSeed<'de> for OneOf {
    type Value = &'static str;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<&'static str, D::Error> {
        let name = String::deserialize(deserializer)?;
        let known = self.0.iter().find(|known| **known == name);
        known.copied().ok_or_else(|| D::Error::unknown_field(&name, self.0))
    }
}

/// Parameters of a policy as texts, in the order written.
struct Params(Vec<(String, String)>);

impl<'de> Deserialize<'de> for Params {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Params, D::Error> {
        deserializer.deserialize_map(ParamsVisitor)
    }
}

struct ParamsVisitor;

impl<'de> Visitor<'de> for ParamsVisitor {
    type Value = Params;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the policy's parameters, `parameter: value`")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Params, A::Error> {
        let mut params = Vec::new();
        while let Some((name, value)) = map.next_entry::<String, String>()? {
            if !is_one_parameter(&name, &value) {
                let message = format!("found `{name}: {value}`; legal: one parameter per line");
                return Err(A::Error::custom(message));
            }
            params.push((name, value));
        }
        Ok(Params(params))
    }
}

/// Scorers: `pa:3,qd:2`, or a list of `{name, weight}`.
struct Scorers(String);

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ScorerFields {
    name: String,
    weight: Amount<Finite>,
}

impl<'de> Deserialize<'de> for Scorers {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Scorers, D::Error> {
        deserializer.deserialize_any(ScorersVisitor)
    }
}

struct ScorersVisitor;

impl<'de> Visitor<'de> for ScorersVisitor {
    type Value = Scorers;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("`scorer:weight,...`, e.g. `pa:3,qd:2,kv:2`, or a list of `{name, weight}`")
    }

    fn visit_str<E>(self, text: &str) -> Result<Scorers, E> {
        Ok(Scorers(text.to_owned()))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Scorers, A::Error> {
        let mut scorers = Vec::new();
        while let Some(ScorerFields { name, weight }) = items.next_element()? {
            if name.contains([':', ',', '[', ']']) {
                let legal = "the name of a scorer alone; write parameters as `scorers: \
                             'name[parameter=value]:weight'`";
                return Err(A::Error::custom(format!("found `{name}`; legal: {legal}")));
            }
            scorers.push(format!("{name}:{}", weight.get()));
        }
        Ok(Scorers(scorers.join(",")))
    }
}
