//! The playground's compiled half gives what the command gives.

use super::Bench;
use serde_json::{Value, json};

fn ask(ask: &str, scenario: &str, known: &Value) -> (Value, Vec<u64>) {
    let question = json!({"ask": ask, "scenario": scenario, "known": known}).to_string();
    let mut told = Vec::new();
    let answer = blis_web::answer(&question, &mut |closed| told.push(closed));
    (serde_json::from_str(&answer).expect("JSON"), told)
}

#[test]
fn the_playground_gives_the_bytes_that_the_command_prints() {
    for scenario in [
        "strategy: precise\ncluster: {instances: 3}\n\
         workload: {preset: multi-turn-4x512, rate: 9, num_requests: 400}\n",
        "strategy: all-layers\nengine: {total_kv_blocks: 900}\n\
         signals: {snapshot_refresh_interval_us: 200000}\n\
         workload: {preset: mixed-slo-multi-turn, rate: 12, num_requests: 400}\n",
        "seed: 7\nrouting: {policy: least-loaded}\ncluster: {instances: 2}\n\
         workload: {distribution: {rate: 90%, num_requests: 300, output_tokens: {mean: 20}}}\n",
    ] {
        let bench = Bench::new();
        bench.write("scenario.yaml", scenario);
        let ran = bench.blis("run scenario.yaml --quiet --format json");
        let is_clock = |line: &&str| line.contains("wall_seconds") || line.contains("cpu_seconds");
        let lines = ran.out.split_inclusive('\n').filter(|line| !is_clock(line));
        let (answer, _) = ask("run", scenario, &json!({}));
        assert_eq!(answer["output"], lines.collect::<String>(), "{scenario}");
        assert_eq!(answer["curves"]["ttft_ms"].as_array().map(Vec::len), Some(101));
        assert!(answer["moments"][0].as_array().is_some_and(|all| all.len() > 10));
    }
}

#[test]
fn mistakes_in_the_playground_are_worded_as_the_command_words_them() {
    let scenario = "strategy: precice\nworkload: {preset: chatbot, rate: -1}\n";
    let bench = Bench::new();
    bench.write("scenario.yaml", scenario);
    let ran = bench.blis("run scenario.yaml");
    let (answer, _) = ask("run", scenario, &json!({}));
    let told = answer["error"].as_str().expect("an error");
    assert!(told.contains("`precise`") && told.contains("rate"), "{told}");
    for line in told.lines() {
        assert!(ran.err.contains(line), "{line}\n{}", ran.err);
    }
}

#[test]
fn a_saturation_that_the_page_knows_is_not_measured_again() {
    let scenario =
        "workload: {distribution: {rate: 80%, num_requests: 30000, output_tokens: {mean: 9}}}\n";
    let (settled, _) = ask("settle", scenario, &json!({}));
    let (key, _) = settled["known"].as_object().and_then(|all| all.iter().next()).expect("one");
    assert!(settled["saturation"].as_f64() > Some(1.0), "{settled}");
    let (again, _) = ask("settle", scenario, &json!({ key: 10.0 }));
    assert_eq!(again["saturation"], 10.0);
    let (answer, told) = ask("run", scenario, &json!({ key: 10.0 }));
    let output = answer["output"].as_str().expect("text");
    let output: Value = serde_json::from_str(output).expect("JSON");
    assert_eq!(output["run"]["saturation_per_sec"], 10.0);
    assert!(told.len() > 2 && told.is_sorted() && told.last() <= Some(&30_000), "{told:?}");
}

#[test]
fn all_that_the_menus_offer_can_be_run() {
    let (lists, _) = ask("lists", "", &json!({}));
    let names = |list: &str| {
        let all = lists[list].as_array().expect("a list").iter();
        all.map(|one| one["name"].as_str().expect("a name").to_owned()).collect::<Vec<String>>()
    };
    let (workloads, strategies) = (names("workloads"), names("strategies"));
    assert!(workloads.len() >= 12 && strategies.len() >= 26, "{lists}");
    let precise = strategies.iter().position(|name| name == "precise").expect("it is there");
    let first = json!({"name": "pp", "default": "2"});
    assert_eq!(lists["strategies"][precise]["params"][0], first, "parameters can be set");
    let run = |workload: &str, strategy: &str| {
        let scenario = format!(
            "strategy: {strategy}\nworkload: {{preset: {workload}, rate: 4, num_requests: 20}}\n"
        );
        let (answer, _) = ask("run", &scenario, &json!({}));
        assert!(answer["output"].is_string(), "{scenario}{answer}");
    };
    for workload in &workloads {
        run(workload, "precise");
    }
    for strategy in &strategies {
        run("chatbot", strategy);
    }
}
