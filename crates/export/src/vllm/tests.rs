//! Tests of the file beside.

use super::*;
use crate::coverage::System;
use crate::plan;
use blis_policy::kinds;
use blis_scenario::scenario::Draft;
use blis_scenario::strategy;

fn exported(text: &str) -> String {
    let draft = Draft::from_text("s.yaml", text).expect("YAML");
    export(&plan(&draft).expect(text), "a test").text
}

/// A scenario with the policy `name` of `kind`, for those of the engine.
fn scenario(kind: &str, name: &str) -> String {
    match kind {
        "order" if name.contains("priority") => format!("scheduler: {name}\npriority: slo-class"),
        "order" => format!("scheduler: {name}"),
        "priority" if name == "constant" => "priority: constant".to_owned(),
        "priority" => format!("scheduler: priority-fcfs\npriority: {name}"),
        "preempt" => format!("preempt: {name}"),
        "evict" => format!("evict: {name}"),
        "offload" => format!("kv_tier: {{cpu_blocks: 1000, offload: {name}, reload: async}}"),
        _ => panic!("{kind} is not the engine's"),
    }
}

#[test]
fn every_policy_of_the_engine_is_exported_as_the_table_says() {
    let mut seen = 0;
    for kind in kinds().into_iter().filter(|kind| System::of(kind.name) == System::Vllm) {
        for entry in &kind.entries {
            // `export` itself refuses what vLLM does not read.
            let text = exported(&scenario(kind.name, entry.name));
            let mapping = coverage::of(kind.name, entry.name);
            for flag in &mapping.by {
                assert!(
                    text.contains(&format!("  {flag}")),
                    "{} without {flag}:\n{text}",
                    entry.name
                );
            }
            let (word, _) = mapping.fit.told();
            let note = format!("# [{word}] {} `{}`", kind.name, entry.name);
            assert!(text.contains(&note), "no comment `{note}`:\n{text}");
            seen += 1;
        }
    }
    assert!(seen > 20, "a short registry: {seen}");
}

#[test]
fn the_type_of_the_kv_cache_is_exported_unless_it_is_the_models_own() {
    let with = |dtype: &str| {
        exported(&format!(
            "model: llama-3.1-8b\nhardware: H100\ntp: 1\nlatency: {{model: roofline}}\n\
             engine: {{kv_cache_dtype: {dtype}}}"
        ))
    };
    for (dtype, flag) in [("fp8", "--kv-cache-dtype fp8"), ("bf16", "--kv-cache-dtype bfloat16")] {
        let text = with(dtype);
        assert!(text.contains(flag) && schema::problems(&text).is_empty(), "{text}");
    }
    assert!(!with("auto").contains("--kv-cache-dtype"));
}

#[test]
fn blocks_that_the_gpus_cannot_hold_are_left_out_and_told() {
    let with = |engine: &str| {
        exported(&format!(
            "model: llama-3.1-8b\nhardware: H100\ntp: 1\nlatency: {{model: roofline}}\n\
             engine: {{{engine}}}"
        ))
    };
    // 16 GB of weights leave less than 64 GB of 80: at 2 MiB a block fewer than 32,000 blocks.
    for (engine, fits) in [
        ("total_kv_blocks: 20000", true),
        ("total_kv_blocks: 40000", false),
        ("total_kv_blocks: 40000, kv_cache_dtype: fp8", true),
        ("gpu_memory_utilization: 1", true),
    ] {
        let text = with(engine);
        let command = &text[text.find("vllm serve").expect("a command")..];
        assert_eq!(command.contains("--num-gpu-blocks-override"), fits, "{engine}\n{text}");
        let told = text.replace("\n#  ", "");
        let left_out = "[approximate] KV blocks: the simulated blocks do not fit";
        assert_eq!(told.contains(left_out), !fits, "{engine}\n{text}");
        assert_eq!(told.contains("[exact] KV blocks"), fits, "{engine}\n{text}");
    }
}

#[test]
fn every_strategy_that_ships_is_exported() {
    for shipped in strategy::ALL {
        let text = exported(&format!("strategy: {}", shipped.name));
        let comments = text.lines().filter(|line| line.starts_with('#'));
        assert!(comments.clone().all(|line| line.chars().count() <= 100), "{text}");
        assert!(comments.count() > 5 && schema::problems(&text).is_empty(), "{text}");
    }
}

#[test]
fn an_engine_with_a_tier_and_classes_is_written_out() {
    let text = exported(
        "model: meta-llama/llama-3.1-8b-instruct
engine: {preset: vllm-h100, total_kv_blocks: 5000, long_prefill_token_threshold: 512, watermark: 0.01}
scheduler: priority-fcfs
priority: slo-class
kv_tier: {cpu_blocks: 1000, reload: async}
routing: {policy: weighted, scorers: 'pp:2,qd:1'}
",
    );
    let command = &text[text.find("vllm serve").expect("a command")..];
    let wanted = "\
vllm serve meta-llama/llama-3.1-8b-instruct \\
  --tensor-parallel-size 2 \\
  --max-num-seqs 1024 \\
  --max-num-batched-tokens 8192 \\
  --enable-chunked-prefill \\
  --long-prefill-token-threshold 512 \\
  --scheduler-reserve-full-isl \\
  --no-async-scheduling \\
  --watermark 0.01 \\
  --scheduling-policy priority \\
  --enable-prefix-caching \\
  --block-size 16 \\
  --num-gpu-blocks-override 5000 \\
  --kv-transfer-config '{\"kv_connector\": \"OffloadingConnector\", \"kv_role\": \"kv_both\", \
\"kv_connector_extra_config\": {\"block_size\": 16, \"cpu_bytes_to_use\": 2097152000}}' \\
  --kv-events-config '{\"enable_kv_cache_events\": true, \"publisher\": \"zmq\", \"endpoint\": \
\"tcp://*:5557\", \"topic\": \"kv@$(POD_IP):8000@meta-llama/llama-3.1-8b-instruct\"}'
";
    assert_eq!(command, wanted);
    let told = text.replace("\n#  ", "");
    assert!(
        told.contains("critical -10, standard -5, sheddable -1, batch -1, background 0"),
        "{text}"
    );
}

#[test]
fn parts_that_are_no_policies_have_their_comments_too() {
    let text = exported(
        "model: nobody/nothing
hardware: H100
tp: 1
engine:
  max_num_running_reqs: 600
  max_num_scheduled_tokens: 512
  preemption: swap
  total_kv_blocks: 900
kv_tier: {cpu_blocks: 1000, reload: blocking, bandwidth_blocks_per_us: 1}
scheduler: priority-fcfs
priority: slo-class
latency: {beta_us: [1, 2, 3], alpha_us: [1, 2, 3]}
",
    );
    for part in [
        "[none] token budget: vLLM does not start",
        "[none] preemption by swapping: vLLM recomputes",
        "[none] reload `blocking`: the connector",
        "[approximate] CPU tier: the size of this model's blocks is not known",
        "[approximate] preempt `tail`: with `--scheduling-policy priority`",
    ] {
        let told = text.replace("\n#  ", "");
        assert!(told.contains(part), "{part}\nis not in\n{text}");
    }
}

#[test]
fn parallelism_and_the_budgets_of_a_rank_are_written_and_read_by_vllm() {
    let command = |text: &str| {
        let text = exported(text);
        let command = text[text.find("vllm serve").expect("a command")..].to_owned();
        assert_eq!(schema::problems(&command), [] as [String; 0], "{command}");
        command.replace(" \\\n ", "")
    };
    let piped = command("{model: llama-3.1-70b, hardware: H100, tp: 4, pp: 2}");
    assert!(piped.contains("--tensor-parallel-size 4 --pipeline-parallel-size 2 "), "{piped}");
    let ranks = "model: minimax-m2.5, hardware: H200, tp: 1, dp: 8, expert_parallel: true";
    let ranks = command(&format!("{{{ranks}, engine: {{total_kv_blocks: 80000}}}}"));
    assert!(ranks.contains("--data-parallel-size 8 --enable-expert-parallel "), "{ranks}");
    assert!(ranks.contains("--max-num-seqs 1024 --max-num-batched-tokens 8192 "), "{ranks}");
    assert!(ranks.contains("--num-gpu-blocks-override 10000"), "{ranks}");
    assert!(!ranks.contains("--long-prefill"), "{ranks}");
}

#[test]
fn what_vllm_does_not_read_is_found() {
    let text = exported("strategy: precise\nkv_tier: {cpu_blocks: 500}");
    // Comments name flags too.
    let good = &text[text.find("vllm serve").expect("a command")..];
    let problems = schema::problems(good);
    assert!(problems.is_empty(), "{problems:?}");
    for (from, to) in [
        ("--max-num-seqs", "--max-num-sequences"),
        ("--max-num-seqs 1024", "--max-num-seqs 0"),
        ("--max-num-seqs 1024", "--max-num-seqs"),
        ("--enable-prefix-caching", "--enable-prefix-caching true"),
        ("--async-scheduling", "--async-scheduling false"),
        ("--scheduling-policy fcfs", "--scheduling-policy sjf"),
        ("--block-size 16", "--block-size 16 \\\n  --block-size 16"),
        ("kv_connector\"", "connector\""),
        ("\"publisher\": \"zmq\"", "\"publisher\": \"nats\""),
        ("vllm serve", "vllm run"),
    ] {
        let bad = good.replacen(from, to, 1);
        assert_ne!(bad, good, "`{from}` is not in\n{good}");
        assert!(!schema::problems(&bad).is_empty(), "`{to}` was accepted");
    }
}
