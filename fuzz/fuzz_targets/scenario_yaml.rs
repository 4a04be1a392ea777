//! Scenario files: whatever the text, it is refused with a message or can be sent.

#![no_main]

use blis_fuzz::{draw, is_cheap, stands_alone};
use blis_lab::Draft;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|text: &str| {
    if !is_cheap(text) || !stands_alone(text) {
        return;
    }
    let Ok(draft) = Draft::from_text("scenario.yaml", text) else { return };
    if !draft.workload_files().is_empty() {
        return;
    }
    match draft.resolve() {
        Ok(plan) => {
            assert!(!plan.canonical().is_empty());
            draw(&mut *plan.source(plan.seed).expect("it is not read from a file"));
        }
        Err(problem) => assert!(!problem.to_string().is_empty()),
    }
});
