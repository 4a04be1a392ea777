//! The shape of a transformer, and what follows from it: parameters, bytes, operations.

use crate::parallel::Parallel;

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
    /// Bytes of a weight that is not quantised, and of one number of the KV cache that is not.
    pub bytes_per_parameter: u32,
    /// Experts of a layer; `None` for a dense model.
    pub experts: Option<Experts>,
    /// Whether the output layer is the embedding.
    pub tied_embeddings: bool,
    /// Longest context in tokens.
    pub max_model_len: u32,
    /// How its numbers are stored.
    pub formats: Formats,
    /// Compressed keys and values (MLA); `None`: keys and values of each KV head.
    pub latent: Option<Latent>,
    /// Layers that look back only so far; `None`: all layers look at the whole context.
    pub window: Option<Window>,
}

/// A mixture of experts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Experts {
    /// Experts of a layer.
    pub total: u32,
    /// Those that a token goes to.
    pub active: u32,
    /// Width of the expert that every token goes to; 0 if there is none.
    pub shared_intermediate_size: u32,
    /// Layers without experts.
    pub dense_layers: u32,
    /// Width of their MLP.
    pub dense_intermediate_size: u32,
}

/// How the numbers of a model are stored. Embedding and output layer are never quantised.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Formats {
    /// Weights of the attention and of an MLP that every token meets.
    pub dense: Format,
    /// Weights of the experts.
    pub experts: Format,
    /// Whether the KV cache has FP8 numbers.
    pub kv_fp8: bool,
}

/// How a weight is stored.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Format {
    /// As it was trained: bf16.
    #[default]
    Plain,
    /// FP8 with a scale for each matrix or row.
    Fp8,
    /// FP8 with a scale for each block of 128 by 128.
    Fp8Block,
    /// Integers of 4 bits with a scale for each group: AWQ, GPTQ and others. Computed in bf16.
    Int4,
    /// NVIDIA's FP4: a scale for every 16 weights. Computed in bf16 by GPUs before Blackwell.
    Nvfp4,
    /// FP4 with a scale for every 32 weights. Computed in bf16.
    Mxfp4,
}

/// Attention with compressed keys and values (MLA).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Latent {
    /// Numbers that keys and values of a token are compressed to.
    pub kv_rank: u32,
    /// Numbers of the key that say where the token stands.
    pub rope_dim: u32,
    /// Numbers that queries are compressed to; 0: they are not.
    pub query_rank: u32,
    /// Width of the other part of a key.
    pub nope_dim: u32,
    /// Width of a value.
    pub value_dim: u32,
}

/// Layers that look back only so far.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Window {
    /// How many tokens they look back.
    pub tokens: u32,
    /// How many layers do.
    pub layers: u32,
}

impl Format {
    /// Bytes of a weight with its share of the scales; `plain` if it is not quantised.
    pub fn bytes(self, plain: f64) -> f64 {
        match self {
            Format::Plain => plain,
            Format::Fp8 | Format::Fp8Block => 1.0,
            Format::Int4 | Format::Nvfp4 => 0.5 + 1.0 / 16.0,
            Format::Mxfp4 => 0.5 + 1.0 / 32.0,
        }
    }
}

impl Experts {
    /// Experts that at least one of `tokens` tokens meets, if they choose evenly and on their own.
    pub fn met(&self, tokens: u32) -> f64 {
        let total = f64::from(self.total);
        let missed = 1.0 - f64::from(self.active) / total;
        total * (1.0 - blis_core::math::pow(missed, f64::from(tokens)))
    }
}

/// Weights of a part of the model, by how they are stored.
#[derive(Clone, Copy, Debug, Default)]
struct Weights {
    plain: f64,
    dense: f64,
    experts: f64,
}

impl ModelShape {
    /// Weights of the attention of one layer.
    fn attention_weights(&self) -> f64 {
        let (hidden, width) = (f64::from(self.hidden_size), f64::from(self.head_dim));
        let (queries, keys) = (f64::from(self.query_heads), f64::from(self.kv_heads));
        let Some(latent) = self.latent else {
            return hidden * width * (2.0 * queries + 2.0 * keys);
        };
        let [kv_rank, rope, rank, nope, value] =
            [latent.kv_rank, latent.rope_dim, latent.query_rank, latent.nope_dim, latent.value_dim]
                .map(f64::from);
        let query = queries * (nope + rope);
        let query = if rank > 0.0 { rank * (hidden + query) } else { hidden * query };
        let keys = hidden * (kv_rank + rope) + kv_rank * queries * (nope + value);
        query + keys + queries * value * hidden
    }

    /// Weights of one MLP of the given width: gate, up and down.
    fn mlp_weights(&self, width: u32) -> f64 {
        3.0 * f64::from(self.hidden_size) * f64::from(width)
    }

    /// Weights of all layers, of which `experts` experts are counted in each that has them.
    fn layer_weights(&self, experts: f64) -> Weights {
        let (layers, hidden) = (f64::from(self.layers), f64::from(self.hidden_size));
        let all = Weights {
            plain: layers * 2.0 * hidden,
            dense: layers * self.attention_weights(),
            experts: 0.0,
        };
        let Some(mixture) = self.experts else {
            let mlp = layers * self.mlp_weights(self.intermediate_size);
            return Weights { dense: all.dense + mlp, ..all };
        };
        let without = f64::from(mixture.dense_layers);
        let with = layers - without;
        Weights {
            plain: all.plain + with * hidden * f64::from(mixture.total),
            dense: all.dense
                + with * self.mlp_weights(mixture.shared_intermediate_size)
                + without * self.mlp_weights(mixture.dense_intermediate_size),
            experts: with * experts * self.mlp_weights(self.intermediate_size),
        }
    }

    /// Weights of the embedding, which is as large as the output layer.
    pub fn embedding_weights(&self) -> f64 {
        f64::from(self.vocabulary) * f64::from(self.hidden_size)
    }

    /// Embedding and output layer together.
    fn table_weights(&self) -> f64 {
        let tables = if self.tied_embeddings { 1.0 } else { 2.0 };
        tables * self.embedding_weights()
    }

    /// All weights.
    pub fn weights(&self) -> f64 {
        let experts = self.experts.map_or(0.0, |mixture| f64::from(mixture.total));
        self.layer_weights(experts).total() + self.table_weights()
    }

    /// Weights of all layers that one token meets, in products of bf16 that take as long, on a GPU
    /// that computes so many times as many of a format.
    pub fn products_per_token(&self, speed: impl Fn(Format) -> f64) -> f64 {
        let experts = self.experts.map_or(0.0, |mixture| f64::from(mixture.active));
        let weights = self.layer_weights(experts);
        let Formats { dense, experts, .. } = self.formats;
        weights.plain + weights.dense / speed(dense) + weights.experts / speed(experts)
    }

    /// Bytes of the weights of all layers that at least one of `tokens` tokens meets.
    pub fn bytes_met(&self, tokens: u32) -> f64 {
        self.bytes(self.layer_weights(self.experts.map_or(0.0, |mixture| mixture.met(tokens))))
    }

    /// Bytes of all weights.
    pub fn weight_bytes(&self) -> f64 {
        let experts = self.experts.map_or(0.0, |mixture| f64::from(mixture.total));
        let tables = self.table_weights() * f64::from(self.bytes_per_parameter);
        self.bytes(self.layer_weights(experts)) + tables
    }

    /// Bytes of the weights on one of the GPUs that share the model, in each stage of a pipeline.
    pub(crate) fn rank_bytes(&self, parallel: Parallel) -> impl Iterator<Item = f64> {
        let Parallel { tp, pp, dp, .. } = parallel;
        let tp = f64::from(tp);
        let experts = self.experts.map_or(0.0, |mixture| f64::from(mixture.total));
        // Experts are on all ranks together, the rest on each.
        let layers = self.bytes(self.layer_weights(experts / f64::from(dp)));
        let bytes = f64::from(self.bytes_per_parameter);
        let (tables, all) = (bytes * self.table_weights(), f64::from(self.layers));
        let one = bytes * self.embedding_weights();
        parallel.stages(self.layers).enumerate().map(move |(at, here)| {
            let last = pp as usize - 1;
            let tables = match at {
                0 if last == 0 => tables,
                at if at == 0 || at == last => one,
                _ => 0.0,
            };
            (layers * (f64::from(here) / all) + tables) / tp
        })
    }

    fn bytes(&self, weights: Weights) -> f64 {
        let plain = f64::from(self.bytes_per_parameter);
        let Formats { dense, experts, .. } = self.formats;
        // vLLM pads experts in MXFP4 to widths that its kernels like.
        let width = match experts {
            Format::Mxfp4 => self.intermediate_size.next_multiple_of(256),
            _ => self.intermediate_size,
        };
        let padded = f64::from(width) / f64::from(self.intermediate_size);
        weights.plain * plain
            + weights.dense * dense.bytes(plain)
            + weights.experts * experts.bytes(plain) * padded
    }

    /// Bytes that a token occupies in the KV cache: keys and values of all layers.
    pub fn kv_bytes_per_token(&self) -> f64 {
        let numbers = match self.latent {
            Some(latent) => f64::from(latent.kv_rank + latent.rope_dim),
            None => 2.0 * f64::from(self.kv_heads) * f64::from(self.head_dim),
        };
        let bytes = if self.formats.kv_fp8 { 1.0 } else { f64::from(self.bytes_per_parameter) };
        f64::from(self.layers) * numbers * bytes
    }

    /// Share of the KV cache that each of `tp` GPUs holds. None holds less than one KV head, and
    /// compressed keys and values are not divided.
    pub fn kv_share(&self, tp: u32) -> f64 {
        let heads = if self.latent.is_some() { 1 } else { self.kv_heads };
        (f64::from(heads) / f64::from(tp)).max(1.0) / f64::from(heads)
    }

    /// Operations of attention for one query-key pair, in all layers and heads: two products.
    pub fn operations_per_pair(&self) -> f64 {
        let width = f64::from(self.query_heads) * f64::from(self.head_dim);
        4.0 * f64::from(self.layers) * width
    }
}

impl Weights {
    fn total(self) -> f64 {
        self.plain + self.dense + self.experts
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
        formats: Formats { dense: Format::Plain, experts: Format::Plain, kv_fp8: false },
        latent: None,
        window: None,
    };

    pub(crate) const MIXTRAL: ModelShape = ModelShape {
        vocabulary: 32_000,
        experts: Some(Experts {
            total: 8,
            active: 2,
            shared_intermediate_size: 0,
            dense_layers: 0,
            dense_intermediate_size: 0,
        }),
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
        let active = MIXTRAL.products_per_token(|_| 1.0) + 2.0 * MIXTRAL.embedding_weights();
        assert!((billions(active) - 12.88).abs() < 0.011, "{}", billions(active));
    }

    #[test]
    fn a_token_of_llama_8b_is_128_kib_of_cache() {
        assert!((LLAMA_8B.kv_bytes_per_token() - 131_072.0).abs() < 1e-9);
    }

    #[test]
    fn many_tokens_meet_all_experts_and_one_token_meets_its_own() {
        let one = MIXTRAL.bytes_met(1) / MIXTRAL.products_per_token(|_| 1.0);
        assert!((one - 2.0).abs() < 1e-9);
        let all = MIXTRAL.weights() - 2.0 * MIXTRAL.embedding_weights();
        assert!((MIXTRAL.bytes_met(1000) / all - 2.0).abs() < 1e-9);
        let dense = LLAMA_8B.bytes_met(1) - 2.0 * LLAMA_8B.products_per_token(|_| 1.0);
        assert!(dense.abs() < 1e-9);
    }

    #[test]
    fn quantised_weights_take_their_bytes_and_the_tables_stay_as_they_are() {
        let fp8 = Formats { dense: Format::Fp8, kv_fp8: true, ..Formats::default() };
        let fp8 = ModelShape { formats: fp8, ..LLAMA_8B };
        let tables = 2.0 * LLAMA_8B.embedding_weights() * 2.0;
        let ratio = (LLAMA_8B.weight_bytes() - tables) / (fp8.weight_bytes() - tables);
        assert!((ratio - 2.0).abs() < 1e-3, "{ratio}");
        assert!((LLAMA_8B.kv_bytes_per_token() / fp8.kv_bytes_per_token() - 2.0).abs() < 1e-9);
    }
}
