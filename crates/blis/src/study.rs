//! `blis study`: runs a study file, shows its cells side by side and gives verdicts.

mod charts;
mod grids;
mod json;
mod page;
mod verdicts;

use crate::args::TextFormat;
use crate::args::lab::StudyArgs;
use crate::failure::{self, Failure};
use crate::output::{self, Output};
use crate::progress::{Bar, Trials};
use crate::report::grid::{Grid, folded};
use crate::report::json::text;
use crate::report::table::{bold, grouped};
use crate::shard::Shard;
use crate::target::Target;
use crate::trials::Trying;
use blis_lab::hypothesis::Hypothesis;
use blis_lab::ledger::VerdictRecord;
use blis_lab::study::{self, Findings, Study};
use blis_lab::verdict::{Outcome, Verdict};
use blis_lab::{Metric, Plan};
use std::io::Write;
use std::path::Path;

pub(crate) use grids::{entry, heading};

/// Runs the study that `args` name and prints what it found. With `--check`, a refuted hypothesis
/// is a failed check.
pub(crate) fn study(args: &StudyArgs) -> Result<u8, Failure> {
    let study = study::read(&args.study)?;
    let shard = args.shard.as_deref().map(Shard::parse).transpose()?;
    let drawn = drawn(args, &study)?;
    let csv = open("--csv", args.csv.as_deref(), &args.study)?;
    let plot = open("--plot", args.plot.as_deref(), &args.study)?;
    let page = open("--markdown", args.markdown.as_deref(), &args.study)?;
    let html = open("--report", args.report.as_deref(), &args.study)?;
    if !args.quiet {
        tell_notes(&study);
    }
    let bar = if args.quiet { Bar::Hidden } else { Bar::OnTerminals };
    let trying = Trying::new(&args.trials, bar)?;
    if let Some(shard) = shard {
        return part(shard, &name(&args.study), &study, &trying);
    }
    let findings = found(&name(&args.study), &study, &trying)?;
    write(csv, || charts::rows(&study, &findings))?;
    write(plot, || charts::chart(&study, &findings, &drawn).svg())?;
    write(page, || markdown(&study, &findings))?;
    write(html, || page::page(&study, &findings))?;
    output::print(&match args.format {
        TextFormat::Table => report(&study, &findings),
        TextFormat::Json => text(&json::object(&study, &findings)),
    })?;
    let refuted = findings.verdicts.iter().any(|verdict| verdict.outcome == Outcome::Refuted);
    Ok(if args.check && refuted { failure::CHECK_FAILED } else { failure::DONE })
}

/// Runs `study`, which the ledger calls `name`, and keeps what it finds there.
fn found(name: &str, study: &Study, trying: &Trying) -> Result<Findings, Failure> {
    let watch = Trials::new(study.trials() as u64, trying.bar);
    let kept = |failure| trying.kept(failure);
    let warmup = study.settle(&trying.runner(), &watch).map_err(kept)?;
    let plans = study.plans(warmup)?;
    if let Some(ledger) = trying.ledger() {
        // Before they are run, so that what an interrupted study has finished is known as its own.
        ledger.record_study(name, study, &plans, study.seeds)?;
    }
    let findings = study.judge(&plans, warmup, &trying.runner(), &watch).map_err(kept)?;
    if let Some(ledger) = trying.ledger() {
        let key = ledger.record_study(name, study, &plans, findings.seeds())?;
        ledger.record_verdicts(&key, &records(study, &findings))?;
    }
    Ok(findings)
}

/// The verdicts as the ledger keeps them.
fn records(study: &Study, findings: &Findings) -> Vec<VerdictRecord> {
    let record = |(hypothesis, verdict): (&Hypothesis, &Verdict)| VerdictRecord {
        hypothesis: hypothesis.name.clone(),
        prediction: hypothesis.text.clone(),
        mechanism: hypothesis.because.clone(),
        outcome: verdict.outcome.name().to_owned(),
        why: verdict.why.clone(),
        seeds: verdict.seeds as u64,
        level: Some(verdict.level),
        effects: Some(json::effects(verdict).to_string()),
    };
    study.hypotheses.iter().zip(&findings.verdicts).map(record).collect()
}

/// What the ledger calls the study: the name of its file.
fn name(path: &Path) -> String {
    path.file_stem().unwrap_or(path.as_os_str()).to_string_lossy().into_owned()
}

/// Runs a part of the study's trials, with all seeds that it may need: the whole has no findings
/// yet.
fn part(shard: Shard, name: &str, study: &Study, trying: &Trying) -> Result<u8, Failure> {
    let Shard { index, count } = shard;
    let watch = Trials::new((study.cells.len() * study.max_seeds / count) as u64, trying.bar);
    let kept = |failure| trying.kept(failure);
    // Every part needs to know it, and finds the same.
    let warmup = study.settle(&trying.runner(), &watch).map_err(kept)?;
    let plans = study.plans(warmup)?;
    let Some(ledger) = trying.ledger() else {
        return Err(Failure::Input("--shard: there is no ledger to keep the part in".to_owned()));
    };
    ledger.record_study(name, study, &plans, study.max_seeds)?;
    let seeds = Study::first_seeds(study.max_seeds);
    let all: Vec<(&Plan, u64)> =
        plans.iter().flat_map(|plan| seeds.iter().map(move |&seed| (plan, seed))).collect();
    let trials = shard.of(&all);
    trying.runner().rows(&trials, &watch).map_err(kept)?;
    drop(watch);
    output::print(&format!(
        "part {index} of {count}: {} of {} runs are finished and kept in {}\njoin the ledgers of \
         all parts with `blis ledger merge`, then run the study without `--shard`\n",
        grouped(trials.len() as u64),
        grouped(all.len() as u64),
        ledger.path().display()
    ))?;
    Ok(failure::DONE)
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
    Metric::parse(name).map_err(|text| Failure::Input(format!("--plot-metric: {text}")))
}

/// What the user should know, once, whichever cell it is about.
pub(crate) fn tell_notes(study: &Study) {
    let mut told = Vec::new();
    for cell in &study.cells {
        for note in &cell.plan.notes {
            if !told.contains(&note) {
                told.push(note);
            }
        }
    }
    for note in told {
        output::note(&format!("note: {note}"));
    }
}

fn report(study: &Study, findings: &Findings) -> String {
    let mut parts = vec![format!("{}\n{}\n", bold(&study.question), conditions(study, findings))];
    parts.extend(grids::all(study, findings).iter().map(|grid| grid.text() + "\n"));
    parts.push(verdicts::text(study, findings));
    parts.concat().trim_end().to_owned() + "\n"
}

fn markdown(study: &Study, findings: &Findings) -> String {
    let conditions = conditions(study, findings);
    let mut parts = vec![format!("# {}\n\n{conditions}\n", study.question)];
    parts.push(verdicts::markdown(study, findings));
    parts.extend(grids::all(study, findings).iter().map(Grid::markdown));
    let discussion = study.discussion.as_ref();
    parts.extend(discussion.map(|text| format!("## Discussion\n\n{}\n", text.trim())));
    parts.retain(|part| !part.is_empty());
    parts.join("\n")
}

/// How the numbers came about, in a few lines.
fn conditions(study: &Study, findings: &Findings) -> String {
    let (cells, seeds) = (study.cells.len(), findings.seeds());
    let most = match study.max_seeds {
        most if most > seeds => format!(" (of at most {most})"),
        _ => String::new(),
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
    folded(&format!("{cells} cells, {seeds} seeds each{most}; {means}{warmup}"), 0, 0) + "\n"
}
