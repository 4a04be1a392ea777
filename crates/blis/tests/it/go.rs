//! Calls of the Go program: they mean what they meant there, or are refused with what to use.

use crate::{Bench, Ran};

const MODEL: &str = "--model meta-llama/llama-3.1-8b-instruct";
const BANNER: &str = "=== Simulation Metrics ===\n{\n";

fn go(flags: &str) -> Ran {
    Bench::new().blis(&format!("run {MODEL} {flags}"))
}

fn ours(flags: &str) -> Ran {
    Bench::new().blis(&format!("run {MODEL} {flags} --format blis --quiet"))
}

#[test]
fn only_calls_of_the_go_program_get_its_layout_when_nobody_watches() {
    let bench = Bench::new();
    bench.write("s.yaml", "workload: {distribution: {num_requests: 3}}\n");
    let has_layout = |args: &str| bench.blis(args).out.starts_with(BANNER);
    assert!(has_layout(&format!("run {MODEL} --num-requests 3")));
    assert!(has_layout("run --num-requests 3 --format blis"));
    for ordinary in [
        "run s.yaml".to_owned(),
        format!("run s.yaml {MODEL}"),
        "run --num-requests 3".to_owned(),
        format!("run {MODEL} --num-requests 3 --format table"),
        format!("run {MODEL} --num-requests 3 --strategy least-loaded"),
    ] {
        assert!(!has_layout(&ordinary), "{ordinary}");
        assert!(bench.blis(&ordinary).out.contains("TTFT"), "{ordinary}");
    }
}

#[test]
fn the_last_of_a_repeated_flag_counts() {
    let ran = go("--log error --num-requests 9 --seed=3 --num-requests=4");
    assert_eq!((ran.code, ran.err.as_str()), (Some(0), ""));
    assert_eq!(ran.out, ours("--num-requests 4 --seed 3 --rate 1").out);
}

#[test]
fn levels_of_the_log_say_how_much_is_told() {
    let note = "note: --tp is not given; 2 is taken where the Go program takes 1\n";
    for (level, told) in [("debug", note), ("WARN", note), ("error", ""), ("fatal", "")] {
        let ran = go(&format!("--log {level} --num-requests 3"));
        assert_eq!((ran.code, ran.err.as_str()), (Some(0), told), "{level}");
    }
    let ran = go("--log loud");
    let fatal = "level=fatal msg=\"Invalid log level: loud\"\n";
    assert_eq!((ran.code, ran.err.as_str(), ran.out.as_str()), (Some(1), fatal, ""));
}

#[test]
fn numbers_are_refused_in_the_words_that_scripts_look_for() {
    for (flags, message) in [
        ("--total-kv-blocks -1", "--total-kv-blocks must be > 0, got -1"),
        ("--block-size-in-tokens 0", "--block-size-in-tokens must be > 0, got 0"),
        ("--kv-cpu-blocks -1", "--kv-cpu-blocks must be >= 0, got -1"),
        ("--horizon 0", "--horizon must be > 0, got 0"),
    ] {
        let ran = go(&format!("{flags} --log info"));
        assert_eq!(ran.err, format!("level=fatal msg=\"{message}\"\n"));
        assert_eq!((ran.code, ran.out.as_str()), (Some(1), ""), "{flags}");
        // Nothing in it says that a script of the Go program reads this.
        let ran = go(flags);
        assert_eq!((ran.code, ran.err), (Some(1), format!("error: {message}\n")), "{flags}");
    }
    let ran = go("--routing-policy nowhere --log error");
    assert!(ran.err.starts_with("level=fatal msg=\"--routing-policy: unknown"), "{}", ran.err);
    assert_eq!(ran.code, Some(1));
}

#[test]
fn policies_of_the_go_program_do_what_they_did() {
    let load = "--num-requests 40 --rate 90 --max-num-running-reqs 4 --num-instances 2";
    let age = "age[critical=1,standard=1,sheddable=1,batch=1,background=1]";
    for (theirs, here) in [
        ("--priority-policy slo-based --scheduler priority-fcfs", "--scheduler priority-fcfs"),
        (
            "--priority-policy inverted-slo --scheduler priority-fcfs",
            "--scheduler reverse-priority",
        ),
        (
            "--priority-policy inverted-slo --scheduler reverse-priority",
            "--scheduler priority-fcfs",
        ),
    ] {
        let here = ours(&format!("{load} {here} --priority-policy {age}"));
        assert_eq!(go(&format!("{load} {theirs}")).out, here.out, "{theirs}");
    }
    for (theirs, here) in [
        ("--priority-policy static-class-weight", "--priority-policy slo-class"),
        ("--slo-aware-kv-eviction", "--preempt lowest-priority --priority-policy slo-class"),
        (
            "--batch-formation slo-priority-preemption --priority-policy constant",
            "--preempt lowest-priority --priority-policy slo-class",
        ),
        ("--batch-formation vllm --priority-preemption-margin 0", ""),
        (
            "--precise-kv-routing --routing-policy weighted",
            "--routing-policy weighted --routing-scorers precise-prefix:3,queue-depth:2,kv-utilization:2",
        ),
        (
            "--admission-policy slo-gated --token-bucket-capacity 10",
            "--admission-policy slo-gated[threshold=5,statistic=mean]",
        ),
        (
            "--token-bucket-capacity 1 --routing-scorers queue-depth:1 --kv-offload-threshold 0.5",
            "",
        ),
        (
            "--max-num-seqs 3 --max-num-batched-tokens 99",
            "--max-num-running-reqs 3 --max-num-scheduled-tokens 99",
        ),
    ] {
        let load = load.replace("--max-num-running-reqs 4", "");
        let (theirs, here) = (format!("{load} {theirs}"), format!("{load} {here}"));
        assert_eq!(go(&theirs).out, ours(&here).out, "{theirs}");
    }
}

#[test]
fn what_has_no_counterpart_is_refused_with_what_to_use() {
    for (flags, instead) in [
        ("--priority-preemption-margin 4", "use `--preempt lowest-priority`"),
        ("--batch-formation tier-budget --tier-budget-critical-frac 0.5", "no `tier-budget`; use"),
        ("--routing-policy adaptive-weighted", "use `weighted`, `kv-adaptive` or `epoch-adaptive`"),
        ("--priority-policy deadline-aware", "use `deadline`"),
        ("--admission-policy tier-shed", "use `slo-gated`"),
        ("--latency-model crossmodel", "use `roofline`"),
        ("--defaults-filepath d.yaml", "give what differs as `--alpha-coeffs`"),
    ] {
        let ran = go(flags);
        assert!(ran.err.contains("--") && ran.err.lines().count() == 1, "{}", ran.err);
        assert!(ran.err.contains(instead), "{flags}: {}", ran.err);
        assert_eq!((ran.code, ran.out.as_str()), (Some(1), ""), "{flags}");
    }
    let bench = Bench::new();
    for (command, instead) in [
        ("run --log error", "instead: `--quiet`"),
        ("run s.yaml --hardware-config=h.json", "instead: `--hardware`"),
        ("convert preset --name chatbot", "`blis workloads NAME` prints a preset"),
        ("compose --from a.yaml", "into one"),
        ("replay", "instead: `blis run --trace FILE`"),
    ] {
        let ran = bench.blis(command);
        assert!(ran.err.starts_with("error: "), "{}", ran.err);
        assert!(ran.err.contains(instead), "{command}: {}", ran.err);
        assert_eq!((ran.code, ran.out.as_str()), (Some(2), ""), "{command}");
    }
}

#[test]
fn models_of_its_catalogue_have_its_coefficients() {
    let bench = Bench::new();
    let ran = bench.blis("run --model Qwen/Qwen3-14B --num-requests 3");
    assert_eq!(ran.err, "note: --tp is not given; 1 is taken\n");
    let by_hand = "--alpha-coeffs 8888.089034078324,0.18488961143592303,0 --beta-coeffs \
        13578.186662538783,39.44465647189146,27.3227753326911 --total-kv-blocks 17600";
    let given = bench.blis(&format!("run --num-requests 3 {by_hand} --format blis"));
    assert_eq!((ran.code, ran.out), (Some(0), given.out));
    let tp4 = bench.blis("run --model qwen/qwen2.5-7b-instruct --tp 4 --hardware H100");
    assert_eq!((tp4.code, tp4.err.as_str()), (Some(0), ""));
    let told = go("--beta-coeffs 5000,20,30 --num-requests 3").err;
    for note in ["--alpha-coeffs is not given; 0,0,0", "--total-kv-blocks is not given; 1000000"] {
        assert!(told.contains(note), "{told}");
    }
}

#[test]
fn the_roofline_takes_the_files_of_the_go_program() {
    let bench = Bench::new();
    bench.write(
        "config.json",
        r#"{"num_hidden_layers": 32, "hidden_size": 4096, "vocab_size": 128256,
        "num_attention_heads": 32, "num_key_value_heads": 8, "intermediate_size": 14336,
        "max_position_embeddings": 131072, "torch_dtype": "bfloat16"}"#,
    );
    let roofline = "--latency-model roofline --hardware H100 --tp 2 --num-requests 3";
    let ran = bench.blis(&format!(
        "run --model some/name --model-config-folder . --hardware-config none.json {roofline}"
    ));
    assert_eq!(ran.err, "note: --hardware-config is not read; data sheets are in the catalogue\n");
    let known = bench.blis(&format!("run --model llama-3.1-8b {roofline} --format blis"));
    assert_eq!((ran.code, ran.out), (Some(0), known.out));
}

#[test]
fn a_preset_without_a_rate_has_one_request_per_second() {
    let ran = go("--workload chatbot --num-requests 5 --log error");
    assert_eq!((ran.code, ran.err.as_str()), (Some(0), ""));
    assert_eq!(ran.out, ours("--workload chatbot --num-requests 5 --rate 1").out);
}

#[test]
fn bundles_stand_for_flags() {
    let bench = Bench::new();
    bench.write(
        "bundle.yaml",
        "priority: {policy: static-class-weight, class_weights: {critical: 7, batch: 2}}
scheduler: priority-fcfs
",
    );
    let run = |flags: &str| bench.blis(&format!("run {flags} --num-requests 9 --rate 50")).out;
    let bundle = run(&format!("{MODEL} --policy-config bundle.yaml"));
    let flags = "--priority-policy slo-class[critical=7,batch=2] --scheduler priority-fcfs";
    assert_eq!(bundle, run(&format!("{flags} --format blis")));
    bench.write("late.yaml", "priority: {policy: deadline-aware, epsilon: 0.01}\n");
    let ran = bench.blis("run --policy-config late.yaml");
    assert_eq!(ran.err, "error: late.yaml: there is no `deadline-aware`; use `deadline`\n");
}

#[test]
fn regret_is_told_with_the_decisions() {
    let trace = "--num-requests 9 --rate 50 --num-instances 2 --trace-level decisions \
        --summarize-trace";
    let told = go(&format!("{trace} --counterfactual-k 1 --log error")).out;
    let (_, regret) = told.split_once("\nMean Regret: ").expect("the mean");
    let (mean, rest) = regret.split_once("\nMax Regret: ").expect("the greatest");
    let max = rest.lines().next().expect("a number");
    assert!(mean.parse::<f64>().unwrap() <= max.parse::<f64>().unwrap());
    assert!(!go(trace).out.contains("Regret"), "nothing was tried elsewhere");
    assert!(!go("--counterfactual-k 3 --num-requests 3").out.contains("counterfactual"));
}
