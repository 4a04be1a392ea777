//! What commands that run many trials have in common: the ledger and the runner.

use crate::args::lab::TrialArgs;
use crate::failure::Failure;
use crate::target;
use blis_lab::trial::{Unwatched, Watch};
use blis_lab::{Ledger, Runner};
use blis_scenario::{RunFailure, Saturations};

/// How trials are run.
pub(crate) struct Trying {
    ledger: Option<Ledger>,
    saturations: Saturations,
    jobs: usize,
    audit: bool,
}

impl Trying {
    /// Opens the ledger, if there is to be one.
    pub(crate) fn new(args: &TrialArgs) -> Result<Trying, Failure> {
        args.ledger().map(|path| target::claim_ledger("--ledger", path)).transpose()?;
        let ledger = args.ledger().map(Ledger::open).transpose()?;
        let saturations = Runner::new(0, ledger.as_ref(), &Unwatched)?.saturations;
        Ok(Trying { ledger, saturations, jobs: args.jobs.into(), audit: args.audit })
    }

    /// The ledger.
    pub(crate) fn ledger(&self) -> Option<&Ledger> {
        self.ledger.as_ref()
    }

    /// The runner, with who watches it.
    pub(crate) fn runner<'a>(&'a self, watch: &'a dyn Watch) -> Runner<'a> {
        Runner {
            jobs: self.jobs,
            audit: self.audit,
            ledger: self.ledger(),
            saturations: self.saturations.clone(),
            watch,
        }
    }

    /// `failure`, which is no loss if what is finished is kept.
    pub(crate) fn kept(&self, failure: blis_lab::Failure) -> Failure {
        match (failure, &self.ledger) {
            (blis_lab::Failure::Run(RunFailure::Interrupted), Some(ledger)) => {
                Failure::Resumable(ledger.path().to_owned())
            }
            (failure, _) => failure.into(),
        }
    }
}
