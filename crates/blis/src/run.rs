//! `blis run`: from the command line to a result.

use crate::args::{Format, RunArgs, TraceLevel};
use crate::clock::Stopwatch;
use crate::failure::{self, Failure};
use crate::flags::ScenarioFlags;
use crate::interrupt::{self, Interruptible};
use crate::output;
use crate::progress::{Bar, Trials, Watch};
use crate::report;
use crate::report::counterfactual::DecisionRows;
use crate::report::fitness::Weights;
use crate::report::inversions::Inversions;
use crate::report::requests::RequestRows;
use crate::report::results::Results;
use crate::report::sections::{self, Decisions};
use crate::report::timeline::{self, Timeline};
use crate::report::{Finished, json, table};
use crate::target::Target;
use crate::trace::Recorder;
use blis_lab::counterfactual::{self, DecisionLog, Options, Regret};
use blis_metrics::{Listener, Saturation};
use blis_scenario::{Draft, Names, Plan, RunResult, Saturations, Trial, replicate, run_scenario};
use blis_sim::{End, Pace};
use std::io::IsTerminal;
use std::path::{Path, PathBuf};

/// Alternatives of a decision that `--decisions-out` tells, if nothing else is said.
const ALTERNATIVES: u16 = 3;

/// Runs what `args` describe and prints the result; the value is the exit code.
pub(crate) fn run(args: &RunArgs) -> Result<u8, Failure> {
    check(args)?;
    let draft = draft(args.scenario.as_deref(), args.policy_config.as_deref(), &args.flags)?;
    let plan = settled(&draft)?;
    if !args.quiet {
        tell(&plan);
    }
    let weights = args.fitness_weights.as_deref().map(Weights::parse).transpose()?;
    if args.replications > 1 {
        return run_many(args, &plan, weights.as_ref());
    }
    let targets = Targets::of(args, &inputs(args, &draft, &plan))?;
    run_one(args, &targets, &plan, weights.as_ref())
}

/// The plan of `draft`; a rate that is a share of saturation is measured, until Ctrl-C.
pub(crate) fn settled(draft: &Draft) -> Result<Plan, Failure> {
    let checked = draft.resolve()?;
    interrupt::listen();
    Ok(checked.settle(&Saturations::default(), &mut Interruptible)?)
}

/// Tells what the user should know about a scenario before it runs.
pub(crate) fn tell(plan: &Plan) {
    for text in &plan.notes {
        output::note(&format!("note: {text}"));
    }
}

/// The files that a run is read from.
fn inputs(args: &RunArgs, draft: &Draft, plan: &Plan) -> Vec<PathBuf> {
    let named = [&args.scenario, &args.policy_config].into_iter().flatten();
    named.chain(&plan.files).cloned().chain(draft.workload_files()).collect()
}

/// Where the outputs of a run go.
struct Targets {
    results: Option<Target>,
    rows: Option<Target>,
    timeline: Option<Target>,
    trace: Option<Target>,
    decisions: Option<Target>,
}

/// The outputs of `args` that are files, by flag.
fn outputs(args: &RunArgs) -> [(&'static str, Option<&Path>); 5] {
    [
        ("--results-path", args.results_path.as_deref()),
        ("--requests-out", args.requests_out.as_deref()),
        ("--timeline", args.timeline.as_deref()),
        ("--trace-out", args.trace_out.as_deref()),
        ("--decisions-out", args.decisions_out.as_deref()),
    ]
}

impl Targets {
    /// Refuses outputs that are one file, or one of `inputs`.
    fn of(args: &RunArgs, inputs: &[PathBuf]) -> Result<Targets, Failure> {
        let mut targets: Vec<(&str, Target)> = Vec::new();
        for (flag, path) in outputs(args) {
            let Some(path) = path else { continue };
            if path == Path::new("-") {
                let message =
                    format!("{flag}: `-` is no file; name one (`./-` if it is called so)");
                return Err(Failure::Input(message));
            }
            let target = Target::of(path)?;
            if let Some(input) = inputs.iter().find(|input| target.is_input(input)) {
                let input = input.display();
                let message = format!("{flag}: it is the input `{input}`; name another file");
                return Err(Failure::Input(message));
            }
            if let Some((other, _)) = targets.iter().find(|(_, other)| target.is(other)) {
                let message = format!("{flag}: it is the file of `{other}`; name another");
                return Err(Failure::Input(message));
            }
            targets.push((flag, target));
        }
        let mut take = |flag: &str| {
            let index = targets.iter().position(|(given, _)| *given == flag)?;
            Some(targets.swap_remove(index).1)
        };
        let (results, rows) = (take("--results-path"), take("--requests-out"));
        let (timeline, trace) = (take("--timeline"), take("--trace-out"));
        let decisions = take("--decisions-out");
        Ok(Targets { results, rows, timeline, trace, decisions })
    }
}

/// The outputs of a run that are written as it goes.
struct Writers {
    results: Option<Results>,
    rows: Option<RequestRows>,
    timeline: Option<Timeline>,
    trace: Option<Recorder>,
    decisions: Option<DecisionRows>,
}

impl Writers {
    /// Opens every file; `names` must be given to the run as well.
    fn create(targets: &Targets, names: &Names, log: DecisionLog) -> Result<Writers, Failure> {
        let Targets { results, rows, timeline, trace, decisions } = targets;
        let open = |target| Results::create(target, names.clone());
        let results = results.as_ref().map(open).transpose()?;
        let open = |target| RequestRows::create(target, names.clone());
        let rows = rows.as_ref().map(open).transpose()?;
        let timeline = timeline.as_ref().map(Timeline::create).transpose()?;
        let open = |target| Recorder::create(target, names.clone());
        let trace = trace.as_ref().map(open).transpose()?;
        let open = |target| DecisionRows::create(target, log);
        let decisions = decisions.as_ref().map(open).transpose()?;
        Ok(Writers { results, rows, timeline, trace, decisions })
    }

    fn listeners(&mut self) -> Vec<&mut dyn Listener> {
        let Writers { results, rows, timeline, trace, decisions } = self;
        let results = results.as_mut().map(|writer| writer as &mut dyn Listener);
        let rows = rows.as_mut().map(|writer| writer as &mut dyn Listener);
        let timeline = timeline.as_mut().map(|writer| writer as &mut dyn Listener);
        let trace = trace.as_mut().map(|writer| writer as &mut dyn Listener);
        let decisions = decisions.as_mut().map(|writer| writer as &mut dyn Listener);
        [results, rows, timeline, trace, decisions].into_iter().flatten().collect()
    }

    fn finish(self, result: &RunResult) -> Result<(), Failure> {
        if let Some(results) = self.results {
            results.finish(result)?;
        }
        if let Some(rows) = self.rows {
            rows.finish()?;
        }
        if let Some(timeline) = self.timeline {
            timeline.finish()?;
        }
        if let Some(decisions) = self.decisions {
            decisions.finish()?;
        }
        match self.trace {
            Some(trace) => trace.finish(),
            None => Ok(()),
        }
    }
}

/// Refuses what does not go together.
fn check(args: &RunArgs) -> Result<(), Failure> {
    args.flags.check()?;
    if args.summarize_trace && args.trace_level == TraceLevel::None {
        return Err(Failure::Input(
            "--summarize-trace: there is no decision trace; add `--trace-level decisions`".into(),
        ));
    }
    if args.summarize_trace && format(args) != Format::Blis {
        return Err(Failure::Input(
            "--summarize-trace: only the layout `blis` prints it; add `--format blis`".into(),
        ));
    }
    if args.timeline_interval_ms.is_some() && args.timeline.is_none() {
        return Err(Failure::Input(
            "--timeline-interval-ms: there is no timeline; add `--timeline FILE`".into(),
        ));
    }
    if args.counterfactual_k.is_some_and(|k| k > 0) && args.replications > 1 {
        return Err(Failure::Input(
            "--counterfactual-k: it takes the decisions of one run otherwise; remove \
             `--replications`"
                .into(),
        ));
    }
    for (flag, path) in outputs(args) {
        if path.is_some() && args.replications > 1 {
            let message = format!("{flag}: it holds one run; remove `--replications`");
            return Err(Failure::Input(message));
        }
    }
    Ok(())
}

/// The scenario in a file, with the policies of a bundle and the flags set into it.
pub(crate) fn draft(
    scenario: Option<&Path>,
    policy_config: Option<&Path>,
    flags: &ScenarioFlags,
) -> Result<Draft, Failure> {
    let mut draft = match scenario {
        Some(path) => Draft::read(path)?,
        None => Draft::default(),
    };
    if let Some(path) = policy_config {
        draft.set_bundle(path)?;
    }
    flags.apply(&mut draft)?;
    Ok(draft)
}

fn trial(args: &RunArgs, seed: u64) -> Trial {
    let pace = if args.stepwise { Pace::Stepwise } else { Pace::FastForward };
    Trial { pace, audit: args.audit, ..Trial::new(seed) }
}

fn bar(args: &RunArgs) -> Bar {
    if args.quiet { Bar::Hidden } else { Bar::OnTerminals }
}

fn format(args: &RunArgs) -> Format {
    let usual = if std::io::stdout().is_terminal() { Format::Table } else { Format::Blis };
    args.format.unwrap_or(usual)
}

fn run_one(
    args: &RunArgs,
    targets: &Targets,
    plan: &Plan,
    weights: Option<&Weights>,
) -> Result<u8, Failure> {
    let sampled = args.timeline.as_ref();
    let interval = sampled.map(|_| timeline::interval(args.timeline_interval_ms.as_deref()));
    let trial = Trial { sample_interval: interval.transpose()?, ..trial(args, plan.seed) };
    // Keeping requests costs a copy of each, so only who records them asks for it.
    let names = if targets.trace.is_some() { Names::with_requests() } else { Names::default() };
    let kept = args.counterfactual_k.filter(|&k| k > 0).unwrap_or(ALTERNATIVES);
    let log = DecisionLog::new(kept.into(), plan.instances, plan.seed);
    let mut writers = Writers::create(targets, &names, log)?;
    let mut listeners = writers.listeners();
    let wanted = (!listeners.is_empty()).then_some(names);
    let mut inversions = Inversions::default();
    let ranked = plan.policies.priority.name() != "constant";
    if ranked && format(args) == Format::Blis {
        listeners.push(&mut inversions);
    }
    let stopwatch = Stopwatch::start();
    let mut watch = Watch::new(plan.expected_requests(), bar(args));
    let result = run_scenario(plan, trial, &mut listeners, wanted, &mut watch)?;
    drop(watch);
    let finished = Finished {
        plan,
        result: &result,
        wall_seconds: Some(stopwatch.wall_seconds()),
        cpu_seconds: stopwatch.cpu_seconds(),
        inversions: Some(inversions.count()),
        fitness: weights.map(|weights| weights.judge(&result.report)),
    };
    result.check()?;
    writers.finish(&result)?;
    let regret = regret(args, plan)?;
    output::print(&with_regret(args, &finished, regret.as_ref()))?;
    Ok(exit_code(args, plan, std::slice::from_ref(&result)))
}

/// Takes decisions otherwise, if that is asked for.
fn regret(args: &RunArgs, plan: &Plan) -> Result<Option<Regret>, Failure> {
    let Some(alternatives) = args.counterfactual_k.filter(|&k| k > 0) else { return Ok(None) };
    let sample = usize::try_from(args.counterfactual_sample).unwrap_or(usize::MAX);
    let options = Options { alternatives: alternatives.into(), sample, jobs: args.jobs.into() };
    let most = u64::from(args.counterfactual_sample) * u64::from(alternatives);
    let watch = Trials::new(most, bar(args));
    let trial = trial(args, plan.seed);
    Ok(Some(counterfactual::regret(plan, trial, &options, || watch.watch())?))
}

fn with_regret(args: &RunArgs, finished: &Finished<'_>, regret: Option<&Regret>) -> String {
    let Some(regret) = regret else { return render(args, finished) };
    if format(args) == Format::Json {
        let mut value = json::object(finished);
        value["counterfactual"] = report::counterfactual::value(regret);
        return json::text(&value);
    }
    format!("{}\n{}", render(args, finished), report::counterfactual::text(regret))
}

fn render(args: &RunArgs, finished: &Finished<'_>) -> String {
    match format(args) {
        Format::Json => json::text(&json::object(finished)),
        Format::Blis if args.summarize_trace => sections::sections(finished, Decisions::Summarised),
        Format::Blis => sections::sections(finished, Decisions::Hidden),
        Format::Table => table::one(finished),
    }
}

fn run_many(args: &RunArgs, plan: &Plan, weights: Option<&Weights>) -> Result<u8, Failure> {
    let last = plan.seed.checked_add(args.replications - 1).ok_or_else(|| {
        Failure::Input(format!("--replications: seeds from `{}` on run out", plan.seed))
    })?;
    let trials: Vec<Trial> = (plan.seed..=last).map(|seed| trial(args, seed)).collect();
    let stopwatch = Stopwatch::start();
    let watch = Trials::new(args.replications, bar(args));
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
    };
    let finished: Vec<Finished<'_>> = results.iter().map(finish).collect();
    let (wall, cpu) = (stopwatch.wall_seconds(), stopwatch.cpu_seconds());
    let section = |one: &Finished<'_>| {
        format!("=== Replication (seed {}) ===\n{}", one.result.seed, render(args, one))
    };
    let text = match format(args) {
        Format::Json => json::text(&json::replications(&finished, wall, cpu)),
        Format::Table => table::many(&finished, wall),
        Format::Blis => finished.iter().map(section).collect::<Vec<_>>().concat(),
    };
    output::print(&text)?;
    Ok(exit_code(args, plan, &results))
}

fn exit_code(args: &RunArgs, plan: &Plan, results: &[RunResult]) -> u8 {
    let note = |text: String| {
        if !args.quiet {
            output::note(&text);
        }
    };
    let overloaded = |result: &RunResult| result.report.saturation == Some(Saturation::Overloaded);
    if format(args) != Format::Table && results.iter().any(overloaded) {
        note(format!("warning: {}", table::OVERLOADED));
    }
    // The table of a single run shows its own.
    if format(args) != Format::Table || results.len() > 1 {
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
        output::note("interrupted: the numbers are those of the part that was simulated");
        return failure::INTERRUPTED;
    }
    let unservable: u64 = results.iter().map(|result| result.report.cluster.unservable).sum();
    if unservable > 0 {
        note(format!(
            "check failed: {unservable} requests can never fit the KV memory of an instance; raise \
             `--total-kv-blocks` or shorten the prompts"
        ));
        return failure::CHECK_FAILED;
    }
    failure::DONE
}
