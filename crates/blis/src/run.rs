//! `blis run`: from the command line to a result.

use crate::args::{Format, Layout, RunArgs, TraceLevel};
use crate::clock::Stopwatch;
use crate::failure::{self, Failure};
use crate::fitness::Weights;
use crate::flags::settled;
use crate::output;
use crate::progress::{Trials, Watch};
use crate::record::inversions::Inversions;
use crate::record::results::Results;
use crate::record::{self, Recorder, timeline};
use crate::show::{self, Pages};
use crate::target::Target;
use blis_lab::counterfactual::{self, DecisionLog, Options, Regret};
use blis_lab::why::{Measure, Which, why};
use blis_metrics::{Listener, Saturation, Strips};
use blis_report::over_time;
use blis_report::run::{self as report, Finished};
use blis_report::sections::{Decisions, sections};
use blis_scenario::problem::{Place, Problem};
use blis_scenario::problems::{Problems, every};
use blis_scenario::{Names, Plan, RunFailure, RunResult, Trial, replicate, run_scenario};
use blis_sim::{End, Pace};
use std::path::{Path, PathBuf};

/// Alternatives of a decision that `--decisions-out` tells, if nothing else is said.
const ALTERNATIVES: u16 = 3;

/// Requests that the page of a run explains.
const SLOWEST: usize = 10;

/// Runs what `args` describe and prints the result; the value is the exit code.
pub(crate) fn run(args: &RunArgs) -> Result<u8, Failure> {
    check(args)?;
    let draft = args.flags.draft(args.scenario.as_deref(), args.policy_config.as_deref())?;
    let plan = settled(&draft)?;
    let longer = |plan| args.flags.long_enough(plan, args.scenario.as_deref());
    let (plan, chosen) = if args.as_written { (plan, None) } else { longer(plan) };
    output::notes(args.quiet, &plan.notes);
    let weights = args.fitness_weights.as_deref().map(Weights::parse).transpose()?;
    let code = if args.replications > 1 {
        run_many(args, &plan, weights.as_ref())?
    } else {
        run_one(args, &targets(args)?, &plan, weights.as_ref())?
    };
    output::notes(args.quiet, &chosen);
    Ok(code)
}

/// The outputs of `args` that are files, by flag.
fn outputs(args: &RunArgs) -> [(&'static str, Option<&Path>); 6] {
    [
        ("--results-path", args.results_path.as_deref()),
        ("--requests-out", args.requests_out.as_deref()),
        ("--timeline", args.timeline.as_deref()),
        ("--trace-out", args.trace_out.as_deref()),
        ("--decisions-out", args.decisions_out.as_deref()),
        ("--perfetto", args.perfetto.as_deref()),
    ]
}

/// Claims where they go.
fn targets(args: &RunArgs) -> Result<Vec<(&'static str, Target)>, Problems> {
    let claim = |(flag, path): (&'static str, &Path)| {
        if path == Path::new("-") {
            let message = "found `-`; legal: a file (`./-` for one of that name)";
            return Err(Problem::new(Place::Flag(flag.into()), "", message));
        }
        Ok((flag, Target::claim(flag, path)?))
    };
    every(outputs(args).into_iter().filter_map(|(flag, path)| Some((flag, path?))).map(claim))
}

/// Opens an output; `names` must be given to the run as well.
fn recorder(
    (flag, target): &(&'static str, Target),
    plan: &Plan,
    names: &Names,
    log: &dyn Fn() -> DecisionLog,
) -> Result<Box<dyn Recorder>, Failure> {
    match *flag {
        "--results-path" => Results::create(target, names.clone()),
        "--requests-out" => record::requests::create(target, names.clone()),
        "--timeline" => timeline::create(target),
        "--trace-out" => record::trace::create(target, names.clone()),
        "--perfetto" => record::perfetto::create(target, plan),
        _ => record::decisions::create(target, log()),
    }
}

/// Refuses what does not go together.
fn check(args: &RunArgs) -> Result<(), Failure> {
    if args.summarize_trace && args.trace_level == TraceLevel::None {
        return Err(Failure::Input("--summarize-trace: it needs `--trace-level decisions`".into()));
    }
    if args.summarize_trace && args.format != Format::Blis {
        return Err(Failure::Input(
            "--summarize-trace: only the format `blis` prints it; add `--format blis`".into(),
        ));
    }
    if args.timeline_interval_ms.is_some() && args.timeline.is_none() {
        return Err(Failure::Input("--timeline-interval-ms: it needs `--timeline FILE`".into()));
    }
    if args.counterfactual_k.is_some_and(|k| k > 0) && args.replications > 1 {
        return Err(Failure::Input(
            "--counterfactual-k: it applies to one run; remove `--replications`".into(),
        ));
    }
    let pages = ("--report", args.report.first().map(PathBuf::as_path));
    for (flag, path) in outputs(args).into_iter().chain([pages]) {
        if path.is_some() && args.replications > 1 {
            let message = format!("{flag}: it applies to one run; remove `--replications`");
            return Err(Failure::Input(message));
        }
    }
    Ok(())
}

fn trial(args: &RunArgs, seed: u64) -> Trial {
    let pace = if args.stepwise { Pace::Stepwise } else { Pace::FastForward };
    Trial { pace, audit: args.audit, ..Trial::new(seed) }
}

/// The layout of the document; `None` for the one that scripts read.
fn layout(args: &RunArgs) -> Option<Layout> {
    match args.format {
        Format::Table => Some(Layout::Table),
        Format::Markdown => Some(Layout::Markdown),
        Format::Html => Some(Layout::Html),
        Format::Json => Some(Layout::Json),
        Format::Blis => None,
    }
}

fn run_one(
    args: &RunArgs,
    targets: &[(&'static str, Target)],
    plan: &Plan,
    weights: Option<&Weights>,
) -> Result<u8, Failure> {
    let sampled = args.timeline.as_ref();
    let interval = sampled.map(|_| timeline::interval(args.timeline_interval_ms.as_deref()));
    let details = args.decisions_out.is_some() || args.perfetto.is_some();
    let sample_interval = interval.transpose()?;
    let trial = Trial { sample_interval, details, ..trial(args, plan.seed) };
    // Keeping requests costs a copy of each, so only who records them asks for it.
    let names = if args.trace_out.is_some() { Names::with_requests() } else { Names::default() };
    let kept = args.counterfactual_k.filter(|&k| k > 0).unwrap_or(ALTERNATIVES);
    let log = || DecisionLog::new(kept.into(), plan.instances, plan.seed);
    let open = |target| recorder(target, plan, &names, &log);
    let mut recorders: Vec<Box<dyn Recorder>> =
        targets.iter().map(open).collect::<Result<_, _>>()?;
    let mut listeners: Vec<&mut dyn Listener> =
        recorders.iter_mut().map(|one| &mut **one as &mut dyn Listener).collect();
    let wanted = (!listeners.is_empty()).then_some(names);
    let mut inversions = Inversions::default();
    let ranked = plan.policies.priority.name() != "constant";
    if ranked && args.format == Format::Blis {
        listeners.push(&mut inversions);
    }
    let pages = Pages::of(&args.report, Layout::Html)?;
    let mut strips = Strips::default();
    if !args.report.is_empty() {
        listeners.push(&mut strips);
    }
    let stopwatch = Stopwatch::start();
    let mut watch = Watch::new(plan.expected_requests(), args.quiet);
    let result = run_scenario(plan, trial, &mut listeners, wanted, &mut watch)?;
    drop(watch);
    let (wall_seconds, cpu_seconds) = (Some(stopwatch.wall_seconds()), stopwatch.cpu_seconds());
    result.check()?;
    for recorder in recorders {
        recorder.finish(&result)?;
    }
    let finished = Finished {
        plan,
        result: &result,
        wall_seconds,
        cpu_seconds,
        inversions: Some(inversions.count()),
        fitness: weights.map(|weights| weights.judge(&result.report)),
        regret: regret(args, plan)?,
    };
    if !args.report.is_empty() {
        let watch = || Watch::new(plan.expected_requests(), args.quiet);
        let slowest = why(plan, trial, Measure::Ttft, &Which::Slowest(SLOWEST), watch)?;
        pages.write(&over_time::page(report::one(&finished), &strips, &slowest))?;
    }
    match layout(args) {
        Some(layout) => show::print(&report::one(&finished), layout)?,
        None => output::print(&sectioned(args, &finished))?,
    }
    let code = exit_code(args, plan, std::slice::from_ref(&result));
    if finished.regret.is_none() && args.counterfactual_k.is_some_and(|k| k > 0) {
        output::note("interrupted: no decision was taken otherwise");
        return Ok(failure::INTERRUPTED);
    }
    Ok(code)
}

/// The layout that scripts read.
fn sectioned(args: &RunArgs, finished: &Finished<'_>) -> String {
    let summary = if args.summarize_trace { Decisions::Summarised } else { Decisions::Hidden };
    let text = sections(finished, summary);
    match &finished.regret {
        Some(regret) => format!("{text}\n{}\n", report::regretted(regret)),
        None => text,
    }
}

/// Takes decisions otherwise, if that is asked for and not interrupted.
fn regret(args: &RunArgs, plan: &Plan) -> Result<Option<Regret>, Failure> {
    let Some(alternatives) = args.counterfactual_k.filter(|&k| k > 0) else { return Ok(None) };
    let sample = usize::try_from(args.counterfactual_sample).unwrap_or(usize::MAX);
    let options = Options { alternatives: alternatives.into(), sample, jobs: args.jobs.into() };
    let most = u64::from(args.counterfactual_sample) * u64::from(alternatives);
    let watch = Trials::new(most + 1, args.quiet);
    let trial = trial(args, plan.seed);
    match counterfactual::regret(plan, trial, &options, || watch.watch()) {
        Err(RunFailure::Interrupted) => Ok(None),
        found => Ok(Some(found?)),
    }
}

fn run_many(args: &RunArgs, plan: &Plan, weights: Option<&Weights>) -> Result<u8, Failure> {
    let last = plan.seed.checked_add(args.replications - 1).ok_or_else(|| {
        Failure::Input(format!("--replications: there are not enough seeds above `{}`", plan.seed))
    })?;
    let trials: Vec<Trial> = (plan.seed..=last).map(|seed| trial(args, seed)).collect();
    let stopwatch = Stopwatch::start();
    let watch = Trials::new(args.replications, args.quiet);
    let results = replicate(plan, &trials, args.jobs.into(), |_| watch.watch())?;
    drop(watch);
    for result in &results {
        result.check()?;
    }
    let finish = |result| Finished {
        plan,
        result,
        wall_seconds: None,
        cpu_seconds: None,
        inversions: None,
        fitness: weights.map(|weights| weights.judge(&result.report)),
        regret: None,
    };
    let finished: Vec<Finished<'_>> = results.iter().map(finish).collect();
    let (wall, cpu) = (stopwatch.wall_seconds(), stopwatch.cpu_seconds());
    let section = |one: &Finished<'_>| {
        format!("=== Replication (seed {}) ===\n{}", one.result.seed, sectioned(args, one))
    };
    match layout(args) {
        Some(layout) => show::print(&report::many(&finished, wall, cpu), layout)?,
        None => output::print(&finished.iter().map(section).collect::<String>())?,
    }
    Ok(exit_code(args, plan, &results))
}

fn exit_code(args: &RunArgs, plan: &Plan, results: &[RunResult]) -> u8 {
    let note = |text: String| {
        if !args.quiet {
            output::note(&text);
        }
    };
    let overloaded = |result: &RunResult| result.report.saturation == Some(Saturation::Overloaded);
    // The document of a single run shows its own.
    let shown = !matches!(args.format, Format::Json | Format::Blis) && results.len() == 1;
    if !shown && results.iter().any(overloaded) {
        note(format!("warning: {}", report::OVERLOADED));
    }
    if !shown {
        let mut warnings: Vec<String> =
            results.iter().flat_map(|result| result.warnings(plan)).collect();
        warnings.sort_unstable();
        warnings.dedup();
        for warning in warnings {
            note(format!("warning: {warning}"));
        }
    }
    if results.iter().any(|result| result.outcome.end == End::Interrupted) {
        // Said even to those who asked for quiet: half a result must not pass for a whole one.
        output::note("interrupted: the numbers cover only the simulated part");
        return failure::INTERRUPTED;
    }
    let unservable: u64 = results.iter().map(|result| result.report.cluster.unservable).sum();
    if unservable > 0 {
        // Scripts that read the layout of the Go program rely on its exit code as well.
        let fails = args.format != Format::Blis;
        let verdict = if fails { "check failed" } else { "warning" };
        let drafts = plan.engine.speculation.as_ref();
        let drafts = drafts.map_or("", |_| ", or use shorter drafts (`--num-speculative-tokens`)");
        note(format!(
            "{verdict}: {unservable} requests can never fit the KV memory of an instance; raise \
             `--total-kv-blocks` or shorten the prompts{drafts}"
        ));
        return if fails { failure::CHECK_FAILED } else { failure::DONE };
    }
    failure::DONE
}
