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
    let told = "step times: measured operators";
    assert!(run.out.contains(told) && run.out.contains("SLO met"), "{}", run.out);
    let scenario = bench.read("here/scenario.yaml");
    assert!(scenario.contains("\n  standard: {ttft_ms: 1000}\n"), "{scenario}");
    let share = bench.blis("run here/scenario.yaml --num-requests 200 --format json").json();
    assert!(share["cluster"]["slo_attainment"].is_number(), "{share}");
    let study = bench.blis("study here/study.yaml --quiet --no-ledger");
    assert_eq!(study.code, Some(0), "{}", study.err);
    assert!(study.out.contains("Claims: 6 confirmed"), "{}", study.out);
    let needed = "Instances needed with every seed: llm-d-1.0-precise 1, ";
    assert!(study.out.contains(needed), "{}", study.out);
    let first = study.out.lines().nth(2).expect("an answer");
    assert!(first.starts_with("Target ttft_p99 < 1s: met by llm-d-1.0-precise, "), "{first}");
    let caveat = "The latency model is composed of operators measured one at a time";
    let words = study.out.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(words.contains(caveat), "{}", study.out);
}

#[test]
fn init_says_what_a_rate_counts_and_whether_prompts_begin_alike() {
    let bench = Bench::new();
    let chat = bench.blis("init chat --rate 20");
    assert!(chat.out.contains("5 sessions/s of 4 requests each = 20 requests/s."), "{}", chat.out);
    let scenario = bench.read("chat/scenario.yaml");
    let rate = "rate: 5    # sessions per second of 4 requests each, so 20 requests per second";
    assert!(scenario.contains(rate), "{scenario}");
    assert!(bench.read("chat/study.yaml").contains("knowing the caches pays"));
    let run = bench.blis("run chat/scenario.yaml --num-requests 400 --format json").json();
    assert!(run["kv"]["hit_rate"].as_f64().is_some_and(|rate| rate > 0.2), "{}", run["kv"]);
    let alone = bench.blis("init alone --rate 20 --workload chatbot");
    assert!(!alone.out.contains("sessions"), "{}", alone.out);
    assert!(bench.read("alone/scenario.yaml").contains("rate: 20    # requests per second, or"));
    let study = bench.read("alone/study.yaml");
    assert!(study.contains("No two prompts") && !study.contains("caches pay"), "{study}");
    let run = bench.blis("run alone/scenario.yaml --num-requests 400 --format json").json();
    assert_eq!(run["kv"]["hit_rate"].as_f64(), Some(0.0), "as the study says");
}

#[test]
fn init_takes_every_workload_that_ships_and_every_kind_of_rate() {
    let bench = Bench::new();
    for preset in blis_scenario::presets::ALL {
        let name = preset.name;
        let ran = bench.blis(&format!("init {name} --workload {name} --rate 20 --slo ttft_p99<1s"));
        assert_eq!(ran.code, Some(0), "{name}: {}", ran.err);
    }
    assert_eq!(bench.blis("init share --rate 90% --slo ttft_p99<1s").code, Some(0));
    let study = bench.read("share/study.yaml");
    assert!(!study.contains("fewest_instances"), "the rate follows the instances: {study}");
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
    for (args, told) in [
        ("--model llama-3.1-70b --gpus 2 --hardware H100", "have no room for llama-3.1-70b and"),
        ("--model llama-3.1-70b --gpus 2 --hardware H100", "it needs 4: set `--gpus 4`"),
        ("--model llama-3.1-70b --gpus 2 --tp 1 --hardware H100", "error: --tp: "),
        ("--model llama-70b", "error: --model: unknown model `llama-70b`"),
        ("--model llama-70b", "known: `meta-llama/llama-3.1-70b-instruct`"),
        ("--hardware H1", "error: --hardware: unknown GPU `H1`"),
    ] {
        let ran = Bench::new().blis(&format!("init {args}"));
        assert_eq!(ran.code, Some(2), "{args}");
        assert!(ran.err.contains(told) && !ran.err.contains(".yaml"), "{args}: {}", ran.err);
    }
    let (many, enough) = ("--model llama-3.1-70b --hardware H100 --gpus", Bench::new());
    assert_eq!(enough.blis(&format!("init {many} 4")).code, Some(0), "as many as it says");
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
