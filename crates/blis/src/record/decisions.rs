//! `--decisions-out`: one line a routing decision, as JSON.

use super::{Lines, Recorder};
use crate::failure::Failure;
use crate::output::Output;
use crate::target::Target;
use blis_lab::counterfactual::{Decision, DecisionLog};
use blis_metrics::{Fact, Listener};
use blis_scenario::json::present;
use serde_json::{Value, json};
use std::io::Write;

/// Opens the file `target` for the decisions that `log` hears.
pub(crate) fn create(target: &Target, mut log: DecisionLog) -> Result<Box<dyn Recorder>, Failure> {
    Ok(Lines::recorder(Output::create(target)?, move |out, at, fact: &Fact<'_>| {
        log.hear(at, fact);
        log.decisions.drain(..).try_for_each(|decision| writeln!(out, "{}", line(&decision)))
    }))
}

fn line(decision: &Decision) -> Value {
    let Decision { request, at, chosen, because, score, alternatives } = decision;
    let scored = |instance: u32, score: &Option<f64>| json!({"instance": instance, "score": score});
    let others = alternatives.iter().map(|(other, score)| scored(other.0, score));
    present(json!({
        "request": request.0,
        "at_us": at.as_nanos() / 1_000,
        "chosen": scored(chosen.0, score),
        "because": because,
        "alternatives": others.collect::<Vec<Value>>(),
    }))
}
