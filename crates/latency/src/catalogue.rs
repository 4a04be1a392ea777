//! The catalogue: models, GPUs and fitted coefficients, as data in `catalogue.json`.
//!
//! The lab looks up a scenario's model, GPU and tensor parallelism here. Each entry names its
//! source.

use crate::coefficients::Coefficients;
use serde::Deserialize;

/// The catalogue that ships with BLIS.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Catalogue {
    /// Models.
    pub models: Vec<Model>,
    /// GPUs.
    pub gpus: Vec<Gpu>,
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
    /// Width of the MLP.
    pub intermediate_size: u32,
    /// Tokens of the vocabulary.
    pub vocabulary: u32,
    /// Bytes of one weight.
    pub bytes_per_parameter: u32,
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
    /// Memory in GiB.
    pub memory_gib: f64,
    /// Dense bf16 peak in TFLOP/s.
    pub bf16_tflops: f64,
    /// Memory bandwidth in TB/s.
    pub bandwidth_tb_s: f64,
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
    pub fn shipped() -> Catalogue {
        serde_json::from_str(include_str!("../catalogue.json")).expect("catalogue.json is tested")
    }

    /// The model of that name or alias, in any case.
    pub fn model(&self, name: &str) -> Option<&Model> {
        let name = name.to_lowercase();
        self.models.iter().find(|model| model.name == name || model.aliases.contains(&name))
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
}
