//! The `profile` model against vLLM 0.26 on an H200 (`data/vllm/README.md`).

use crate::h200::logged;
use blis_core::Span;
use blis_latency::fit::judge::{Region, errors, leave_one_out};
use blis_latency::fit::log::Run;
use blis_latency::fit::{Options, fit};
use blis_latency::profile::Profile;
use blis_latency::profile::host::HOST;
use blis_latency::profile::padding::Padding;
use blis_latency::{StepShape, StepTime};

const RUNS: [&str; 7] = [
    "independent15",
    "multiturn8",
    "prefix40",
    "prefix40.repeat",
    "prefix80",
    "pressure60",
    "tier8.gpu",
];

fn runs() -> Vec<Run> {
    RUNS.iter().map(|name| logged("vllm", name)).collect()
}

fn fitted(runs: &[Run]) -> Profile {
    fit(runs, &Options::of(Padding::vllm(2048))).expect("enough steps")
}

/// The host's number called `name`.
fn host_us(profile: &Profile, name: &str) -> f64 {
    let at = HOST.iter().position(|term| term.name == name).expect("a number of the host");
    profile.parameters().host.as_ref().expect("it was logged").us[at]
}

#[test]
fn the_gpu_of_a_workload_is_predicted_by_the_others_within_three_percent_in_all() {
    let runs = runs();
    let options = Options::of(Padding::vllm(2048));
    for (workload, profile) in leave_one_out(&runs, &options).expect("enough steps") {
        for run in runs.iter().filter(|run| run.workload == workload) {
            let kinds = [(Region::All, 0.02), (Region::Decode, 0.03), (Region::Prefill, 0.04)];
            for (region, most) in kinds {
                let found = errors(&profile, run, region).expect("steps that show");
                let (name, kind) = (&run.name, region.name());
                assert!(found.total.abs() < most, "{name}, {kind}: {found:?}");
            }
        }
    }
}

#[test]
fn what_was_seen_of_the_gpu_and_of_the_host_is_physical() {
    let profile = fitted(&runs());
    let sizes: Vec<u32> = profile.parameters().sizes_us.iter().map(|&(size, _)| size).collect();
    assert_eq!(sizes, [448, 560, 832], "these meet a slow kernel");
    let alone = StepShape { decode_seqs: 1, decode_context: 1000, ..StepShape::default() };
    let decode = profile.predict(&alone).as_micros_f64();
    assert!((decode - 5000.0).abs() < 100.0, "5 ms, 3 TB/s of weights: {decode}");
    let prompt = StepShape {
        prefill_seqs: 1,
        prefill_tokens: 2048,
        prefill_attention_pairs: 2048 * 1024,
        ..StepShape::default()
    };
    let prefill = profile.predict(&prompt).as_micros_f64();
    assert!((prefill / 45_600.0 - 1.0).abs() < 0.03, "700 TFLOP/s: {prefill}");
    for (name, least, most) in [
        ("schedule_seq", 10.0, 16.0),
        ("prepare", 1100.0, 1500.0),
        ("pieces", 8000.0, 11_000.0),
        ("sample", 800.0, 1200.0),
        ("way_in", 1000.0, 2000.0),
        ("way_out", 800.0, 1400.0),
        ("way_out_seq", 22.0, 36.0),
    ] {
        let us = host_us(&profile, name);
        assert!((least..most).contains(&us), "{name}: {us}");
    }
}

#[test]
fn steps_beyond_the_largest_graph_are_launched_one_kernel_at_a_time() {
    let mut default = logged("vllm", "independent15.default");
    default.trace.as_mut().expect("it was logged").largest_graph = Some(512);
    let mut all = runs();
    all.push(default);
    let profile = fitted(&all);
    let eager = host_us(&profile, "eager");
    assert!((15_000.0..25_000.0).contains(&eager), "{eager}");
    let large = StepShape { prefill_seqs: 1, prefill_tokens: 1000, ..StepShape::default() };
    let captured = profile.host(&large).launch;
    let launched = profile.with_graphs_up_to(Some(512)).host(&large).launch;
    assert!(launched > captured + Span::from_micros(5000), "{launched:?} against {captured:?}");
}

#[test]
fn a_run_that_schedules_synchronously_has_the_same_gpu() {
    let profile = fitted(&runs());
    let run = logged("vllm", "independent15.sync");
    assert!(!run.trace.as_ref().expect("it was logged").is_asynchronous());
    let found = errors(&profile, &run, Region::All).expect("steps that show");
    assert!(found.steps > 2700, "nearly all of them show: {found:?}");
    assert!(found.total.abs() < 0.02, "{found:?}");
}
