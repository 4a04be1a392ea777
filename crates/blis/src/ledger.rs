//! `blis ledger`: what is in it, and what can be done with it.

use crate::args::{
    DiffArgs, ExportArgs, GcArgs, LedgerArgs, LedgerCommand, ListArgs, MergeArgs, ShowArgs,
    TextFormat,
};
use crate::failure::{self, Failure};
use crate::output;
use crate::report::json;
use crate::report::table::{grouped, plain, table};
use crate::sheet::{Fate, Sheet};
use crate::target::Target;
use blis_lab::ledger::{self, Entry, Ledger, Merged, Removed};
use blis_scenario::CODE;
use blis_scenario::json::{Difference, Fields, differences};
use serde_json::Value;
use std::path::Path;

/// Digits of a key or a hash that tables show.
const SHORT: usize = 12;

/// Does what `args` ask for.
pub(crate) fn ledger(args: &LedgerArgs) -> Result<u8, Failure> {
    let path = args.ledger.as_path();
    match &args.command {
        LedgerCommand::List(args) => list(&Ledger::open_existing(path)?, args)?,
        LedgerCommand::Show(args) => show(&Ledger::open_existing(path)?, args)?,
        LedgerCommand::Diff(args) => diff(&Ledger::open_existing(path)?, args)?,
        LedgerCommand::Merge(args) => merge(path, args)?,
        LedgerCommand::Export(args) => return export(&Ledger::open_existing(path)?, args),
        LedgerCommand::Gc(args) => collect(&Ledger::open_existing(path)?, args)?,
    }
    Ok(failure::DONE)
}

fn list(ledger: &Ledger, args: &ListArgs) -> Result<(), Failure> {
    let entries = ledger.entries(args.last)?;
    let (all, current) = ledger.counts()?;
    if args.format == TextFormat::Json {
        let objects: Vec<Value> = entries.iter().map(object).collect();
        return output::print(&json::text(&Value::from(objects)));
    }
    let header = ["trial", "study", "cell", "seed", "scenario", "end", "TTFT p99, ms", "code"];
    let mut rows = table(&header);
    for entry in &entries {
        let (run, cluster) = (&entry.row.run, &entry.row.report.cluster);
        let (study, cell) = entry.study.clone().unwrap_or_default();
        let code = if entry.code == CODE { "this" } else { short(&entry.code) };
        rows.add_row([
            short(&entry.key).to_owned(),
            study,
            cell.join(", "),
            run.seed.to_string(),
            short(&run.scenario_hash).to_owned(),
            run.end.clone(),
            plain(cluster.ttft.p99_ms),
            code.to_owned(),
        ]);
    }
    let (all, shown) = (grouped(all), grouped(entries.len() as u64));
    let (current, path) = (grouped(current), ledger.path().display());
    output::print(&format!(
        "{rows}\n{path}: {all} trials, {current} of them by this code; the last {shown} are shown\n"
    ))
}

fn object(entry: &Entry) -> Value {
    let mut fields = Fields::default();
    fields.text("key", entry.key.clone());
    fields.text("code", entry.code.clone());
    if let Some((study, levels)) = &entry.study {
        fields.text("study", study.clone());
        fields.value("levels", levels.clone());
    }
    fields.value("row", entry.row.numbers().into_value());
    fields.into_value()
}

fn short(text: &str) -> &str {
    text.get(..SHORT).unwrap_or(text)
}

fn show(ledger: &Ledger, args: &ShowArgs) -> Result<(), Failure> {
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
    if args.format == TextFormat::Json {
        return output::print(&json::text(&Value::from(
            found.into_iter().map(difference).collect::<Vec<Value>>(),
        )));
    }
    // Hundreds of points of curves would hide the rest; the JSON has them.
    let found: Vec<Difference> =
        found.into_iter().filter(|one| !one.path.starts_with("curves.")).collect();
    if found.is_empty() {
        return output::print("no number differs\n");
    }
    let mut rows = table(&["number", short(&args.first), short(&args.second), "change"]);
    let text = |value: &Option<Value>| match value {
        None => "-".to_owned(),
        Some(Value::String(text)) => text.clone(),
        Some(value) => value.to_string(),
    };
    for Difference { path, first, second } in &found {
        let number = |value: &Option<Value>| value.as_ref().and_then(Value::as_f64);
        let change = match (number(first), number(second)) {
            (Some(first), Some(second)) if first != 0.0 && path != "run.seed" => {
                format!("{:+.1} %", 100.0 * (second - first) / first)
            }
            _ => String::new(),
        };
        rows.add_row([path.clone(), text(first), text(second), change]);
    }
    output::print(&format!("{rows}\n"))
}

fn difference(difference: Difference) -> Value {
    let mut fields = Fields::default();
    fields.text("path", difference.path);
    fields.value("first", difference.first.unwrap_or_default());
    fields.value("second", difference.second.unwrap_or_default());
    fields.into_value()
}

fn merge(into: &Path, args: &MergeArgs) -> Result<(), Failure> {
    let target = Target::of(into).ok();
    for from in &args.from {
        if target.as_ref().is_some_and(|target| target.is_input(from)) {
            let from = from.display();
            let message = format!("`{from}` is the ledger of `--ledger` itself; name others");
            return Err(Failure::Input(message));
        }
    }
    // All must be readable before anything is taken over.
    let others: Vec<Ledger> =
        args.from.iter().map(|path| Ledger::open_existing(path)).collect::<Result<_, _>>()?;
    let ledger = Ledger::open(into)?;
    let mut lines = Vec::new();
    for other in &others {
        let Merged { new, known } = ledger.merge(other)?;
        let (path, new, known) = (other.path().display(), grouped(new), grouped(known));
        lines.push(format!("{path}: {new} new trials, {known} known\n"));
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
    let sheet = Sheet::open(&args.out, Fate::of(args.verify), &[ledger.path()])?;
    let Some(difference) = sheet.put(&page)? else { return Ok(failure::DONE) };
    output::note(&difference);
    output::note("out of date: the same command without `--verify` writes it anew");
    Ok(failure::CHECK_FAILED)
}

fn collect(ledger: &Ledger, args: &GcArgs) -> Result<(), Failure> {
    let (removed, verb) = if args.dry_run {
        (ledger.garbage()?, "would remove")
    } else {
        (ledger.collect_garbage()?, "removed")
    };
    let Removed { trials, scenarios, studies, runs } = removed;
    let [trials, scenarios, studies, runs] = [trials, scenarios, studies, runs].map(grouped);
    let (left, _) = ledger.counts()?;
    output::print(&format!(
        "{verb} {trials} trials of other code, {scenarios} scenarios, {studies} studies and {runs} \
         records of unfinished runs; {} trials are in {}\n",
        grouped(left),
        ledger.path().display()
    ))
}
