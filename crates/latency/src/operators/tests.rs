//! Tests of the `operators` model.

use super::*;
use crate::catalogue::Catalogue;
use crate::model::Format;

fn made(model: &str, gpu: &str, tp: u32) -> Result<Operators, OperatorError> {
    let catalogue = Catalogue::shipped();
    let model = catalogue.model(model).expect(model).shape();
    let gpu = catalogue.gpu(gpu).expect(gpu);
    Operators::new(&model, gpu, tp, Padding::vllm(512), None)
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
        let products = 2.0 * model.products_per_token() * 8192.0 / f64::from(tp);
        let least = products / (gpu.bf16_tflops * 1e6);
        let found = operators.step_micros(&prefill(1, 8192, 0), 8192);
        assert!(found > least && found < 20.0 * least, "{name}: {found} against {least}");
    }
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
