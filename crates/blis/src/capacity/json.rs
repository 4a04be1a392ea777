//! `--format json`: all that a search for capacities has found, as one object.

use super::tables::unit;
use blis_lab::capacity::{Answer, Findings, Found, Judged, Point, Search};
use blis_scenario::json::Fields;
use serde_json::Value;

/// The object.
pub(super) fn object(search: &Search, findings: &Findings) -> Value {
    let mut all = Fields::default();
    all.text("scenario", search.name.clone());
    all.text("vary", search.question.vary.name());
    all.text("unit", unit(search));
    let slo = search.question.slo.iter().map(|slo| slo.text.clone());
    all.value("slo", slo.collect::<Vec<String>>());
    all.value("seeds", findings.seeds.clone());
    all.count("max_seeds", search.question.max_seeds as u64);
    all.number("level", Some(findings.level));
    all.number("warmup_s", findings.warmup);
    all.count("requests", findings.requests);
    all.count("stretch", findings.stretch);
    all.count("trials", findings.trials as u64);
    let answers = findings.answers.iter().zip(&findings.ratios);
    let answers = answers.map(|(one, ratio)| {
        let mut fields = answer(search, one);
        if let Some(ratio) = ratio {
            fields.value("ratio", ratio);
        }
        fields.into_value()
    });
    all.value("strategies", answers.collect::<Vec<Value>>());
    all.into_value()
}

fn answer(search: &Search, answer: &Answer) -> Fields {
    let mut fields = Fields::default();
    fields.text("strategy", answer.name.clone());
    match &answer.found {
        Found::Capacity => fields.text("found", "capacity"),
        Found::Never { at, why } => {
            fields.text("found", "never");
            fields.number("easiest", Some(*at));
            fields.text("why", why.clone());
        }
        Found::Unlimited { at } => {
            fields.text("found", "unlimited");
            fields.number("hardest", Some(*at));
        }
    }
    if let Some(found) = &answer.estimate {
        fields.value("capacity", found);
    }
    fields.number("safe", answer.safe);
    fields.value("values", answer.values.clone());
    fields.value("doubts", answer.doubts.clone());
    let points = answer.points.iter().map(|one| point(search, one));
    fields.value("points", points.collect::<Vec<Value>>());
    fields
}

fn point(search: &Search, point: &Point) -> Value {
    let mut fields = Fields::default();
    fields.number(search.question.vary.name(), Some(point.value));
    fields.text("verdict", point.standing.name());
    fields.value("stable", point.is_stable());
    fields.count("runs", point.runs as u64);
    fields.count("unstable_runs", point.unstable as u64);
    fields.count("too_short_runs", point.short as u64);
    fields.number("completed", point.completed);
    fields.value("slo", point.slo.iter().map(judged).collect::<Vec<Value>>());
    fields.into_value()
}

fn judged(judged: &Judged) -> Value {
    let mut fields = Fields::default();
    if let Some(holds) = judged.holds {
        fields.value("holds", holds);
    }
    if let Some(found) = &judged.effect.estimate {
        fields.value("estimate", found);
    }
    fields.into_value()
}
