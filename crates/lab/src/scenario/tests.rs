//! Flags are fields, defaults written out mean the same as left out, and nothing illegal gets
//! through.

use super::*;

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
  preset: vllm-a100
  total_kv_blocks: 132139
  block_size: 16
  max_num_running_reqs: 256
  max_num_scheduled_tokens: 2048
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
        .and_then(|draft| draft.resolve())
        .map_err(|problem| problem.to_string())
}

#[track_caller]
fn refused(text: &str, message: &str) {
    assert_eq!(resolve(text).expect_err("must be refused"), message, "{text}");
}

#[test]
fn defaults_written_out_are_the_same_scenario_as_defaults_left_out() {
    let omitted = Draft::default().resolve().expect("legal");
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
    let plan = draft.resolve().expect("legal");
    assert_eq!(plan.canonical(), resolve(yaml).expect("legal").canonical());
}

#[test]
fn a_problem_names_the_flag_or_the_place_in_the_file() {
    let mut draft = Draft::from_text("s.yaml", "routing:\n  policy: wieghted\n").expect("legal");
    let known = "known: `always-busiest`";
    let problem = draft.resolve().expect_err("unknown").to_string();
    let start = "s.yaml:2:11: routing.policy: unknown routing policy `wieghted`, did you mean \
                 `weighted`?; ";
    assert!(problem.starts_with(&format!("{start}{known}")), "{problem}");
    draft.set("--routing-policy", "routing.policy", "robin");
    let problem = draft.resolve().expect_err("unknown").to_string();
    assert!(problem.starts_with("--routing-policy: unknown routing policy `robin`"), "{problem}");
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
         `vllm-a100`, `vllm-h100`, `vllm-b200`",
    );
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
        "s.yaml:1:43: admission.params: found `capacity: 5,refill-rate=3`; legal: one parameter a \
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
        "latency: {step_us: 3}",
        "s.yaml:1:20: latency.step_us: only the latency model `constant` reads it; remove it",
    );
    refused(
        "workload: {rate: 3}",
        "s.yaml:1:18: workload.rate: it only replaces the value of `workload.spec`; remove it",
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
    let known = "known: `meta-llama/llama-3.1-8b-instruct`; or give alpha and beta coefficients \
                 and the number of KV blocks";
    refused("model: gpt", &format!("s.yaml:1:8: model: unknown model `gpt`; {known}"));
    refused(
        "model: gpt\nlatency: {alpha_us: [1, 2, 3], beta_us: [1, 2, 3]}",
        "s.yaml:1:1: engine.total_kv_blocks: missing; the catalogue does not know this machine, \
         so say how many KV blocks an instance has",
    );
    let text = "model: gpt\nlatency: {model: constant}\nengine: {total_kv_blocks: 5}";
    assert_eq!(resolve(text).expect("legal").engine.total_kv_blocks, 5);
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
    let whole = include_str!("../../../../scenarios/shared-prefix.yaml");
    let swaps = ["0", "-1", "{", "]", ":", "~", ".nan", "1e400", "\"", "*a", "9999999999999"];
    let words: Vec<usize> = whole.match_indices([' ', '\n']).map(|(at, _)| at).collect();
    for (number, pair) in words.windows(2).enumerate() {
        let swap = swaps[number % swaps.len()];
        let text = format!("{} {swap}{}", &whole[..pair[0]], &whole[pair[1]..]);
        let _ = resolve(&text);
        let _ = resolve(&whole[..pair[1]]);
    }
}

mod specification {
    //! The workload specification.

    use super::*;
    use blis_core::SloClass;

    fn spec(text: &str) -> Result<Plan, String> {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let path = folder.path().join("w.yaml");
        std::fs::write(&path, text).expect("the temporary folder can be written");
        let mut draft = Draft::default();
        draft.choose_workload("--workload-spec", "spec", path.to_str());
        draft.resolve().map_err(|problem| {
            problem.to_string().replace(path.to_str().expect("temporary names are text"), "w.yaml")
        })
    }

    fn with(client: &str) -> String {
        format!(
            "version: '2'\nseed: 7\naggregate_rate: 10\nnum_requests: 5\nclients:\n  - id: c\n    \
             rate_fraction: 1\n    arrival: {{process: poisson}}\n    input_distribution: {{type: \
             constant, params: {{value: 10}}}}\n    output_distribution: {{type: constant, params: \
             {{value: 5}}}}\n{client}"
        )
    }

    #[track_caller]
    fn refused(client: &str, message: &str) {
        assert_eq!(spec(&with(client)).expect_err("must be refused"), message, "{client}");
    }

    fn mix(plan: &Plan) -> &blis_workload::Mix {
        match &plan.workload {
            Workload::Mix(mix) => mix,
            Workload::Trace { .. } => panic!("a specification is a mix"),
        }
    }

    #[test]
    fn what_is_left_out_has_the_usual_defaults() {
        let plan = spec(&with("    prefix_group: g\n    streaming: yes\n")).expect("legal");
        let client = &mix(&plan).clients[0];
        assert_eq!((client.tenant.as_str(), client.class), ("default", SloClass::Standard));
        assert_eq!((client.prefix_group.as_deref(), client.prefix_tokens), (Some("g"), 50));
        assert_eq!(plan.seed, 7, "the specification's own seed");
    }

    #[test]
    fn a_prefix_needs_a_group_and_a_group_has_one_usual_length() {
        refused(
            "    prefix_length: 9\n",
            "w.yaml:11:20: clients[0].prefix_length: there is no `prefix_group` whose tokens these \
             are; name one",
        );
        let one = with("    prefix_group: g\n    prefix_length: 70\n");
        let (head, client) = one.split_once("clients:\n").expect("clients");
        let second = client.replace("    prefix_length: 70\n", "");
        let third = client.replace("70", "30");
        let plan = spec(&format!("{head}clients:\n{client}{second}{third}")).expect("legal");
        let lengths: Vec<u32> = mix(&plan).clients.iter().map(|c| c.prefix_tokens).collect();
        assert_eq!(lengths, [70, 70, 30]);
    }

    #[test]
    fn version_1_has_other_class_names() {
        let old = with("    slo_class: realtime\n").replace("version: '2'", "version: 1");
        assert_eq!(mix(&spec(&old).expect("legal")).clients[0].class, SloClass::Critical);
        refused(
            "    slo_class: realtime\n",
            "w.yaml:11:16: clients[0].slo_class: found `realtime`; legal: `critical`, `standard`, \
             `sheddable`, `batch`, `background`",
        );
    }

    #[test]
    fn a_rate_from_outside_replaces_the_specifications() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let path = folder.path().join("w.yaml");
        std::fs::write(&path, with("")).expect("the temporary folder can be written");
        let mut draft = Draft::default();
        draft.choose_workload("--workload-spec", "spec", path.to_str());
        draft.set_amount("--rate", "rate", "99");
        draft.set_amount("--num-requests", "num_requests", "3");
        let plan = draft.resolve().expect("legal");
        assert_eq!(mix(&plan).num_requests, Some(3));
        assert_eq!(mix(&plan).rate, blis_workload::Rate::Steady(99.0));
    }

    #[test]
    fn labels_are_known_words() {
        let head = |line: &str| spec(&with("").replace("version: '2'", line)).err();
        for good in ["version: 2", "version: \"2\"", "version: ''", "version: 1", "seed: 7"] {
            let text = with("").replace("version: '2'\nseed: 7", good);
            assert_eq!(spec(&text).err(), None, "{good}");
        }
        assert_eq!(
            head("version: 3").as_deref(),
            Some("w.yaml:1:10: version: found `3`; legal: `1`, `2`")
        );
        assert_eq!(
            head("version: v2").as_deref(),
            Some("w.yaml:1:10: version: found `v2`; legal: `1`, `2`")
        );
        for good in ["''", "language", "multimodal", "reasoning"] {
            assert_eq!(head(&format!("category: {good}")), None, "{good}");
        }
        assert_eq!(
            head("category: langauge").as_deref(),
            Some(
                "w.yaml:1:11: category: found `langauge`, did you mean `language`?; legal: \
                 `language`, `multimodal`, `reasoning`"
            )
        );
        assert_eq!(spec(&with("    streaming: false\n")).err(), None);
        assert_eq!(spec(&with("    lifecycle: null\n")).err(), None, "nothing is asked for");
    }

    #[test]
    fn a_client_can_only_have_the_model_that_is_simulated() {
        for good in ["''", "meta-llama/llama-3.1-8b-instruct", "META-LLAMA/Llama-3.1-8B-Instruct"] {
            assert_eq!(spec(&with(&format!("    model: {good}\n"))).err(), None, "{good}");
        }
        refused(
            "    model: gpt\n",
            "w.yaml:11:12: clients[0].model: found `gpt`; legal: \
             `meta-llama/llama-3.1-8b-instruct`, the scenario's, or no `model`: only one is \
             simulated",
        );
    }

    #[test]
    fn only_gamma_arrivals_have_a_cv() {
        for process in ["poisson", "constant"] {
            let text = with("").replace("process: poisson", &format!("process: {process}, cv: 2"));
            let column = 26 + process.len();
            assert_eq!(
                spec(&text).expect_err("must be refused"),
                format!(
                    "w.yaml:8:{}: clients[0].arrival.cv: arrivals that are `{process}` have no \
                     `cv`; remove it, or use `gamma`",
                    column + 4
                )
            );
        }
    }

    #[test]
    fn a_workload_of_more_than_ten_years_is_refused_where_it_was_asked_for() {
        let text = with("").replace("aggregate_rate: 10", "aggregate_rate: 1e-9");
        let found = "found 5 requests at 0.000000001 requests per second; legal: a rate at which \
                     all requests arrive within ten years, or a horizon";
        assert_eq!(
            spec(&text).expect_err("must be refused"),
            format!("w.yaml:3:17: aggregate_rate: {found}")
        );
        let text = with("").replace("num_requests: 5\n", "");
        assert_eq!(
            spec(&text).expect_err("must be refused"),
            "w.yaml:1:1: num_requests: a workload needs a number of requests or a horizon; give \
             one of them"
        );
    }

    #[test]
    fn what_is_not_supported_is_refused_by_name() {
        for (field, remedy) in [
            ("lifecycle: {windows: []}", "remove the field"),
            ("reasoning: {}", "remove the field"),
            ("multimodal: {}", "remove the field"),
            ("network: {rtt_ms: 1}", "remove the field"),
        ] {
            let (name, value) = field.split_once(": ").expect("a field");
            let column = 5 + name.len() + 2;
            let message =
                format!("w.yaml:11:{column}: clients[0].{name}: not supported yet; {remedy}");
            refused(&format!("    {name}: {value}\n"), &message);
        }
        let text = with("cohorts: [{id: x}]\n");
        let message = "w.yaml:11:10: cohorts: not supported yet; write `clients` instead";
        assert_eq!(spec(&text).expect_err("must be refused"), message);
    }

    #[test]
    fn weibull_arrivals_take_the_variation_that_they_can_have() {
        let weibull = |cv| with("").replace("poisson", &format!("weibull, cv: {cv}"));
        assert_eq!(spec(&weibull("1.5")).err(), None);
        assert_eq!(
            spec(&weibull("11")).expect_err("must be refused"),
            "w.yaml:8:37: clients[0].arrival.cv: found `11`; legal: a number from 0.01 to 10.4"
        );
    }

    #[test]
    fn distributions_need_exactly_their_parameters() {
        let length = |text: &str| {
            spec(&with("").replace("{type: constant, params: {value: 10}}", text))
                .err()
                .unwrap_or_default()
        };
        assert_eq!(length("{type: exponential, params: {mean: 9, max: 20}}"), "");
        assert_eq!(length("{type: geometric, params: {mean: 9}}"), "");
        assert_eq!(
            length("{type: constant, params: {value: 10.4}}"),
            "w.yaml:9:58: clients[0].input_distribution.params.value: found `10.4`; legal: a whole \
             number from 1 to 1073741824"
        );
        assert_eq!(
            length("{type: gaussian, params: {mean: 9, std_dev: 1, min: 10, max: 20}}"),
            "w.yaml:9:57: clients[0].input_distribution.params.mean: found `9`; legal: a number \
             from 10 to 20 (`min` to `max`)"
        );
        assert_eq!(
            length("{type: gaussian, params: {mean: 9}}"),
            "w.yaml:9:50: clients[0].input_distribution.params: parameter `std_dev` of \
             `gaussian` is missing; add it"
        );
        assert_eq!(
            length("{type: geometric, params: {maen: 9}}"),
            "w.yaml:9:58: clients[0].input_distribution.params.maen: unknown parameter `maen`, did \
             you mean `mean`?; known: `mean`"
        );
        assert_eq!(
            length("{type: geometric, params: {mean: 0.5}}"),
            "w.yaml:9:58: clients[0].input_distribution.params.mean: found `0.5`; legal: a number \
             from 1 to 1073741824"
        );
        assert_eq!(
            length("{type: guassian}"),
            "w.yaml:9:32: clients[0].input_distribution.type: found `guassian`, did you mean \
             `gaussian`?; legal: `constant`, `empirical`, `exponential`, `gaussian`, `geometric`, \
             `lognormal`, `pareto_lognormal`"
        );
        assert_eq!(length("{type: lognormal, params: {mu: 5, sigma: 0.5, max: 900}}"), "");
        assert_eq!(
            length(
                "{type: pareto_lognormal, params: {alpha: 2, xm: 100, mu: 5, sigma: 0.5, \
                 mix_weight: 0.3}}"
            ),
            ""
        );
        assert_eq!(length("{type: empirical, params: {\"100\": 0.5, 500: 0.3}}"), "");
        assert_eq!(
            length("{type: empirical, params: {many: 0.5}}"),
            "w.yaml:9:58: clients[0].input_distribution.params.many: found `many`; legal: a \
             length, a whole number from 1 to 1073741824"
        );
        assert_eq!(
            length("{type: empirical, params: {5: -1}}"),
            "w.yaml:9:55: clients[0].input_distribution.params.5: found `-1`; legal: a number \
             from 0 to 1000000000000"
        );
    }
}
