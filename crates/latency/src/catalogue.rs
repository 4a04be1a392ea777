//! The catalogue: models, GPUs and fitted coefficients, as data in `catalogue.json`; and models
//! from the `config.json` of the Hugging Face hub.
//!
//! The lab looks up a scenario's model, GPU and tensor parallelism here. Each entry names its
//! source.

use crate::coefficients::Coefficients;
use crate::model::{Experts, ModelShape};
use crate::roofline::{Efficiency, GpuSheet};
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

/// The shape of a model.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Model {
    /// Name on the Hugging Face hub, lower case.
    pub name: String,
    /// Shorter spellings.
    pub aliases: Vec<String>,
    /// Transformer layers.
    pub layers: u32,
    /// Width of the residual stream.
    pub hidden_size: u32,
    /// Query heads.
    pub query_heads: u32,
    /// KV heads.
    pub kv_heads: u32,
    /// Width of one head.
    pub head_dim: u32,
    /// Width of the MLP, of one expert if there are experts.
    pub intermediate_size: u32,
    /// Tokens of the vocabulary.
    pub vocabulary: u32,
    /// Bytes of one weight.
    pub bytes_per_parameter: u32,
    /// Experts of a layer; 0 for a dense model.
    #[serde(default)]
    pub experts: u32,
    /// Experts that a token goes to.
    #[serde(default)]
    pub experts_per_token: u32,
    /// Whether the output layer is the embedding.
    #[serde(default)]
    pub tied_embeddings: bool,
    /// Longest context in tokens.
    pub max_model_len: u32,
    /// Where the figures come from.
    pub source: String,
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
    pub fn shape(&self) -> ModelShape {
        let experts = Experts {
            total: self.experts,
            active: self.experts_per_token,
            shared_intermediate_size: 0,
        };
        ModelShape {
            layers: self.layers,
            hidden_size: self.hidden_size,
            query_heads: self.query_heads,
            kv_heads: self.kv_heads,
            head_dim: self.head_dim,
            intermediate_size: self.intermediate_size,
            vocabulary: self.vocabulary,
            bytes_per_parameter: self.bytes_per_parameter,
            experts: (self.experts > 0).then_some(experts),
            tied_embeddings: self.tied_embeddings,
            max_model_len: self.max_model_len,
        }
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

/// What is read of a `config.json`; the names are those of the hub.
#[derive(Clone, Debug, Default, Deserialize)]
struct HfConfig {
    text_config: Option<Box<HfConfig>>,
    num_hidden_layers: Option<u32>,
    hidden_size: Option<u32>,
    num_attention_heads: Option<u32>,
    num_key_value_heads: Option<u32>,
    head_dim: Option<u32>,
    intermediate_size: Option<u32>,
    vocab_size: Option<u32>,
    max_position_embeddings: Option<u32>,
    #[serde(alias = "dtype")]
    torch_dtype: Option<String>,
    tie_word_embeddings: Option<bool>,
    /// Mixtral and others; the second name is Qwen's.
    #[serde(alias = "num_experts", alias = "n_routed_experts")]
    num_local_experts: Option<u32>,
    num_experts_per_tok: Option<u32>,
    moe_intermediate_size: Option<u32>,
    shared_expert_intermediate_size: Option<u32>,
    decoder_sparse_step: Option<u32>,
    #[serde(default)]
    mlp_only_layers: Option<Vec<u32>>,
    kv_lora_rank: Option<u32>,
    quantization_config: Option<serde_json::Value>,
}

/// Why a `config.json` was refused.
#[derive(Debug, thiserror::Error)]
pub enum HfError {
    /// It is not JSON, or a field has the wrong type.
    #[error("the model's configuration cannot be read: {0}")]
    Json(#[from] serde_json::Error),
    /// A field is missing.
    #[error("the model's configuration lacks `{0}`; is it the `config.json` of a language model?")]
    Missing(&'static str),
    /// A field has an impossible value.
    #[error("`{name}` of the model's configuration is `{value}`; legal: {legal}")]
    Illegal {
        /// Which field.
        name: &'static str,
        /// The value found.
        value: String,
        /// What is legal.
        legal: &'static str,
    },
    /// Something that the roofline does not know.
    #[error("the model has {0}, which is not supported; fit a profile to measured steps instead")]
    Unsupported(&'static str),
}

impl ModelShape {
    /// The model that a `config.json` of the Hugging Face hub describes: dense or a mixture of
    /// experts, with grouped queries, alone or as the text part of a larger model.
    ///
    /// # Errors
    /// If a field is missing or impossible, or the model is of a kind that is not known here.
    pub fn from_hf_config(text: &str) -> Result<ModelShape, HfError> {
        let outer: HfConfig = serde_json::from_str(text)?;
        let config = match &outer.text_config {
            None => outer.clone(),
            Some(inner) => HfConfig {
                torch_dtype: inner.torch_dtype.clone().or_else(|| outer.torch_dtype.clone()),
                tie_word_embeddings: inner.tie_word_embeddings.or(outer.tie_word_embeddings),
                quantization_config: outer.quantization_config.clone(),
                ..(**inner).clone()
            },
        };
        config.check_kind()?;
        let hidden_size = needed("hidden_size", config.hidden_size)?;
        let query_heads = needed("num_attention_heads", config.num_attention_heads)?;
        let experts = config.experts()?;
        let width = if experts.is_some() { config.moe_intermediate_size } else { None };
        let width = width.or(config.intermediate_size);
        Ok(ModelShape {
            layers: needed("num_hidden_layers", config.num_hidden_layers)?,
            hidden_size,
            query_heads,
            kv_heads: kv_heads(config.num_key_value_heads.unwrap_or(query_heads), query_heads)?,
            head_dim: config.head_dim.unwrap_or(hidden_size / query_heads),
            intermediate_size: needed("intermediate_size", width)?,
            vocabulary: needed("vocab_size", config.vocab_size)?,
            bytes_per_parameter: config.bytes_per_parameter()?,
            experts,
            // The hub leaves out what is usual, and that is untied for all models known here.
            tied_embeddings: config.tie_word_embeddings.unwrap_or(false),
            max_model_len: needed("max_position_embeddings", config.max_position_embeddings)?,
        })
    }
}

impl HfConfig {
    fn check_kind(&self) -> Result<(), HfError> {
        if self.kv_lora_rank.is_some() {
            return Err(HfError::Unsupported("compressed keys and values (`kv_lora_rank`)"));
        }
        if self.quantization_config.is_some() {
            return Err(HfError::Unsupported("quantised weights (`quantization_config`)"));
        }
        let dense_layers = self.mlp_only_layers.as_ref().is_some_and(|layers| !layers.is_empty());
        if dense_layers || self.decoder_sparse_step.is_some_and(|step| step > 1) {
            return Err(HfError::Unsupported("experts in some layers only"));
        }
        Ok(())
    }

    fn experts(&self) -> Result<Option<Experts>, HfError> {
        let Some(total) = self.num_local_experts.filter(|&total| total > 1) else {
            return Ok(None);
        };
        let active = needed("num_experts_per_tok", self.num_experts_per_tok)?;
        if active > total {
            let (value, legal) = (active.to_string(), "at most the number of experts");
            return Err(HfError::Illegal { name: "num_experts_per_tok", value, legal });
        }
        let shared_intermediate_size = self.shared_expert_intermediate_size.unwrap_or(0);
        Ok(Some(Experts { total, active, shared_intermediate_size }))
    }

    fn bytes_per_parameter(&self) -> Result<u32, HfError> {
        match self.torch_dtype.as_deref() {
            None | Some("bfloat16" | "float16") => Ok(2),
            Some("float32") => Ok(4),
            Some(other) => {
                let (value, legal) = (other.to_owned(), "bfloat16, float16, float32");
                Err(HfError::Illegal { name: "torch_dtype", value, legal })
            }
        }
    }
}

fn needed(name: &'static str, value: Option<u32>) -> Result<u32, HfError> {
    match value {
        None => Err(HfError::Missing(name)),
        Some(0) => Err(HfError::Illegal { name, value: "0".to_owned(), legal: "at least 1" }),
        Some(value) => Ok(value),
    }
}

fn kv_heads(found: u32, query_heads: u32) -> Result<u32, HfError> {
    if found > 0 && query_heads.is_multiple_of(found) {
        return Ok(found);
    }
    let (name, legal) = ("num_key_value_heads", "a divisor of the attention heads");
    Err(HfError::Illegal { name, value: found.to_string(), legal })
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
        ];
        assert_eq!(catalogue.models.len(), cases.len());
        for (name, billions) in cases {
            let shape = catalogue.model(name).expect(name).shape();
            let found = shape.weights() / 1e9;
            assert!((found / billions - 1.0).abs() < 0.002, "{name}: {found}");
        }
    }

    const LLAMA: &str = r#"{"num_hidden_layers": 32, "hidden_size": 4096, "vocab_size": 128256,
        "num_attention_heads": 32, "num_key_value_heads": 8, "intermediate_size": 14336,
        "max_position_embeddings": 131072, "torch_dtype": "bfloat16", "rope_theta": 500000.0,
        "tie_word_embeddings": false, "head_dim": null}"#;

    #[test]
    fn a_dense_model_is_read_from_its_hub_configuration() {
        let catalogue = Catalogue::shipped();
        let known = catalogue.model("llama-3.1-8b").expect("known").shape();
        assert_eq!(ModelShape::from_hf_config(LLAMA).expect("legal"), known);
        let nested = format!(r#"{{"torch_dtype": "bfloat16", "text_config": {LLAMA}}}"#);
        assert_eq!(ModelShape::from_hf_config(&nested).expect("legal"), known);
    }

    #[test]
    fn mixtures_of_experts_are_read_under_both_their_names() {
        let mixtral = LLAMA.replace("128256", "32000").replace("131072", "32768").replace(
            "\"head_dim\": null",
            "\"num_local_experts\": 8, \"num_experts_per_tok\": 2, \"router_aux_loss_coef\": 0.02",
        );
        let known = Catalogue::shipped().model("mixtral-8x7b").expect("known").shape();
        assert_eq!(ModelShape::from_hf_config(&mixtral).expect("legal"), known);
        let qwen = LLAMA.replace(
            "\"head_dim\": null",
            "\"num_experts\": 60, \"num_experts_per_tok\": 4, \"moe_intermediate_size\": 1408, \
             \"shared_expert_intermediate_size\": 5632, \"mlp_only_layers\": []",
        );
        let shape = ModelShape::from_hf_config(&qwen).expect("legal");
        let experts = Experts { total: 60, active: 4, shared_intermediate_size: 5632 };
        assert_eq!((shape.experts, shape.intermediate_size), (Some(experts), 1408));
    }

    #[test]
    fn unusable_configurations_are_refused_with_the_field_and_what_is_legal() {
        let refuse = |from: &str, to: &str| {
            let text = LLAMA.replace(from, to);
            assert_ne!(text, LLAMA);
            ModelShape::from_hf_config(&text).expect_err("illegal").to_string()
        };
        assert!(refuse("\"vocab_size\": 128256,", "").contains("lacks `vocab_size`"));
        assert!(refuse("\"num_key_value_heads\": 8", "\"num_key_value_heads\": 5").contains("`5`"));
        assert!(refuse("\"hidden_size\": 4096", "\"hidden_size\": 0").contains("is `0`"));
        assert!(refuse("bfloat16", "int4").contains("legal: bfloat16, float16, float32"));
        assert!(refuse("\"hidden_size\": 4096", "\"hidden_size\": \"x\"").contains("invalid type"));
        let field = |field: &str| refuse("\"head_dim\": null", field);
        assert!(field("\"kv_lora_rank\": 512").contains("compressed keys"));
        assert!(field("\"quantization_config\": {}").contains("quantised weights"));
        assert!(field("\"num_experts\": 8").contains("lacks `num_experts_per_tok`"));
        let greedy = field("\"num_experts\": 8, \"num_experts_per_tok\": 9");
        assert!(greedy.contains("`num_experts_per_tok` of the model's configuration is `9`"));
        assert!(field("\"decoder_sparse_step\": 2").contains("in some layers only"));
    }
}
