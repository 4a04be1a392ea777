//! The roofline against steps that were measured apart on an H200.

use crate::h200::grid;
use blis_latency::fit::efficiency::{fit_efficiency, mean_error};
use blis_latency::fit::log::Row;
use blis_latency::{Catalogue, Roofline, StepShape};

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
