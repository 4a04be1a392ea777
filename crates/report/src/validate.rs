//! How predictions compare with measured runs.

use crate::chart::{Axis, Chart, Form, Mark, Point, Scale};
use crate::model::{Block, Document, Table, blocks};
use crate::text::{counted, dash, grouped, percent, plain, sentence, signed, whole};
use blis_core::math::{count, float};
use blis_fidelity::validate::{
    Beyond, Bounds, Cell, Compared, Coverage, Errors, Metric, OwnHost, Quantity, Statistic,
    Transfer, sorted,
};
use blis_scenario::json::present;
use serde_json::{Map, Value, json};

/// How to read the tables of single workloads.
const READING: &str = "Predicted is one replay of the measured arrivals; low and high are its 90 % \
     interval over varied profiles, and inside says whether the measured value lies in it. The \
     second run has the same arrivals on another machine. ITL is a request's mean token gap.";
const TRANSFER: &str = "Error of mean E2E after a fit to one workload and to the decode-only and \
     prefill-only steps measured without a server.";
const BEYOND: &str = "Mean absolute error of steps of a kind, and error of their total time, after \
     three fits: to all steps; to none of this kind except those measured without a server; and to \
     none of this kind.";

const OVERVIEW: &str = "Each cell has the measured number (times in ms), how far the prediction is \
     off, and the interval about it, relative to what was measured: an interval without 0 has missed. \
     `again` is the server itself in another run of the same arrivals. ITL is the mean gap between \
     the tokens of a request.";

/// What a comparison found, and how it was made.
#[derive(Debug)]
pub struct Found {
    /// What was measured, in words.
    pub title: String,
    /// How far predictions may be off.
    pub bounds: Bounds,
    /// Each workload.
    pub compared: Vec<Compared>,
    /// How many intervals hold.
    pub coverage: Coverage,
    /// Fits to single workloads; empty if that makes no sense.
    pub transfer: Vec<Transfer>,
    /// Fits that have not seen a kind of steps; empty if that makes no sense.
    pub beyond: Vec<Beyond>,
    /// Which profile predicted, in words.
    pub basis: String,
}

/// What was found: all of one comparison, or the numbers that matter most of several.
pub fn document(parts: &[Found]) -> Document {
    let title = "Predictions against measurements";
    let [found] = parts else {
        let mut all = vec![Block::prose(unmet(parts)), Block::prose(OVERVIEW)];
        all.extend(parts.iter().map(|part| Block::group(&part.title, head(part))));
        let parts: Vec<Value> = parts.iter().map(object).collect();
        return Document::new(title, all, json!({ "parts": parts }));
    };
    let mut all = head(found);
    all.extend([Block::prose(OVERVIEW), Block::prose(READING)]);
    all.extend(found.compared.iter().map(workload));
    if !found.transfer.is_empty() {
        let blocks = vec![Block::prose(TRANSFER), transfers(&found.transfer).into()];
        all.push(Block::group("Fit to one workload", blocks));
    }
    if !found.beyond.is_empty() {
        let blocks = vec![Block::prose(BEYOND), beyond(&found.beyond).into()];
        all.push(Block::group("Extrapolation", blocks));
    }
    Document::new(title, all, object(found))
}

/// How it was made, the numbers that matter most, and how many intervals hold.
fn head(found: &Found) -> Vec<Block> {
    let mut all = vec![Block::prose(sentence(&found.basis)), overview(&found.compared).into()];
    all.extend(summary(found).into_iter().map(Block::Prose));
    all.extend(own_hosts(found));
    all
}

/// How far predictions are off that know how fast the host was, and how many are within bounds.
fn own_hosts(found: &Found) -> Vec<Block> {
    const SHOWN: [(Metric, Statistic); 3] = [
        (Metric::Ttft, Statistic::Mean),
        (Metric::Ttft, Statistic::P99),
        (Metric::E2e, Statistic::Mean),
    ];
    let shown = SHOWN.map(|(metric, statistic)| Quantity::Latency(metric, statistic));
    let known: Vec<(&Compared, &OwnHost)> =
        found.compared.iter().filter_map(|one| Some((one, one.own_host.as_ref()?))).collect();
    if known.is_empty() {
        return Vec::new();
    }
    let holds = |one: &Compared, cells: &[Cell]| {
        Bounds::of_workload(&one.workload, found.bounds).missed(cells).is_empty()
    };
    let before = known.iter().filter(|(one, _)| holds(one, &one.cells)).count();
    let after = known.iter().filter(|(one, own)| holds(one, &own.cells)).count();
    let row = |(one, own): &(&Compared, &OwnHost)| {
        let error = |quantity: &Quantity| {
            let cell = own.cells.iter().find(|cell| cell.quantity == *quantity);
            signed(cell.and_then(Cell::error))
        };
        let pace = format!("{:.2}", own.pace);
        [one.workload.clone(), pace].into_iter().chain(shown.iter().map(error)).collect::<Vec<_>>()
    };
    let names = shown.iter().map(|quantity| quantity.name());
    let header = ["workload".to_owned(), "host time / profile".to_owned()].into_iter().chain(names);
    let text = format!(
        "Errors with the host as fast as it was in the run, which is one number of its log: {after} \
         of {} are within their bounds instead of {before}.",
        counted(known.len() as u64, "workload")
    );
    vec![Block::prose(text), Table::new("", header, known.iter().map(row)).into()]
}

/// Which workloads are not predicted as well as they should be.
fn unmet(parts: &[Found]) -> String {
    let all = parts.iter().flat_map(|part| part.compared.iter().map(move |one| (part, one)));
    let missed: Vec<String> = all
        .filter_map(|(part, one)| {
            let cells = Bounds::of_workload(&one.workload, part.bounds).missed(&one.cells);
            let names: Vec<String> = cells.iter().map(miss).collect();
            (!names.is_empty()).then(|| format!("{} ({})", one.workload, names.join(", ")))
        })
        .collect();
    let of = counted(parts.iter().map(|part| part.compared.len() as u64).sum(), "workload");
    match missed.len() {
        0 => format!("All of {of} are within their bounds."),
        count => format!("Not within its bounds: {count} of {of}: {}.", missed.join("; ")),
    }
}

/// How far a prediction is off, and how far other runs of the server are.
fn miss(cell: &Cell) -> String {
    let mut spreads: Vec<f64> = cell.spreads().collect();
    spreads.sort_by(f64::total_cmp);
    let others = match &spreads[..] {
        [] => String::new(),
        [low, .., high] => {
            format!("; its other runs {} to {}", signed(Some(*low)), signed(Some(*high)))
        }
        [one] => format!("; its other run {}", signed(Some(*one))),
    };
    format!("{} {}{others}", cell.quantity.name(), signed(cell.error()))
}

/// The numbers that matter most, one workload a row, and those of its other runs.
fn overview(all: &[Compared]) -> Table {
    const SHOWN: [(Metric, Statistic); 5] = [
        (Metric::Ttft, Statistic::Mean),
        (Metric::Ttft, Statistic::P50),
        (Metric::Ttft, Statistic::P99),
        (Metric::Itl, Statistic::Mean),
        (Metric::E2e, Statistic::Mean),
    ];
    let shown = || SHOWN.map(|(metric, statistic)| Quantity::Latency(metric, statistic));
    let quantities: Vec<Quantity> = shown().into_iter().chain([Quantity::Preemptions]).collect();
    let mut rows = Vec::new();
    for one in all {
        let of = |quantity: &Quantity| {
            let cell = one.cells.iter().find(|cell| cell.quantity == *quantity);
            cell.filter(|cell| is_shown(cell))
        };
        let cells = quantities.iter().map(|quantity| dash(of(quantity), brief));
        let steps = signed(one.steps.map(|steps| steps.total));
        let outside = percent(one.outside.share());
        let last = [percent(one.cached_equal), steps, outside];
        rows.push([one.workload.clone()].into_iter().chain(cells).chain(last).collect::<Vec<_>>());
        for index in 0..one.repeats.len() {
            let again = |it: &Quantity| signed(of(it).and_then(|cell| cell.spreads().nth(index)));
            let blank = [String::new(), String::new(), String::new()];
            let again = quantities.iter().map(again).chain(blank);
            rows.push(["again".to_owned()].into_iter().chain(again).collect());
        }
    }
    let names = quantities.iter().map(|quantity| quantity.name());
    let last = ["hits equal", "step time, total", "steps outside the fit"].map(str::to_owned);
    Table::new("", ["workload".to_owned()].into_iter().chain(names).chain(last), rows)
}

/// What was measured, how far the prediction is off, and its interval relative to the measured.
fn brief(cell: &Cell) -> String {
    let bound = |value: f64| 100.0 * (value / cell.measured - 1.0);
    let interval = cell
        .interval
        .filter(|_| cell.measured > 0.0)
        .map(|(low, high)| format!(" ({:+.0} to {:+.0})", bound(low), bound(high)));
    let measured = match cell.quantity {
        Quantity::Preemptions => whole(cell.measured),
        Quantity::Latency(..) => plain(cell.measured),
    };
    format!("{measured}: {}{}", signed(cell.error()), interval.unwrap_or_default())
}

/// How many intervals hold, and how far fits to single workloads are off.
fn summary(found: &Found) -> Vec<String> {
    let mut parts = Vec::new();
    let coverage = &found.coverage;
    if coverage.cells > 0 {
        parts.push(format!(
            "{} of {} measured values are inside their 90 % intervals; {} intervals are narrow \
             (at most 10 % plus twice the spread of repeated runs).",
            coverage.covered, coverage.cells, coverage.narrow
        ));
    }
    let near = found.transfer.iter().filter(|one| one.e2e_mean.abs() <= 0.1).count();
    if !found.transfer.is_empty() {
        parts.push(format!(
            "After a fit to one workload and to steps measured without a server, {near} of {} \
             predictions of another workload's mean E2E are within 10 %.",
            found.transfer.len()
        ));
    }
    parts
}

/// One workload: how its steps and requests fared, their distributions, and the numbers.
fn workload(compared: &Compared) -> Block {
    let cells = compared.cells.iter().filter(|cell| is_shown(cell)).map(row);
    let header =
        ["ms", "predicted", "low", "high", "measured", "error", "inside", "other runs", "spread"];
    let table = Table::new("", header, cells).without_empty();
    let mut all = vec![Block::prose(headline(compared)), table.into()];
    all.extend(blocks(distributions(compared)));
    Block::group(&compared.workload, all)
}

/// That steps are outside what was fitted to.
pub fn outside(compared: &Compared) -> String {
    let outside = &compared.outside;
    let far = |(name, value): &(&str, f64)| format!("{name} {}", plain(*value));
    let variables: Vec<String> = outside.variables.iter().map(far).collect();
    format!(
        "{} of {} steps ({}) are outside the fitted range (farthest: {}); their times are \
         extrapolated",
        grouped(outside.steps as u64),
        grouped(outside.of as u64),
        percent(outside.share()),
        variables.join(", ")
    )
}

fn headline(compared: &Compared) -> String {
    let steps = compared.steps.map_or_else(String::new, |steps| {
        let (mean, total) = (percent(steps.mean_absolute), signed(steps.total));
        format!("step times are off by {mean} on average, {total} in total; ")
    });
    let outside = match compared.outside.steps {
        0 => String::new(),
        _ => format!("; {}", outside(compared)),
    };
    format!(
        "{}; {steps}cached tokens equal for {} of them{outside}.",
        counted(compared.measured.len() as u64, "request"),
        percent(compared.cached_equal)
    )
}

/// Whether there is something to say: no preemptions, as predicted, are not worth a row.
fn is_shown(cell: &Cell) -> bool {
    cell.measured > 0.0 || cell.predicted > 0.0
}

fn row(cell: &Cell) -> [String; 9] {
    let inside = cell.is_covered().map(|is| if is { "yes" } else { "no" });
    let runs: Vec<String> = cell.repeats.iter().map(|&run| plain(run)).collect();
    // Without another run there is nothing to compare with.
    let spread = cell.spread().map_or_else(String::new, |spread| signed(Some(spread)));
    [
        cell.quantity.name(),
        plain(cell.predicted),
        plain(cell.interval.map(|(low, _)| low)),
        plain(cell.interval.map(|(_, high)| high)),
        plain(cell.measured),
        signed(cell.error()),
        inside.unwrap_or("-").to_owned(),
        runs.join(", "),
        spread,
    ]
}

/// What requests saw in the server, in its other runs and in the simulator.
fn distributions(compared: &Compared) -> Option<Chart> {
    let mut seen = vec![("measured", &compared.measured)];
    seen.extend(compared.repeats.iter().map(|repeat| ("other runs", repeat)));
    seen.push(("predicted", &compared.predicted));
    let mut points = Vec::new();
    for metric in Metric::ALL {
        for (name, seen) in &seen {
            let values = sorted(metric, seen);
            let Some(last) = values.len().checked_sub(1) else { continue };
            points.extend((0..=100_u32).map(|percent| {
                let share = f64::from(percent) / 100.0;
                let rank = usize::try_from(count(share * float(last as u64))).unwrap_or(last);
                let point = Point::at(values[rank.min(last)], share).marked(Mark::None);
                point.of(*name).on(format!("{}, ms", metric.name()))
            }));
        }
    }
    let axes = [Axis::new("ms", Scale::Fit), Axis::new("share of requests", Scale::Zero)];
    Chart::new(format!("distributions of {}", compared.workload), Form::Lines, axes, points)
}

fn transfers(all: &[Transfer]) -> Table {
    let mut names: Vec<&str> = all.iter().map(|one| one.from.as_str()).collect();
    names.dedup();
    let row = |from: &&str| {
        let cell = |to: &&str| {
            let one = all.iter().find(|one| one.from == *from && one.to == *to);
            signed(one.map(|one| one.e2e_mean))
        };
        let cells = names.iter().map(cell);
        std::iter::once((*from).to_owned()).chain(cells).collect::<Vec<_>>()
    };
    let header = std::iter::once("fitted to").chain(names.iter().copied());
    Table::new("", header, names.iter().map(row))
}

fn beyond(all: &[Beyond]) -> Table {
    let errors = |errors: Option<Errors>| {
        dash(errors, |e| format!("{}, {}", percent(e.mean_absolute), signed(e.total)))
    };
    let row = |one: &Beyond| {
        let steps = grouped(one.seen.steps as u64);
        let name = one.edge.name().to_owned();
        [name, steps, errors(Some(one.seen)), errors(one.apart), errors(one.unseen)]
    };
    let header = ["steps", "number", "fit to all", "no server steps", "never seen"];
    Table::new("", header, all.iter().map(row))
}

/// What was found, for programs.
fn object(found: &Found) -> Value {
    let coverage = &found.coverage;
    let coverage = (coverage.cells > 0).then(
        || json!({"cells": coverage.cells, "covered": coverage.covered, "narrow": coverage.narrow}),
    );
    let transfer =
        |one: &Transfer| json!({"from": one.from, "to": one.to, "e2e_mean_error": one.e2e_mean});
    let errors = |errors: Option<Errors>| {
        json!({
            "mean_absolute_error": errors.map(|errors| errors.mean_absolute),
            "total_error": errors.map(|errors| errors.total),
        })
    };
    let beyond = |one: &Beyond| {
        json!({
            "steps_of": one.edge.name(),
            "steps": one.seen.steps,
            "fitted": errors(Some(one.seen)),
            "measured_apart": errors(one.apart),
            "never_seen": errors(one.unseen),
        })
    };
    let listed = |all: Vec<Value>| (!all.is_empty()).then_some(all);
    present(json!({
        "of": found.title,
        "basis": found.basis,
        "workloads": found.compared.iter().map(of_workload).collect::<Vec<_>>(),
        "coverage": coverage,
        "transfer": listed(found.transfer.iter().map(transfer).collect()),
        "beyond": listed(found.beyond.iter().map(beyond).collect()),
    }))
}

fn of_workload(compared: &Compared) -> Value {
    let own_host = compared.own_host.as_ref();
    let number = |cell: &Cell| {
        let name = cell.quantity.name().to_lowercase().replace(' ', "_");
        let unit = if name == "preemptions" { "" } else { "_ms" };
        let told = own_host.and_then(|own| {
            own.cells.iter().find(|other| other.quantity == cell.quantity)?.error()
        });
        let numbers = json!({
            "predicted": cell.predicted,
            "low": cell.interval.map(|(low, _)| low),
            "high": cell.interval.map(|(_, high)| high),
            "measured": cell.measured,
            "other_runs": cell.repeats,
            "error": cell.error(),
            "error_with_own_host": told,
            "spread": cell.spread(),
        });
        (format!("{name}{unit}"), numbers)
    };
    json!({
        "workload": compared.workload,
        "requests": compared.measured.len(),
        "step_error_mean_absolute": compared.steps.map(|steps| steps.mean_absolute),
        "step_error_total": compared.steps.map(|steps| steps.total),
        "steps_outside_fit": compared.outside.steps,
        "cached_equal": compared.cached_equal,
        "host_pace": own_host.map(|own| own.pace),
        "numbers": compared.cells.iter().map(number).collect::<Map<_, _>>(),
    })
}
