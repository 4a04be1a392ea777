//! The catalogue: models, GPUs and fitted coefficients, as data in `catalogue.json`.
//!
//! The lab looks up a scenario's model, GPU and tensor parallelism here. Each entry names its
//! source.

pub mod hf;

use crate::coefficients::Coefficients;
use crate::model::ModelShape;
use crate::roofline::{Efficiency, GpuSheet};
use hf::HfConfig;
use serde::Deserialize;
use std::sync::LazyLock;

/// The catalogue that ships with BLIS.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Catalogue {
    /// Models.
    pub models: Vec<Model>,
    /// GPUs.
    pub gpus: Vec<Gpu>,
    /// How much of their data sheets GPU families reach.
    pub families: Vec<Family>,
    /// Fitted coefficients by model, GPU and tensor parallelism.
    pub fits: Vec<Fit>,
}

/// A model.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Model {
    /// Name on the Hugging Face hub, lower case.
    pub name: String,
    /// Shorter spellings.
    pub aliases: Vec<String>,
    /// Where the figures come from.
    pub source: String,
    /// What its `config.json` says.
    config: HfConfig,
}

/// The data sheet of a GPU.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Gpu {
    /// Name, e.g. `H100`.
    pub name: String,
    /// Its family, e.g. `ampere`.
    pub family: String,
    /// The family whose efficiencies it is given; not its own if those were not measured.
    pub efficiency_of: String,
    /// Memory on the data sheet in GiB.
    pub memory_gib: f64,
    /// Memory that a program can allocate in GiB.
    pub usable_gib: f64,
    /// Dense bf16 peak in TFLOP/s.
    pub bf16_tflops: f64,
    /// Memory bandwidth in TB/s.
    pub bandwidth_tb_s: f64,
    /// Bandwidth to the other GPUs in GB/s, both directions together.
    pub link_gb_s: f64,
    /// Products in bf16 and in FP8 that it computes for seconds on end, in TFLOP/s, where that was
    /// measured (Hopper) or fitted (Blackwell, `operators/served.rs`): at its power limit a GPU is
    /// slower than in tables of single operators. Those in FP4 are twice those in FP8.
    #[serde(default)]
    pub sustained_tflops: Option<[f64; 2]>,
    /// What an hour of it costs to rent, where a price is known.
    #[serde(default)]
    pub dollars_per_hour: Option<f64>,
    /// Where the price comes from.
    #[serde(default)]
    pub price_source: Option<String>,
    /// Where the figures come from.
    pub source: String,
}

/// How much of their data sheets the GPUs of a family reach; see `Efficiency`.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Family {
    /// Name, e.g. `hopper`.
    pub name: String,
    /// Share of the memory bandwidth.
    pub memory: f64,
    /// Share of the peak that dense layers reach.
    pub compute: f64,
    /// Share of the peak that prefill attention reaches.
    pub attention: f64,
    /// Microseconds that each layer takes beyond reading its weights.
    pub layer_us: f64,
    /// Microseconds for each sequence.
    pub sequence_us: f64,
    /// KV heads that must be read at the same time to use the whole bandwidth.
    pub heads_to_saturate: f64,
    /// Microseconds that an all-reduce takes beyond moving its bytes.
    pub all_reduce_us: f64,
    /// Where the figures come from.
    pub source: String,
}

/// Fitted coefficients of a model on a GPU.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Fit {
    /// Name of the model.
    pub model: String,
    /// Name of the GPU.
    pub gpu: String,
    /// Tensor parallelism.
    pub tp: u32,
    /// Whether this is the fit to take when GPU and TP are not given.
    pub default: bool,
    /// Ingress fixed, ingress per prompt token, output processing per token, in microseconds.
    pub alpha_us: [f64; 3],
    /// Step fixed, per prefill token, per decode token, in microseconds.
    pub beta_us: [f64; 3],
    /// KV blocks of 16 tokens.
    pub total_kv_blocks: u32,
    /// Where the figures come from.
    pub source: String,
}

impl Catalogue {
    /// The catalogue that ships with BLIS.
    ///
    /// # Panics
    /// If `catalogue.json` is malformed; a test reads it.
    pub fn shipped() -> &'static Catalogue {
        static READ: LazyLock<Catalogue> = LazyLock::new(|| {
            let text = include_str!("../catalogue.json");
            serde_json::from_str(text).expect("catalogue.json is tested")
        });
        &READ
    }

    /// The model of that name or alias, in any case.
    pub fn model(&self, name: &str) -> Option<&Model> {
        let name = name.to_lowercase();
        self.models.iter().find(|model| model.name == name || model.aliases.contains(&name))
    }

    /// The GPU of that name, in any case.
    pub fn gpu(&self, name: &str) -> Option<&Gpu> {
        self.gpus.iter().find(|gpu| gpu.name.eq_ignore_ascii_case(name))
    }

    /// The efficiencies that a GPU is given.
    pub fn efficiency(&self, gpu: &Gpu) -> Option<Efficiency> {
        let given = |family: &&Family| family.name == gpu.efficiency_of;
        self.families.iter().find(given).map(Family::efficiency)
    }

    /// The fit of `model` that agrees with `gpu` and `tp` where they are given; the model's default
    /// fit first.
    pub fn fit(&self, model: &Model, gpu: Option<&str>, tp: Option<u32>) -> Option<&Fit> {
        let agrees = |fit: &&Fit| {
            fit.model == model.name
                && gpu.is_none_or(|gpu| fit.gpu.eq_ignore_ascii_case(gpu))
                && tp.is_none_or(|tp| fit.tp == tp)
        };
        let mut fits = self.fits.iter().filter(agrees);
        self.fits.iter().filter(agrees).find(|fit| fit.default).or_else(|| fits.next())
    }
}

impl Model {
    /// Its shape.
    ///
    /// # Panics
    /// If a shipped configuration is illegal; a test reads them all.
    pub fn shape(&self) -> ModelShape {
        self.config.shape().expect("shipped configurations are tested")
    }
}

impl Gpu {
    /// What whoever uses its efficiencies must know; `None` if they are those of its own family.
    pub fn caveat(&self) -> Option<String> {
        let Gpu { name, family, efficiency_of, .. } = self;
        (family != efficiency_of).then(|| {
            format!(
                "how much of its data sheet {name} reaches ({family}) is not measured: borrowed from \
                 {efficiency_of}"
            )
        })
    }

    /// What its data sheet promises.
    pub fn sheet(&self) -> GpuSheet {
        GpuSheet {
            bf16_tflops: self.bf16_tflops,
            bandwidth_tb_s: self.bandwidth_tb_s,
            link_gb_s: self.link_gb_s,
            fp8: self.family != "ampere",
            fp4: self.family == "blackwell",
        }
    }
}

impl Family {
    /// Its efficiencies.
    pub fn efficiency(&self) -> Efficiency {
        Efficiency {
            memory: self.memory,
            compute: self.compute,
            attention: self.attention,
            layer_us: self.layer_us,
            sequence_us: self.sequence_us,
            heads_to_saturate: self.heads_to_saturate,
            all_reduce_us: self.all_reduce_us,
        }
    }
}

impl Fit {
    /// The latency model of this fit.
    ///
    /// # Panics
    /// If a shipped coefficient is illegal; a test makes them all.
    pub fn coefficients(&self) -> Coefficients {
        Coefficients::new(self.alpha_us, self.beta_us).expect("shipped coefficients are tested")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::roofline::Roofline;

    #[test]
    fn every_fit_names_a_known_model_and_gpu_and_is_legal() {
        let catalogue = Catalogue::shipped();
        assert!(!catalogue.fits.is_empty());
        for fit in &catalogue.fits {
            assert!(catalogue.model(&fit.model).is_some(), "{}", fit.model);
            assert!(catalogue.gpus.iter().any(|gpu| gpu.name == fit.gpu), "{}", fit.gpu);
            fit.coefficients();
        }
    }

    #[test]
    fn the_preset_of_the_strategy_experiments_is_the_default() {
        let catalogue = Catalogue::shipped();
        let model = catalogue.model("Llama-3.1-8B").expect("an alias in any case");
        let fit = catalogue.fit(model, None, None).expect("a default");
        assert_eq!((fit.gpu.as_str(), fit.tp, fit.total_kv_blocks), ("H100", 2, 132_139));
        let other = catalogue.fit(model, Some("a100-80"), None).expect("in any case");
        assert_eq!((other.gpu.as_str(), other.tp), ("A100-80", 2));
        assert!(catalogue.fit(model, Some("H100"), Some(3)).is_none());
    }

    #[test]
    fn a_gpu_whose_family_was_not_measured_says_whose_efficiencies_it_borrows() {
        let catalogue = Catalogue::shipped();
        for (name, measured) in
            [("H100", true), ("H200", true), ("A100-80", false), ("L40S", false), ("B200", false)]
        {
            let caveat = catalogue.gpu(name).expect("known").caveat();
            assert_eq!(caveat.is_none(), measured, "{name}: {caveat:?}");
            let words = "is not measured: borrowed from hopper";
            assert!(caveat.is_none_or(|caveat| caveat.contains(words)));
        }
    }

    #[test]
    fn every_gpu_has_efficiencies_and_makes_a_roofline() {
        let catalogue = Catalogue::shipped();
        for gpu in &catalogue.gpus {
            let efficiency = catalogue.efficiency(gpu).expect("a known family");
            for model in &catalogue.models {
                let roofline = Roofline::new(model.shape(), gpu.sheet(), 2, efficiency);
                assert!(roofline.is_ok(), "{} on {}", model.name, gpu.name);
            }
            assert!(gpu.usable_gib < gpu.memory_gib, "{}", gpu.name);
        }
    }

    #[test]
    fn models_have_the_weights_that_their_cards_say() {
        let catalogue = Catalogue::shipped();
        let cases = [
            ("llama-3.1-8b", 8.03),
            ("llama-3.1-70b", 70.55),
            ("qwen2.5-32b", 32.76),
            ("qwen3-32b", 32.76),
            ("mixtral-8x7b", 46.70),
            ("llama-3.1-405b-fp8", 405.9),
            ("qwen3-8b", 8.19),
            ("qwen3-14b", 14.77),
            ("qwen3-30b-a3b", 30.53),
            ("qwen3-235b-a22b-fp8", 235.09),
            ("mixtral-8x22b", 140.6),
            ("gpt-oss-20b", 20.91),
            ("gpt-oss-120b", 116.8),
            ("deepseek-v3", 671.0),
            ("kimi-k2", 1026.4),
            ("minimax-m2.5", 228.7),
        ];
        assert!(catalogue.models.len() >= 25);
        for (name, billions) in cases {
            let shape = catalogue.model(name).expect(name).shape();
            let found = shape.weights() / 1e9;
            assert!((found / billions - 1.0).abs() < 0.002, "{name}: {found}");
        }
    }
}
