//! The roofline against steps that were measured apart on an H200.

use crate::h200::grid;
use blis_latency::fit::efficiency::{fit_efficiency, mean_error};
use blis_latency::fit::log::Row;
use blis_latency::{Catalogue, Format, Formats, ModelShape, Roofline, StepShape};

fn rows(keep: impl Fn(&StepShape) -> bool) -> Vec<Row> {
    grid(keep).rows
}

#[test]
fn the_shipped_efficiencies_are_those_that_fit_the_grid() {
    let catalogue = Catalogue::shipped();
    let gpu = catalogue.gpu("h200").expect("known");
    let model = catalogue.model("llama-3.1-8b").expect("known").shape();
    let shipped = catalogue.efficiency(gpu).expect("known");
    let rows = rows(|_| true);
    let fitted = fit_efficiency(model, gpu.sheet(), shipped, &rows).expect("legal");
    let error = |efficiency| {
        let roofline = Roofline::new(model, gpu.sheet(), 1, efficiency).expect("legal");
        mean_error(&roofline, &rows)
    };
    assert!(error(shipped) < 0.04, "{}", error(shipped));
    assert!(error(shipped) - error(fitted) < 0.002, "{fitted:?}");
}

#[test]
fn decode_steps_are_within_2_percent_on_average_and_others_within_6() {
    let catalogue = Catalogue::shipped();
    let gpu = catalogue.gpu("h200").expect("known");
    let model = catalogue.model("llama-3.1-8b").expect("known").shape();
    let efficiency = catalogue.efficiency(gpu).expect("known");
    let roofline = Roofline::new(model, gpu.sheet(), 1, efficiency).expect("legal");
    let error = |keep: &dyn Fn(&StepShape) -> bool| mean_error(&roofline, &rows(keep));
    let decode = error(&|shape| shape.prefill_tokens == 0);
    let prefill = error(&|shape| shape.decode_seqs == 0);
    let mixed = error(&|shape| shape.decode_seqs > 0 && shape.prefill_tokens > 0);
    let long = error(&|shape| shape.decode_longest >= 4096);
    assert!(decode < 0.02 && long < 0.02, "decode {decode}, long {long}");
    assert!(prefill < 0.06 && mixed < 0.05, "prefill {prefill}, mixed {mixed}");
}

/// `LLaMA` 7B, which has no grouped queries.
const LLAMA_7B: ModelShape = ModelShape {
    layers: 32,
    hidden_size: 4096,
    query_heads: 32,
    kv_heads: 32,
    head_dim: 128,
    intermediate_size: 11008,
    vocabulary: 32000,
    bytes_per_parameter: 2,
    experts: None,
    tied_embeddings: false,
    max_model_len: 4096,
    formats: Formats { dense: Format::Plain, experts: Format::Plain, kv_fp8: false },
    latent: None,
    window: None,
};

/// Seconds that one batch takes from its prompts to its last token.
fn batch_seconds(roofline: &Roofline, batch: u32, input: u32, output: u32) -> f64 {
    let each = u64::from(input);
    let prompts = StepShape {
        prefill_seqs: batch,
        prefill_tokens: batch * input,
        prefill_attention_pairs: u64::from(batch) * each * (each + 1) / 2,
        ..StepShape::default()
    };
    let decodes = (1..output).map(|token| StepShape {
        decode_seqs: batch,
        decode_context: u64::from(batch) * u64::from(input + token),
        decode_longest: input + token,
        ..StepShape::default()
    });
    let micros = |shape: StepShape| roofline.step_micros(&shape);
    (micros(prompts) + decodes.map(micros).sum::<f64>()) / 1e6
}

/// `LLaMA` 7B in FP16 on an A100 of 80 GB, as published for TensorRT-LLM 0.6.1 (throughput) and 0.5
/// (first token) in `docs/source/performance.md` of its repository.
#[test]
fn an_a100_with_borrowed_efficiencies_is_as_far_from_published_figures_as_its_page_says() {
    let catalogue = Catalogue::shipped();
    let gpu = catalogue.gpu("A100-80").expect("known");
    assert!(gpu.caveat().is_some(), "measured by now: this test compares what is borrowed");
    let efficiency = catalogue.efficiency(gpu).expect("known");
    let roofline = Roofline::new(LLAMA_7B, gpu.sheet(), 1, efficiency).expect("legal");
    let mut found = Vec::new();
    for (batch, input, output, published) in
        [(384, 128, 128, 5586.0), (60, 128, 2048, 1928.0), (52, 2048, 128, 591.0)]
    {
        let tokens = f64::from(batch * output) / batch_seconds(&roofline, batch, input, output);
        found.push(tokens / published - 1.0);
    }
    for (input, published) in [(128, 0.016), (2048, 0.133)] {
        found.push(batch_seconds(&roofline, 1, input, 1) / published - 1.0);
    }
    // As `docs/reference/hardware.md` says.
    let page = [-0.136, 0.033, -0.166, -0.201, 0.194];
    for (found, page) in found.iter().zip(page) {
        assert!((found - page).abs() < 0.005, "{found} against {page}");
    }
}
