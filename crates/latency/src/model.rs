//! The shape of a transformer, and what follows from it: parameters, bytes, operations.

/// What a step of a model costs depends on these numbers alone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ModelShape {
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
    /// Bytes of one weight, and of one number of the KV cache.
    pub bytes_per_parameter: u32,
    /// Experts of a layer; `None` for a dense model.
    pub experts: Option<Experts>,
    /// Whether the output layer is the embedding.
    pub tied_embeddings: bool,
    /// Longest context in tokens.
    pub max_model_len: u32,
}

/// A mixture of experts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Experts {
    /// Experts of a layer.
    pub total: u32,
    /// Those that a token goes to.
    pub active: u32,
    /// Width of the expert that every token goes to; 0 if there is none.
    pub shared_intermediate_size: u32,
}

impl ModelShape {
    /// Weights of the attention of one layer.
    fn attention_weights(&self) -> f64 {
        let (hidden, width) = (f64::from(self.hidden_size), f64::from(self.head_dim));
        let (queries, keys) = (f64::from(self.query_heads), f64::from(self.kv_heads));
        hidden * width * (2.0 * queries + 2.0 * keys)
    }

    /// Weights of one MLP of the given width: gate, up and down.
    fn mlp_weights(&self, width: u32) -> f64 {
        3.0 * f64::from(self.hidden_size) * f64::from(width)
    }

    /// Weights of one layer of which `experts` experts are counted.
    fn layer_weights(&self, experts: f64) -> f64 {
        let norms = 2.0 * f64::from(self.hidden_size);
        let mlps = match self.experts {
            None => self.mlp_weights(self.intermediate_size),
            Some(mixture) => {
                experts * self.mlp_weights(self.intermediate_size)
                    + self.mlp_weights(mixture.shared_intermediate_size)
                    + f64::from(self.hidden_size) * f64::from(mixture.total)
            }
        };
        self.attention_weights() + mlps + norms
    }

    /// Weights of the embedding, which is as large as the output layer.
    pub fn embedding_weights(&self) -> f64 {
        f64::from(self.vocabulary) * f64::from(self.hidden_size)
    }

    /// All weights.
    pub fn weights(&self) -> f64 {
        let experts = self.experts.map_or(0.0, |mixture| f64::from(mixture.total));
        let tables = if self.tied_embeddings { 1.0 } else { 2.0 };
        f64::from(self.layers) * self.layer_weights(experts) + tables * self.embedding_weights()
    }

    /// Weights of all layers that one token meets.
    pub fn weights_per_token(&self) -> f64 {
        let experts = self.experts.map_or(0.0, |mixture| f64::from(mixture.active));
        f64::from(self.layers) * self.layer_weights(experts)
    }

    /// Weights of all layers that at least one of `tokens` tokens meets, if they choose their
    /// experts evenly and on their own.
    pub fn weights_met(&self, tokens: u32) -> f64 {
        let experts = self.experts.map_or(0.0, |mixture| {
            let total = f64::from(mixture.total);
            let missed = 1.0 - f64::from(mixture.active) / total;
            total * (1.0 - blis_core::math::pow(missed, f64::from(tokens)))
        });
        f64::from(self.layers) * self.layer_weights(experts)
    }

    /// Bytes of all weights.
    pub fn weight_bytes(&self) -> f64 {
        self.weights() * f64::from(self.bytes_per_parameter)
    }

    /// Bytes that a token occupies in the KV cache: keys and values of all layers.
    pub fn kv_bytes_per_token(&self) -> f64 {
        let numbers = 2.0 * f64::from(self.kv_heads) * f64::from(self.head_dim);
        f64::from(self.layers) * numbers * f64::from(self.bytes_per_parameter)
    }

    /// Operations of attention for one query-key pair, in all layers and heads: two products.
    pub fn operations_per_pair(&self) -> f64 {
        let width = f64::from(self.query_heads) * f64::from(self.head_dim);
        4.0 * f64::from(self.layers) * width
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    pub(crate) const LLAMA_8B: ModelShape = ModelShape {
        layers: 32,
        hidden_size: 4096,
        query_heads: 32,
        kv_heads: 8,
        head_dim: 128,
        intermediate_size: 14336,
        vocabulary: 128_256,
        bytes_per_parameter: 2,
        experts: None,
        tied_embeddings: false,
        max_model_len: 131_072,
    };

    pub(crate) const MIXTRAL: ModelShape = ModelShape {
        vocabulary: 32_000,
        experts: Some(Experts { total: 8, active: 2, shared_intermediate_size: 0 }),
        max_model_len: 32_768,
        ..LLAMA_8B
    };

    fn billions(weights: f64) -> f64 {
        (weights / 1e7).round() / 100.0
    }

    #[test]
    fn weights_are_those_on_the_model_cards() {
        assert!((billions(LLAMA_8B.weights()) - 8.03).abs() < 0.011);
        assert!((billions(MIXTRAL.weights()) - 46.7).abs() < 0.011);
        let active = MIXTRAL.weights_per_token() + 2.0 * MIXTRAL.embedding_weights();
        assert!((billions(active) - 12.88).abs() < 0.011, "{}", billions(active));
    }

    #[test]
    fn a_token_of_llama_8b_is_128_kib_of_cache() {
        assert!((LLAMA_8B.kv_bytes_per_token() - 131_072.0).abs() < 1e-9);
    }

    #[test]
    fn many_tokens_meet_all_experts_and_one_token_meets_its_own() {
        let one = MIXTRAL.weights_met(1) / MIXTRAL.weights_per_token();
        assert!((one - 1.0).abs() < 1e-9);
        let all = MIXTRAL.weights() - 2.0 * MIXTRAL.embedding_weights();
        assert!((MIXTRAL.weights_met(1000) / all - 1.0).abs() < 1e-9);
        let dense = LLAMA_8B.weights_met(1) - LLAMA_8B.weights_per_token();
        assert!(dense.abs() < 1e-9);
    }
}
