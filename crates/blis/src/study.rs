//! `blis study`: runs a study file, shows its cells side by side and gives verdicts.

mod charts;
mod grids;
mod json;
mod verdicts;

use crate::args::TextFormat;
use crate::args::lab::StudyArgs;
use crate::failure::{self, Failure};
use crate::interrupt;
use crate::output::{self, Output};
use crate::progress::{Bar, Trials};
use crate::report::grid::{Grid, folded};
use crate::report::json::text;
use crate::report::table::bold;
use crate::target::Target;
use blis_lab::study::{self, Findings, Study};
use blis_lab::verdict::Outcome;
use blis_lab::{Metric, Runner};
use std::io::Write;
use std::path::Path;

pub(crate) use grids::{entry, heading};

/// Runs the study that `args` name and prints what it found. With `--check`, a refuted hypothesis
/// is a failed check.
pub(crate) fn study(args: &StudyArgs) -> Result<u8, Failure> {
    let study = study::read(&args.study)?;
    let drawn = drawn(args, &study)?;
    let csv = open("--csv", args.csv.as_deref(), &args.study)?;
    let plot = open("--plot", args.plot.as_deref(), &args.study)?;
    let page = open("--markdown", args.markdown.as_deref(), &args.study)?;
    if !args.quiet {
        tell_notes(&study);
    }
    interrupt::listen();
    let bar = if args.quiet { Bar::Hidden } else { Bar::OnTerminals };
    let watch = Trials::new(study.trials() as u64, bar);
    let runner = Runner { jobs: args.jobs.into(), audit: args.audit };
    let findings = study.run(&runner, || watch.watch())?;
    drop(watch);
    write(csv, || charts::rows(&study, &findings))?;
    write(plot, || charts::chart(&study, &findings, &drawn).svg())?;
    write(page, || markdown(&study, &findings))?;
    output::print(&match args.format {
        TextFormat::Table => report(&study, &findings),
        TextFormat::Json => text(&json::object(&study, &findings)),
    })?;
    let refuted = findings.verdicts.iter().any(|verdict| verdict.outcome == Outcome::Refuted);
    Ok(if args.check && refuted { failure::CHECK_FAILED } else { failure::DONE })
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
            format!(
                "; requests of the first {} s are not counted",
                blis_lab::verdict::number(seconds)
            )
        }
        _ => String::new(),
    };
    let means = "means ± half of a 95 % interval";
    folded(&format!("{cells} cells, {seeds} seeds each{most}; {means}{warmup}"), 0, 0) + "\n"
}
