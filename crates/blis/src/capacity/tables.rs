//! What a search for capacities has found, as tables for a terminal.

use crate::report::grid::{Grid, folded};
use crate::report::table::{bold, grouped, percent};
use blis_core::math::count;
use blis_lab::capacity::{Answer, Findings, Found, Judged, Point, Search, Vary};
use blis_lab::stats::Estimate;
use blis_lab::verdict::{Scale, number};

/// Everything.
pub(super) fn report(search: &Search, findings: &Findings) -> String {
    let mut parts = vec![format!("{}\n{}", bold(&question(search)), conditions(search, findings))];
    parts.push(summary(search, findings).text());
    for answer in &findings.answers {
        parts.extend(told(search, answer));
    }
    parts.extend(
        findings.answers.iter().filter_map(|answer| curve(search, answer)).map(|grid| grid.text()),
    );
    parts.join("\n").trim_end().to_owned() + "\n"
}

/// What is asked, in words.
pub(super) fn question(search: &Search) -> String {
    let slo: Vec<&str> = search.question.slo.iter().map(|slo| slo.text.as_str()).collect();
    let what = match search.question.vary {
        Vary::Rate => "highest rate",
        Vary::Instances => "fewest instances",
    };
    format!("{what} of {} at which {}", search.name, slo.join(" and "))
}

/// How the numbers came about.
pub(super) fn conditions(search: &Search, findings: &Findings) -> String {
    let Findings { seeds, trials, requests, stretch, warmup, .. } = findings;
    let stretch = match stretch {
        1 => String::new(),
        times => format!(" ({times} times as many as the scenario says, which were too few)"),
    };
    let warmup = match warmup {
        Some(seconds) if *seconds > 0.0 => {
            format!("; those of the first {} s are not counted", number(*seconds))
        }
        _ => String::new(),
    };
    let requests = match requests {
        0 => "none of which has found a capacity".to_owned(),
        requests => format!("{} requests each", grouped(*requests)),
    };
    let most = search.question.max_seeds;
    let most = if most > seeds.len() { format!(" (of at most {most})") } else { String::new() };
    folded(
        &format!(
            "{} runs: {} seeds{most}, the same requests at all of them but for their gaps, \
             {requests}{stretch}{warmup}",
            grouped(*trials as u64),
            seeds.len(),
        ),
        0,
        0,
    ) + "\n"
}

/// What the varied value counts.
pub(super) fn unit(search: &Search) -> &'static str {
    let sessions =
        search.subjects.first().is_some_and(blis_lab::capacity::Subject::counts_sessions);
    match (search.question.vary, sessions) {
        (Vary::Instances, _) => "instances",
        (Vary::Rate, true) => "sessions/s",
        (Vary::Rate, false) => "requests/s",
    }
}

/// One row a strategy.
pub(super) fn summary(search: &Search, findings: &Findings) -> Grid {
    let several = findings.answers.len() > 1;
    let first = &findings.answers[0].name;
    let mut header = vec![
        "strategy".to_owned(),
        format!("capacity, {} (95 %)", unit(search)),
        match search.question.vary {
            Vary::Rate => "sure to meet up to".to_owned(),
            Vary::Instances => "sure to meet with".to_owned(),
        },
    ];
    if several {
        header.push(format!("against {first} (95 %)"));
    }
    let row = |(answer, ratio): (&Answer, &Option<Estimate>)| {
        let safe = answer.safe.map_or_else(|| "-".to_owned(), value);
        let mut cells = vec![answer.name.clone(), estimated(answer), safe];
        if several {
            cells.push(ratio.as_ref().map(change).unwrap_or_default());
        }
        cells
    };
    let rows = findings.answers.iter().zip(&findings.ratios).map(row).collect();
    Grid { title: String::new(), header, rows }
}

fn estimated(answer: &Answer) -> String {
    match (&answer.found, answer.estimate) {
        (Found::Never { .. }, _) => "none".to_owned(),
        (Found::Unlimited { at }, _) => format!("above {}", value(*at)),
        (Found::Capacity, None) => "-".to_owned(),
        (Found::Capacity, Some(Estimate { mean, low, high, .. })) => {
            format!("{} ({} to {})", value(mean), value(low), value(high))
        }
    }
}

/// A change in percent.
pub(super) fn change(ratio: &Estimate) -> String {
    let show = |ratio: f64| format!("{:+.1} %", 100.0 * (ratio - 1.0));
    format!("{} ({} to {})", show(ratio.mean), show(ratio.low), show(ratio.high))
}

/// A rate or a number of instances, with four digits.
pub(super) fn value(value: f64) -> String {
    let text = match value {
        value if value >= 999.95 => return grouped(count(value)),
        value if value >= 99.995 => format!("{value:.1}"),
        value if value >= 9.9995 => format!("{value:.2}"),
        value if value >= 0.99995 => format!("{value:.3}"),
        value => format!("{value:.3e}").parse::<f64>().unwrap_or(value).to_string(),
    };
    if !text.contains('.') {
        return text;
    }
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}

/// What has to be said about an answer, a line each.
pub(super) fn told(search: &Search, answer: &Answer) -> Vec<String> {
    let mut lines = Vec::new();
    let unit = unit(search);
    match &answer.found {
        Found::Capacity => {}
        Found::Never { at, why } => lines.push(format!(
            "{}: not met even at {} {unit}: {why}; give a bound that an idle cluster can meet",
            answer.name,
            value(*at)
        )),
        Found::Unlimited { at } => lines.push(format!(
            "{}: still met at {} {unit}: it does not limit what is served; ask for what is \
             completed too, e.g. `completed >= 0.99 * offered`",
            answer.name,
            value(*at)
        )),
    }
    lines.extend(answer.doubts.iter().map(|doubt| format!("{}: {doubt}", answer.name)));
    lines.iter().map(|line| folded(line, 0, 2) + "\n").collect()
}

/// The points of one strategy; none if it has no capacity.
pub(super) fn curve(search: &Search, answer: &Answer) -> Option<Grid> {
    if answer.points.is_empty() {
        return None;
    }
    let header = std::iter::once(unit(search).to_owned())
        .chain(search.question.slo.iter().map(|slo| slo.text.clone()))
        .chain(["completed", "load", "verdict"].map(str::to_owned));
    let row = |point: &Point| {
        std::iter::once(value(point.value))
            .chain(point.slo.iter().map(judged))
            .chain([percent(point.completed), load(point), point.standing.name().to_owned()])
            .collect()
    };
    let title = answer.name.clone();
    Some(Grid { title, header: header.collect(), rows: answer.points.iter().map(row).collect() })
}

/// The number that an SLO bounds, in the unit of its bound, and a mark if it does not surely hold.
fn judged(judged: &Judged) -> String {
    let Some(Estimate { mean, low, high, .. }) = judged.effect.estimate else {
        return "-".to_owned();
    };
    let times = if judged.effect.scale == Scale::Ratio { " times" } else { "" };
    let mark = match judged.holds {
        Some(true) => "",
        Some(false) => " no",
        None => " ?",
    };
    let (low, high) = (number(low), number(high));
    if low == high {
        return format!("{}{times}{mark}", number(mean));
    }
    format!("{}{times} ({low} to {high}){mark}", number(mean))
}

/// Whether the cluster kept up.
pub(super) fn load(point: &Point) -> String {
    match point.unstable {
        0 => "stable".to_owned(),
        all if all == point.runs => "saturated".to_owned(),
        some => format!("saturated in {some} of {}", point.runs),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rates_have_four_digits() {
        let shown = [1.0, 3.062, 66.667, 142.84, 12_345.0, 20.0, 0.000_012_345].map(value);
        assert_eq!(shown, ["1", "3.062", "66.67", "142.8", "12,345", "20", "0.00001234"]);
    }
}
