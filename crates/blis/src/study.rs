//! `blis study`: runs studies, shows their cells side by side and gives verdicts.

mod files;
mod several;

pub(crate) use files::yaml_files;

use crate::args::lab::StudyArgs;
use crate::export;
use crate::failure::{self, Failure};
use crate::output::{self, Output};
use crate::progress::{Standing, Trials};
use crate::shard::Shard;
use crate::show::Pages;
use crate::trials::Trying;
use blis_lab::Metric;
use blis_lab::study::{self, Findings, Outline, Study};
use blis_lab::tune;
use blis_lab::verdict::Outcome;
use blis_report::study as report;
use blis_report::svg::svg;
use blis_report::text::grouped;
use blis_scenario::Plan;
use blis_scenario::problems::Together;
use std::path::Path;

/// Runs the studies that `args` name and prints what they found. With `--check`, a refuted
/// hypothesis is a failed check; with `--verify`, results that are not what would be written.
pub(crate) fn study(args: &StudyArgs) -> Result<u8, Failure> {
    let files = files::named(args)?;
    let several = args.all || args.site.is_some() || args.results.is_some();
    match &files[..] {
        [file] if !several => one(args, file),
        _ if args.baseline.is_some() => {
            Err(Failure::Input("--baseline takes one study; keep one".to_owned()))
        }
        files => several::run(args, files),
    }
}

/// Runs the study in `file` and prints all of it.
fn one(args: &StudyArgs, file: &Path) -> Result<u8, Failure> {
    files::refuse_other(file, study::form(file)?)?;
    let (name, outline) = match &args.baseline {
        None => (name(file), study::read(file)?),
        Some(baseline) => {
            let outline =
                study::read_with_baseline(file, &name(baseline), export::baseline(baseline)?)?;
            (format!("{} against {}", name(file), name(baseline)), outline)
        }
    };
    let shard = args.shard.as_deref().map(Shard::parse).transpose()?;
    let drawn = drawn(args, outline.study())?;
    let csv = Output::open("--csv", args.csv.as_deref());
    let plot = Output::open("--plot", args.plot.as_deref());
    let (csv, plot, pages) = (csv, plot, Pages::open(&args.shown)).together()?;
    let trying = Trying::new(&args.trials)?;
    let watch = Trials::new(outline.study().trials() as u64, args.shown.quiet);
    let study = settled(outline, &trying, &watch, args.shown.quiet)?;
    if let Some(shard) = shard {
        let told = part(shard, &name, &study, &trying, &watch)?;
        drop(watch);
        output::print(&told)?;
        return Ok(failure::DONE);
    }
    let findings = found(&name, &study, &trying, &watch)?;
    drop(watch);
    if let Some(csv) = csv {
        csv.fill(&report::csv(&study, &findings))?;
    }
    match (plot, report::chart(&study, &findings, &drawn)) {
        (Some(plot), Some(chart)) => plot.fill(&svg(&chart))?,
        (Some(_), None) => output::note("note: no samples, so --plot was not written"),
        (None, _) => {}
    }
    let document = report::document(&study, &findings, Some(&file.display().to_string()));
    pages.detailed(args.tables).put(&document)?;
    let refuted = findings.verdicts.iter().any(|verdict| verdict.outcome == Outcome::Refuted);
    Ok(if args.check && refuted { failure::CHECK_FAILED } else { failure::DONE })
}

/// The study in `outline`, with all rates known; notes on its scenarios are told.
pub(crate) fn settled(
    outline: Outline,
    trying: &Trying,
    watch: &Trials,
    quiet: bool,
) -> Result<Study, Failure> {
    let study =
        tune::settle(outline, &trying.runner(watch)).map_err(|failure| trying.kept(failure))?;
    output::notes(quiet, study.cells.iter().flat_map(|cell| &cell.plan.notes));
    Ok(study)
}

/// Runs `study`, which the ledger calls `name`, and keeps what it finds there.
fn found(name: &str, study: &Study, trying: &Trying, watch: &Trials) -> Result<Findings, Failure> {
    watch.compare(Standing::of(study));
    let findings = study.run_recorded(name, &trying.runner(watch));
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
    let lengths = study.lengths(&trying.runner(watch)).map_err(kept)?;
    let plans = study.plans(&lengths);
    let Some(ledger) = trying.ledger() else {
        return Err(Failure::Input("--shard: it needs a ledger".to_owned()));
    };
    study.record(ledger, name, &plans, |_| study.max_seeds)?;
    let seeds = study.first_seeds(study.max_seeds);
    let all: Vec<(&Plan, u64)> =
        plans.iter().flat_map(|plan| seeds.iter().map(move |&seed| (plan, seed))).collect();
    let trials = shard.of(&all);
    trying.runner(watch).rows(&trials).map_err(kept)?;
    Ok(format!(
        "shard {index} of {count}: {} of {} runs are finished and kept in {}\nmerge the ledgers \
         of all shards with `blis ledger merge`, then run the study without `--shard`\n",
        grouped(trials.len() as u64),
        grouped(all.len() as u64),
        ledger.path().display()
    ))
}

/// The number that is drawn.
fn drawn(args: &StudyArgs, study: &Study) -> Result<Metric, Failure> {
    let Some(name) = &args.plot_metric else { return Ok(study.metrics[0]) };
    study.design.metric(name).map_err(|text| Failure::Input(format!("--plot-metric: {text}")))
}
