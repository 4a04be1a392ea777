//! `blis ledger`: what is in it, and what can be done with it.

use crate::args::{
    DiffArgs, ExportArgs, GcArgs, LedgerArgs, LedgerCommand, ListArgs, MergeArgs, ShowArgs,
};
use crate::failure::{self, Failure};
use crate::output;
use crate::sheet::Sheet;
use crate::show;
use crate::target;
use blis_lab::ledger::{self, Ledger, LedgerError, Merged, Removed};
use blis_report::ledger as report;
use blis_report::text::grouped;
use blis_scenario::json::{self, differences};
use blis_scenario::problems::every;
use serde_json::Value;
use std::path::Path;

/// Does what `args` ask for.
pub(crate) fn ledger(args: &LedgerArgs) -> Result<u8, Failure> {
    let path = args.ledger.as_path();
    target::claim_ledger("--ledger", path)?;
    match &args.command {
        LedgerCommand::List(args) => list(&Ledger::open_existing(path)?, args)?,
        LedgerCommand::Show(args) => row(&Ledger::open_existing(path)?, args)?,
        LedgerCommand::Diff(args) => diff(&Ledger::open_existing(path)?, args)?,
        LedgerCommand::Merge(args) => merge(path, args)?,
        LedgerCommand::Export(args) => return export(&Ledger::open_existing(path)?, args),
        LedgerCommand::Gc(args) => collect(path, args)?,
        LedgerCommand::Check => return check(&Ledger::open_existing(path)?),
    }
    Ok(failure::DONE)
}

fn list(ledger: &Ledger, args: &ListArgs) -> Result<(), Failure> {
    let (entries, counts) = (ledger.entries(args.last)?, ledger.counts()?);
    let path = ledger.path().display().to_string();
    show::print(&report::list(&path, &entries, counts), args.format)
}

fn row(ledger: &Ledger, args: &ShowArgs) -> Result<(), Failure> {
    let entry = ledger.find(&args.key)?;
    if args.trial {
        return output::print(&format!("{}\n", ledger.document(&entry)?));
    }
    output::print(&json::text(&serde_json::to_value(&entry.row).expect("a row is plain JSON")))
}

fn diff(ledger: &Ledger, args: &DiffArgs) -> Result<(), Failure> {
    let read = |key: &str| -> Result<Value, Failure> {
        let row = ledger.find(key)?.row;
        Ok(serde_json::to_value(row).expect("a row is plain JSON"))
    };
    let found = differences(&read(&args.first)?, &read(&args.second)?);
    show::print(&report::difference([&args.first, &args.second], &found), args.format)
}

fn merge(into: &Path, args: &MergeArgs) -> Result<(), Failure> {
    every(args.from.iter().map(|from| target::claim_ledger("FILE", from)))?;
    // All must be readable before anything is taken over.
    let others: Vec<Ledger> =
        args.from.iter().map(|path| Ledger::open_existing(path)).collect::<Result<_, _>>()?;
    let ledger = Ledger::open(into)?;
    let mut lines = Vec::new();
    for other in &others {
        let Merged { new, known } = ledger.merge(other)?;
        let (path, new, known) = (other.path().display(), grouped(new), grouped(known));
        lines.push(format!("{path}: {new} new trials, {known} already there\n"));
    }
    let (all, _) = ledger.counts()?;
    lines.push(format!("{}: {} trials\n", into.display(), grouped(all)));
    output::print(&lines.concat())
}

/// Writes the strategy ledger; with `--verify`, one that differs is a failed check.
fn export(ledger: &Ledger, args: &ExportArgs) -> Result<u8, Failure> {
    let page = ledger::export(&ledger.studies()?);
    if args.out == Path::new("-") {
        if args.verify {
            let message = "--verify: name the file to compare with `--out`";
            return Err(Failure::Input(message.to_owned()));
        }
        output::print(&page)?;
        return Ok(failure::DONE);
    }
    let sheet = Sheet::open("--out", &args.out, args.verify)?;
    let Some(difference) = sheet.put(&page)? else { return Ok(failure::DONE) };
    output::note(&difference);
    output::note("out of date: run the same command without `--verify`");
    Ok(failure::CHECK_FAILED)
}

/// Names all that is damaged, which is a failed check.
fn check(ledger: &Ledger) -> Result<u8, Failure> {
    let (damage, (trials, _)) = (ledger.damage()?, ledger.counts()?);
    let path = ledger.path().display();
    if damage.is_empty() {
        output::print(&format!("{path}: {} trials, no damage\n", grouped(trials)))?;
        return Ok(failure::DONE);
    }
    let line = |line: &String| format!("{path}: damaged: {line}\n");
    output::print(&damage.iter().map(line).collect::<Vec<_>>().concat())?;
    output::note("remove damaged lines with `blis ledger gc`; their trials are run again");
    Ok(failure::CHECK_FAILED)
}

fn collect(path: &Path, args: &GcArgs) -> Result<(), Failure> {
    let sweep = |ledger: &Ledger| {
        if args.dry_run { ledger.garbage() } else { ledger.collect_garbage() }
    };
    let swept = Ledger::open_existing(path)
        .and_then(|ledger| Ok((sweep(&ledger)?, ledger.counts()?)))
        .map_err(LedgerError::of_gc);
    let (removed, (left, _)) = swept?;
    let verb = if args.dry_run { "would remove" } else { "removed" };
    let Removed { trials, scenarios, studies, runs, damaged } = removed;
    let [trials, scenarios, studies, runs] = [trials, scenarios, studies, runs].map(grouped);
    let damaged = if damaged == 0 { String::new() } else { format!("{damaged} damaged lines, ") };
    output::print(&format!(
        "{verb} {damaged}{trials} trials of other code versions, {scenarios} scenarios, {studies} studies \
         and {runs} records of unfinished runs; {} has {} trials\n",
        path.display(),
        grouped(left)
    ))
}
