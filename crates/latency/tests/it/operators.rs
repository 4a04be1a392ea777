//! Measured operators against steps that they were not made from: of our own server on an H200, by
//! CUDA graphs and without its host, and of vLLM 0.26, where its logs show the GPU's time. Nothing
//! is fitted to either.

use crate::h200::{grid, logged};
use blis_core::math::float;
use blis_latency::fit::log::Row;
use blis_latency::profile::padding::Padding;
use blis_latency::{Catalogue, Operators, StepShape};

fn llama_8b() -> Operators {
    let catalogue = Catalogue::shipped();
    let gpu = catalogue.gpu("H200").expect("known");
    let model = catalogue.model("llama-3.1-8b").expect("known").shape();
    Operators::new(&model, gpu, 1, Padding::none(), None).expect("measured")
}

/// The mean of the errors' absolute values, and of the errors.
fn errors(rows: &[Row], padding: &Padding) -> (f64, f64) {
    let operators = llama_8b();
    let error = |row: &Row| {
        let tokens = row.shape.prefill_tokens + row.shape.decode_seqs;
        let sizes = if row.shape.only_decodes() { &padding.decode } else { &padding.prefill };
        operators.step_micros(&row.shape, sizes.hold(tokens)) / row.micros - 1.0
    };
    let errors: Vec<f64> = rows.iter().map(error).collect();
    let mean = |of: &dyn Fn(f64) -> f64| {
        errors.iter().map(|&error| of(error)).sum::<f64>() / float(errors.len() as u64)
    };
    (mean(&f64::abs), mean(&|error| error))
}

#[test]
fn single_steps_on_an_h200_are_within_5_percent_decoding_and_within_10_otherwise() {
    let of = |keep: &dyn Fn(&StepShape) -> bool| errors(&grid(keep).rows, &Padding::none());
    let decode = of(&|shape| shape.prefill_tokens == 0);
    let prefill = of(&|shape| shape.decode_seqs == 0);
    let mixed = of(&|shape| shape.decode_seqs > 0 && shape.prefill_tokens > 0);
    eprintln!("{decode:?} {prefill:?} {mixed:?}");
    assert!(decode.0 < 0.05 && prefill.0 < 0.10 && mixed.0 < 0.10);
}

#[test]
fn steps_of_vllm_are() {
    for name in ["independent15", "multiturn8", "prefix40", "prefix80", "pressure60"] {
        let run = logged("vllm", name);
        let of = |keep: &dyn Fn(&StepShape) -> bool| {
            let rows: Vec<Row> = run.rows.iter().filter(|row| keep(&row.shape)).cloned().collect();
            (rows.len(), errors(&rows, &Padding::vllm(2048)))
        };
        eprintln!("{name}: decode {:?} prefill {:?}", of(&|s| s.only_decodes()), of(&|s| !s.only_decodes()));
    }
}
