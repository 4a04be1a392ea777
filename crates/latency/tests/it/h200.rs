//! The `profile` model against what was measured on an H200 (`data/h200/README.md`).

use blis_core::math::count;
use blis_latency::fit::beyond::{Edge, beyond};
use blis_latency::fit::judge::{Region, drift, errors, leave_one_out};
use blis_latency::fit::log::{LoggedHost, LoggedRequest, LoggedStep, Row, Run};
use blis_latency::fit::{Options, fit, resample};
use blis_latency::profile::padding::Padding;
use blis_latency::profile::term::{ALL, Site};
use blis_latency::{StepShape, StepTime};
use std::path::Path;

const RUNS: [&str; 7] = [
    "independent15",
    "multiturn8",
    "prefix40",
    "prefix80",
    "prefix80.repeat",
    "pressure60",
    "pressure60.repeat",
];

/// The lines of a CSV file under `data` as functions from a column's name to its number.
fn table(file: &str) -> Vec<impl Fn(&str) -> f64 + use<>> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../data");
    let text = std::fs::read_to_string(folder.join(file)).expect("part of the project");
    let mut lines =
        text.lines().map(|line| line.split(',').map(str::to_owned).collect::<Vec<String>>());
    let header = lines.next().expect("a header");
    lines
        .map(|line| {
            let header = header.clone();
            move |name: &str| {
                let at = header.iter().position(|column| column == name).expect("a column");
                line[at].parse().expect("a number")
            }
        })
        .collect()
}

fn small(number: f64) -> u32 {
    u32::try_from(count(number)).expect("a small number")
}

pub(crate) fn served(name: &str) -> Run {
    logged("h200", name)
}

/// The run `name` that was logged in a folder under `data`, with its host if that was logged.
pub(crate) fn logged(folder: &str, name: &str) -> Run {
    let steps = table(&format!("{folder}/{name}.steps.csv"));
    let with_host = folder == "vllm";
    let step = |of: &dyn Fn(&str) -> f64| LoggedStep {
        start_us: of("start_us"),
        duration_us: of("duration_us"),
        shape: StepShape {
            prefill_seqs: small(of("prefill_seqs")),
            prefill_tokens: small(of("prefill_tokens")),
            prefill_past_tokens: count(of("prefill_past_tokens")),
            prefill_attention_pairs: count(of("prefill_attention_pairs")),
            decode_seqs: small(of("decode_seqs")),
            decode_context: count(of("decode_context_sum")),
            ..StepShape::default()
        },
        running_after: small(of("running_after")),
        waiting_after: small(of("waiting_after")),
        free_blocks_after: small(of("free_blocks_after")),
        host: with_host.then(|| LoggedHost {
            scheduled_us: of("scheduled_us"),
            schedule_us: of("schedule_us"),
            launch_us: of("launch_us"),
            update_us: of("update_us"),
        }),
    };
    let steps: Vec<LoggedStep> = steps.iter().map(|line| step(line)).collect();
    let requests = table(&format!("{folder}/{name}.requests.csv"));
    let request = |of: &dyn Fn(&str) -> f64| LoggedRequest {
        arrival_us: of("arrival_us"),
        scheduled_us: of("scheduled_us"),
        first_token_us: of("arrival_us") + of("ttft_us"),
        last_token_us: of("arrival_us") + of("e2e_us"),
        input_tokens: small(of("input_tokens")),
        output_tokens: small(of("output_tokens")),
    };
    let requests: Vec<LoggedRequest> = requests.iter().map(|line| request(line)).collect();
    let workload = name.trim_end_matches(".repeat");
    Run::from_log(name, workload, &steps, &requests, 16)
}

/// The single steps that were measured apart, up to the largest step of the server.
pub(crate) fn grid(keep: impl Fn(&StepShape) -> bool) -> Run {
    bare("steps_grid", keep)
}

fn bare(name: &str, keep: impl Fn(&StepShape) -> bool) -> Run {
    let lines = table(&format!("h200/{name}.csv"));
    let row = |of: &dyn Fn(&str) -> f64| {
        let seqs = of("prefill_seqs");
        let each = of("prefill_tokens") / seqs.max(1.0);
        let past = of("prefill_past_tokens") / seqs.max(1.0);
        let decode_seqs = small(of("decode_seqs"));
        let longest = if decode_seqs == 0 { 0.0 } else { of("decode_context") };
        let shape = StepShape {
            prefill_seqs: small(seqs),
            prefill_tokens: small(of("prefill_tokens")),
            prefill_past_tokens: count(of("prefill_past_tokens")),
            prefill_attention_pairs: count(seqs * each * (past + 0.5 * each + 0.5)),
            decode_seqs,
            draft_tokens: 0,
            decode_context: count(longest) * u64::from(decode_seqs),
            decode_longest: small(longest),
            ..StepShape::default()
        };
        Row { shape, micros: of("step_us_median"), gap_micros: None, weight: 1.0 }
    };
    let rows = lines.iter().map(|line| row(line));
    let rows = rows.filter(|row| row.shape.prefill_tokens <= 2304 && keep(&row.shape)).collect();
    Run { name: name.to_owned(), workload: name.to_owned(), site: Site::Bare, rows, trace: None }
}

/// Prompts of all sizes that the server pads to, measured apart.
fn sizes() -> Run {
    bare("steps_sizes", |_| true)
}

fn everything() -> Vec<Run> {
    RUNS.iter().map(|name| served(name)).chain([grid(|_| true), sizes()]).collect()
}

fn options() -> Options {
    Options::of(Padding::measured_server())
}

#[test]
fn a_workload_that_was_not_fitted_to_is_predicted_within_5_percent() {
    let runs = everything();
    let left_out = leave_one_out(&runs, &options()).expect("enough rows");
    assert_eq!(left_out.len(), 5);
    for (workload, profile) in &left_out {
        for run in runs.iter().filter(|run| run.workload == *workload) {
            let all = errors(profile, run, Region::All).expect("steps");
            assert!(all.mean_absolute <= 0.05, "{}: {all:?}", run.name);
            assert!(all.total.abs() <= 0.025, "{}: {all:?}", run.name);
        }
    }
    let drift = drift(&runs, &left_out);
    assert!((0.002..0.02).contains(&drift), "{drift}");
}

#[test]
fn every_kind_of_step_is_fitted_without_a_large_bias() {
    let runs = everything();
    let profile = fit(&runs, &options()).expect("enough rows");
    for run in &runs {
        for region in Region::ALL {
            let Some(found) = errors(&profile, run, region) else { continue };
            if found.seconds > 1.0 {
                assert!(found.mean_absolute < 0.05, "{} {}: {found:?}", run.name, region.name());
                // What was measured apart, twice and on two GPUs, differs by 6 % in itself.
                let most = if run.site == Site::Served { 0.035 } else { 0.06 };
                assert!(found.total.abs() < most, "{} {}: {found:?}", run.name, region.name());
            }
        }
    }
}

#[test]
fn fitted_coefficients_are_near_what_the_data_sheet_says() {
    let profile = fit(&everything(), &options()).expect("enough rows");
    let coefficient = |name: &str| {
        let at = ALL.iter().position(|term| term.name == name).expect("a term");
        profile.parameters().terms_us[at]
    };
    // 16 GB of weights and 128 KiB a token at 4.8 TB/s, of which some 90 % are reached.
    assert!((3200.0..5000.0).contains(&coefficient("weights")), "{}", coefficient("weights"));
    assert!((0.027..0.034).contains(&coefficient("kv_read")), "{}", coefficient("kv_read"));
    assert!(coefficient("kv_read_shared") < coefficient("kv_read"), "sharing saves something");
    // 14 GFLOP a token at 990 TFLOP/s, of which some 60 to 70 % are reached.
    let per_token: f64 =
        ["dense", "dense_beyond_128", "dense_beyond_256"].map(coefficient).iter().sum();
    assert!((19.0..26.0).contains(&per_token), "{per_token}");
}

#[test]
fn gaps_between_steps_are_predicted_within_a_thousandth_of_the_time() {
    let runs = everything();
    let profile = fit(&runs, &options()).expect("enough rows");
    for run in runs.iter().filter(|run| run.site == Site::Served) {
        let known = run.rows.iter().filter(|row| row.gap_micros.is_some_and(|gap| gap < 2000.0));
        let (mut miss, mut time) = (0.0, 0.0);
        for row in known {
            miss += profile.gap_micros(&row.shape) - row.gap_micros.expect("known");
            time += row.micros;
        }
        assert!((miss / time).abs() < 0.002, "{}: {miss} of {time}", run.name);
    }
}

#[test]
fn one_workload_and_kernels_measured_apart_predict_the_others_within_10_percent() {
    let pure = |shape: &StepShape| shape.prefill_tokens == 0 || shape.decode_seqs == 0;
    let runs = everything();
    for name in RUNS.iter().filter(|name| !name.contains("repeat")) {
        let few = [served(name), grid(pure), sizes()];
        let profile = fit(&few, &options()).expect("enough rows");
        for run in runs.iter().filter(|run| run.site == Site::Served && run.name != *name) {
            let all = errors(&profile, run, Region::All).expect("steps");
            assert!(all.total.abs() <= 0.10, "{name} to {}: {all:?}", run.name);
        }
    }
}

#[test]
fn steps_beyond_all_that_was_seen_are_predicted_within_10_percent() {
    let found = beyond(&everything(), &options()).expect("enough rows");
    assert_eq!(found.len(), Edge::ALL.len());
    for one in &found {
        let name = one.edge.name();
        assert!(one.seen.steps > 300, "{name}: only {} steps", one.seen.steps);
        let (apart, unseen) = (one.apart.expect("enough left"), one.unseen.expect("enough left"));
        assert_eq!(apart.steps, one.seen.steps, "{name}");
        assert!(apart.total.abs() < 0.05, "{name}: {apart:?}");
        assert!(unseen.total.abs() < 0.10, "{name}: {unseen:?}");
    }
}

#[test]
fn looking_at_contexts_by_blocks_does_not_bias_predictions() {
    let runs = everything();
    let profile = fit(&runs, &options()).expect("enough rows");
    for run in runs.iter().filter(|run| run.site == Site::Served) {
        let (mut by_blocks, mut by_tokens) = (0.0, 0.0);
        for row in &run.rows {
            by_blocks += profile.predict(&row.shape).as_micros_f64();
            by_tokens +=
                profile.step_micros(&row.shape, Site::Served) + profile.gap_micros(&row.shape);
        }
        assert!((by_blocks / by_tokens - 1.0).abs() < 0.001, "{}", run.name);
    }
}

#[test]
fn varied_profiles_spread_about_the_fit_as_much_as_whole_runs_are_off() {
    let runs = everything();
    let off = drift(&runs, &leave_one_out(&runs, &options()).expect("enough rows"));
    let profile = fit(&runs, &options()).expect("enough rows");
    let shape = StepShape {
        decode_seqs: 100,
        decode_context: 100_000,
        decode_longest: 1500,
        ..StepShape::default()
    };
    let centre = profile.predict(&shape).as_micros_f64();
    let ratios: Vec<f64> = (0..12)
        .map(|index| {
            let other = resample::varied(&profile, off, 1, index);
            other.expect("legal").predict(&shape).as_micros_f64() / centre
        })
        .collect();
    let mean = ratios.iter().sum::<f64>() / 12.0;
    let deviation = (ratios.iter().map(|r| (r - mean) * (r - mean)).sum::<f64>() / 11.0).sqrt();
    assert!((0.97..1.03).contains(&mean), "{ratios:?}");
    assert!((0.005..0.04).contains(&deviation), "{ratios:?}");
}

/// How long a prompt alone takes.
fn prompt_micros(run: &Run, tokens: u32) -> Option<f64> {
    let alone = |row: &&Row| {
        let shape = &row.shape;
        (shape.prefill_tokens, shape.prefill_seqs) == (tokens, 1)
            && (shape.prefill_past_tokens, shape.decode_seqs) == (0, 0)
    };
    run.rows.iter().find(alone).map(|row| row.micros)
}

#[test]
fn steps_measured_apart_twice_agree_and_meet_the_slow_size_of_the_server() {
    let (grid, sizes) = (grid(|_| true), sizes());
    let mut both = 0;
    for row in &sizes.rows {
        let tokens = row.shape.prefill_tokens;
        let Some(other) = prompt_micros(&grid, tokens) else { continue };
        both += 1;
        let off = row.micros / other - 1.0;
        // Other kernels between the products, and another GPU.
        assert!(off.abs() < if tokens <= 384 { 0.02 } else { 0.07 }, "{tokens}: {off}");
    }
    assert_eq!(both, 11);
    let of = |tokens| prompt_micros(&sizes, tokens).expect("all sizes");
    assert!(of(448) > of(512) + 2000.0, "448 tokens take longer than 512");
    let profile = fit(&everything(), &options()).expect("enough rows");
    let extra = profile.parameters().sizes_us.iter().max_by(|a, b| a.1.total_cmp(&b.1));
    assert!(extra.is_some_and(|&(size, _)| size == 448 || size == 2304), "{extra:?}");
}

#[test]
fn what_sharing_saves_was_measured_apart_too() {
    let lines = table("h200/shared_reads.csv");
    let takes = |seqs: f64, context: f64, shared: f64| {
        let same =
            |name: &str, of: &dyn Fn(&str) -> f64, value: f64| (of(name) - value).abs() < 0.5;
        let line = lines.iter().find(|of| {
            same("decode_seqs", of, seqs)
                && same("decode_context", of, context)
                && same("shared_tokens", of, shared)
        });
        line.expect("measured")("step_us_median")
    };
    for seqs in [64.0, 128.0, 192.0, 256.0] {
        let token = (takes(seqs, 896.0, 0.0) - takes(seqs, 384.0, 0.0)) / (seqs * 512.0);
        let saved = takes(seqs, 896.0, 0.0) - takes(seqs, 896.0, 512.0);
        let share = 1.0 - saved / ((seqs - 1.0) * 512.0) / token;
        assert!((0.59..0.65).contains(&share), "{seqs} sequences: {share}");
    }
}

/// What a step of `uneven_reads.csv` takes.
fn uneven(kind: &str, seqs: f64, longest: f64, shared: f64, groups: f64) -> f64 {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../data/h200/uneven_reads.csv");
    let text = std::fs::read_to_string(folder).expect("part of the project");
    let wanted = |line: &str| {
        let cells: Vec<&str> = line.split(',').collect();
        let is = |at: usize, value: f64| {
            cells[at].parse().is_ok_and(|found: f64| (found - value).abs() < 0.5)
        };
        let same = is(1, seqs) && is(3, longest) && is(4, shared) && is(5, groups);
        (cells[0] == kind && same).then(|| cells[6].parse().expect("a number"))
    };
    text.lines().skip(1).find_map(wanted).expect("measured")
}

#[test]
fn one_long_context_costs_the_time_of_thirty_sequences_in_a_kernel_measured_apart() {
    let token = (uneven("even", 192.0, 1024.0, 0.0, 1.0) - uneven("even", 64.0, 1024.0, 0.0, 1.0))
        / (128.0 * 1024.0);
    for seqs in [32.0, 48.0, 64.0, 96.0, 128.0, 192.0] {
        let takes = |longest| uneven("one at 0", seqs, longest, 0.0, 1.0);
        for (from, to) in [(2048.0, 4096.0), (4096.0, 8192.0)] {
            let sequences = (takes(to) - takes(from)) / (to - from) / token;
            assert!((27.0..33.0).contains(&sequences), "{seqs} sequences: {sequences}");
        }
    }
}

#[test]
fn several_prefixes_save_as_much_by_the_shared_token_as_one() {
    for (seqs, prefix) in [(64.0, 1024.0), (64.0, 2048.0), (128.0, 256.0), (128.0, 1024.0)] {
        let longest = prefix + 384.0;
        let alone = uneven("no groups", seqs, longest, 0.0, 1.0);
        let saved = |groups| {
            let takes = uneven("groups", seqs, longest, prefix, groups);
            (alone - takes) / ((seqs - groups) * prefix)
        };
        for groups in [4.0, 16.0] {
            let ratio = saved(groups) / saved(1.0);
            assert!((0.95..1.2).contains(&ratio), "{groups} of {prefix} by {seqs}: {ratio}");
        }
    }
}
