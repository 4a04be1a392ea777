//! Runs of a study that leave it in the ledger: what it asks, which trials it needs, its verdicts.

use super::{Findings, Study, json};
use crate::failure::Failure;
use crate::hypothesis::Hypothesis;
use crate::ledger::VerdictRecord;
use crate::trial::{Runner, Watch};
use crate::verdict::Verdict;

impl Study {
    /// Runs it on `runner`, whose ledger, if it has one, then knows it as `name`.
    ///
    /// # Errors
    /// The failure of the first run, in their order, that failed, or of the ledger.
    pub fn run_recorded(
        &self,
        name: &str,
        runner: &Runner<'_>,
        watch: &dyn Watch,
    ) -> Result<Findings, Failure> {
        let warmup = self.settle(runner, watch)?;
        let plans = self.plans(warmup);
        if let Some(ledger) = runner.ledger {
            // Before they are run, so that what an interrupted study has finished is known as its
            // own.
            ledger.record_study(name, self, &plans, self.seeds)?;
        }
        let findings = self.judge(&plans, warmup, runner, watch)?;
        if let Some(ledger) = runner.ledger {
            let key = ledger.record_study(name, self, &plans, findings.seeds())?;
            ledger.record_verdicts(&key, &records(self, &findings))?;
        }
        Ok(findings)
    }
}

/// The verdicts as the ledger keeps them.
fn records(study: &Study, findings: &Findings) -> Vec<VerdictRecord> {
    let record = |(hypothesis, verdict): (&Hypothesis, &Verdict)| VerdictRecord {
        hypothesis: hypothesis.name.clone(),
        prediction: hypothesis.text.clone(),
        mechanism: hypothesis.because.clone(),
        outcome: verdict.outcome.name().to_owned(),
        why: verdict.why.clone(),
        seeds: verdict.seeds as u64,
        level: Some(verdict.level),
        effects: Some(json::effects(verdict).to_string()),
    };
    study.hypotheses.iter().zip(&findings.verdicts).map(record).collect()
}
