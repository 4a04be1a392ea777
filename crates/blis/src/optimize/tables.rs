//! What a search found, as tables for a terminal.

use super::{heading, workloads};
use crate::compare::change;
use crate::report::grid::{Grid, folded};
use crate::report::table::{bold, percent, plain};
use crate::study::entry;
use blis_core::math::exp;
use blis_lab::optimize::{
    Call, Candidate, Chosen, Findings, Influence, Number, Objective, Plateau, Search,
};
use blis_lab::verdict::number;

/// After how many calls the best so far is shown.
const MILESTONES: [usize; 12] = [1, 5, 10, 15, 20, 30, 50, 100, 200, 500, 1_000, 10_000];

/// A part of what is shown.
enum Part {
    Text(String),
    Table(Grid),
}

/// Everything, for a terminal.
pub(super) fn report(search: &Search, findings: &Findings) -> String {
    let head = format!("{}\n{}", bold(&search.question), conditions(search, findings));
    let shown = parts(search, findings).into_iter().map(|part| match part {
        Part::Text(text) => text,
        Part::Table(grid) => grid.text(),
    });
    let parts: Vec<String> =
        std::iter::once(head).chain(shown).filter(|part| !part.is_empty()).collect();
    parts.join("\n").trim_end().to_owned() + "\n"
}

/// The same without the question, for a Markdown page.
pub(super) fn markdown(search: &Search, findings: &Findings) -> String {
    let shown = parts(search, findings).into_iter().map(|part| match part {
        Part::Text(text) => text,
        Part::Table(grid) => grid.markdown(),
    });
    let parts: Vec<String> = std::iter::once(conditions(search, findings))
        .chain(shown)
        .filter(|part| !part.is_empty())
        .collect();
    parts.join("\n").trim_end().to_owned() + "\n"
}

fn parts(search: &Search, findings: &Findings) -> Vec<Part> {
    let mut parts = Vec::new();
    match &findings.chosen[..] {
        [] => parts
            .push(Part::Text("No point met the constraints: nothing is recommended.\n".to_owned())),
        [chosen] if search.objectives.len() == 1 => {
            parts.push(Part::Table(outcome(search, findings)));
            parts.extend(workloads::tables(search, findings).into_iter().map(Part::Table));
            parts.extend(held(search, findings).map(Part::Table));
            parts.push(Part::Text(verdict(search, chosen)));
            parts.push(Part::Table(parameters(search, findings, chosen)));
        }
        _ => {
            parts.push(Part::Table(front(search, findings)));
            parts.extend(workloads::tables(search, findings).into_iter().map(Part::Table));
            parts.push(Part::Text(listed(search, findings)));
            parts.push(Part::Text(volume(search, findings)));
            parts.push(Part::Table(shares(search, findings)));
        }
    }
    if search.objectives.len() == 1 {
        parts.push(Part::Table(convergence(search, findings)));
    }
    parts
}

/// What came of it, in a few words: the change on fresh seeds.
pub(super) fn gist(search: &Search, findings: &Findings) -> String {
    match &findings.chosen[..] {
        [] => "no point met the constraints".to_owned(),
        [_] if search.objectives.len() == 1 => {
            let number = &search.objectives[0].number;
            format!("{} {}", number.name(), shown_change(findings, 1, number))
        }
        points => format!("a front of {} points", points.len()),
    }
}

pub(super) fn conditions(search: &Search, findings: &Findings) -> String {
    let names: Vec<&str> = search.points.candidates.iter().map(Candidate::name).collect();
    let budget = &search.budget;
    let legal = findings.calls.iter().filter(|call| call.is_usable()).count();
    let refused = findings.calls.iter().filter(|call| call.refused.is_some()).count();
    let refused = match refused {
        0 => String::new(),
        count => format!(", {count} were not legal scenarios"),
    };
    let dropped = findings.calls.iter().filter(|call| call.is_dropped(budget.seeds)).count();
    let dropped = match dropped {
        0 => String::new(),
        count => format!(" ({count} of them one, being surely worse)"),
    };
    let on = workloads::named(search).map_or_else(String::new, |names| format!(" on {names}"));
    folded(
        &format!(
            "{}: {} points of {} parameters, {} seeds each{dropped}{on}, engine {}; {legal} met the \
             constraints{refused}. Confirmed on {} fresh seeds; ± is half of a 95 % interval",
            names.join(", "),
            findings.calls.len(),
            search.points.space.len(),
            budget.seeds,
            budget.engine.name(),
            findings.fresh_seeds()
        ),
        0,
        0,
    ) + "\n"
}

/// The objective in the search and on fresh seeds, by hand and as recommended.
pub(super) fn outcome(search: &Search, findings: &Findings) -> Grid {
    let number = &search.objectives[0].number;
    let metric = &number.metric;
    let row = |name: &str, searched: Option<f64>, cell: usize| {
        vec![
            name.to_owned(),
            entry(metric, searched.map(|mean| (mean, None))),
            entry(metric, findings.mean(cell, number)),
            if cell == 0 { String::new() } else { shown_change(findings, cell, number) },
        ]
    };
    let mean = |calls: &[Call], chosen: &Chosen| calls[chosen.call].means[0];
    let mut rows = vec![
        row("by hand", findings.hand[0], 0),
        row("found", mean(&findings.calls, &findings.chosen[0]), 1),
    ];
    if let Some(control) = &findings.control
        && let [chosen] = &control.chosen[..]
    {
        rows.push(row("found at random", mean(&control.calls, chosen), 2));
    }
    let header = ["", "seeds of the search", "fresh seeds", "change on fresh seeds (95 %)"];
    Grid { title: heading(number), header: header.map(str::to_owned).to_vec(), rows }
}

pub(super) fn shown_change(findings: &Findings, cell: usize, number: &Number) -> String {
    let paired = findings.paired(cell, number);
    paired.as_ref().map_or_else(|| "-".to_owned(), change)
}

/// How the constraints fare on fresh seeds.
pub(super) fn held(search: &Search, findings: &Findings) -> Option<Grid> {
    if search.constraints.is_empty() {
        return None;
    }
    let row = |index: usize| {
        let constraint = &search.constraints[index];
        let found = findings.outcome(search, index, 1);
        let word = match found.holds {
            None => "not known",
            Some((true, true)) => "holds",
            Some((true, false)) => "holds, not surely",
            Some((false, false)) => "fails, not surely",
            Some((false, true)) => "fails",
        };
        let show = |value: Option<f64>| value.map_or_else(|| "-".to_owned(), number);
        vec![constraint.text.clone(), show(found.value), show(found.limit), word.to_owned()]
    };
    Some(Grid {
        title: String::new(),
        header: ["constraint", "fresh", "limit", ""].map(str::to_owned).to_vec(),
        rows: (0..search.constraints.len()).map(row).collect(),
    })
}

/// What to believe, in a sentence.
pub(super) fn verdict(search: &Search, chosen: &Chosen) -> String {
    let mut text = Vec::new();
    let hand = search.points.candidates[0].hand.clone();
    let by_hand = chosen.candidate == 0 && chosen.settings == hand;
    if by_hand {
        text.push("Nothing better than the hand-set point was found.".to_owned());
    }
    if let Some(expected) = chosen.expected.filter(|_| !by_hand) {
        let objective = &search.objectives[0];
        let show = |score: f64| gain(objective, score);
        text.push(format!(
            "The model of the search expected {} ({} to {}).",
            show(expected.value),
            show(expected.low.min(expected.high)),
            show(expected.low.max(expected.high))
        ));
    }
    if let Some(feasibility) = chosen.feasibility.filter(|p| *p < 0.95) {
        text.push(format!(
            "No point meets the constraints with a probability of 95 %; this one has {}.",
            percent(Some(feasibility))
        ));
    }
    if text.is_empty() { String::new() } else { folded(&text.join(" "), 0, 0) + "\n" }
}

/// A score as a change against the hand-set point.
fn gain(objective: &Objective, score: f64) -> String {
    let score = if objective.maximise { -score } else { score };
    if objective.number.metric.is_ratio() {
        return format!("{:+.1} %", 100.0 * (exp(score) - 1.0));
    }
    format!("{}{}", if score > 0.0 { "+" } else { "" }, number(score))
}

/// Each parameter: by hand, as found, how much it matters and what would be as good.
pub(super) fn parameters(search: &Search, findings: &Findings, chosen: &Chosen) -> Grid {
    let hand = &search.points.candidates[chosen.candidate].hand;
    let influences = findings.sensitivities.first().map(|found| &found.dimensions);
    let row = |((name, by_hand), (_, value)): (&(String, String), &(String, String))| {
        let free = search.points.dimension(chosen.candidate, name);
        let influence = free.and_then(|k| influences.map(|all| &all[k]));
        let (share, near, open) = match (free, influence) {
            (None, _) => ("fixed".to_owned(), String::new(), String::new()),
            (Some(_), None) => ("-".to_owned(), "-".to_owned(), "-".to_owned()),
            (Some(_), Some(found)) => {
                let at = value.parse().ok();
                (share_of(found), plateau(found, true, at), plateau(found, false, at))
            }
        };
        vec![name.clone(), short(by_hand), short(value), share, near, open]
    };
    let mut rows: Vec<Vec<String>> = hand.iter().zip(&chosen.settings).map(row).collect();
    if let (true, Some(influences)) = (search.points.candidates.len() > 1, influences) {
        let name = |candidate: usize| search.points.candidates[candidate].name().to_owned();
        let of_choice = &influences[0];
        let first = vec![
            "strategy".to_owned(),
            name(0),
            name(chosen.candidate),
            share_of(of_choice),
            plateau(of_choice, true, None),
            plateau(of_choice, false, None),
        ];
        rows.insert(0, first);
    }
    let header =
        ["parameter", "by hand", "found", "importance", "as good", "not known to be worse"];
    Grid {
        title: "Parameters (importance: share of variance; ranges: the objective alone, others as found)".to_owned(),
        header: header.map(str::to_owned).to_vec(),
        rows,
    }
}

fn share_of(influence: &Influence) -> String {
    format!("{} ±{:.0}", percent(Some(influence.total.value)), 100.0 * influence.total.error)
}

/// A range around what was found, which is itself rounded.
fn plateau(influence: &Influence, within: bool, found: Option<f64>) -> String {
    match &influence.plateau {
        Plateau::Absent => "-".to_owned(),
        Plateau::Range { within_noise, not_worse } => {
            let (low, high) = if within { within_noise } else { not_worse };
            let (low, high) =
                (found.map_or(*low, |at| low.min(at)), found.map_or(*high, |at| high.max(at)));
            format!("{} to {}", number(low), number(high))
        }
        Plateau::Options { within_noise, not_worse } => {
            let options = if within { within_noise } else { not_worse };
            options.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ")
        }
    }
}

/// A parameter's value with few digits.
pub(super) fn short(text: &str) -> String {
    text.parse().map_or_else(|_| text.to_owned(), number)
}

/// The front of several objectives.
pub(super) fn front(search: &Search, findings: &Findings) -> Grid {
    let mut header = vec!["call".to_owned()];
    for objective in &search.objectives {
        header.push(heading(&objective.number));
        header.push("fresh".to_owned());
    }
    if is_short(search) {
        header.push("parameters".to_owned());
    }
    let row = |(cell, chosen): (usize, Option<&Chosen>)| {
        let mut row = vec![chosen.map_or_else(|| "hand".to_owned(), |c| (c.call + 1).to_string())];
        for (k, objective) in search.objectives.iter().enumerate() {
            let number = &objective.number;
            let means = chosen.map_or(&findings.hand, |c| &findings.calls[c.call].means);
            row.push(plain(means[k]));
            row.push(entry(&number.metric, findings.mean(cell, number)));
        }
        let first = &search.points.candidates[0];
        row.extend(is_short(search).then(|| match chosen {
            None => first.name().to_owned(),
            Some(chosen) => settings(search, chosen),
        }));
        row
    };
    let all = std::iter::once(None).chain(findings.chosen.iter().map(Some));
    Grid {
        title: "The front, as searched and on fresh seeds".to_owned(),
        header,
        rows: all.enumerate().map(row).collect(),
    }
}

/// Whether a column has room for all parameters of a point.
fn is_short(search: &Search) -> bool {
    search.points.space.len() <= 4
}

/// The points of the front with their parameters, if these have no column.
pub(super) fn listed(search: &Search, findings: &Findings) -> String {
    if is_short(search) {
        return String::new();
    }
    let line = |chosen: &Chosen| {
        folded(&format!("call {}: {}", chosen.call + 1, settings(search, chosen)), 0, 4) + "\n"
    };
    findings.chosen.iter().map(line).collect()
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
pub(super) fn free(search: &Search, candidate: usize, settings: &[(String, String)]) -> String {
    let free =
        settings.iter().filter(|(name, _)| search.points.dimension(candidate, name).is_some());
    let all: Vec<String> = free.map(|(name, value)| format!("{name}={}", short(value))).collect();
    all.join(" ")
}

/// What the front is worth.
pub(super) fn volume(search: &Search, findings: &Findings) -> String {
    let Some(front) = &findings.front else { return String::new() };
    let control = findings.control.as_ref().and_then(|control| control.front.as_ref());
    let control = control.map_or_else(String::new, |control| {
        format!("; that of the control {}", number(control.hypervolume))
    });
    folded(
        &format!(
            "Hypervolume of the front {}; of the hand-set point alone {}{control}. It is that of \
             changes against the hand-set point, as logarithms where only ratios mean something, \
             below the worst legal point, in {} dimensions.",
            number(front.hypervolume),
            number(front.of_hand),
            search.objectives.len()
        ),
        0,
        0,
    ) + "\n"
}

/// How much each dimension matters for each objective.
pub(super) fn shares(search: &Search, findings: &Findings) -> Grid {
    let mut header = vec!["importance for".to_owned()];
    header.extend(search.objectives.iter().map(|objective| objective.number.name()));
    let row = |k: usize| {
        let mut row = vec![search.points.space.dimensions()[k].name.clone()];
        row.extend(findings.sensitivities.iter().map(|found| share_of(&found.dimensions[k])));
        row.resize(1 + search.objectives.len(), "-".to_owned());
        row
    };
    Grid { title: String::new(), header, rows: (0..search.points.space.len()).map(row).collect() }
}

/// The best legal value after so many calls, beside that of the control.
fn convergence(search: &Search, findings: &Findings) -> Grid {
    let objective = &search.objectives[0];
    let calls = findings.calls.len();
    let counts = MILESTONES.into_iter().filter(|&count| count < calls).chain([calls]);
    let best = |calls: &[Call], count: usize| match Findings::best(calls, count) {
        None => "-".to_owned(),
        Some((score, mean)) => format!("{} ({})", plain(Some(mean)), gain(objective, score)),
    };
    let row = |count: usize| {
        let mut row = vec![count.to_string(), best(&findings.calls, count)];
        row.extend(findings.control.as_ref().map(|control| best(&control.calls, count)));
        row
    };
    let rows: Vec<Vec<String>> = counts.map(row).collect();
    let mut header = vec!["calls".to_owned(), search.budget.engine.name().to_owned()];
    if findings.control.is_some() {
        header.push("random".to_owned());
    }
    Grid {
        title: format!("Best legal {} so far, on the seeds of the search", objective.number.name()),
        header,
        rows,
    }
}
