//! Studies that are killed, shared and cut into parts find the same as those that are not.

use crate::{Bench, Ran};
use blis_lab::Ledger;
use std::collections::BTreeSet;
use std::io::Write;
use std::process::{Child, Command, Stdio};

const STUDY: &str = "
question: does the second instance matter?
base:
  engine: {total_kv_blocks: 400}
  routing: {policy: weighted, scorers: 'pa:1,qd:1'}
  workload: {preset: mixed-slo-multi-turn, num_requests: 100}
seeds: 4
arms:
  - {name: one}
  - {name: two, set: {cluster: {instances: 2}}}
  - {name: tier, set: {cluster: {instances: 2}, kv_tier: {cpu_blocks: 500}}}
metrics: [ttft_p99, critical.ttft_p99, hit_rate]
";
const TRIALS: usize = 12;

fn bench() -> Bench {
    let bench = Bench::new();
    bench.write("s.yaml", STUDY);
    bench
}

/// The findings without any ledger.
fn plain(bench: &Bench) -> String {
    let ran = bench.blis("study s.yaml --no-ledger --format json");
    assert_eq!(ran.code, Some(0), "{}", ran.err);
    assert_eq!(bench.files(), ["s.yaml"], "nothing was written");
    ran.out
}

fn ledger(bench: &Bench, name: &str) -> Ledger {
    Ledger::open_existing(&bench.path().join(name)).expect("there is a ledger")
}

/// The key and the row of every finished trial.
fn rows(bench: &Bench, name: &str) -> BTreeSet<(String, String)> {
    let entries = ledger(bench, name).entries(u64::MAX).expect("it reads");
    entries.into_iter().map(|entry| (entry.key, entry.row.text())).collect()
}

/// How often a trial was begun, for each trial; each must have been finished exactly once.
fn begun(bench: &Bench, name: &str) -> Vec<u64> {
    let attempts = ledger(bench, name).attempts().expect("it reads");
    let once = |(key, begun, finished): (String, u64, u64)| {
        assert_eq!(finished, 1, "{key}");
        begun
    };
    attempts.into_iter().map(once).collect()
}

pub(super) fn start(bench: &Bench, args: &str) -> Child {
    let mut command = bench.command(args);
    command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("it starts")
}

/// Looks at `child` at most `looks` times, and says how often until it had ended.
pub(super) fn watch(child: &mut Child, looks: u64) -> u64 {
    (0..looks)
        .find(|_| {
            std::thread::yield_now();
            child.try_wait().expect("a child").is_some()
        })
        .unwrap_or(looks)
}

/// Runs the command that `args` makes of the name of a ledger, and kills it at random moments:
/// again and again until it ends, then with a new ledger, until `kills` kills have hit. `cut` is
/// told the ledger after each kill, and `ended` what the command printed when it was left to end.
pub(super) fn killed(
    bench: &Bench,
    kills: usize,
    args: impl Fn(&str) -> String,
    mut cut: impl FnMut(&str),
    mut ended: impl FnMut(&Ran, &str),
) {
    let mut whole = start(bench, &args("whole.db"));
    let length = watch(&mut whole, u64::MAX);
    ended(&Ran::from(whole.wait_with_output().expect("ends")), "whole.db");
    let (mut hit, mut dice) = (0, 17_u64);
    for round in 0.. {
        let name = format!("round{round}.db");
        loop {
            dice = dice.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963);
            let mut child = start(bench, &args(&name));
            watch(&mut child, if hit < kills { (dice >> 33) % length } else { u64::MAX });
            child.kill().expect("it can be killed, dead or alive");
            let ran = Ran::from(child.wait_with_output().expect("ends"));
            if ran.code.is_some() {
                ended(&ran, &name);
                break;
            }
            assert_eq!(ran.err, "", "killed, and nothing else");
            hit += 1;
            cut(&name);
        }
        if hit >= kills {
            break;
        }
    }
}

#[test]
fn sixty_kills_at_any_moment_change_nothing() {
    let bench = bench();
    let expected = plain(&bench);
    let (mut cut_short, mut left_over) = (0, BTreeSet::new());
    let args = |name: &str| format!("study s.yaml --quiet --format json --ledger {name} --jobs 1");
    let cut = |name: &str| {
        let path = bench.path().join(name);
        let found = Ledger::open_existing(&path).and_then(|ledger| ledger.attempts());
        let attempts = found.unwrap_or_default();
        let finished = attempts.iter().filter(|(.., finished)| *finished == 1).count();
        cut_short += attempts.len() - finished;
        left_over.insert(finished);
    };
    killed(&bench, 60, args, cut, |ran, name| {
        assert_eq!((ran.code, ran.out.as_str()), (Some(0), expected.as_str()), "{name}");
        assert_eq!(rows(&bench, name), rows(&bench, "whole.db"), "{name}");
        assert_eq!(begun(&bench, name).len(), TRIALS);
    });
    assert!(cut_short > 0, "some kills hit runs");
    assert!(left_over.len() > 3, "kills came early and late: {left_over:?}");
}

#[test]
fn kills_of_a_shard_change_neither_its_rows_nor_the_merged_study() {
    let bench = bench();
    let expected = plain(&bench);
    let other = bench.blis("study s.yaml --quiet --ledger other.db --shard 1/2");
    assert_eq!(other.code, Some(0), "{}", other.err);
    let args = |name: &str| format!("study s.yaml --quiet --ledger {name} --shard 0/2 --jobs 2");
    let mut part = None;
    killed(
        &bench,
        40,
        args,
        |_| {},
        |ran, name| {
            assert_eq!(ran.code, Some(0), "{}", ran.err);
            assert_eq!(&rows(&bench, name), part.get_or_insert_with(|| rows(&bench, name)));
            let merged = bench.blis(&format!("ledger merge other.db --ledger {name}"));
            assert_eq!(merged.code, Some(0), "{}", merged.err);
            let ran = bench.blis(&format!("study s.yaml --quiet --format json --ledger {name}"));
            assert_eq!(
                (ran.out.as_str(), begun(&bench, name).len()),
                (expected.as_str(), TRIALS / 2)
            );
        },
    );
}

/// One of two processes that share a ledger is killed; the other goes on with its part.
#[test]
fn a_peer_that_is_killed_blocks_nobody() {
    let bench = bench();
    let expected = plain(&bench);
    let args = |name: &str| format!("study s.yaml --quiet --format json --ledger {name} --jobs 1");
    let mut dice = 3_u64;
    for round in 0..20 {
        let name = format!("shared{round}.db");
        let (mut first, second) = (start(&bench, &args(&name)), start(&bench, &args(&name)));
        dice = dice.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963);
        watch(&mut first, (dice >> 33) % 4_000);
        first.kill().expect("it can be killed, dead or alive");
        first.wait().expect("ends");
        let ran = Ran::from(second.wait_with_output().expect("ends"));
        assert_eq!((ran.code, ran.out.as_str()), (Some(0), expected.as_str()), "{}", ran.err);
        assert_eq!(rows(&bench, &name).len(), TRIALS);
    }
}

#[test]
fn processes_that_share_a_ledger_share_the_work() {
    let bench = bench();
    let expected = plain(&bench);
    for round in 0..5 {
        let args = format!("study s.yaml --format json --ledger dir/{round}.db --jobs 2");
        let children: Vec<Child> = (0..3).map(|_| start(&bench, &args)).collect();
        for child in children {
            let ran = Ran::from(child.wait_with_output().expect("ends"));
            assert_eq!((ran.out, ran.err), (expected.clone(), String::new()));
        }
        assert_eq!(begun(&bench, &format!("dir/{round}.db")), [1; TRIALS]);
    }
}

#[test]
fn merged_parts_are_the_whole() {
    let bench = bench();
    let expected = plain(&bench);
    for part in 0..4 {
        let ran = bench.blis(&format!("study s.yaml --ledger p{part}.db --shard {part}/4"));
        let (head, rest) = ran.out.split_once('\n').expect("two lines");
        let finished =
            format!("shard {part} of 4: 3 of 12 runs are finished and kept in p{part}.db");
        assert_eq!(head, finished);
        assert!(rest.contains("`blis ledger merge`"), "{rest}");
    }
    let merged = bench.blis("ledger merge p0.db p1.db p2.db p3.db --ledger all.db");
    assert!(merged.out.ends_with("p3.db: 3 new trials, 0 already there\nall.db: 12 trials\n"));
    let ran = bench.blis("study s.yaml --format json --ledger all.db");
    assert_eq!(ran.out, expected);
    assert_eq!(begun(&bench, "all.db").len(), 0, "nothing was left to run");
    bench.blis("study s.yaml --ledger one.db");
    assert_eq!(rows(&bench, "all.db"), rows(&bench, "one.db"));
    let page = |name: &str| bench.blis(&format!("ledger export --ledger {name}")).out;
    assert_eq!(page("all.db"), page("one.db"));

    let mut slurm = bench.command("study s.yaml --ledger slurm.db --shard auto --quiet");
    slurm.env("SLURM_ARRAY_TASK_ID", "3").env("SLURM_ARRAY_TASK_COUNT", "4");
    let ran = Ran::from(slurm.output().expect("it runs"));
    assert!(ran.out.starts_with("shard 3 of 4: 3 of 12"), "{}", ran.err);
    assert_eq!(rows(&bench, "slurm.db"), rows(&bench, "p3.db"));
}

#[test]
fn what_is_printed_does_not_depend_on_the_ledger_nor_on_jobs() {
    let bench = bench();
    for format in ["table", "json"] {
        let run = |more: &str| {
            let ran = bench.blis(&format!("study s.yaml --format {format} --csv rows.csv {more}"));
            assert_eq!((ran.code, ran.err.as_str()), (Some(0), ""));
            (ran.out, bench.read("rows.csv"))
        };
        let plain = run("--no-ledger --jobs 1");
        assert_eq!(run("--no-ledger --jobs 2"), plain);
        assert_eq!(run(&format!("--ledger {format}.db --jobs 2")), plain, "fresh");
        assert_eq!(run(&format!("--ledger {format}.db")), plain, "resumed");
        assert_eq!(run(&format!("--ledger {format}.db --audit")), plain, "run again");
        assert_eq!(begun(&bench, &format!("{format}.db")), [1; TRIALS]);
    }
    assert_eq!(bench.blis("study s.yaml").code, Some(0));
    assert!(bench.path().join(".blis/ledger.db").exists(), "the default");
}

#[test]
fn an_interrupted_study_goes_on_where_it_stopped() {
    let bench = bench();
    bench.write("s.yaml", STUDY.replace("num_requests: 100", "num_requests: 1000"));
    let mut child = start(&bench, "study s.yaml --format json --jobs 1");
    let path = bench.path().join(".blis/ledger.db");
    let finished =
        || Ledger::open_existing(&path).and_then(|ledger| ledger.counts()).unwrap_or_default().0;
    while finished() == 0 {
        assert!(child.try_wait().expect("a child").is_none(), "it ended by itself");
        std::thread::yield_now();
    }
    let signal = Command::new("kill").args(["-INT", &child.id().to_string()]).status();
    assert!(signal.expect("kill runs").success());
    let ran = Ran::from(child.wait_with_output().expect("ends"));
    let note =
        "error: interrupted: finished runs are kept in .blis/ledger.db; run again to continue\n";
    assert_eq!((ran.code, ran.err.as_str()), (Some(130), note));
    let kept = finished();
    assert!(kept > 0 && kept < TRIALS as u64);
    let resumed = bench.blis("study s.yaml --format json");
    assert_eq!(resumed.out, bench.blis("study s.yaml --format json --no-ledger").out);
}

fn trial(bench: &Bench, document: &str) -> Ran {
    let mut command = bench.command("trial");
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().expect("it starts");
    child.stdin.take().expect("a pipe").write_all(document.as_bytes()).expect("it reads");
    Ran::from(child.wait_with_output().expect("ends"))
}

#[test]
fn a_trial_is_a_function_from_a_document_to_a_row() {
    let bench = bench();
    bench
        .write("t.jsonl", "{\"arrival_us\":0,\"input_tokens\":9,\"output_tokens\":5}\n".repeat(40));
    let traced = STUDY.replace("preset: mixed-slo-multi-turn, num_requests: 100", "trace: t.jsonl");
    bench.write("s.yaml", traced);
    bench.blis("study s.yaml");
    let entries = ledger(&bench, ".blis/ledger.db").entries(u64::MAX).expect("it reads");
    assert_eq!(entries.len(), TRIALS);
    for entry in &entries {
        let document = bench.blis(&format!("ledger show {} --trial", entry.key)).out;
        let ran = trial(&bench, &document);
        assert_eq!((ran.code, ran.err.as_str()), (Some(0), ""));
        assert_eq!(ran.out, entry.row.text() + "\n");
    }
    let document = bench.blis(&format!("ledger show {} --trial", entries[0].key)).out;
    bench.write("t.jsonl", "{\"arrival_us\":0,\"input_tokens\":9,\"output_tokens\":6}\n");
    let ran = trial(&bench, &document);
    assert_eq!(ran.code, Some(2));
    assert!(ran.err.starts_with("error: standard input:1:"), "{}", ran.err);
    assert!(ran.err.contains("scenario_hash: found `"), "{}", ran.err);
    assert_eq!(bench.blis("study s.yaml").code, Some(0));
    let all = ledger(&bench, ".blis/ledger.db").counts().expect("it reads").0;
    assert_eq!(all, 2 * TRIALS as u64, "other content, other trials");
    for (document, message) in [
        ("", "error: standard input: the file is empty"),
        ("{\"seed\": 1}", "error: standard input:1:1: field `scenario` is missing"),
        ("{\"seed\": 1, \"scenario\": {\"clutser\": {}}}", "unknown field `clutser`"),
        ("{\"seed\": -1, \"scenario\": {}}", "seed: found `-1`; legal: a whole number"),
        ("{\"schema\": 2, \"seed\": 1, \"scenario\": {}}", "schema: found `2`; legal: a whole"),
    ] {
        let ran = trial(&bench, document);
        assert_eq!((ran.code, ran.out.as_str()), (Some(2), ""), "{document}");
        assert!(ran.err.contains(message), "{document}: {}", ran.err);
    }
}

#[test]
fn trials_can_be_listed_shown_and_compared() {
    let bench = bench();
    bench.blis("study s.yaml");
    let list = bench.blis("ledger list --last 3").out;
    assert!(list.contains("drained") && list.contains("12 trials, 12 by this code version"));
    let listed = bench.blis("ledger list --format json").out;
    let listed: serde_json::Value = serde_json::from_str(&listed).expect("JSON");
    assert_eq!(listed.as_array().expect("a list").len(), TRIALS);
    let find = |arm: &str| {
        let trials = listed.as_array().expect("a list").iter();
        let mut seeded = trials.filter(|trial| trial["row"]["run"]["seed"] == 42);
        let trial = seeded.find(|trial| trial["levels"][0] == arm).expect("it is there");
        trial["key"].as_str().expect("text").to_owned()
    };
    let (one, two) = (find("one"), find("two"));
    let row = bench.blis(&format!("ledger show {}", &one[..10])).out;
    assert!(row.contains("\"schema\": 1"), "{row}");
    let diff = bench.blis(&format!("ledger diff {one} {two}")).out;
    assert!(diff.contains("cluster.ttft_p99_ms") && diff.contains(" %"), "{diff}");
    assert!(bench.blis(&format!("ledger diff {one} {one}")).out.ends_with("no differences\n"));
    let removed = bench.blis("ledger gc --dry-run").out;
    assert!(removed.starts_with("would remove 0 trials of other code"), "{removed}");
    bench.blis("ledger export --out STRATEGY_LEDGER.md");
    assert!(bench.read("STRATEGY_LEDGER.md").contains("does the second instance matter?"));
}

#[test]
fn ledgers_that_cannot_be_used_end_with_their_own_code() {
    let bench = bench();
    bench
        .write("text.db", "this is no database, whatever its name says; it is long enough for one");
    bench.write("file", "");
    for (args, code, message) in [
        ("study s.yaml --ledger text.db", 2, "text.db: not a ledger; name another"),
        ("study s.yaml --ledger file/x.db", 3, "cannot open or write the ledger: "),
        ("study s.yaml --ledger :memory:", 2, "found `:memory:`; legal: the path of a file, or"),
        ("study s.yaml --ledger /proc/x/y.db", 3, "or run with `--no-ledger`"),
        ("ledger list", 2, ".blis/ledger.db: there is no ledger; run a study first"),
        ("ledger merge text.db --ledger new.db", 2, "text.db: not a ledger"),
        ("study s.yaml --shard 4/4", 2, "--shard: found `4/4`; shard 4 of 4; legal: I/N with"),
        ("study s.yaml --shard 0/4 --no-ledger", 2, "cannot be used with"),
    ] {
        let ran = bench.blis(args);
        assert_eq!((ran.code, ran.out.as_str()), (Some(code), ""), "{args}: {}", ran.err);
        assert!(ran.err.contains(message), "{args}: {}", ran.err);
    }
    assert!(!bench.path().join("new.db").exists(), "nothing was made of it");
    bench.blis("study s.yaml --ledger l.db");
    for (args, message) in [
        ("ledger show x --ledger l.db", "found `x`; legal: the key of a trial"),
        ("ledger show 0123456789 --ledger l.db", "no trial has a key that begins with"),
        ("ledger merge ./l.db --ledger l.db", "FILE: it is also the file of `--ledger`"),
    ] {
        let ran = bench.blis(args);
        assert_eq!(ran.code, Some(2), "{args}");
        assert!(ran.err.contains(message), "{args}: {}", ran.err);
    }
}

#[test]
fn damage_is_named_by_check_refused_by_merge_and_removed_by_gc() {
    let bench = bench();
    let expected = plain(&bench);
    let study = "study s.yaml --format json --ledger l.db";
    assert_eq!(bench.blis("study s.yaml --quiet --ledger whole.db").code, Some(0));
    assert_eq!(bench.blis(study).out, expected);
    let check = || bench.blis("ledger check --ledger l.db");
    assert_eq!(check().out, "l.db: 12 trials, no damage\n");
    // A bit of every row. What the file has besides is left over from before.
    let mut bytes = std::fs::read(bench.path().join("l.db")).expect("it is there");
    let field = b"\"injected_requests\":100";
    let places = bytes.windows(field.len()).enumerate().filter(|(_, window)| *window == field);
    let places: Vec<usize> = places.map(|(at, _)| at).collect();
    for at in places {
        bytes[at + field.len() - 1] ^= 1;
    }
    bench.write("l.db", bytes);
    let keys: BTreeSet<String> = rows(&bench, "whole.db").into_iter().map(|(key, _)| key).collect();
    let found = check();
    let named = |line: &str| line.strip_prefix("l.db: damaged: trials: key ").map(str::to_owned);
    assert_eq!(found.out.lines().filter_map(named).collect::<BTreeSet<_>>(), keys);
    assert_eq!((found.code, found.out.lines().count()), (Some(1), TRIALS), "{}", found.out);
    for args in [study, "ledger list --ledger l.db", "ledger merge l.db --ledger new.db"] {
        let ran = bench.blis(args);
        assert_eq!((ran.code, ran.out.as_str()), (Some(3), ""), "{args}");
        assert!(ran.err.contains("l.db: the ledger is damaged ("), "{args}: {}", ran.err);
        assert!(keys.iter().any(|key| ran.err.contains(key)), "{args}: {}", ran.err);
    }
    let gone = bench.blis("ledger gc --ledger l.db");
    assert!(
        gone.out.starts_with("removed 12 damaged lines, 0 trials of other code"),
        "{}",
        gone.out
    );
    assert_eq!((check().code, bench.blis(study).out), (Some(0), expected));
}

#[test]
fn gc_says_what_to_do_about_a_file_that_it_cannot_mend() {
    let bench = bench();
    bench.blis("study s.yaml --ledger l.db");
    let whole = bench.blis("ledger gc --ledger l.db");
    assert!(whole.out.ends_with("; l.db has 12 trials\n"), "{}", whole.out);
    let mut bytes = std::fs::read(bench.path().join("l.db")).expect("it is there");
    // All but the first page, which says that it is a ledger.
    bytes[4_096..].fill(0xa5);
    bench.write("l.db", bytes);
    for args in ["ledger gc --ledger l.db", "ledger gc --dry-run --ledger l.db"] {
        let ran = bench.blis(args);
        assert_eq!(ran.code, Some(3), "{args}: {}{}", ran.out, ran.err);
        for told in ["error: l.db: the ledger is damaged (", "`blis ledger gc` cannot", "move it"] {
            assert!(ran.err.contains(told), "{args}: {}", ran.err);
        }
    }
}
