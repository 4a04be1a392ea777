//! `roofline`: step time from the shape of a model and the data sheet of a GPU.
//!
//! Dense layers are bound by memory or by computing, whichever is slower; attention reads the KV
//! cache; tensor parallelism adds two all-reduces a layer. How much of the data sheet is reached is
//! an efficiency vector, fitted to steps measured on an H200. It knows nothing of a server: what
//! the host adds is missing, and padding is not looked at.

use crate::model::{Format, ModelShape};
use crate::shape::{StepShape, StepTime};
use crate::window;
use blis_core::Span;
use blis_core::math::float;

/// What reading a token of a shared context again takes, as a share of the first time: measured on
/// an H200 (`data/h200/shared_reads.csv`, from 64 sequences on).
const SHARED_READ: f64 = 0.62;

/// What a data sheet promises, for one GPU.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct GpuSheet {
    /// Dense bf16 peak in TFLOP/s.
    pub bf16_tflops: f64,
    /// Memory bandwidth in TB/s.
    pub bandwidth_tb_s: f64,
    /// Bandwidth to the other GPUs in GB/s, both directions together.
    pub link_gb_s: f64,
    /// Whether it computes products of FP8 numbers.
    pub fp8: bool,
    /// Whether it computes products of FP4 numbers.
    pub fp4: bool,
}

impl GpuSheet {
    /// How many times as many products as in bf16 it computes. What it does not know is computed
    /// in bf16.
    pub fn speed(&self, format: Format) -> f64 {
        match format {
            Format::Fp8 | Format::Fp8Block if self.fp8 => 2.0,
            Format::Nvfp4 if self.fp4 => 4.0,
            _ => 1.0,
        }
    }
}

/// How much of a data sheet is reached.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Efficiency {
    /// Share of the memory bandwidth.
    pub memory: f64,
    /// Share of the peak that dense layers reach.
    pub compute: f64,
    /// Share of the peak that prefill attention reaches.
    pub attention: f64,
    /// Microseconds that each layer takes beyond reading its weights.
    pub layer_us: f64,
    /// Microseconds for each sequence: sampling, and setting up its attention.
    pub sequence_us: f64,
    /// KV heads that must be read at the same time to use the whole bandwidth.
    pub heads_to_saturate: f64,
    /// Microseconds that an all-reduce takes beyond moving its bytes.
    pub all_reduce_us: f64,
}

/// Step time of a model on GPUs.
#[derive(Clone, Debug, PartialEq)]
pub struct Roofline {
    model: ModelShape,
    gpu: GpuSheet,
    tp: u32,
    efficiency: Efficiency,
}

/// Why a roofline was refused.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum RooflineError {
    /// A number of the data sheet or the efficiencies is illegal.
    #[error("`{name}` is `{value}`; legal: more than 0")]
    NotPositive {
        /// Which number.
        name: &'static str,
        /// The value found.
        value: f64,
    },
    /// The tensor parallelism does not divide the heads.
    #[error("tensor parallelism `{tp}` does not divide {heads} query heads; legal: 1 or a divisor")]
    Parallelism {
        /// The value found.
        tp: u32,
        /// Query heads of the model.
        heads: u32,
    },
}

impl Roofline {
    /// The roofline of `model` on `tp` GPUs.
    ///
    /// # Errors
    /// If a number is not positive, or `tp` does not divide the query heads.
    pub fn new(
        model: ModelShape,
        gpu: GpuSheet,
        tp: u32,
        efficiency: Efficiency,
    ) -> Result<Roofline, RooflineError> {
        let positive = [
            ("bf16_tflops", gpu.bf16_tflops),
            ("bandwidth_tb_s", gpu.bandwidth_tb_s),
            ("link_gb_s", gpu.link_gb_s),
            ("memory", efficiency.memory),
            ("compute", efficiency.compute),
            ("attention", efficiency.attention),
        ];
        let illegal = |&&(_, value): &&(&str, f64)| !(value > 0.0 && value.is_finite());
        if let Some(&(name, value)) = positive.iter().find(illegal) {
            return Err(RooflineError::NotPositive { name, value });
        }
        if tp == 0 || !model.query_heads.is_multiple_of(tp) {
            return Err(RooflineError::Parallelism { tp, heads: model.query_heads });
        }
        Ok(Roofline { model, gpu, tp, efficiency })
    }

    /// How long a step takes, in microseconds.
    pub fn step_micros(&self, shape: &StepShape) -> f64 {
        let seqs = shape.prefill_seqs + shape.decode_seqs;
        let tokens = shape.tokens();
        self.dense_micros(tokens, shape.outputs())
            + self.attention_micros(shape)
            + self.all_reduce_micros(tokens)
            + self.efficiency.sequence_us * f64::from(seqs)
    }

    /// Bytes that one GPU reads in a microsecond.
    fn bytes_per_us(&self) -> f64 {
        self.gpu.bandwidth_tb_s * 1e6 * self.efficiency.memory
    }

    /// Dense layers and the output layer: memory and computing overlap, but not all of the time,
    /// so that the slower counts in full and the faster in part.
    fn dense_micros(&self, tokens: u32, outputs: u32) -> f64 {
        let shares = f64::from(self.tp);
        let output = self.model.embedding_weights();
        let output_bytes = output * f64::from(self.model.bytes_per_parameter);
        let read = (self.model.bytes_met(tokens) + output_bytes) / shares;
        let memory =
            read / self.bytes_per_us() + f64::from(self.model.layers) * self.efficiency.layer_us;
        let products = self.model.products_per_token(|format| self.gpu.speed(format))
            * f64::from(tokens)
            + output * f64::from(outputs);
        let peak = self.gpu.bf16_tflops * 1e6 * self.efficiency.compute;
        let compute = 2.0 * products / shares / peak;
        (memory * memory + compute * compute).sqrt()
    }

    fn attention_micros(&self, shape: &StepShape) -> f64 {
        let shares = f64::from(self.tp);
        let operations = self.model.operations_per_pair() * float(shape.prefill_attention_pairs);
        let peak = self.gpu.bf16_tflops * 1e6 * self.efficiency.attention;
        let heads = (f64::from(self.model.kv_heads) / shares).max(1.0);
        let share = self.model.kv_share(self.tp);
        let token_us = self.model.kv_bytes_per_token() * share / self.bytes_per_us();
        let longest = match (shape.decode_longest, shape.decode_seqs) {
            (_, 0) => 0.0,
            (0, seqs) => float(shape.decode_context) / f64::from(seqs),
            (longest, _) => f64::from(longest),
        };
        let alone = longest * self.efficiency.heads_to_saturate / heads;
        let saved = float(shape.shared_context.min(shape.decode_context)) * (1.0 - SHARED_READ);
        let distinct = float(shape.decode_context) - saved;
        let read = distinct.max(alone) + float(shape.prefill_past_tokens);
        operations / shares / peak + read * token_us
    }

    /// Two all-reduces a layer, by a ring.
    fn all_reduce_micros(&self, tokens: u32) -> f64 {
        if self.tp == 1 {
            return 0.0;
        }
        let shares = f64::from(self.tp);
        let width = f64::from(self.model.hidden_size * self.model.bytes_per_parameter);
        let bytes = f64::from(tokens) * width * 2.0 * (shares - 1.0) / shares;
        let one_way = self.gpu.link_gb_s * 1e3 / 2.0;
        2.0 * f64::from(self.model.layers) * (self.efficiency.all_reduce_us + bytes / one_way)
    }
}

impl StepTime for Roofline {
    fn predict(&self, shape: &StepShape) -> Span {
        let seen = if shape.only_decodes() { window::middle(shape) } else { *shape };
        Span::from_micros_f64(self.step_micros(&seen)).max(Span::from_nanos(1))
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
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::tests::{LLAMA_8B, MIXTRAL};

    const IDEAL: Efficiency = Efficiency {
        memory: 1.0,
        compute: 1.0,
        attention: 1.0,
        layer_us: 0.0,
        sequence_us: 0.0,
        heads_to_saturate: 1.0,
        all_reduce_us: 0.0,
    };

    const ROUND: GpuSheet = GpuSheet {
        bf16_tflops: 1000.0,
        bandwidth_tb_s: 5.0,
        link_gb_s: 900.0,
        fp8: true,
        fp4: false,
    };

    #[test]
    fn only_blackwell_computes_in_fp4_and_ampere_computes_all_in_bf16() {
        let catalogue = crate::Catalogue::shipped();
        let speeds = |gpu| {
            let sheet = catalogue.gpu(gpu).expect(gpu).sheet();
            let formats = [Format::Plain, Format::Fp8Block, Format::Nvfp4, Format::Mxfp4];
            format!("{:?}", formats.map(|format| sheet.speed(format)))
        };
        assert_eq!(speeds("A100-80"), "[1.0, 1.0, 1.0, 1.0]");
        assert_eq!(speeds("H100"), "[1.0, 2.0, 1.0, 1.0]");
        assert_eq!(speeds("L40S"), speeds("H100"));
        assert_eq!(speeds("B200"), "[1.0, 2.0, 4.0, 1.0]");
    }

    fn decode(seqs: u32, context: u64) -> StepShape {
        StepShape {
            decode_seqs: seqs,
            decode_context: u64::from(seqs) * context,
            decode_longest: u32::try_from(context).expect("small"),
            ..StepShape::default()
        }
    }

    fn prefill(tokens: u32) -> StepShape {
        let n = u64::from(tokens);
        StepShape {
            prefill_seqs: 1,
            prefill_tokens: tokens,
            prefill_attention_pairs: n * (n + 1) / 2,
            ..StepShape::default()
        }
    }

    fn ideal(model: ModelShape, tp: u32) -> Roofline {
        Roofline::new(model, ROUND, tp, IDEAL).expect("legal")
    }

    #[test]
    fn one_sequence_takes_the_time_to_read_the_weights_and_its_cache() {
        let found = ideal(LLAMA_8B, 1).step_micros(&decode(1, 10_000));
        let weights = 2.0 * (LLAMA_8B.weights() - LLAMA_8B.embedding_weights());
        let expected = (weights + 10_000.0 * 131_072.0) / 5e6;
        assert!((found / expected - 1.0).abs() < 1e-3, "{found} against {expected}");
    }

    #[test]
    fn a_shared_token_takes_the_share_of_the_time_that_was_measured() {
        let roofline = ideal(LLAMA_8B, 1);
        let [shorter, apart] =
            [384, 896].map(|context| roofline.step_micros(&decode(128, context)));
        let token = (apart - shorter) / (128.0 * 512.0);
        let shared = StepShape { shared_context: 127 * 512, ..decode(128, 896) };
        let saved = apart - roofline.step_micros(&shared);
        assert!((1.0 - saved / (127.0 * 512.0) / token - SHARED_READ).abs() < 1e-6);
    }

    #[test]
    fn a_long_prompt_takes_the_time_of_its_operations() {
        let found = ideal(LLAMA_8B, 1).step_micros(&prefill(8192));
        let dense = 2.0 * LLAMA_8B.products_per_token(|_| 1.0) * 8192.0 / 1e9;
        let pairs = 4.0 * 32.0 * 4096.0 * 8192.0 * 8193.0 / 2.0 / 1e9;
        assert!((found / (dense + pairs) - 1.0).abs() < 1e-2, "{found}");
    }

    #[test]
    fn a_draft_takes_products_and_no_second_read_of_the_cache() {
        let roofline = ideal(LLAMA_8B, 1);
        let plain = decode(64, 4_000);
        let drafted = StepShape { draft_tokens: 192, ..plain };
        let more = roofline.step_micros(&drafted) - roofline.step_micros(&plain);
        let dense = roofline.dense_micros(256, 256) - roofline.dense_micros(64, 64);
        assert!(more > 0.0 && (more - dense).abs() < 1e-6, "{more} against {dense}");
    }

    #[test]
    fn two_gpus_halve_everything_but_the_all_reduce() {
        let shape = decode(64, 1000);
        let one = ideal(LLAMA_8B, 1).step_micros(&shape);
        let two = ideal(LLAMA_8B, 2);
        let reduce = 64.0 * 64.0 * 4096.0 * 2.0 / 450e3;
        let expected = one / 2.0 + reduce;
        let found = two.step_micros(&shape);
        assert!((found / expected - 1.0).abs() < 1e-6, "{found} against {expected}");
    }

    #[test]
    fn a_mixture_of_experts_reads_more_experts_for_more_tokens() {
        let takes = |seqs| ideal(MIXTRAL, 2).step_micros(&decode(seqs, 16));
        let dense = |seqs| ideal(LLAMA_8B, 2).step_micros(&decode(seqs, 16));
        assert!(takes(16) / takes(1) > 2.0);
        assert!(dense(16) / dense(1) < 1.1);
    }

    #[test]
    fn more_work_never_takes_less_time_and_a_run_takes_as_long_as_its_steps() {
        let efficiency = Efficiency { heads_to_saturate: 96.0, layer_us: 30.0, ..IDEAL };
        for model in [LLAMA_8B, MIXTRAL] {
            let roofline = Roofline::new(model, ROUND, 4, efficiency).expect("legal");
            for seqs in [1, 12, 100] {
                let shape = decode(seqs, 1003);
                assert!(roofline.predict(&decode(seqs + 1, 1003)) >= roofline.predict(&shape));
                assert!(roofline.predict(&shape.after(16)) >= roofline.predict(&shape));
                let stepped = (0..50).map(|step| roofline.predict(&shape.after(step)));
                let total = stepped.fold(Span::ZERO, |total, step| total + step);
                assert_eq!(roofline.run(&shape, 50), total);
            }
            for tokens in [1, 100, 2000] {
                let more = roofline.predict(&prefill(tokens + 1));
                assert!(more >= roofline.predict(&prefill(tokens)));
            }
        }
    }

    #[test]
    fn illegal_machines_are_refused() {
        let sheet = GpuSheet { bandwidth_tb_s: 0.0, ..ROUND };
        let message = Roofline::new(LLAMA_8B, sheet, 1, IDEAL).expect_err("illegal").to_string();
        assert_eq!(message, "`bandwidth_tb_s` is `0`; legal: more than 0");
        for tp in [0, 3] {
            let error = Roofline::new(LLAMA_8B, ROUND, tp, IDEAL).expect_err("illegal");
            assert_eq!(error, RooflineError::Parallelism { tp, heads: 32 });
        }
    }
}
