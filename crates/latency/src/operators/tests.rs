//! Tests of the `operators` model.

use super::*;
use crate::catalogue::Catalogue;
use crate::model::Format;

fn made(model: &str, gpu: &str, tp: u32) -> Result<Operators, OperatorError> {
    shared(model, gpu, Parallel::tensor(tp))
}

fn shared(model: &str, gpu: &str, parallel: Parallel) -> Result<Operators, OperatorError> {
    let catalogue = Catalogue::shipped();
    let model = catalogue.model(model).expect(model).shape();
    let gpu = catalogue.gpu(gpu).expect(gpu);
    Operators::new(&model, gpu, parallel, Padding::vllm(512), None)
}

fn decode(seqs: u32, context: u64) -> StepShape {
    StepShape {
        decode_seqs: seqs,
        decode_context: u64::from(seqs) * context,
        decode_longest: u32::try_from(context).expect("small"),
        ..StepShape::default()
    }
}

fn prefill(seqs: u32, tokens: u32, past: u64) -> StepShape {
    let n = u64::from(tokens);
    StepShape {
        prefill_seqs: seqs,
        prefill_tokens: seqs * tokens,
        prefill_past_tokens: u64::from(seqs) * past,
        prefill_attention_pairs: u64::from(seqs) * (n * past + n * (n + 1) / 2),
        ..StepShape::default()
    }
}

#[test]
fn every_model_of_the_catalogue_makes_a_step_on_every_gpu_that_divides_it() {
    let catalogue = Catalogue::shipped();
    for gpu in gpus() {
        for model in &catalogue.models {
            let tp =
                if model.shape().query_heads.is_multiple_of(8) && gpu != "GB200" { 8 } else { 1 };
            match made(&model.name, gpu, tp) {
                Ok(made) => assert!(made.predict(&decode(8, 1000)) > Span::from_micros(100)),
                // The A100 has no table of compressed keys and values.
                Err(error) => {
                    let words = "attention of this kind was not measured on `A100-80`";
                    assert_eq!(error.to_string(), words, "{}", model.name);
                    assert!(model.shape().latent.is_some());
                }
            }
        }
    }
}

#[test]
fn more_work_never_takes_less_time_and_a_run_takes_as_long_as_its_steps() {
    for (model, gpu, tp) in [
        ("llama-3.1-8b", "H200", 1),
        ("llama-3.1-70b-fp8", "B200", 4),
        ("gpt-oss-120b", "H100", 2),
        ("deepseek-v3", "H200", 8),
        ("qwen2.5-7b", "L40S", 1),
    ] {
        let made = made(model, gpu, tp).expect(model);
        let takes = |shape: &StepShape| made.predict(shape);
        for seqs in [1, 2, 7, 16, 100, 255, 3000] {
            for mean in [16, 500, 1003, 8000, 200_000] {
                let shape = decode(seqs, mean);
                for more in [decode(seqs + 1, mean), decode(seqs, mean + 16)] {
                    assert!(takes(&more) >= takes(&shape), "{model}: {shape:?}");
                }
                let with_prefill = StepShape {
                    decode_seqs: seqs,
                    decode_context: shape.decode_context,
                    decode_longest: shape.decode_longest,
                    ..prefill(1, 64, 0)
                };
                assert!(takes(&with_prefill) >= takes(&shape), "{model}: {shape:?}");
                // A draft costs its products, and no more than sequences of its own would.
                let drafted = StepShape { draft_tokens: seqs, ..shape };
                let between = takes(&shape)..=takes(&decode(2 * seqs, mean));
                assert!(between.contains(&takes(&drafted)), "{model}: {drafted:?}");
            }
        }
        for (tokens, past) in [(1, 0), (17, 512), (448, 8000), (8192, 0), (30_000, 100)] {
            let shape = prefill(2, tokens, past);
            for more in [prefill(2, tokens + 1, past), prefill(2, tokens, past + 1)] {
                assert!(takes(&more) >= takes(&shape), "{model}: {shape:?}");
            }
        }
        let shape = decode(40, 1003);
        let stepped = (0..60).map(|step| made.predict(&shape.after(step)));
        let total = stepped.fold(Span::ZERO, |total, step| total + step);
        assert_eq!(made.run(&shape, 60), total);
    }
}

#[test]
fn no_step_is_faster_than_its_bytes_and_products() {
    let catalogue = Catalogue::shipped();
    for (name, gpu, tp) in [
        ("llama-3.1-70b-fp8", "H200", 2),
        ("qwen3-235b-a22b-fp8", "B200", 4),
        ("kimi-k2", "B200", 8),
    ] {
        let operators = made(name, gpu, tp).expect(name);
        let model = catalogue.model(name).expect(name).shape();
        let gpu = catalogue.gpu(gpu).expect(gpu);
        for seqs in [1, 64, 512] {
            let shape = decode(seqs, 2000);
            let kv = model.kv_bytes_per_token() * model.kv_share(tp) * float(shape.decode_context);
            let bytes = model.bytes_met(seqs) / f64::from(tp) + kv;
            let least = bytes / (gpu.bandwidth_tb_s * 1e6);
            let found = operators.step_micros(&shape, seqs);
            assert!(found > least, "{name}, {seqs}: {found} against {least}");
        }
        let speed = |format| gpu.sheet().speed(format);
        let products = 2.0 * model.products_per_token(speed) * 8192.0 / f64::from(tp);
        let least = products / (gpu.bf16_tflops * 1e6);
        let found = operators.step_micros(&prefill(1, 8192, 0), 8192);
        assert!(found > least && found < 20.0 * least, "{name}: {found} against {least}");
    }
}

#[test]
fn a_pipeline_takes_its_sends_longer_and_its_last_stage_has_the_output_layer() {
    let whole = made("llama-3.1-8b", "H200", 1).expect("measured");
    let piped = shared("llama-3.1-8b", "H200", Parallel { pp: 2, ..Parallel::tensor(1) });
    let piped = piped.expect("measured");
    for shape in [decode(64, 1000), prefill(2, 4096, 0)] {
        let (total, alone) = (piped.predict(&shape), whole.predict(&shape));
        // One send of 4,096 columns, of which there are two, at 450 GB/s.
        let tokens = f64::from(Padding::vllm(512).decode.hold(shape.tokens()).max(shape.tokens()));
        let send = 10.0 + tokens * 4.0 * 4096.0 / 450e3;
        let more = float((total - alone).as_nanos()) / 1e3;
        assert!((more - send).abs() < 0.01 * send, "{more} against {send}");
        let mut stages = [Span::ZERO; 2];
        piped.divide(&shape, total, &mut stages);
        let output = piped.output.at(shape.outputs().into());
        let last = float((stages[1] - stages[0]).as_nanos()) / 1e3;
        assert!((last - output).abs() < 0.01, "{last} against {output}");
        let sum = stages[0] + stages[1];
        assert!(sum.as_nanos().abs_diff(total.as_nanos()) < 3, "{sum} against {total}");
    }
}

/// Whole experts read as many bytes of weights as slices of all do, and ranks divide attention.
#[test]
fn experts_can_be_divided_and_attention_be_that_of_the_busiest_rank() {
    let of = |tp, dp, expert| {
        let parallel = Parallel { dp, expert, ..Parallel::tensor(tp) };
        shared("minimax-m2.5", "H200", parallel).expect("measured")
    };
    let (sliced, whole, ranks) = (of(8, 1, false), of(8, 1, true), of(1, 8, true));
    let micros = |made: &Operators, shape: &StepShape| made.step_micros(shape, made.padded(shape));
    let shape = decode(256, 2000);
    let ratio = micros(&whole, &shape) / micros(&sliced, &shape);
    assert!((0.7..1.4).contains(&ratio), "{ratio}");
    // 32 sequences on each of eight ranks take as long as eight times as many do, and 33 longer.
    let rank = busiest(&shape, 8);
    assert_eq!((rank.decode_seqs, rank.decode_context), (32, 64_000));
    assert_eq!(busiest(&decode(257, 2000), 8).decode_seqs, 33);
    assert!(micros(&ranks, &decode(257, 2000)) > micros(&ranks, &shape));
    // One prompt is computed by one rank, and eight by all of them in less than eight times that.
    let (one, eight) = (micros(&ranks, &prefill(1, 1024, 0)), micros(&ranks, &prefill(8, 1024, 0)));
    assert!(eight < 5.0 * one && one < eight, "{one}, {eight}");
    // Attention that is not divided over GPUs needs no all-reduce: decoding in ranks is faster
    // where contexts are what takes time.
    let long = decode(256, 30_000);
    assert!(micros(&ranks, &long) < micros(&sliced, &long));
}

#[test]
fn what_vllm_cannot_share_is_refused() {
    let refused = |model, parallel| shared(model, "H200", parallel).expect_err("no").to_string();
    let one = Parallel::tensor(1);
    let pp = refused("llama-3.1-8b", Parallel { pp: 33, ..one });
    assert!(pp.contains("`pp` is `33`; legal: 1 to 32"), "{pp}");
    assert!(refused("llama-3.1-8b", Parallel { dp: 2, ..one }).contains("without experts"));
    assert!(refused("llama-3.1-8b", Parallel { expert: true, ..one }).contains("without experts"));
    let both = refused("minimax-m2.5", Parallel { pp: 2, dp: 2, ..one });
    assert!(both.contains("1 in a pipeline"), "{both}");
    let odd = refused("minimax-m2.5", Parallel { dp: 3, expert: true, ..one });
    assert!(odd.contains("divides 256 experts"), "{odd}");
    let far = refused("minimax-m2.5", Parallel { dp: 16, expert: true, ..one });
    assert!(far.contains("the exchange of tokens between 16 GPUs (`tp` times `dp` may"), "{far}");
}

#[test]
fn what_was_not_measured_is_refused_or_said() {
    let refused = |tp| made("llama-3.1-70b", "H200", tp).expect_err("illegal").to_string();
    assert!(refused(3).contains("does not divide 64 query heads"));
    let all_reduce = "an all-reduce of 16 GPUs (`tp` may be 1, 2, 4, 8) was not measured on `H200`";
    assert_eq!(refused(16), all_reduce);
    let exact = made("llama-3.1-70b-fp8", "H200", 4).expect("measured");
    assert_eq!(exact.notes(), [""; 0]);
    let awq = made("llama-3.1-70b-awq", "H100", 2).expect("scaled");
    assert_eq!(awq.notes(), ["matrix products in int4 are those in bf16 that read fewer bytes"]);
    let odd = made("qwen2.5-7b", "H200", 1).expect("scaled");
    assert!(odd.notes()[0].starts_with("attention of 28 query and 4 KV heads"), "{odd:?}");
    assert_eq!(exact.beyond(&decode(2048, 100_000)), 0);
    assert_eq!(exact.beyond(&decode(4096, 100)), 1);
}

#[test]
fn experts_of_many_tokens_take_what_servers_take_and_those_of_few_what_was_measured() {
    let catalogue = Catalogue::shipped();
    let [hopper, blackwell] = ["H200", "B200"].map(|name| catalogue.gpu(name).expect("known"));
    assert!((served::experts(hopper, Format::Fp8Block, 1.0) - 1.0).abs() < 0.01);
    assert!((served::experts(hopper, Format::Fp8Block, 1e6) - 2.0).abs() < 0.01);
    assert!((served::experts(hopper, Format::Plain, 1e6) - 1.0).abs() < 1e-9);
    assert!(served::experts(blackwell, Format::Mxfp4, 1e6) < 0.51);
    assert!(served::all_reduce(blackwell, 1e7) > served::all_reduce(blackwell, 1e6));
    assert!((served::all_reduce(hopper, 1e7) - 1.0).abs() < 1e-9);
}
