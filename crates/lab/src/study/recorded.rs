//! Runs of a study that leave it in the ledger: what it asks, which trials it needs, its verdicts.

use super::{Findings, Study, json};
use crate::failure::Failure;
use crate::hypothesis::Hypothesis;
use crate::ledger::{Experiment, Ledger, LedgerError, PlannedCell, VerdictRecord};
use crate::metric::Metric;
use crate::trial::Runner;
use crate::verdict::Verdict;
use blis_scenario::scenario::Plan;

impl Study {
    /// Runs it on `runner`, whose ledger, if it has one, then knows it as `name`.
    ///
    /// # Errors
    /// The failure of the first run, in their order, that failed, or of the ledger.
    pub fn run_recorded(&self, name: &str, runner: &Runner<'_>) -> Result<Findings, Failure> {
        let lengths = self.lengths(runner)?;
        let plans = self.plans(&lengths);
        if let Some(ledger) = runner.ledger {
            // Before they are run, so that what an interrupted study has finished is known as its
            // own.
            self.record(ledger, name, &plans, |_| self.seeds)?;
        }
        let findings = self.judge(lengths, runner)?;
        if let Some(ledger) = runner.ledger {
            let plans = self.plans(&findings.lengths);
            let key = self.record(ledger, name, &plans, |cell| findings.rows[cell].len())?;
            ledger.record_verdicts(&key, &records(self, &findings))?;
        }
        Ok(findings)
    }

    /// Keeps in `ledger`, as `name`, what it asks and which trials it needs: `plans`, those of its
    /// cells, each with as many of the first seeds as `seeds` says, and no others. The value is its
    /// key.
    ///
    /// # Errors
    /// If the ledger cannot be written.
    pub fn record(
        &self,
        ledger: &Ledger,
        name: &str,
        plans: &[Plan],
        seeds: impl Fn(usize) -> usize,
    ) -> Result<String, LedgerError> {
        let about = Experiment {
            key: self.key(),
            name: name.to_owned(),
            question: self.question.clone(),
            factors: self.factors.clone(),
            metrics: self.metrics.iter().map(Metric::name).collect(),
        };
        let cells = self.cells.iter().zip(plans).enumerate();
        let cells: Vec<PlannedCell<'_>> = cells
            .map(|(number, (cell, plan))| PlannedCell {
                number,
                levels: cell.levels.clone(),
                plan,
                seeds: self.first_seeds(seeds(number)),
            })
            .collect();
        // Shards run all seeds that may be needed; what counts is those that were.
        ledger.forget_cells(&about.key)?;
        ledger.record_cells(&about, &cells)?;
        Ok(about.key)
    }

    /// Its key in a ledger. It does not depend on the seeds, of which there may be more later.
    fn key(&self) -> String {
        let mut lines = vec![self.question.clone(), self.factors.join("\t")];
        let cells = self.cells.iter();
        lines.extend(cells.map(|cell| format!("{} {}", cell.levels.join("\t"), cell.plan.hash())));
        Experiment::key_of(&lines)
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
