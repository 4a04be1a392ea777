//! Errors name what is to be changed, and say how.

use crate::Bench;
use crate::bad_input::refused;

#[test]
fn a_share_of_memory_that_is_too_small_is_blamed_and_not_the_gpus() {
    let needs = "meta-llama/llama-3.1-8b-instruct on H100 with tp 2: the model needs `9.6` GiB on \
                 each GPU and 0.8 GiB may be used; take more or larger GPUs, or a larger share of \
                 their memory";
    refused("--gpu-memory-utilization 0.01", &format!("--gpu-memory-utilization: {needs}"));
    refused(
        "--latency-model roofline --hardware H100 --tp 1 --model llama-3.1-70b",
        "--tp: meta-llama/llama-3.1-70b-instruct on H100 with tp 1: the model needs `133.1` GiB on \
         each GPU and 71.3 GiB may be used; take more or larger GPUs, or a larger share of their \
         memory",
    );
}

#[test]
fn a_model_without_coefficients_is_told_what_else_there_is() {
    let instead = "name a GPU for the latency model `roofline`, or give alpha and beta \
                   coefficients and the number of KV blocks";
    for (flags, error) in [
        ("", "--model: no coefficients for `qwen/qwen3-32b`"),
        (" --tp 4", "--tp: no coefficients for `qwen/qwen3-32b` with tp `4`"),
    ] {
        refused(&format!("--model qwen/qwen3-32b{flags}"), &format!("{error}; {instead}"));
    }
    refused(
        "--tp 4",
        &format!(
            "--tp: no coefficients for `meta-llama/llama-3.1-8b-instruct` with tp `4`; known: H100 \
             with tp 2, A100-80 with tp 2; or {instead}"
        ),
    );
}

#[test]
fn a_threshold_of_another_offload_policy_is_blamed_and_not_the_policy() {
    refused(
        "--kv-cpu-blocks 9 --kv-offload on-evict --kv-offload-threshold 0.5",
        "--kv-offload-threshold: offload policy `on-evict`: unknown parameter `threshold`: this \
         policy has none",
    );
}

#[test]
fn a_dash_is_no_file_of_a_run() {
    for flag in ["--trace-out", "--timeline"] {
        refused(
            &format!("{flag} -"),
            &format!("{flag}: found `-`; legal: a file (`./-` for one of that name)"),
        );
    }
    let bench = Bench::new();
    let ran = bench.blis("run --num-requests 3 --quiet --trace-out ./-");
    assert_eq!((ran.code, bench.files()), (Some(0), vec!["-".to_owned()]));
}

#[test]
fn a_trace_without_requests_is_not_written() {
    let bench = Bench::new();
    for out in ["t.jsonl", "-"] {
        let ran = bench.blis(&format!("trace generate --num-requests 10 --horizon 1 --out {out}"));
        let error = "error: no request arrives before the horizon; raise `--horizon`\n";
        assert_eq!((ran.code, ran.out.as_str(), ran.err.as_str()), (Some(2), "", error), "{out}");
        assert_eq!(bench.files(), Vec::<String>::new());
    }
}

#[test]
fn a_specification_in_the_place_of_a_scenario_is_recognised() {
    let bench = Bench::new();
    let clients = "[{rate_fraction: 1, arrival: {process: poisson}, \
                   input_distribution: {type: constant, params: {value: 5}}, \
                   output_distribution: {type: constant, params: {value: 5}}}]";
    bench.write("w.yaml", format!("version: \"2\"\naggregate_rate: 5\nclients: {clients}\n"));
    let ran = bench.blis("run w.yaml");
    let error = "error: w.yaml:1:10: version: this is a workload specification, not a scenario; \
                 give it with `--workload-spec`, or as `workload.spec` of a scenario\n";
    assert_eq!((ran.code, ran.err.as_str()), (Some(2), error));
    let ran = bench.blis("run --workload-spec w.yaml --num-requests 5 --quiet");
    assert_eq!(ran.code, Some(0), "{}", ran.err);
}

#[test]
fn preemption_and_eviction_are_chosen_by_flags_as_in_a_file() {
    let bench = Bench::new();
    bench.write("s.yaml", "preempt: lowest-priority\nevict: lfu\n");
    let hash = |args: &str| {
        let value =
            bench.blis(&format!("run {args} --num-requests 5 --format json --quiet")).json();
        value["run"]["scenario_hash"].as_str().expect("a hash").to_owned()
    };
    assert_eq!(hash("--preempt lowest-priority --evict lfu"), hash("s.yaml"));
    assert_ne!(hash(""), hash("s.yaml"));
    refused(
        "--evict lru[x=1]",
        "--evict: eviction policy `lru`: unknown parameter `x`: this policy has none",
    );
}

#[test]
fn very_long_arguments_are_not_repeated_whole() {
    let long = "x".repeat(100_000);
    for args in [
        format!("run --num-requests {long}"),
        format!("run --replications {long}"),
        format!("run {long}.yaml"),
        format!("run --timeline {long}"),
        format!("study {long} --jobs {long}"),
        format!("ledger show {long}"),
        long.clone(),
    ] {
        let ran = Bench::new().blis(&args);
        assert_ne!(ran.code, Some(0));
        assert!(ran.err.len() < 5_000, "{} bytes: {:.300}", ran.err.len(), ran.err);
    }
}
