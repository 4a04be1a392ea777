//! `blis study`: runs a study file, shows its cells side by side and gives verdicts.

mod charts;
mod files;
mod grids;
mod index;
mod markdown;
mod page;
mod several;
mod sheets;
mod verdicts;

use crate::args::TextFormat;
use crate::args::lab::StudyArgs;
use crate::failure::{self, Failure};
use crate::output::{self, Output};
use crate::progress::{Bar, Standing, Trials};
use crate::report::grid::folded;
use crate::report::json::text;
use crate::report::table::{bold, grouped};
use crate::shard::Shard;
use crate::sheet::Fate;
use crate::target::Target;
use crate::trials::Trying;
use blis_lab::Metric;
use blis_lab::study::{self, Findings, Outline, Study, json};
use blis_lab::verdict::Outcome;
use blis_scenario::Plan;
use sheets::{Drawing, Sheets};
use std::io::Write;
use std::path::Path;

pub(crate) use charts::quoted;
pub(crate) use grids::{entry, heading, titled};

/// Runs the studies that `args` name and prints what they found. With `--check`, a refuted
/// hypothesis is a failed check; with `--verify`, a page that is not what would be written.
pub(crate) fn study(args: &StudyArgs) -> Result<u8, Failure> {
    let files = files::named(args)?;
    match &files[..] {
        [file] if !args.all => one(args, file),
        files => several::run(args, files),
    }
}

/// Runs the study in `file` and prints all of it.
fn one(args: &StudyArgs, file: &Path) -> Result<u8, Failure> {
    files::refuse_search(file)?;
    let outline = study::read(file)?;
    let shard = args.shard.as_deref().map(Shard::parse).transpose()?;
    let drawn = drawn(args, outline.study())?;
    let csv = open("--csv", args.csv.as_deref(), file)?;
    let plot = open("--plot", args.plot.as_deref(), file)?;
    let fate = Fate::of(args.verify);
    let at = args.markdown.as_deref().map(|path| sheets::page_path(path, file));
    let drawing = args.plot.as_deref().map_or(Drawing::Beside, Drawing::At);
    let sheets = at.map(|path| Sheets::open(&path, file, drawing, fate)).transpose()?;
    let html = open("--report", args.report.as_deref(), file)?;
    let bar = if args.quiet { Bar::Hidden } else { Bar::OnTerminals };
    let trying = Trying::new(&args.trials)?;
    let watch = Trials::new(outline.study().trials() as u64, bar);
    let study = settled(outline, &trying, &watch)?;
    if !args.quiet {
        tell_notes(&study);
    }
    if let Some(shard) = shard {
        let told = part(shard, &name(file), &study, &trying, &watch)?;
        drop(watch);
        output::print(&told)?;
        return Ok(failure::DONE);
    }
    let findings = found(&name(file), &study, &trying, &watch)?;
    drop(watch);
    write(csv, || charts::rows(&study, &findings))?;
    write(plot, || charts::drawing(&study, &findings, &drawn))?;
    let put = |sheets: Sheets| sheets.put_study(&study, &findings);
    let differences = sheets.map(put).transpose()?.unwrap_or_default();
    write(html, || page::page(&study, &findings))?;
    output::print(&match args.format {
        TextFormat::Table => report(&study, &findings),
        TextFormat::Json => text(&json::object(&study, &findings)),
    })?;
    let refuted = findings.verdicts.iter().any(|verdict| verdict.outcome == Outcome::Refuted);
    Ok(end(args, refuted, &differences))
}

/// How the command ends: with `--check`, one that is refuted is a failure; with `--verify`, a page
/// that differs.
fn end(args: &StudyArgs, refuted: bool, differences: &[String]) -> u8 {
    for difference in differences {
        output::note(difference);
    }
    if !differences.is_empty() {
        output::note("out of date: the same command without `--verify` writes them anew");
    }
    let failed = !differences.is_empty() || (args.check && refuted);
    if failed { failure::CHECK_FAILED } else { failure::DONE }
}

/// The study in `outline`, with all rates known.
pub(crate) fn settled(outline: Outline, trying: &Trying, watch: &Trials) -> Result<Study, Failure> {
    outline.settle(&trying.runner(), watch).map_err(|failure| trying.kept(failure))
}

/// Runs `study`, which the ledger calls `name`, and keeps what it finds there.
fn found(name: &str, study: &Study, trying: &Trying, watch: &Trials) -> Result<Findings, Failure> {
    watch.compare(Standing::of(study));
    let findings = study.run_recorded(name, &trying.runner(), watch);
    findings.map_err(|failure| trying.kept(failure))
}

/// What the ledger calls the study: the name of its file.
fn name(path: &Path) -> String {
    path.file_stem().unwrap_or(path.as_os_str()).to_string_lossy().into_owned()
}

/// Runs a part of the study's trials, with all seeds that it may need: the whole has no findings
/// yet. The value is what to tell the user.
fn part(
    shard: Shard,
    name: &str,
    study: &Study,
    trying: &Trying,
    watch: &Trials,
) -> Result<String, Failure> {
    let Shard { index, count } = shard;
    let kept = |failure| trying.kept(failure);
    // Every part needs to know it, and finds the same.
    let warmup = study.settle(&trying.runner(), watch).map_err(kept)?;
    let plans = study.plans(warmup);
    let Some(ledger) = trying.ledger() else {
        return Err(Failure::Input("--shard: there is no ledger to keep the part in".to_owned()));
    };
    study.record(ledger, name, &plans, study.max_seeds)?;
    let seeds = study.first_seeds(study.max_seeds);
    let all: Vec<(&Plan, u64)> =
        plans.iter().flat_map(|plan| seeds.iter().map(move |&seed| (plan, seed))).collect();
    let trials = shard.of(&all);
    trying.runner().rows(&trials, watch).map_err(kept)?;
    Ok(format!(
        "part {index} of {count}: {} of {} runs are finished and kept in {}\njoin the ledgers of \
         all parts with `blis ledger merge`, then run the study without `--shard`\n",
        grouped(trials.len() as u64),
        grouped(all.len() as u64),
        ledger.path().display()
    ))
}

/// Opens an output before anything runs.
pub(crate) fn open(
    flag: &str,
    path: Option<&Path>,
    input: &Path,
) -> Result<Option<Output>, Failure> {
    let Some(path) = path else { return Ok(None) };
    let target = Target::of(path)?;
    if target.is_input(input) {
        return Err(Failure::Input(format!("{flag}: it is the study itself; name another file")));
    }
    Output::create(&target).map(Some)
}

/// Writes `text` to `output`, if there is one.
pub(crate) fn write(output: Option<Output>, text: impl FnOnce() -> String) -> Result<(), Failure> {
    let Some(mut output) = output else { return Ok(()) };
    output.write_all(text().as_bytes()).map_err(|error| output.failure(&error))?;
    output.finish()
}

/// The number that is drawn.
fn drawn(args: &StudyArgs, study: &Study) -> Result<Metric, Failure> {
    let Some(name) = &args.plot_metric else { return Ok(study.metrics[0]) };
    study.design.metric(name).map_err(|text| Failure::Input(format!("--plot-metric: {text}")))
}

/// What the user should know, once, whichever cell it is about.
fn notes(study: &Study) -> Vec<&str> {
    let mut told: Vec<&str> = Vec::new();
    for note in study.cells.iter().flat_map(|cell| &cell.plan.notes) {
        if !told.contains(&note.as_str()) {
            told.push(note);
        }
    }
    told
}

/// Tells it.
pub(crate) fn tell_notes(study: &Study) {
    for note in notes(study) {
        output::note(&format!("note: {note}"));
    }
}

fn report(study: &Study, findings: &Findings) -> String {
    let mut parts = vec![format!("{}\n{}\n", bold(&study.question), conditions(study, findings))];
    parts.extend(grids::all(study, findings).iter().map(|grid| grid.text() + "\n"));
    parts.push(verdicts::text(study, findings));
    parts.concat().trim_end().to_owned() + "\n"
}

/// How the numbers came about, in a few lines.
fn conditions(study: &Study, findings: &Findings) -> String {
    let (cells, seeds) = (study.cells.len(), findings.seeds());
    let most = match study.max_seeds {
        most if most > seeds => format!(" (of at most {most})"),
        _ => String::new(),
    };
    let from = match study.first_seed {
        Study::FIRST_SEED => String::new(),
        first => format!(" from {first} on"),
    };
    let warmup = match findings.warmup {
        Some(seconds) if seconds > 0.0 => {
            let own = study.cells.iter().any(|cell| cell.own_warmup);
            let where_else = if own { " unless a cell says otherwise" } else { "" };
            let seconds = blis_lab::verdict::number(seconds);
            format!("; requests of the first {seconds} s are not counted{where_else}")
        }
        _ => String::new(),
    };
    let means = "means ± half of a 95 % interval";
    let sent = folded(&sent(study), 0, 0);
    folded(&format!("{cells} cells, {seeds} seeds each{from}{most}; {means}{warmup};"), 0, 0)
        + &format!("\n{sent}\n")
}

/// What was sent to what: each workload, cluster and model once, in the order of the cells.
pub(crate) fn sent(study: &Study) -> String {
    let plans = study.cells.iter().map(|cell| &cell.plan);
    let distinct = |names: &mut dyn Iterator<Item = String>| {
        let mut known: Vec<String> = Vec::new();
        for name in names.filter(|name| !name.is_empty()) {
            if !known.contains(&name) {
                known.push(name);
            }
        }
        known.join(", ")
    };
    let workloads = distinct(&mut plans.clone().map(|plan| plan.workload_name.clone()));
    let instances = distinct(&mut plans.clone().map(|plan| plan.instances.to_string()));
    let models = distinct(&mut plans.clone().map(|plan| plan.model.clone()));
    let named = distinct(&mut plans.filter_map(|plan| plan.name.clone()));
    let named = if named.is_empty() { named } else { format!("; scenario {named}") };
    format!("workload {workloads} on {instances} instances of {models}{named}")
}
