//! What a search found: the recommended point beside the hand-set one, on fresh seeds.

mod charts;
pub(crate) mod tables;

use crate::model::{Block, Document, blocks};
use crate::text::{change, dash, percent, titled};
use blis_core::math::exp;
use blis_lab::Metric;
use blis_lab::optimize::{Candidate, Chosen, Findings, Number, Objective, Refusal, Search, json};
use blis_lab::verdict::number;

/// A longer table of classes and tenants is a detail.
const MOST_COST_ROWS: usize = 64;
/// What there is to say of a search without a legal point.
pub const NONE_MET: &str = "no point that was measured met the constraints";

/// What `search`, which stands in the file `file`, found.
pub fn document(search: &Search, findings: &Findings, file: Option<&str>) -> Document {
    let mut found = Vec::new();
    let mut long = Vec::new();
    if !findings.is_feasible() && !findings.chosen.is_empty() {
        found.push(Block::warning(NONE_MET, "loosen them, or search elsewhere"));
    }
    found.extend(findings.needless_refusals.iter().map(needless));
    found.extend(findings.taken_back.iter().map(taken_back));
    match &findings.chosen[..] {
        [] => found.push(Block::prose("No point meets the constraints, so none is recommended.")),
        [chosen] if search.objectives.len() == 1 => {
            found.push(tables::outcome(search, findings).into());
            found.extend(blocks(tables::by_workload(search, findings)));
            found.extend(tables::constraints(search, findings).map(Into::into));
            found.extend(verdict(search, chosen));
            let costs = tables::costs(search, findings);
            let is_long = costs.rows.len() > MOST_COST_ROWS;
            (if is_long { &mut long } else { &mut found }).push(costs.into());
            found.push(tables::parameters(search, findings, chosen).into());
            found.extend(tables::rivals(search, findings).map(Into::into));
        }
        _ => {
            found.push(tables::front(search, findings).into());
            found.extend(blocks(tables::by_workload(search, findings)));
            found.push(Block::List(front(search, findings)));
            found.extend(volume(search, findings).map(Block::Prose));
            found.push(tables::shares(search, findings).into());
        }
    }
    let mut progress = blocks(charts::progress(search, findings));
    if search.objectives.len() == 1 {
        progress.insert(0, tables::convergence(search, findings).into());
    }
    let discussion = search.discussion.iter().map(Block::prose);
    let mut points: Vec<Block> = vec![tables::points(search, findings).into()];
    points.extend(file.map(|file| Block::Code(format!("blis optimize {file}"))));
    let blocks = vec![
        Block::prose(conditions(search, findings)),
        Block::group("Result", found),
        Block::folded("What it costs whom", long),
        Block::group("Discussion", discussion.collect()),
        Block::group("Progress of the search", progress),
        Block::group("Front", blocks(charts::fronts(search, findings))),
        Block::group("Workloads", blocks(charts::by_workload(search, findings))),
        Block::group("Constraints", blocks(charts::constraints(search, findings))),
        Block::group("Importance of parameters", blocks(charts::importance(search, findings))),
        Block::group("Equally good ranges", blocks(charts::ranges(search, findings))),
        Block::folded("All points", points),
    ];
    Document::new(search.question.clone(), blocks, json::object(search, findings))
}

/// What came of it, in a few words: the change on fresh seeds.
pub fn gist(search: &Search, findings: &Findings) -> String {
    match &findings.chosen[..] {
        [] => "no point meets the constraints".to_owned(),
        [_] if search.objectives.len() == 1 => {
            let number = &search.objectives[0].number;
            format!("{} {}", number.name(), shown_change(findings, 1, number))
        }
        points => format!("a front of {} points", points.len()),
    }
}

/// What a number is called, with its unit.
pub fn heading(number: &Number) -> String {
    titled(number.name(), number.metric.unit())
}

/// How `number` in a cell of the fresh runs compares with the hand-set point.
pub fn shown_change(findings: &Findings, cell: usize, number: &Number) -> String {
    dash(findings.paired(cell, number), |paired| change(&paired))
}

/// `metric` in each of the workloads.
pub fn by_workload(search: &Search, metric: Metric) -> Vec<Number> {
    let number = |(index, name): (usize, &str)| {
        let workload = Some((index, name.to_owned()));
        Number { metric, tenant: None, workload }
    };
    search.workloads().into_iter().enumerate().map(number).collect()
}

fn conditions(search: &Search, findings: &Findings) -> String {
    let names: Vec<&str> = search.points.candidates.iter().map(Candidate::name).collect();
    let budget = &search.budget;
    let of = |is: &dyn Fn(&blis_lab::optimize::Call) -> bool| {
        findings.calls.iter().filter(|call| is(call)).count()
    };
    let met = of(&|call| call.is_usable());
    let refused = match of(&|call| call.refused.is_some()) {
        0 => String::new(),
        count => format!(", {count} were invalid scenarios"),
    };
    let dropped = match of(&|call| call.is_dropped(budget.seeds)) {
        0 => String::new(),
        count => format!(" ({count} stopped after one, being clearly worse)"),
    };
    let on = match search.workloads()[..] {
        [] => String::new(),
        ref names => format!(" on {}", names.join(", ")),
    };
    format!(
        "{}: {} points of {} parameters, {} seeds each{dropped}{on}, engine {}; {met} met the \
         constraints{refused}. Confirmed on {} fresh seeds; means have 95 % intervals.",
        names.join(", "),
        findings.calls.len(),
        search.points.space.len(),
        budget.seeds,
        budget.engine.name(),
        findings.fresh_seeds()
    )
}

/// A gate of the hand-set point that refuses what could be served.
fn needless(refusal: &Refusal) -> Block {
    let at = refusal.workload.as_ref().map_or_else(String::new, |name| format!(" on {name}"));
    let (share, class) = (percent(refusal.refused), refusal.class.name());
    let text = format!("the hand-set point refuses {share} of the {class} requests{at}");
    Block::warning(
        text,
        "without its gate it serves everybody: the gate refuses what could be served",
    )
}

/// What was not recommended because it would do harm.
fn taken_back((call, guard): &(usize, String)) -> Block {
    let text = format!("call {} does harm on fresh seeds: `{guard}` fails", call + 1);
    Block::warning(
        text,
        "it is not recommended; `guards` in the file of the search says what counts",
    )
}

/// What to know about the recommended point.
fn verdict(search: &Search, chosen: &Chosen) -> Vec<Block> {
    let hand = &search.points.candidates[chosen.candidate].hand;
    if chosen.candidate == 0 && chosen.settings == *hand {
        return vec![Block::prose("Nothing surely better than the hand-set point was found.")];
    }
    let ends = search.points.on_bound(chosen.candidate, &chosen.settings);
    let ends: Vec<String> = ends.iter().map(|name| format!("`{name}`")).collect();
    let warning = |ends: Vec<String>| {
        let text = format!("at a bound of its range: {}", ends.join(", "));
        Block::warning(
            &text,
            "a better value may lie beyond it; widen the range if that makes sense",
        )
    };
    Some(ends).filter(|ends| !ends.is_empty()).map(warning).into_iter().collect()
}

/// A score as a change against the hand-set point.
pub(crate) fn gain(objective: &Objective, score: f64) -> String {
    let score = if objective.maximise { -score } else { score };
    if objective.number.metric.is_ratio() {
        return crate::text::signed(exp(score) - 1.0);
    }
    format!("{}{}", if score > 0.0 { "+" } else { "" }, number(score))
}

/// Whether a column has room for all parameters of a point.
fn is_short(search: &Search) -> bool {
    search.points.space.len() <= 4
}

/// The points of the front with their parameters, if these have no column.
fn front(search: &Search, findings: &Findings) -> Vec<String> {
    let line = |chosen: &Chosen| format!("call {}: {}", chosen.call + 1, settings(search, chosen));
    findings.chosen.iter().filter(|_| !is_short(search)).map(line).collect()
}

/// The strategy of a point, if there are several, and its free parameters.
fn settings(search: &Search, chosen: &Chosen) -> String {
    let all = free(search, chosen.candidate, &chosen.settings);
    if search.points.candidates.len() > 1 {
        let name = search.points.candidates[chosen.candidate].name();
        return format!("{name} {all}");
    }
    all
}

/// The free ones of the parameters of a candidate.
fn free(search: &Search, candidate: usize, settings: &[(String, String)]) -> String {
    let free =
        settings.iter().filter(|(name, _)| search.points.dimension(candidate, name).is_some());
    let all: Vec<String> = free.map(|(name, value)| format!("{name}={}", short(value))).collect();
    all.join(" ")
}

/// A parameter's value with few digits.
fn short(text: &str) -> String {
    text.parse().map_or_else(|_| text.to_owned(), number)
}

/// What the front is worth.
fn volume(search: &Search, findings: &Findings) -> Option<String> {
    let front = findings.front.as_ref()?;
    let control = findings.control.as_ref().and_then(|control| control.front.as_ref());
    let control = control.map_or_else(String::new, |control| {
        format!("; that of the control {}", number(control.hypervolume))
    });
    Some(format!(
        "Hypervolume of the front {}; of the hand-set point alone {}{control}. It is \
         measured in changes against the hand-set point (logarithms for ratios), below the worst \
         valid point, in {} dimensions.",
        number(front.hypervolume),
        number(front.of_hand),
        search.objectives.len()
    ))
}
