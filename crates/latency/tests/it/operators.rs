//! Measured operators against steps that they were not made from: of our own server on an H200, by
//! CUDA graphs and without its host, and of vLLM 0.26, where its logs show the GPU's time. No
//! number is fitted to either.

use crate::h200::{grid, logged};
use blis_core::math::float;
use blis_latency::fit::log::Row;
use blis_latency::fit::{Options, fit};
use blis_latency::profile::padding::Padding;
use blis_latency::{Catalogue, Operators, Parallel, StepShape};

fn llama_8b() -> Operators {
    let catalogue = Catalogue::shipped();
    let gpu = catalogue.gpu("H200").expect("known");
    let model = catalogue.model("llama-3.1-8b").expect("known").shape();
    Operators::new(&model, gpu, Parallel::tensor(1), Padding::none(), None).expect("measured")
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
    assert!(decode.0 < 0.05, "{decode:?}");
    assert!(prefill.0 < 0.10 && mixed.0 < 0.10, "{prefill:?} {mixed:?}");
}

#[test]
fn steps_of_vllm_are_within_3_percent_decoding_and_within_10_with_prefill() {
    let runs = ["independent15", "multiturn8", "prefix40", "prefix80", "pressure60"];
    let runs = runs.map(|name| logged("vllm", name));
    let padding = Padding::vllm(2048);
    let profile = fit(&runs, &Options::of(padding.clone())).expect("enough steps");
    let host = profile.parameters().host.clone().expect("it was logged");
    let operators = llama_8b();
    let guess = |shape: &StepShape| {
        let tokens = shape.prefill_tokens + shape.decode_seqs;
        operators.step_micros(shape, padding.prefill.hold(tokens))
    };
    for run in &runs {
        let seen = run.trace.as_ref().expect("logged").visible(&host, Some(&guess));
        let of = |keep: &dyn Fn(&StepShape) -> bool| {
            let rows: Vec<Row> = seen.iter().filter(|row| keep(&row.shape)).copied().collect();
            assert!(rows.len() > 200, "{}", run.name);
            errors(&rows, &padding).0
        };
        let [decode, prefill] = [of(&StepShape::only_decodes), of(&|shape| !shape.only_decodes())];
        assert!(decode < 0.03 && prefill < 0.10, "{}: {decode}, {prefill}", run.name);
    }
}
