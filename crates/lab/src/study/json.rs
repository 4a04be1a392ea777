//! All that a study found, as one JSON object.

use super::{Cell, Findings, Study};
use crate::hypothesis::Hypothesis;
use crate::verdict::{Effect, Verdict};
use blis_scenario::json::Fields;
use serde_json::Value;

/// The object.
pub fn object(study: &Study, findings: &Findings) -> Value {
    let cells =
        study.cells.iter().enumerate().map(|(number, one)| cell(study, findings, number, one));
    let cells: Vec<Value> = cells.collect();
    let seeds = findings.rows.first().map(Vec::as_slice).unwrap_or_default();
    let mut all = Fields::default();
    all.text("question", study.question.clone());
    all.value("seeds", seeds.iter().map(|row| row.run.seed).collect::<Vec<u64>>());
    all.count("max_seeds", study.max_seeds as u64);
    all.number("warmup_s", findings.warmup);
    if let Some(discussion) = &study.discussion {
        all.text("discussion", discussion.clone());
    }
    all.value("cells", cells);
    let verdicts = study.hypotheses.iter().zip(&findings.verdicts);
    all.value(
        "hypotheses",
        verdicts.map(|(asked, found)| judged(asked, found)).collect::<Vec<_>>(),
    );
    all.into_value()
}

fn cell(study: &Study, findings: &Findings, number: usize, cell: &Cell) -> Value {
    let mut fields = Fields::default();
    for (factor, level) in study.factors.iter().zip(&cell.levels) {
        fields.text(factor, level.clone());
    }
    let first = findings.rows[number].first();
    fields
        .text("scenario_hash", first.map_or_else(String::new, |row| row.run.scenario_hash.clone()));
    fields.text("load", findings.load(number));
    for metric in &study.metrics {
        let mut numbers = Fields::default();
        let mean = findings.mean(number, metric);
        numbers.number("mean", mean.map(|(mean, _)| mean));
        numbers.number("half_width", mean.and_then(|(_, half_width)| half_width));
        numbers.value("values", findings.values(number, metric));
        fields.value(&metric.name(), numbers.into_value());
    }
    fields.into_value()
}

fn judged(hypothesis: &Hypothesis, verdict: &Verdict) -> Value {
    let mut fields = Fields::default();
    fields.text("name", hypothesis.name.clone());
    fields.text("claim", hypothesis.text.clone());
    if let Some(because) = &hypothesis.because {
        fields.text("because", because.clone());
    }
    fields.text("verdict", verdict.outcome.name());
    fields.text("why", verdict.why.clone());
    fields.count("seeds", verdict.seeds as u64);
    fields.number("level", Some(verdict.level));
    fields.value("effects", effects(verdict));
    fields.into_value()
}

/// The effects of a verdict, with intervals.
pub fn effects(verdict: &Verdict) -> Value {
    verdict.effects.iter().map(effect).collect::<Vec<Value>>().into()
}

fn effect(effect: &Effect) -> Value {
    let mut fields = Fields::default();
    fields.text("left", effect.left.clone());
    fields.text("right", effect.right.clone());
    fields.text("scale", effect.scale.name());
    if let Some(found) = effect.estimate {
        fields.value("estimate", &found);
    }
    fields.number("at_least", effect.at_least);
    fields.number("at_most", effect.at_most);
    fields.into_value()
}
