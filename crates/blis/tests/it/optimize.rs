//! Searches, from the command line to the strategy file.

use super::Bench;
use super::ledger::killed;
use blis_lab::Ledger;

pub(super) const SEARCH: &str = "\
question: which weights?
base: {cluster: {instances: 3}, engine: {preset: vllm-a100}, \
workload: {preset: orthogonal-slo, rate: 320, num_requests: 400}}
strategy: slo-compound
parameters: [pa, qd, gate]
objective: critical.ttft_p99
constraints: ['tokens_per_sec >= 0.5 * baseline']
budget: {calls: 12, seeds: 2}
confirm: {seeds: 3}
";

/// The same with three objectives.
pub(super) fn fronts() -> String {
    SEARCH.replace(
        "objective: critical.ttft_p99",
        "objective: [critical.ttft_p99, e2e_p99]\nmaximise: sheddable.completed",
    )
}

fn bench() -> Bench {
    let bench = Bench::new();
    bench.write("s.yaml", SEARCH);
    bench
}

#[test]
fn a_search_prints_tables_and_writes_a_strategy_that_runs() {
    let bench = bench();
    let ran = bench.blis("optimize s.yaml --control --out best.yaml");
    assert_eq!(ran.code, Some(0), "{}", ran.err);
    for part in ["by hand", "found at random", "fresh seeds", "importance", "so far"] {
        assert!(ran.out.contains(part), "no `{part}` in {}", ran.out);
    }
    assert!(ran.out.lines().all(|line| line.chars().count() <= 100), "{}", ran.out);
    let file = bench.read("best.yaml");
    assert!(file.contains("# Made by: blis optimize s.yaml --control --out best.yaml"), "{file}");
    let run = bench.blis("run --strategy best.yaml --num-requests 50");
    assert_eq!(run.code, Some(0), "{}", run.err);
    let again = bench.blis("optimize s.yaml --control");
    assert_eq!(again.out, ran.out, "what is finished gives the same");
}

#[test]
fn a_search_without_a_feasible_point_fails_and_says_so_in_the_file() {
    let bench = Bench::new();
    bench.write("s.yaml", SEARCH.replace("tokens_per_sec >= 0.5 * baseline", "ttft_p99 <= 0.001"));
    let ran = bench.blis("optimize s.yaml --quiet --no-ledger --out best.yaml");
    let told = "no point that was measured met the constraints";
    assert_eq!((ran.code, ran.err), (Some(1), format!("check failed: {told}\n")));
    assert!(ran.out.contains(&format!("warning: {told}")), "{}", ran.out);
    assert!(bench.read("best.yaml").contains(&format!("# Not to be used: {told}\n")));
}

#[test]
fn what_a_search_does_not_use_of_its_base_is_said() {
    let bench = Bench::new();
    bench.write(
        "strategy.yaml",
        "name: wide\nhelp: a wide batch\n\
         parameters: {seqs: {default: 64, min: 8, max: 256, help: the batch}}\n\
         set: {engine: {max_num_running_reqs: '{seqs}'}}\n",
    );
    let search = SEARCH.replace("base: {", "base: {routing: least-loaded, ");
    let search = search.replace("vllm-a100}", "vllm-a100, max_num_running_reqs: 32}");
    let search = search.replace("slo-compound", "strategy.yaml");
    bench.write("s.yaml", search.replace("[pa, qd, gate]", "[seqs]"));
    let ran = bench.blis("optimize s.yaml --no-ledger");
    for note in [
        "note: `routing` of the base gives way to the search\n",
        "note: `engine.max_num_running_reqs` of the base stands, not that of `strategy.yaml`\n",
    ] {
        assert!(ran.err.contains(note), "{}", ran.err);
    }
}

#[test]
fn an_objective_is_named_once() {
    let bench = Bench::new();
    let twice = "objective: [critical.ttft_p99, critical.ttft_p99]";
    bench.write("s.yaml", SEARCH.replace("objective: critical.ttft_p99", twice));
    let ran = bench.blis("optimize s.yaml --no-ledger");
    let told = "objective: found `critical.ttft_p99` twice; remove one";
    assert!(ran.code == Some(2) && ran.err.contains(told), "{}", ran.err);
}

#[test]
fn the_json_has_every_call_and_the_fresh_values() {
    let ran = bench().blis("optimize s.yaml --no-ledger --format json");
    let all: serde_json::Value = serde_json::from_str(&ran.out).expect("JSON");
    assert_eq!(all["calls"].as_array().map(Vec::len), Some(12));
    let fresh = &all["recommended"][0]["fresh"]["critical.ttft_p99"];
    assert_eq!(fresh["values"].as_array().map(Vec::len), Some(3), "{fresh}");
    assert_eq!(
        all["fresh_seeds"],
        serde_json::json!([10009, 10010, 10011]),
        "none of the search's"
    );
}

/// The same on two workloads.
pub(super) fn workloads() -> String {
    let calm = "{name: calm, set: {workload: {rate: 160}}}";
    let full = "{name: full house, set: {cluster: {instances: 2}}}";
    format!("{SEARCH}workloads: [{calm}, {full}]\n")
}

#[test]
fn tables_and_pages_show_every_workload_beside_the_mean() {
    let bench = Bench::new();
    bench.write("s.yaml", workloads());
    let ran = bench.blis("optimize s.yaml --control --out best.yaml --report p.html");
    assert_eq!(ran.code, Some(0), "{}", ran.err);
    for part in [
        "on calm, full house",
        "critical.ttft_p99 by workload, on fresh seeds, ms",
        "geometric mean",
        "tokens_per_sec @ calm >= 0.5 * baseline",
        "tokens_per_sec @ full house >= 0.5 *",
    ] {
        assert!(ran.out.contains(part), "no `{part}` in {}", ran.out);
    }
    assert!(ran.out.lines().all(|line| line.chars().count() <= 100), "{}", ran.out);
    let mean = ran.out.lines().find(|line| line.contains("geometric mean")).expect("a row");
    let found = ran.out.lines().find(|line| line.trim().starts_with("found ")).expect("a row");
    let fresh = found.split_whitespace().nth(2).expect("a number");
    assert!(mean.contains(fresh), "the mean is the objective: {mean}\n{found}");
    let page = bench.read("p.html");
    assert!(page.contains("<h2>Workloads</h2>") && page.contains(">geometric mean<"), "no table");
    let file = bench.read("best.yaml");
    assert!(file.contains("# Workloads: calm, full house\n"), "{file}");
    for (name, count) in [("calm", 1), ("full house", 1)] {
        let line = format!("# critical.ttft_p99 @ {name}, ms, 3 fresh seeds: ");
        assert_eq!(file.matches(&line).count(), count, "{file}");
    }
    let list = bench.blis("ledger list --last 500 --format json").out;
    let list: serde_json::Value = serde_json::from_str(&list).expect("JSON");
    let names: Vec<&serde_json::Value> =
        list.as_array().expect("a list").iter().map(|entry| &entry["levels"]).collect();
    for name in [["by hand", "calm"], ["gp 12", "full house"], ["fresh: by hand", "calm"]] {
        assert!(names.contains(&&serde_json::json!(name)), "no {name:?} in {names:?}");
    }
    let again = bench.blis("optimize s.yaml --control");
    assert_eq!(again.out, ran.out, "what is finished gives the same");
}

#[test]
fn a_mistake_about_workloads_is_pointed_at_and_nothing_is_begun() {
    let bench = Bench::new();
    let bad = workloads().replace("tokens_per_sec >=", "tokens_per_sec @ clam >=");
    bench.write("bad.yaml", bad);
    let ran = bench.blis("optimize bad.yaml");
    assert_eq!(ran.code, Some(2));
    let told = "bad.yaml:6:15: constraints[0]: unknown workload `clam`, did you mean `calm`?; \
                known: `calm`, `full house`";
    assert!(ran.err.contains(told), "{}", ran.err);
    assert!(ran.err.contains("                   ^^^^\n"), "{}", ran.err);
    bench.write("bad.yaml", SEARCH.replace("base: {", "base: {oracles: [routing], "));
    let ran = bench.blis("optimize bad.yaml");
    assert_eq!(ran.code, Some(2));
    let told = "bad.yaml:2:17: oracles: oracles cannot be deployed, so a search may not use them; \
        remove `oracles`";
    assert!(ran.err.contains(told), "{}", ran.err);
    assert!(!bench.files().contains(&".blis".to_owned()), "nothing was begun");
}

#[test]
fn a_mistake_in_a_constraint_is_pointed_at() {
    let bench = bench();
    bench.write("bad.yaml", SEARCH.replace("0.5 * baseline", "0.5 * base"));
    let ran = bench.blis("optimize bad.yaml");
    assert_eq!(ran.code, Some(2));
    assert!(ran.err.contains("bad.yaml:6:15: constraints[0]: found `base`"), "{}", ran.err);
    assert!(ran.err.contains("^^^^"), "{}", ran.err);
    assert!(!bench.files().contains(&".blis".to_owned()), "nothing was begun");
}

#[test]
fn a_page_shows_the_search_its_parameters_and_every_point() {
    let bench = bench();
    let ran = bench.blis("optimize s.yaml --control --quiet --no-ledger --report p.html");
    assert_eq!(ran.code, Some(0), "{}", ran.err);
    let page = bench.read("p.html");
    for title in ["Progress of the search", "Constraints", "Importance of parameters"] {
        assert!(page.contains(&format!("<h2>{title}</h2>")), "no {title}");
    }
    assert!(page.contains("<figcaption>equally good ranges"));
    assert!(page.contains("<summary>All points</summary>") && page.contains("id=\"findings\""));
    bench.write("f.yaml", fronts());
    let ran = bench.blis("optimize f.yaml --quiet --no-ledger --report f.html");
    assert_eq!(ran.code, Some(0), "{}", ran.err);
    let page = bench.read("f.html");
    assert_eq!(page.matches("the dot at the end of its line").count(), 3, "a slice for each pair");
}

#[test]
fn searches_have_names_in_the_ledger() {
    let bench = bench();
    let ran = bench.blis("optimize s.yaml --quiet");
    assert_eq!(ran.code, Some(0), "{}", ran.err);
    let list = bench.blis("ledger list --last 100").out;
    for name in ["by hand", "gp 2", "gp 12", "fresh: by hand"] {
        let line = list.lines().find(|line| line.contains(name));
        assert!(line.is_some_and(|line| line.contains(" s ")), "no `{name}` in {list}");
    }
    let exported = |bench: &Bench| bench.blis("ledger export").out;
    let once = exported(&bench);
    assert!(once.contains("which weights?"));
    assert_eq!(bench.blis("optimize s.yaml --quiet").code, Some(0));
    assert_eq!(exported(&bench), once, "it is known again");
}

#[test]
fn what_is_written_is_what_was_run_and_can_be_read_by_people() {
    let bench = bench();
    let ran = bench.blis("optimize s.yaml --quiet --no-ledger --format json --out best.yaml");
    let all: serde_json::Value = serde_json::from_str(&ran.out).expect("JSON");
    let found = all["recommended"][0]["search"]["parameters"].as_object().expect("parameters");
    let file = bench.read("best.yaml");
    for (name, value) in found {
        let text = value.to_string();
        let text = text.trim_end_matches(".0");
        assert!(file.contains(&format!("{name}\": {{default: {text},")), "{name} {text}: {file}");
        let digits = text.trim_start_matches(['0', '.']).chars().filter(char::is_ascii_digit);
        assert!(digits.count() <= 4, "{name} is {text}");
    }
}

/// The keys of the trials of a ledger, in the order in which they finished.
fn sequence(bench: &Bench, ledger: &str) -> Vec<String> {
    let ledger = Ledger::open_existing(&bench.path().join(ledger)).expect("a ledger");
    ledger.entries(u64::MAX).expect("it can be read").into_iter().map(|entry| entry.key).collect()
}

#[test]
fn kills_at_any_moment_change_neither_the_sequence_of_a_search_nor_its_answer() {
    let bench = bench();
    let args = |ledger: &str| format!("optimize s.yaml --format json --jobs 1 --ledger {ledger}");
    let mut expected = None;
    killed(
        &bench,
        6,
        args,
        |_| {},
        |ran, name| {
            assert_eq!(ran.code, Some(0), "{}", ran.err);
            let expected = expected.get_or_insert_with(|| ran.out.clone());
            assert_eq!(ran.out, *expected, "{name}");
            assert_eq!(sequence(&bench, name), sequence(&bench, "whole.db"), "{name}");
        },
    );
}
