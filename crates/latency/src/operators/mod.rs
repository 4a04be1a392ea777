//! `operators`: step time composed of operators that were measured one at a time.
//!
//! For a model on some GPUs, everything that depends on the tokens of a step alone (products of
//! matrices, experts, all-reduce and what lies between them) becomes one curve, and attention two
//! or three grids. No operator takes less time than its bytes and products do on the data sheet,
//! nor less than the products do on a GPU at its power limit, where that is known. Where servers
//! are known to take longer than the tables, they do here (`served`). The host's time is that of a
//! measured server.
//!
//! A step goes through the stages of a pipeline one after another, and what a layer hands to the
//! next stage is sent. With data parallelism a step is that of all ranks: the busiest of them, with
//! its share of the sequences, takes the time of attention and of what is dense, and the experts
//! get the tokens of all.

mod curve;
mod parts;
mod served;
mod tables;

pub use tables::{checksum, gpus, versions};

use crate::catalogue::Gpu;
use crate::model::ModelShape;
use crate::parallel::Parallel;
use crate::profile::host::Host;
use crate::profile::padding::Padding;
use crate::profile::{VARIABLES, variables};
use crate::shape::{HostTime, StepShape, StepTime};
use crate::window;
use blis_core::Span;
use blis_core::math::{count, float};
use curve::{Curve, Grid};
use parts::Parts;

/// What the time of a context token is, as a share, if another sequence of the batch has read it
/// already: `data/h200/shared_reads.csv`.
const SHARED_READ: f64 = 0.6;

/// Layers of the server whose host was measured: pieces between the layers are launched by layer.
const MEASURED_LAYERS: f64 = 32.0;

/// The largest value of each of `VARIABLES` that operators were measured at.
const MEASURED: [f64; VARIABLES.len()] = [2048.0, 131_072.0, 131_072.0, 256.0, 16_384.0, 131_072.0];

/// Why operators do not make a step of a model.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum OperatorError {
    /// No tables ship for the GPU.
    #[error("no operators were measured on `{0}`")]
    Gpu(String),
    /// The model cannot be shared so.
    #[error("`{name}` is `{value}`; legal: {legal}")]
    Shared {
        /// Which number.
        name: &'static str,
        /// The value found.
        value: String,
        /// What is legal.
        legal: String,
    },
    /// The tensor parallelism does not divide the heads.
    #[error("tensor parallelism `{tp}` does not divide {heads} query heads; legal: 1 or a divisor")]
    Parallelism {
        /// The value found.
        tp: u32,
        /// Query heads of the model.
        heads: u32,
    },
    /// An operator of the model was not measured.
    #[error("{what} was not measured on `{gpu}`")]
    Missing {
        /// Which operator.
        what: String,
        /// The GPU.
        gpu: String,
    },
}

/// Step time of a model on GPUs whose operators were measured.
#[derive(Clone, Debug, PartialEq)]
pub struct Operators {
    /// All that depends on the tokens of a step, in microseconds.
    tokens: Curve,
    /// With data parallelism, what depends on the tokens of all ranks.
    all_tokens: Option<Curve>,
    dp: u32,
    /// The share of the layers that each stage of a pipeline has.
    stages: Vec<f64>,
    /// The output layer, by sequences.
    output: Curve,
    /// Attention of those that decode, by sequences and mean context.
    decode: Grid,
    /// Attention of those that catch up, by sequences and query-key pairs of each.
    pairs: Option<Grid>,
    /// Attention that depends on the tokens of a sequence: in a window, or with its projections.
    lengths: Option<Grid>,
    /// Microseconds of a query-key pair with cached tokens, where `pairs` does not have it.
    past_pair_us: f64,
    padding: Padding,
    host: Option<Host>,
    notes: Vec<String>,
}

impl Operators {
    /// The operators of `model` on GPUs that share it so, in a server that pads its batches so and
    /// whose host takes so long.
    ///
    /// # Errors
    /// If they were not measured, or the model cannot be shared so.
    pub fn new(
        model: &ModelShape,
        gpu: &Gpu,
        parallel: Parallel,
        padding: Padding,
        host: Option<&Host>,
    ) -> Result<Operators, OperatorError> {
        check(model, parallel)?;
        let parts = Parts::new(model, gpu, parallel)?;
        let layers = f64::from(model.layers);
        let launched = layers / f64::from(parallel.pp);
        let host = host.map(|host| host.for_layers(launched / MEASURED_LAYERS));
        let all_tokens = || Curve::new(1 << 17, |tokens| parts.all_tokens(tokens));
        Ok(Operators {
            tokens: Curve::new(1 << 17, |tokens| parts.tokens(tokens)),
            all_tokens: (parallel.dp > 1).then(all_tokens),
            dp: parallel.dp,
            stages: parallel.stages(model.layers).map(|here| f64::from(here) / layers).collect(),
            output: Curve::new(1 << 12, |seqs| parts.output(seqs)),
            decode: Grid::new([1 << 12, 1 << 18], |seqs, context| parts.decode(seqs, context)),
            pairs: parts.pairs_grid(),
            lengths: parts.lengths_grid(),
            past_pair_us: parts.past_pair_us(),
            padding,
            host,
            notes: parts.notes(),
        })
    }

    /// What was not measured and is scaled from what was, in words.
    pub fn notes(&self) -> &[String] {
        &self.notes
    }

    /// How long the GPUs take for a step whose dense layers compute `tokens` tokens on a rank.
    pub fn step_micros(&self, shape: &StepShape, tokens: u32) -> f64 {
        let Some(all_tokens) = &self.all_tokens else { return self.rank_micros(shape, tokens) };
        let rank = busiest(shape, self.dp);
        self.rank_micros(&rank, tokens) + all_tokens.at(shape.tokens().into())
    }

    fn rank_micros(&self, shape: &StepShape, tokens: u32) -> f64 {
        let outputs = self.output.at(shape.outputs().into());
        let mut micros = self.tokens.at(tokens.into()) + outputs;
        if shape.decode_seqs > 0 {
            let saved = (1.0 - SHARED_READ) * float(shape.shared_context);
            let read = (float(shape.decode_context) - saved).max(0.0);
            let mean = count(read / f64::from(shape.decode_seqs));
            let all = self.decode.at(shape.decode_seqs.into(), mean);
            micros += all.max(self.decode.at(1, shape.decode_longest.into()));
        }
        if shape.prefill_seqs > 0 {
            micros += self.prefill_micros(shape);
        }
        micros
    }

    fn prefill_micros(&self, shape: &StepShape) -> f64 {
        let (seqs, tokens) = (u64::from(shape.prefill_seqs), u64::from(shape.prefill_tokens));
        let pairs = shape.prefill_attention_pairs;
        let full = self.pairs.as_ref().map_or(0.0, |grid| grid.at(seqs, pairs / seqs));
        let lengths = self.lengths.as_ref().map_or(0.0, |grid| grid.at(seqs, tokens / seqs));
        let fresh = tokens * (tokens / seqs + 1) / 2;
        full + lengths + self.past_pair_us * float(pairs.saturating_sub(fresh))
    }

    /// Tokens that the dense layers compute in a server.
    fn padded(&self, shape: &StepShape) -> u32 {
        let sizes = if shape.only_decodes() { &self.padding.decode } else { &self.padding.prefill };
        let tokens = if self.dp > 1 { busiest(shape, self.dp).tokens() } else { shape.tokens() };
        sizes.hold(tokens)
    }
}

/// What the rank with most sequences computes of a step, if they are spread evenly.
fn busiest(shape: &StepShape, dp: u32) -> StepShape {
    let part = |seqs: u32| (u64::from(seqs.div_ceil(dp)), u64::from(seqs.max(1)));
    let of = |number: u64, (here, all): (u64, u64)| (number * here).div_ceil(all);
    let small = |number: u32, part| u32::try_from(of(number.into(), part)).unwrap_or(u32::MAX);
    let (prefill, decode) = (part(shape.prefill_seqs), part(shape.decode_seqs));
    StepShape {
        prefill_seqs: shape.prefill_seqs.div_ceil(dp),
        prefill_tokens: small(shape.prefill_tokens, prefill),
        prefill_past_tokens: of(shape.prefill_past_tokens, prefill),
        prefill_attention_pairs: of(shape.prefill_attention_pairs, prefill),
        decode_seqs: shape.decode_seqs.div_ceil(dp),
        draft_tokens: small(shape.draft_tokens, decode),
        decode_context: of(shape.decode_context, decode),
        decode_longest: shape.decode_longest,
        shared_context: of(shape.shared_context, decode),
    }
}

/// Refuses what vLLM does, and what nobody has looked at.
fn check(model: &ModelShape, parallel: Parallel) -> Result<(), OperatorError> {
    let Parallel { tp, pp, dp, expert } = parallel;
    let heads = model.query_heads;
    if tp == 0 || !heads.is_multiple_of(tp) {
        return Err(OperatorError::Parallelism { tp, heads });
    }
    let refused =
        |name, value: String, legal: String| Err(OperatorError::Shared { name, value, legal });
    match model.experts {
        _ if pp == 0 || pp > model.layers => {
            let legal = format!("1 to {}, the layers of the model", model.layers);
            refused("pp", pp.to_string(), legal)
        }
        _ if dp == 0 || (dp > 1 && pp > 1) => {
            refused("dp", dp.to_string(), "1 or more, and 1 in a pipeline".to_owned())
        }
        None if dp > 1 => {
            let legal = "1 for a model without experts, whose ranks are instances of their own";
            refused("dp", dp.to_string(), legal.to_owned())
        }
        None if expert => {
            refused("expert_parallel", "true".to_owned(), "false without experts".to_owned())
        }
        Some(experts) if expert && !experts.total.is_multiple_of(tp * dp) => {
            let legal = format!("a number of GPUs that divides {} experts", experts.total);
            refused("expert_parallel", format!("true on {} GPUs", tp * dp), legal)
        }
        _ => Ok(()),
    }
}

impl StepTime for Operators {
    fn predict(&self, shape: &StepShape) -> Span {
        let seen = if shape.only_decodes() { window::middle(shape) } else { *shape };
        let micros = self.step_micros(&seen, self.padded(&seen));
        Span::from_micros_f64(micros).max(Span::from_nanos(1))
    }

    fn divide(&self, shape: &StepShape, total: Span, stages: &mut [Span]) {
        let output = Span::from_micros_f64(self.output.at(shape.outputs().into())).min(total);
        let layers = float((total - output).as_nanos());
        for (span, share) in stages.iter_mut().zip(&self.stages) {
            *span = Span::from_nanos(count(layers * share));
        }
        if let Some(last) = stages.last_mut() {
            *last += output;
        }
    }

    fn host(&self, shape: &StepShape) -> HostTime {
        // Each rank has a host of its own.
        let rank = if self.dp > 1 { busiest(shape, self.dp) } else { *shape };
        let host = self.host.as_ref();
        host.map_or_else(HostTime::default, |host| host.padded_time(&rank, &self.padding))
    }

    fn ingress(&self, _input_tokens: u32) -> Span {
        self.host.as_ref().map_or(Span::ZERO, Host::ingress)
    }

    fn output(&self, seqs: u32) -> Span {
        self.host.as_ref().map_or(Span::ZERO, |host| host.output(seqs))
    }

    fn context_free(&self) -> bool {
        false
    }

    fn repeats(&self, shape: &StepShape) -> u32 {
        if shape.only_decodes() { window::left(shape) } else { 1 }
    }

    fn wants_spread(&self) -> bool {
        true
    }

    fn beyond(&self, shape: &StepShape) -> u32 {
        let seen = if shape.only_decodes() { window::middle(shape) } else { *shape };
        let values = variables(&seen).into_iter().zip(MEASURED).enumerate();
        let outside = values.filter(|(_, (value, most))| value.is_some_and(|value| value > *most));
        outside.fold(0, |bits, (index, _)| bits | 1 << index)
    }
}

#[cfg(test)]
mod tests;
