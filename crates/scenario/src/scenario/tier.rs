//! The CPU tier of a scenario: how large it is, what is copied to it, and over which link.
//!
//! ```yaml
//! kv_tier:
//!   cpu_blocks: 44000
//!   offload: threshold[threshold=0.8]
//!   reload: async
//!   link: h200-pcie                  # or bandwidth_blocks_per_us and base_latency_us
//! ```

use crate::legal::{BaseMicros, BlocksPerMicro, TargetMillis};
use crate::problem::unknown;
use crate::problems::Problems;
use crate::scenario::machine::Machine;
use crate::scenario::schema::{PolicyFields, Preset as EnginePreset, Scenario};
use crate::yaml::{Amount, Node, Whole};
use blis_core::Span;
use blis_kv::LinkSpeed;
use blis_sim::{KvTier, Preemption, Reload};
use schemars::JsonSchema;
use serde::Deserialize;

/// `kv_tier:`.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct KvTierFields {
    /// Blocks of the tier; 0: there is none.
    pub cpu_blocks: Option<Whole<0, 2_147_483_648>>,
    /// Which blocks are copied to it.
    pub offload: Option<PolicyFields>,
    /// Who waits for blocks that are copied back.
    pub reload: Option<ReloadField>,
    /// The link's speed, by name.
    pub link: Option<String>,
    /// Blocks that the link moves in a microsecond, in each direction.
    pub bandwidth_blocks_per_us: Option<Amount<BlocksPerMicro>>,
    /// What a transfer takes beyond moving its blocks.
    pub base_latency_us: Option<Amount<BaseMicros>>,
    /// A block that comes back so soon after it was copied out counts as thrashing.
    pub thrashing_window_ms: Option<Amount<TargetMillis>>,
}

/// Who waits for blocks that are copied back.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum ReloadField {
    /// The step of the whole batch.
    #[default]
    Blocking,
    /// The request, while others run.
    Async,
}

/// What becomes of the KV of a preempted request.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum PreemptionField {
    /// It is computed again.
    #[default]
    Recompute,
    /// It is copied to the CPU tier.
    Swap,
}

/// A link between a GPU and its host, in one direction.
struct Preset {
    name: &'static str,
    /// Of one GPU; the GPUs of an instance copy their parts side by side.
    gb_per_s: f64,
    base_us: f64,
    source: &'static str,
}

/// Fits of base and slope to `data/h200/transfers.csv`, and data sheets. On a data sheet there is
/// no base latency, so these have the measured one.
const LINKS: [Preset; 6] = [
    Preset {
        name: "h200-pcie",
        gb_per_s: 53.8,
        base_us: 40.0,
        source: "measured on an H200 over PCIe 5.0 x16, one copy a transfer",
    },
    Preset {
        name: "h200-pcie-per-block",
        gb_per_s: 51.0,
        base_us: 40.0,
        source: "measured on an H200 over PCIe 5.0 x16, one copy a block",
    },
    Preset {
        name: "h200-pcie-per-layer",
        gb_per_s: 2.6,
        base_us: 0.0,
        source: "measured on an H200 over PCIe 5.0 x16, one copy a block, layer, K and V",
    },
    Preset {
        name: "h100-pcie",
        gb_per_s: 64.0,
        base_us: 40.0,
        source: "data sheet, PCIe 5.0 x16: 64 GB/s a direction",
    },
    Preset {
        name: "a100-pcie",
        gb_per_s: 32.0,
        base_us: 40.0,
        source: "data sheet, PCIe 4.0 x16: 32 GB/s a direction",
    },
    Preset {
        name: "gb200-c2c",
        gb_per_s: 450.0,
        base_us: 40.0,
        source: "data sheet, NVLink-C2C: 450 GB/s a direction",
    },
];

const DEFAULT_WINDOW_MS: f64 = 1_000.0;
const FIELDS: [&str; 6] = [
    "offload",
    "reload",
    "link",
    "bandwidth_blocks_per_us",
    "base_latency_us",
    "thrashing_window_ms",
];

/// A tier, what becomes of preempted requests, and notes for the user.
#[derive(Default)]
pub(super) struct Tier {
    pub(super) kv: Option<KvTier>,
    pub(super) preemption: Preemption,
    pub(super) notes: Vec<String>,
}

/// The offload policy that does what vLLM's connector does.
pub(crate) const CONNECTOR: &str = "vllm";

/// Whether the tier of `scenario` is run as by vLLM's connector: that is what the preset of vLLM
/// 0.26 does unless something is asked for that the connector does not offer.
pub(super) fn runs_connector(scenario: &Scenario) -> bool {
    let KvTierFields { cpu_blocks, offload, reload, .. } = &scenario.kv_tier;
    if let Some(offload) = offload {
        return offload.policy.as_deref() == Some(CONNECTOR);
    }
    let tier = cpu_blocks.is_some_and(|blocks| blocks.get_u32() > 0);
    let other = *reload == Some(ReloadField::Blocking)
        || scenario.engine.preemption == Some(PreemptionField::Swap);
    tier && scenario.engine.preset == Some(EnginePreset::Vllm026) && !other
}

/// Refuses what a connector does not offer.
fn check_connector(scenario: &Scenario, tree: &Node) -> Result<(), Problems> {
    let engine = &scenario.engine;
    let chunk = engine.long_prefill_token_threshold.map(Whole::get_u32);
    let (path, message) = if engine.preemption == Some(PreemptionField::Swap) {
        ("engine.preemption", "does not swap; give `recompute`, or another policy")
    } else if scenario.kv_tier.reload == Some(ReloadField::Blocking) {
        ("kv_tier.reload", "loads beside the steps; give `async`, or another policy")
    } else if engine.reserve_full_prompt == Some(false) {
        let message = "admits whole prompts only, or they could preempt each other for ever; \
                       give true, or another policy";
        ("engine.reserve_full_prompt", message)
    } else if chunk.is_some_and(|chunk| chunk > 0 && chunk < engine.block_size()) {
        let message = "takes chunks of at least a block of `engine.block_size` tokens, or prompts \
                       could preempt each other for ever; give that many, 0, or another policy";
        ("engine.long_prefill_token_threshold", message)
    } else {
        return Ok(());
    };
    Err(tree.problem(path, format!("the offload policy `{CONNECTOR}` {message}")))
}

/// The tier of `scenario`.
pub(super) fn tier(
    scenario: &Scenario,
    machine: &Result<Machine, Problems>,
    tree: &Node,
) -> Result<Tier, Problems> {
    tree.whole(&["strategy", "kv_tier.cpu_blocks", "engine.preemption"])?;
    let fields = &scenario.kv_tier;
    let blocks = fields.cpu_blocks.map_or(0, Whole::get_u32);
    let swap = scenario.engine.preemption == Some(PreemptionField::Swap);
    if blocks == 0 {
        // Settings of a tier that is switched off by name are those of a sweep.
        let unread = FIELDS.iter().map(|name| format!("kv_tier.{name}"));
        let mut unread = unread.filter(|_| fields.cpu_blocks.is_none());
        if let Some(path) = unread.find(|path| tree.has(path)) {
            let message = "there is no CPU tier; set `cpu_blocks` (or \
                           `--kv-cpu-blocks`), or remove it";
            return Err(tree.problem(path, message));
        }
        if swap {
            let message = "there is no CPU tier to swap to; set `kv_tier.cpu_blocks` (or \
                           `--kv-cpu-blocks`), or `recompute`";
            return Err(tree.problem("engine.preemption", message));
        }
        return Ok(Tier::default());
    }
    let block_size = scenario.engine.block_size();
    let (speed, notes) = Reader { fields, machine, tree, block_size }.speed()?;
    let window = fields.thrashing_window_ms.map_or(DEFAULT_WINDOW_MS, |ms| ms.get());
    let preemption = if swap { Preemption::Swap } else { Preemption::Recompute };
    let connector = runs_connector(scenario);
    if connector {
        check_connector(scenario, tree)?;
    }
    let tier = KvTier {
        blocks,
        out: speed,
        back: speed,
        reload: match fields.reload.unwrap_or_default() {
            ReloadField::Blocking if !connector => Reload::Blocking,
            _ => Reload::Async,
        },
        thrashing_window: Span::from_micros_f64(window * 1e3),
    };
    Ok(Tier { kv: Some(tier), preemption, notes })
}

struct Reader<'a> {
    fields: &'a KvTierFields,
    machine: &'a Result<Machine, Problems>,
    tree: &'a Node,
    block_size: u32,
}

impl Reader<'_> {
    /// The speed of the link: the named or the machine's, with what is written out replaced.
    fn speed(&self) -> Result<(LinkSpeed, Vec<String>), Problems> {
        let preset = self.preset()?;
        let machine = self.machine()?;
        let usual = preset.and_then(|preset| self.blocks_per_us(machine, preset));
        let given = self.fields.bandwidth_blocks_per_us.map(|speed| speed.get());
        let Some(blocks_per_us) = given.or(usual) else {
            let message = "missing; the model is not in the catalogue, so its block size is \
                unknown: give the link's bandwidth in blocks per microsecond";
            return Err(self.tree.problem("kv_tier.bandwidth_blocks_per_us", message));
        };
        let base_us = self.fields.base_latency_us.map(|base| base.get());
        let base_us = base_us.or(preset.map(|preset| preset.base_us)).unwrap_or(0.0);
        let mut notes = Vec::new();
        if let (Some(given), Some(usual), Some(preset)) = (given, usual, preset)
            && given > 1.05 * usual
        {
            notes.push(format!(
                "a transfer bandwidth of {given} blocks/us is {:.0} times that of `{}` ({usual:.3} \
                 blocks/us of {} tokens: {}); see `kv_tier.link`",
                given / usual,
                preset.name,
                self.block_size,
                preset.source,
            ));
        }
        let base = Span::from_micros_f64(base_us);
        Ok((LinkSpeed { base, blocks_per_us }, notes))
    }

    /// The link that is named, or the one that the machine has.
    fn preset(&self) -> Result<Option<&'static Preset>, Problems> {
        let Some(name) = &self.fields.link else {
            self.tree.whole(&["kv_tier.link"])?;
            let gpu = self.machine()?.hardware.as_deref().unwrap_or_default().to_uppercase();
            let usual = if gpu.starts_with("A100") { "a100-pcie" } else { "h200-pcie" };
            return Ok(LINKS.iter().find(|link| link.name == usual));
        };
        LINKS.iter().find(|link| link.name == name).map(Some).ok_or_else(|| {
            let known = LINKS.map(|link| link.name);
            let unknown = unknown("link", name, &known);
            let message = format!("{unknown}; or give `bandwidth_blocks_per_us`");
            self.tree.problem("kv_tier.link", message)
        })
    }

    fn machine(&self) -> Result<&Machine, Problems> {
        self.machine.as_ref().map_err(|_| Problems::KNOWN)
    }

    /// Blocks of the model that the links of all GPUs of an instance move in a microsecond.
    fn blocks_per_us(&self, machine: &Machine, preset: &Preset) -> Option<f64> {
        let shape = machine.shape.as_ref()?;
        let block_bytes = shape.kv_bytes_per_token() * f64::from(self.block_size);
        let gpus = f64::from(machine.parallel.map_or(1, |parallel| parallel.gpus()));
        Some(gpus * preset.gb_per_s * 1e3 / block_bytes)
    }
}

/// The names of all links and where their speeds come from, for reference pages.
pub fn links() -> impl Iterator<Item = (&'static str, f64, f64, &'static str)> {
    LINKS.iter().map(|link| (link.name, link.gb_per_s, link.base_us, link.source))
}
