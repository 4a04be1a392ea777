//! What a search for capacities found.

mod offers;

use crate::chart::{Axis, Chart, Form, Mark, Point as Dot, Scale as Axes, unique};
use crate::model::{Block, Document, Table, blocks};
use crate::text::{between, dash, grouped, is_share, percent, ranged, ratio_change};
use blis_lab::Metric;
use blis_lab::capacity::{
    Answer, Findings, Found, Judged, Point, Search, Slo, Standing, Subject, Vary,
};
use blis_lab::stats::Estimate;
use blis_lab::verdict::{Effect, Scale, bound, number};
use blis_scenario::Workload;
use blis_scenario::json::present;
use serde_json::{Value, json};

/// What was found.
pub fn document(search: &Search, findings: &Findings) -> Document {
    if search.subjects.iter().any(|subject| subject.rent.is_some()) {
        return offers::document(search, findings, object(search, findings));
    }
    let mut found: Vec<Block> = vec![summary(search, findings).into()];
    found.extend(findings.answers.iter().flat_map(|answer| told(search, answer)));
    let caveats = search.subjects.iter().filter_map(|it| it.plan.latency_caveat.as_deref());
    found.extend(unique(caveats).into_iter().map(|caveat| Block::warning(caveat, "")));
    found.extend(blocks(capacities(search, findings)));
    let slo = search.question.slo.iter().enumerate();
    let curves = slo.filter_map(|(number, slo)| curve(search, findings, number, slo));
    let points = findings.answers.iter().filter(|answer| !answer.points.is_empty());
    let blocks = vec![
        Block::prose(conditions(search, findings)),
        Block::group("Capacity", found),
        Block::group("Curves", blocks(curves)),
        Block::group("Points", blocks(points.map(|answer| table(search, answer)))),
    ];
    Document::new(question(search), blocks, object(search, findings))
}

/// What is asked, in words.
fn question(search: &Search) -> String {
    let slo: Vec<&str> = search.question.slo.iter().map(|slo| slo.text.as_str()).collect();
    let what = match search.question.vary {
        Vary::Rate => "highest rate",
        Vary::Instances => "fewest instances",
    };
    format!("{what} of {} at which {}", search.name, slo.join(" and "))
}

/// How the numbers came about.
fn conditions(search: &Search, findings: &Findings) -> String {
    let Findings { seeds, trials, requests, stretch, warmup, .. } = findings;
    let stretch = match stretch {
        1 => String::new(),
        times => format!(" ({times} times the scenario's number, which was too few)"),
    };
    let warmup = match warmup {
        Some(seconds) if *seconds > 0.0 => {
            format!("; the first {} s of each run are cut as warm-up", number(*seconds))
        }
        _ => String::new(),
    };
    let requests = match requests {
        0 => "no run found a capacity".to_owned(),
        requests => format!("{} requests each", grouped(*requests)),
    };
    let most = search.question.max_seeds;
    let most = if most > seeds.len() { format!(" (at most {most})") } else { String::new() };
    let same = match search.question.vary {
        Vary::Rate => "the same requests at every rate except for their spacing",
        Vary::Instances => "the same requests for every number of instances",
    };
    let about = search.subjects.first().map_or_else(String::new, |it| counts(search, it));
    format!(
        "{} runs: {} seeds{most}, {same}, {requests}{stretch}{warmup}.{about}",
        grouped(*trials as u64),
        seeds.len(),
    )
}

/// What one of the varied value is: a session, or an instance whose machine nobody asked to choose.
fn counts(search: &Search, subject: &Subject) -> String {
    let plan = &subject.plan;
    match (search.question.vary, &plan.workload, &plan.hardware) {
        (Vary::Rate, Workload::Mix(mix), _) => {
            mix.requests_per_arrival().map_or_else(String::new, |each| {
                format!(" A session sends {} requests on average.", bound(each))
            })
        }
        (Vary::Instances, _, Some(gpu)) if subject.rent.is_none() => format!(
            " An instance is {} on {gpu} with {}, {} tokens and {} sequences a step; `--search \
             {gpu}` tries other settings and prices them.",
            plan.model,
            plan.shared(),
            grouped(plan.engine.max_num_scheduled_tokens.into()),
            grouped(plan.engine.max_num_running_reqs.into()),
        ),
        _ => String::new(),
    }
}

/// What the varied value counts.
fn unit(search: &Search) -> &'static str {
    let sessions = search.subjects.first().is_some_and(Subject::counts_sessions);
    match (search.question.vary, sessions) {
        (Vary::Instances, _) => "instances",
        (Vary::Rate, true) => "sessions/s",
        (Vary::Rate, false) => "requests/s",
    }
}

/// One row a strategy.
fn summary(search: &Search, findings: &Findings) -> Table {
    let several = findings.answers.len() > 1;
    let safe = match search.question.vary {
        Vary::Rate => "safe up to",
        Vary::Instances => "safe with",
    };
    let capacity = format!("capacity, {} (95 %)", unit(search));
    let mut header = vec!["strategy".to_owned(), capacity, safe.to_owned()];
    header.extend(several.then(|| format!("against {} (95 %)", findings.answers[0].name)));
    let row = |(answer, ratio): (&Answer, &Option<Estimate>)| {
        let found = match (&answer.found, &answer.estimate) {
            (Found::Never { .. }, _) => "none".to_owned(),
            (Found::TooDear { at }, _) => format!("about {}", bound(*at)),
            (Found::Unlimited { at }, _) => format!("above {}", bound(*at)),
            (Found::Capacity, found) => dash(found.as_ref(), ranged),
        };
        let mut cells = vec![answer.name.clone(), found, dash(answer.safe, bound)];
        cells.extend(several.then(|| ratio.as_ref().map(ratio_change).unwrap_or_default()));
        cells
    };
    Table::new("", header, findings.answers.iter().zip(&findings.ratios).map(row))
}

/// What has to be said about an answer.
fn told(search: &Search, answer: &Answer) -> Vec<Block> {
    let (name, unit) = (&answer.name, unit(search));
    let own = match &answer.found {
        Found::Capacity | Found::TooDear { .. } => None,
        Found::Never { at, why } => Some(Block::warning(
            format!("{name}: SLOs are missed even at {} {unit}: {why}", bound(*at)),
            "relax the SLO: an idle cluster misses it",
        )),
        Found::Unlimited { at } => Some(Block::warning(
            format!("{name}: SLOs are still met at {} {unit}, so there is no limit", bound(*at)),
            "also bound completions, e.g. `completed >= 0.99 * offered`",
        )),
    };
    let doubts = answer.doubts.iter().map(|doubt| Block::warning(format!("{name}: {doubt}"), ""));
    own.into_iter().chain(doubts).collect()
}

/// The points of one strategy.
fn table(search: &Search, answer: &Answer) -> Table {
    let header = std::iter::once(unit(search).to_owned())
        .chain(search.question.slo.iter().map(|slo| slo.text.clone()))
        .chain(["completed", "load", "verdict"].map(str::to_owned));
    let row = |point: &Point| {
        let load = match point.unstable {
            0 => "stable".to_owned(),
            all if all == point.runs => "overloaded".to_owned(),
            some => format!("overloaded in {some} of {}", point.runs),
        };
        std::iter::once(bound(point.value))
            .chain(point.slo.iter().map(judged))
            .chain([percent(point.completed), load, point.standing.name().to_owned()])
            .collect::<Vec<_>>()
    };
    Table::new(answer.name.clone(), header, answer.points.iter().map(row))
}

/// The number that an SLO bounds, and a mark if it does not surely hold.
fn judged(judged: &Judged) -> String {
    let mark = match judged.holds {
        Some(true) => "",
        Some(false) => ", no",
        None => ", unclear",
    };
    measured(&judged.effect) + mark
}

/// The number that an SLO bounds with its interval, in the unit of its bound; a share is a
/// percentage.
fn measured(effect: &Effect) -> String {
    let is_value = effect.scale == Scale::Value;
    let share = is_value && Metric::parse(&effect.left).is_ok_and(|metric| is_share(&metric));
    let unit = match effect.unit {
        _ if share => "%",
        _ if effect.scale == Scale::Ratio => "times",
        unit => unit,
    };
    let shown = |value: f64| {
        if share { number(100.0 * value.clamp(0.0, 1.0)) } else { number(value) }
    };
    dash(effect.estimate, |found| {
        let same = shown(found.low) == shown(found.high);
        let value = if same { shown(found.mean) } else { between(&found, shown) };
        format!("{value} {unit}").trim_end().to_owned()
    })
}

/// The capacities, with intervals.
fn capacities(search: &Search, findings: &Findings) -> Option<Chart> {
    let point = |answer: &Answer| {
        let Estimate { mean, low, high, .. } = answer.estimate?;
        Some(Dot::named(&answer.name, mean).between(low, high))
    };
    let points = findings.answers.iter().filter_map(point).collect();
    let axes = [Axis::new("strategy", Axes::Names), Axis::new(unit(search), Axes::Fit)];
    Chart::new(format!("capacity, {}", unit(search)), Form::Rows, axes, points)
}

/// One SLO over what is varied.
fn curve(search: &Search, findings: &Findings, number: usize, slo: &Slo) -> Option<Chart> {
    const NOTE: &str = "Means over seeds with intervals; a full dot meets all SLOs with \
                        confidence; the dashed line is the bound.";
    let points = findings.answers.iter().flat_map(|answer| {
        let dot = |point: &Point| {
            let Estimate { mean, low, high, .. } = point.slo[number].effect.estimate?;
            let mark = if point.standing == Standing::Meets { Mark::Dot } else { Mark::Ring };
            let dot = Dot::at(point.value, mean).between(low, high).marked(mark);
            Some(dot.of(&answer.name).labelled(point.standing.name()))
        };
        answer.points.iter().filter_map(dot)
    });
    let effects = findings.answers.iter().flat_map(|answer| &answer.points);
    let effect = effects.map(|point| &point.slo[number].effect).next()?;
    let axes = [Axis::new(unit(search), Axes::Tight), Axis::new(effect.unit, Axes::Fit)];
    let chart = Chart::new(&slo.text, Form::Lines, axes, points.collect())?;
    Some(chart.bounded(effect.at_most.or(effect.at_least)).noted(NOTE))
}

/// What was found, for programs.
fn object(search: &Search, findings: &Findings) -> Value {
    let question = &search.question;
    let answers = findings.answers.iter().zip(&findings.ratios);
    present(json!({
        "scenario": search.name,
        "vary": question.vary.name(),
        "unit": unit(search),
        "slo": question.slo.iter().map(|slo| &slo.text).collect::<Vec<_>>(),
        "seeds": findings.seeds,
        "max_seeds": question.max_seeds,
        "level": findings.level,
        "warmup_s": findings.warmup,
        "requests": findings.requests,
        "stretch": findings.stretch,
        "trials": findings.trials,
        "strategies": answers
            .map(|(it, ratio)| answer(search, it, ratio.as_ref()))
            .collect::<Vec<_>>(),
    }))
}

fn answer(search: &Search, answer: &Answer, ratio: Option<&Estimate>) -> Value {
    let (found, easiest, why, hardest) = match &answer.found {
        Found::Capacity => ("capacity", None, None, None),
        Found::Never { at, why } => ("never", Some(at), Some(why), None),
        Found::TooDear { at } => ("too dear", None, None, Some(at)),
        Found::Unlimited { at } => ("unlimited", None, None, Some(at)),
    };
    json!({
        "strategy": answer.name,
        "found": found,
        "easiest": easiest,
        "why": why,
        "hardest": hardest,
        "capacity": answer.estimate,
        "safe": answer.safe,
        "values": answer.values,
        "doubts": answer.doubts,
        "points": answer.points.iter().map(|it| point(search, it)).collect::<Vec<_>>(),
        "ratio": ratio,
    })
}

fn point(search: &Search, point: &Point) -> Value {
    let judged = |one: &Judged| json!({"holds": one.holds, "estimate": one.effect.estimate});
    json!({
        search.question.vary.name(): point.value,
        "verdict": point.standing.name(),
        "stable": point.is_stable(),
        "runs": point.runs,
        "unstable_runs": point.unstable,
        "too_short_runs": point.short,
        "completed": point.completed,
        "slo": point.slo.iter().map(judged).collect::<Vec<_>>(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_bounded_has_its_unit_and_shares_are_percentages_of_at_most_100() {
        let effect = |left: &str, unit: &'static str, [mean, low, high]: [f64; 3]| Effect {
            left: left.to_owned(),
            right: String::new(),
            unit,
            scale: Scale::Value,
            estimate: Some(Estimate { mean, low, high, values: 5 }),
            at_least: None,
            at_most: None,
            missing: 0,
        };
        let shown = |left, unit, values| measured(&effect(left, unit, values));
        assert_eq!(shown("ttft_p99", "ms", [812.0, 790.0, 834.0]), "812 (790 to 834) ms");
        assert_eq!(shown("slo_attainment", "", [0.99, 0.97, 1.01]), "99 (97 to 100) %");
        assert_eq!(shown("batch.slo_attainment", "", [0.5, -0.1, 1.0]), "50 (0 to 100) %");
        assert_eq!(shown("completed", "", [7.0, 7.0, 7.0]), "7");
    }
}
