//! Tests of the fit on made-up steps, where the truth is known.

use super::design::dot;
use super::*;
use blis_core::Dice;
use blis_core::random::Purpose;

const TRUTH: Features = [
    4800.0, 8.0, 9.0, 5.0, 0.031, 0.02, 0.0018, 0.05, 80.0, 400.0, 4.0, 50.0, 1500.0, 3.0, 0.008,
    35.0, 0.0, 0.0, 0.0, 0.0,
];

fn random(dice: &mut Dice, below: usize) -> u32 {
    u32::try_from(dice.below(below)).expect("small")
}

fn random_shape(dice: &mut Dice) -> StepShape {
    let mut shape = StepShape { decode_seqs: random(dice, 257), ..StepShape::default() };
    if shape.decode_seqs > 0 {
        let mean = 64 + random(dice, 3000);
        shape.decode_context = u64::from(mean) * u64::from(shape.decode_seqs);
        shape.decode_longest = mean + random(dice, 1 + mean as usize);
        shape.shared_context = shape.decode_context / (2 + dice.below(8) as u64);
    }
    if shape.decode_seqs == 0 || dice.below(2) == 0 {
        shape.prefill_seqs = 1 + random(dice, 6);
        shape.prefill_tokens = shape.prefill_seqs * (16 + random(dice, 250));
        shape.prefill_past_tokens = u64::from(random(dice, 4000));
        let tokens = u64::from(shape.prefill_tokens);
        shape.prefill_attention_pairs = tokens * (shape.prefill_past_tokens + tokens / 2);
    }
    shape
}

/// Runs of a server whose coefficients are known, with relative noise.
fn made_up(noise: f64, seed: u64) -> Vec<Run> {
    let padding = Padding::measured_server();
    let lens = Lens { padding, usual_spread: 1.5, split_attention: false };
    ["a", "b", "c"]
        .iter()
        .zip(0..)
        .map(|(name, key)| {
            let mut dice = Dice::new(seed, Purpose::Sampling, key);
            let rows = (0..1500).map(|_| {
                let shape = random_shape(&mut dice);
                let truth = dot(&lens.features(&shape, Site::Served), &TRUTH);
                let gap = 12.0
                    + 1.2 * f64::from(shape.decode_seqs)
                    + 25.0 * f64::from(shape.prefill_seqs);
                let micros = truth * (1.0 + noise * dice.normal());
                Row { shape, micros, gap_micros: Some(gap), weight: 1.0 }
            });
            let rows = rows.collect();
            Run {
                name: (*name).to_owned(),
                workload: (*name).to_owned(),
                site: Site::Served,
                rows,
                trace: None,
            }
        })
        .collect()
}

/// As `made_up`, and the same kernels measured apart: in a server, what attention reads and what
/// the host does for a context cannot be told apart.
fn made_up_with_kernels(noise: f64, seed: u64) -> Vec<Run> {
    let mut runs = made_up(noise, seed);
    let lens =
        Lens { padding: Padding::measured_server(), usual_spread: 1.5, split_attention: false };
    let name = "kernels".to_owned();
    let rows = runs[0].rows.iter().map(|row| {
        let micros = dot(&lens.features(&row.shape, Site::Bare), &TRUTH);
        Row { micros, gap_micros: None, ..*row }
    });
    let rows = rows.collect();
    runs.push(Run { workload: name.clone(), name, site: Site::Bare, rows, trace: None });
    runs
}

fn options() -> Options {
    Options::of(Padding::measured_server())
}

#[test]
fn known_coefficients_are_recovered_from_exact_steps() {
    let profile = fit(&made_up_with_kernels(0.0, 1), &options()).expect("enough rows");
    let parameters = profile.parameters();
    let pairs = ALL.iter().zip(parameters.terms_us).zip(TRUTH);
    // What every step pays alike in a server cannot be told apart: weights and host.
    for ((term, found), truth) in pairs.filter(|((term, _), _)| term.unit != "us/step") {
        // The fit prefers what the host does to be little.
        let most = if term.name.starts_with("host") { 0.1 } else { 0.02 };
        let off = (found - truth).abs();
        assert!(off <= most * truth, "{}: {found}, in truth {truth}", term.name);
    }
    let fixed = parameters.terms_us[0] + parameters.terms_us[11];
    assert!((fixed / 4850.0 - 1.0).abs() < 0.01, "{fixed}");
    for &(size, extra) in &parameters.sizes_us {
        assert!(extra < 60.0, "size {size} is not special, but takes {extra} more");
    }
    let gap = parameters.gap;
    assert!((gap.step_us - 12.0).abs() < 1e-6, "{gap:?}");
    assert!((gap.decode_seq_us - 1.2).abs() < 1e-6, "{gap:?}");
    assert!((gap.prefill_seq_us - 25.0).abs() < 1e-6, "{gap:?}");
}

#[test]
fn noise_moves_predictions_by_less_than_itself_and_the_covariance_says_how_much() {
    let profile = fit(&made_up_with_kernels(0.03, 2), &options()).expect("enough rows");
    let exact = made_up(0.0, 99);
    let mut worst = 0.0_f64;
    for row in &exact[0].rows {
        worst = worst.max((profile.step_micros(&row.shape, Site::Served) / row.micros - 1.0).abs());
    }
    assert!(worst < 0.03, "{worst}");
    let parameters = profile.parameters();
    let deviation = parameters.covariance[4][4].sqrt();
    let miss = (parameters.terms_us[4] - TRUTH[4]).abs();
    assert!(deviation > 0.0 && miss < 5.0 * deviation, "{miss} against {deviation}");
}

#[test]
fn coefficients_are_never_negative_and_bound_ones_have_no_variance() {
    let mut bound = 0;
    for seed in 0..5 {
        let mut runs = made_up(0.2, seed);
        // A server that gets faster with context would need a negative coefficient.
        for row in runs.iter_mut().flat_map(|run| &mut run.rows) {
            let faster = float(row.shape.decode_context) * 0.02;
            row.micros = (row.micros - faster).max(1000.0);
        }
        let profile = fit(&runs, &options()).expect("enough rows");
        let parameters = profile.parameters();
        for (index, &value) in parameters.terms_us.iter().enumerate() {
            assert!(value >= 0.0, "seed {seed}: {value}");
            if value < 1e-12 {
                bound += 1;
                assert!(parameters.covariance[index][index].abs() < 1e-12);
            }
        }
    }
    assert!(bound > 0, "no coefficient was at its bound");
}

#[test]
fn a_slow_padded_size_is_found() {
    let mut runs = made_up(0.01, 3);
    let padding = Padding::measured_server();
    let mut met = 0;
    for row in runs.iter_mut().flat_map(|run| &mut run.rows) {
        let tokens = row.shape.prefill_tokens + row.shape.decode_seqs;
        if !row.shape.only_decodes() && padding.prefill.hold(tokens) == 448 {
            row.micros += 4000.0;
            met += 1;
        }
    }
    assert!(met > 50, "only {met} steps of that size");
    let profile = fit(&runs, &options()).expect("enough rows");
    let of = |wanted| {
        let sizes = &profile.parameters().sizes_us;
        sizes.iter().find(|&&(size, _)| size == wanted).expect("met").1
    };
    assert!((3500.0..4200.0).contains(&of(448)), "{}", of(448));
    assert!(of(512) < 300.0, "{}", of(512));
}

#[test]
fn sharing_that_nobody_saw_saves_what_was_measured_apart() {
    let mut runs = made_up(0.01, 8);
    for row in runs.iter_mut().flat_map(|run| &mut run.rows) {
        row.shape.shared_context = 0;
    }
    let profile = fit(&runs, &options()).expect("enough rows");
    let plain = StepShape {
        decode_seqs: 64,
        decode_context: 64_000,
        decode_longest: 1000,
        ..StepShape::default()
    };
    let shared = StepShape { shared_context: 30_000, ..plain };
    let takes = |shape| profile.step_micros(shape, Site::Served);
    let saved = profile.parameters().terms_us[KV_READ] * 30_000.0 * (1.0 - SHARED_READ);
    assert!(saved > 100.0 && (takes(&plain) - takes(&shared) - saved).abs() < 1e-6);
}

#[test]
fn where_everybody_shares_one_prefix_its_saving_is_not_traded_for_what_a_sequence_costs() {
    let lens =
        Lens { padding: Padding::measured_server(), usual_spread: 1.5, split_attention: false };
    let mut dice = Dice::new(11, Purpose::Sampling, 0);
    let rows = (0..1500).map(|_| {
        let seqs = 2 + random(&mut dice, 80);
        let longest = 900 + random(&mut dice, 300);
        let shape = StepShape {
            decode_seqs: seqs,
            decode_context: u64::from(seqs) * 800 + dice.below(100) as u64,
            decode_longest: longest,
            shared_context: 512 * u64::from(seqs - 1),
            ..StepShape::default()
        };
        let truth = dot(&lens.features(&shape, Site::Served), &TRUTH);
        Row { shape, micros: truth * (1.0 + 0.03 * dice.normal()), gap_micros: None, weight: 1.0 }
    });
    let (name, rows) = ("one prefix".to_owned(), rows.collect());
    let run = Run { workload: name.clone(), name, site: Site::Served, rows, trace: None };
    let profile = fit(&[run], &options()).expect("enough rows");
    // Many sequences that share nothing, of the same lengths.
    let shape = StepShape {
        decode_seqs: 80,
        decode_context: 64_000,
        decode_longest: 1000,
        ..StepShape::default()
    };
    let truth = dot(&lens.features(&shape, Site::Served), &TRUTH);
    let off = profile.step_micros(&shape, Site::Served) / truth - 1.0;
    assert!(off.abs() < 0.08, "{off}");
}

#[test]
fn interrupted_steps_do_not_bend_the_fit() {
    let mut runs = made_up(0.01, 4);
    for row in runs.iter_mut().flat_map(|run| run.rows.iter_mut().step_by(50)) {
        row.micros += 80_000.0;
    }
    let profile = fit(&runs, &options()).expect("enough rows");
    let exact = made_up(0.0, 98);
    let errors = judge::errors(&profile, &exact[1], judge::Region::All).expect("rows");
    assert!(errors.mean_absolute < 0.02, "{errors:?}");
}

#[test]
fn the_same_rows_give_the_same_bits_and_resamples_depend_on_seed_and_index_alone() {
    let runs = made_up(0.05, 5);
    assert_eq!(fit(&runs, &options()), fit(&runs, &options()));
    let profile = fit(&runs, &options()).expect("enough rows");
    let resampled = |seed, index| resample::varied(&profile, 0.02, seed, index);
    assert_eq!(resampled(1, 3), resampled(1, 3));
    assert_ne!(resampled(1, 3), resampled(1, 4));
    assert_ne!(resampled(1, 3), resampled(2, 3));
}

#[test]
fn too_few_rows_and_impossible_times_are_refused() {
    let mut runs = made_up(0.0, 6);
    runs[1].rows[7].micros = 0.0;
    let message = fit(&runs, &options()).expect_err("no time").to_string();
    assert_eq!(message, "step 7 of `b` took `0`; legal: more than 0 microseconds");
    for run in &mut runs {
        run.rows.truncate(5);
    }
    assert!(matches!(fit(&runs, &options()), Err(FitError::TooFew { found: 15, .. })));
}
