//! The machine of a scenario: model, GPU and parallelism, looked up in the catalogue, and
//! what follows from them (latency model, KV blocks), together with the engine's own settings.

use crate::problem::unknown;
use crate::problems::Problems;
use crate::scenario::latency::is_config;
use crate::scenario::schema::{EngineFields, KvDtype, Preset, Scenario};
use crate::yaml::{Node, Whole};
use blis_core::math::{count, float};
use blis_latency::{Catalogue, Fit, Memory, ModelShape, Parallel, StepTime, kv_blocks};
use blis_sim::{Engine, Preemption, Prefill};
use schemars::JsonSchema;
use serde::Deserialize;
use std::sync::Arc;

/// What prompts share steps with.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum PrefillField {
    /// Requests that decode, as in vLLM.
    #[default]
    Mixed,
    /// Nothing but prompts, as in `SGLang`.
    Separate,
    /// Nothing but prompts, none of them cut to what is left of the budget, as in vLLM before v1.
    Whole,
}

/// Tokens of a block in the catalogue's block counts.
const CATALOGUE_BLOCK_SIZE: u64 = 16;
/// vLLM captures graphs up to so many tokens.
const LARGEST_GRAPH: u32 = 512;
const DEFAULT_MODEL: &str = "meta-llama/llama-3.1-8b-instruct";
/// vLLM's default.
const DEFAULT_UTILIZATION: f64 = 0.9;

/// What the catalogue and the latency fields give.
pub(super) struct Machine {
    pub(super) model: String,
    pub(super) hardware: Option<String>,
    pub(super) parallel: Option<Parallel>,
    pub(super) latency: Arc<dyn StepTime>,
    pub(super) latency_name: String,
    pub(super) latency_caveat: Option<String>,
    /// The catalogue's KV blocks of 16 tokens.
    blocks: Option<u32>,
    /// The model's shape, if it is known.
    pub(super) shape: Option<ModelShape>,
}

impl Machine {
    /// Whether vLLM takes smaller budgets on its GPU: an A100, or one with less than 70 GiB.
    fn is_small(&self) -> bool {
        let catalogue = Catalogue::shipped();
        let gpu = self.hardware.as_deref().and_then(|name| catalogue.gpu(name));
        gpu.is_some_and(|gpu| gpu.name.starts_with("A100") || gpu.usable_gib < 70.0)
    }
}

/// What a scenario says about its machine.
pub(super) struct Reader<'a> {
    pub(super) scenario: &'a Scenario,
    pub(super) tree: &'a Node,
}

/// Looks up the machine of `scenario`, which was decoded from `tree`.
pub(super) fn machine(scenario: &Scenario, tree: &Node) -> Result<Machine, Problems> {
    tree.whole(&["model", "hardware", "tp", "pp", "dp", "expert_parallel", "latency"])?;
    let reader = Reader { scenario, tree };
    let catalogue = Catalogue::shipped();
    // What is wrong with the model's file is told, not that its path is the name of no model.
    if is_config(reader.model()) {
        reader.shape(catalogue)?;
    }
    let fit = reader.fit(catalogue);
    let chosen = reader.latency(catalogue, fit.as_ref())?;
    let known = fit.as_ref().ok();
    // A profile knows the machine that it was fitted on; what the scenario says comes first.
    let hardware = scenario.hardware.clone().or(chosen.hardware);
    let tp = scenario.tp.map(Whole::get_u32).or(chosen.tp);
    let fits = |fit: &&Fit| {
        let same = hardware.as_deref().is_none_or(|gpu| fit.gpu.eq_ignore_ascii_case(gpu));
        same && tp.is_none_or(|tp| fit.tp == tp)
    };
    let known = known.filter(fits).filter(|_| reader.beyond_tp().is_none());
    let tp = known.map(|fit| fit.tp).or(tp);
    Ok(Machine {
        model: model(scenario),
        hardware: known.map(|fit| fit.gpu.clone()).or(hardware),
        parallel: tp.map(|tp| reader.parallel(tp)),
        latency: chosen.model,
        latency_name: chosen.name,
        latency_caveat: chosen.caveat,
        blocks: known.map(|fit| fit.total_kv_blocks),
        shape: reader.shape(catalogue).ok(),
    })
}

/// The model of `scenario` by its name in the catalogue, if that knows it.
pub(super) fn model(scenario: &Scenario) -> String {
    let name = scenario.model.as_deref().unwrap_or(DEFAULT_MODEL);
    Catalogue::shipped().model(name).map_or(name, |model| &model.name).to_owned()
}

impl Reader<'_> {
    pub(super) fn problem(&self, path: &str, message: impl Into<String>) -> Problems {
        self.tree.problem(path, message)
    }

    /// How the GPUs of an instance share the model, of which `tp` share every layer.
    pub(super) fn parallel(&self, tp: u32) -> Parallel {
        let Scenario { pp, dp, expert_parallel, .. } = self.scenario;
        let [pp, dp] = [pp.map_or(1, Whole::get_u32), dp.map_or(1, Whole::get_u32)];
        Parallel { tp, pp, dp, expert: expert_parallel.unwrap_or_default() }
    }

    /// The first field that shares the model otherwise than by tensor parallelism.
    pub(super) fn beyond_tp(&self) -> Option<&'static str> {
        let Parallel { pp, dp, expert, .. } = self.parallel(1);
        let given = [("pp", pp > 1), ("dp", dp > 1), ("expert_parallel", expert)];
        given.iter().find(|(_, given)| *given).map(|(name, _)| *name)
    }

    pub(super) fn model(&self) -> &str {
        self.scenario.model.as_deref().unwrap_or(DEFAULT_MODEL)
    }

    /// The catalogue's fit; the error is only a problem if the fit is needed.
    fn fit(&self, catalogue: &Catalogue) -> Result<Fit, Problems> {
        let name = self.model();
        let Some(model) = catalogue.model(name) else {
            let names: Vec<&str> = catalogue.models.iter().map(|it| it.name.as_str()).collect();
            let unknown = unknown("model", name, &names);
            let or = "or give alpha and beta coefficients and the number of KV blocks";
            return Err(self.problem("model", format!("{unknown}; {or}")));
        };
        let tp = self.scenario.tp.map(Whole::get_u32);
        let fit = catalogue.fit(model, self.scenario.hardware.as_deref(), tp);
        fit.cloned().ok_or_else(|| {
            let fits: Vec<String> = catalogue
                .fits
                .iter()
                .filter(|fit| fit.model == model.name)
                .map(|fit| format!("{} with tp {}", fit.gpu, fit.tp))
                .collect();
            let path = match (&self.scenario.hardware, tp) {
                (Some(_), _) => "hardware",
                (None, Some(_)) => "tp",
                (None, None) => "model",
            };
            let wanted = [
                self.scenario.hardware.as_ref().map(|gpu| format!(" on `{gpu}`")),
                tp.map(|tp| format!(" with tp `{tp}`")),
            ];
            let wanted: Vec<String> = wanted.into_iter().flatten().collect();
            let known = match fits.len() {
                0 => String::new(),
                _ => format!("known: {}; or ", fits.join(", ")),
            };
            let message = format!(
                "no coefficients for `{}`{}; {known}name a GPU for the latency model `roofline`, \
                 or give alpha and beta coefficients and the number of KV blocks",
                model.name,
                wanted.concat(),
            );
            self.problem(path, message)
        })
    }
}

impl EngineFields {
    /// Tokens of the largest captured graph, if that is said: vLLM's default with `vllm-0.26`.
    pub(super) fn largest_graph(&self) -> Option<u32> {
        let newest = self.preset.unwrap_or_default() == Preset::Vllm026;
        let said = self.max_cudagraph_capture_size.map(Whole::get_u32);
        said.or(newest.then_some(LARGEST_GRAPH))
    }

    /// Tokens of a block.
    pub(super) fn block_size(&self) -> u32 {
        self.block_size.map_or(16, Whole::get_u32)
    }
}

/// The engine of each instance: what `fields` say, else the preset, else the machine.
pub(super) fn engine(
    fields: &EngineFields,
    machine: &Machine,
    tree: &Node,
) -> Result<Engine, Problems> {
    tree.whole(&["strategy", "engine.total_kv_blocks", "engine.gpu_memory_utilization"])?;
    tree.whole(&["engine.block_size"])?;
    let preset = fields.preset.unwrap_or_default();
    let (tokens, running) = match preset {
        Preset::Vllm026 if machine.is_small() => (2_048, 256),
        Preset::VllmA100 => (2_048, 256),
        Preset::VllmH100 | Preset::Vllm026 => (8_192, 1_024),
        Preset::VllmB200 => (16_384, 1_024),
    };
    let newest = preset == Preset::Vllm026;
    let block_size = fields.block_size();
    let blocks = match (fields.total_kv_blocks, fields.gpu_memory_utilization, machine.blocks) {
        (Some(_), Some(_), _) => {
            let message = "`total_kv_blocks` is given as well; keep one of the two";
            return Err(tree.problem("engine.gpu_memory_utilization", message));
        }
        (Some(blocks), None, _) => blocks.get_u32(),
        // What was counted is of a cache in bf16.
        (None, None, Some(blocks)) => {
            let is_fp8 = fields.kv_cache_dtype == Some(KvDtype::Fp8);
            rescaled(if is_fp8 { 2 * blocks } else { blocks }, block_size)
        }
        (None, utilization, _) => {
            let share = utilization.map_or(DEFAULT_UTILIZATION, |share| share.get());
            let path = utilization.map_or("tp", |_| "engine.gpu_memory_utilization");
            derived(machine, share, block_size, path, tree)?
        }
    };
    let Parallel { pp, dp, .. } = machine.parallel.unwrap_or(Parallel::tensor(1));
    let tokens = fields.max_num_scheduled_tokens.map_or(tokens, Whole::get_u32);
    let running = fields.max_num_running_reqs.map_or(running, Whole::get_u32);
    let threshold = fields.long_prefill_token_threshold.map_or(0, Whole::get_u32);
    // Each rank has its own budget, so no request gets more of them than one.
    let threshold = if dp > 1 && threshold == 0 { tokens } else { threshold };
    let watermark = fields.watermark.map_or(0.0, |share| share.get());
    let watermark_blocks = count((watermark * float(blocks.into()) - 0.5).max(0.0));
    Ok(Engine {
        total_kv_blocks: blocks,
        block_size,
        max_num_running_reqs: running.saturating_mul(dp),
        max_num_scheduled_tokens: tokens.saturating_mul(dp),
        long_prefill_token_threshold: threshold,
        reserve_full_prompt: fields.reserve_full_prompt.unwrap_or(true),
        watermark_blocks: u32::try_from(watermark_blocks).expect("a share of a 32-bit number"),
        async_scheduling: fields.async_scheduling.unwrap_or(newest),
        stages: pp,
        cache_on_allocation: fields.cache_on_allocation.unwrap_or(newest),
        prefill: match fields.prefill.unwrap_or_default() {
            PrefillField::Mixed => Prefill::Mixed,
            PrefillField::Separate => Prefill::Separate,
            PrefillField::Whole => Prefill::Whole,
        },
        preemption: Preemption::default(),
        tier: None,
        speculation: None,
    })
}

/// As many blocks as fit into the machine's memory beside the model; if none, the field at `path`
/// is to be changed.
fn derived(
    machine: &Machine,
    share: f64,
    size: u32,
    path: &str,
    tree: &Node,
) -> Result<u32, Problems> {
    let catalogue = Catalogue::shipped();
    let gpu = machine.hardware.as_deref().and_then(|name| catalogue.gpu(name));
    let (Some(shape), Some(gpu)) = (&machine.shape, gpu) else {
        let message = "missing; this machine is not in the catalogue, so give the KV blocks per \
            instance";
        return Err(tree.problem("engine.total_kv_blocks", message));
    };
    let parallel = machine.parallel.unwrap_or(Parallel::tensor(1));
    let memory = Memory { usable_gib: gpu.usable_gib, utilisation: share, parallel };
    kv_blocks(shape, memory, size).map_err(|error| {
        tree.problem(path, format!("{} on {} with {parallel}: {error}", machine.model, gpu.name))
    })
}

/// As many blocks of `block_size` tokens as fit where `blocks` blocks of the catalogue's size do.
fn rescaled(blocks: u32, block_size: u32) -> u32 {
    let tokens = u64::from(blocks) * CATALOGUE_BLOCK_SIZE;
    u32::try_from((tokens / u64::from(block_size)).max(1)).unwrap_or(u32::MAX)
}
