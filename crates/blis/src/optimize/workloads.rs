//! Who pays: what was found in each workload of a search, beside the mean over them.

use super::tables::shown_change;
use crate::report::grid::Grid;
use crate::study::{entry, titled};
use blis_lab::Metric;
use blis_lab::optimize::{Findings, Number, Search};

/// The names of the workloads; `None` if the file has no list of them.
pub(super) fn named(search: &Search) -> Option<String> {
    let names = search.workloads();
    (!names.is_empty()).then(|| names.join(", "))
}

/// `metric` in each of the workloads.
pub(super) fn each(search: &Search, metric: Metric) -> Vec<Number> {
    let number = |(index, name): (usize, &str)| {
        let workload = Some((index, name.to_owned()));
        Number { metric, workload }
    };
    search.workloads().into_iter().enumerate().map(number).collect()
}

/// What objectives are numbers of, by workload, on fresh seeds: a table for each.
pub(super) fn tables(search: &Search, findings: &Findings) -> Vec<Grid> {
    if search.loads.len() < 2 {
        return Vec::new();
    }
    let table = |metric| match search.objectives.len() {
        1 => compared(search, findings, metric),
        _ => listed(search, findings, metric),
    };
    search.metrics().into_iter().map(table).collect()
}

fn title(metric: Metric) -> String {
    titled(format!("{} by workload, on fresh seeds", metric.name()), metric.unit())
}

/// One point beside the hand-set one: a row for each workload, and the mean over them.
fn compared(search: &Search, findings: &Findings, metric: Metric) -> Grid {
    let random = findings.fresh.len() > 2;
    let row = |name: &str, number: &Number| {
        let mean = |cell: usize| entry(&metric, findings.mean(cell, number));
        let mut row = vec![name.to_owned(), mean(0), mean(1), shown_change(findings, 1, number)];
        row.extend(random.then(|| mean(2)));
        row
    };
    let own = |number: &Number| {
        let name = number.workload.as_ref().map_or("", |(_, name)| name.as_str());
        row(name, number)
    };
    let mut rows: Vec<Vec<String>> = each(search, metric).iter().map(own).collect();
    rows.extend(metric.mean().map(|mean| row(mean.name(), &Number::of_all(metric))));
    let mut header = vec!["workload", "by hand", "found", "change (95 %)"];
    header.extend(random.then_some("found at random"));
    let header = header.into_iter().map(str::to_owned).collect();
    Grid { title: title(metric), header, rows }
}

/// The points of a front: a row for each, a column for each workload.
fn listed(search: &Search, findings: &Findings, metric: Metric) -> Grid {
    let numbers = each(search, metric);
    let row = |cell: usize| {
        let name = match cell.checked_sub(1) {
            None => "hand".to_owned(),
            Some(number) => (findings.chosen[number].call + 1).to_string(),
        };
        let values = numbers.iter().map(|one| entry(&metric, findings.mean(cell, one)));
        std::iter::once(name).chain(values).collect()
    };
    let names = search.workloads().into_iter().map(str::to_owned);
    Grid {
        title: title(metric),
        header: std::iter::once("call".to_owned()).chain(names).collect(),
        rows: (0..=findings.chosen.len()).map(row).collect(),
    }
}
