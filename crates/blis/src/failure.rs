//! How the program ends when it does not end well: a message and an exit code.
//!
//! A file that the user named and that is not there is bad input (2): the name is wrong, and no
//! system call can help. A file that is there and cannot be opened or read is a failure of the
//! system (3), and so is everything about outputs.

use blis_lab::LedgerError;
use blis_scenario::problem::{tame, visible};
use blis_scenario::{Problem, Problems, RunFailure};
use blis_workload::{TraceError, TraceErrorKind};
use std::io;
use std::path::PathBuf;

/// Everything went as asked.
pub(crate) const DONE: u8 = 0;
/// A declared check failed, e.g. requests that can never be served.
pub(crate) const CHECK_FAILED: u8 = 1;
/// The input or the command line is at fault.
pub(crate) const BAD_INPUT: u8 = 2;
/// The file system or a pipe is at fault.
pub(crate) const IO: u8 = 3;
/// The program itself is at fault.
pub(crate) const INTERNAL: u8 = 4;
/// Ctrl-C.
pub(crate) const INTERRUPTED: u8 = 130;

/// Why a command gave up.
#[derive(Debug)]
pub(crate) enum Failure {
    /// Bad input: nothing was run, nothing was written.
    Input(String),
    /// All that is wrong with a file and the flags beside it.
    Problems(Problems),
    /// A file or stream could not be read or written.
    Io(String),
    /// Whoever read our output has left; not an error.
    ReaderLeft,
    /// Ctrl-C, and nothing was written.
    Interrupted,
    /// Ctrl-C, and what was finished is kept in this ledger.
    Resumable(PathBuf),
    /// An invariant of the program does not hold.
    Internal(String),
}

impl Failure {
    /// A failed write to standard output.
    pub(crate) fn stdout(error: &io::Error) -> Failure {
        match error.kind() {
            io::ErrorKind::BrokenPipe => Failure::ReaderLeft,
            _ => Failure::Io(format!("cannot write to standard output: {error}")),
        }
    }

    /// The exit code.
    pub(crate) fn code(&self) -> u8 {
        match self {
            Failure::Problems(problems) if problems.iter().all(|problem| problem.io) => IO,
            Failure::Input(_) | Failure::Problems(_) => BAD_INPUT,
            Failure::Io(_) => IO,
            Failure::ReaderLeft => DONE,
            Failure::Interrupted | Failure::Resumable(_) => INTERRUPTED,
            Failure::Internal(_) => INTERNAL,
        }
    }

    /// What to tell the user after `error: `, if anything. Values that it repeats are made visible,
    /// and those of bad input are cut if they are long.
    pub(crate) fn message(&self) -> Option<String> {
        match self {
            Failure::Input(text) => Some(tame(text)),
            Failure::Problems(problems) => {
                Some(problems.iter().map(Problem::shown).collect::<Vec<_>>().join("\nerror: "))
            }
            Failure::Io(text) => Some(visible(text)),
            // A list of violations has several lines.
            Failure::Internal(text) => {
                Some(text.lines().map(visible).collect::<Vec<_>>().join("\n"))
            }
            Failure::Interrupted => Some("interrupted: nothing was written".to_owned()),
            Failure::Resumable(ledger) => {
                let ledger = visible(&ledger.display().to_string());
                Some(format!(
                    "interrupted: finished runs are kept in {ledger}; run again to \
                    continue"
                ))
            }
            Failure::ReaderLeft => None,
        }
    }
}

impl From<Problem> for Failure {
    fn from(problem: Problem) -> Failure {
        Failure::Problems(problem.into())
    }
}

impl From<Problems> for Failure {
    fn from(problems: Problems) -> Failure {
        Failure::Problems(problems)
    }
}

impl From<LedgerError> for Failure {
    fn from(error: LedgerError) -> Failure {
        let make = if error.is_input() { Failure::Input } else { Failure::Io };
        make(error.to_string())
    }
}

impl From<TraceError> for Failure {
    fn from(error: TraceError) -> Failure {
        match error.kind {
            TraceErrorKind::Content => Failure::Input(error.to_string()),
            TraceErrorKind::Io => Failure::Io(error.to_string()),
        }
    }
}

impl From<blis_lab::Failure> for Failure {
    fn from(failure: blis_lab::Failure) -> Failure {
        match failure {
            blis_lab::Failure::Run(failure) => failure.into(),
            blis_lab::Failure::Ledger(error) => error.into(),
        }
    }
}

impl From<RunFailure> for Failure {
    fn from(failure: RunFailure) -> Failure {
        match failure {
            RunFailure::Input(problem) => problem.into(),
            RunFailure::Source(message) => Failure::Input(message),
            RunFailure::Threads(_) => Failure::Io(failure.to_string()),
            RunFailure::Interrupted => Failure::Interrupted,
            RunFailure::Broken(message) => Failure::Internal(message),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn threads_that_do_not_start_are_the_systems_fault() {
        let failure = Failure::from(RunFailure::Threads("no memory".to_owned()));
        let message = "cannot start worker threads: no memory; lower `--jobs`";
        assert_eq!((failure.code(), failure.message().as_deref()), (IO, Some(message)));
    }
}
