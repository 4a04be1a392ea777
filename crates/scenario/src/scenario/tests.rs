//! Flags are fields, defaults written out mean the same as left out, and nothing illegal gets
//! through.

use super::*;
use crate::run::RunFailure;
use crate::yaml::tests::without_comments;
use blis_sim::Reload;

const WRITTEN_OUT: &str = "
name: a name does not matter
description: nor does a description
seed: 42
model: meta-llama/llama-3.1-8b-instruct
hardware: H100
tp: 2
latency:
  model: coefficients
cluster: {instances: 1}
engine:
  preset: vllm-0.26
  total_kv_blocks: 132139
  block_size: 16
  max_num_running_reqs: 1024
  max_num_scheduled_tokens: 8192
  max_cudagraph_capture_size: 512
  async_scheduling: true
  cache_on_allocation: true
  long_prefill_token_threshold: 0
  reserve_full_prompt: true
  watermark: 0.0
gateway: {admission_latency_us: 0, routing_latency_us: 0}
signals: {snapshot_refresh_interval_us: 0}
admission: always-admit
routing: {policy: round-robin}
scheduler: fcfs
priority: constant
preempt: tail
evict: {policy: lru, params: {}}
horizon_us: 9223372036854775807
slo: {}
workload:
  distribution:
    rate: 1.0
    num_requests: 100
    arrival: constant
    prompt_tokens: {mean: 512, stdev: 256, min: 2, max: 7000}
    output_tokens: {mean: 512, stdev: 256, min: 2, max: 7000}
    prefix_tokens: 0
";

fn resolve(text: &str) -> Result<Plan, String> {
    Draft::from_text("s.yaml", text)
        .map_err(RunFailure::from)
        .and_then(|draft| draft.plan())
        .map_err(|problem| problem.to_string())
}

#[track_caller]
fn refused(text: &str, message: &str) {
    assert_eq!(resolve(text).expect_err("must be refused"), message, "{text}");
}

#[test]
fn defaults_written_out_are_the_same_scenario_as_defaults_left_out() {
    let omitted = Draft::default().plan().expect("legal");
    let written = resolve(WRITTEN_OUT).expect("legal");
    assert_eq!(omitted.canonical(), written.canonical());
    assert_eq!(omitted.hash(), written.hash());
    assert_eq!((omitted.seed, written.seed), (42, 42));
    let other = resolve("cluster: {instances: 2}").expect("legal");
    assert_ne!(omitted.hash(), other.hash());
}

#[test]
fn equal_spellings_of_a_policy_are_the_same_scenario() {
    let hash = |text: &str| resolve(text).expect("legal").hash();
    let short = hash("admission: token-bucket[capacity=5]");
    assert_eq!(short, hash("admission: {policy: token-bucket, params: {capacity: 5.0}}"));
    assert_eq!(short, hash("admission: {policy: 'token-bucket[capacity=5]', params: {}}"));
    let scorers = hash("routing: {policy: weighted, scorers: 'pa:3,qd:2'}");
    let list = "[{name: prefix-affinity, weight: 3}, {name: qd, weight: 2}]";
    assert_eq!(scorers, hash(&format!("routing: {{policy: weighted, scorers: {list}}}")));
}

#[test]
fn a_flag_is_the_field_it_stands_for() {
    let mut draft = Draft::from_text("s.yaml", "routing: round-robin\ncluster: {instances: 9}\n")
        .expect("legal");
    draft.set("--num-instances", "cluster.instances", "4");
    draft.set("--routing-policy", "routing.policy", "weighted");
    draft.set("--routing-scorers", "routing.scorers", "qd:1");
    draft.set_list("--beta-coeffs", "latency.beta_us", "1,2,3");
    draft.set_amount("--rate", "rate", "7");
    let yaml = "cluster: {instances: 4}\nrouting: {policy: weighted, scorers: 'qd:1'}\n\
                latency: {beta_us: [1, 2, 3]}\nworkload: {distribution: {rate: 7}}";
    let plan = draft.plan().expect("legal");
    assert_eq!(plan.canonical(), resolve(yaml).expect("legal").canonical());
}

#[test]
fn a_problem_names_the_flag_or_the_place_in_the_file() {
    let mut draft = Draft::from_text("s.yaml", "routing:\n  policy: wieghted\n").expect("legal");
    let known = "known: `always-busiest`";
    let problem = draft.plan().expect_err("unknown").to_string();
    let start = "s.yaml:2:11: routing.policy: unknown routing policy `wieghted`, did you mean \
                 `weighted`?; ";
    assert!(problem.starts_with(&format!("{start}{known}")), "{problem}");
    draft.set("--routing-policy", "routing.policy", "robin");
    let problem = draft.plan().expect_err("unknown").to_string();
    assert!(problem.starts_with("--routing-policy: unknown routing policy `robin`"), "{problem}");
}

/// The paths of all that is wrong with a scenario, in the order in which they are told.
fn blamed(text: &str) -> Vec<String> {
    let draft = Draft::from_text("s.yaml", text).expect("well-formed");
    let problems = draft.resolve().expect_err("it is illegal");
    problems.iter().map(|problem| problem.path.clone()).collect()
}

#[test]
fn five_mistakes_of_different_kinds_are_told_at_once_in_the_order_of_the_file() {
    let text = "cluster: {instanses: 4}
engine: {total_kv_blocks: none}
admission: {policy: token-bucket, params: {capacity: 0}}
scheduler: fcsf
workload: {trace: no-such-trace.jsonl}
";
    assert_eq!(
        blamed(text),
        [
            "cluster.instanses",
            "engine.total_kv_blocks",
            "admission.params.capacity",
            "scheduler",
            "no-such-trace.jsonl"
        ]
    );
}

#[test]
fn every_part_of_a_scenario_is_checked_whatever_is_wrong_with_the_others() {
    let text = "model: gpt
slo: caht
signals: {kv_event_delay_us: 5}
kv_tier: {cpu_blocks: 9, link: h300-pcie}
admission: {policy: token-bucket, params: {capacity: 0, refil-rate: 1, refill-rate: -1}}
routing: {policy: weighted, scorers: 'pa:1,quue:2', picker: best, params: {no: 1}}
workload:
  rate: 3
  distribution:
    arrival: posson
    prompt_tokens: {mean: 5, min: 10}
    output_tokens: {min: 8000}
";
    assert_eq!(
        blamed(text),
        [
            "model",
            "slo",
            "kv_tier.link",
            "admission.params.capacity",
            "admission.params.refil-rate",
            "admission.params.refill-rate",
            "routing.scorers",
            "routing.picker",
            "routing.params.no",
            "workload.rate",
            "workload.distribution.arrival",
            "workload.distribution.prompt_tokens.mean",
            "workload.distribution.output_tokens.min",
        ]
    );
}

#[test]
fn what_follows_from_a_mistake_is_not_told() {
    for (text, only) in [
        // An unknown field stands for the one that it resembles.
        ("routing: {polcy: weighted, scorers: 'pa:1'}", "routing.polcy"),
        ("workload: {prset: chatbot, rate: 3}", "workload.prset"),
        ("kv_tier: {cpu_block: 5, reload: async}", "kv_tier.cpu_block"),
        // What is illegal is given nevertheless.
        ("workload: {preset: [chatbot], rate: 3}", "workload.preset"),
        ("kv_tier: {cpu_blocks: -1, reload: async}", "kv_tier.cpu_blocks"),
        ("engine: {preemption: swap}\nkv_tier: {cpu_blocks: -1}", "kv_tier.cpu_blocks"),
        ("latency: {alpha_us: [1, 2, x]}", "latency.alpha_us[2]"),
        (
            "workload: {distribution: {prompt_tokens: {min: 9000, max: 0}}}",
            "workload.distribution.prompt_tokens.max",
        ),
        ("horizon_us: 0\nworkload: {distribution: {num_requests: 0, rate: 5}}", "horizon_us"),
        (
            "workload: {distribution: {rate: {steps: [{rate: x, for_s: 1}]}}}",
            "workload.distribution.rate.steps[0].rate",
        ),
        ("workload: {mix: 5, rate: 3}", "workload.mix"),
        ("workload: 5", "workload"),
        // Nobody knows what a policy reads that is not known.
        ("routing: {policy: wieghted, scorers: 'pa:1'}", "routing.policy"),
        ("scheduler: priority-fcsf\npriority: slo-class", "scheduler"),
        ("admission: {policy: token-buckt, params: {capacity: 0}}", "admission.policy"),
        ("routing: wieghted\nsignals: {kv_event_delay_us: 5}", "routing.policy"),
        // Nor what a strategy sets.
        ("strategy: no-kw\nrouting: {scorers: 'pa:1'}\npriority: slo-class", "strategy"),
        ("strategy: no-kw\nkv_tier: {reload: async}\nsignals: {kv_event_delay_us: 5}", "strategy"),
        // The machine is not known, and so neither are its blocks.
        ("model: gpt\nkv_tier: {cpu_blocks: 5}", "model"),
        ("hardware: L41S\nworkload: {rate: 3, preset: chatbot}", "hardware"),
        // A client of which a part is broken is not checked as a whole.
        (
            "workload: {mix: {clients: [{rate_fraction: x, arrival: {process: poisson}, \
             input_distribution: {type: constant, params: {value: 1}}, \
             output_distribution: {type: constant, params: {value: 1}}}]}}",
            "workload.mix.clients[0].rate_fraction",
        ),
        (
            "workload: {mix: {clients: [{rate_fraction: 1, arrival: {process: poisson}, \
             input_distribution: {type: gaussian, params: {mean: x, std_dev: 1, min: 1, max: 9}}, \
             output_distribution: {type: constant, params: {value: 1}}}]}}",
            "workload.mix.clients[0].input_distribution.params.mean",
        ),
    ] {
        assert_eq!(blamed(text), [only], "{text}");
    }
}

#[test]
fn all_mistakes_of_all_clients_are_told() {
    let text = "workload:
  mix:
    clients:
    - {rate_fraction: 1, slo_class: urgent, arrival: {process: posson}}
    - rate_fraction: 1
      arrival: {process: gamma, cv: x}
      input_distribution: {type: constant, params: {vale: 1}}
      output_distribution: {type: constnt}
    - {arrival: {process: constant}, prefix_length: 5}
";
    let at = |paths: &[&str]| paths.iter().map(|p| format!("workload.mix.clients{p}")).collect();
    let expected: Vec<String> = at(&[
        "[0].input_distribution.type",
        "[0].output_distribution.type",
        "[0].slo_class",
        "[0].arrival.process",
        "[1].arrival.cv",
        "[1].input_distribution.params.vale",
        "[1].output_distribution.type",
        "[2].rate_fraction",
        "[2].input_distribution.type",
        "[2].output_distribution.type",
        "[2].prefix_length",
    ]);
    assert_eq!(blamed(text), expected);
}

#[test]
fn a_hundred_problems_are_enough() {
    let unknown: Vec<String> = (0..200).map(|number| format!("field-{number}: 1")).collect();
    assert_eq!(blamed(&unknown.join("\n")).len(), 100);
}

#[test]
fn a_blank_name_is_refused() {
    let message = "s.yaml:1:7: name: found a blank name; give one that can be read";
    refused("name: ' '", message);
    refused("name: \"\\u200b\"", message);
}

#[test]
fn numbers_out_of_range_are_refused() {
    refused(
        "engine: {total_kv_blocks: 1000000000000}",
        "s.yaml:1:27: engine.total_kv_blocks: found `1000000000000`; legal: a whole number from \
         1 to 2147483648",
    );
    refused(
        "engine: {block_size: 0}",
        "s.yaml:1:22: engine.block_size: found `0`; legal: a whole number from 1 to 65536",
    );
    refused(
        "horizon_us: 0",
        "s.yaml:1:13: horizon_us: found `0`; legal: a whole number, at least 1",
    );
    refused(
        "latency: {alpha_us: [1, 2]}",
        "s.yaml:1:21: latency.alpha_us: found 2 numbers; legal: three (microseconds)",
    );
    refused(
        "latency: {beta_us: [1, .inf, 2]}",
        "s.yaml:1:24: latency.beta_us[1]: found `.inf`; legal: a number from 0 to 1e9 \
         (microseconds)",
    );
    refused(
        "workload: {distribution: {prompt_tokens: {mean: -1}}}",
        "s.yaml:1:49: workload.distribution.prompt_tokens.mean: found `-1`; legal: a number from 0 \
         to 1073741824",
    );
    refused(
        "engine: {preset: vllm-h1000}",
        "s.yaml:1:18: engine.preset: found `vllm-h1000`, did you mean `vllm-h100`?; legal: \
         `vllm-a100`, `vllm-h100`, `vllm-b200`, `vllm-0.26`",
    );
}

#[test]
fn the_newest_preset_schedules_asynchronously_with_budgets_by_gpu() {
    let engine = |text: &str| resolve(text).expect("legal").engine;
    let newest = engine("{hardware: H100, tp: 2, engine: {preset: vllm-0.26}}");
    assert!(newest.async_scheduling && newest.cache_on_allocation);
    assert_eq!((newest.max_num_scheduled_tokens, newest.max_num_running_reqs), (8_192, 1_024));
    let a100 = "{hardware: A100-80, latency: {model: roofline}, engine: {preset: vllm-0.26}}";
    let small = engine(a100);
    assert_eq!((small.max_num_scheduled_tokens, small.max_num_running_reqs), (2_048, 256));
    let fields = "preset: vllm-0.26, async_scheduling: false, cache_on_allocation: false";
    let off = engine(&format!("{{engine: {{{fields}}}}}"));
    assert!(!(off.async_scheduling || off.cache_on_allocation));
    let old = engine("engine: {preset: vllm-h100}");
    assert!(!(old.async_scheduling || old.cache_on_allocation));
}

#[test]
fn a_model_can_be_shared_by_a_pipeline_or_by_ranks_with_measured_operators() {
    let piped = resolve("{model: llama-3.1-70b, hardware: H100, tp: 4, pp: 2}").expect("legal");
    assert_eq!((piped.engine.stages, piped.shared().gpus()), (2, 8));
    assert!(piped.latency_name.starts_with("operators "), "{}", piped.latency_name);
    let whole = resolve("{model: llama-3.1-70b, hardware: H100, tp: 8}").expect("legal");
    // Each of eight GPUs holds as much of weights and cache either way.
    let ratio = f64::from(piped.engine.total_kv_blocks) / f64::from(whole.engine.total_kv_blocks);
    assert!((0.999..1.001).contains(&ratio), "{ratio}");
    let ranks = "{model: minimax-m2.5, hardware: H200, tp: 1, dp: 8, expert_parallel: true";
    let plan = resolve(&format!("{ranks}}}")).expect("legal");
    let engine = plan.engine;
    assert_eq!((engine.max_num_scheduled_tokens, engine.max_num_running_reqs), (65_536, 8_192));
    assert_eq!(engine.long_prefill_token_threshold, 8_192, "a rank's budget");
    refused(
        "{model: llama-3.1-8b, hardware: H200, pp: 2, latency: {model: roofline}}",
        "s.yaml:1:43: pp: only the latency model `operators` knows it; choose that, or remove it",
    );
    refused(
        "{model: llama-3.1-8b, hardware: H200, tp: 1, pp: 2, kv_tier: {cpu_blocks: 9}}",
        "s.yaml:1:50: pp: a pipeline with a CPU tier or with drafts is not modelled; remove it, or \
         `kv_tier` and `num_speculative_tokens`",
    );
    refused(
        "{model: llama-3.1-8b, hardware: H200, tp: 1, dp: 2}",
        "s.yaml:1:50: dp: `dp` is `2`; legal: 1 for a model without experts, whose ranks are \
         instances of their own",
    );
}

#[test]
fn the_newest_preset_runs_its_tier_as_the_connector_does_unless_asked_otherwise() {
    let tier = |preset: &str, fields: &str| {
        let text = format!("{{engine: {{{preset}}}, kv_tier: {{cpu_blocks: 9{fields}}}}}");
        let plan = resolve(&text).expect("legal");
        (plan.policies.offload.name().to_owned(), plan.engine.tier.expect("it has one").reload)
    };
    let newest = "preset: vllm-0.26";
    assert_eq!(tier(newest, ""), ("vllm".to_owned(), Reload::Async));
    assert_eq!(tier("preset: vllm-h100", ", offload: vllm"), tier(newest, ""));
    let plain = ("threshold".to_owned(), Reload::Blocking);
    assert_eq!(tier("preset: vllm-h100", ""), plain);
    assert_eq!(tier(newest, ", reload: blocking"), plain);
    assert_eq!(tier("preset: vllm-0.26, preemption: swap", ""), plain);
    refused(
        "kv_tier: {cpu_blocks: 9, offload: vllm, reload: blocking}",
        "s.yaml:1:49: kv_tier.reload: the offload policy `vllm` loads beside the steps; give \
         `async`, or another policy",
    );
    refused(
        "{engine: {reserve_full_prompt: false}, kv_tier: {cpu_blocks: 9, offload: vllm}}",
        "s.yaml:1:32: engine.reserve_full_prompt: the offload policy `vllm` admits whole prompts \
         only, or they could preempt each other for ever; give true, or another policy",
    );
    refused(
        "{engine: {long_prefill_token_threshold: 15}, kv_tier: {cpu_blocks: 9, offload: vllm}}",
        "s.yaml:1:41: engine.long_prefill_token_threshold: the offload policy `vllm` takes chunks \
         of at least a block of `engine.block_size` tokens, or prompts could preempt each other \
         for ever; give that many, 0, or another policy",
    );
    refused(
        "{engine: {preemption: swap}, kv_tier: {cpu_blocks: 9, offload: vllm}}",
        "s.yaml:1:23: engine.preemption: the offload policy `vllm` does not swap; give \
         `recompute`, or another policy",
    );
}

#[test]
fn the_newest_preset_captures_graphs_up_to_512_tokens() {
    let times = |engine: &str| {
        let machine = "hardware: H200, latency: {model: h200-vllm-0.26-llama-3.1-8b}";
        resolve(&format!("{{{machine}, engine: {{{engine}}}}}")).expect("legal").latency_name
    };
    let small = times("preset: vllm-0.26");
    assert_eq!(small, times("preset: vllm-a100, max_cudagraph_capture_size: 512"));
    assert_ne!(small, times("preset: vllm-a100"), "as many as were measured");
}

#[test]
fn lengths_in_a_file_are_refused_with_both_values() {
    refused(
        "workload: {distribution: {prompt_tokens: {mean: 5, min: 10, max: 20}}}",
        "s.yaml:1:49: workload.distribution.prompt_tokens.mean: found `5`; legal: at least 10, the \
         value of `prompt_tokens.min`",
    );
    refused(
        "workload: {distribution: {output_tokens: {min: 8000}}}",
        "s.yaml:1:48: workload.distribution.output_tokens.min: found `8000`; legal: at most 7000, \
         the default of `output_tokens.max`",
    );
}

#[test]
fn a_list_of_scorers_holds_names_alone() {
    let legal = "legal: the name of a scorer alone; write parameters as `scorers: \
                 'name[parameter=value]:weight'`";
    for name in ["pa:1,qd", "pa,qd", "pa[lru-capacity=5]"] {
        refused(
            &format!("routing: {{policy: weighted, scorers: [{{name: '{name}', weight: 1}}]}}"),
            &format!("s.yaml:1:38: routing.scorers: found `{name}`; {legal}"),
        );
    }
    refused(
        "admission: {policy: token-bucket, params: {capacity: '5,refill-rate=3'}}",
        "s.yaml:1:43: admission.params: found `capacity: 5,refill-rate=3`; legal: one parameter per \
         line",
    );
}

#[test]
fn settings_that_nothing_reads_are_refused() {
    refused(
        "routing: {policy: random, scorers: 'pa:1'}",
        "s.yaml:1:36: routing.scorers: `scorers` is given, but routing policy `random` does not \
         read it; `weighted` does",
    );
    refused(
        "latency: {model: roofline, host_factor: 2}",
        "s.yaml:1:41: latency.host_factor: only the latency model `operators` reads it; remove it",
    );
    refused(
        "latency: {step_us: 3}",
        "s.yaml:1:20: latency.step_us: only the latency model `constant` reads it; remove it",
    );
    refused(
        "workload: {rate: 3}",
        "s.yaml:1:18: workload.rate: it only applies to `workload.spec` or `workload.preset`; \
         remove it",
    );
    refused(
        "workload: {distribution: {cv: 2}}",
        "s.yaml:1:31: workload.distribution.cv: arrivals that are `constant` have no `cv`; remove \
         it, or use `gamma`",
    );
    refused(
        "workload: {mix: {}, distribution: {}}",
        "s.yaml:1:11: workload: `distribution`, `mix` are given together; keep exactly one",
    );
}

#[test]
fn an_unknown_machine_needs_coefficients_and_blocks() {
    let known = "known: `openai/gpt-oss-20b`, `openai/gpt-oss-120b`, `qwen/qwen3-8b`, \
                 `qwen/qwen3-14b`, `qwen/qwen3-32b` and 29 others; or give alpha and beta \
                 coefficients and the number of KV blocks";
    refused("model: gpt", &format!("s.yaml:1:8: model: unknown model `gpt`; {known}"));
    refused(
        "model: gpt\nlatency: {alpha_us: [1, 2, 3], beta_us: [1, 2, 3]}",
        "s.yaml:1:1: engine.total_kv_blocks: missing; this machine is not in the catalogue, so \
         give the KV blocks per instance",
    );
    let file = resolve("model: nowhere/config.json").expect_err("no file");
    assert!(file.contains("config.json") && !file.contains("unknown model"), "{file}");
    let text = "model: gpt\nlatency: {model: constant}\nengine: {total_kv_blocks: 5}";
    assert_eq!(resolve(text).expect("legal").engine.total_kv_blocks, 5);
}

#[test]
fn a_cache_in_fp8_has_twice_the_blocks_however_they_are_counted() {
    for (machine, more) in
        [("tp: 2", ""), ("hardware: H200\ntp: 1", ""), ("tp: 2", ", gpu_memory_utilization: 0.8")]
    {
        let blocks = |dtype: &str| {
            let text = format!("{machine}\nengine: {{kv_cache_dtype: {dtype}{more}}}");
            resolve(&text).expect("legal").engine.total_kv_blocks
        };
        assert_eq!(blocks("auto"), blocks("bf16"));
        let ratio = f64::from(blocks("fp8")) / f64::from(blocks("bf16"));
        assert!((1.9999..=2.0001).contains(&ratio), "{machine}: {ratio}");
    }
}

#[test]
fn a_formula_and_its_parameters_stay_one_scorer() {
    for text in ["-load]:1,formula[formula=-waiting", "-load,scale=absolute", "wating", "load)"] {
        let found = resolve(&format!("routing: {{formula: '{text}'}}")).expect_err(text);
        assert!(found.starts_with("s.yaml:1:20: routing.formula: "), "{found}");
    }
    let text = "routing: {formula: -load, params: {scale: 'absolute]:1,formula[formula=-waiting'}}";
    let found = resolve(text).expect_err("two scorers");
    assert!(found.contains("routing.params: found `scale: absolute]"), "{found}");
    let legal = resolve("routing: {formula: 'max(-load, -waiting)', params: {scale: absolute}}");
    let one = "weighted(formula[formula=max(-load, -waiting),scale=absolute]:1; max-score)";
    assert_eq!(legal.expect("legal").routing(), one);
}

#[test]
fn the_same_memory_holds_fewer_larger_blocks() {
    let blocks = |size: u32| {
        let text = format!("engine: {{block_size: {size}}}");
        resolve(&text).expect("legal").engine.total_kv_blocks
    };
    assert_eq!((blocks(16), blocks(32), blocks(65_536)), (132_139, 66_069, 32));
}

#[test]
fn a_mangled_scenario_never_panics() {
    let whole = without_comments(include_str!("../../../../scenarios/shared-prefix.yaml"));
    let swaps = ["0", "-1", "{", "]", ":", "~", ".nan", "1e400", "\"", "*a", "9999999999999"];
    let words: Vec<usize> = whole.match_indices([' ', '\n']).map(|(at, _)| at).collect();
    for (number, pair) in words.windows(2).enumerate() {
        let swap = swaps[number % swaps.len()];
        let text = format!("{} {swap}{}", &whole[..pair[0]], &whole[pair[1]..]);
        let _ = resolve(&text);
        let _ = resolve(&whole[..pair[1]]);
    }
}

/// A workload of conversations; `pacing` says who waits for whom.
fn conversations(evict: &str, pacing: &str) -> String {
    format!(
        "evict: {evict}\nworkload:\n  mix:\n    aggregate_rate: 5\n    num_requests: 20\n    \
         clients:\n      - id: a\n        rate_fraction: 1\n        arrival: {{process: poisson}}\n        \
         input_distribution: {{type: constant, params: {{value: 50}}}}\n        \
         output_distribution: {{type: constant, params: {{value: 20}}}}\n        \
         reasoning: {{multi_turn: {{max_rounds: 3, think_time_us: 1000{pacing}}}}}\n"
    )
}

#[test]
fn an_oracle_is_refused_where_the_requests_to_come_are_not_known() {
    let resolve = |text: &str| {
        Draft::from_text("s.yaml", text).map_err(RunFailure::from).and_then(|draft| draft.plan())
    };
    let known = resolve(&conversations("belady", "")).expect("arrivals are given");
    let note = "`belady` knows future requests: the result is a bound, not a strategy";
    assert!(known.notes.iter().any(|told| told == note), "{:?}", known.notes);
    let closed = ", closed_loop: true";
    resolve(&conversations("lru", closed)).expect("only oracles mind");
    let refused = resolve(&conversations("belady", closed)).expect_err("nobody can know");
    assert_eq!(
        refused.to_string(),
        "s.yaml:1:8: evict: found `belady`, which must know all requests in advance, but clients \
         of this workload wait for responses or retry; use another policy, e.g. `lru`, or \
         `oracles: [evict]`, which records them in a first run"
    );
}
