//! The tables of a search.

use super::{by_workload as each, free, gain, heading, is_short, settings, short, shown_change};
use crate::model::Table;
use crate::text::{change, dash, entry, percent, plain, points_change, titled};
use blis_lab::Metric;
use blis_lab::optimize::{
    Call, Chosen, Findings, Group, Influence, Number, Plateau, Rival, Search,
};
use blis_lab::verdict::number;
use std::collections::BTreeSet;

/// So many tenants are all told.
const FEW_TENANTS: usize = 4;

/// After how many calls the best so far is shown.
const MILESTONES: [usize; 12] = [1, 5, 10, 15, 20, 30, 50, 100, 200, 500, 1_000, 10_000];

/// The objective in the search and on fresh seeds, by hand and as recommended.
pub(super) fn outcome(search: &Search, findings: &Findings) -> Table {
    let number = &search.objectives[0].number;
    let metric = &number.metric;
    let row = |name: &str, searched: Option<f64>, cell: usize| {
        [
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
    Table::new(heading(number), header, rows)
}

/// What objectives are numbers of, by workload, on fresh seeds: a table for each.
pub(super) fn by_workload(search: &Search, findings: &Findings) -> Vec<Table> {
    let table = |metric| match search.objectives.len() {
        1 => compared(search, findings, metric),
        _ => listed(search, findings, metric),
    };
    search.metrics().into_iter().filter(|_| search.loads.len() > 1).map(table).collect()
}

fn title(metric: Metric) -> String {
    titled(format!("{} by workload, on fresh seeds", metric.name()), metric.unit())
}

/// One point beside the hand-set one: a row for each workload, and the mean over them.
fn compared(search: &Search, findings: &Findings, metric: Metric) -> Table {
    let random = findings.fresh.len() > 2;
    let row = |name: &str, number: &Number| {
        let mean = |cell: usize| entry(&metric, findings.mean(cell, number));
        let mut row = vec![name.to_owned(), mean(0), mean(1), shown_change(findings, 1, number)];
        row.extend(random.then(|| mean(2)));
        row
    };
    let numbers = each(search, metric);
    let mut rows: Vec<Vec<String>> =
        search.workloads().into_iter().zip(&numbers).map(|(name, it)| row(name, it)).collect();
    rows.extend(metric.mean().map(|mean| row(mean.name(), &Number::of_all(metric))));
    let mut header = vec!["workload", "by hand", "found", "change (95 %)"];
    header.extend(random.then_some("found at random"));
    Table::new(title(metric), header, rows)
}

/// The points of a front: a row for each, a column for each workload.
fn listed(search: &Search, findings: &Findings, metric: Metric) -> Table {
    let numbers = each(search, metric);
    let row = |cell: usize| {
        let name = match cell.checked_sub(1) {
            None => "by hand".to_owned(),
            Some(number) => (findings.chosen[number].call + 1).to_string(),
        };
        let values = numbers.iter().map(|one| entry(&metric, findings.mean(cell, one)));
        std::iter::once(name).chain(values).collect::<Vec<_>>()
    };
    let header = std::iter::once("call").chain(search.workloads());
    Table::new(title(metric), header, (0..=findings.chosen.len()).map(row))
}

/// What the recommended point costs whom: by class and tenant, beside the hand-set point. Of many
/// tenants only those that surely pay are told.
pub(crate) fn costs(search: &Search, findings: &Findings) -> Table {
    let row = |number: Number| {
        let mean = |cell: usize| {
            let mean = findings.mean(cell, &number).map(|(mean, _)| (mean, None));
            entry(&number.metric, mean)
        };
        let change = match findings.paired(1, &number) {
            Some(paired) if !number.metric.is_ratio() => points_change(&paired.difference),
            paired => dash(paired, |paired| change(&paired)),
        };
        [heading(&number), mean(0), mean(1), change]
    };
    let groups = search.groups(&findings.fresh[0]);
    let tenants: BTreeSet<String> =
        groups.iter().filter(|group| group.is_tenant()).map(Group::name).collect();
    let few = tenants.len() <= FEW_TENANTS;
    let pays = |number: &Number| {
        findings.paired(1, number).is_some_and(|paired| paired.difference.low > 0.0)
    };
    let numbers = |group: &Group| {
        let shown = few || !group.is_tenant();
        let all = Group::NUMBERS.map(|name| group.number(name)).into_iter();
        all.filter(|number| shown || pays(number)).collect::<Vec<_>>()
    };
    let rows = groups.iter().flat_map(numbers).map(row);
    let header = ["number", "by hand", "found", "change (95 %)"];
    let only = if few { "" } else { "; of the tenants those that surely pay" };
    Table::new(format!("what it costs whom, on fresh seeds{only}"), header, rows)
}

/// How the constraints fare on fresh seeds.
pub(crate) fn constraints(search: &Search, findings: &Findings) -> Option<Table> {
    let row = |index: usize| {
        let found = findings.outcome(search, index, 1);
        let word = match found.holds {
            None => "unknown",
            Some((true, true)) => "holds",
            Some((true, false)) => "holds, not significant",
            Some((false, false)) => "fails, not significant",
            Some((false, true)) => "fails",
        };
        let text = search.constraints[index].text.clone();
        [text, dash(found.value, number), dash(found.limit, number), word.to_owned()]
    };
    let header = ["constraint", "fresh seeds", "limit", "verdict"];
    let rows = (0..search.constraints.len()).map(row);
    (!search.constraints.is_empty()).then(|| Table::new("", header, rows))
}

/// Each parameter: by hand, as found, how much it matters and what would be as good.
pub(super) fn parameters(search: &Search, findings: &Findings, chosen: &Chosen) -> Table {
    let hand = &search.points.candidates[chosen.candidate].hand;
    let influences = findings.sensitivities.first().map(|found| &found.dimensions);
    let of = |found: Option<&Influence>, at: Option<f64>| {
        [
            dash(found, share_of),
            dash(found, |it| plateau(it, true, at)),
            dash(found, |it| plateau(it, false, at)),
        ]
    };
    let row = |((name, by_hand), (_, value)): (&(String, String), &(String, String))| {
        let known = match search.points.dimension(chosen.candidate, name) {
            None => ["fixed".to_owned(), String::new(), String::new()],
            Some(k) => of(influences.map(|all| &all[k]), value.parse().ok()),
        };
        [name.clone(), short(by_hand), short(value)].into_iter().chain(known).collect()
    };
    let mut rows: Vec<Vec<String>> = hand.iter().zip(&chosen.settings).map(row).collect();
    if let (true, Some(influences)) = (search.points.candidates.len() > 1, influences) {
        let name = |candidate: usize| search.points.candidates[candidate].name().to_owned();
        let first = ["strategy".to_owned(), name(0), name(chosen.candidate)];
        rows.insert(0, first.into_iter().chain(of(Some(&influences[0]), None)).collect());
    }
    let title = "parameters (importance: share of the variance; ranges: for the objective alone, \
                 the other parameters as found)";
    let header =
        ["parameter", "by hand", "found", "importance", "as good", "not known to be worse"];
    Table::new(title, header, rows)
}

/// The points that what is recommended was compared with last.
pub(super) fn rivals(search: &Search, findings: &Findings) -> Option<Table> {
    let objective = &search.objectives[0];
    let row = |rival: &Rival| {
        let word = match rival.worse {
            _ if !rival.legal => "breaks a constraint",
            Some(worse) if worse.low > 0.0 => "worse",
            Some(worse) if worse.low >= worse.high => "the same",
            _ => "not surely worse",
        };
        let call = &findings.calls[rival.call];
        let change = dash(rival.worse, |worse| {
            let ends = [worse.low, worse.high].map(|score| gain(objective, score));
            format!("{} ({} to {})", gain(objective, worse.mean), ends[0], ends[1])
        });
        [
            (rival.call + 1).to_string(),
            free(search, call.candidate, &call.settings),
            rival.seeds.to_string(),
            change,
            word.to_owned(),
        ]
    };
    let header = ["call", "parameters", "seeds", "change (95 %)", "verdict"];
    let title = "leading points against the recommended one, on the same seeds of the search";
    let rows: Vec<_> = findings.rivals.iter().map(row).collect();
    (!rows.is_empty()).then(|| Table::new(title, header, rows))
}

fn share_of(influence: &Influence) -> String {
    format!("{} ±{:.0}", percent(influence.total.value), 100.0 * influence.total.error)
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

/// The front of several objectives.
pub(super) fn front(search: &Search, findings: &Findings) -> Table {
    let mut header = vec!["call".to_owned()];
    for objective in &search.objectives {
        header.extend([heading(&objective.number), "fresh seeds".to_owned()]);
    }
    header.extend(is_short(search).then(|| "parameters".to_owned()));
    let row = |(cell, chosen): (usize, Option<&Chosen>)| {
        let call = chosen.map_or_else(|| "by hand".to_owned(), |it| (it.call + 1).to_string());
        let mut row = vec![call];
        for (k, objective) in search.objectives.iter().enumerate() {
            let number = &objective.number;
            let means = chosen.map_or(&findings.hand, |it| &findings.calls[it.call].means);
            row.extend([plain(means[k]), entry(&number.metric, findings.mean(cell, number))]);
        }
        row.extend(is_short(search).then(|| match chosen {
            None => search.points.candidates[0].name().to_owned(),
            Some(chosen) => settings(search, chosen),
        }));
        row
    };
    let all = std::iter::once(None).chain(findings.chosen.iter().map(Some));
    Table::new("front, as searched and on fresh seeds", header, all.enumerate().map(row))
}

/// How much each dimension matters for each objective.
pub(super) fn shares(search: &Search, findings: &Findings) -> Table {
    let names = search.objectives.iter().map(|objective| objective.number.name());
    let row = |k: usize| {
        let mut row = vec![search.points.space.dimensions()[k].name.clone()];
        row.extend(findings.sensitivities.iter().map(|found| share_of(&found.dimensions[k])));
        row.resize(1 + search.objectives.len(), "-".to_owned());
        row
    };
    let header = std::iter::once("importance for".to_owned()).chain(names);
    Table::new("", header, (0..search.points.space.len()).map(row))
}

/// The best legal value after so many calls, beside that of the control.
pub(super) fn convergence(search: &Search, findings: &Findings) -> Table {
    let objective = &search.objectives[0];
    let calls = findings.calls.len();
    let counts = MILESTONES.into_iter().filter(|&count| count < calls).chain([calls]);
    let best = |calls: &[Call], count: usize| {
        let best = Findings::best(calls, count);
        dash(best, |(score, mean)| format!("{} ({})", plain(mean), gain(objective, score)))
    };
    let row = |count: usize| {
        let mut row = vec![count.to_string(), best(&findings.calls, count)];
        row.extend(findings.control.as_ref().map(|control| best(&control.calls, count)));
        row
    };
    let mut header = vec!["calls", search.budget.engine.name()];
    header.extend(findings.control.as_ref().map(|_| "random"));
    let title =
        format!("best legal {} so far, on the seeds of the search", objective.number.name());
    Table::new(title, header, counts.map(row))
}

/// Every call, with what is free.
pub(super) fn points(search: &Search, findings: &Findings) -> Table {
    let several = search.points.candidates.len() > 1;
    let mut header = vec!["call".to_owned()];
    header.extend(search.objectives.iter().map(|objective| heading(&objective.number)));
    header.extend(["seeds", "legal"].map(str::to_owned));
    header.extend(several.then(|| "strategy".to_owned()));
    header.push("parameters".to_owned());
    let row = |(number, call): (usize, &Call)| {
        let means = search.objectives.iter().zip(&call.means);
        let means =
            means.map(|(one, mean)| entry(&one.number.metric, mean.map(|mean| (mean, None))));
        let mut row: Vec<String> = std::iter::once((number + 1).to_string()).chain(means).collect();
        let legal = match (&call.refused, call.feasible) {
            (Some(_), _) => "no scenario",
            (None, true) => "yes",
            (None, false) => "no",
        };
        row.extend([call.seeds.to_string(), legal.to_owned()]);
        row.extend(several.then(|| search.points.candidates[call.candidate].name().to_owned()));
        row.push(free(search, call.candidate, &call.settings));
        row
    };
    Table::new("", header, findings.calls.iter().enumerate().map(row))
}
