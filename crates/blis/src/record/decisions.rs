//! `--decisions-out`: one line a routing decision, as JSON.

use super::{Lines, Recorder};
use crate::failure::Failure;
use crate::output::Output;
use crate::target::Target;
use blis_core::InstanceId;
use blis_lab::counterfactual::{Decision, DecisionLog};
use blis_metrics::{Fact, Listener};
use blis_scenario::json::present;
use serde_json::{Map, Value, json};
use std::io::Write;

/// Opens the file `target` for the decisions that `log` hears.
pub(crate) fn create(target: &Target, mut log: DecisionLog) -> Result<Box<dyn Recorder>, Failure> {
    Ok(Lines::recorder(Output::create(target)?, move |out, at, fact: &Fact<'_>| {
        log.hear(at, fact);
        log.decisions.drain(..).try_for_each(|decision| writeln!(out, "{}", line(&decision)))
    }))
}

fn line(decision: &Decision) -> Value {
    let Decision { request, at, chosen, because, score, alternatives, opinions, fresh } = decision;
    let scored = |instance: InstanceId, score: &Option<f64>| {
        let part = |(scorer, parts): &(&str, Vec<f64>)| {
            ((*scorer).to_owned(), json!(parts[instance.index()]))
        };
        let parts: Map<String, Value> = opinions.iter().map(part).collect();
        let parts = (!parts.is_empty()).then_some(parts);
        json!({"instance": instance.0, "score": score, "scores": parts})
    };
    let others = alternatives.iter().map(|(other, score)| scored(*other, score));
    present(json!({
        "request": request.0,
        "at_us": at.as_nanos() / 1_000,
        "chosen": scored(*chosen, score),
        "chosen_if_fresh": fresh.map(|fresh| fresh.0),
        "because": because,
        "alternatives": others.collect::<Vec<Value>>(),
    }))
}
