//! Damaged ledgers: bits that flip, files that are cut, pages that trade places. Whatever becomes
//! of the file, nobody gets a number from it that is not the one that was written.

use super::tests::{folder, plan};
use super::{Ledger, LedgerError, export};
use crate::failure::Failure;
use crate::trial::{Runner, Unwatched};
use blis_core::Dice;
use blis_core::random::Purpose;
use blis_scenario::row::Row;
use blis_scenario::scenario::Plan;
use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

const PAGE: usize = 4_096;
const CASES: u64 = 250;

const STUDY: &str = "
question: does a second instance help?
base: {workload: {distribution: {num_requests: 30, rate: 50}}}
seeds: 6
arms: [{name: one}, {name: two, set: {cluster: {instances: 2}}}]
metrics: [ttft_mean, completed]
hypotheses: [{claim: ttft_mean(two) < ttft_mean(one)}]
";

/// All that can be read from a ledger.
#[derive(Debug, PartialEq)]
struct Content {
    rows: Vec<(String, Row)>,
    page: String,
    saturations: BTreeMap<String, f64>,
}

fn content(path: &Path) -> Result<Content, LedgerError> {
    let ledger = Ledger::open_existing(path)?;
    Ok(Content {
        rows: ledger.entries(u64::MAX)?.into_iter().map(|entry| (entry.key, entry.row)).collect(),
        page: export(&ledger.studies()?),
        saturations: ledger.saturations()?,
    })
}

/// What a run of `trials` with the ledger at `path` gives.
fn rows(path: &Path, trials: &[(&Plan, u64)]) -> Result<Vec<Row>, Failure> {
    let ledger = Ledger::open(path)?;
    Runner::new(1, Some(&ledger), &Unwatched)?.rows(trials)
}

/// Damages `bytes`; the value says how.
fn damage(bytes: &mut Vec<u8>, dice: &mut Dice) -> String {
    let pages = bytes.len() / PAGE;
    match dice.below(4) {
        0 => {
            let flips = 1 + dice.below(3);
            let flipped: Vec<usize> = (0..flips).map(|_| dice.below(bytes.len() * 8)).collect();
            for bit in &flipped {
                bytes[bit / 8] ^= 1 << (bit % 8);
            }
            format!("the bits {flipped:?} are flipped")
        }
        1 => {
            let length = dice.below(bytes.len());
            bytes.truncate(length);
            format!("cut to {length} bytes")
        }
        2 => {
            let (a, b) = (dice.below(pages), dice.below(pages));
            (0..PAGE).for_each(|at| bytes.swap(a * PAGE + at, b * PAGE + at));
            format!("the pages {a} and {b} are swapped")
        }
        _ => {
            let (a, b) = (dice.below(pages), dice.below(pages));
            bytes.copy_within(a * PAGE..(a + 1) * PAGE, b * PAGE);
            format!("page {b} is a copy of page {a}")
        }
    }
}

#[test]
fn damaged_ledgers_give_no_wrong_number() {
    let (folder, plan) = (folder(), plan(20));
    let (whole, path) = (folder.path().join("whole.db"), folder.path().join("l.db"));
    let trials: Vec<(&Plan, u64)> = (0..12).map(|seed| (&plan, seed)).collect();
    let expected = rows(&whole, &trials).expect("it runs");
    let ledger = Ledger::open(&whole).expect("it opens");
    let text = folder.path().join("s.yaml");
    fs::write(&text, STUDY).expect("written");
    let study = crate::study::read(&text).expect("legal");
    let runner = Runner::new(1, Some(&ledger), &Unwatched).expect("readable");
    let study = study.settle(&runner).expect("legal");
    study.run_recorded("s", &runner).expect("it runs");
    let measured = BTreeMap::from([("a".to_owned(), 3.5), ("b".to_owned(), 70.25)]);
    ledger.record_saturations(&measured).expect("it writes");
    drop(ledger);
    let right = content(&whole).expect("nothing is damaged");
    assert!(right.page.contains("ttft_mean(two)"), "{}", right.page);
    let bytes = fs::read(&whole).expect("it is there");
    let (mut refused, mut read) = (0, 0);
    for case in 0..CASES {
        let mut dice = Dice::new(case, Purpose::Arrival, 0);
        let mut damaged = bytes.clone();
        let how = damage(&mut damaged, &mut dice);
        let put = || {
            for name in ["l.db-wal", "l.db-shm"] {
                let _ = fs::remove_file(folder.path().join(name));
            }
            fs::write(&path, &damaged).expect("written");
        };
        put();
        match content(&path) {
            // A file that was cut to nothing is a new one.
            Ok(found) if !damaged.is_empty() => assert_eq!(found, right, "case {case}: {how}"),
            Ok(_) => {}
            Err(_) => refused += 1,
        }
        put();
        match rows(&path, &trials) {
            Ok(found) => assert!(found == expected, "case {case}: {how}"),
            Err(_) => refused += 1,
        }
        read += 2;
    }
    assert!(refused > read / 4 && refused < read, "{refused} of {read}");
}
