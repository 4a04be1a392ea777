//! What commands that run many trials have in common: the ledger and the runner.

use crate::args::lab::TrialArgs;
use crate::failure::Failure;
use crate::interrupt;
use blis_lab::scenario::known;
use blis_lab::{Ledger, RunFailure, Runner};

/// Says where saturations may be known, to be called before scenarios are read.
pub(crate) fn consult(args: &TrialArgs) {
    if let Some(path) = args.ledger() {
        known::consult(path);
    }
}

/// How trials are run.
pub(crate) struct Trying {
    ledger: Option<Ledger>,
    jobs: usize,
    audit: bool,
}

impl Trying {
    /// Opens the ledger, if there is to be one, and listens to Ctrl-C.
    pub(crate) fn new(args: &TrialArgs) -> Result<Trying, Failure> {
        interrupt::listen();
        let ledger = args.ledger().map(Ledger::open).transpose()?;
        if let Some(ledger) = &ledger {
            ledger.keep_saturations()?;
        }
        Ok(Trying { ledger, jobs: args.jobs.into(), audit: args.audit })
    }

    /// The ledger.
    pub(crate) fn ledger(&self) -> Option<&Ledger> {
        self.ledger.as_ref()
    }

    /// The runner.
    pub(crate) fn runner(&self) -> Runner<'_> {
        Runner { jobs: self.jobs, audit: self.audit, ledger: self.ledger() }
    }

    /// `failure`, which is no loss if what is finished is kept.
    pub(crate) fn kept(&self, failure: RunFailure) -> Failure {
        match (failure, &self.ledger) {
            (RunFailure::Interrupted, Some(ledger)) => Failure::Resumable(ledger.path().to_owned()),
            (failure, _) => failure.into(),
        }
    }
}

impl Drop for Trying {
    fn drop(&mut self) {
        // What searches have measured on the way; the next one measures it again if this fails.
        if let Some(ledger) = &self.ledger {
            let _ = ledger.keep_saturations();
        }
    }
}
