//! `blis validate --format table`: for people, within 100 columns.

use super::Found;
use crate::calibrate::signed;
use crate::report::table::{bold, grouped, plain, table};
use blis_fidelity::validate::{
    Beyond, Cell, Compared, Errors, Metric, Quantity, Statistic, mean_error,
};

/// What was found.
pub(super) fn text(found: &Found) -> String {
    let mut parts: Vec<String> = found.compared.iter().map(workload).collect();
    if !found.beyond.is_empty() {
        let mut rows = table(&BEYOND);
        for cells in beyond(found) {
            rows.add_row(cells);
        }
        parts.push(format!("{}\n\n{}\n", bold(BEYOND_TITLE), rows.trim_fmt()));
    }
    parts.push(format!("{}\n\n{}\n", found.basis, summary(found)));
    parts.join("\n")
}

/// What the table of `beyond` is called.
pub(super) const BEYOND_TITLE: &str = "Beyond what was fitted to";

/// What it shows.
pub(super) const BEYOND_NOTE: &str = "Errors on the steps of a kind, after fits to all steps, to no \
     such step of a server but to those measured apart, and to no such step at all: of single steps \
     on average, and of the time that they take together.";

/// Its columns.
pub(super) const BEYOND: [&str; 5] =
    ["steps", "of them", "fitted to all", "measured apart only", "never seen"];

/// Its rows.
pub(super) fn beyond(found: &Found) -> Vec<Vec<String>> {
    let errors = |errors: Option<Errors>| {
        errors.map_or_else(
            || "-".to_owned(),
            |e| format!("{:.1} %, {}", 100.0 * e.mean_absolute, signed(e.total)),
        )
    };
    let row = |one: &Beyond| {
        let steps = grouped(one.seen.steps as u64);
        let name = one.edge.name().to_owned();
        vec![name, steps, errors(Some(one.seen)), errors(one.apart), errors(one.unseen)]
    };
    found.beyond.iter().map(row).collect()
}

/// The columns of the overview.
pub(super) const OVERVIEW: [&str; 9] = [
    "workload",
    "step time, mean error",
    "E2E mean",
    "ITL mean",
    "TTFT mean",
    "TTFT p99",
    "repeat spread of TTFT mean, p99",
    "cached tokens equal",
    "preemptions",
];

/// The numbers that matter most, one workload a row, and the mean of their errors.
pub(super) fn overview(all: &[Compared]) -> Vec<Vec<String>> {
    let share = |value: Option<f64>| value.map_or_else(|| "-".to_owned(), signed);
    let row = |compared: &Compared| {
        let of = |metric, statistic| {
            let wanted = Quantity::Latency(metric, statistic);
            compared.cells.iter().find(|cell| cell.quantity == wanted)
        };
        let error = |metric, statistic| share(of(metric, statistic).and_then(Cell::error));
        let spread = |statistic| share(of(Metric::Ttft, statistic).and_then(Cell::spread));
        let spreads = match compared.repeat {
            Some(_) => format!("{}, {}", spread(Statistic::Mean), spread(Statistic::P99)),
            None => "-".to_owned(),
        };
        let preemptions = compared.cells.iter().find(|c| c.quantity == Quantity::Preemptions);
        let preemptions = preemptions.filter(|cell| is_shown(cell)).map_or_else(
            || "-".to_owned(),
            |cell| format!("{} of {}", cell.predicted, cell.measured),
        );
        let steps = compared.steps.map_or(0.0, |steps| 100.0 * steps.mean_absolute);
        vec![
            compared.workload.clone(),
            format!("{steps:.1} %"),
            error(Metric::E2e, Statistic::Mean),
            error(Metric::Itl, Statistic::Mean),
            error(Metric::Ttft, Statistic::Mean),
            error(Metric::Ttft, Statistic::P99),
            spreads,
            format!("{:.1} %", 100.0 * compared.cached_equal),
            preemptions,
        ]
    };
    let mean = |metric, statistic| {
        let error = mean_error(all, Quantity::Latency(metric, statistic));
        error.map_or_else(|| "-".to_owned(), |error| format!("{:.1} %", 100.0 * error))
    };
    let mut rows: Vec<Vec<String>> = all.iter().map(row).collect();
    rows.push(vec![
        "mean of absolute errors".to_owned(),
        String::new(),
        mean(Metric::E2e, Statistic::Mean),
        mean(Metric::Itl, Statistic::Mean),
        mean(Metric::Ttft, Statistic::Mean),
        mean(Metric::Ttft, Statistic::P99),
        String::new(),
        String::new(),
        String::new(),
    ]);
    rows
}

/// What the table of `transfers` is called.
pub(super) const TRANSFER_TITLE: &str = "Fitted to one workload";

/// What it shows.
pub(super) const TRANSFER_NOTE: &str = "Error of the mean E2E, after a fit to one workload and to \
     those steps measured apart that only decode or only prefill.";

/// Its columns and its rows.
pub(super) fn transfers(found: &Found) -> (Vec<String>, Vec<Vec<String>>) {
    let mut names: Vec<String> = found.transfer.iter().map(|one| one.from.clone()).collect();
    names.dedup();
    let cell = |from: &String, to: &String| {
        let one = found.transfer.iter().find(|one| one.from == *from && one.to == *to);
        one.map_or_else(|| "-".to_owned(), |one| signed(one.e2e_mean))
    };
    let row = |from: &String| {
        let cells = names.iter().map(|to| cell(from, to));
        std::iter::once(from.clone()).chain(cells).collect()
    };
    let rows = names.iter().map(row).collect();
    (std::iter::once("fitted to".to_owned()).chain(names.clone()).collect(), rows)
}

/// That steps are outside what was fitted to.
pub(super) fn outside(compared: &Compared) -> String {
    let outside = &compared.outside;
    let far = |(name, value): &(&str, f64)| format!("{name} {}", plain(Some(*value)));
    let variables: Vec<String> = outside.variables.iter().map(far).collect();
    format!(
        "{} of {} steps ({:.1} %) are outside what was fitted to (farthest: {}); their times are \
         extrapolated",
        grouped(outside.steps as u64),
        grouped(outside.of as u64),
        100.0 * outside.share(),
        variables.join(", ")
    )
}

/// How many intervals hold, and how far fits to single workloads are off.
pub(super) fn summary(found: &Found) -> String {
    let mut parts = Vec::new();
    let coverage = &found.coverage;
    if coverage.cells > 0 {
        parts.push(format!(
            "{} of {} measured numbers are within their 90 % intervals; {} intervals are no wider \
             than\ntwice the spread of repeated runs and 10 %",
            coverage.covered, coverage.cells, coverage.narrow
        ));
    }
    let near = found.transfer.iter().filter(|one| one.e2e_mean.abs() <= 0.1).count();
    if !found.transfer.is_empty() {
        parts.push(format!(
            "fitted to one workload and to pure steps measured apart, {near} of {} predictions of \
             another\nworkload's E2E mean are within 10 %",
            found.transfer.len()
        ));
    }
    parts.join("\n\n")
}

/// One line about a workload.
pub(super) fn headline(compared: &Compared) -> String {
    let steps = compared.steps.map_or_else(String::new, |steps| {
        let (mean, total) = (100.0 * steps.mean_absolute, signed(steps.total));
        format!("steps off by {mean:.1} % on average, {total} together; ")
    });
    let outside = match compared.outside.steps {
        0 => String::new(),
        _ => format!("; {}", outside(compared)),
    };
    format!(
        "{} requests; {steps}cached tokens as measured for {:.1} % of them{outside}",
        grouped(compared.measured.len() as u64),
        100.0 * compared.cached_equal
    )
}

/// The columns of what is said about the numbers of a workload.
pub(super) const COLUMNS: [&str; 9] =
    ["ms", "predicted", "from", "to", "measured", "error", "inside", "second run", "spread"];

/// Words as a sentence.
pub(super) fn sentence(words: &str) -> String {
    let mut letters = words.chars();
    let first = letters.next().map(|letter| letter.to_uppercase().to_string());
    format!("{}{}.", first.unwrap_or_default(), letters.as_str())
}

fn workload(compared: &Compared) -> String {
    let mut rows = table(&COLUMNS);
    for cell in compared.cells.iter().filter(|cell| is_shown(cell)) {
        rows.add_row(row(cell));
    }
    let head = bold(&compared.workload);
    let line = headline(compared).replacen("; cached", ";\ncached", 1);
    format!("{head}: {line}\n\n{}\n", rows.trim_fmt())
}

/// Whether there is something to say: no preemptions, as predicted, are not worth a row.
pub(super) fn is_shown(cell: &Cell) -> bool {
    cell.measured > 0.0 || cell.predicted > 0.0
}

/// What is said about a number, in the order of the columns.
pub(super) fn row(cell: &Cell) -> Vec<String> {
    let share = |value: Option<f64>| value.map_or_else(|| "-".to_owned(), signed);
    let inside = match cell.is_covered() {
        None => "-",
        Some(true) => "yes",
        Some(false) => "no",
    };
    vec![
        cell.quantity.name(),
        plain(Some(cell.predicted)),
        plain(cell.interval.map(|(low, _)| low)),
        plain(cell.interval.map(|(_, high)| high)),
        plain(Some(cell.measured)),
        share(cell.error()),
        inside.to_owned(),
        plain(cell.repeat),
        share(cell.spread()),
    ]
}
