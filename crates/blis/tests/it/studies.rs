//! Studies, comparisons and explanations, from the command line to the verdict.

use super::{Bench, Ran};

const STUDY: &str = "\
question: do more instances help?
base:
  latency: {model: constant, step_us: 1000}
  engine: {max_num_running_reqs: 1, total_kv_blocks: 1000, async_scheduling: false}
  workload:
    distribution:
      rate: 80
      num_requests: 600
      prompt_tokens: {mean: 16, stdev: 0}
      output_tokens: {mean: 10, stdev: 8, min: 1, max: 40}
components:
  second: {cluster: {instances: 2}}
  order: {scheduler: sjf}
arms:
  - {name: one}
  - {name: two, with: [second, order], tests: everything}
references: false
metrics: [ttft_mean, ttft_p99]
seeds: 4
warmup: 0s
hypotheses:
  - {name: faster, claim: ttft_mean(two) < ttft_mean(one), because: each has half of the requests}
  - {name: slower, claim: ttft_p99(two) > ttft_p99(one)}
";

fn bench() -> Bench {
    let bench = Bench::new();
    bench.write("s.yaml", STUDY);
    bench
}

#[test]
fn a_refuted_hypothesis_is_a_failed_check() {
    let bench = bench();
    let ran = bench.blis("study s.yaml --no-ledger --tables --report s.md");
    assert_eq!(ran.code, Some(0), "{}", ran.err);
    assert!(ran.out.contains("confirmed faster: ttft_mean(two) < ttft_mean(one)"), "{}", ran.out);
    assert!(ran.out.contains("refuted slower: ttft_p99(two) > ttft_p99(one)"), "{}", ran.out);
    assert!(ran.out.contains("requests by class, per run"), "{}", ran.out);
    assert!(ran.out.lines().all(|line| line.chars().count() <= 100), "{}", ran.out);
    let page = bench.read("s.md");
    assert!(page.contains("### slower: refuted\n\n- **claim** `ttft_p99(two) > ttft_p99(one)`\n"));
    assert!(
        page.contains("- **because** each has half of the requests\n- **found** ttft_mean(two)")
    );
    assert!(
        page.contains("![ttft_mean, ms](s-ttft-mean-ms.svg)") && page.contains("blis study s.yaml"),
        "{page}"
    );
    let drawing = bench.read("s-ttft-mean-ms.svg");
    assert!(drawing.contains("ttft_mean, ms"), "the drawing is beside it");
    let checked = bench.blis("study s.yaml --no-ledger --tables --check");
    assert_eq!((checked.code, checked.out), (Some(1), ran.out), "the same, but for the exit code");
}

#[test]
fn a_study_ends_with_its_answer_on_one_screen() {
    let bench = bench();
    let ran = bench.blis("study s.yaml --no-ledger --report s.html");
    assert_eq!(ran.code, Some(0), "{}", ran.err);
    let lines: Vec<&str> = ran.out.lines().collect();
    assert!(lines.len() <= 40, "{}", ran.out);
    let best = "Best by ttft_mean (time to first token: mean; less is better): two, ";
    assert!(lines[2].starts_with(best), "{}", ran.out);
    assert!(ran.out.contains("slower  refuted    ttft_p99↓ x 0."), "{}", ran.out);
    let words = ran.out.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(words.contains("not errors of the model"), "{}", ran.out);
    assert!(ran.out.ends_with("All verdicts, tables and charts: s.html, or `--tables`\n"));
    let page = bench.read("s.html");
    let (answer, verdicts) = (page.find("Best by ttft_mean"), page.find("<h2>Verdicts</h2>"));
    assert!(answer.is_some() && answer < verdicts, "the page begins with it");
}

#[test]
fn a_case_whose_requests_all_come_within_the_warm_up_has_no_data_and_is_not_ranked() {
    let bench = Bench::new();
    let sized = |sizes: &str| {
        let swept = format!("sweep: {{workload.distribution.num_requests: {sizes}}}");
        STUDY.replace("warmup: 0s", &format!("warmup: 5s\n{swept}"))
    };
    // 80 requests/s: 900 take 11 s, 30 less than one.
    let text = sized("[900, 30]");
    bench.write("s.yaml", &text[..text.find("hypotheses").expect("it has claims")]);
    let ran = bench.blis("study s.yaml --no-ledger --quiet");
    assert_eq!(ran.code, Some(0), "{}", ran.err);
    let first = ran.out.lines().nth(2).expect("an answer");
    assert!(first.starts_with("Best by ttft_mean") && first.contains(" at 900: two"), "{first}");
    let row = ran.out.lines().find(|line| line.trim().starts_with("30 ")).expect("a row");
    assert!(row.ends_with("no data"), "{}", ran.out);
    let words = ran.out.split_whitespace().collect::<Vec<_>>().join(" ");
    let told =
        ["1 case left out, e.g. 30: no data: all requests of the run (", "the warm-up (5 s)."];
    assert!(told.iter().all(|part| words.contains(part)), "{}", ran.out);
    assert!(!ran.out.contains("overloaded") && !ran.out.contains("keep"), "{}", ran.out);
    bench.write("s.yaml", sized("[30]").replace("warmup: 5s", "warmup: 5s\nlength: written"));
    let none = bench.blis("study s.yaml --no-ledger --quiet");
    assert!(none.out.contains("No data: all requests"), "{}{}", none.out, none.err);
    assert!(none.out.contains("inconclusive"), "{}", none.out);
}

#[test]
fn the_command_of_the_answer_exports_the_model_and_the_machine_that_were_studied() {
    let bench = Bench::new();
    bench.write(
        "s.yaml",
        "model: qwen/qwen3-8b\nhardware: H200\ntp: 1\ncluster: {instances: 2}
workload: {distribution: {rate: 4, num_requests: 40}}",
    );
    let arms = "arms: [{name: a, set: {strategy: llm-d-1.0-precise}}, \
                {name: b, set: {strategy: no-kv}}]\nmetrics: [ttft_mean]\nreferences: false\n";
    bench.write("file.yaml", format!("question: q?\nbase: s.yaml\n{arms}"));
    let base = bench.read("s.yaml").replace('\n', "\n  ");
    bench.write("inline.yaml", format!("question: q?\nbase:\n  {base}\n{arms}"));
    let direct = bench.blis("export llm-d s.yaml --strategy llm-d-1.0-precise").out;
    assert!(direct.contains("qwen/qwen3-8b"), "{direct}");
    let body = |text: &str| text[text.find("apiVersion").expect("a file")..].to_owned();
    for study in ["file.yaml", "inline.yaml"] {
        let ran = bench.blis(&format!("study {study} --no-ledger --quiet"));
        assert_eq!(ran.code, Some(0), "{}", ran.err);
        let command = format!("export llm-d {study} --strategy ");
        assert!(ran.out.contains(&format!("blis {command}")), "{}", ran.out);
        let exported = bench.blis(&format!("{command}llm-d-1.0-precise")).out;
        assert_eq!(body(&exported), body(&direct));
    }
}

#[test]
fn the_first_study_of_the_readme_ends_with_its_answer_on_one_screen() {
    let bench = Bench::new();
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../studies/routers.yaml");
    let mut text = std::fs::read_to_string(path).expect("it is there");
    for (written, small) in [
        ("num_requests: 30000", "num_requests: 100"),
        ("num_requests: 20000", "num_requests: 100"),
        ("max_seeds: 10", "max_seeds: 2"),
        ("seeds: 5", "seeds: 2"),
        ("warmup: 20s", "warmup: 0s"),
        ("[50%, 70%, 90%, 110%]", "[50, 70, 90, 110]"),
        ("\"70%\"", "\"70\""),
        ("\"90%\"", "\"90\""),
    ] {
        assert!(text.contains(written), "{written}");
        text = text.replace(written, small);
    }
    bench.write("routers.yaml", text);
    let ran = bench.blis("study routers.yaml --quiet --report routers.html --ledger l.db");
    assert_eq!(ran.code, Some(0), "{}", ran.err);
    let mut narrow = bench.command("study routers.yaml --quiet --ledger l.db");
    let narrow = Ran::from(narrow.env("COLUMNS", "80").output().expect("starts"));
    assert!(ran.out.lines().count() <= 40, "{}", ran.out);
    let tables = narrow.out.lines().filter(|line| line.starts_with("workload ")).count();
    assert_eq!(tables, 1, "not split on 80 columns: {}", narrow.out);
    for told in [
        "Which router for eight vLLM servers",
        "Safest by ttft_p99 (",
        "retrieval ",
        "Not known: ",
        "Claims: ",
        "errors of the model",
        "# all ",
    ] {
        assert!(ran.out.contains(told), "{told}: {}", ran.out);
    }
    let size = bench.read("routers.html").len();
    assert!(size <= 1_500_000, "{size} bytes");
    let commands = ran.out.lines().filter_map(|line| line.strip_prefix("  blis export llm-d "));
    let commands: Vec<&str> = commands.filter_map(|line| line.split(" #").next()).collect();
    assert!(!commands.is_empty(), "{}", ran.out);
    for command in commands {
        let exported = bench.blis(&format!("export llm-d {}", command.replace('\'', "").trim()));
        assert_eq!(exported.code, Some(0), "{command}: {}", exported.err);
        assert!(exported.out.contains("EndpointPickerConfig"), "{}", exported.out);
    }
}

#[test]
fn where_nothing_settles_nothing_wins_and_nothing_is_deployed() {
    let bench = Bench::new();
    let arms = "arms: [{name: a, set: {strategy: llm-d-1.0}}, {name: b, set: {strategy: no-kv}}]";
    let text = format!(
        "question: q?\nbase: {{latency: {{model: constant, step_us: 100000}}, workload: {{distribution: \
         {{num_requests: 2000}}}}}}\n{arms}\nsweep: {{workload.distribution.rate: [2000, 3000]}}\n\
         metrics: [ttft_p99]\nlength: written\nseeds: 1\n"
    );
    bench.write("s.yaml", text);
    let ran = bench.blis("study s.yaml --no-ledger --quiet");
    assert!(ran.out.contains("No arm has settled"), "{}{}", ran.out, ran.err);
    assert!(!ran.out.contains("Best everywhere") && !ran.out.contains("To deploy"), "{}", ran.out);
    let words = ran.out.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(words.contains("One seed does not tell an effect from chance"), "{}", ran.out);
}

#[test]
fn an_arm_that_misses_a_target_is_not_deployed_where_another_meets_it() {
    let bench = Bench::new();
    let told = |limit: &str| {
        let claim = |arm: &str| format!("  - {{name: {arm}, claim: ttft_mean({arm}) < {limit}}}\n");
        let text = format!(
            "question: q?
base:
  latency: {{model: constant, step_us: 10000}}
  engine: {{total_kv_blocks: 2000, max_num_running_reqs: 4}}
  workload: {{preset: multi-turn-4x512, num_requests: 400, rate: 2}}
  cluster: {{instances: 2}}
arms: [{{name: open, set: {{strategy: no-kv}}}}, {{name: gated, set: {{strategy: slo-gated}}}}]
references: false
metrics: [completed, ttft_mean]
seeds: 3
max_seeds: 3
length: written
warmup: 0s
hypotheses:\n{}{}",
            claim("open"),
            claim("gated")
        );
        bench.write("s.yaml", text);
        let ran = bench.blis("study s.yaml --no-ledger --quiet");
        assert_eq!(ran.code, Some(0), "{}", ran.err);
        assert!(ran.out.contains("more is better): open, 400."), "{}", ran.out);
        ran.out
    };
    let one = told("5s");
    assert!(one.contains("met by gated; missed for overload by open."), "{one}");
    assert!(
        one.contains("To deploy the safest that llm-d can run and that is not shown to"),
        "{one}"
    );
    assert!(one.contains("--strategy slo-gated") && !one.contains("--strategy no-kv"), "{one}");
    let none = told("50ms");
    assert!(none.contains("Every arm that llm-d can run misses a target"), "{none}");
}

#[test]
fn what_the_safest_arm_costs_against_the_first_one_is_told() {
    let bench = Bench::new();
    let study = |arms: &str| {
        format!(
            "question: which budget?
base:
  hardware: H100
  tp: 2
  workload: {{distribution: {{rate: 8, num_requests: 200, \
             prompt_tokens: {{mean: 4000, stdev: 0}}, output_tokens: {{mean: 200, stdev: 0}}}}}}
arms: [{arms}]
references: false
metrics: [ttft_mean, itl_p99]
seeds: 3
max_seeds: 3
length: written
warmup: 5s
"
        )
    };
    let [small, large] = [("small", 512), ("large", 8192)].map(|(name, tokens)| {
        format!("{{name: {name}, set: {{engine: {{max_num_scheduled_tokens: {tokens}}}}}}}")
    });
    let told = |arms: &str| {
        bench.write("s.yaml", study(arms));
        let ran = bench.blis("study s.yaml --no-ledger --quiet");
        assert_eq!(ran.code, Some(0), "{}", ran.err);
        assert!(ran.out.contains("Best by ttft_mean"), "{}", ran.out);
        ran.out.split_whitespace().collect::<Vec<_>>().join(" ")
    };
    let slower = told(&format!("{small}, {large}"));
    assert!(slower.contains("What large costs against small: at worst, itl_p99 is "), "{slower}");
    let first = told(&format!("{large}, {small}"));
    assert!(!first.contains(" costs against "), "the first arm is the safest: {first}");
    let free = "{name: one, set: {}}, {name: two, set: {cluster: {instances: 2}}}";
    let free = told(free);
    assert!(free.contains("Against one, with two no metric or class is shown"), "{free}");
}

#[test]
fn claims_can_be_about_one_tenant() {
    let bench = Bench::new();
    bench.write(
        "s.yaml",
        "question: who waits?
base:
  workload:
    mix:
      aggregate_rate: 20
      num_requests: 300
      cohorts:
        - id: t
          population: 2
          tenant_id: tenant-{member}
          rate_fraction: 1
          arrival: {process: poisson}
          input_distribution: {type: constant, params: {value: 100}}
          output_distribution: {type: constant, params: {value: 10}}
arms: [{name: a}, {name: b, set: {cluster: {instances: 2}}}]
references: false
metrics: [ttft_p99]
seeds: 3
max_seeds: 3
length: written
warmup: 0s
hypotheses:
  - {name: one, claim: tenants.tenant_1.completed(a) >= 100}
  - {name: nobody, claim: tenants.tenant_9.completed(a) >= 0}
",
    );
    let ran = bench.blis("study s.yaml --no-ledger --quiet --format json");
    let all: serde_json::Value = serde_json::from_str(&ran.out).expect(&ran.err);
    let verdicts = [0, 1].map(|at| all["hypotheses"][at]["verdict"].clone());
    assert_eq!(verdicts[0], "confirmed", "{}", all["hypotheses"]);
    assert_ne!(verdicts[1], "confirmed", "there is no such tenant");
}

#[test]
fn verdicts_are_in_the_json_and_in_the_ledger() {
    let bench = bench();
    let ran = bench.blis("study s.yaml --format json");
    let all: serde_json::Value = serde_json::from_str(&ran.out).expect("JSON");
    let [faster, slower] = &all["hypotheses"].as_array().expect("a list")[..] else {
        panic!("{}", ran.out)
    };
    assert_eq!((&faster["verdict"], &slower["verdict"]), (&"confirmed".into(), &"refuted".into()));
    let estimate = &faster["effects"][0]["estimate"];
    assert!(estimate["high"].as_f64().expect("a number") < 1.0, "{estimate}");
    let page = bench.blis("ledger export").out;
    assert!(page.contains("**refuted**"), "{page}");
    let again = bench.blis("study s.yaml --format json");
    assert_eq!(again.out, ran.out, "what is finished gives the same");
}

#[test]
fn what_a_study_says_besides_is_on_its_pages() {
    let bench = Bench::new();
    bench.write("s.yaml", format!("{STUDY}discussion: |\n  Less <work>.\n\n  More of it.\n"));
    let ran = bench.blis("study s.yaml --no-ledger --quiet --report s.md --report s.html");
    assert_eq!(ran.code, Some(0), "{}", ran.err);
    let page = bench.read("s.md");
    assert!(page.contains("## Discussion\n\nLess &lt;work>.\n\nMore of it.\n"), "{page}");
    let html = bench.read("s.html");
    assert!(html.contains("<h2>Discussion</h2>\n<p>Less &lt;work&gt;.</p>\n<p>More of it.</p>"));
}

#[test]
fn a_mistake_in_a_claim_is_pointed_at() {
    let bench = bench();
    bench.write("bad.yaml", STUDY.replace("ttft_mean(two) <", "ttft_mean(tow) <"));
    let ran = bench.blis("study bad.yaml");
    assert_eq!(ran.code, Some(2));
    let lines: Vec<&str> = ran.err.lines().collect();
    assert!(lines[0].contains("hypotheses[0].claim: unknown arm `tow`, did you mean `two`?"));
    assert_eq!(lines[1], "  ttft_mean(tow) < ttft_mean(one)");
    assert_eq!(lines[2], "            ^^^");
    assert!(!bench.files().contains(&".blis".to_owned()), "nothing was begun");
}

#[test]
fn scenarios_are_compared_seed_by_seed() {
    let bench = Bench::new();
    bench.write("a.yaml", "name: fast\nworkload: {distribution: {rate: 120, num_requests: 400}}\n");
    bench.write(
        "b.yaml",
        "name: slow\ncluster: {instances: 2}\nworkload: {distribution: {rate: 120, num_requests: 400}}\n",
    );
    let ran = bench.blis("compare a.yaml b.yaml --seeds 4 --no-ledger --metrics ttft_mean,offered");
    assert_eq!(ran.code, Some(0), "{}", ran.err);
    let line = |name: &str| ran.out.lines().find(|line| line.starts_with(name)).expect("a line");
    assert!(line("ttft_mean").ends_with(", better"), "{}", ran.out);
    assert!(line("offered").ends_with("  same"), "{}", ran.out);
    assert!(ran.out.contains("slow against fast"), "by their names: {}", ran.out);
    let same = bench.blis("compare a.yaml a.yaml --seeds 2 --no-ledger --format json");
    let all: serde_json::Value = serde_json::from_str(&same.out).expect("JSON");
    assert_eq!(all["arms"][1]["ttft_mean"]["difference"]["mean"], 0.0, "{}", same.out);
    for folder in ["one", "two"] {
        std::fs::create_dir(bench.path().join(folder)).expect("a new folder");
        bench.write(&format!("{folder}/scenario.yaml"), "workload: {preset: chatbot}\n");
    }
    let alike = bench.blis("compare one/scenario.yaml two/scenario.yaml --seeds 2 --no-ledger");
    let told = "two/scenario.yaml against one/scenario.yaml";
    assert!(alike.out.contains(told), "by their folders: {}{}", alike.out, alike.err);
    assert_eq!(bench.blis("compare a.yaml").code, Some(2));
    assert_eq!(bench.blis("compare a.yaml b.yaml --metrics ttft").code, Some(2));
}

#[test]
fn what_is_left_to_gain_is_told_with_the_floor_and_what_decisions_were_worth() {
    let bench = Bench::new();
    let arms = &STUDY[STUDY.find("components:").expect("it has components")..];
    let base = "base: {workload: {distribution: {rate: 120, num_requests: 600}}}";
    bench.write("s.yaml", format!("question: what is left to gain?\n{base}\n{arms}"));
    let metrics = "--metrics ttft_mean,ttft_p99,hit_rate";
    let ran = bench.blis(&format!(
        "explain s.yaml --seeds 3 --no-ledger {metrics} --counterfactual-sample 9 --format json \
         --report p.html"
    ));
    assert_eq!(ran.code, Some(0), "{}", ran.err);
    let all: serde_json::Value = serde_json::from_str(&ran.out).expect("JSON");
    let number = |value: &serde_json::Value| value.as_f64().expect("a number");
    for metric in ["ttft_mean", "ttft_p99"] {
        let found = &all["headroom"]["metrics"][metric];
        let reached = found["reached"].as_array().expect("a list");
        assert_eq!(reached.len(), 5, "the arm, three oracles, and all of them");
        assert_eq!(reached[0]["oracles"], serde_json::json!([]));
        let floor = number(&found["floor"]["mean"]);
        assert!(floor > 0.0);
        for row in reached {
            assert!(number(&row["mean"]) >= floor, "{row} goes below {floor}");
        }
    }
    assert_eq!(all["headroom"]["metrics"]["hit_rate"]["floor"], serde_json::Value::Null);
    let decisions = &all["decisions"]["all"];
    assert_eq!(decisions["tried"], 9);
    assert!(number(&decisions["regret_ms"]["mean"]) >= 0.0);
    let page = bench.read("p.html");
    assert!(page.contains("<h2>Room for improvement</h2>") && page.contains("oracle router"));
    let text = bench.blis("explain s.yaml --seeds 3 --no-ledger --counterfactual-sample 9").out;
    let words = text.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(words.contains("what oracles reach: ttft_mean, ms"), "{text}");
    assert!(words.contains("No policy can go below"), "{text}");
    assert!(text.contains("value of routing decisions"), "{text}");
    assert!(text.lines().all(|line| line.chars().count() <= 100), "{text}");
}

#[test]
fn an_arm_is_explained_by_parts_and_components() {
    let bench = bench();
    let ran = bench.blis("explain s.yaml --seeds 3 --no-ledger --format json");
    assert_eq!(ran.code, Some(0), "{}", ran.err);
    let all: serde_json::Value = serde_json::from_str(&ran.out).expect("JSON");
    let number = |value: &serde_json::Value| value.as_f64().expect("a number");
    let found = &all["ablation"]["ttft_mean"];
    let components = found["components"].as_array().expect("a list");
    let shares: f64 = components.iter().map(|part| number(&part["shapley"]["mean"])).sum();
    let total = number(&found["total"]["mean"]);
    assert!((shares - total).abs() < 1e-6 * total.abs(), "{shares} of {total}");
    let parts = &all["decomposition"]["all"];
    let ttft = number(&parts["ttft"]["difference_ms"]["mean"]);
    assert!((ttft - total).abs() < 1e-6 * total.abs(), "all less none is the arm less the other");
    let text = bench.blis("explain s.yaml --seeds 3 --no-ledger").out;
    let words = text.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(text.contains("Shapley share") && words.contains("The compound is "), "{text}");
    assert!(text.lines().all(|line| line.chars().count() <= 100), "{text}");
    let none = "explain s.yaml --seeds 3 --no-ledger --no-oracles --counterfactual-sample 0";
    let short = bench.blis(none).out;
    assert!(short.contains("Shapley share") && !short.contains("oracle"), "{short}");
    assert_eq!(bench.blis("explain s.yaml --arm three").code, Some(2));
    assert_eq!(bench.blis("explain s.yaml --arm one").code, Some(2));
}

#[test]
fn the_command_of_the_guide_that_explains_an_arm_runs() {
    const ROOT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../..");
    let read = |path: &str| std::fs::read_to_string(format!("{ROOT}/{path}")).expect(path);
    let guide = read("docs/guide/compare.md");
    let command = guide.lines().find_map(|line| line.strip_prefix("blis explain ")).expect("one");
    let (file, flags) = command.split_once(' ').expect("flags");
    let mut text = read(file);
    for (written, small) in [
        ("rate: 90%", "rate: 40"),
        ("rate: 200%", "rate: 80"),
        ("num_requests: 40000", "num_requests: 60"),
        ("num_requests: 20000", "num_requests: 60"),
    ] {
        assert!(text.contains(written), "{written}");
        text = text.replace(written, small);
    }
    let bench = Bench::new();
    bench.write("s.yaml", text);
    let flags = flags.replace("--seeds 5", "--seeds 2");
    let small = "--no-ledger --quiet --no-oracles --counterfactual-sample 0";
    let ran = bench.blis(&format!("explain s.yaml {flags} {small}"));
    assert_eq!(ran.code, Some(0), "{}", ran.err);
    assert!(ran.out.contains("Shapley share"), "{}", ran.out);
}

#[test]
fn a_picker_that_is_run_today_takes_the_place_of_the_baseline() {
    let bench = Bench::new();
    let study = |baseline: &str| {
        format!(
            "question: is it better than what we run?
base:
  latency: {{model: constant, step_us: 1000}}
  cluster: {{instances: 2}}
  scheduler: sjf
  engine: {{max_num_running_reqs: 1, total_kv_blocks: 1000, async_scheduling: false}}
  workload:
    distribution:
      rate: 120
      num_requests: 300
      prompt_tokens: {{mean: 16, stdev: 0}}
      output_tokens: {{mean: 10, stdev: 8, min: 1, max: 40}}
arms:
  - {{name: ours, set: {{strategy: least-loaded}}}}
  - {{name: baseline, set: {{{baseline}}}}}
references: false
metrics: [ttft_mean]
seeds: 3
warmup: 0s
hypotheses: [{{claim: ttft_mean(ours) < ttft_mean(baseline)}}]
"
        )
    };
    bench.write("chance.yaml", study("routing: random"));
    bench.write("named.yaml", study("strategy: llm-d-fallback-3-2-2"));
    assert_eq!(
        bench.blis("export llm-d --strategy llm-d-fallback-3-2-2 --out epp.yaml").code,
        Some(0)
    );
    bench.write(
        "epp.yaml",
        bench.read("epp.yaml").replacen(
            "plugins:\n",
            "plugins:\n- type: lora-affinity-scorer\n",
            1,
        ),
    );
    let found = |args: &str| {
        let ran = bench.blis(&format!("study {args} --format json"));
        assert_eq!(ran.code, Some(0), "{}", ran.err);
        let all: serde_json::Value = serde_json::from_str(&ran.out).expect("JSON");
        // Cells are told apart by what they mean, which is their key in the ledger. The arm has the
        // name of the file.
        let told = |part: &str| {
            ["epp", "mine"].iter().fold(all[part].to_string(), |text, name| {
                assert_eq!(text.contains(name), args.contains(&format!("{name}.yaml")), "{text}");
                text.replace(name, "baseline")
            })
        };
        (told("cells"), told("hypotheses"), ran.err)
    };
    let (means, verdicts, _) = found("named.yaml");
    let (imported, judged, told) = found("chance.yaml --baseline epp.yaml");
    assert_eq!((&imported, &judged), (&means, &verdicts), "the strategy, under any name");
    let line = "note: left out: plugin `lora-affinity-scorer` of type `lora-affinity-scorer`";
    assert!(told.contains(line), "{told}");
    assert_ne!(found("chance.yaml").0, means, "the baseline as it is written");
    bench.write("mine.yaml", "name: mine\nhelp: mine\nset: {routing: {policy: weighted, scorers: 'pa:3,queue:2,kv:2'}, scheduler: fcfs}\n");
    assert_eq!(found("chance.yaml --baseline mine.yaml").0, means, "a strategy's file");
    let refused = bench.blis("study chance.yaml --baseline chance.yaml --no-ledger");
    assert_eq!(refused.code, Some(2), "{}", refused.out);
    assert!(refused.err.contains("no `kind: EndpointPickerConfig`"), "{}", refused.err);
}
