//! `blis trace inspect --format table`: for people, within 100 columns.

use crate::report::table::{bold, grouped, percent, plain, table, wrapped};
use crate::trace::chart;
use crate::trace::inspect::Inspected;
use blis_core::Source;
use blis_core::math::float;
use blis_scenario::problem::{shown, visible};
use blis_workload::Inspection;
use blis_workload::inspect::{Arrivals, Group, QUANTILE_ERROR, SessionStats, Sharing, Spread};
use std::iter;

/// Columns of the chart of arrivals.
const COLUMNS: usize = 96;
/// It has fewer, but not fewer than these, if there would be less than so many requests in each.
const FEWEST_COLUMNS: usize = 8;
const REQUESTS_A_COLUMN: u64 = 8;
/// Lines of it.
const LINES: usize = 2;
/// Rows of a histogram.
const ROWS: usize = 12;
/// Cells of its longest bar.
const CELLS: usize = 18;
/// Where the second histogram starts.
const SECOND: usize = 51;

/// What was found.
pub(super) fn text(inspected: &Inspected) -> String {
    let found = &inspected.found;
    let mut parts = vec![headline(inspected)];
    parts.extend(found.arrivals.as_ref().map(|seen| arrivals(seen, found.requests)));
    parts.push(lengths(found));
    if let (Some(input), Some(output)) = (&found.input, &found.output) {
        let input = chart::histogram("input tokens", &input.bars(ROWS), CELLS);
        let output = chart::histogram("output tokens", &output.bars(ROWS), CELLS);
        parts.push(chart::beside(&input, &output, SECOND));
    }
    parts.extend(found.sharing.as_ref().map(|sharing| shared(sharing, found.requests)));
    parts.extend(found.sessions.as_ref().map(|stats| sessions(stats, found.requests)));
    if found.classes.len() > 1 || found.tenant_count > 1 {
        parts.push(groups(inspected));
    }
    parts.join("\n")
}

fn headline(inspected: &Inspected) -> String {
    let Inspected { name, source, found, follow_ups } = inspected;
    let span = found.arrivals.as_ref().map_or(0, |seen| seen.last.since(seen.first).as_nanos());
    let first = format!(
        "{name}: {} {} in {}, {} format",
        grouped(found.requests),
        if found.requests == 1 { "request" } else { "requests" },
        duration(span),
        source.format().name()
    );
    let skipped = source.skipped();
    let mut notes = Vec::new();
    if skipped.total() > 0 {
        notes.push(format!("{} rows skipped: {skipped}", grouped(skipped.total())));
    }
    if *follow_ups > 0 {
        notes.push(format!(
            "{} requests wait for an answer, which is taken to come at once here",
            grouped(*follow_ups)
        ));
    }
    if let Some(deadlines) = &found.deadlines {
        notes.push(format!(
            "{} have a deadline: {} to {}, median {}",
            grouped(deadlines.count),
            duration(deadlines.min),
            duration(deadlines.max),
            duration(deadlines.p50)
        ));
    }
    notes.insert(0, bold(&first));
    format!("{}\n", notes.join("\n"))
}

fn arrivals(arrivals: &Arrivals, requests: u64) -> String {
    let Arrivals { rate, gap_cv, peak_1s, peak_10s, .. } = arrivals;
    let item = |value: &Option<f64>, before: &str, behind: &str| {
        value.map(|value| format!("{before}{}{behind}", plain(Some(value))))
    };
    let speeds = [
        item(rate, "", " requests/s"),
        item(peak_1s, "", " in the busiest second"),
        item(peak_10s, "", " in the busiest ten seconds"),
    ];
    let spreads = [
        item(gap_cv, "CV of the gaps ", ""),
        item(&arrivals.dispersion_1s, "variance / mean of the counts ", " in 1 s"),
        item(&arrivals.dispersion_10s, "", " in 10 s (Poisson: 1)"),
    ];
    let lines = [speeds, spreads].map(|items| {
        let items: Vec<&str> = items.iter().flatten().map(String::as_str).collect();
        if items.is_empty() { String::new() } else { format!("{}\n", items.join(", ")) }
    });
    let lines = lines.concat();
    let chart = timeline(arrivals, requests).map_or_else(String::new, |text| format!("\n{text}"));
    format!("{lines}{chart}")
}

/// The rate over time as columns, as many as there are requests for, over the whole width; `None`
/// if there is no time.
fn timeline(arrivals: &Arrivals, requests: u64) -> Option<String> {
    let Arrivals { first, last, .. } = arrivals;
    let enough = usize::try_from(requests / REQUESTS_A_COLUMN).unwrap_or(COLUMNS);
    let rates = arrivals.timeline.rates(enough.clamp(FEWEST_COLUMNS, COLUMNS));
    if rates.len() < 2 {
        return None;
    }
    let (least, most) = rates.iter().fold((f64::MAX, 0.0), |(least, most): (f64, f64), &rate| {
        (least.min(rate), most.max(rate))
    });
    let wide: Vec<f64> =
        rates.iter().flat_map(|&rate| iter::repeat_n(rate, COLUMNS / rates.len())).collect();
    let chart = chart::columns(&wide, LINES).join("\n  ");
    let step = last.since(*first).as_nanos() / rates.len() as u64;
    let (start, end) = (duration(first.as_nanos()), duration(last.as_nanos()));
    let middle = format!(
        "{} to {} requests/s, {} a column",
        plain(Some(least)),
        plain(Some(most)),
        duration(step)
    );
    let room = wide.len().saturating_sub(start.chars().count() + end.chars().count());
    Some(format!("  {chart}\n  {start}{middle:^room$}{end}\n"))
}

fn lengths(found: &Inspection) -> String {
    let mut table = table(&["tokens", "sum", "mean", "min", "p10", "p50", "p90", "p99", "max"]);
    for (name, spread) in
        [("input", &found.input), ("output", &found.output), ("total", &found.total)]
    {
        let Some(spread) = spread else { continue };
        let Spread { sum, mean, min, p10, p50, p90, p99, max, .. } = spread;
        let mut row = vec![name.to_owned(), grouped(u64::try_from(*sum).unwrap_or(u64::MAX))];
        row.push(plain(Some(*mean)));
        row.extend([min, p10, p50, p90, p99, max].map(|&tokens| grouped(tokens)));
        table.add_row(row);
    }
    let error = percent(Some(QUANTILE_ERROR));
    format!("{}\nquantiles are within {error}, all else is exact\n", table.trim_fmt())
}

fn shared(sharing: &Sharing, requests: u64) -> String {
    let Sharing { block_size, prompt_tokens, hit_tokens, requests_with_hit, blocks, .. } = sharing;
    if *hit_tokens == 0 {
        let head = format!("sharing: no two prompts begin with the same {block_size} tokens");
        return format!("{}\n", bold(&head));
    }
    let head = bold(&format!(
        "sharing: a cache that never forgets has {} of all prompt tokens",
        percent(sharing.hit_share())
    ));
    let facts = wrapped(&[
        format!("blocks of {block_size} tokens"),
        format!("{} of {} tokens", grouped(*hit_tokens), grouped(*prompt_tokens)),
        format!("{} of {} requests find a block", grouped(*requests_with_hit), grouped(requests)),
        format!("{} blocks to keep", grouped(*blocks)),
    ]);
    let mut table = table(&["tokens of the prompt", "found by", "tokens saved", "of all prompts"]);
    for stretch in &sharing.stretches {
        table.add_row(vec![
            format!("{} to {}", grouped(stretch.from), grouped(stretch.to)),
            grouped(stretch.hits),
            grouped(stretch.saved_tokens),
            percent(Some(float(stretch.saved_tokens) / float(*prompt_tokens))),
        ]);
    }
    format!("{head}\n{facts}\n\n{}\n", table.trim_fmt())
}

fn sessions(stats: &SessionStats, requests: u64) -> String {
    let head = bold(&format!(
        "sessions: {} with {} of the requests",
        grouped(stats.sessions),
        percent(Some(float(stats.requests) / float(requests)))
    ));
    let mut table = table(&["", "mean", "min", "p10", "p50", "p90", "p99", "max"]);
    let mut row = |name: &str, mean: String, spread: &Spread, show: fn(u64) -> String| {
        let Spread { min, p10, p50, p90, p99, max, .. } = spread;
        let mut cells = vec![name.to_owned(), mean];
        cells.extend([min, p10, p50, p90, p99, max].map(|&value| show(value)));
        table.add_row(cells);
    };
    row("rounds", plain(Some(stats.rounds.mean)), &stats.rounds, grouped);
    if let Some(gaps) = &stats.gaps {
        let mean = duration(blis_core::math::count(gaps.mean));
        row("from round to round", mean, gaps, duration);
    }
    format!("{head}\n{}\n", table.trim_fmt())
}

fn groups(inspected: &Inspected) -> String {
    let Inspected { source, found, .. } = inspected;
    let header = |name| [name, "requests", "share", "mean input", "mean output"];
    let row = |name: String, group: &Group| {
        let Group { requests, input_tokens, output_tokens } = *group;
        let each = |tokens| plain(Some(float(tokens) / float(requests)));
        let share = percent(Some(float(requests) / float(found.requests)));
        vec![name, grouped(requests), share, each(input_tokens), each(output_tokens)]
    };
    let mut parts = Vec::new();
    if found.classes.len() > 1 {
        let mut table = table(&header("class"));
        for (class, group) in &found.classes {
            table.add_row(row(class.name().to_owned(), group));
        }
        parts.push(format!("{}\n", table.trim_fmt()));
    }
    if found.tenant_count > 1 {
        let mut table = table(&header("tenant"));
        for (tenant, group) in &found.tenants {
            table.add_row(row(shown(&visible(&source.tenant_name(*tenant))), group));
        }
        let others = match found.tenant_count - found.tenants.len() as u64 {
            0 => String::new(),
            others => format!("and {} more tenants\n", grouped(others)),
        };
        parts.push(format!("{}\n{others}", table.trim_fmt()));
    }
    parts.join("\n")
}

/// A length of time with about four digits, in the unit that suits it.
fn duration(nanos: u64) -> String {
    const UNITS: [(&str, u64); 6] = [
        ("days", 86_400_000_000_000),
        ("h", 3_600_000_000_000),
        ("min", 60_000_000_000),
        ("s", 1_000_000_000),
        ("ms", 1_000_000),
        ("µs", 1_000),
    ];
    // Minutes and more only where seconds would be many.
    let unit = UNITS.into_iter().find(|&(name, unit)| {
        nanos >= if matches!(name, "days" | "h" | "min") { 2 * unit } else { unit }
    });
    match unit {
        _ if nanos == 0 => "0 s".to_owned(),
        Some((name, unit)) => format!("{} {name}", plain(Some(float(nanos) / float(unit)))),
        None => format!("{nanos} ns"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_are_in_the_unit_that_suits_them() {
        for (nanos, text) in [
            (0, "0 s"),
            (999, "999 ns"),
            (1_500, "1.50 µs"),
            (250_000_000, "250.0 ms"),
            (119_000_000_000, "119.0 s"),
            (3_534_000_000_000, "58.9 min"),
            (7_200_000_000_000, "2.00 h"),
            (1_000_000_000_000_000, "11.6 days"),
        ] {
            assert_eq!(duration(nanos), text);
        }
    }
}
