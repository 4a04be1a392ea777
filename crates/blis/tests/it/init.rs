//! `blis init`: three commands from nothing to a study.

use crate::Bench;

#[test]
fn a_study_of_a_new_cluster_takes_three_commands_and_no_editing() {
    let bench = Bench::new();
    let chat =
        "--model llama-3.1-70b --hardware H100 --gpus 8 --prompt-tokens 256 --output-tokens 32";
    let init = bench.blis(&format!("init here {chat} --rate 20 --slo ttft_p99<1s"));
    assert_eq!(init.code, Some(0), "{}", init.err);
    assert!(init.out.contains("2 instances of llama-3.1-70b on 4 H100 each."), "{}", init.out);
    let run = bench.blis("run here/scenario.yaml --num-requests 200");
    assert!(run.out.contains("the latency model is the roofline"), "{}", run.out);
    let study = bench.blis("study here/study.yaml --quiet --no-ledger");
    assert_eq!(study.code, Some(0), "{}", study.err);
    assert!(study.out.contains("round-robin: ttft_p99<1s"), "{}", study.out);
}

#[test]
fn init_never_writes_over_a_file_and_names_a_target_that_it_cannot_read() {
    let bench = Bench::new();
    let wrong = bench.blis("init --rate 20 --slo ttft_p98<1s");
    assert_eq!(wrong.code, Some(2), "{}", wrong.err);
    assert!(wrong.err.contains("--slo"), "{}", wrong.err);
    assert!(bench.files().is_empty());
    assert_eq!(bench.blis("init --rate 20").code, Some(0));
    let again = bench.blis("init --rate 20");
    assert_eq!(again.code, Some(2));
    assert!(again.err.contains("scenario.yaml is there already"), "{}", again.err);
}

#[test]
fn init_says_when_a_model_does_not_fit() {
    let ran = Bench::new().blis("init --model llama-3.1-70b --gpus 1 --hardware H100");
    assert_eq!(ran.code, Some(2));
    assert!(ran.err.contains("take more or larger GPUs"), "{}", ran.err);
}

#[test]
fn init_refuses_what_it_would_ignore() {
    let bench = Bench::new();
    bench.write("t.jsonl", "");
    for (args, message) in [
        ("--rate 20 --tp 16 --gpus 8", "--tp: found `16`; legal: at most --gpus, which is 8"),
        ("--trace t.jsonl --workload chatbot", "cannot be used with '--workload"),
    ] {
        let ran = bench.blis(&format!("init {args}"));
        assert_eq!(ran.code, Some(2), "{args}: {}", ran.err);
        assert!(ran.err.contains(message), "{args}: {}", ran.err);
    }
}
