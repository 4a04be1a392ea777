//! BLIS: a deterministic simulator of LLM-inference clusters.
//!
//! The binary is the only part that prints, exits, reads the environment or a wall clock. Results
//! go to standard output, everything else to standard error.
//!
//! Exit codes: 0 done, 1 a declared check failed, 2 bad input, 3 input or output failed, 4 an
//! internal invariant is broken, 130 interrupted.

mod args;
mod calibrate;
mod capacity;
mod clock;
mod compare;
mod evolve;
mod explain;
mod export;
mod failure;
mod fitness;
mod flags;
mod go;
mod init;
mod interrupt;
mod ledger;
mod optimize;
mod output;
mod policies;
mod progress;
mod record;
mod run;
mod schema;
mod shard;
mod sheet;
mod show;
mod strategies;
mod study;
mod target;
mod trace;
mod trial;
mod trials;
mod validate;
mod why;
mod workloads;

use args::{Cli, Command};
use clap::{CommandFactory, Parser};
use failure::Failure;
use std::panic::{self, PanicHookInfo};
use std::process::ExitCode;

fn main() -> ExitCode {
    panic::set_hook(Box::new(report_panic));
    interrupt::listen();
    // The hook has told what happened; what is left is the exit code.
    let code = panic::catch_unwind(command).unwrap_or(failure::INTERNAL);
    output::remove_unfinished();
    ExitCode::from(code)
}

fn command() -> u8 {
    let call = go::read(std::env::args_os().collect());
    let done = call.words.and_then(|words| match Cli::try_parse_from(words) {
        Ok(cli) => obey(cli),
        Err(error) => Ok(usage(&error)),
    });
    let ended = if call.is_go { go::end } else { |failure: &Failure, _| end(failure) };
    done.unwrap_or_else(|failure| ended(&failure, call.is_surely))
}

fn obey(cli: Cli) -> Result<u8, Failure> {
    match cli.command {
        Command::Run(args) => run::run(&args),
        Command::Why(args) => why::why(&args).map(|()| failure::DONE),
        Command::Study(args) => study::study(&args),
        Command::Compare(args) => compare::compare(&args).map(|()| failure::DONE),
        Command::Explain(args) => explain::explain(&args).map(|()| failure::DONE),
        Command::Optimize(args) => optimize::optimize(&args),
        Command::Evolve(args) => evolve::evolve(&args),
        Command::Trace(args) => trace::trace(&args).map(|()| failure::DONE),
        Command::Calibrate(args) => calibrate::calibrate(&args).map(|()| failure::DONE),
        Command::Validate(args) => validate::validate(&args).map(|()| failure::DONE),
        Command::Strategies(args) => strategies::list(&args).map(|()| failure::DONE),
        Command::Workloads(args) => workloads::list(&args).map(|()| failure::DONE),
        Command::Trial => trial::trial().map(|()| failure::DONE),
        Command::Ledger(args) => ledger::ledger(&args),
        Command::Capacity(args) => capacity::capacity(&args),
        Command::Policies(args) => policies::list(&args).map(|()| failure::DONE),
        Command::Export(args) => export::export(&args),
        Command::Import(args) => export::import(&args).map(|()| failure::DONE),
        Command::Init(args) => init::init(&args).map(|()| failure::DONE),
        Command::Schema(args) => schema::schema(&args).map(|()| failure::DONE),
        Command::Completions(args) => completions(args.shell).map(|()| failure::DONE),
    }
}

fn end(failure: &Failure) -> u8 {
    if let Some(message) = failure.message() {
        output::note(&cut(&format!("error: {message}")));
    }
    if matches!(failure, Failure::Internal(_)) {
        output::note(&reproduce());
    }
    failure.code()
}

/// Help and version go to standard output, complaints to standard error.
fn usage(error: &clap::Error) -> u8 {
    let text = error.render().to_string();
    if error.use_stderr() {
        output::note(&cut(text.trim_end()));
        return failure::BAD_INPUT;
    }
    output::print(&text).map_or_else(|failure| end(&failure), |()| failure::DONE)
}

/// A message without what nobody reads of very long lines, which repeat an argument.
fn cut(text: &str) -> String {
    const LONGEST: usize = 2_000;
    let line = |line: &str| match line.char_indices().nth(LONGEST) {
        Some((end, _)) => format!("{}...", &line[..end]),
        None => line.to_owned(),
    };
    text.lines().map(line).collect::<Vec<_>>().join("\n")
}

fn completions(shell: clap_complete::Shell) -> Result<(), Failure> {
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut Cli::command(), "blis", &mut script);
    output::print(&String::from_utf8_lossy(&script))
}

/// A broken invariant is reported in two lines: what, and how to see it again.
fn report_panic(info: &PanicHookInfo<'_>) {
    let payload = info.payload();
    let message = payload
        .downcast_ref::<&str>()
        .map(|text| (*text).to_owned())
        .or_else(|| payload.downcast_ref::<String>().cloned())
        .unwrap_or_else(|| "unknown".to_owned());
    let place = info.location().map_or_else(String::new, |at| {
        let file = at.file().rsplit_once("crates/").map_or(at.file(), |(_, file)| file);
        format!(" ({file}:{})", at.line())
    });
    output::note(&format!("error: internal invariant broken: {message}{place}"));
    output::note(&reproduce());
}

/// How to see it again, for a report.
fn reproduce() -> String {
    format!("reproduce with: {}", command_line())
}

/// The command line that was run, as a shell would take it.
pub(crate) fn command_line() -> String {
    let words: Vec<String> =
        std::env::args().skip(1).map(|word| blis_export::shell_word(&word)).collect();
    format!("blis {}", words.join(" "))
}
