//! All that a search found, as one JSON object.

use super::{Call, Chosen, Findings, Front, Influence, Number, Plateau, Search, Sensitivity};
use blis_scenario::json::Fields;
use serde_json::Value;

/// The object.
pub fn object(search: &Search, findings: &Findings) -> Value {
    let mut all = Fields::default();
    all.text("question", search.question.clone());
    if let Some(discussion) = &search.discussion {
        all.text("discussion", discussion.clone());
    }
    if !search.workloads().is_empty() {
        all.value("workloads", search.workloads());
    }
    all.text("engine", search.budget.engine.name());
    all.count("engine_seed", search.budget.seed);
    all.count("search_seeds", search.budget.seeds as u64);
    all.value("fresh_seeds", search.fresh_seeds());
    all.value("hand_set", point(search, 0, &search.points.candidates[0].hand, &findings.hand));
    all.value("fresh_hand_set", fresh(search, findings, 0));
    let recommended = findings.chosen.iter().enumerate();
    all.value(
        "recommended",
        recommended.map(|(k, one)| chosen(search, findings, one, k + 1)).collect::<Vec<_>>(),
    );
    if let Some(found) = &findings.front {
        all.value("front", front(found));
    }
    let sensitivities = search.objectives.iter().zip(&findings.sensitivities);
    let mut by_objective = Fields::default();
    for (objective, found) in sensitivities {
        by_objective.value(&objective.number.name(), sensitivity(found));
    }
    all.value("sensitivity", by_objective.into_value());
    all.value("calls", calls(search, &findings.calls));
    if let Some(control) = &findings.control {
        let first = 1 + findings.chosen.len();
        let of = control.chosen.iter().enumerate();
        let mut fields = Fields::default();
        fields.value(
            "recommended",
            of.map(|(k, one)| of_control(search, findings, one, first + k)).collect::<Vec<_>>(),
        );
        if let Some(found) = &control.front {
            fields.value("front", front(found));
        }
        fields.value("calls", calls(search, &control.calls));
        all.value("control", fields.into_value());
    }
    all.into_value()
}

fn calls(search: &Search, calls: &[Call]) -> Vec<Value> {
    let call = |call: &Call| {
        let mut fields = match point(search, call.candidate, &call.settings, &call.means) {
            Value::Object(fields) => fields,
            _ => serde_json::Map::new(),
        };
        fields.insert("scores".to_owned(), call.scores.clone().into());
        fields.insert("feasible".to_owned(), call.feasible.into());
        fields.insert("seeds".to_owned(), call.seeds.into());
        if let Some(why) = &call.refused {
            fields.insert("refused".to_owned(), why.clone().into());
        }
        Value::Object(fields)
    };
    calls.iter().map(call).collect()
}

fn point(
    search: &Search,
    candidate: usize,
    settings: &[(String, String)],
    means: &[Option<f64>],
) -> Value {
    let mut fields = Fields::default();
    fields.text("strategy", search.points.candidates[candidate].name());
    let mut parameters = Fields::default();
    for (name, value) in settings {
        match value.parse::<f64>() {
            Ok(number) => parameters.number(name, Some(number)),
            Err(_) => parameters.text(name, value.clone()),
        }
    }
    fields.value("parameters", parameters.into_value());
    for (objective, mean) in search.objectives.iter().zip(means) {
        fields.number(&objective.number.name(), *mean);
    }
    fields.into_value()
}

fn chosen(search: &Search, findings: &Findings, one: &Chosen, cell: usize) -> Value {
    recommended(search, findings, (one, &findings.calls[one.call]), cell)
}

fn of_control(search: &Search, findings: &Findings, one: &Chosen, cell: usize) -> Value {
    let calls = findings.control.as_ref().map_or(&findings.calls, |control| &control.calls);
    recommended(search, findings, (one, &calls[one.call]), cell)
}

fn recommended(
    search: &Search,
    findings: &Findings,
    (one, call): (&Chosen, &Call),
    cell: usize,
) -> Value {
    let mut fields = Fields::default();
    fields.count("call", one.call as u64 + 1);
    fields.value("search", point(search, one.candidate, &one.settings, &call.means));
    if let Some(expected) = &one.expected {
        let mut score = Fields::default();
        score.number("value", Some(expected.value));
        score.number("low", Some(expected.low));
        score.number("high", Some(expected.high));
        fields.value("expected_score", score.into_value());
    }
    fields.number("feasibility", one.feasibility);
    fields.value("fresh", fresh(search, findings, cell));
    fields.into_value()
}

/// The objectives and constraints of a cell on fresh seeds.
fn fresh(search: &Search, findings: &Findings, cell: usize) -> Value {
    let mut all = Fields::default();
    for one in &search.objectives {
        all.value(&one.number.name(), measured(findings, cell, &one.number));
    }
    let constraint = |index: usize| {
        let found = findings.outcome(search, index, cell);
        let mut fields = Fields::default();
        fields.text("constraint", search.constraints[index].text.clone());
        fields.number("value", found.value);
        fields.number("limit", found.limit);
        if let Some((holds, sure)) = found.holds {
            fields.value("holds", holds);
            fields.value("sure", sure);
        }
        fields.into_value()
    };
    let constraints: Vec<Value> = (0..search.constraints.len()).map(constraint).collect();
    all.value("constraints", constraints);
    let mut workloads = Fields::default();
    for (index, name) in search.workloads().into_iter().enumerate() {
        let mut fields = Fields::default();
        for metric in search.metrics() {
            let number = Number { metric, workload: Some((index, name.to_owned())) };
            fields.value(&metric.name(), measured(findings, cell, &number));
        }
        workloads.value(name, fields.into_value());
    }
    if !search.workloads().is_empty() {
        all.value("workloads", workloads.into_value());
    }
    all.into_value()
}

/// A number of a cell on fresh seeds, beside that of the hand-set point.
fn measured(findings: &Findings, cell: usize, number: &Number) -> Value {
    let mut fields = Fields::default();
    fields.number("mean", findings.mean(cell, number).map(|(mean, _)| mean));
    fields.value("values", findings.values(cell, number));
    if let Some(paired) = findings.paired(cell, number).filter(|_| cell > 0) {
        fields.value("difference", &paired.difference);
        if let Some(ratio) = &paired.ratio {
            fields.value("ratio", ratio);
        }
    }
    fields.into_value()
}

fn front(front: &Front) -> Value {
    let mut fields = Fields::default();
    fields.value("calls", front.points.iter().map(|call| call + 1).collect::<Vec<usize>>());
    fields.number("hypervolume", Some(front.hypervolume));
    fields.number("hypervolume_of_hand_set", Some(front.of_hand));
    fields.into_value()
}

fn sensitivity(found: &Sensitivity) -> Value {
    let influence = |one: &Influence| {
        let mut fields = Fields::default();
        fields.text("parameter", one.name.clone());
        fields.number("first", Some(one.first.value));
        fields.number("first_error", Some(one.first.error));
        fields.number("total", Some(one.total.value));
        fields.number("total_error", Some(one.total.error));
        match &one.plateau {
            Plateau::Absent => {}
            Plateau::Range { within_noise, not_worse } => {
                fields.value("as_good", vec![within_noise.0, within_noise.1]);
                fields.value("not_known_to_be_worse", vec![not_worse.0, not_worse.1]);
            }
            Plateau::Options { within_noise, not_worse } => {
                let words = |options: &[blis_core::Value]| {
                    options.iter().map(ToString::to_string).collect::<Vec<_>>()
                };
                fields.value("as_good", words(within_noise));
                fields.value("not_known_to_be_worse", words(not_worse));
            }
        }
        fields.into_value()
    };
    found.dimensions.iter().map(influence).collect::<Vec<Value>>().into()
}
