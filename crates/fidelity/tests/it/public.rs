//! Published measurements: what ships can be read, and replays come to what hands compute.

use blis_fidelity::public::{Column, read};
use std::fs;
use std::path::Path;

#[test]
fn every_file_of_published_measurements_names_its_source_and_licence() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../data/public");
    let files = fs::read_dir(folder).expect("part of the project");
    let mut count = 0;
    for file in files {
        let published = read(&file.expect("a file").path()).unwrap_or_else(|bad| panic!("{bad}"));
        assert!(!published.source.is_empty() && !published.licence.is_empty());
        count += 1;
    }
    assert!(count >= 10, "{count}");
}

/// Two servers with steps of 10 ms, whatever is in them, and rare requests of 3 tokens.
const SLOW: &str = "
title: by hand
source: here
licence: ours
hardware: none
engine: none
models: dense
scenario:
  latency: {model: constant, step_us: 10000}
  engine: {async_scheduling: false, total_kv_blocks: 1000}
  cluster: {instances: 2}
workload:
  shared_prefix: {num_groups: 2, num_prompts_per_group: 2, system_prompt_len: 32, question_len: 16, output_len: 3}
  stages: [[0.01, 1000], [0.02, 2000]]
  warmup: 1
columns: [output_tokens_per_s, ttft_mean_s, ttft_p90_s, itl_mean_ms]
arms:
  - {name: a, set: {routing: round-robin}, points: [[0.02, 0.06, 0.02, 0.01, 10], [~, ~, 0.01, ~, ~]]}
";

#[test]
fn a_request_on_an_idle_server_takes_its_steps_and_errors_are_relative_to_what_was_published() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("slow.yaml");
    fs::write(&path, SLOW).expect("it can be written");
    let arms = read(&path).expect("legal").replay().expect("it runs");
    let points = &arms[0].points;
    assert_eq!(points.len(), 5, "what was not published is left out");
    let of = |column: Column| points.iter().find(|point| point.column == column).expect("there");
    let ttft = of(Column::TtftMeanS);
    assert!((ttft.predicted - 0.01).abs() < 1e-4 && (ttft.error() + 0.5).abs() < 0.01, "{ttft:?}");
    let itl = of(Column::ItlMeanMs);
    assert!((itl.predicted - 10.0).abs() < 1e-9 && itl.error().abs() < 1e-9, "{itl:?}");
    let tokens = of(Column::OutputTokensPerS);
    assert!((0.03..0.12).contains(&tokens.predicted), "3 tokens of 0.02 requests/s: {tokens:?}");
    let bad = SLOW.replace("[~, ~, 0.01, ~, ~]", "[7, ~, 0.01, ~, ~]");
    fs::write(&path, bad).expect("it can be written");
    let refused = read(&path).expect("legal").replay().expect_err("no such stage").to_string();
    assert!(refused.contains("no stage has a rate of 7"), "{refused}");
    fs::write(&path, SLOW.replace("0.01, 10],", "0.01],")).expect("it can be written");
    assert!(read(&path).expect_err("too short").to_string().contains("not a rate and 4 numbers"));
}

#[test]
fn what_nobody_can_send_is_refused_before_anything_runs() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("bad.yaml");
    let refused = |text: String| {
        fs::write(&path, text).expect("it can be written");
        read(&path).expect_err("illegal").to_string()
    };
    let shared = SLOW.find("  shared_prefix").expect("there");
    let stages = SLOW.find("  stages").expect("there");
    let warmup = SLOW.find("  warmup").expect("there");
    let sent = |load: &str| format!("{}{load}{}", &SLOW[..shared], &SLOW[warmup..]);
    for (bad, words) in [
        (SLOW.replace("[0.01, 1000]", "[-1, 1000]"), "rates of `stages`: found -1; legal: 0 to"),
        (SLOW.replace("[0.01, 1000]", "[1, 1e12]"), "seconds of `stages`: found 1000000000000"),
        (sent("  requests: [[0, 0, 5]]\n"), "prompts of `requests`: found 0; legal: 1 to"),
        (sent("  requests: [[0, 5, 1e12]]\n"), "answers of `requests`: found 1000000000000"),
        (
            sent("  users: {requests_each: -1, shortest: 1}\n"),
            "not TP, users, prompt, output and 4",
        ),
        (format!("{}  even_s: 0\n{}", &SLOW[..stages], &SLOW[warmup..]), "`even_s`: found 0"),
        (SLOW.replace("name: a,", "name: a, budget_per_prompt: 0,"), "`budget_per_prompt` is"),
        (sent("  requests: [[5, 9, 9], [1, 9, 9]]\n"), "sort them by their times"),
        (SLOW.replace("[0.01, 1000]", "[1e6, 1e6]"), "requests; legal: up to 1e8"),
        (SLOW.replace("arms:", "seeds: 3000\narms:"), "found 3000; legal: 1 to 1000"),
    ] {
        let found = refused(bad);
        assert!(found.contains(words), "{found}");
    }
}

#[test]
fn users_wait_for_answers_and_points_say_in_which_half_they_are() {
    let from = SLOW.find("workload:").expect("there");
    let closed = "workload: {users: {requests_each: 50, shortest: 1}}
columns: [output_tokens_per_s, ttft_mean_s, itl_mean_ms, e2e_mean_s]
arms:
  - {name: a, set: {}, points: [[1, 2, 48, 3, 100, 0.01, 10, 0.03], [1, 4, 48, 3, 100, 0.01, 10, 0.03]]}
";
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("closed.yaml");
    let text = format!("{}{closed}", &SLOW[..from]).replace("instances: 2", "instances: 1");
    fs::write(&path, text).expect("it can be written");
    let arms = read(&path).expect("legal").replay().expect("it runs");
    let (two, four) = arms[0].points.split_at(4);
    assert_eq!(two[0].at, "TP 1, 2 users, 48 + 3");
    for (points, users) in [(two, 2.0), (four, 4.0)] {
        // Three tokens of each user in three steps of 10 ms.
        let rate = points[0].predicted / (users * 100.0);
        assert!((rate - 1.0).abs() < 0.05, "{:?}", points[0]);
        assert!((points[2].predicted - 10.0).abs() < 0.1, "{:?}", points[2]);
        assert!((points[3].predicted - 0.03).abs() < 2e-3, "{:?}", points[3]);
        assert!(points.iter().all(|point| point.training == points[0].training), "one half");
    }
    let half = read(&path).expect("legal").sampled(2).replay().expect("it runs");
    assert_eq!(half[0].points.len(), 4, "the first of two points");
}

#[test]
fn times_per_token_of_dense_models_on_hopper_are_within_the_error_of_the_board() {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../data/public/silicon-dense.yaml");
    let arms = read(&file).expect("legal").sampled(11).replay().expect("it runs");
    let hopper = arms.iter().filter(|arm| arm.kind[0].starts_with('H'));
    let points = hopper.flat_map(|arm| &arm.points).filter(|it| it.column == Column::ItlMeanMs);
    let errors: Vec<f64> = points.map(|point| point.error().abs()).collect();
    let mean = errors.iter().sum::<f64>() / f64::from(u32::try_from(errors.len()).expect("few"));
    assert!(errors.len() >= 8 && mean < 0.1, "{mean}: {errors:?}");
}

#[test]
fn the_table_of_errors_that_runs_show_is_that_of_the_page() {
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/validation/public-tables.md");
    let page = fs::read_to_string(page).expect("part of the project");
    let rows = blis_scenario::board::rows();
    for (name, known) in &rows {
        let row = page.lines().find(|line| line.starts_with(&format!("| {name}, operators |")));
        let cells: Vec<&str> = row.expect(name).split('|').map(str::trim).collect();
        let percent = |at: usize| -> f64 {
            cells[at].trim_end_matches(" %").parse::<f64>().expect("a number") / 100.0
        };
        let off = [percent(4) - known.tpot, percent(8) - known.ttft];
        assert!(off.iter().all(|off| off.abs() < 0.002), "{name}: {cells:?}, {known:?}");
    }
    assert!(rows.len() >= 8);
}

#[test]
fn malformed_measurements_name_the_file_and_what_is_wrong() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("bad.yaml");
    let cases = [
        ("[0.02, 0.06,", "[0.02, fast,", "`a` has a point with \"fast\""),
        ("[0.02, 0.06,", "[0.02, 0,", "`a` has a point with 0"),
        ("models: dense", "models: dense\nseeds: 0", "seeds: found 0"),
        ("models: dense", "models: [dense]", "models"),
        ("licence: ours\n", "", "licence"),
        ("output_len: 3", "output_len: 0", "output_len"),
        ("columns: [output", "columns: [speed, output", "columns"),
    ];
    for (from, to, said) in cases {
        fs::write(&path, SLOW.replacen(from, to, 1)).expect("it can be written");
        let refused = read(&path).expect_err(to).to_string();
        assert!(refused.contains("bad.yaml") && refused.contains(said), "{to}: {refused}");
    }
}

#[test]
fn what_says_nothing_is_refused_all_at_once() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("odd.yaml");
    let refused = |text: &str| {
        fs::write(&path, text).expect("it can be written");
        read(&path).expect_err("odd").to_string()
    };
    let point = "points: [[0.02, 0.06, 0.02, 0.01, 10], [~, ~, 0.01, ~, ~]]";
    let twins = "  - {name: a, set: 5, budget_per_prompt: 2, points: []}\n";
    let found = refused(&format!("{SLOW}{twins}").replace("warmup: 1", "warmup: 2\n  even_s: 9"));
    for words in [
        "workload: `stages` has no effect beside `even_s`; remove it",
        "workload: `warmup` has no effect beside `even_s`; remove it",
        "arms[1].name: there are two arms `a`; rename one",
        "arms[1].set: `a` has `set: 5`; legal: fields",
        "arms[1].points: `a` has no points; add one",
        "`budget_per_prompt` has no effect without `users`",
    ] {
        assert!(found.contains(words), "{words} is not in {found}");
    }
    let shared = SLOW.find("  shared_prefix").expect("there");
    let columns = SLOW.find("columns").expect("there");
    let load = |load: &str| format!("{}{load}\n{}", &SLOW[..shared], &SLOW[columns..]);
    for (bad, words) in [
        (SLOW.replace("[output_tokens_per_s, ttft_mean_s, ttft_p90_s, itl_mean_ms]", "[]"), "name"),
        (SLOW.replace("ttft_p90_s", "ttft_mean_s"), "columns[2]: TTFT mean, s is there twice"),
        (SLOW.replace("warmup: 1", "warmup: 2"), "found 2; legal: fewer than the 2 `stages`"),
        (SLOW.replace("  warmup: 1", "  requests: [[0, 5, 5]]"), "`requests` has no effect beside"),
        (SLOW.replace("  stages: [[0.01, 1000], [0.02, 2000]]\n  warmup: 1\n", ""), "add `stages`"),
        (load("  most: 4"), "nothing is sent; write one of `measured`, `users`, `shared_prefix`"),
        (SLOW.replace(point, "points: []"), "`a` has no points"),
    ] {
        let found = refused(&bad);
        assert!(found.contains(words), "{words} is not in {found}");
    }
}

#[test]
fn answers_of_one_token_have_no_time_between_tokens() {
    let shared = SLOW.find("  shared_prefix").expect("there");
    let columns = SLOW.find("columns").expect("there");
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("one.yaml");
    let replayed = |requests: &str| {
        let text = format!("{}  requests: {requests}\n{}", &SLOW[..shared], &SLOW[columns..]);
        let text =
            text.replace("[0.02, 0.06, 0.02, 0.01, 10], [~, ~, 0.01, ~, ~]", "[~, ~, ~, ~, 10]");
        fs::write(&path, text).expect("it can be written");
        read(&path).expect("legal").replay()
    };
    let arms = replayed("[[0, 16, 1], [1, 16, 3], [2, 16, 1]]").expect("it runs");
    let itl = &arms[0].points[0];
    assert!((itl.predicted - 10.0).abs() < 1e-9, "{itl:?}");
    let none = replayed("[[0, 16, 1]]").expect_err("no time").to_string();
    assert!(none.contains("no answer has two tokens; write ~ for its ITL mean, ms"), "{none}");
}

#[test]
fn a_stage_without_answers_is_an_error() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("none.yaml");
    fs::write(&path, SLOW.replace("[0.02, 2000]", "[0.02, 1e-9]")).expect("it can be written");
    let refused = read(&path).expect("legal").replay().expect_err("nobody").to_string();
    assert!(refused.contains("no request was answered"), "{refused}");
}
