//! Workload specifications: whatever the text, it is refused with a message or can be sent.

#![no_main]

use blis_core::Time;
use blis_fuzz::{draw, stands_alone};
use blis_scenario::workload_spec;
use blis_workload::Mix;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|text: &str| {
    if !stands_alone(text) {
        return;
    }
    let model = "meta-llama/llama-3.1-8b-instruct";
    match workload_spec::read_text("spec.yaml", text, Some(model)) {
        Ok(file) => {
            let horizon = file.horizon.or(Some(Time::from_micros(3_600_000_000)));
            let mix = Mix { horizon, seed: file.seed.unwrap_or(42), ..file.mix };
            if mix.validate().is_ok() {
                draw(&mut mix.source());
            }
        }
        Err(problem) => assert!(!problem.to_string().is_empty()),
    }
});
