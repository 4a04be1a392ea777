//! Replays of measured runs: the same arrivals through the simulator, request by request.

use crate::measured::{Fared, Measured};
use blis_core::Time;
use blis_latency::StepTime;
use blis_metrics::{Fact, Listener, Status};
use blis_scenario::Trial;
use blis_scenario::problem::Problem;
use blis_scenario::run::{RunFailure, run_scenario};
use blis_scenario::scenario::{Draft, Plan};
use blis_sim::Unobserved;
use std::sync::Arc;

/// The settings of the server that was measured. What is not said is what `engines.csv` beside the
/// run or its log says, and else that of `data/h200/README.md`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Server {
    /// Tokens of a KV block.
    pub block_size: u32,
    /// KV blocks.
    pub total_kv_blocks: Option<u32>,
    /// Most requests running at once.
    pub max_num_running_reqs: Option<u32>,
    /// Token budget of a step.
    pub max_num_scheduled_tokens: Option<u32>,
    /// Tokens of the largest captured graph.
    pub max_cudagraph_capture_size: Option<u32>,
    /// Whether a request is scheduled only if blocks for its whole prompt are free; vLLM does so.
    pub reserve_full_prompt: Option<bool>,
}

impl Default for Server {
    fn default() -> Server {
        Server {
            block_size: 16,
            total_kv_blocks: None,
            max_num_running_reqs: None,
            max_num_scheduled_tokens: None,
            max_cudagraph_capture_size: None,
            reserve_full_prompt: None,
        }
    }
}

impl Server {
    /// The largest graph that the engine of `measured` captured, if that is known.
    pub(crate) fn largest_graph(&self, measured: &Measured) -> Option<u32> {
        let known = measured.engine.as_ref().map(|engine| engine.max_cudagraph_capture_size);
        self.max_cudagraph_capture_size.or(known)
    }
}

/// Most requests running at once in the server of `data/h200/README.md`.
const USUAL_REQUESTS: u32 = 256;

/// Its token budget.
const USUAL_TOKENS: u32 = 2048;

/// The plan of a run of the arrivals of `measured` on one instance of `server`. Its latency model
/// is a stand-in.
///
/// # Errors
/// If the requests are not known, or cannot be replayed.
pub fn plan(measured: &Measured, server: &Server) -> Result<Plan, RunFailure> {
    let Some(path) = &measured.requests_path else {
        let message = "the run's requests are not known, so they cannot be replayed; put \
                       `NAME.requests.csv` beside `NAME.steps.csv`";
        return Err(Problem::of_file(&measured.name, message).into());
    };
    let blocks = server.total_kv_blocks.unwrap_or_else(|| measured.usable_blocks());
    let engine = measured.engine.as_ref();
    let requests = engine.map_or(USUAL_REQUESTS, |engine| engine.max_num_running_reqs);
    let tokens = engine.map_or(USUAL_TOKENS, |engine| engine.max_num_scheduled_tokens);
    let reserve = server.reserve_full_prompt.unwrap_or_else(|| measured.has_host());
    let mut draft = Draft::default();
    let mut set = |path: &str, value: String| draft.set("validate", path, &value);
    set("latency.model", "constant".to_owned());
    set("engine.total_kv_blocks", blocks.to_string());
    set("engine.block_size", server.block_size.to_string());
    let requests = server.max_num_running_reqs.unwrap_or(requests);
    set("engine.max_num_running_reqs", requests.to_string());
    let tokens = server.max_num_scheduled_tokens.unwrap_or(tokens);
    set("engine.max_num_scheduled_tokens", tokens.to_string());
    set("engine.reserve_full_prompt", reserve.to_string());
    set("engine.async_scheduling", measured.is_asynchronous().to_string());
    // The one that logs what the host does is vLLM.
    set("engine.cache_on_allocation", measured.has_host().to_string());
    if measured.by_priority {
        set("scheduler", "priority-fcfs".to_owned());
        set("priority", "slo-class".to_owned());
        set("preempt", "lowest-priority".to_owned());
    }
    if let Some(blocks) = engine.map(|engine| engine.cpu_blocks).filter(|&blocks| blocks > 0) {
        set("kv_tier.cpu_blocks", blocks.to_string());
        set("kv_tier.offload", "vllm".to_owned());
    }
    set("workload.trace", path.display().to_string());
    set("workload.trace_format", "h200".to_owned());
    draft.plan()
}

/// Serves the requests of `plan` with steps that take as long as `latency` says. Requests are in
/// the order of their numbers.
///
/// # Errors
/// If the trace can no longer be read, or a request cannot be served.
pub fn replay(plan: &Plan, latency: Arc<dyn StepTime>) -> Result<Vec<Fared>, RunFailure> {
    let mut plan = plan.clone();
    plan.latency = latency;
    let trial = Trial::new(plan.seed);
    let mut ledger = Ledger::default();
    run_scenario(&plan, trial, &mut [&mut ledger], None, &mut Unobserved)?;
    if let Some(id) = ledger.unserved {
        let message = format!("request `{id}` can never be served with this many KV blocks");
        return Err(Problem::of_file("validate", message).into());
    }
    ledger.fared.sort_by_key(|request| request.id);
    Ok(ledger.fared)
}

/// Writes down how every request fared.
#[derive(Default)]
struct Ledger {
    fared: Vec<Fared>,
    unserved: Option<u64>,
}

impl Listener for Ledger {
    fn hear(&mut self, _: Time, fact: &Fact<'_>) {
        let Fact::Closed { status, record } = fact else { return };
        let id = record.name.and_then(|name| name.parse().ok()).unwrap_or(record.request.0);
        let (Status::Finished, Some(ttft), Some(e2e)) = (status, record.ttft, record.e2e) else {
            self.unserved = Some(id);
            return;
        };
        self.fared.push(Fared {
            id,
            ttft_us: ttft.as_micros_f64(),
            e2e_us: e2e.as_micros_f64(),
            output_tokens: record.output_tokens,
            cached_tokens: record.cached_tokens.unwrap_or(0),
            preemptions: record.preemptions,
        });
    }
}
