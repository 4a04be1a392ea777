//! Models from the `config.json` of the Hugging Face hub: shape, and how weights are quantised.

use crate::model::{Experts, Format, Formats, Latent, ModelShape, Window};
use serde::Deserialize;
use serde_json::Value;

/// The largest number that a field may have, and heads times their width.
const MOST: u32 = 1 << 24;

/// The decoders that are known here, by their `model_type`.
const DECODERS: &str = "deepseek_v2, deepseek_v3, ernie4_5, ernie4_5_moe, exaone4, gemma, gemma2, \
    gemma3, glm4, glm4_moe, gpt_oss, granite, hunyuan_v1_dense, hunyuan_v1_moe, kimi_k2, llama, \
    mimo, minimax_m2, mistral, mixtral, olmo2, olmo3, olmoe, phi3, qwen2, qwen2_5_vl, qwen2_moe, \
    qwen2_vl, qwen3, qwen3_moe, qwen3_vl, qwen3_vl_moe, seed_oss, smollm3";

/// A number of a `config.json`.
#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(try_from = "Value")]
struct Size(u32);

impl TryFrom<Value> for Size {
    type Error = &'static str;

    fn try_from(found: Value) -> Result<Size, &'static str> {
        let size = found.as_u64().and_then(|size| u32::try_from(size).ok());
        size.filter(|&size| size <= MOST).map(Size).ok_or("a whole number up to 16,777,216")
    }
}

/// What is read of a `config.json`; the names are those of the hub.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub struct HfConfig {
    text_config: Option<Box<HfConfig>>,
    num_hidden_layers: Option<Size>,
    hidden_size: Option<Size>,
    num_attention_heads: Option<Size>,
    num_key_value_heads: Option<Size>,
    head_dim: Option<Size>,
    intermediate_size: Option<Size>,
    vocab_size: Option<Size>,
    max_position_embeddings: Option<Size>,
    #[serde(alias = "dtype")]
    torch_dtype: Option<String>,
    tie_word_embeddings: Option<bool>,
    /// Mixtral and others; the second name is Qwen's, the third `DeepSeek`'s.
    #[serde(alias = "num_experts", alias = "n_routed_experts")]
    num_local_experts: Option<Size>,
    num_experts_per_tok: Option<Size>,
    moe_intermediate_size: Option<Size>,
    shared_expert_intermediate_size: Option<Size>,
    n_shared_experts: Option<Size>,
    first_k_dense_replace: Option<Size>,
    decoder_sparse_step: Option<Size>,
    mlp_only_layers: Option<Vec<Value>>,
    kv_lora_rank: Option<Size>,
    q_lora_rank: Option<Size>,
    qk_nope_head_dim: Option<Size>,
    qk_rope_head_dim: Option<Size>,
    v_head_dim: Option<Size>,
    sliding_window: Option<Size>,
    use_sliding_window: Option<bool>,
    layer_types: Option<Vec<String>>,
    /// Every such layer looks at the whole context.
    sliding_window_pattern: Option<Size>,
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
    /// It is not JSON.
    #[error("the model's configuration cannot be read: {0}")]
    Json(#[from] serde_json::Error),
    /// A field is missing.
    #[error("the model's configuration lacks `{0}`; is it the `config.json` of a language model?")]
    Missing(&'static str),
    /// A field has an impossible value.
    #[error("`{name}` of the model's configuration is `{value}`; legal: {legal}")]
    Illegal {
        /// Which field.
        name: String,
        /// The value found.
        value: String,
        /// What is legal.
        legal: String,
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
        HfConfig::read(serde_json::from_str(text)?, "config.json")?.shape()
    }
}

fn illegal(name: &str, value: &Value, legal: &str) -> HfError {
    // Text without its quotation marks.
    let value = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
    HfError::Illegal { name: name.to_owned(), value, legal: legal.to_owned() }
}

impl HfConfig {
    /// Reads one field after another, so that an error can name its field.
    fn read(found: Value, name: &str) -> Result<HfConfig, HfError> {
        let Value::Object(fields) = &found else {
            return Err(illegal(name, &found, "an object with the fields of a model"));
        };
        for (field, value) in fields {
            if field == "text_config" && !value.is_null() {
                HfConfig::read(value.clone(), field)?;
            }
            let alone = Value::Object([(field.clone(), value.clone())].into_iter().collect());
            serde_json::from_value::<HfConfig>(alone).map_err(|error| {
                let error = error.to_string().replace("a sequence", "a list");
                illegal(field, value, error.rsplit("expected ").next().unwrap_or(&error))
            })?;
        }
        Ok(serde_json::from_value(found)?)
    }

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
        let head_dim = config.head_dim.or(Some(Size(hidden_size / query_heads)));
        let head_dim = needed("head_dim", head_dim)?;
        product("head_dim", head_dim, query_heads)?;
        Ok(ModelShape {
            layers,
            hidden_size,
            query_heads,
            kv_heads: kv_heads(config.num_key_value_heads, query_heads)?,
            head_dim,
            intermediate_size: needed("intermediate_size", width)?,
            vocabulary: needed("vocab_size", config.vocab_size)?,
            bytes_per_parameter: config.bytes_per_parameter()?,
            experts,
            // The hub leaves out what is usual, and that is untied for all but Gemma.
            tied_embeddings: config.tie_word_embeddings.unwrap_or(false),
            max_model_len: needed("max_position_embeddings", config.max_position_embeddings)?,
            formats: config.formats(experts.is_some())?,
            latent: config.latent(query_heads)?,
            window: config.window(layers)?,
        })
    }

    /// Gemma's configurations leave out what is usual for Gemma: the output layer is the embedding,
    /// and every second layer (Gemma 2) or sixth (Gemma 3) looks at the whole context.
    fn gemma(self) -> HfConfig {
        let is = |name: &str| self.model_type.as_ref().is_some_and(|kind| kind.starts_with(name));
        let (second, third) = (is("gemma2"), is("gemma3"));
        let usual = |given: Option<Size>, value: u32| given.or(third.then_some(Size(value)));
        let every = if second { Some(Size(2)) } else { third.then_some(Size(6)) };
        HfConfig {
            tie_word_embeddings: self.tie_word_embeddings.or((second || third).then_some(true)),
            sliding_window_pattern: self.sliding_window_pattern.or(every),
            head_dim: self.head_dim.or((second || third).then_some(Size(256))),
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
                dense_layers || self.decoder_sparse_step.is_some_and(|step| step.0 > 1),
                "experts in some layers only",
            ),
        ];
        if let Some((_, what)) = unsupported.into_iter().find(|(is, _)| *is) {
            return Err(HfError::Unsupported(what));
        }
        let known = |name: &str| DECODERS.split(", ").any(|known| known == name);
        match self.model_type.as_deref() {
            Some(name) if !known(name.trim_end_matches("_text")) => {
                let legal = format!("{DECODERS}, or none if the model is built as one of them");
                Err(illegal("model_type", &name.into(), &legal))
            }
            _ => Ok(()),
        }
    }

    fn experts(&self) -> Result<Option<Experts>, HfError> {
        let Some(total) = self.num_local_experts.filter(|total| total.0 > 1) else {
            return Ok(None);
        };
        let Size(total) = total;
        let active = needed("num_experts_per_tok", self.num_experts_per_tok)?;
        if active > total {
            let legal = "at most the number of experts";
            return Err(illegal("num_experts_per_tok", &active.into(), legal));
        }
        let or_none = |size: Option<Size>| size.map_or(0, |size| size.0);
        let [shared, width] = [self.n_shared_experts, self.moe_intermediate_size].map(or_none);
        let shared = product("n_shared_experts", shared, width)?;
        let dense_layers = or_none(self.first_k_dense_replace);
        if self.num_hidden_layers.is_some_and(|layers| dense_layers >= layers.0) {
            let legal = "less than `num_hidden_layers`";
            return Err(illegal("first_k_dense_replace", &dense_layers.into(), legal));
        }
        let width = if dense_layers > 0 { self.intermediate_size } else { None };
        Ok(Some(Experts {
            total,
            active,
            shared_intermediate_size: self
                .shared_expert_intermediate_size
                .map_or(shared, |width| width.0),
            dense_layers,
            dense_intermediate_size: or_none(width),
        }))
    }

    fn latent(&self, heads: u32) -> Result<Option<Latent>, HfError> {
        let Some(Size(kv_rank)) = self.kv_lora_rank else { return Ok(None) };
        let width = |name, size| {
            let width = needed(name, size)?;
            product(name, width, heads).map(|_| width)
        };
        Ok(Some(Latent {
            kv_rank,
            rope_dim: width("qk_rope_head_dim", self.qk_rope_head_dim)?,
            query_rank: self.q_lora_rank.map_or(0, |rank| rank.0),
            nope_dim: width("qk_nope_head_dim", self.qk_nope_head_dim)?,
            value_dim: width("v_head_dim", self.v_head_dim)?,
        }))
    }

    fn window(&self, layers: u32) -> Result<Option<Window>, HfError> {
        let names = self.layer_types.iter().flatten();
        let legal = ["full_attention", "sliding_attention"];
        if let Some(name) = names.clone().find(|name| !legal.contains(&name.as_str())) {
            return Err(illegal("layer_types", &name.as_str().into(), &legal.join(", ")));
        }
        let found = names.count();
        if self.layer_types.is_some() && u32::try_from(found) != Ok(layers) {
            let legal = format!("as many as `num_hidden_layers` ({layers})");
            return Err(illegal("layer_types", &format!("{found} names").into(), &legal));
        }
        let used = self.sliding_window.filter(|_| self.use_sliding_window != Some(false));
        let Some(tokens) = used else { return Ok(None) };
        let tokens = needed("sliding_window", Some(tokens))?;
        let pattern = self.sliding_window_pattern.map(|pattern| pattern.0);
        let layers = match (&self.layer_types, pattern) {
            (Some(types), _) => {
                let sliding = types.iter().filter(|name| name.contains("sliding")).count();
                u32::try_from(sliding).unwrap_or(layers).min(layers)
            }
            (None, Some(pattern)) => layers - layers / pattern.max(1),
            (None, None) => layers,
        };
        Ok((layers > 0).then_some(Window { tokens, layers }))
    }

    fn bytes_per_parameter(&self) -> Result<u32, HfError> {
        match self.torch_dtype.as_deref() {
            None | Some("bfloat16" | "float16") => Ok(2),
            Some("float32") => Ok(4),
            Some(other) => Err(illegal("torch_dtype", &other.into(), "bfloat16, float16, float32")),
        }
    }

    /// How weights are stored. What the configuration leaves as it was trained is told by the names
    /// of modules, of which only that of the attention is looked at.
    fn formats(&self, has_experts: bool) -> Result<Formats, HfError> {
        let Some(quantised) = self.quantization_config.as_ref().filter(|it| !it.is_null()) else {
            return Ok(Formats::default());
        };
        if !quantised.is_object() {
            let legal = "an object with a `quant_method`";
            return Err(illegal("quantization_config", quantised, legal));
        }
        let format = format(quantised)?;
        let lists = ["modules_to_not_convert", "ignore", "exclude_modules", "ignored_layers"];
        let names = lists.iter().filter_map(|list| quantised[list].as_array()).flatten();
        let spared =
            has_experts && names.filter_map(Value::as_str).any(|name| name.contains("attn"));
        let scheme = &quantised["kv_cache_scheme"];
        let (bits, kind) = (&scheme["num_bits"], &scheme["type"]);
        let algorithm = &quantised["kv_cache_quant_algo"];
        let has_scheme = !scheme.is_null();
        legal_if("kv_cache_scheme.num_bits", bits, !has_scheme || *bits == 8, "8")?;
        let is_float = kind.is_null() || *kind == "float";
        legal_if("kv_cache_scheme.type", kind, is_float, "float")?;
        let is_fp8 = *algorithm == "FP8";
        legal_if("kv_cache_quant_algo", algorithm, algorithm.is_null() || is_fp8, "FP8")?;
        Ok(Formats {
            dense: if spared { Format::Plain } else { format },
            experts: format,
            kv_fp8: has_scheme || is_fp8,
        })
    }
}

/// Refuses a field of the `quantization_config` that is not legal.
fn legal_if(field: &str, found: &Value, is: bool, legal: &str) -> Result<(), HfError> {
    let name = || format!("quantization_config.{field}");
    if is { Ok(()) } else { Err(illegal(&name(), found, legal)) }
}

/// The format that a `quantization_config` names.
fn format(quantised: &Value) -> Result<Format, HfError> {
    let method = quantised["quant_method"].as_str().unwrap_or_default();
    let algorithm = quantised["quant_algo"].as_str().unwrap_or_default();
    match (method, algorithm) {
        ("fp8" | "fbgemm_fp8", _) => {
            let size = &quantised["weight_block_size"];
            let number = |number: &Value| number.as_u64().is_some_and(|number| number > 0);
            let sizes = size.as_array().is_some_and(|s| s.len() == 2 && s.iter().all(number));
            let legal = "two whole numbers of at least 1";
            legal_if("weight_block_size", size, size.is_null() || sizes, legal)?;
            Ok(if sizes { Format::Fp8Block } else { Format::Fp8 })
        }
        ("mxfp4", _) => Ok(Format::Mxfp4),
        ("awq" | "gptq" | "awq_marlin" | "gptq_marlin", _) => {
            for name in ["bits", "w_bit"] {
                let bits = &quantised[name];
                legal_if(name, bits, bits.is_null() || *bits == 4, "4")?;
            }
            Ok(Format::Int4)
        }
        ("compressed-tensors", _) => compressed(&quantised["config_groups"]),
        (_, "NVFP4") => Ok(Format::Nvfp4),
        (_, "FP8") => Ok(Format::Fp8),
        _ => {
            let name = [method, algorithm].join(" ");
            let name = Value::from(name.trim());
            let found = if name == "" { quantised } else { &name };
            let legal = "FP8, NVFP4, MXFP4, or integers of 4 bits (AWQ, GPTQ)";
            Err(illegal("quantization_config", found, legal))
        }
    }
}

/// The format of all the groups of `compressed-tensors`.
fn compressed(groups: &Value) -> Result<Format, HfError> {
    let format = |group: &Value| {
        let weights = &group["weights"];
        match (weights["num_bits"].as_u64(), weights["type"].as_str()) {
            (Some(4), Some("int")) => Some(Format::Int4),
            (Some(4), Some("float")) => Some(Format::Nvfp4),
            (Some(8), Some("float")) if weights["strategy"] == "block" => Some(Format::Fp8Block),
            (Some(8), Some("float")) => Some(Format::Fp8),
            _ => None,
        }
    };
    let mut formats = groups.as_object().into_iter().flat_map(|groups| groups.values().map(format));
    let first = formats.next().flatten();
    let same = first.filter(|&first| formats.all(|other| other == Some(first)));
    let legal = "groups of one format: `num_bits` 4 or 8 of type float, or 4 of type int";
    let name = "quantization_config.config_groups";
    same.ok_or_else(|| illegal(name, groups, legal))
}

fn needed(name: &'static str, value: Option<Size>) -> Result<u32, HfError> {
    match value {
        None => Err(HfError::Missing(name)),
        Some(Size(0)) => Err(illegal(name, &0.into(), "at least 1")),
        Some(Size(value)) => Ok(value),
    }
}

/// `count` times `width`, if that is no more than is legal of any field.
fn product(name: &str, width: u32, count: u32) -> Result<u32, HfError> {
    let product = width.checked_mul(count).filter(|&product| product <= MOST);
    let legal = || format!("times {count} at most {MOST}");
    product.ok_or_else(|| illegal(name, &width.into(), &legal()))
}

fn kv_heads(found: Option<Size>, query_heads: u32) -> Result<u32, HfError> {
    let found = found.map_or(query_heads, |found| found.0);
    if found > 0 && query_heads.is_multiple_of(found) {
        return Ok(found);
    }
    let legal = "a divisor of the attention heads";
    Err(illegal("num_key_value_heads", &found.into(), legal))
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
        assert!(
            refuse("\"hidden_size\": 4096", "\"hidden_size\": \"x\"")
                .contains("`x`; legal: a whole number")
        );
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
    fn no_field_of_any_size_or_type_is_read_as_something_else() {
        let refuse = |field: &str, value: &str| {
            let mut config: Value = serde_json::from_str(LLAMA).expect("JSON");
            let mut found = serde_json::from_str(value).expect(value);
            for part in field.rsplit('.').take(field.matches('.').count()) {
                found = serde_json::json!({ part: found, "quant_method": "fp8" });
            }
            config[field.split('.').next().expect("a name")] = found;
            let text = config.to_string();
            let error = ModelShape::from_hf_config(&text).expect_err(&text).to_string();
            assert!(error.contains(&format!("`{field}` of")), "{error}");
            assert!(error.contains("legal: ") && !error.contains("u32"), "{error}");
            error
        };
        for field in ["intermediate_size", "hidden_size", "head_dim", "v_head_dim", "kv_lora_rank"]
        {
            assert!(refuse(field, "4294967295").contains("up to 16,777,216"));
        }
        refuse("head_dim", "16777216");
        for (field, value) in [
            ("hidden_size", "4096.5"),
            ("text_config", "[]"),
            ("layer_types", "\"full_attention\""),
            ("layer_types", "[\"full_attention\"]"),
            ("layer_types", "[\"foo\"]"),
            ("model_type", "\"bert\""),
            ("model_type", "\"mamba\""),
            ("sliding_window", "0"),
            ("quantization_config", "\"fp8\""),
            ("quantization_config", "[{\"quant_method\": \"fp8\"}]"),
            ("quantization_config", "{}"),
            ("quantization_config.weight_block_size", "[0, 0]"),
            ("quantization_config.weight_block_size", "128"),
            ("quantization_config.kv_cache_quant_algo", "\"INT3\""),
            ("quantization_config.kv_cache_scheme.num_bits", "4"),
        ] {
            refuse(field, value);
        }
        let whole = ModelShape::from_hf_config("[]").expect_err("a list").to_string();
        assert!(whole.contains("`config.json` of"), "{whole}");
        for bits in ["\"8\"", "-4", "8.0", "8"] {
            let text = format!(
                r#"{{"quantization_config": {{"quant_method": "awq", "bits": {bits}}}, {}"#,
                &LLAMA[1..]
            );
            let error = ModelShape::from_hf_config(&text).expect_err(bits).to_string();
            assert!(error.contains("`quantization_config.bits` of"), "{error}");
        }
        let group =
            |bits: u32| format!(r#"{{"weights": {{"num_bits": {bits}, "type": "float"}}}}"#);
        let text = format!(
            r#"{{"quantization_config": {{"quant_method": "compressed-tensors",
            "config_groups": {{"a": {}, "b": {}}}}}, {}"#,
            group(4),
            group(8),
            &LLAMA[1..]
        );
        let error = ModelShape::from_hf_config(&text).expect_err("two formats").to_string();
        assert!(error.contains("legal: groups of one format"), "{error}");
        let shared = LLAMA.replace(
            "\"head_dim\": null",
            "\"num_experts\": 8, \"num_experts_per_tok\": 2, \"moe_intermediate_size\": 14336, \
             \"n_shared_experts\": 16777216",
        );
        let error = ModelShape::from_hf_config(&shared).expect_err("wide").to_string();
        assert!(error.contains("`n_shared_experts` of"), "{error}");
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
