//! Strategies as configuration of llm-d and vLLM, from the command line.

use super::Bench;
use std::process::Command;

#[test]
fn a_strategy_is_exported_by_name_with_its_parameters() {
    let bench = Bench::new();
    let ran = bench.blis("export llm-d --strategy no-kv --set pa=5 --set qd=2");
    assert_eq!(ran.code, Some(0), "{}", ran.err);
    assert!(ran.out.contains("strategy `no-kv[pa=5,qd=2]`"), "{}", ran.out);
    let weights = "  - pluginRef: approximate-prefix\n    weight: 5\n  - pluginRef: queue-scorer\n    \
                   weight: 2\n";
    assert!(ran.out.contains(weights), "{}", ran.out);
    assert!(ran.out.lines().all(|line| line.chars().count() <= 100), "{}", ran.out);
    let file = bench.blis("export llm-d --strategy no-kv --set pa=5 --set qd=2 --out epp.yaml");
    assert_eq!((file.code, file.out.as_str()), (Some(0), ""), "{}", file.err);
    assert_eq!(bench.read("epp.yaml"), ran.out, "the same in a file");
}

#[test]
fn a_scenario_is_exported_with_its_engine_and_another_strategy_if_asked() {
    let bench = Bench::new();
    bench.write(
        "s.yaml",
        "cluster: {instances: 3}
engine: {total_kv_blocks: 1234, block_size: 32}
workload: {preset: independent, rate: 60%}
scheduler: priority-fcfs
priority: slo-class
",
    );
    let ran = bench.blis("export vllm s.yaml");
    assert_eq!(ran.code, Some(0), "{}", ran.err);
    for part in ["One of 3 equal servers", "--num-gpu-blocks-override 1234", "--block-size 32"] {
        assert!(ran.out.contains(part), "{part} is not in\n{}", ran.out);
    }
    assert!(ran.out.contains("--scheduling-policy priority"), "{}", ran.out);
    let other = bench.blis("export vllm s.yaml --strategy no-kv");
    assert!(other.out.contains("--scheduling-policy fcfs"), "{}", other.out);
    assert!(other.out.contains("strategy `no-kv` in `s.yaml`"), "{}", other.out);
    assert_eq!(bench.blis("export llm-d s.yaml --out s.yaml").code, Some(2));
}

#[test]
fn a_strategy_file_is_exported_and_what_is_wrong_is_told() {
    let bench = Bench::new();
    let text = "name: mine\nhelp: mine\nset: {routing: {policy: weighted, scorers: 'kv-pressure:1,qd:1'}}\n";
    bench.write("mine.yaml", text);
    for (args, message) in [
        ("export llm-d --strategy no-kvv", "did you mean `no-kv`?"),
        ("export llm-d --strategy no-kv --set pb=1", "unknown parameter `pb`"),
        ("export llm-d --strategy no-kv --set pa=99", "`pa` is `99`"),
        ("export llm-d", "SCENARIO"),
        ("export", "Usage"),
        ("export sglang --strategy no-kv", "sglang"),
    ] {
        let ran = bench.blis(args);
        assert_eq!(ran.code, Some(2), "{args}: {}", ran.err);
        assert!(ran.err.contains(message), "{args}: {}", ran.err);
    }
}

#[test]
fn a_strategy_of_which_a_deciding_part_has_no_counterpart_is_refused_unless_asked_for() {
    let bench = Bench::new();
    let refused = bench.blis("export llm-d --strategy least-harm --out epp.yaml");
    assert_eq!(refused.code, Some(2), "{}", refused.err);
    for part in ["scorer `least-harm`", "admission `class-queue`", "--allow-partial"] {
        assert!(refused.err.contains(part), "{part} is not in {}", refused.err);
    }
    assert!(!bench.path().join("epp.yaml").exists(), "nothing is written");
    let partial = bench.blis("export llm-d --strategy least-harm --allow-partial");
    assert_eq!(partial.code, Some(1), "{}", partial.err);
    assert!(partial.err.contains("scorer `least-harm`"), "{}", partial.err);
    assert!(partial.out.contains("# [none] scorer `least-harm`"), "{}", partial.out);
    let whole = bench.blis("export llm-d --strategy llm-d-1.0-precise");
    assert_eq!((whole.code, whole.err.as_str()), (Some(0), ""));
    assert!(whole.out.contains("prefix-cache-affinity-filter"), "{}", whole.out);
}

#[test]
fn an_exported_picker_is_imported_as_a_strategy_that_runs() {
    let bench = Bench::new();
    assert_eq!(bench.blis("export llm-d --strategy llm-d-1.0 --out epp.yaml").code, Some(0));
    let ran = bench.blis("import llm-d epp.yaml --out mine.yaml");
    assert_eq!((ran.code, ran.err.as_str()), (Some(0), ""));
    let some = "--num-instances 2 --rate 5 --num-requests 50 --format json";
    let cluster = |strategy: &str| {
        bench.blis(&format!("run --strategy {strategy} {some}")).json()["cluster"].clone()
    };
    assert_eq!(cluster("mine.yaml"), cluster("llm-d-1.0"));
    assert_eq!(bench.blis("import llm-d epp.yaml --out epp.yaml").code, Some(2));
    let none = bench.blis("import llm-d mine.yaml");
    assert_eq!(none.code, Some(2), "{}", none.out);
    assert!(none.err.contains("no `kind: EndpointPickerConfig`"), "{}", none.err);
}

#[test]
fn coverage_lists_every_policy_in_all_layouts() {
    let bench = Bench::new();
    let json = bench.blis("export coverage --format json").out;
    let all: serde_json::Value = serde_json::from_str(&json).expect("JSON");
    let all = all.as_array().expect("a list");
    let table = bench.blis("export coverage").out;
    let page = bench.blis("export coverage --format markdown").out;
    for one in all {
        let name = one["policy"].as_str().expect("a name");
        assert!(table.contains(name) && page.contains(&format!("| `{name}` |")), "{name}");
    }
    assert!(all.len() > 60 && all.iter().any(|one| one["fit"] == "none"), "{json}");
}

/// What a shell makes of the command, as its arguments.
fn arguments(command: &str) -> Vec<String> {
    let show = "vllm() { for word in \"$@\"; do printf '%s\\0' \"$word\"; done; }";
    let output = Command::new("sh").arg("-c").arg(format!("{show}\n{command}")).output();
    let output = output.expect("there is a shell");
    assert!(output.status.success() && output.stderr.is_empty(), "{output:?}\n{command}");
    let words = String::from_utf8(output.stdout).expect("UTF-8");
    words.split_terminator('\0').map(str::to_owned).collect()
}

#[test]
fn a_shell_takes_every_model_for_one_word() {
    let bench = Bench::new();
    let nasty = [
        "x;id",
        "a b",
        "$(id)",
        "`id`",
        "it's",
        "''",
        "\"q\"",
        "a\\b",
        "a\\",
        "*",
        "~",
        "!x",
        "a&b",
        "a|b",
        "a>b",
        "{a,b}",
        "#x",
        "$HOME",
        "é ü",
        "x'; id; '",
        "%s\\0",
        "[a]",
        "(a)",
        "a=b",
        "\\'",
    ];
    for model in nasty.into_iter().flat_map(|one| [one.to_owned(), format!("m/{one} {one}")]) {
        bench.write(
            "s.yaml",
            format!(
                "model: {}\ntp: 1\nengine: {{total_kv_blocks: 900}}\n\
                 latency: {{beta_us: [1, 2, 3], alpha_us: [1, 2, 3]}}\n\
                 routing: {{policy: weighted, scorers: 'pp:2,qd:1'}}\n",
                serde_json::Value::from(model.as_str())
            ),
        );
        let text = bench.blis("export vllm s.yaml").out;
        let words = arguments(&text);
        assert_eq!(words[..2], ["serve".to_owned(), model.clone()], "{text}");
        let events = words.iter().skip_while(|word| *word != "--kv-events-config").nth(1);
        let events: serde_json::Value =
            serde_json::from_str(events.expect("it is given")).expect("JSON");
        assert_eq!(events["topic"], format!("kv@$(POD_IP):8000@{model}"));
    }
}
