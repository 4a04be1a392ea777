//! All that a study found, as one JSON object.

use super::{Cell, Findings, NeedlessGate, Study};
use crate::hypothesis::Hypothesis;
use crate::metric::Metric;
use crate::verdict::{Effect, Verdict};
use blis_scenario::json::present;
use serde_json::{Map, Value, json};

/// The object.
pub fn object(study: &Study, findings: &Findings) -> Value {
    let cells = study.cells.iter().enumerate();
    let verdicts = study.hypotheses.iter().zip(&findings.verdicts);
    present(json!({
        "question": study.question,
        "seeds": study.first_seeds(findings.seeds()),
        "max_seeds": study.max_seeds,
        "warmup_s": findings.lengths.warmup,
        "discussion": study.discussion,
        "cells": cells.map(|(at, one)| cell(study, findings, at, one)).collect::<Vec<_>>(),
        "needless_gates": gates(study, findings),
        "hypotheses": verdicts.map(|(asked, found)| judged(asked, found)).collect::<Vec<_>>(),
    }))
}

fn cell(study: &Study, findings: &Findings, number: usize, cell: &Cell) -> Map<String, Value> {
    let first = findings.rows[number].first();
    let hash = first.map_or("", |row| row.run.scenario_hash.as_str());
    let metric = |metric: &Metric| {
        let mean = findings.mean(number, metric);
        let numbers = json!({
            "mean": mean.map(|(mean, _)| mean),
            "low": mean.and_then(|(_, interval)| Some(interval?.0)),
            "high": mean.and_then(|(_, interval)| Some(interval?.1)),
            "values": findings.values(number, metric),
        });
        (metric.name(), numbers)
    };
    let levels = study.factors.iter().zip(&cell.levels);
    let levels = levels.map(|(factor, level)| (factor.clone(), json!(level)));
    let state = [("scenario_hash", hash), ("load", study.load(findings, number))];
    let state = state.map(|(name, value)| (name.to_owned(), json!(value)));
    let tuned = cell.tuned().map(|strategy| ("tuned".to_owned(), json!(strategy)));
    levels.chain(state).chain(tuned).chain(study.metrics.iter().map(metric)).collect()
}

/// The gates that refuse requests which could be served.
fn gates(study: &Study, findings: &Findings) -> Vec<Value> {
    let levels = |cell: usize| json!(study.cells[cell].levels);
    let gate = |gate: NeedlessGate| {
        json!({
            "cell": levels(gate.cell),
            "class": gate.class.name(),
            "refused": gate.refused,
            "served_in": levels(gate.served_in),
        })
    };
    study.needless_gates(findings).into_iter().map(gate).collect()
}

fn judged(hypothesis: &Hypothesis, verdict: &Verdict) -> Value {
    json!({
        "name": hypothesis.name,
        "claim": hypothesis.text,
        "because": hypothesis.because,
        "verdict": verdict.outcome.name(),
        "why": verdict.why,
        "seeds": verdict.seeds,
        "level": verdict.level,
        "effects": effects(verdict),
    })
}

/// The effects of a verdict, with intervals.
pub fn effects(verdict: &Verdict) -> Value {
    let effect = |effect: &Effect| {
        json!({
            "left": effect.left,
            "right": effect.right,
            "scale": effect.scale.name(),
            "estimate": effect.estimate,
            "at_least": effect.at_least,
            "at_most": effect.at_most,
        })
    };
    present(verdict.effects.iter().map(effect).collect())
}
