//! All that a search found, as one JSON object.

use super::{
    Call, Chosen, Findings, Front, Group, Influence, Number, Plateau, Refusal, Rival, Search,
    Sensitivity,
};
use blis_scenario::json::present;
use serde_json::{Map, Value, json};

/// The object.
pub fn object(search: &Search, findings: &Findings) -> Value {
    let workloads = search.workloads();
    let sensitivities = search.objectives.iter().zip(&findings.sensitivities);
    let sensitivities: Map<String, Value> =
        sensitivities.map(|(one, found)| (one.number.name(), sensitivity(found))).collect();
    let recommended = |all: &[Chosen], calls: &[Call], first: usize| {
        let all = all.iter().enumerate();
        let of = all.map(|(k, one)| chosen(search, findings, (one, &calls[one.call]), first + k));
        of.collect::<Vec<_>>()
    };
    let control = findings.control.as_ref().map(|control| {
        let first = 1 + findings.chosen.len();
        json!({
            "recommended": recommended(&control.chosen, &control.calls, first),
            "front": control.front.as_ref().map(front),
            "calls": calls(search, &control.calls),
        })
    });
    present(json!({
        "question": search.question,
        "discussion": search.discussion,
        "workloads": Some(&workloads).filter(|names| !names.is_empty()),
        "engine": search.budget.engine.name(),
        "engine_seed": search.budget.seed,
        "search_seeds": search.budget.seeds,
        "fresh_seeds": search.fresh_seeds(),
        "guards": {"refused": search.guards.refused, "class_order": search.guards.class_order},
        "hand_set": point(search, 0, &search.points.candidates[0].hand, &findings.hand),
        "fresh_hand_set": fresh(search, findings, 0),
        "recommended": recommended(&findings.chosen, &findings.calls, 1),
        "rivals": findings.rivals.iter().map(rival).collect::<Vec<_>>(),
        "needless_refusals": findings.needless_refusals.iter().map(refusal).collect::<Vec<_>>(),
        "taken_back": findings.taken_back.iter().map(taken_back).collect::<Vec<_>>(),
        "front": findings.front.as_ref().map(front),
        "sensitivity": sensitivities,
        "calls": calls(search, &findings.calls),
        "control": control,
    }))
}

fn calls(search: &Search, calls: &[Call]) -> Vec<Value> {
    let call = |call: &Call| {
        let mut fields = point(search, call.candidate, &call.settings, &call.means);
        fields["scores"] = json!(call.scores);
        fields["feasible"] = json!(call.feasible);
        fields["seeds"] = json!(call.seeds);
        fields["refused"] = json!(call.refused);
        fields
    };
    calls.iter().map(call).collect()
}

fn point(
    search: &Search,
    candidate: usize,
    settings: &[(String, String)],
    means: &[Option<f64>],
) -> Value {
    let parameter = |(name, value): &(String, String)| {
        let number = value.parse::<f64>().map(|number| json!(number));
        (name.clone(), number.unwrap_or_else(|_| json!(value)))
    };
    let mut fields = json!({
        "strategy": search.points.candidates[candidate].name(),
        "parameters": settings.iter().map(parameter).collect::<Map<_, _>>(),
    });
    for (objective, mean) in search.objectives.iter().zip(means) {
        fields[objective.number.name()] = json!(mean);
    }
    fields
}

fn chosen(
    search: &Search,
    findings: &Findings,
    (one, call): (&Chosen, &Call),
    cell: usize,
) -> Value {
    json!({
        "call": one.call + 1,
        "legal": one.legal,
        "search": point(search, one.candidate, &one.settings, &call.means),
        "on_bound": search.points.on_bound(one.candidate, &one.settings),
        "fresh": fresh(search, findings, cell),
    })
}

/// The objectives and constraints of a cell on fresh seeds.
fn fresh(search: &Search, findings: &Findings, cell: usize) -> Map<String, Value> {
    let objectives = search.objectives.iter().map(|objective| &objective.number);
    let objectives = objectives.map(|number| (number.name(), measured(findings, cell, number)));
    let constraint = |index: usize| {
        let found = findings.outcome(search, index, cell);
        json!({
            "constraint": search.constraints[index].text,
            "value": found.value,
            "limit": found.limit,
            "holds": found.holds.map(|(holds, _)| holds),
            "sure": found.holds.map(|(_, sure)| sure),
        })
    };
    let constraints: Vec<Value> = (0..search.constraints.len()).map(constraint).collect();
    let workload = |(index, name): (usize, &str)| {
        let metrics = search.metrics().into_iter().map(|metric| {
            let number = Number { metric, tenant: None, workload: Some((index, name.to_owned())) };
            (metric.name(), measured(findings, cell, &number))
        });
        (name.to_owned(), metrics.collect())
    };
    let workloads: Map<String, Value> =
        search.workloads().into_iter().enumerate().map(workload).collect();
    let workloads = (!workloads.is_empty()).then(|| ("workloads".to_owned(), json!(workloads)));
    let group = |group: Group| {
        let numbers = Group::NUMBERS.map(|name| group.number(name));
        let numbers = Group::NUMBERS.into_iter().zip(numbers);
        let numbers = numbers.map(|(name, number)| (name, measured(findings, cell, &number)));
        let mut fields: Map<String, Value> =
            numbers.map(|(name, measured)| (name.to_owned(), measured)).collect();
        fields.insert("requests_of".to_owned(), json!(group.name()));
        if let Some((_, name)) = &group.workload {
            fields.insert("workload".to_owned(), json!(name));
        }
        fields
    };
    let groups: Vec<_> = search.groups(&findings.fresh[0]).into_iter().map(group).collect();
    let constraints =
        [("constraints".to_owned(), json!(constraints)), ("groups".to_owned(), json!(groups))];
    objectives.chain(constraints).chain(workloads).collect()
}

/// A number of a cell on fresh seeds, beside that of the hand-set point.
fn measured(findings: &Findings, cell: usize, number: &Number) -> Value {
    let paired = findings.paired(cell, number).filter(|_| cell > 0);
    json!({
        "mean": findings.mean(cell, number).map(|(mean, _)| mean),
        "values": findings.values(cell, number),
        "difference": paired.map(|paired| paired.difference),
        "ratio": paired.and_then(|paired| paired.ratio),
    })
}

fn refusal(refusal: &Refusal) -> Value {
    let Refusal { workload, class, refused } = refusal;
    json!({"workload": workload, "class": class.name(), "refused": refused})
}

fn taken_back((call, guard): &(usize, String)) -> Value {
    json!({"call": call + 1, "breaks": guard})
}

fn rival(rival: &Rival) -> Value {
    json!({
        "call": rival.call + 1,
        "seeds": rival.seeds,
        "legal": rival.legal,
        "worse": rival.worse,
    })
}

fn front(front: &Front) -> Value {
    json!({
        "calls": front.points.iter().map(|call| call + 1).collect::<Vec<usize>>(),
        "hypervolume": front.hypervolume,
        "hypervolume_of_hand_set": front.of_hand,
    })
}

fn sensitivity(found: &Sensitivity) -> Value {
    let influence = |one: &Influence| {
        let words = |options: &[blis_core::Value]| {
            json!(options.iter().map(ToString::to_string).collect::<Vec<_>>())
        };
        let (good, open) = match &one.plateau {
            Plateau::Absent => (Value::Null, Value::Null),
            Plateau::Range { within_noise, not_worse } => (json!(within_noise), json!(not_worse)),
            Plateau::Options { within_noise, not_worse } => (words(within_noise), words(not_worse)),
        };
        json!({
            "parameter": one.name,
            "first": one.first.value,
            "first_error": one.first.error,
            "total": one.total.value,
            "total_error": one.total.error,
            "as_good": good,
            "not_known_to_be_worse": open,
        })
    };
    found.dimensions.iter().map(influence).collect()
}
