//! `blis run`: from the command line to a result.

use crate::args::{Format, RunArgs, TraceLevel};
use crate::clock::Stopwatch;
use crate::failure::{self, Failure};
use crate::interrupt;
use crate::output;
use crate::progress::{Bar, Trials, Watch};
use crate::report::fitness::Weights;
use crate::report::inversions::Inversions;
use crate::report::requests::RequestRows;
use crate::report::results::Results;
use crate::report::sections::{self, Decisions};
use crate::report::{Finished, json, table};
use blis_lab::{Draft, Names, Plan, RunResult, Trial, replicate, run_scenario};
use blis_metrics::{Listener, Saturation};
use blis_sim::{End, Pace};
use std::io::IsTerminal;

/// Runs what `args` describe and prints the result; the value is the exit code.
pub(crate) fn run(args: &RunArgs) -> Result<u8, Failure> {
    check(args)?;
    let plan = draft(args)?.resolve()?;
    let weights = args.fitness_weights.as_deref().map(Weights::parse).transpose()?;
    interrupt::listen();
    if args.replications > 1 {
        return run_many(args, &plan, weights.as_ref());
    }
    run_one(args, &plan, weights.as_ref())
}

/// Refuses what does not go together.
fn check(args: &RunArgs) -> Result<(), Failure> {
    args.flags.check()?;
    if args.summarize_trace && args.trace_level == TraceLevel::None {
        return Err(Failure::Input(
            "--summarize-trace: there is no decision trace; add `--trace-level decisions`".into(),
        ));
    }
    if args.results_path.is_some() && args.results_path == args.requests_out {
        return Err(Failure::Input(
            "--requests-out: it is the file of `--results-path`; name another".into(),
        ));
    }
    for (flag, given) in [
        ("--results-path", args.results_path.is_some()),
        ("--requests-out", args.requests_out.is_some()),
    ] {
        if given && args.replications > 1 {
            let message = format!("{flag}: it holds one run; remove `--replications`");
            return Err(Failure::Input(message));
        }
    }
    Ok(())
}

fn draft(args: &RunArgs) -> Result<Draft, Failure> {
    let mut draft = match &args.scenario {
        Some(path) => Draft::read(path)?,
        None => Draft::default(),
    };
    if let Some(path) = &args.policy_config {
        draft.set_bundle(path)?;
    }
    args.flags.apply(&mut draft)?;
    Ok(draft)
}

fn trial(args: &RunArgs, seed: u64) -> Trial {
    let pace = if args.stepwise { Pace::Stepwise } else { Pace::FastForward };
    Trial { seed, pace, audit: args.audit }
}

fn bar(args: &RunArgs) -> Bar {
    if args.quiet { Bar::Hidden } else { Bar::OnTerminals }
}

fn format(args: &RunArgs) -> Format {
    let usual = if std::io::stdout().is_terminal() { Format::Table } else { Format::Blis };
    args.format.unwrap_or(usual)
}

fn run_one(args: &RunArgs, plan: &Plan, weights: Option<&Weights>) -> Result<u8, Failure> {
    let names = Names::default();
    let mut results = args
        .results_path
        .as_deref()
        .map(|path| Results::create(path, names.clone()))
        .transpose()?;
    let mut rows = args
        .requests_out
        .as_deref()
        .map(|path| RequestRows::create(path, names.clone()))
        .transpose()?;
    let mut listeners: Vec<&mut dyn Listener> = Vec::new();
    if let Some(results) = &mut results {
        listeners.push(results);
    }
    if let Some(rows) = &mut rows {
        listeners.push(rows);
    }
    let wanted = (!listeners.is_empty()).then_some(names);
    let mut inversions = Inversions::default();
    let ranked = plan.policies.priority != "constant";
    if ranked && format(args) == Format::Blis {
        listeners.push(&mut inversions);
    }
    let stopwatch = Stopwatch::start();
    let mut watch = Watch::new(plan.expected_requests(), bar(args));
    let trial = trial(args, plan.seed);
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
    check_invariants(&result)?;
    if let Some(results) = results {
        results.finish(&result.report)?;
    }
    if let Some(rows) = rows {
        rows.finish()?;
    }
    output::print(&render(args, &finished))?;
    Ok(exit_code(args, std::slice::from_ref(&result)))
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
        check_invariants(result)?;
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
    Ok(exit_code(args, &results))
}

/// A stalled run or a violation of the audit is the program's own fault.
fn check_invariants(result: &RunResult) -> Result<(), Failure> {
    if let End::Stalled { why } = &result.outcome.end {
        let seed = result.seed;
        return Err(Failure::Internal(format!("the run with seed {seed} stalled: {why}")));
    }
    let Some(audit) = result.audit.as_ref().filter(|audit| !audit.is_clean()) else {
        return Ok(());
    };
    let mut lines = vec![format!("internal invariant broken {} times:", audit.count)];
    lines.extend(audit.first.iter().map(|violation| format!("  {violation}")));
    Err(Failure::Internal(lines.join("\n")))
}

fn exit_code(args: &RunArgs, results: &[RunResult]) -> u8 {
    let note = |text: String| {
        if !args.quiet {
            output::note(&text);
        }
    };
    let overloaded = |result: &RunResult| result.report.saturation == Some(Saturation::Overloaded);
    if format(args) != Format::Table && results.iter().any(overloaded) {
        note(format!("warning: {}", table::OVERLOADED));
    }
    if results.iter().any(|result| result.outcome.end == End::Interrupted) {
        note("interrupted: the numbers are those of the part that was simulated".to_owned());
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
