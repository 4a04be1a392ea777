//! Why an experiment gave nothing.

use crate::ledger::LedgerError;
use blis_scenario::{Problem, Problems, RunFailure};

/// Why an experiment gave nothing.
#[derive(Debug, thiserror::Error)]
pub enum Failure {
    /// A run failed, or its input is bad.
    #[error(transparent)]
    Run(#[from] RunFailure),
    /// The ledger does not keep what it should.
    #[error(transparent)]
    Ledger(#[from] LedgerError),
}

impl Failure {
    /// Whoever watches has stopped it.
    pub const INTERRUPTED: Failure = Failure::Run(RunFailure::Interrupted);
}

impl From<Problem> for Failure {
    fn from(problem: Problem) -> Failure {
        Problems::from(problem).into()
    }
}

impl From<Problems> for Failure {
    fn from(problems: Problems) -> Failure {
        Failure::Run(RunFailure::Input(problems))
    }
}
