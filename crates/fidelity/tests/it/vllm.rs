//! Predictions against vLLM on three H200s (`data/vllm`, `data/vllm-default`,
//! `data/vllm-held-out`): the promises of `docs/validation/fidelity.md`. Nothing is fitted to the
//! last folder.

use blis_fidelity::calibrate::{self, Calibration, padding};
use blis_fidelity::measured::{Measured, MeasuredRequest, read_all};
use blis_fidelity::validate::{
    Basis, Bounds, Cell, Compared, Metric, Options, Quantity, Statistic, coverage, validate,
};
use blis_latency::fit::log::Run;
use blis_scenario::profile::{self, ProfiledMachine};
use std::path::Path;

const E2E: Quantity = Quantity::Latency(Metric::E2e, Statistic::Mean);

/// What the shipped profile is fitted to.
const FITTED: [&str; 2] = ["vllm", "vllm-default"];

fn measured(folders: &[&str]) -> (Vec<Measured>, Vec<Run>) {
    let data = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../data");
    let folders: Vec<_> = folders.iter().map(|folder| data.join(folder)).collect();
    let measured = read_all(&folders, &[]).expect("part of the project");
    let runs = calibrate::runs(&measured, &[], 16).expect("part of the project");
    (measured, runs)
}

fn fitted(measured: &[Measured], runs: Vec<Run>) -> Calibration {
    let machine = ProfiledMachine {
        model: Some("meta-llama/llama-3.1-8b-instruct".to_owned()),
        hardware: Some("H200".to_owned()),
        tp: Some(1),
    };
    let padding = padding(None, measured).expect("vLLM's");
    calibrate::calibrate(runs, padding, machine).expect("enough to fit to")
}

fn is_off(one: &Compared, cells: &[Cell], usual: Bounds) -> bool {
    !Bounds::of_workload(&one.workload, usual).missed(cells).is_empty()
}

fn missed(all: &[Compared], usual: Bounds) -> Vec<&str> {
    let off = |one: &&Compared| is_off(one, &one.cells, usual);
    all.iter().filter(off).map(|one| one.workload.as_str()).collect()
}

#[test]
fn each_workload_of_vllm_is_predicted_by_a_fit_to_the_others() {
    let (mut measured, runs) = measured(&["vllm"]);
    let padding = padding(None, &measured).expect("vLLM's");
    measured.extend(again(&measured));
    let options = Options { padding, resamples: 0, ..Options::default() };
    let all = validate(&measured, &runs, &[], &options).expect("enough to fit to");
    assert_eq!(all.len(), 9);
    // Its host was faster than those of all runs that were fitted to.
    assert_eq!(missed(&all, Bounds::SEEN), ["independent15.sync"]);
    // The server itself is farther off when it serves the same arrivals again.
    let missed = cell(&all, "independent15.sync", E2E);
    assert_eq!(missed.repeats.len(), 3);
    assert!(missed.error() < missed.spread(), "{missed:?}");
    for one in &all {
        // When copies of the CPU tier end decides who finds them.
        let equal = if one.workload == "tier8.cpu" { 0.9 } else { 0.995 };
        assert!(one.cached_equal >= equal, "{}: {}", one.workload, one.cached_equal);
        assert!(one.steps.expect("steps that show").total.abs() <= 0.03, "{}", one.workload);
    }
    let preemptions = cell(&all, "pressure60", Quantity::Preemptions);
    assert!(preemptions.error().expect("309 of them").abs() <= 0.05, "{preemptions:?}");
}

/// Other runs of the arrivals of `measured`, on another machine.
fn again(measured: &[Measured]) -> Vec<Measured> {
    let (mut again, _) = self::measured(&["vllm-again"]);
    assert_eq!(again.len(), 18);
    again.retain(|run| measured.iter().any(|first| run.is_again(first)));
    again
}

fn cell<'a>(all: &'a [Compared], workload: &str, quantity: Quantity) -> &'a Cell {
    let one = all.iter().find(|one| one.workload == workload).expect("it was measured");
    one.cells.iter().find(|cell| cell.quantity == quantity).expect("it is compared")
}

#[test]
fn the_cpu_tier_of_vllm_does_what_it_did_on_the_server() {
    let (mut measured, runs) = measured(&["vllm"]);
    let padding = padding(None, &measured).expect("vLLM's");
    measured.extend(again(&measured));
    let options = Options { padding, resamples: 0, ..Options::default() };
    let wanted = ["tier8.cpu", "tier8.gpu"].map(str::to_owned);
    let all = validate(&measured, &runs, &wanted, &options).expect("enough to fit to");
    let ttft =
        |workload, statistic| cell(&all, workload, Quantity::Latency(Metric::Ttft, statistic));
    for workload in ["tier8.cpu", "tier8.gpu"] {
        for statistic in [Statistic::Mean, Statistic::P50] {
            let error = ttft(workload, statistic).error().expect("it was measured");
            assert!(error.abs() <= 0.2, "{workload}: {error}");
        }
        // The server has 20, 12, 18 and 18 without the tier, and 293, 277 and 173 with it.
        let preemptions = cell(&all, workload, Quantity::Preemptions);
        let runs = preemptions.repeats.iter().chain([&preemptions.measured]);
        let near = runs.clone().any(|run| (preemptions.predicted / run - 1.0).abs() <= 0.2);
        assert!(near && runs.count() >= 3, "{workload}: {preemptions:?}");
    }
    let [cpu, gpu] = ["tier8.cpu", "tier8.gpu"].map(|workload| ttft(workload, Statistic::Mean));
    let gain = (gpu.predicted / cpu.predicted) / (gpu.measured / cpu.measured);
    assert!((gain - 1.0).abs() <= 0.15, "{gain}");
}

#[test]
fn the_shipped_profile_predicts_runs_that_nothing_was_fitted_to() {
    let (mut measured, _) = measured(&["vllm-held-out"]);
    let names: Vec<String> = measured.iter().map(|run| run.workload.clone()).collect();
    measured.extend(again(&measured));
    let shipped = profile::named("h200-vllm-0.26-llama-3.1-8b").expect("it ships");
    let padding = padding(None, &measured).expect("vLLM's");
    let basis = Basis::Given(Box::new(shipped));
    let options = Options { basis, padding, resamples: 30, ..Options::default() };
    let all = validate(&measured, &[], &names, &options).expect("it can be replayed");
    assert_eq!(all.len(), 20);
    // Three are at saturation, and five had slow hosts: docs/validation/fidelity.md.
    let most = [
        "agents5",
        "chat45",
        "chat75",
        "prefix80.second",
        "prio70",
        "retrieval25",
        "shared50.default",
        "talk8",
    ];
    assert_eq!(missed(&all, Bounds::UNSEEN), most);
    // Three of them are within the same bounds of the server's next run of the same arrivals.
    let near = |name: &str, of: Quantity, most: f64| {
        let cell = cell(&all, name, of);
        assert_eq!(cell.repeats.len(), 2, "{name}");
        cell.repeats.iter().any(|run| (cell.predicted / run - 1.0).abs() <= most)
    };
    for name in ["chat45", "chat75", "talk8"] {
        let ttft = |statistic| Quantity::Latency(Metric::Ttft, statistic);
        let is_near = near(name, ttft(Statistic::Mean), 0.1)
            && near(name, ttft(Statistic::P99), 0.2)
            && near(name, E2E, 0.05);
        assert!(is_near, "{name}");
    }
    // Told how fast each host was, it is off at saturation, and by 0.1 points in `talk8`.
    let told = all.iter().filter(|one| {
        let own = one.own_host.as_ref().expect("vLLM's host is logged");
        is_off(one, &own.cells, Bounds::UNSEEN)
    });
    let told: Vec<&str> = told.map(|one| one.workload.as_str()).collect();
    assert_eq!(told, ["chat75", "prefix80.second", "talk8"]);
    for one in &all {
        assert!(one.steps.expect("steps that show").total.abs() <= 0.03, "{}", one.workload);
    }
    assert!(all.iter().all(|one| one.cached_equal >= 0.995));
    // With the 60 replays of the page they hold 91 %.
    let held = coverage(&all);
    assert!(f64::from(held.covered) >= 0.85 * f64::from(held.cells), "{held:?}");
}

#[test]
fn the_shipped_profile_of_vllm_is_the_fit_to_the_shipped_data() {
    let (measured, runs) = measured(&FITTED);
    let found = fitted(&measured, runs);
    let path = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../scenario/profiles/h200-vllm-0.26-llama-3.1-8b.yaml");
    let shipped = std::fs::read_to_string(path).expect("part of the project");
    let remedy = "cargo run --release -- calibrate data/vllm data/vllm-default --model \
                  llama-3.1-8b --hardware H200 --tp 1 --out crates/scenario/profiles/h200-vllm-0.26-llama-3.1-8b.yaml";
    assert!(profile::text(&found.file) == shipped, "out of date: {remedy}");
}

/// What `vllm bench serve --save-detailed` would have written of a run: the tokens of a request
/// come with those of every step after its first.
fn bench(run: &Measured) -> String {
    let ends = run.steps.iter().map(|step| {
        let update = step.host.expect("vLLM's").update_us;
        step.start_us + step.duration_us + update
    });
    let ends: Vec<f64> = ends.collect();
    let out = |step: usize| {
        let seqs = run.steps[step].shape.prefill_seqs + run.steps[step].shape.decode_seqs;
        ends[step] + 900.0 + 26.0 * f64::from(seqs)
    };
    let gaps = |request: &MeasuredRequest| -> Vec<f64> {
        let first = request.arrival_us + request.fared.ttft_us;
        let after = ends.partition_point(|&end| end <= first);
        let left = request.fared.output_tokens as usize - 1;
        let times = (after..ends.len()).take(left).map(out);
        let times: Vec<f64> = [first].into_iter().chain(times).collect();
        times.windows(2).map(|pair| (pair[1] - pair[0]).max(0.0) / 1e6).collect()
    };
    let all = &run.requests;
    let of = |value: fn(&MeasuredRequest) -> f64| all.iter().map(value).collect::<Vec<f64>>();
    let lens: Vec<u32> = all.iter().map(|request| request.input_tokens).collect();
    let object = serde_json::json!({
        "input_lens": lens,
        "ttfts": of(|request| request.fared.ttft_us / 1e6),
        "itls": all.iter().map(gaps).collect::<Vec<_>>(),
        "start_times": of(|request| request.arrival_us / 1e6),
    });
    object.to_string()
}

#[test]
fn what_clients_saw_at_one_rate_predicts_other_workloads_of_the_same_engine() {
    let (seen, _) = measured(&["vllm"]);
    let run = seen.iter().find(|run| run.name == "independent15").expect("it is there");
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("rate15.json");
    std::fs::write(&file, bench(run)).expect("room");
    let clients = read_all(&[file], &[]).expect("as vLLM writes it");
    let off = clients[0].steps.len().abs_diff(run.steps.len());
    assert!(off < 40, "{off} steps more or less than the engine had");
    let runs = calibrate::runs(&clients, &[], 16).expect("a run");
    let found = fitted(&clients, runs).by_clients().expect("legal");
    let basis = Basis::Given(Box::new(found.file));
    let options = Options { basis, resamples: 20, ..Options::default() };
    let (held, _) = measured(&["vllm-held-out"]);
    let names = ["independent20", "multiturn6", "prefix40.second", "shared50", "pressure50"];
    let all = validate(&held, &[], &names.map(str::to_owned), &options).expect("replays");
    for one in &all {
        let e2e = one.cells.iter().find(|cell| cell.quantity == E2E);
        let error = e2e.and_then(Cell::error).expect("something was measured");
        assert!(error.abs() < 0.12, "{}: E2E mean {error}", one.workload);
    }
    let held = coverage(&all);
    assert!(f64::from(held.covered) >= 0.9 * f64::from(held.cells), "{held:?}");
}
