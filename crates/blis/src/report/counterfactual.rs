//! What routing decisions cost, as far as a sample of them was taken otherwise.

use crate::failure::Failure;
use crate::output::{Output, failed};
use crate::target::Target;
use blis_core::Time;
use blis_lab::counterfactual::{Decision, DecisionLog, Regret};
use blis_metrics::{Fact, Listener};
use blis_scenario::json::Fields;
use serde_json::{Value, json};
use std::io::{self, Write};
use std::path::PathBuf;

/// For `--format json`.
pub(crate) fn value(regret: &Regret) -> Value {
    let mut fields = Fields::default();
    fields.value("decisions", regret.decisions);
    fields.value("sampled", regret.tried.len());
    if let (Some(share), Some((mean, p90, max))) = (regret.share(), regret.summary()) {
        fields.value("regret_share", share);
        fields.value("regret_mean_ms", mean);
        fields.value("regret_p90_ms", p90);
        fields.value("regret_max_ms", max);
    }
    if let Some(score) = regret.greatest_score_regret() {
        fields.value("score_regret_max", score);
    }
    fields.into_value()
}

/// For people.
pub(crate) fn text(regret: &Regret) -> String {
    let (Some(share), Some((mean, p90, max))) = (regret.share(), regret.summary()) else {
        return "no routing decision could be taken otherwise\n".to_owned();
    };
    let told = format!(
        "{} of {} routing decisions taken otherwise: {:.0} % had a better place; the first token \
         came later\nthan there by {mean:.2} ms in the mean, {p90:.2} ms p90, {max:.2} ms at \
         most\n",
        regret.tried.len(),
        regret.decisions,
        100.0 * share,
    );
    match regret.greatest_score_regret() {
        Some(score) => format!("{told}by the router's own scores: {score:.3} at most\n"),
        None => told,
    }
}

/// `--decisions-out`: one line a routing decision.
pub(crate) struct DecisionRows {
    path: PathBuf,
    output: Output,
    log: DecisionLog,
    /// The first write that failed; a listener cannot stop a run, so it is told at the end.
    failure: Option<io::Error>,
}

impl DecisionRows {
    /// Opens the file `target` for the decisions that `log` hears.
    pub(crate) fn create(target: &Target, log: DecisionLog) -> Result<DecisionRows, Failure> {
        let path = target.given.clone();
        Ok(DecisionRows { path, output: Output::create(target)?, log, failure: None })
    }

    /// Completes the file.
    pub(crate) fn finish(self) -> Result<(), Failure> {
        match self.failure {
            Some(error) => Err(failed(&self.path, &error)),
            None => self.output.finish(),
        }
    }
}

impl Listener for DecisionRows {
    fn hear(&mut self, at: Time, fact: &Fact<'_>) {
        self.log.hear(at, fact);
        for decision in self.log.decisions.drain(..) {
            let written = writeln!(self.output, "{}", line(&decision));
            self.failure = self.failure.take().or(written.err());
        }
    }
}

fn line(decision: &Decision) -> Value {
    let Decision { request, at, chosen, because, score, alternatives } = decision;
    let scored = |instance: u32, score: Option<f64>| match score.filter(|s| s.is_finite()) {
        Some(score) => json!({"instance": instance, "score": score}),
        None => json!({"instance": instance}),
    };
    let others: Vec<Value> =
        alternatives.iter().map(|(other, score)| scored(other.0, *score)).collect();
    json!({
        "request": request.0,
        "at_us": at.as_nanos() / 1_000,
        "chosen": scored(chosen.0, *score),
        "because": because,
        "alternatives": others,
    })
}
