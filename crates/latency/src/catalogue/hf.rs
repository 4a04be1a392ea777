//! Models from the `config.json` of the Hugging Face hub: shape, and how weights are quantised.

use crate::model::{Experts, Format, Formats, Latent, ModelShape, Window};
use serde::Deserialize;
use serde_json::Value;

/// What is read of a `config.json`; the names are those of the hub.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub struct HfConfig {
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
    /// Mixtral and others; the second name is Qwen's, the third `DeepSeek`'s.
    #[serde(alias = "num_experts", alias = "n_routed_experts")]
    num_local_experts: Option<u32>,
    num_experts_per_tok: Option<u32>,
    moe_intermediate_size: Option<u32>,
    shared_expert_intermediate_size: Option<u32>,
    n_shared_experts: Option<u32>,
    first_k_dense_replace: Option<u32>,
    decoder_sparse_step: Option<u32>,
    mlp_only_layers: Option<Vec<u32>>,
    kv_lora_rank: Option<u32>,
    q_lora_rank: Option<u32>,
    qk_nope_head_dim: Option<u32>,
    qk_rope_head_dim: Option<u32>,
    v_head_dim: Option<u32>,
    sliding_window: Option<u32>,
    use_sliding_window: Option<bool>,
    layer_types: Option<Vec<String>>,
    /// Every such layer looks at the whole context.
    sliding_window_pattern: Option<u32>,
    model_type: Option<String>,
    quantization_config: Option<Value>,
    /// Attention that looks at chosen tokens only.
    index_topk: Option<Value>,
    /// Attention in chunks.
    attention_chunk_size: Option<Value>,
    /// Layers that differ from each other.
    block_configs: Option<Value>,
    hybrid_override_pattern: Option<Value>,
    global_head_dim: Option<Value>,
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
    /// Something that no latency model knows.
    #[error("the model has {0}, which is not supported; fit a profile to measured steps instead")]
    Unsupported(&'static str),
}

impl ModelShape {
    /// The model that a `config.json` of the Hugging Face hub describes: dense or a mixture of
    /// experts, with grouped queries, windows or compressed keys and values, quantised or not,
    /// alone or as the text part of a larger model.
    ///
    /// # Errors
    /// If a field is missing or impossible, or the model is of a kind that is not known here.
    pub fn from_hf_config(text: &str) -> Result<ModelShape, HfError> {
        serde_json::from_str::<HfConfig>(text)?.shape()
    }
}

impl HfConfig {
    /// The model that it describes.
    ///
    /// # Errors
    /// If a field is missing or impossible, or the model is of a kind that is not known here.
    pub fn shape(&self) -> Result<ModelShape, HfError> {
        let config = match &self.text_config {
            None => self.clone(),
            Some(inner) => HfConfig {
                torch_dtype: inner.torch_dtype.clone().or_else(|| self.torch_dtype.clone()),
                tie_word_embeddings: inner.tie_word_embeddings.or(self.tie_word_embeddings),
                quantization_config: inner
                    .quantization_config
                    .clone()
                    .or_else(|| self.quantization_config.clone()),
                ..(**inner).clone()
            },
        };
        let config = config.gemma();
        config.check_kind()?;
        let hidden_size = needed("hidden_size", config.hidden_size)?;
        let query_heads = needed("num_attention_heads", config.num_attention_heads)?;
        let experts = config.experts()?;
        let width = if experts.is_some() { config.moe_intermediate_size } else { None };
        let width = width.or(config.intermediate_size);
        let layers = needed("num_hidden_layers", config.num_hidden_layers)?;
        Ok(ModelShape {
            layers,
            hidden_size,
            query_heads,
            kv_heads: kv_heads(config.num_key_value_heads.unwrap_or(query_heads), query_heads)?,
            head_dim: needed("head_dim", config.head_dim.or(Some(hidden_size / query_heads)))?,
            intermediate_size: needed("intermediate_size", width)?,
            vocabulary: needed("vocab_size", config.vocab_size)?,
            bytes_per_parameter: config.bytes_per_parameter()?,
            experts,
            // The hub leaves out what is usual, and that is untied for all but Gemma.
            tied_embeddings: config.tie_word_embeddings.unwrap_or(false),
            max_model_len: needed("max_position_embeddings", config.max_position_embeddings)?,
            formats: config.formats(experts.is_some())?,
            latent: config.latent()?,
            window: config.window(layers),
        })
    }

    /// Gemma's configurations leave out what is usual for Gemma: the output layer is the embedding,
    /// and every second layer (Gemma 2) or sixth (Gemma 3) looks at the whole context.
    fn gemma(self) -> HfConfig {
        let is = |name: &str| self.model_type.as_ref().is_some_and(|kind| kind.starts_with(name));
        let (second, third) = (is("gemma2"), is("gemma3"));
        let usual = |given: Option<u32>, value: u32| given.or(third.then_some(value));
        let every = if second { Some(2) } else { third.then_some(6) };
        HfConfig {
            tie_word_embeddings: self.tie_word_embeddings.or((second || third).then_some(true)),
            sliding_window_pattern: self.sliding_window_pattern.or(every),
            head_dim: self.head_dim.or((second || third).then_some(256)),
            num_attention_heads: usual(self.num_attention_heads, 8),
            num_key_value_heads: usual(self.num_key_value_heads, 4),
            vocab_size: usual(self.vocab_size, 262_208),
            max_position_embeddings: usual(self.max_position_embeddings, 131_072),
            ..self
        }
    }

    fn check_kind(&self) -> Result<(), HfError> {
        let linear = |name: &String| name.contains("linear") || name.contains("chunked");
        let dense_layers = self.mlp_only_layers.as_ref().is_some_and(|layers| !layers.is_empty());
        let has = |field: &Option<Value>| field.as_ref().is_some_and(|value| !value.is_null());
        let unsupported = [
            (has(&self.index_topk), "attention to chosen tokens (`index_topk`)"),
            (has(&self.attention_chunk_size), "attention in chunks (`attention_chunk_size`)"),
            (has(&self.global_head_dim), "heads of two widths (`global_head_dim`)"),
            (
                has(&self.block_configs) || has(&self.hybrid_override_pattern),
                "layers that differ from each other",
            ),
            (self.layer_types.iter().flatten().any(linear), "linear or chunked attention"),
            (
                dense_layers || self.decoder_sparse_step.is_some_and(|step| step > 1),
                "experts in some layers only",
            ),
        ];
        let found = unsupported.into_iter().find(|(is, _)| *is);
        found.map_or(Ok(()), |(_, what)| Err(HfError::Unsupported(what)))
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
        let shared = self.n_shared_experts.unwrap_or(0);
        let shared = shared * self.moe_intermediate_size.unwrap_or(0);
        let dense_layers = self.first_k_dense_replace.unwrap_or(0);
        if self.num_hidden_layers.is_some_and(|layers| dense_layers >= layers) {
            let (value, legal) = (dense_layers.to_string(), "less than `num_hidden_layers`");
            return Err(HfError::Illegal { name: "first_k_dense_replace", value, legal });
        }
        let width = if dense_layers > 0 { self.intermediate_size } else { None };
        Ok(Some(Experts {
            total,
            active,
            shared_intermediate_size: self.shared_expert_intermediate_size.unwrap_or(shared),
            dense_layers,
            dense_intermediate_size: width.unwrap_or(0),
        }))
    }

    fn latent(&self) -> Result<Option<Latent>, HfError> {
        let Some(kv_rank) = self.kv_lora_rank else { return Ok(None) };
        Ok(Some(Latent {
            kv_rank,
            rope_dim: needed("qk_rope_head_dim", self.qk_rope_head_dim)?,
            query_rank: self.q_lora_rank.unwrap_or(0),
            nope_dim: needed("qk_nope_head_dim", self.qk_nope_head_dim)?,
            value_dim: needed("v_head_dim", self.v_head_dim)?,
        }))
    }

    fn window(&self, layers: u32) -> Option<Window> {
        let tokens = self.sliding_window.filter(|_| self.use_sliding_window != Some(false))?;
        let layers = match (&self.layer_types, self.sliding_window_pattern) {
            (Some(types), _) => {
                let sliding = types.iter().filter(|name| name.contains("sliding")).count();
                u32::try_from(sliding).unwrap_or(layers).min(layers)
            }
            (None, Some(pattern)) => layers - layers / pattern.max(1),
            (None, None) => layers,
        };
        (layers > 0).then_some(Window { tokens, layers })
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

    /// How weights are stored. What the configuration leaves as it was trained is told by the names
    /// of modules, of which only that of the attention is looked at.
    fn formats(&self, has_experts: bool) -> Result<Formats, HfError> {
        let Some(quantised) = self.quantization_config.as_ref().filter(|it| it.is_object()) else {
            return Ok(Formats::default());
        };
        let format = format(quantised)?;
        let lists = ["modules_to_not_convert", "ignore", "exclude_modules", "ignored_layers"];
        let names = lists.iter().filter_map(|list| quantised[list].as_array()).flatten();
        let spared =
            has_experts && names.filter_map(Value::as_str).any(|name| name.contains("attn"));
        let scheme = &quantised["kv_cache_scheme"]["num_bits"];
        let algorithm = quantised["kv_cache_quant_algo"].as_str();
        Ok(Formats {
            dense: if spared { Format::Plain } else { format },
            experts: format,
            kv_fp8: scheme.as_u64() == Some(8) || algorithm == Some("FP8"),
        })
    }
}

/// The format that a `quantization_config` names.
fn format(quantised: &Value) -> Result<Format, HfError> {
    let method = quantised["quant_method"].as_str().unwrap_or("modelopt");
    let algorithm = quantised["quant_algo"].as_str().unwrap_or_default();
    let blocks = |strategy: bool| if strategy { Format::Fp8Block } else { Format::Fp8 };
    let bits = quantised["bits"].as_u64().or_else(|| quantised["w_bit"].as_u64());
    let group = quantised["config_groups"].as_object().and_then(|groups| groups.values().next());
    let group = group.map_or(&Value::Null, |group| &group["weights"]);
    let kind = (group["num_bits"].as_u64(), group["type"].as_str().unwrap_or_default());
    match (method, algorithm, bits, kind) {
        ("fp8" | "fbgemm_fp8", ..) => Ok(blocks(quantised["weight_block_size"].is_array())),
        ("mxfp4", ..) => Ok(Format::Mxfp4),
        ("awq" | "gptq" | "awq_marlin" | "gptq_marlin", _, None | Some(4), _)
        | ("compressed-tensors", _, _, (Some(4), "int")) => Ok(Format::Int4),
        ("compressed-tensors", _, _, (Some(8), "float")) => {
            Ok(blocks(group["strategy"].as_str() == Some("block")))
        }
        ("compressed-tensors", _, _, (Some(4), "float")) | (_, "NVFP4", ..) => Ok(Format::Nvfp4),
        (_, "FP8", ..) => Ok(Format::Fp8),
        _ => {
            let name = [method, algorithm].join(" ");
            let value = name.trim().to_owned();
            let legal = "FP8, NVFP4, MXFP4, or integers of 4 bits (AWQ, GPTQ)";
            Err(HfError::Illegal { name: "quantization_config", value, legal })
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
    use crate::catalogue::Catalogue;

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
    fn every_other_layer_of_gemma_2_looks_at_a_window() {
        let gemma = LLAMA.replace(
            "\"head_dim\": null",
            "\"head_dim\": 256, \"model_type\": \"gemma2\", \"sliding_window\": 4096",
        );
        let window = ModelShape::from_hf_config(&gemma).expect("legal").window;
        assert_eq!(window, Some(Window { tokens: 4096, layers: 16 }));
    }

    #[test]
    fn gemma_3_is_read_from_the_little_that_its_configuration_says() {
        // `text_config` of google/gemma-3-4b-it and google/gemma-3-27b-it on the hub.
        let read = |text: &str| {
            let nested = format!(
                r#"{{"model_type": "gemma3", "text_config": {{{text},
                "model_type": "gemma3_text", "sliding_window": 1024}}}}"#
            );
            ModelShape::from_hf_config(&nested).expect("legal")
        };
        let small =
            read(r#""hidden_size": 2560, "intermediate_size": 10240, "num_hidden_layers": 34"#);
        assert_eq!(small.window, Some(Window { tokens: 1024, layers: 29 }));
        // The model card says 3.88 billion without the vision tower.
        assert!((small.weights() / 3.88e9 - 1.0).abs() < 0.01, "{}", small.weights());
        let large = read(
            r#""hidden_size": 5376, "intermediate_size": 21504, "num_hidden_layers": 62,
                "num_attention_heads": 32, "num_key_value_heads": 16, "head_dim": 128"#,
        );
        assert_eq!((large.window.expect("it has one").layers, large.head_dim), (52, 128));
        assert!((large.weights() / 27.0e9 - 1.0).abs() < 0.01, "{}", large.weights());
    }

    #[test]
    fn the_layers_of_a_vision_tower_are_not_those_of_the_language_model() {
        let tower = r#""vision_config": {"num_hidden_layers": 27, "num_attention_heads": 16}"#;
        let nested = format!(r#"{{{tower}, "text_config": {LLAMA}}}"#);
        let alone = ModelShape::from_hf_config(LLAMA).expect("legal");
        assert_eq!(ModelShape::from_hf_config(&nested).expect("legal"), alone);
    }

    #[test]
    fn impossible_heads_and_dense_layers_are_refused() {
        let refused = |text: String| ModelShape::from_hf_config(&text).expect_err("no").to_string();
        let no_width = refused(LLAMA.replace("\"head_dim\": null", "\"head_dim\": 0"));
        assert!(no_width.contains("`head_dim`") && no_width.contains("`0`"), "{no_width}");
        let experts = "\"n_routed_experts\": 8, \"num_experts_per_tok\": 2, \"head_dim\": null, \
                       \"first_k_dense_replace\": 32";
        let all_dense = refused(LLAMA.replace("\"head_dim\": null", experts));
        assert!(all_dense.contains("`first_k_dense_replace`"), "{all_dense}");
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
        let experts =
            Experts { total: 60, active: 4, shared_intermediate_size: 5632, ..Experts::default() };
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
        assert!(field("\"kv_lora_rank\": 512").contains("lacks `qk_rope_head_dim`"));
        let unknown = field("\"quantization_config\": {\"quant_method\": \"hqq\"}");
        assert!(unknown.contains("is `hqq`; legal: FP8, NVFP4, MXFP4, or integers"), "{unknown}");
        assert!(field("\"index_topk\": 2048").contains("attention to chosen tokens"));
        assert!(field("\"num_experts\": 8").contains("lacks `num_experts_per_tok`"));
        let greedy = field("\"num_experts\": 8, \"num_experts_per_tok\": 9");
        assert!(greedy.contains("`num_experts_per_tok` of the model's configuration is `9`"));
        assert!(field("\"decoder_sparse_step\": 2").contains("in some layers only"));
    }

    #[test]
    fn every_usual_quantisation_is_read() {
        let read = |quantised: &str| {
            let field = format!("\"quantization_config\": {quantised}");
            let text = LLAMA.replace("\"head_dim\": null", &field);
            ModelShape::from_hf_config(&text).expect("legal").formats
        };
        let cases = [
            (r#"{"quant_method": "fp8", "weight_block_size": [128, 128]}"#, Format::Fp8Block),
            (r#"{"quant_method": "fbgemm_fp8"}"#, Format::Fp8),
            (r#"{"quant_method": "modelopt", "quant_algo": "FP8"}"#, Format::Fp8),
            (r#"{"quant_algo": "NVFP4", "kv_cache_quant_algo": "FP8"}"#, Format::Nvfp4),
            (r#"{"quant_method": "mxfp4"}"#, Format::Mxfp4),
            (r#"{"quant_method": "awq", "bits": 4}"#, Format::Int4),
            (r#"{"quant_method": "gptq", "bits": 4}"#, Format::Int4),
            (
                r#"{"quant_method": "compressed-tensors", "config_groups": {"group_0": {"weights":
                    {"num_bits": 8, "type": "float", "strategy": "channel"}}}}"#,
                Format::Fp8,
            ),
        ];
        for (quantised, format) in cases {
            assert_eq!(read(quantised).dense, format, "{quantised}");
        }
        assert!(read(r#"{"quant_algo": "FP8", "kv_cache_quant_algo": "FP8"}"#).kv_fp8);
    }

    #[test]
    fn what_a_quantisation_spares_is_not_quantised() {
        let shape = |name| Catalogue::shipped().model(name).expect(name).shape();
        let spared = Formats { experts: Format::Mxfp4, ..Formats::default() };
        assert_eq!(shape("gpt-oss-120b").formats, spared);
        assert_eq!(shape("gpt-oss-120b").window, Some(Window { tokens: 128, layers: 18 }));
        assert_eq!(shape("kimi-k2.5").formats.experts, Format::Int4);
        assert_eq!(shape("kimi-k2.5").formats.dense, Format::Plain);
        assert_eq!(shape("deepseek-v3").formats.dense, Format::Fp8Block);
        assert!(shape("deepseek-v3").latent.is_some());
    }
}
