//! Tests of the `profile` model.

use super::*;
use blis_core::Dice;
use blis_core::random::Purpose;

/// About what the H200 fit says.
pub(crate) fn some_parameters() -> Parameters {
    let mut terms_us = [0.0; TERMS];
    let values = [
        4768.0, 7.6, 10.9, 1.5, 0.03, 0.02, 0.0019, 0.035, 71.0, 457.0, 2.6, 20.0, 1668.0, 0.5,
        0.007, 44.4, 0.01, 0.01, 0.1, 0.2,
    ];
    terms_us.copy_from_slice(&values);
    Parameters {
        padding: Padding::measured_server(),
        usual_spread: 1.5,
        split_attention: false,
        terms_us,
        sizes_us: vec![(256, 1946.0), (448, 5454.0)],
        gap: Gap { step_us: 10.8, decode_seq_us: 1.2, prefill_seq_us: 24.6 },
        host: None,
        ranges: [Some(Range { min: 1.0, max: 256.0 }); VARIABLES.len()],
        covariance: Vec::new(),
        drift: 0.01,
        provenance: vec!["made up".to_owned()],
    }
}

fn some_profile() -> Profile {
    Profile::new(some_parameters()).expect("legal")
}

fn decode(seqs: u32, mean: u64, longest: u32) -> StepShape {
    StepShape {
        decode_seqs: seqs,
        decode_context: u64::from(seqs) * mean,
        decode_longest: longest,
        ..StepShape::default()
    }
}

fn prefill(tokens: u32, past: u64) -> StepShape {
    let n = u64::from(tokens);
    StepShape {
        prefill_seqs: 1,
        prefill_tokens: tokens,
        prefill_past_tokens: past,
        prefill_attention_pairs: n * past + n * (n + 1) / 2,
        ..StepShape::default()
    }
}

#[test]
fn a_run_of_decode_steps_takes_exactly_as_long_as_its_steps() {
    let profile = some_profile();
    let mut windows_crossed = 0;
    for key in 0..300 {
        let mut dice = Dice::new(7, Purpose::Sampling, key);
        let seqs = 1 + u32::try_from(dice.below(256)).expect("small");
        let odd = dice.below(seqs as usize) as u64;
        let mut shape = decode(seqs, 1 + dice.below(3000) as u64, 0);
        shape.decode_context += odd;
        if dice.below(2) == 0 {
            shape.decode_longest = 3001 + u32::try_from(dice.below(5000)).expect("small");
        }
        shape.shared_context = dice.below(100) as u64;
        let steps = u32::try_from(dice.below(200)).expect("small");
        let stepped: Span =
            (0..steps).fold(Span::ZERO, |total, step| total + profile.predict(&shape.after(step)));
        assert_eq!(profile.run(&shape, steps), stepped, "{shape:?}, {steps} steps");
        windows_crossed += u32::from(profile.repeats(&shape) < steps);
    }
    assert!(windows_crossed > 100, "runs crossed a window only {windows_crossed} times");
}

#[test]
fn a_step_takes_as_long_as_the_steps_it_says_it_repeats_for_and_no_longer() {
    let profile = some_profile();
    let shape = decode(40, 1003, 1500);
    let equal = profile.repeats(&shape);
    assert_eq!(equal, 5);
    let first = profile.predict(&shape);
    assert_eq!(profile.predict(&shape.after(equal - 1)), first);
    assert!(profile.predict(&shape.after(equal)) > first);
    assert_eq!(profile.repeats(&prefill(100, 0)), 1);
}

#[test]
fn more_work_never_takes_less_time() {
    let profile = Profile::new(Parameters { sizes_us: Vec::new(), ..some_parameters() });
    let profile = profile.expect("legal");
    let takes = |shape: &StepShape| profile.predict(shape);
    for seqs in [1, 2, 7, 8, 12, 13, 24, 25, 100, 255] {
        for mean in [16, 500, 1000, 8000] {
            let longest = u32::try_from(mean * 2).expect("small");
            let shape = decode(seqs, mean, longest);
            let longer = StepShape { decode_longest: longest + 100, ..shape };
            let more_context =
                StepShape { decode_context: shape.decode_context + 16 * u64::from(seqs), ..shape };
            let one_more = StepShape {
                decode_seqs: seqs + 1,
                decode_context: shape.decode_context + mean,
                ..shape
            };
            let with_prefill = StepShape {
                decode_seqs: seqs,
                decode_context: shape.decode_context,
                decode_longest: longest,
                ..prefill(64, 0)
            };
            for more in [longer, more_context, one_more, with_prefill] {
                assert!(takes(&more) >= takes(&shape), "{shape:?} against {more:?}");
            }
        }
    }
    for tokens in [1, 15, 16, 17, 200, 448, 449, 2048, 4000] {
        for past in [0, 512, 8000] {
            let shape = prefill(tokens, past);
            assert!(takes(&prefill(tokens + 1, past)) >= takes(&shape), "{shape:?}");
            assert!(takes(&prefill(tokens, past + 1)) >= takes(&shape), "{shape:?}");
        }
    }
}

#[test]
fn an_extrapolation_is_near_what_physics_says() {
    // 8,192 tokens of prompt at 700 TFLOP/s and 16 GFLOP a token take about 190 ms; reading 1.3 GB
    // of KV and 16 GB of weights at 4.2 TB/s about 4.2 ms.
    let profile = some_profile();
    let long_prompt = profile.predict(&prefill(8192, 0)).as_millis_f64();
    assert!((150.0..260.0).contains(&long_prompt), "{long_prompt} ms");
    let one_long = profile.predict(&decode(1, 8192, 8192)).as_millis_f64();
    assert!((6.0..9.0).contains(&one_long), "{one_long} ms");
}

#[test]
fn padding_makes_batches_of_one_size_take_equally_long_but_for_their_sequences() {
    let mut parameters = some_parameters();
    for name in ["host_seq", "host_context", "kv_read"] {
        let at = term::ALL.iter().position(|term| term.name == name).expect("a term");
        parameters.terms_us[at] = 0.0;
    }
    parameters.gap = Gap::default();
    let profile = Profile::new(parameters).expect("legal");
    let takes = |seqs| profile.predict(&decode(seqs, 100, 100));
    assert_eq!(takes(9), takes(16));
    assert!(takes(17) > takes(16));
    assert!(takes(9) > takes(8));
}

#[test]
fn a_shape_outside_the_fitted_range_is_named() {
    let profile = some_profile();
    assert!(profile.outside(&decode(4, 200, 250)).is_empty());
    let outside = profile.outside(&decode(300, 200, 250));
    assert_eq!(outside.len(), 1);
    assert_eq!(outside[0].0, "decode_seqs");
    let mut parameters = some_parameters();
    parameters.ranges[0] = None;
    let blind = Profile::new(parameters).expect("legal");
    assert_eq!(blind.outside(&decode(4, 200, 250))[0].0, "decode_seqs", "never seen is outside");
}

#[test]
fn illegal_parameters_are_refused() {
    let refuses = |change: &dyn Fn(&mut Parameters)| {
        let mut parameters = some_parameters();
        change(&mut parameters);
        Profile::new(parameters).expect_err("illegal").to_string()
    };
    assert!(refuses(&|p| p.terms_us[4] = -0.1).contains("`kv_read` is `-0.1`"));
    assert!(refuses(&|p| p.terms_us[0] = f64::NAN).contains("`weights` is `NaN`"));
    assert!(refuses(&|p| p.sizes_us[1].1 = f64::INFINITY).contains("`size 448`"));
    assert!(refuses(&|p| p.gap.step_us = -1.0).contains("`gap step`"));
    assert!(refuses(&|p| p.usual_spread = 0.5).contains("`0.5`"));
    assert!(refuses(&|p| p.drift = -0.1).contains("drift is `-0.1`"));
    assert!(refuses(&|p| p.sizes_us[1].0 = 256).contains("size `256`"));
    assert!(refuses(&|p| p.covariance = vec![vec![0.0; 3]; 3]).contains("side of `3`"));
}

#[test]
fn a_server_slower_by_a_factor_is_slower_by_that_factor() {
    let profile = some_profile();
    let slower = profile.scaled(1.25).expect("legal");
    for shape in [decode(40, 1000, 2000), prefill(700, 512)] {
        let ratio =
            slower.predict(&shape).as_micros_f64() / profile.predict(&shape).as_micros_f64();
        assert!((ratio - 1.25).abs() < 1e-6, "{ratio}");
    }
}
