//! `blis capacity`: the highest rate, or the fewest instances, at which the SLOs are met.

mod json;
mod page;
mod tables;

use crate::args::{CapacityArgs, TextFormat};
use crate::failure::{self, Failure};
use crate::output;
use crate::progress::{Bar, Trials};
use crate::report::json::text;
use crate::run::draft;
use crate::study::{open, write};
use crate::trials::Trying;
use blis_lab::capacity::{Found, Outline, Question, Search, Slo, Subject, Vary};
use blis_lab::study::Warmup;
use blis_scenario::problem::Place;
use std::path::Path;

/// Searches what `args` ask for and prints what was found. A strategy without a capacity is a
/// failed check.
pub(crate) fn capacity(args: &CapacityArgs) -> Result<u8, Failure> {
    let outline = outline(args)?;
    let html = open("--report", args.report.as_deref(), input(args))?;
    let bar = if args.quiet { Bar::Hidden } else { Bar::OnTerminals };
    let trying = Trying::new(&args.trials)?;
    let watch = Trials::new(outline.search.trials() as u64, bar);
    let settled = outline.settle(&trying.runner(), &watch);
    let search = settled.map_err(|failure| trying.kept(failure))?;
    if !args.quiet {
        notes(&search);
    }
    let found = search.run(&trying.runner(), &watch);
    let findings = found.map_err(|failure| trying.kept(failure))?;
    drop(watch);
    write(html, || page::page(&search, &findings))?;
    output::print(&match args.format {
        TextFormat::Table => tables::report(&search, &findings),
        TextFormat::Json => text(&json::object(&search, &findings)),
    })?;
    let all = findings.answers.iter().all(|answer| answer.found == Found::Capacity);
    Ok(if all { failure::DONE } else { failure::CHECK_FAILED })
}

fn input(args: &CapacityArgs) -> &Path {
    args.scenario.as_deref().unwrap_or(Path::new(""))
}

/// What the user should know, once, whichever strategy it is about.
fn notes(search: &Search) {
    let mut told: Vec<&String> = Vec::new();
    for note in search.subjects.iter().flat_map(|subject| &subject.plan.notes) {
        if !told.contains(&note) {
            output::note(&format!("note: {note}"));
            told.push(note);
        }
    }
}

fn outline(args: &CapacityArgs) -> Result<Outline, Failure> {
    args.flags.check()?;
    let vary = Vary::from(args.vary);
    let stem = args.scenario.as_ref().and_then(|path| path.file_stem());
    let name = stem.map_or_else(|| "flags".to_owned(), |stem| stem.to_string_lossy().into_owned());
    let (mut subjects, mut all): (Vec<Subject>, Vec<_>) = (Vec::new(), Vec::new());
    for (strategy, flags) in args.flags.by_strategy() {
        let draft = draft(args.scenario.as_deref(), None, &flags)?;
        let own = strategy.unwrap_or_else(|| "as it is".to_owned());
        if subjects.iter().any(|other| other.name == own) {
            let message = format!("--strategy: found `{own}` for the second time; keep one");
            return Err(Failure::Input(message));
        }
        let checked = draft.resolve()?;
        subjects.push(Subject::new(&own, draft, checked.plan(), vary)?);
        all.push(checked);
    }
    let mut slo = Vec::new();
    for text in &args.slo {
        slo.extend(Slo::read(text, Place::Flag("--slo".into()), "")?);
    }
    if slo.is_empty() {
        slo = Slo::usual(&subjects[0].plan)?;
    }
    if args.max_seeds < args.seeds {
        let message = format!(
            "--max-seeds: found `{}`; legal: no fewer than --seeds, which is {}",
            args.max_seeds, args.seeds
        );
        return Err(Failure::Input(message));
    }
    let question = Question {
        seeds: args.seeds.into(),
        max_seeds: args.max_seeds.into(),
        precision: precision(&args.precision)?,
        warmup: warmup(&args.warmup)?,
        most_requests: args.max_requests,
        ..Question::new(slo, vary)
    };
    Ok(Outline { search: Search { name, question, subjects }, checked: all })
}

fn precision(text: &str) -> Result<f64, Failure> {
    let number = text.strip_suffix('%').map(|number| number.trim().parse::<f64>());
    let share = number.and_then(Result::ok).map(|percent| percent / 100.0);
    share.filter(|share| (0.002..=0.5).contains(share)).ok_or_else(|| {
        let message = format!("--precision: found `{text}`; legal: from 0.2% to 50%, e.g. `2%`");
        Failure::Input(message)
    })
}

fn warmup(text: &str) -> Result<Warmup, Failure> {
    if text == "scenario" {
        return Ok(Warmup::Given);
    }
    Ok(blis_lab::study::warmup_flag("--warmup", text)?)
}
