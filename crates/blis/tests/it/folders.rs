//! Folders of studies: one run for all, a page for each, and results that can be verified.

use super::{Bench, Ran};

const FIRST: &str = "\
question: do more instances help?
base:
  latency: {model: constant, step_us: 1000}
  engine: {max_num_running_reqs: 1, total_kv_blocks: 1000}
  workload:
    distribution:
      rate: 80
      num_requests: 400
      prompt_tokens: {mean: 16, stdev: 0}
      output_tokens: {mean: 10, stdev: 8, min: 1, max: 40}
arms:
  - {name: one}
  - {name: two, set: {cluster: {instances: 2}}}
metrics: [ttft_mean, ttft_p99]
warmup: 0s
seeds: 3
hypotheses:
  - {name: faster, claim: ttft_mean(two) < ttft_mean(one), because: each has half of the requests}
  - {name: slower, claim: ttft_mean(two) > ttft_mean(one)}
";

const SECOND: &str = "\
question: where does it begin to wait?
base: {workload: {distribution: {num_requests: 200}}}
sweep: {workload.distribution.rate: [5, 20, 80]}
metrics: [ttft_p99]
seeds: 2
";

const SEARCH: &str = "\
question: which weights?
base: {cluster: {instances: 2}, workload: {preset: multi-turn-4x512, rate: 6, num_requests: 60}}
strategy: no-kv
objective: ttft_mean
budget: {calls: 4, seeds: 1, engine: sobol}
confirm: {seeds: 2}
";

const ALL: &str = "study lab --all --results kept";

fn bench() -> Bench {
    let bench = Bench::new();
    std::fs::create_dir(bench.path().join("lab")).expect("a folder");
    bench.write("lab/b-first.yaml", FIRST);
    bench.write("lab/a-second.yaml", SECOND);
    bench.write("lab/c-search.yaml", SEARCH);
    bench.write("lab/notes.txt", "not a study");
    bench.write("lab/scenario.yaml", "cluster: {instances: 2}\n");
    bench
}

#[track_caller]
fn done(ran: &Ran) {
    assert_eq!(ran.code, Some(0), "{}\n{}", ran.out, ran.err);
}

#[test]
fn a_folder_is_run_in_one_go_with_all_verdicts_in_one_table() {
    let bench = bench();
    let ran = bench.blis(ALL);
    done(&ran);
    let verdict = |name: &str| ran.out.lines().find(|line| line.contains(name)).expect("a line");
    assert!(verdict("faster").contains("confirmed") && verdict("faster").contains("b-first"));
    assert!(verdict("slower").contains("refuted"), "{}", ran.out);
    assert!(verdict("c-search").contains("ttft_mean"), "{}", ran.out);
    assert!(ran.out.contains("3 studies and searches: 1 confirmed, 1 refuted. "), "{}", ran.out);
    assert!(ran.out.lines().all(|line| line.chars().count() <= 100), "{}", ran.out);
    let told: Vec<&str> = ran.err.lines().filter(|line| line.contains("/3 ")).collect();
    assert_eq!(told[0], "1/3 a-second: no claims");
    assert_eq!(told[1], "2/3 b-first: 1 confirmed, 1 refuted");
    let page = bench.read("kept/README.md");
    assert!(page.contains("| b-first | slower | refuted | x 0."), "{page}");
    assert!(page.contains("\nblis study lab --all --results kept\n"), "{page}");
    assert!(!page.contains("scenario"), "it is neither a study nor a search");
    let rows = bench.read("kept/results.csv");
    let first = rows.lines().nth(1).expect("a row");
    let claim = "ttft_mean(two) < ttft_mean(one)";
    assert!(first.starts_with(&format!("b-first,faster,{claim},confirmed,3,x 0.")), "{rows}");
    let found: serde_json::Value =
        serde_json::from_str(&bench.blis("study lab --all --format json").out).expect("JSON");
    let names: Vec<&str> =
        found.as_array().expect("a list").iter().filter_map(|one| one["name"].as_str()).collect();
    assert_eq!(names, ["a-second", "b-first", "c-search"]);
}

#[test]
fn a_site_has_a_page_for_each_study_and_one_that_leads_to_them() {
    let bench = bench();
    done(&bench.blis("study lab --all --site site --quiet"));
    let index = bench.read("site/index.html");
    for (name, command) in [("b-first", "study"), ("c-search", "optimize")] {
        let link = format!("<a href=\"{name}.html\">{name}</a>");
        assert!(index.contains(&link), "{index}");
        let page = bench.read(&format!("site/{name}.html"));
        assert!(page.contains(&format!("blis {command} lab/{name}.yaml")), "{page}");
        assert!(page.contains("<svg") && page.len() < 300_000, "drawings, but no library");
    }
    let swept = bench.read("site/a-second.html");
    assert!(swept.matches("<circle").count() >= 3, "a point for each rate");
}

#[test]
fn results_that_are_not_what_the_runs_give_are_told() {
    let bench = bench();
    let missing = bench.blis(&format!("{ALL} --verify"));
    assert_eq!(missing.code, Some(1), "{}", missing.err);
    assert!(missing.err.contains("kept/results.csv: is not there"), "{}", missing.err);
    assert!(!bench.files().contains(&"kept".to_owned()), "verifying writes nothing");
    done(&bench.blis(ALL));
    done(&bench.blis(&format!("{ALL} --verify --no-ledger")));
    for name in ["kept/README.md", "kept/results.csv"] {
        let text = bench.read(name);
        let changed = text.replacen("refuted", "confirmed", 1);
        bench.write(name, &changed);
        let ran = bench.blis(&format!("{ALL} --verify"));
        assert_eq!(ran.code, Some(1), "{}", ran.err);
        assert!(ran.err.contains(&format!("{name}: line ")), "{}", ran.err);
        assert_eq!(bench.read(name), changed, "it was left alone");
        bench.write(name, text);
    }
}

#[test]
fn what_the_exit_status_of_several_studies_means() {
    let bench = bench();
    let check = bench.blis("study lab/a-second.yaml lab/b-first.yaml --check");
    assert_eq!(check.code, Some(1), "a hypothesis is refuted");
    assert_eq!(bench.blis("study lab/a-second.yaml lab/c-search.yaml --check").code, Some(0));
    bench.write("e.yaml", "question: q?\nobjective: ttft_p99\nheld_out: []\nevolve: {}\n");
    for (args, message) in [
        ("study lab", "lab: this is a folder; add `--all` to run all studies in it"),
        ("study lab/c-search.yaml", "this is a search; run `blis optimize lab/c-search.yaml`"),
        ("study e.yaml", "e.yaml: this is an evolution; run `blis evolve e.yaml`"),
        ("study e.yaml lab/a-second.yaml", "this is an evolution; run `blis evolve e.yaml`"),
        ("study --all --csv x.csv lab", "--csv: it takes one study"),
        ("study --all", "studies: cannot read"),
        ("study lab/a-second.yaml lab/a-second.yaml", "two studies named `a-second`"),
        ("study lab/a-second.yaml lab/scenario.yaml", "lab/scenario.yaml"),
    ] {
        let ran = bench.blis(args);
        assert_eq!(ran.code, Some(2), "{args}: {}", ran.err);
        assert!(ran.err.contains(message), "{args}: {}", ran.err);
    }
}

#[test]
fn the_strategy_ledger_is_the_same_from_any_fresh_run_and_a_changed_one_is_told() {
    let bench = bench();
    done(&bench.blis("study lab --all --ledger one.db"));
    // The other way round, in parts, and one of them twice.
    for args in ["study lab/b-first.yaml --shard 0/2", "study lab/b-first.yaml --shard 1/2"] {
        done(&bench.blis(&format!("{args} --ledger two.db")));
    }
    done(&bench.blis("study lab/b-first.yaml lab/a-second.yaml --ledger two.db"));
    done(&bench.blis("optimize lab/c-search.yaml --ledger two.db"));
    done(&bench.blis("ledger export --ledger one.db --out ledger.md"));
    let page = bench.read("ledger.md");
    let verdict = page.lines().find(|line| line.starts_with("| faster (each has half"));
    assert!(verdict.is_some_and(|line| line.contains("**confirmed**")), "{page}");
    done(&bench.blis("ledger export --ledger two.db --out ledger.md --verify"));
    bench.write("ledger.md", page.replace("**confirmed**", "**refuted**"));
    let told = bench.blis("ledger export --ledger two.db --out ledger.md --verify");
    assert_eq!(told.code, Some(1), "{}", told.err);
    assert!(told.err.starts_with("ledger.md: line "), "{}", told.err);
    assert!(bench.read("ledger.md").contains("| faster (each"), "verifying writes nothing");
    assert_eq!(bench.blis("ledger export --ledger one.db --verify").code, Some(2));
}
