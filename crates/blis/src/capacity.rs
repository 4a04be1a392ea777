//! `blis capacity`: the highest rate, or the fewest instances, at which the SLOs are met.

mod purchase;

use crate::args::CapacityArgs;
use crate::failure::{self, Failure};
use crate::output;
use crate::progress::Trials;
use crate::show::Pages;
use crate::trials::Trying;
use blis_lab::capacity::{Answer, Found, Outline, Question, Search, Slo, Subject, Vary};
use blis_lab::study::Warmup;
use blis_report::capacity as report;
use blis_scenario::problem::{Place, Problem};
use blis_scenario::strategy::{self, Choice};
use blis_scenario::{Draft, Workload};

/// Searches what `args` ask for and prints what was found. A strategy without a capacity is a
/// failed check.
pub(crate) fn capacity(args: &CapacityArgs) -> Result<u8, Failure> {
    let outline = outline(args)?;
    let pages = Pages::open(&args.shown)?;
    let trying = Trying::new(&args.trials)?;
    let watch = Trials::new(outline.search.trials() as u64, args.shown.quiet);
    let settled = outline.settle(&trying.runner(&watch));
    let search = settled.map_err(|failure| trying.kept(failure))?;
    output::notes(args.shown.quiet, search.subjects.iter().flat_map(|subject| &subject.plan.notes));
    let found = search.run(&trying.runner(&watch));
    let findings = found.map_err(|failure| trying.kept(failure))?;
    drop(watch);
    pages.put(&report::document(&search, &findings))?;
    let is_offer = |(subject, answer): (&Subject, &Answer)| {
        answer.safe.is_some_and(|instances| subject.has_gpus_for(instances))
    };
    let mut answers = search.subjects.iter().zip(&findings.answers);
    let all = if args.search.is_empty() {
        answers.all(|(_, answer)| answer.found == Found::Capacity)
    } else {
        answers.any(is_offer)
    };
    Ok(if all { failure::DONE } else { failure::CHECK_FAILED })
}

fn outline(args: &CapacityArgs) -> Result<Outline, Failure> {
    let vary = if args.search.is_empty() { args.vary.into() } else { Vary::Instances };
    let stem = args.scenario.as_ref().and_then(|path| path.file_stem());
    let name =
        stem.map_or_else(|| "the cluster".to_owned(), |stem| stem.to_string_lossy().into_owned());
    let (mut subjects, mut all): (Vec<Subject>, Vec<_>) = (Vec::new(), Vec::new());
    for (strategy, flags) in args.flags.by_strategy() {
        let draft = flags.draft(args.scenario.as_deref(), None)?;
        let own = match strategy {
            Some(strategy) => strategy,
            None if args.search.is_empty() => named(&draft)?,
            // It has no GPU yet, so it cannot be resolved.
            None => String::new(),
        };
        if subjects.iter().any(|other| other.name == own) {
            let message = format!("--strategy: found `{own}` twice; keep one");
            return Err(Failure::Input(message));
        }
        let machines = if args.search.is_empty() {
            vec![(own, None, draft.resolve()?, draft)]
        } else if subjects.is_empty() {
            purchase::machines(args, &draft)?
        } else {
            return Err(Failure::Input("--search takes one --strategy; keep one".to_owned()));
        };
        for (name, rent, checked, draft) in machines {
            let mut subject = Subject::new(&name, draft, checked.plan(), vary)?;
            subject.rent = rent;
            subjects.push(subject);
            all.push(checked);
        }
    }
    let mut slo = Vec::new();
    for text in &args.slo {
        let place = Place::Flag("--slo".into());
        for one in Slo::read(text, place.clone(), "")? {
            let silent =
                one.silent(&subjects[0].plan).map(|who| Problem::new(place.clone(), "", who));
            slo.push(silent.map_or(Ok(one), Err)?);
        }
    }
    if slo.is_empty() {
        slo = Slo::usual(&subjects[0].plan)?;
    }
    if args.max_seeds < args.seeds {
        let message = format!(
            "--max-seeds: found `{}`; legal: at least --seeds, which is {}",
            args.max_seeds, args.seeds
        );
        return Err(Failure::Input(message));
    }
    // The requests of a trace are the same with every seed.
    let is_trace = matches!(subjects[0].plan.workload, Workload::Trace { .. });
    let question = Question {
        seeds: if is_trace { 2 } else { args.seeds.into() },
        max_seeds: if is_trace { 2 } else { args.max_seeds.into() },
        precision: precision(&args.precision)?,
        warmup: warmup(&args.warmup)?,
        most_requests: args.max_requests,
        ..Question::new(slo, vary)
    };
    Ok(Outline { search: Search { name, question, subjects }, checked: all })
}

/// The strategy of a scenario, or its router if it has none.
fn named(draft: &Draft) -> Result<String, Failure> {
    let tree = draft.clone().into_tree();
    if let Some(strategy) = tree.field(strategy::FIELD) {
        return Ok(Choice::read(strategy)?.name);
    }
    let routing = draft.resolve()?.plan().routing();
    Ok(routing.split(['(', '[']).next().unwrap_or_default().to_owned())
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
