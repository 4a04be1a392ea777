//! Ledgers keep what they are given, share it, and say what is wrong with them.

use super::*;
use crate::trial::{self, Key, Runner, Unwatched, Watch};
use blis_scenario::row::Row;
use blis_scenario::scenario::{Draft, Plan};
use blis_scenario::{CODE, Saturations};
use tempfile::TempDir;

pub(super) fn folder() -> TempDir {
    tempfile::tempdir().expect("a temporary folder")
}

pub(super) fn plan(requests: u32) -> Plan {
    let text = format!("workload: {{distribution: {{num_requests: {requests}, rate: 50}}}}");
    Draft::from_text("s.yaml", &text).expect("YAML").plan().expect("legal")
}

fn open(folder: &TempDir) -> Ledger {
    Ledger::open(&folder.path().join("sub/ledger.db")).expect("it opens")
}

/// Runs `plan` with `seed` into `ledger`.
fn run(ledger: &Ledger, plan: &Plan, seed: u64) -> Row {
    let runner = Runner::new(1, Some(ledger), &Unwatched).expect("readable");
    runner.rows(&[(plan, seed)]).expect("it runs").remove(0)
}

#[test]
fn a_finished_trial_is_found_by_its_content() {
    let (folder, plan, other) = (folder(), plan(20), plan(21));
    let row = run(&open(&folder), &plan, u64::MAX);
    let ledger = open(&folder);
    let key = Key::of(&plan, u64::MAX);
    assert_eq!(ledger.claim(&key).expect("it reads"), Claim::Finished(Box::new(row.clone())));
    assert_eq!(ledger.claim(&Key::of(&plan, 1)).expect("it writes"), Claim::Ours);
    assert_eq!(ledger.claim(&Key::of(&other, 1)).expect("writes"), Claim::Ours);
    let entry = ledger.find(&key.text()[..8]).expect("it is there");
    assert_eq!((entry.key.as_str(), entry.code.as_str()), (key.text(), CODE));
    assert_eq!(entry.row, row);
    let document = ledger.document(&entry).expect("it is there");
    let known = Saturations::default();
    let (again, seed) =
        trial::read("t.json", &document, &known, &mut blis_sim::Unobserved).expect("a trial");
    assert_eq!((again.canonical(), seed), (plan.canonical(), u64::MAX));
    assert_eq!(again.document(), plan.document());
}

#[test]
fn a_claim_lasts_as_long_as_its_process() {
    let (folder, key) = (folder(), Key::of(&plan(20), 1));
    let (first, second) = (open(&folder), open(&folder));
    assert_eq!(first.claim(&key).expect("it writes"), Claim::Ours);
    assert_eq!(second.claim(&key).expect("it reads"), Claim::Taken);
    assert_eq!(first.claim(&key).expect("it reads"), Claim::Taken, "by another thread");
    first.release(&key).expect("it writes");
    assert_eq!(second.claim(&key).expect("it writes"), Claim::Ours);
    assert_eq!(first.claim(&key).expect("it reads"), Claim::Taken);
    drop(second);
    assert_eq!(first.claim(&key).expect("it writes"), Claim::Ours);
    let begun = first.attempts().expect("it reads");
    assert_eq!(begun, [(key.text().to_owned(), 3, 0)]);
}

#[test]
fn a_batch_of_rows_is_one_transaction() {
    let (folder, plan) = (folder(), plan(20));
    let ledger = open(&folder);
    let made: Vec<(Key, Row)> = (0..40)
        .map(|seed| {
            let row = trial::row(&plan, seed, false, &mut blis_sim::Unobserved).expect("it runs");
            (Key::of(&plan, seed), row)
        })
        .collect();
    for (key, _) in &made {
        assert_eq!(ledger.claim(key).expect("it writes"), Claim::Ours);
    }
    let batch: Vec<_> = made.iter().map(|(key, row)| (key, &plan, row)).collect();
    let keys: Vec<Key> = made.iter().map(|(key, _)| key.clone()).collect();
    let kept = || ledger.finished(&keys).expect("it reads").iter().flatten().count();
    let tell = |sql: &str| ledger.ask(|database| database.execute_batch(sql)).expect("legal");
    tell(
        "CREATE TEMP TRIGGER stop BEFORE INSERT ON main.trials WHEN NEW.seed = 30 \
         BEGIN SELECT RAISE(ABORT, 'in the middle'); END",
    );
    ledger.record_all(&batch).expect_err("it is stopped in the middle");
    assert_eq!(kept(), 0, "what comes before is not kept either");
    tell("DROP TRIGGER stop");
    ledger.record_all(&batch).expect("it writes");
    assert_eq!(kept(), 40);
    let begun = ledger.attempts().expect("it reads");
    assert_eq!(begun.len(), 40);
    assert!(begun.iter().all(|(_, runs, finished)| (*runs, *finished) == (1, 1)));
    ledger.record_all(&batch).expect("the same rows again are no news");
    let other = (&made[0].0, &plan, &made[1].1);
    let refused = ledger.record_all(&[batch[1], other]).expect_err("a trial has one row");
    assert!(refused.to_string().contains(made[0].0.text()), "{refused}");
}

/// Replaces a file as soon as a trial is finished.
struct Replaces<'a> {
    path: &'a Path,
    text: &'a str,
}

impl Watch for Replaces<'_> {
    fn finished(&self) {
        fs::write(self.path, self.text).expect("written");
    }
}

#[test]
fn a_trace_that_is_replaced_while_a_study_runs_leaves_no_wrong_row() {
    let folder = folder();
    let path = folder.path().join("t.jsonl");
    let line = |at: u32, tokens: u32| {
        format!("{{\"arrival_us\":{at},\"input_tokens\":{tokens},\"output_tokens\":9}}\n")
    };
    let trace = |tokens: u32| (0..50).map(|at| line(at, tokens)).collect::<String>();
    let (right, other) = (trace(100), trace(900));
    fs::write(&path, &right).expect("written");
    let text = format!("workload: {{trace: {}, trace_limit: 20}}", path.display());
    let plan = Draft::from_text("s.yaml", &text).expect("YAML").plan().expect("legal");
    let trials: Vec<(&Plan, u64)> = (0..4).map(|seed| (&plan, seed)).collect();
    let fresh = Runner { jobs: 1, ..Runner::default() }.rows(&trials).expect("it runs");
    let ledger = open(&folder);
    let replaces = Replaces { path: &path, text: &other };
    let runner = Runner::new(1, Some(&ledger), &replaces).expect("readable");
    let failure = runner.rows(&trials);
    let failure = failure.expect_err("it has changed").to_string();
    assert!(failure.contains("t.jsonl:1:1: cannot read: the file has changed since"), "{failure}");
    assert_eq!(ledger.counts().expect("it reads"), (1, 1), "the one before that");
    fs::write(&path, &right).expect("written");
    let runner = Runner { watch: &Unwatched, ..runner };
    assert_eq!(runner.rows(&trials).expect("it is the same again"), fresh);
}

/// A process that is killed leaves its lock file, its line in `owners` and its claims.
#[test]
fn the_claims_of_the_dead_are_taken_over_at_once_and_their_locks_go() {
    let (folder, key, other) = (folder(), Key::of(&plan(20), 1), Key::of(&plan(20), 2));
    let ledger = open(&folder);
    let dead = |lock: &str, key: &Key| {
        let lock = format!("ledger.db-owner-{lock}");
        fs::write(folder.path().join("sub").join(&lock), "").expect("written");
        ledger
            .change(|transaction| {
                transaction.execute("INSERT INTO owners (lock) VALUES (?1)", [lock])?;
                let owner = transaction.last_insert_rowid();
                transaction.execute(
                    "INSERT INTO claims VALUES (?1, ?2)",
                    rusqlite::params![key.text(), owner],
                )
            })
            .expect("it writes");
    };
    dead("7", &key);
    assert_eq!(ledger.claim(&key).expect("it writes"), Claim::Ours);
    dead("8", &other);
    fs::write(folder.path().join("sub/ledger.db-owner-9"), "").expect("written");
    let second = open(&folder);
    let claims = |ledger: &Ledger| {
        ledger.ask(|d| d.query_row("SELECT count(*) FROM claims", [], |row| row.get::<_, u64>(0)))
    };
    assert_eq!(claims(&second).expect("it reads"), 1, "only the one of the living is left");
    assert_eq!(second.claim(&key).expect("it reads"), Claim::Taken);
    drop((ledger, second));
    let left = fs::read_dir(folder.path().join("sub")).expect("a folder");
    let mut left: Vec<_> = left.map(|entry| entry.expect("an entry").file_name()).collect();
    left.sort();
    assert_eq!(left, ["ledger.db", "ledger.db-lock"]);
}

/// Notes how many trials were taken over.
#[derive(Default)]
struct Notes(Mutex<usize>);

impl Watch for Notes {
    fn takes_over(&self, trials: usize) {
        *self.0.lock().expect("no panic") += trials;
    }
}

#[test]
fn a_peer_that_is_stopped_blocks_nobody() {
    let (folder, plan) = (folder(), plan(20));
    let (stopped, ledger) = (open(&folder), open(&folder));
    let trials: Vec<(&Plan, u64)> = (0..3).map(|seed| (&plan, seed)).collect();
    for seed in 0..2 {
        assert_eq!(stopped.claim(&Key::of(&plan, seed)).expect("it writes"), Claim::Ours);
    }
    let notes = Notes::default();
    let runner = Runner::new(2, Some(&ledger), &notes).expect("readable");
    // In three looks nobody shows that it goes on.
    let rows = runner.rows_within(&trials, 3).expect("it does not wait for ever");
    assert_eq!(*notes.0.lock().expect("no panic"), 2, "it was told");
    let fresh = Runner::default().rows(&trials).expect("it runs");
    assert_eq!(rows, fresh);
    // When it goes on, it finds that the work is done.
    stopped.record(&Key::of(&plan, 0), &plan, &fresh[0]).expect("the same row is no news");
    assert_eq!(stopped.counts().expect("it reads"), (3, 3));
}

#[test]
fn a_peer_that_goes_on_keeps_its_claims() {
    let folder = folder();
    let (busy, ledger) = (open(&folder), open(&folder));
    assert_eq!(busy.claim(&Key::of(&plan(20), 1)).expect("it writes"), Claim::Ours);
    let (lock, mut seen) = (folder.path().join("sub/ledger.db-owner-0"), Seen::default());
    for look in 0..20_u8 {
        fs::write(&lock, [look]).expect("written");
        assert_eq!(ledger.take_over(&mut seen, 2).expect("it reads"), 0);
    }
    let looks = (0..5).map(|_| ledger.take_over(&mut seen, 2).expect("it writes"));
    assert_eq!(looks.sum::<usize>(), 1, "then it has stopped");
}

#[test]
fn a_process_stopped_in_the_middle_of_a_write_is_told() {
    let (folder, plan) = (folder(), plan(20));
    let (stopped, ledger) = (open(&folder), open(&folder));
    let short = ledger.ask(|database| database.busy_timeout(Duration::ZERO));
    short.expect("it obeys");
    stopped.ask(|database| database.execute_batch("BEGIN IMMEDIATE")).expect("it begins");
    let told = ledger.claim(&Key::of(&plan, 1)).expect_err("it is locked").to_string();
    let expected = "ledger.db: another process keeps the ledger locked; if it is stopped, let it \
                    go on or end it, then run again";
    assert!(told.ends_with(expected), "{told}");
    stopped.ask(|database| database.execute_batch("COMMIT")).expect("it goes on");
    assert_eq!(ledger.claim(&Key::of(&plan, 1)).expect("it writes"), Claim::Ours);
}

#[test]
fn what_this_process_has_claimed_can_be_given_back_at_once() {
    let (folder, plan) = (folder(), plan(20));
    let ledger = open(&folder);
    ledger.release_all().expect("there is nothing to give back");
    assert_eq!(ledger.claim(&Key::of(&plan, 1)).expect("it writes"), Claim::Ours);
    ledger.release_all().expect("it writes");
    run(&ledger, &plan, 1);
}

#[test]
fn a_full_disk_is_told_and_loses_nothing() {
    let (folder, plan) = (folder(), plan(20));
    let ledger = open(&folder);
    ledger
        .ask(|database| {
            let pages: i64 = database.pragma_query_value(None, "page_count", |row| row.get(0))?;
            database.pragma_update(None, "max_page_count", pages + 20)
        })
        .expect("it obeys");
    let runner = Runner::new(2, Some(&ledger), &Unwatched).expect("readable");
    let trials: Vec<(&Plan, u64)> = (0..100).map(|seed| (&plan, seed)).collect();
    let failure = runner.rows(&trials).expect_err("there is no room").to_string();
    assert!(failure.contains("ledger.db: the disk is full; finished trials are kept"), "{failure}");
    let kept = ledger.entries(u64::MAX).expect("it reads");
    assert!(!kept.is_empty() && kept.len() < 100, "{} are kept", kept.len());
    drop(ledger);
    let ledger = open(&folder);
    let runner = Runner::new(2, Some(&ledger), &Unwatched).expect("readable");
    let rows = runner.rows(&trials).expect("there is room");
    let fresh = Runner { jobs: 2, ..Runner::default() }.rows(&trials).expect("it runs");
    assert_eq!(rows, fresh);
    let finished: u64 =
        ledger.attempts().expect("it reads").iter().map(|(_, _, finished)| finished).sum();
    assert_eq!(finished, 100, "what was kept was not run again");
}

#[test]
fn ledgers_that_cannot_be_used_say_why() {
    let folder = folder();
    let refusal = |path: &Path| Ledger::open(path).expect_err("refused").to_string();
    let path = folder.path().join("a.db");
    drop(Ledger::open(&path).expect("it opens"));
    let database = Connection::open(&path).expect("it opens");
    database.pragma_update(None, "user_version", LAYOUT + 1).expect("it obeys");
    drop(database);
    let newer = refusal(&path);
    assert!(newer.contains("newer version of blis (layout 4, this one knows up to 3)"), "{newer}");

    let path = folder.path().join("b.db");
    Connection::open(&path).and_then(|d| d.execute_batch("CREATE TABLE x (y)")).expect("made");
    assert!(refusal(&path).contains("not a ledger"));
    let path = folder.path().join("c.db");
    fs::write(&path, "question: is this a database?\n".repeat(99)).expect("written");
    assert!(refusal(&path).contains("not a ledger"));

    let path = folder.path().join("d.db");
    let ledger = Ledger::open(&path).expect("it opens");
    let plan = plan(20);
    for seed in 0..20 {
        run(&ledger, &plan, seed);
    }
    drop(ledger);
    let mut bytes = fs::read(&path).expect("it is there");
    bytes[4_096..].fill(0xa5);
    fs::write(&path, bytes).expect("written");
    let damaged = refusal(&path);
    assert!(damaged.contains("the ledger is damaged (") && damaged.contains("`blis ledger gc`"));

    let path = folder.path().join("f.db");
    drop(Ledger::open(&path).expect("it opens"));
    let database = Connection::open(&path).expect("it opens");
    database.pragma_update(None, "user_version", 0).expect("it obeys");
    drop(database);
    assert!(refusal(&path).contains("damaged (its version is 0, which blis never writes)"));

    let nowhere = refusal(Path::new("/proc/nowhere/ledger.db"));
    assert!(
        nowhere.contains("cannot open or write the ledger: ") && nowhere.contains("`--no-ledger`")
    );
    for name in [":memory:", ""] {
        let refused = Ledger::open(Path::new(name)).expect_err("no file").to_string();
        assert!(refused.starts_with(&format!("found `{name}`; legal: the path of a file")));
    }
    let missing = Ledger::open_existing(&folder.path().join("e.db")).expect_err("none").to_string();
    assert!(missing.contains("there is no ledger; run a study first"), "{missing}");
}

#[test]
fn a_ledger_that_nobody_can_write_can_be_read() {
    let (folder, plan) = (folder(), plan(20));
    let path = folder.path().join("odd?#%25.db");
    let row = run(&Ledger::open(&path).expect("it opens"), &plan, 1);
    let ledger = Ledger::with(&path, connect_frozen(&path).expect("it opens"));
    let key = Key::of(&plan, 1);
    assert_eq!(ledger.find(key.text()).expect("it is there").row, row);
    assert!(ledger.release(&key).is_err(), "it cannot be written");
    fs::write(beside(&path, "-wal"), "x").expect("written");
    let refusal = connect_frozen(&path).expect_err("a part is missing").to_string();
    assert!(refusal.contains("`-wal` file"), "{refusal}");
}

#[test]
fn threads_and_ledgers_share_trials_without_running_one_twice() {
    let (folder, plan) = (folder(), plan(20));
    let trials: Vec<(&Plan, u64)> = (0..60).map(|seed| (&plan, seed % 40)).collect();
    let fresh = Runner { jobs: 1, ..Runner::default() }.rows(&trials).expect("it runs");
    let found = Mutex::new(Vec::new());
    std::thread::scope(|scope| {
        for jobs in [1, 2, 3] {
            let (folder, trials, found) = (&folder, &trials, &found);
            scope.spawn(move || {
                let ledger = open(folder);
                let runner = Runner::new(jobs, Some(&ledger), &Unwatched).expect("readable");
                let rows = runner.rows(trials).expect("it runs");
                found.lock().expect("no panic").push(rows);
            });
        }
    });
    for rows in found.into_inner().expect("no panic") {
        assert_eq!(rows, fresh);
    }
    let attempts = open(&folder).attempts().expect("it reads");
    assert_eq!(attempts.len(), 40);
    assert!(attempts.iter().all(|&(_, begun, finished)| (begun, finished) == (1, 1)));
}

/// Takes the rows as they are for what was written.
fn vouch(ledger: &Ledger) {
    let columns = sums::columns("trials").join(", ");
    let sql = format!("UPDATE trials SET sum = checksum({columns})");
    ledger.change(|transaction| transaction.execute(&sql, [])).expect("it writes");
}

#[test]
fn a_ledger_without_checksums_gets_them() {
    let (folder, plan) = (folder(), plan(20));
    let ledger = open(&folder);
    let row = run(&ledger, &plan, 1);
    for (table, _) in sums::TABLES {
        let back = format!("ALTER TABLE {table} DROP COLUMN sum; PRAGMA user_version = 2");
        ledger.ask(|database| database.execute_batch(&back)).expect("as it was");
    }
    drop(ledger);
    let ledger = Ledger::open_existing(&folder.path().join("sub/ledger.db")).expect("it migrates");
    assert_eq!(ledger.entries(9).expect("it reads")[0].row, row);
    assert_eq!(ledger.damage().expect("it reads"), Vec::<String>::new());
}

#[test]
fn damaged_lines_are_named_and_garbage() {
    let (folder, plan) = (folder(), plan(20));
    let ledger = open(&folder);
    let rows: Vec<Row> = (0..3).map(|seed| run(&ledger, &plan, seed)).collect();
    let tamper = "UPDATE trials SET row = CAST(x'ff' || row AS TEXT) WHERE seed = 1";
    ledger.change(|transaction| transaction.execute(tamper, [])).expect("it writes");
    let (key, named) = (Key::of(&plan, 1), |text: &str| text.contains(Key::of(&plan, 1).text()));
    assert_eq!(ledger.damage().expect("it reads"), [format!("trials: key {}", key.text())]);
    assert!(named(&ledger.find(key.text()).expect_err("it is not UTF-8").to_string()));
    assert!(named(&ledger.entries(1).expect_err("a line is damaged").to_string()));
    let runner = Runner::new(1, Some(&ledger), &Unwatched).expect("readable");
    let trials: Vec<(&Plan, u64)> = (0..3).map(|seed| (&plan, seed)).collect();
    assert!(named(&runner.rows(&trials).expect_err("damaged").to_string()));
    assert_eq!(ledger.collect_garbage().expect("it writes").damaged, 1);
    assert_eq!(runner.rows(&trials).expect("it is run again"), rows);
}

#[test]
fn an_audit_runs_again_and_compares() {
    let (folder, plan) = (folder(), plan(20));
    let ledger = open(&folder);
    run(&ledger, &plan, 1);
    let runner = Runner::new(1, Some(&ledger), &Unwatched).expect("readable");
    let audit = Runner { audit: true, ..runner };
    audit.rows(&[(&plan, 1)]).expect("it agrees");
    let tamper = "UPDATE trials SET row = replace(row, '\"injected_requests\":20', \
                  '\"injected_requests\":21')";
    ledger.change(|transaction| transaction.execute(tamper, [])).expect("it writes");
    let failure = audit.rows(&[(&plan, 1)]).expect_err("it is damaged").to_string();
    assert!(failure.contains("damaged (the row of trial "), "{failure}");
    vouch(&ledger);
    let failure = audit.rows(&[(&plan, 1)]).expect_err("it differs").to_string();
    assert!(failure.contains("differs from the row of this run in `cluster.injected_requests`"));
}

#[test]
fn ledgers_merge_and_contradictions_are_refused_as_a_whole() {
    let (here, there, plan) = (folder(), folder(), plan(20));
    let (ours, theirs) = (open(&here), open(&there));
    let rows: Vec<Row> = (0..3).map(|seed| run(&ours, &plan, seed)).collect();
    assert_eq!(run(&theirs, &plan, 2), rows[2]);
    let new = run(&theirs, &plan, 3);
    assert_eq!(ours.merge(&theirs).expect("they agree"), Merged { new: 1, known: 1 });
    assert_eq!(ours.claim(&Key::of(&plan, 3)).expect("it reads"), Claim::Finished(Box::new(new)));
    run(&theirs, &plan, 4);
    let tamper = "UPDATE trials SET row = replace(row, '20', '19') WHERE seed = 3";
    theirs.change(|transaction| transaction.execute(tamper, [])).expect("it writes");
    let failure = ours.merge(&theirs).expect_err("a row is damaged").to_string();
    assert!(failure.contains(Key::of(&plan, 3).text()), "{failure}");
    vouch(&theirs);
    let failure = ours.merge(&theirs).expect_err("they differ").to_string();
    assert!(failure.contains("differs from ") && failure.contains("sub/ledger.db"), "{failure}");
    assert_eq!(ours.counts().expect("it reads"), (4, 4), "nothing of it was taken over");
}

#[test]
fn garbage_is_what_other_code_has_left() {
    let (folder, plan, other) = (folder(), plan(20), plan(21));
    let ledger = open(&folder);
    run(&ledger, &plan, 1);
    run(&ledger, &other, 1);
    assert_eq!(ledger.collect_garbage().expect("it writes"), Removed::default());
    let age = "UPDATE trials SET code = 'older' WHERE id = 1";
    ledger.change(|transaction| transaction.execute(age, [])).expect("it writes");
    vouch(&ledger);
    let expected = Removed { trials: 1, scenarios: 1, runs: 1, ..Removed::default() };
    assert_eq!(ledger.garbage().expect("it reads"), expected);
    assert_eq!(ledger.counts().expect("it reads"), (2, 1), "that was only a look");
    assert_eq!(ledger.collect_garbage().expect("it writes"), expected);
    assert_eq!(ledger.counts().expect("it reads"), (1, 1));
}

const STUDY: &str = "
question: does a second instance | help?
base: {workload: {distribution: {num_requests: 30, rate: 50}}}
seeds: 2
arms: [{name: one}, {name: two, set: {cluster: {instances: 2}}}]
metrics: [ttft_mean, completed]
";

#[test]
fn the_exported_page_has_studies_verdicts_and_numbers() {
    let folder = folder();
    let path = folder.path().join("s.yaml");
    fs::write(&path, STUDY).expect("written");
    let study = crate::study::read(&path).expect("legal");
    let study = study.settle(&Runner::default()).expect("legal");
    let ledger = open(&folder);
    let plans = study.plans(&crate::study::Lengths::default());
    let key = study.record(&ledger, "s", &plans, |_| 2).expect("it writes");
    assert!(export(&ledger.studies().expect("it reads")).contains("| 0 of 4 | 0 | 0 | 0 |"));
    let runner = Runner::new(1, Some(&ledger), &Unwatched).expect("readable");
    let findings = study.run(&runner).expect("it runs");
    let verdict = VerdictRecord {
        hypothesis: "h1".to_owned(),
        prediction: "ttft_mean(two) < ttft_mean(one)".to_owned(),
        mechanism: Some("shorter queues".to_owned()),
        outcome: "confirmed".to_owned(),
        why: "the interval lies below 1".to_owned(),
        seeds: 2,
        level: Some(0.05),
        effects: None,
    };
    ledger.record_verdicts(&key, std::slice::from_ref(&verdict)).expect("it writes");
    ledger.record_verdicts(&key, std::slice::from_ref(&verdict)).expect("it writes again");
    assert_eq!(study.record(&ledger, "s", &plans, |_| 2).expect("it writes"), key);
    let studies = ledger.studies().expect("it reads");
    assert_eq!((studies.len(), &studies[0].verdicts[..]), (1, &[verdict][..]));
    let rows = |cell: usize| studies[0].cells[cell].rows.values().flatten().cloned();
    assert_eq!((0..2).map(|cell| rows(cell).collect()).collect::<Vec<Vec<Row>>>(), findings.rows);
    let page = export(&studies);
    for line in [
        "| s | does a second instance \\| help? | 4 | 1 | 0 | 0 |",
        "| h1 (shorter queues) | `ttft_mean(two) < ttft_mean(one)` | **confirmed** | 2 | the \
         interval lies below 1 |",
        "| arm | seeds | ttft_mean, ms | completed |",
    ] {
        assert!(page.contains(line), "{page}\nhas no line\n{line}");
    }
    let mean = findings.mean(1, &study.metrics[0]).expect("there are samples").0;
    assert!(page.contains(&format!("| two | 2 | {mean:.1} (")), "{page}");
}

#[test]
fn the_exported_page_has_each_study_once_and_by_name() {
    let entry = |name: &str, question: &str, code: &str| StudyEntry {
        study: String::new(),
        name: name.to_owned(),
        question: question.to_owned(),
        factors: Vec::new(),
        metrics: Vec::new(),
        code: code.to_owned(),
        version: "0".to_owned(),
        cells: Vec::new(),
        verdicts: Vec::new(),
    };
    let now = CODE;
    let first = [entry("b", "old?", "other"), entry("a", "first?", now), entry("b", "new?", now)];
    let page = export(&first);
    assert!(page.find("## a").expect("a") < page.find("## b").expect("b"), "{page}");
    assert!(page.contains("new?") && !page.contains("old?"), "{page}");
    assert!(!page.contains(now) && !page.contains("Found by another version"), "{page}");
    let [old, first_a, new] = first;
    assert_eq!(export(&[new, first_a, old.clone()]), page, "whatever was run first");
    assert!(export(&[old]).contains("Found by another version"), "rather than nothing");
}

#[test]
fn seeds_that_only_shards_ran_do_not_count() {
    let folder = folder();
    let path = folder.path().join("s.yaml");
    fs::write(&path, STUDY).expect("written");
    let study = crate::study::read(&path).expect("legal");
    let study = study.settle(&Runner::default()).expect("legal");
    let ledger = open(&folder);
    let plans = study.plans(&crate::study::Lengths::default());
    let seeds = |ledger: &Ledger| ledger.studies().expect("it reads")[0].cells[0].rows.len();
    study.record(&ledger, "s", &plans, |_| 5).expect("it writes");
    assert_eq!(seeds(&ledger), 5);
    study.record(&ledger, "s", &plans, |_| 2).expect("it writes");
    assert_eq!(seeds(&ledger), 2);
}

#[test]
fn a_saturation_that_was_measured_once_is_known_to_every_runner_with_that_ledger() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let ledger = Ledger::open(&folder.path().join("l.db")).expect("it opens");
    let text = "latency: {model: constant, step_us: 1000}
engine: {max_num_running_reqs: 1, total_kv_blocks: 1000}
workload: {distribution: {rate: 90%, prompt_tokens: {mean: 16, stdev: 0}, output_tokens: {mean: 10, stdev: 0}}}";
    let checked = Draft::from_text("s.yaml", text).expect("YAML").resolve().expect("legal");
    let runner = Runner::new(1, Some(&ledger), &Unwatched).expect("readable");
    assert!(runner.saturations.all().is_empty());
    let plan = runner.settle(checked.clone()).expect("it can be measured");
    let found = plan.saturation.expect("it was measured");
    let elsewhere = trial::Elsewhere::default();
    let again = Runner::new(1, Some(&ledger), &elsewhere).expect("readable");
    assert_eq!(again.saturations.all().values().copied().collect::<Vec<_>>(), [found]);
    // It is not measured again: the watch would stop that.
    let plan = again.settle(checked).expect("it is known");
    assert_eq!(plan.saturation, Some(found));
}
