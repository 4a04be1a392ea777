//! The numbers of a run, as plain values: what [`crate::Summary`] makes and reports print.
//!
//! A field's name is its key in JSON unless it says otherwise, and fields are in the order of JSON;
//! the objects of a whole run are put together in `scenario`. A key that is missing in older JSON
//! leaves the default. A number without a sample is `None`, never 0 and never NaN.

pub mod by_class;
mod latency;
mod over_time;
pub use over_time::OverTime;

use blis_core::math::float;
use blis_core::{InstanceId, SloClass, TenantId};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Everything that is reported of a run.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Report {
    /// All requests.
    pub cluster: Section,
    /// By service class, most important first; only classes that sent a request.
    pub classes: Vec<(SloClass, Section)>,
    /// By tenant, by id; only tenants that sent a request. Of inter-token latency a tenant has
    /// only the mean, pooled over its finished requests.
    pub tenants: Vec<(TenantId, Section)>,
    /// By instance, all of them, by id.
    pub instances: Vec<InstanceSection>,
    /// By pool, in the order of the configuration; empty if there is only one.
    pub pools: Vec<PoolSection>,
    /// What the engines' time went to, mean over instances; absent if the host took none of it.
    pub engine_time: Option<EngineTime>,
    /// The prefix cache.
    pub kv: KvSection,
    /// Where requests went.
    pub routing: RoutingSection,
    /// Where the time to first token went.
    pub decomposition: Decomposition,
    /// Jain's index over tenants of finished / arrived requests: 1 is fair, 1/n is worst.
    pub jain_fairness: Option<f64>,
    /// Whether the cluster kept up with its arrivals; absent if nothing arrived.
    pub saturation: Option<Saturation>,
    /// When an overloaded cluster last had fewer requests waiting than it has instances, in s;
    /// absent if it kept up.
    pub overloaded_from_s: Option<f64>,
    /// Time average of the number of requests between arrival and close: (sum of their times in the
    /// system) / duration. A request closes when its last step ends, so this is the arrival rate
    /// times (mean E2E less output processing), exactly.
    pub mean_in_system: Option<f64>,
    /// Requests that arrived per second, from the first arrival to the last.
    pub offered_per_sec: Option<f64>,
    /// The run's duration in seconds.
    pub duration_s: f64,
    /// How often each mechanism of the policies acted, by `policy.mechanism`; those who run the
    /// world tell.
    pub mechanisms: BTreeMap<String, u64>,
    /// Whether the run came to a steady state, and what it did then.
    pub steady: Steady,
    /// The distributions of latencies, if they were asked for.
    pub curves: Option<Distributions>,
    /// Whether there were more requests than 500,000: percentiles of their latencies are then
    /// within 0.1 % of the exact ones, and what is judged by the course of the run goes by a part
    /// of them.
    pub large: bool,
}

/// Whether a run came to a steady state, and what it did then. The whole run is judged, even if the
/// other numbers leave out the warm-up.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Steady {
    /// When it had warmed up, in s (MSER-5 of the times to first token); absent if it never did.
    pub warmup_s: Option<f64>,
    /// By how much more requests were inside in the second half of what follows the warm-up than
    /// in the first, over their mean number.
    pub drift: Option<f64>,
    /// The standard error of that.
    pub drift_error: Option<f64>,
    /// Correlation of the numbers inside in neighbouring twentieths; near 1 in a run too short.
    pub batch_correlation: Option<f64>,
    /// Requests that finished in the second half of the arrival period, per second of it.
    pub responses_per_sec: Option<f64>,
    /// Output tokens of these requests, per second.
    pub tokens_per_sec: Option<f64>,
}

impl Steady {
    /// Runs of one scenario are long enough if the numbers of requests inside in neighbouring
    /// twentieths of them correlate by less than this.
    const MOST_CORRELATION: f64 = 0.6;

    /// Whether `runs` of one scenario were too short for their numbers to be steady, judged
    /// together: the numbers inside in neighbouring twentieths correlate too much, or
    /// move by more than 2 % from the first half to the second, surely. The number inside tells
    /// because it remembers: latencies of single requests vary so much that those of a short run
    /// seem steady.
    pub fn are_too_short<'a>(runs: impl IntoIterator<Item = &'a Steady>) -> bool {
        let (mut n, mut drift, mut squares, mut correlation) = (0.0, 0.0, 0.0, 0.0);
        for run in runs {
            let (Some(moved), Some(error), Some(found)) =
                (run.drift, run.drift_error, run.batch_correlation)
            else {
                return true;
            };
            n += 1.0;
            drift += moved;
            squares += error * error;
            correlation += found;
        }
        let sure = 3.0 * squares.sqrt();
        n > 0.0 && (correlation > Steady::MOST_CORRELATION * n || drift.abs() > sure.max(0.02 * n))
    }

    /// Whether this run alone was too short.
    pub fn is_too_short(&self) -> bool {
        Steady::are_too_short([self])
    }
}

/// The distributions of latencies, for those who draw them.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Distributions {
    /// All requests.
    #[serde(flatten)]
    pub cluster: Curves,
    /// By service class, most important first; only if several classes sent a request, because
    /// the curves of a single one are those of the cluster.
    #[serde(with = "by_class", skip_serializing_if = "Vec::is_empty")]
    pub classes: Vec<(SloClass, Curves)>,
    /// The course of the run; absent if nothing arrived.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub over_time: Option<OverTime>,
}

/// The distributions of a group of requests: the 0th, 1st, ..., 100th percentile in ms, each
/// rounded to six digits, which is finer than any drawing. Empty without a sample.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Curves {
    /// Time to first token.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub ttft_ms: Vec<f64>,
    /// Inter-token latency.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub itl_ms: Vec<f64>,
    /// Arrival to last token.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub e2e_ms: Vec<f64>,
}

/// The numbers of a group of requests.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Section {
    /// Requests that arrived.
    #[serde(rename = "injected_requests")]
    pub offered: u64,
    /// Requests all of whose tokens left the server.
    #[serde(rename = "completed_requests")]
    pub completed: u64,
    /// Requests refused by admission.
    #[serde(rename = "rejected_requests")]
    pub rejected: u64,
    /// Requests that could never fit.
    #[serde(rename = "unservable_requests")]
    pub unservable: u64,
    /// Requests whose clients gave up before the first token; no key if there are none.
    #[serde(rename = "abandoned_requests", skip_serializing_if = "is_zero")]
    pub abandoned: u64,
    /// Requests at the gateway, or on their way, when the run ended.
    pub in_transit: u64,
    /// Requests waiting when the run ended.
    pub still_queued: u64,
    /// Requests running when the run ended.
    pub still_running: u64,
    /// Preemptions of these requests.
    #[serde(rename = "preemption_count")]
    pub preemptions: u64,
    /// Prompt tokens of the requests that joined an instance's queue.
    pub total_input_tokens: u64,
    /// Generated tokens, first tokens and those of unfinished requests included, each once.
    pub total_output_tokens: u64,
    /// `completed` per second of the run.
    pub responses_per_sec: Option<f64>,
    /// `total_output_tokens` per second of the run.
    pub tokens_per_sec: Option<f64>,
    /// Requests that attained their objectives, per second of the run; absent if none had any.
    pub goodput_per_sec: Option<f64>,
    /// Share of `offered` that finished within every target of its class and its own deadline;
    /// absent if none had any.
    pub slo_attainment: Option<f64>,
    /// Time to first token, over the requests that have one.
    #[serde(flatten, with = "latency::ttft")]
    pub ttft: Latency,
    /// Inter-token latency, over all generated tokens but the first ones.
    #[serde(flatten, with = "latency::itl")]
    pub itl: Latency,
    /// Arrival to last token, over finished requests.
    #[serde(flatten, with = "latency::e2e")]
    pub e2e: Latency,
    /// Arrival to first joining a running batch, over the requests that did.
    #[serde(flatten, with = "latency::scheduling_delay")]
    pub scheduling_delay: Latency,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes references")]
fn is_zero(count: &u64) -> bool {
    *count == 0
}

impl Section {
    /// Requests that were let in.
    pub fn admitted(&self) -> u64 {
        self.offered - self.rejected - self.unservable
    }

    /// The share of the requests that admission refused.
    pub fn refused_share(&self) -> Option<f64> {
        (self.offered > 0).then(|| float(self.rejected) / float(self.offered))
    }
}

/// Statistics of a latency in ms. Percentiles interpolate linearly between order statistics.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Latency {
    /// How many samples the percentiles are of.
    pub samples: u64,
    /// Mean.
    pub mean_ms: Option<f64>,
    /// Median.
    pub p50_ms: Option<f64>,
    /// 90th percentile.
    pub p90_ms: Option<f64>,
    /// 95th percentile.
    pub p95_ms: Option<f64>,
    /// 99th percentile.
    pub p99_ms: Option<f64>,
    /// Maximum.
    pub max_ms: Option<f64>,
}

/// The numbers of one instance.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct InstanceSection {
    /// Which.
    #[serde(rename = "instance_id", with = "instance_id")]
    pub instance: InstanceId,
    /// The requests routed to it; refused ones went nowhere and are not here.
    #[serde(flatten)]
    pub requests: Section,
    /// Engine steps.
    pub steps: u64,
    /// Share of the run in which a step was under way, on the GPU or on the host.
    pub utilization: Option<f64>,
    /// What that time went to; absent if the host took none of it.
    #[serde(flatten)]
    pub engine_time: Option<EngineTime>,
    /// Requests running, mean over steps.
    pub mean_batch: Option<f64>,
    /// Tokens computed in a step, mean over steps.
    pub mean_step_tokens: Option<f64>,
    /// Requests waiting, mean over time.
    pub mean_queue_depth: Option<f64>,
    /// Most blocks held by running requests at the end of a step.
    pub peak_blocks_in_use: u32,
    /// Cached blocks dropped to make room.
    pub evicted_blocks: u64,
    /// Its CPU tier.
    #[serde(flatten)]
    pub tier: TierSection,
}

/// The numbers of a pool: instances that are alike.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct PoolSection {
    /// Its name.
    #[serde(rename = "pool")]
    pub name: String,
    /// How many instances it has.
    pub instances: usize,
    /// The requests routed to them; refused ones went nowhere and are not here.
    #[serde(flatten)]
    pub requests: Section,
    /// Engine steps.
    pub steps: u64,
    /// Share of the run in which a step was under way, mean over its instances.
    pub utilization: Option<f64>,
}

/// An instance is called `instance_3` in JSON.
mod instance_id {
    use blis_core::InstanceId;
    use serde::{Deserialize, Deserializer, Serializer, de::Error};

    const PREFIX: &str = "instance_";

    #[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes references")]
    pub(super) fn serialize<S: Serializer>(id: &InstanceId, to: S) -> Result<S::Ok, S::Error> {
        to.collect_str(&format_args!("{PREFIX}{}", id.0))
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<InstanceId, D::Error> {
        let name = String::deserialize(from)?;
        let number = name.strip_prefix(PREFIX).and_then(|number| number.parse().ok());
        number.map(InstanceId).ok_or_else(|| Error::custom(format!("`{name}` is no instance")))
    }
}

/// What the time of an engine went to, as shares of the run. What neither has is idle, or waits for
/// copies between memories.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct EngineTime {
    /// The GPU computed.
    pub gpu_bound: f64,
    /// There was work, and the GPU waited for the host: to schedule, to launch, to process outputs.
    pub host_bound: f64,
}

impl EngineTime {
    /// The mean over instances; one without work has no time. Absent if all are.
    pub(crate) fn mean(instances: &[InstanceSection]) -> Option<EngineTime> {
        let known: Vec<EngineTime> = instances.iter().filter_map(|one| one.engine_time).collect();
        let mean = |part: fn(&EngineTime) -> f64| {
            known.iter().map(part).sum::<f64>() / float(instances.len() as u64)
        };
        let time = EngineTime {
            gpu_bound: mean(|time| time.gpu_bound),
            host_bound: mean(|time| time.host_bound),
        };
        (!known.is_empty()).then_some(time)
    }
}

/// The numbers of the CPU tier of an instance, or of all of them.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct TierSection {
    /// Blocks copied to the tier.
    pub offloaded_blocks: u64,
    /// Blocks dropped before their copy to the tier was done.
    pub abandoned_blocks: u64,
    /// Blocks copied back.
    pub reloaded_blocks: u64,
    /// Share of the blocks copied out that were copied back within the thrashing window.
    pub thrashing_rate: Option<f64>,
    /// How long steps waited for copies.
    pub transfer_stall_ms: f64,
    /// Share of the time of all steps in which they waited for copies.
    pub transfer_stall_share: Option<f64>,
    /// Most blocks that the tier of an instance held.
    pub peak_cpu_blocks: u32,
}

/// The numbers of the prefix cache.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct KvSection {
    /// Prompt tokens found cached / prompt tokens, over requests when they were first scheduled.
    pub hit_rate: Option<f64>,
    /// Promised hits that were not there: sum of max(0, expected - cached) / sum of expected,
    /// over scheduled requests whose router had an expectation.
    pub phantom_hit_rate: Option<f64>,
    /// Hits that the router did not know of: sum of max(0, cached - expected) / sum of cached,
    /// over the same requests.
    pub missed_hit_rate: Option<f64>,
    /// Prompt tokens found cached.
    pub cached_tokens: u64,
    /// Prompt tokens of the requests that were scheduled.
    pub prompt_tokens: u64,
    /// Cached blocks dropped to make room.
    pub evicted_blocks: u64,
    /// Computed tokens whose KV was lost to preemption.
    pub lost_tokens: u64,
    /// The CPU tiers of all instances.
    #[serde(flatten)]
    pub tier: TierSection,
}

/// Where requests went.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct RoutingSection {
    /// Requests routed to each instance.
    pub sent: Vec<u64>,
    /// Most sent to one instance / mean over instances: 1 is even, n is all to one.
    pub max_over_mean: Option<f64>,
    /// Jain's index of `sent`.
    pub jain_balance: Option<f64>,
}

/// Where the time to first token went, over requests that have a first token.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Decomposition {
    /// All requests.
    #[serde(flatten)]
    pub cluster: Option<SplitStats>,
    /// By service class, most important first; only classes with a first token.
    #[serde(with = "by_class", skip_serializing_if = "Vec::is_empty")]
    pub classes: Vec<(SloClass, SplitStats)>,
}

/// The split of the time to first token.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct SplitStats {
    /// Mean of each part; adds up to the mean TTFT (to the last bits of a float).
    #[serde(rename = "mean_ms")]
    pub mean: SplitMs,
    /// The split of the request at the 99th percentile of TTFT, between the two nearest ranks in
    /// the same proportion as the percentile itself; adds up to it (to the last bits of a float).
    #[serde(rename = "p99_ms")]
    pub p99: SplitMs,
}

/// The parts of the time to first token, in ms, in the order of a request's life.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct SplitMs {
    /// Arrival to joining the instance's queue.
    pub gateway: f64,
    /// Waiting in the queue.
    pub queue: f64,
    /// Waiting for KV blocks to be copied back.
    pub reload: f64,
    /// Running, from the scheduling that led to the first token on.
    pub prefill: f64,
    /// Running before a preemption that came before the first token.
    pub recompute: f64,
    /// Output processing of the first token.
    pub output: f64,
}

/// Whether the cluster kept up with its arrivals.
///
/// Two numbers are looked at where requests arrive, in the second half of the arrival period: those
/// that wait (at the gateway, on the way, in a queue, loading from the CPU tier: not yet scheduled,
/// nor turned away) and those inside, waiting or running. A straight line is fitted to each;
/// `growth` is its rise over that window, `m` the arrivals in it. A queue that just keeps up can
/// wander by chance about as far as a random walk, so growth is *significant* beyond
/// 2 sqrt(m (c2 + 1)), with c2 the squared coefficient of variation of the gaps between arrivals
/// (1 stands in for that of service, which facts do not show). Too few arrivals in the window to
/// tell (under 30, or all at one instant): no verdict, unless more than half of all requests were
/// still waiting at the last arrival, which is overload. Nothing was ever scheduled: no verdict.
///
/// In an overload batches grow until their places or their memory are used up, and only then does
/// the queue. A run that begins empty fills up as well, so growing batches alone do not tell
/// overload from a run that is too short: 30,000 requests can take two minutes to do either.
///
/// Clients that think, or wait to try again after having been turned away, are not at the
/// cluster; how many were turned away is reported beside the verdict.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Saturation {
    /// Neither number grows significantly, and requests wait a small part of the run.
    Stable,
    /// The requests inside grow significantly, by more than 5 % of the arrivals, or the queue does
    /// by less, or requests wait on average more than 5 % of the window: near the limit, a burst
    /// not yet worked off, or a run too short to tell.
    Growing,
    /// The queue grows significantly, by more than 5 % of the arrivals: latencies measure how long
    /// the run was, not how good the cluster is.
    Overloaded,
}

impl Saturation {
    /// The spelling in reports.
    pub const fn name(self) -> &'static str {
        match self {
            Saturation::Stable => "stable",
            Saturation::Growing => "growing",
            Saturation::Overloaded => "overloaded",
        }
    }
}

impl SplitMs {
    /// The parts with their names, in the order of a request's life.
    pub fn parts(&self) -> [(&'static str, f64); 6] {
        let SplitMs { gateway, queue, reload, prefill, recompute, output } = *self;
        [
            ("gateway", gateway),
            ("queue", queue),
            ("reload", reload),
            ("prefill", prefill),
            ("recompute", recompute),
            ("output", output),
        ]
    }

    /// The sum of the parts, in ms.
    pub fn total(&self) -> f64 {
        self.parts().iter().map(|&(_, ms)| ms).sum()
    }
}
