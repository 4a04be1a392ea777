//! Folders of studies: one run for all, a page for each, and pages that can be verified.

use super::{Bench, Ran};

const FIRST: &str = "\
question: do more instances help?
base: {workload: {distribution: {rate: 120, num_requests: 400}}}
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

const ALL: &str = "study lab --all --markdown pages";

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
    assert!(ran.out.ends_with("3 files: 1 confirmed, 1 refuted\n"), "{}", ran.out);
    assert!(ran.out.lines().all(|line| line.chars().count() <= 100), "{}", ran.out);
    let told: Vec<&str> = ran.err.lines().filter(|line| line.contains("/3 ")).collect();
    assert_eq!(told[0], "1/3 a-second: nothing claimed");
    assert_eq!(told[1], "2/3 b-first: 1 confirmed, 1 refuted");
    let page = bench.read("pages/b-first.md");
    assert!(page.contains("[`lab/b-first.yaml`](../lab/b-first.yaml)"), "{page}");
    assert!(page.contains("blis study lab/b-first.yaml"), "{page}");
    let drawing = bench.read("pages/a-second.svg");
    assert_eq!(drawing.matches("<circle").count(), 3, "a point for each rate");
    let search = bench.read("pages/c-search.md");
    assert!(search.contains("![ttft_mean, ms](c-search.svg)"), "{search}");
    assert!(search.contains("blis optimize lab/c-search.yaml"), "{search}");
    assert_eq!(bench.read("pages/c-search.svg").matches("<circle").count(), 8, "two lines");
    let index = bench.read("pages/README.md");
    for name in ["a-second", "b-first", "c-search"] {
        assert!(index.contains(&format!("[{name}]({name}.md)")), "{index}");
    }
    assert!(index.contains("blis study lab --all --markdown pages\n"), "{index}");
    assert!(!index.contains("scenario"), "it is neither a study nor a search");
    let found: serde_json::Value =
        serde_json::from_str(&bench.blis("study lab --all --format json").out).expect("JSON");
    let names: Vec<&str> =
        found.as_array().expect("a list").iter().filter_map(|one| one["name"].as_str()).collect();
    assert_eq!(names, ["a-second", "b-first", "c-search"]);
}

#[test]
fn pages_that_are_not_what_the_runs_give_are_told() {
    let bench = bench();
    let missing = bench.blis("study lab --all --markdown pages --verify");
    assert_eq!(missing.code, Some(1), "{}", missing.err);
    assert!(missing.err.contains("pages/b-first.md: is not there"), "{}", missing.err);
    assert!(!bench.files().contains(&"pages".to_owned()), "verifying writes nothing");
    done(&bench.blis(ALL));
    let same = bench.blis(&format!("{ALL} --verify --no-ledger"));
    done(&same);
    let page = bench.read("pages/b-first.md");
    bench.write("pages/b-first.md", page.replacen("confirmed", "refuted", 1));
    let changed = bench.blis(&format!("{ALL} --verify"));
    assert_eq!(changed.code, Some(1), "{}", changed.err);
    let told = "pages/b-first.md: line ";
    assert!(changed.err.contains(told) && changed.err.contains("### faster: confirmed"));
    assert!(bench.read("pages/b-first.md").contains("### faster: refuted"), "it was left alone");
    bench.write("pages/b-first.md", page);
    bench.write("pages/a-second.svg", "<svg/>");
    assert_eq!(bench.blis(&format!("{ALL} --verify")).code, Some(1), "drawings are verified too");
    done(&bench.blis(ALL));
    std::fs::remove_file(bench.path().join("lab/a-second.yaml")).expect("it is there");
    let gone = bench.blis(&format!("{ALL} --verify"));
    assert_eq!(gone.code, Some(1), "{}", gone.err);
    assert!(gone.err.contains("pages/a-second.md: its study is gone; remove it"), "{}", gone.err);
}

#[test]
fn what_the_exit_status_of_several_studies_means() {
    let bench = bench();
    let check = bench.blis("study lab/a-second.yaml lab/b-first.yaml --check");
    assert_eq!(check.code, Some(1), "a hypothesis is refuted");
    assert_eq!(bench.blis("study lab/a-second.yaml lab/c-search.yaml --check").code, Some(0));
    for (args, message) in [
        ("study lab", "lab: it is a folder; add `--all` to run every study in it"),
        (
            "study lab/c-search.yaml",
            "it is a search; run it with `blis optimize lab/c-search.yaml`",
        ),
        ("study --all --csv x.csv lab", "--csv: it takes one study"),
        ("study --all", "studies: cannot read"),
        ("study lab/a-second.yaml lab/a-second.yaml", "two studies with the name `a-second`"),
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
