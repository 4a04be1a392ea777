//! What a run is made of. Plain values: reading files and flags is the work of `scenario`.

use crate::future::Future;
use blis_core::random::{self, Dice, Purpose};
use blis_core::{InstanceId, RequestId, Span, Time};
use blis_kv::LinkSpeed;
use blis_latency::StepTime;
use blis_metrics::{AuditConfig, Loads};
use blis_policy::{
    Admission, Cluster, Evict, Needs, Offload, Order, Policies as Chosen, Preempt, Priority, Router,
};
use std::sync::Arc;

/// Everything that defines a run except its requests.
pub struct Config {
    /// The instances, by pool (>= 1). The first ids are those of the first pool, and so on.
    pub pools: Vec<Pool>,
    /// Delays of the gateway.
    pub gateway: Gateway,
    /// How fresh the router's view of the instances is.
    pub signals: Signals,
    /// How long a client waits for the first token if its request does not say; `None`: for ever.
    pub patience: Option<Span>,
    /// The decisions.
    pub policies: Policies,
    /// Decisions that oracles take instead of the policies.
    pub oracles: Oracles,
    /// What oracles know; `None` unless a policy needs it.
    pub future: Option<Future>,
    /// Seed of the policies' random choices.
    pub seed: u64,
    /// A request that goes elsewhere than the router says: what would have been?
    pub overrule: Option<(RequestId, Instead)>,
    /// When to stop at the latest.
    pub horizon: Option<Time>,
    /// Requests that arrive before this are early, and their tokens are stated apart.
    pub warmup: Time,
    /// Whether runs of equal steps are taken at once.
    pub pace: Pace,
    /// Whether the KV pools check their own books as they go.
    pub audit: bool,
    /// Time between samples of all instances (> 0), from the start on; `None`: no samples.
    pub sample_interval: Option<Span>,
}

impl Config {
    /// The place of each instance's pool among the pools, by id.
    pub(crate) fn homes(&self) -> impl Iterator<Item = usize> + '_ {
        let alike = |(home, pool): (usize, &Pool)| std::iter::repeat_n(home, pool.count as usize);
        self.pools.iter().enumerate().flat_map(alike)
    }

    /// Tokens a block holds. It is the same in all pools: the gateway cuts a prompt once, before it
    /// is known where it goes.
    pub(crate) fn block_size(&self) -> u32 {
        self.pools[0].engine.block_size
    }
}

/// Where a request goes whose router is overruled.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Instead {
    /// There.
    At(InstanceId),
    /// Where the oracle of routing sends it.
    Foreseen,
}

/// Instances that are alike.
#[derive(Clone, Debug)]
pub struct Pool {
    /// What reports call it.
    pub name: String,
    /// How many instances (>= 1).
    pub count: u32,
    /// The engine of each, with its KV memory.
    pub engine: Engine,
    /// How long things take there.
    pub latency: Arc<dyn StepTime>,
}

impl Pool {
    /// What the audit checks its instances by: whether they serve first come first served, and
    /// whether the offload policy runs the tier as vLLM's connector does.
    pub fn audited(&self, fcfs: bool, connector: bool) -> AuditConfig {
        let Engine { tier, .. } = self.engine;
        AuditConfig {
            instances: self.count,
            total_blocks: Some(self.engine.total_kv_blocks),
            cpu_blocks: tier.map_or(0, |tier| tier.blocks),
            max_running: self.engine.max_num_running_reqs,
            max_step_tokens: self.engine.max_num_scheduled_tokens,
            fcfs,
            loads: match tier.map(|tier| tier.reload) {
                Some(_) if connector => Loads::Connector,
                Some(Reload::Async) => Loads::Beside,
                _ => Loads::Blocking,
            },
            ahead: self.engine.ahead(),
            draft_tokens: self.engine.lookahead(),
            max_preemptions: 10_000,
        }
    }
}

/// An engine instance, in vLLM's words.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Engine {
    /// KV blocks (>= 1).
    pub total_kv_blocks: u32,
    /// Tokens a block holds (>= 1).
    pub block_size: u32,
    /// Most requests running at once (>= 1).
    pub max_num_running_reqs: u32,
    /// Token budget of a step (>= 1).
    pub max_num_scheduled_tokens: u32,
    /// Most tokens of one request in a step; 0: no limit but the budget.
    pub long_prefill_token_threshold: u32,
    /// Whether a request is admitted to the batch only if blocks for its whole prompt are free.
    pub reserve_full_prompt: bool,
    /// Blocks that stay free when a waiting request is admitted to a batch that is not empty.
    pub watermark_blocks: u32,
    /// Whether the next step is scheduled and launched while the GPU computes, before the output of
    /// the step under way is known.
    pub async_scheduling: bool,
    /// Stages of the pipeline (>= 1): GPUs that compute some of the layers each, so that as many
    /// steps are computed at a time. A request generates a token in one of them.
    pub stages: u32,
    /// Whether a full block is in the prefix cache once it is allocated, so that others of the same
    /// step find it; otherwise once it is computed.
    pub cache_on_allocation: bool,
    /// What prompts share steps with.
    pub prefill: Prefill,
    /// What becomes of the KV of a preempted request.
    pub preemption: Preemption,
    /// The memory behind the GPU's.
    pub tier: Option<KvTier>,
    /// Drafts that steps verify.
    pub speculation: Option<Speculation>,
}

impl Engine {
    /// Steps that may be under way when another is formed.
    #[inline]
    pub(crate) fn ahead(&self) -> u32 {
        self.stages - 1 + u32::from(self.async_scheduling)
    }

    /// Whether a request that decodes is part of every step and gets one token of each.
    #[inline]
    pub(crate) fn is_steady(&self) -> bool {
        self.speculation.is_none() && self.stages == 1
    }

    /// Tokens beyond those to be computed that blocks are allocated for: the drafter writes there.
    #[inline]
    pub(crate) fn lookahead(&self) -> u32 {
        self.speculation.as_ref().map_or(0, |speculation| speculation.tokens)
    }

    /// Tokens beyond the last of a request that blocks may be allocated for: the draft of its last
    /// step and what lies ahead of that and, if a step is in flight, that one's draft.
    pub(crate) fn overshoot(&self) -> u32 {
        self.lookahead() * if self.async_scheduling { 3 } else { 2 }
    }
}

/// Most tokens of a draft.
pub const LONGEST_DRAFT: usize = 16;

/// Speculative decoding: a step computes the next token of a request and a draft of those that
/// follow, of which it keeps the first that are right.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Speculation {
    /// Tokens of a draft, from 1 to `LONGEST_DRAFT`.
    pub tokens: u32,
    /// The chance that so many tokens of a draft are right, and one more: from 0 to 1, and never
    /// more for more. What is beyond `tokens` is not looked at.
    pub accepted: [f64; LONGEST_DRAFT],
    /// What drafts take longer in a step that verifies some.
    pub step: Span,
    /// And for each token that it verifies.
    pub token: Span,
}

impl Speculation {
    /// How many of `drafted` tokens are right, for a request that has generated so many. The same
    /// whenever and wherever it gets there.
    pub(crate) fn accepts(&self, drafted: u32, key: (u64, RequestId), generated: u32) -> u32 {
        let (seed, RequestId(request)) = key;
        let key = random::mix(request, generated.into());
        let chance = Dice::new(seed, Purpose::Acceptance, key).unit();
        let right = self.accepted.iter().take(drafted as usize).take_while(|&&p| chance < p);
        u32::try_from(right.count()).expect("a draft is short")
    }
}

/// What prompts share steps with.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Prefill {
    /// Steps compute chunks of prompts beside requests that decode, as vLLM does.
    #[default]
    Mixed,
    /// While there are prompts that fit, steps compute nothing else, as `SGLang` does.
    Separate,
    /// And a prompt waits for the next step rather than being cut to what is left of the budget, as
    /// vLLM did before its v1 engine. One that is longer than the whole budget is cut.
    Whole,
}

/// What becomes of the KV of a preempted request.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Preemption {
    /// It is computed again, but for what the prefix cache still has.
    #[default]
    Recompute,
    /// Its full blocks are copied to the CPU tier first; the step waits for it.
    Swap,
}

/// A CPU tier behind the KV blocks of an engine.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct KvTier {
    /// Blocks that it holds (>= 1).
    pub blocks: u32,
    /// The link from the GPU.
    pub out: LinkSpeed,
    /// The link to the GPU.
    pub back: LinkSpeed,
    /// Who waits for blocks that are copied back.
    pub reload: Reload,
    /// A block that is copied back so soon after it was copied out counts as thrashing.
    pub thrashing_window: Span,
}

/// Who waits for blocks that are copied back.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Reload {
    /// The step of the whole batch.
    #[default]
    Blocking,
    /// The request, while others run.
    Async,
}

/// Delays of the gateway.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Gateway {
    /// From arrival to the admission decision.
    pub admission_latency: Span,
    /// From admission to the routing decision.
    pub routing_latency: Span,
}

/// How fresh the gateway's view of the instances is, by group of signals.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Signals {
    /// Of queues and batches.
    pub load: Freshness,
    /// Of KV memory: utilisation, hit rate, transfers.
    pub kv: Freshness,
    /// How long KV events take to reach the gateway.
    pub event_delay: Span,
    /// For how long the gateway takes a prompt for cached where it has just sent it, until events
    /// tell; `None`: not at all.
    pub speculation: Option<Span>,
}

/// How fresh a group of signals is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Freshness {
    /// Always as of now.
    #[default]
    Immediate,
    /// Each instance is polled every `interval`, at its own phase; between polls the gateway sees
    /// the last answer.
    Periodic {
        /// Time between polls (> 0).
        interval: Span,
    },
}

impl Signals {
    /// All as of now.
    pub const IMMEDIATE: Signals = Signals {
        load: Freshness::Immediate,
        kv: Freshness::Immediate,
        event_delay: Span::ZERO,
        speculation: None,
    };

    /// All polled signals with one interval.
    pub const fn periodic(interval: Span) -> Signals {
        let freshness = Freshness::Periodic { interval };
        Signals { load: freshness, kv: freshness, ..Signals::IMMEDIATE }
    }
}

/// The decisions of a run.
pub struct Policies {
    /// Those of each replica of the gateway (>= 1); all alike, each with a memory of its own.
    pub gateways: Vec<GatewayPolicies>,
    /// What admission reads.
    pub admission_needs: Needs,
    /// What the router reads.
    pub router_needs: Needs,
    /// How important a waiting request is.
    pub priority: Box<dyn Priority>,
    /// Who is scheduled first.
    pub order: Box<dyn Order>,
    /// Who is preempted.
    pub preempt: Box<dyn Preempt>,
    /// What cached blocks are worth.
    pub evict: Box<dyn Evict>,
    /// Which blocks are copied to the CPU tier.
    pub offload: Box<dyn Offload>,
    /// What the policies of the engine read, from `priority` to `offload`.
    pub engine_needs: Needs,
}

impl Policies {
    /// Makes the policies that were `chosen`, for a cluster with so many replicas of the gateway.
    pub fn new(chosen: &Chosen, gateways: u32, cluster: &Cluster) -> Policies {
        let Chosen { admission, routing, order, priority, preempt, evict, offload } = chosen;
        let gateway = |_| GatewayPolicies {
            admission: admission.build(cluster),
            router: routing.build(cluster),
            shadow: None,
        };
        Policies {
            gateways: (0..gateways).map(gateway).collect(),
            admission_needs: admission.needs(),
            router_needs: routing.needs(),
            priority: priority.build(cluster),
            order: order.build(cluster),
            preempt: preempt.build(cluster),
            evict: evict.build(cluster),
            offload: offload.build(cluster),
            engine_needs: chosen.engine_needs(),
        }
    }

    /// The same with details: chunks and what routers considered are stated.
    #[must_use]
    pub fn detailed(mut self, chosen: &Chosen, cluster: &Cluster) -> Policies {
        for gateway in &mut self.gateways {
            gateway.shadow = Some(chosen.routing.build(cluster));
        }
        self
    }

    /// Whether details are stated.
    pub(crate) fn are_detailed(&self) -> bool {
        self.gateways[0].shadow.is_some()
    }
}

/// Which decisions oracles take instead of the policies.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Oracles {
    /// Routing: where the first token comes soonest if nobody comes later.
    pub routing: bool,
    /// The order of waiting requests: least work left first, by true output lengths.
    pub scheduler: bool,
}

/// The decisions of one replica of the gateway.
pub struct GatewayPolicies {
    /// Who enters the cluster.
    pub admission: Box<dyn Admission>,
    /// Where they go.
    pub router: Box<dyn Router>,
    /// A router like it that is asked what it would choose if nothing were stale, and decides
    /// nothing; only if details are stated.
    pub shadow: Option<Box<dyn Router>>,
}

/// Whether runs of equal steps are taken at once. The facts are the same either way.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Pace {
    /// Take runs of steps at once where nothing can change the batch.
    #[default]
    FastForward,
    /// One step at a time.
    Stepwise,
}
