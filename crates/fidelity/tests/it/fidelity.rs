//! Predictions against what was measured on an H200 (`data/h200/README.md`): the promises of
//! `docs/validation/fidelity.md`, each on workloads that nothing was fitted to.

use blis_fidelity::calibrate::{self, padding};
use blis_fidelity::measured::{Measured, grids};
use blis_fidelity::validate::{
    Basis, Cell, Compared, Metric, Options, Quantity, Statistic, coverage, transfer, validate,
};
use blis_latency::fit::log::Run;
use blis_scenario::profile::{self, ProfiledMachine};
use std::path::{Path, PathBuf};

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../data/h200")
}

fn measured() -> (Vec<Measured>, Vec<Run>) {
    let measured = Measured::read_folder(&folder()).expect("part of the project");
    let grids = grids(&[], &[folder()]);
    assert_eq!(grids.len(), 2, "single steps by shape and by size");
    let runs = calibrate::runs(&measured, &grids, 16).expect("part of the project");
    (measured, runs)
}

fn cell(compared: &Compared, metric: Metric, statistic: Statistic) -> &Cell {
    let wanted = Quantity::Latency(metric, statistic);
    compared.cells.iter().find(|cell| cell.quantity == wanted).expect("all have latencies")
}

#[test]
fn a_workload_that_was_not_fitted_to_is_predicted() {
    let (measured, runs) = measured();
    let options = Options { resamples: 0, ..Options::default() };
    let all = validate(&measured, &runs, &[], &options).expect("enough to fit to");
    assert_eq!(all.len(), 5);
    let mut preempted = 0;
    for compared in &all {
        let name = &compared.workload;
        let error = |metric, statistic| {
            cell(compared, metric, statistic).error().expect("something was measured")
        };
        let steps = compared.steps.expect("there are steps");
        assert!(steps.mean_absolute <= 0.05, "{name}: {steps:?}");
        let e2e = error(Metric::E2e, Statistic::Mean);
        assert!(e2e.abs() <= 0.05, "{name}: E2E mean {e2e}");
        let ttft = error(Metric::Ttft, Statistic::Mean);
        assert!(ttft.abs() <= 0.10, "{name}: TTFT mean {ttft}");
        let p99 = error(Metric::Ttft, Statistic::P99);
        assert!(p99.abs() <= 0.20, "{name}: TTFT p99 {p99}");
        assert!(compared.cached_equal >= 0.99, "{name}: {}", compared.cached_equal);
        let preemptions = compared.cells.iter().find(|cell| cell.quantity == Quantity::Preemptions);
        if let Some(off) = preemptions.and_then(Cell::error) {
            assert!(off.abs() <= 0.15, "{name}: preemptions {off}");
            preempted += 1;
        }
    }
    assert_eq!(preempted, 1, "one workload has preemptions");
}

#[test]
fn intervals_hold_what_was_measured_and_are_not_wide() {
    let (measured, runs) = measured();
    let options = Options { resamples: 30, ..Options::default() };
    let all = validate(&measured, &runs, &[], &options).expect("enough to fit to");
    let found = coverage(&all);
    assert!(found.cells >= 60, "{found:?}");
    assert!(f64::from(found.covered) >= 0.8 * f64::from(found.cells), "{found:?}");
    assert!(f64::from(found.narrow) >= 0.6 * f64::from(found.cells), "{found:?}");
}

#[test]
fn one_workload_and_pure_steps_predict_the_others() {
    let (measured, runs) = measured();
    let options = Options::default();
    let found = transfer(&measured, &runs, &options).expect("enough to fit to");
    assert_eq!(found.len(), 20);
    assert!(found.iter().all(|one| one.e2e_mean.abs() <= 0.10), "{found:?}");
}

#[test]
fn the_shipped_profile_is_the_fit_to_the_shipped_data() {
    let (_, runs) = measured();
    let machine = ProfiledMachine {
        model: Some("meta-llama/llama-3.1-8b-instruct".to_owned()),
        hardware: Some("H200".to_owned()),
        tp: Some(1),
    };
    let padding = padding(Some("measured-server"), &[]).expect("known");
    let found = calibrate::calibrate(runs, padding, machine).expect("enough to fit to");
    let path = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../scenario/profiles/llama-3.1-8b-h200-tp1.yaml");
    let shipped = std::fs::read_to_string(path).expect("part of the project");
    let remedy = "cargo run --release -- calibrate data/h200 --grid data/h200/steps_grid.csv \
                  --grid data/h200/steps_sizes.csv --model llama-3.1-8b --hardware H200 --tp 1 \
                  --out crates/scenario/profiles/llama-3.1-8b-h200-tp1.yaml";
    assert!(profile::text(&found.file) == shipped, "out of date: {remedy}");
    assert_eq!(found.left_out.len(), 5);
    assert!(found.errors().iter().any(|error| error.left_out.is_some()));
}

#[test]
fn a_given_profile_predicts_with_an_interval_of_its_own() {
    let (measured, runs) = measured();
    let file = profile::named("llama-3.1-8b-h200-tp1");
    let basis = Basis::Given(Box::new(file.expect("it ships")));
    let options = Options { basis, resamples: 20, ..Options::default() };
    let wanted = ["prefix40".to_owned()];
    let all = validate(&measured, &runs, &wanted, &options).expect("it can be replayed");
    assert_eq!(all.len(), 1);
    let mean = cell(&all[0], Metric::E2e, Statistic::Mean);
    let (low, high) = mean.interval.expect("it was asked for");
    assert!(low < mean.predicted && mean.predicted < high, "{mean:?}");
    assert!(mean.width().expect("measured") < 0.15, "{mean:?}");
}
