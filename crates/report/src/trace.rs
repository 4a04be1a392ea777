//! What a trace looks like.

use crate::chart::{Axis, Chart, Form, Point, Scale};
use crate::model::{Block, Document, Table, blocks};
use crate::text::{counted, duration, grouped, listed, percent, plain};
use blis_core::Source;
use blis_core::math::{count, float};
use blis_scenario::json::present;
use blis_scenario::problem::{shown, visible};
use blis_workload::inspect::{
    Arrivals, Bar, Group, QUANTILE_ERROR, SessionStats, SharedStretch, Sharing, Spread,
};
use blis_workload::{Inspection, TraceSource};
use serde_json::{Map, Value, json};

/// Columns of the chart of arrivals.
const COLUMNS: usize = 96;
/// It has fewer, but not fewer than these, if there would be less than so many requests in each.
const FEWEST_COLUMNS: usize = 8;
const REQUESTS_A_COLUMN: u64 = 8;
/// Bars of a histogram.
const BARS: usize = 12;
/// Stretches of the timeline for programs.
const STRETCHES: usize = 100;
/// Bars of a histogram for programs, at most.
const MOST_BARS: usize = 64;

/// A trace that was looked at.
pub struct Inspected {
    /// Its file, as it was given.
    pub name: String,
    /// Where it was read from, for the names of tenants and the rows that were left out.
    pub source: TraceSource,
    /// What it looks like.
    pub found: Inspection,
    /// Requests that wait for an answer, taken to come at once.
    pub follow_ups: u64,
}

/// What was found.
pub fn document(inspected: &Inspected) -> Document {
    let Inspected { name, source, found, .. } = inspected;
    let span = found.arrivals.as_ref().map_or(0, |seen| seen.last.since(seen.first).as_nanos());
    let title = format!(
        "{name}: {} in {}, {} format",
        counted(found.requests, "request"),
        duration(span),
        source.format().name()
    );
    let mut all = vec![Block::List(notes(inspected))];
    if let Some(seen) = &found.arrivals {
        all.push(Block::List(arrivals(seen)));
        all.extend(blocks(timeline(seen, found.requests)));
    }
    all.push(lengths(found).into());
    let error = percent(QUANTILE_ERROR);
    all.push(Block::prose(format!("Quantiles are within {error}, everything else is exact.")));
    let spreads = [("input tokens", &found.input), ("output tokens", &found.output)];
    all.extend(blocks(spreads.into_iter().filter_map(|(name, spread)| {
        let bars = spread.as_ref()?.bars(BARS);
        let axes = [Axis::new("tokens", Scale::Names), Axis::new("requests", Scale::Zero)];
        Chart::new(name, Form::Bars, axes, bars.iter().map(bar).collect())
    })));
    all.extend(found.sharing.as_ref().map(|sharing| shared(sharing, found.requests)));
    all.extend(found.sessions.as_ref().map(|stats| sessions(stats, found.requests)));
    all.extend(groups(inspected));
    Document::new(title, all, object(inspected))
}

fn notes(inspected: &Inspected) -> Vec<String> {
    let skipped = inspected.source.skipped();
    let deadlines = inspected.found.deadlines.as_ref();
    let notes = [
        (skipped.total() > 0)
            .then(|| format!("{} skipped: {skipped}", counted(skipped.total(), "row"))),
        (inspected.follow_ups > 0).then(|| {
            let many = counted(inspected.follow_ups, "request");
            format!("{many} wait for a response, assumed instant here")
        }),
        deadlines.map(|seen| {
            let [min, max, p50] = [seen.min, seen.max, seen.p50].map(duration);
            format!("{} have a deadline: {min} to {max}, median {p50}", grouped(seen.count))
        }),
    ];
    notes.into_iter().flatten().collect()
}

fn arrivals(seen: &Arrivals) -> Vec<String> {
    let item = |value: Option<f64>, before: &str, behind: &str| {
        value.map(|value| format!("{before}{}{behind}", plain(value)))
    };
    let speeds = listed([
        item(seen.rate, "", " requests/s"),
        item(seen.peak_1s, "", " in the busiest second"),
        item(seen.peak_10s, "", " in the busiest ten seconds"),
    ]);
    let spreads = listed([
        item(seen.gap_cv, "CV of the gaps ", ""),
        item(seen.dispersion_1s, "variance / mean of the counts ", " in 1 s"),
        item(seen.dispersion_10s, "", " in 10 s (Poisson: 1)"),
    ]);
    [speeds, spreads].into_iter().filter(|line| !line.is_empty()).collect()
}

/// The rate over time, in as many columns as there are requests for; none if there is no time.
fn timeline(seen: &Arrivals, requests: u64) -> Option<Chart> {
    let enough = usize::try_from(requests / REQUESTS_A_COLUMN).unwrap_or(COLUMNS);
    let rates = seen.timeline.rates(enough.clamp(FEWEST_COLUMNS, COLUMNS));
    if rates.len() < 2 {
        return None;
    }
    let (first, last) = (seen.first.as_secs_f64(), seen.last.as_secs_f64());
    let step = (last - first) / float(rates.len() as u64 - 1);
    let columns = seen.last.since(seen.first).as_nanos() / rates.len() as u64;
    let label = format!("requests/s, {} per column", duration(columns));
    let axes = [Axis::new("s", Scale::Tight), Axis::new(label, Scale::Zero)];
    let points = rates.iter().enumerate();
    let points = points.map(|(at, &rate)| Point::at(first + step * float(at as u64), rate));
    Chart::new("arrivals", Form::Timeline, axes, points.collect())
}

fn bar(bar: &Bar) -> Point {
    let (from, to) = (grouped(bar.from), grouped(bar.to));
    let name = if bar.from == bar.to { to } else { format!("{from} to {to}") };
    Point::named(name, float(bar.count))
}

fn quantiles(spread: &Spread) -> [(&'static str, u64); 6] {
    let Spread { min, p10, p50, p90, p99, max, .. } = *spread;
    [("min", min), ("p10", p10), ("p50", p50), ("p90", p90), ("p99", p99), ("max", max)]
}

fn lengths(found: &Inspection) -> Table {
    let all = [("input", &found.input), ("output", &found.output), ("total", &found.total)];
    let row = |(name, spread): (&str, &Option<Spread>)| {
        let spread = spread.as_ref()?;
        let sum = grouped(u64::try_from(spread.sum).unwrap_or(u64::MAX));
        let first = [name.to_owned(), sum, plain(spread.mean)];
        let others = quantiles(spread).map(|(_, tokens)| grouped(tokens));
        Some(first.into_iter().chain(others).collect::<Vec<_>>())
    };
    let header = ["tokens", "sum", "mean", "min", "p10", "p50", "p90", "p99", "max"];
    Table::new("", header, all.into_iter().filter_map(row))
}

fn shared(sharing: &Sharing, requests: u64) -> Block {
    let Sharing { block_size, prompt_tokens, hit_tokens, requests_with_hit, blocks, .. } = sharing;
    if *hit_tokens == 0 {
        let text = format!("Sharing: no two prompts begin with the same {block_size} tokens.");
        return Block::prose(text);
    }
    let facts = format!(
        "blocks of {block_size} tokens, {} of {} tokens, {} of {} requests hit a block, {} to \
         keep",
        grouped(*hit_tokens),
        grouped(*prompt_tokens),
        grouped(*requests_with_hit),
        grouped(requests),
        counted(*blocks, "block"),
    );
    let row = |stretch: &SharedStretch| {
        [
            format!("{} to {}", grouped(stretch.from), grouped(stretch.to)),
            grouped(stretch.hits),
            grouped(stretch.saved_tokens),
            percent(float(stretch.saved_tokens) / float(*prompt_tokens)),
        ]
    };
    let header = ["prompt tokens", "hits", "tokens saved", "share of all tokens"];
    let table = Table::new("", header, sharing.stretches.iter().map(row));
    let share = percent(sharing.hit_share());
    let title = format!("Sharing: an unbounded cache would hit {share} of all prompt tokens");
    Block::group(&title, vec![Block::List(vec![facts]), table.into()])
}

fn sessions(stats: &SessionStats, requests: u64) -> Block {
    let row = |name: &str, mean: String, spread: &Spread, show: fn(u64) -> String| {
        let others = quantiles(spread).map(|(_, value)| show(value));
        [name.to_owned(), mean].into_iter().chain(others).collect::<Vec<_>>()
    };
    let gaps = stats.gaps.as_ref();
    let gaps = gaps.map(|it| row("time between rounds", duration(count(it.mean)), it, duration));
    let rounds = row("rounds", plain(stats.rounds.mean), &stats.rounds, grouped);
    let header = ["per session", "mean", "min", "p10", "p50", "p90", "p99", "max"];
    let share = percent(float(stats.requests) / float(requests));
    let title = format!("Sessions: {} with {share} of the requests", grouped(stats.sessions));
    let table = Table::new("", header, std::iter::once(rounds).chain(gaps));
    Block::group(&title, vec![table.into()])
}

fn groups(inspected: &Inspected) -> Vec<Block> {
    let Inspected { source, found, .. } = inspected;
    let header = |name| [name, "requests", "share", "mean input", "mean output"];
    let row = |name: String, group: &Group| {
        let Group { requests, input_tokens, output_tokens } = *group;
        let each = |tokens| plain(float(tokens) / float(requests));
        let share = percent(float(requests) / float(found.requests));
        [name, grouped(requests), share, each(input_tokens), each(output_tokens)]
    };
    let mut all = Vec::new();
    if found.classes.len() > 1 {
        let rows = found.classes.iter().map(|(class, it)| row(class.name().to_owned(), it));
        all.push(Table::new("", header("class"), rows).into());
    }
    if found.tenant_count > 1 {
        let name = |tenant| shown(&visible(&source.tenant_name(tenant)));
        let rows = found.tenants.iter().map(|(tenant, it)| row(name(*tenant), it));
        all.push(Table::new("", header("tenant"), rows).into());
        let others = found.tenant_count - found.tenants.len() as u64;
        if others > 0 {
            all.push(Block::prose(format!("and {} more", counted(others, "tenant"))));
        }
    }
    all
}

/// What was found, for programs.
fn object(inspected: &Inspected) -> Value {
    let Inspected { name, source, found, follow_ups } = inspected;
    let skipped = source.skipped();
    let tokens = |spread: &Spread| {
        let sum = u64::try_from(spread.sum).unwrap_or(u64::MAX);
        let bar = |bar: &Bar| json!({"from": bar.from, "to": bar.to, "count": bar.count});
        let bars: Vec<Value> = spread.bars(MOST_BARS).iter().map(bar).collect();
        let mut fields = counts(spread);
        fields.extend([("sum".to_owned(), json!(sum)), ("histogram".to_owned(), json!(bars))]);
        fields
    };
    let deadlines = found.deadlines.as_ref().map(|deadlines| {
        let mut fields = millis(deadlines);
        fields.insert("requests".to_owned(), json!(deadlines.count));
        fields
    });
    let group = |it: &Group| {
        json!({
            "requests": it.requests,
            "input_tokens": it.input_tokens,
            "output_tokens": it.output_tokens,
        })
    };
    let classes = found.classes.iter().map(|(class, it)| (class.name().to_owned(), group(it)));
    let tenants = found.tenants.iter().map(|(it, seen)| (source.tenant_name(*it), group(seen)));
    present(json!({
        "file": name,
        "format": source.format().name(),
        "requests": found.requests,
        "follow_ups": follow_ups,
        "skipped": {
            "failed": skipped.failed,
            "without_input": skipped.without_input,
            "without_output": skipped.without_output,
        },
        "arrivals": found.arrivals.as_ref().map(|seen| json!({
            "first_s": seen.first.as_secs_f64(),
            "last_s": seen.last.as_secs_f64(),
            "rate_per_sec": seen.rate,
            "gap_cv": seen.gap_cv,
            "peak_1s_per_sec": seen.peak_1s,
            "peak_10s_per_sec": seen.peak_10s,
            "dispersion_1s": seen.dispersion_1s,
            "dispersion_10s": seen.dispersion_10s,
            "timeline_per_sec": seen.timeline.rates(STRETCHES),
        })),
        "input_tokens": found.input.as_ref().map(tokens),
        "output_tokens": found.output.as_ref().map(tokens),
        "total_tokens": found.total.as_ref().map(tokens),
        "quantile_error": QUANTILE_ERROR,
        "sharing": found.sharing.as_ref().map(of_sharing),
        "sessions": found.sessions.as_ref().map(|seen| json!({
            "sessions": seen.sessions,
            "requests": seen.requests,
            "rounds": counts(&seen.rounds),
            "gaps": seen.gaps.as_ref().map(millis),
        })),
        "deadline": deadlines,
        "classes": classes.collect::<Map<_, _>>(),
        "tenant_count": found.tenant_count,
        "tenants": tenants.collect::<Map<_, _>>(),
    }))
}

fn counts(spread: &Spread) -> Map<String, Value> {
    let quantiles = quantiles(spread).map(|(name, value)| (name.to_owned(), json!(value)));
    std::iter::once(("mean".to_owned(), json!(spread.mean))).chain(quantiles).collect()
}

/// Nanoseconds in milliseconds.
fn millis(spread: &Spread) -> Map<String, Value> {
    let quantiles =
        quantiles(spread).map(|(name, nanos)| (format!("{name}_ms"), json!(float(nanos) / 1e6)));
    std::iter::once(("mean_ms".to_owned(), json!(spread.mean / 1e6))).chain(quantiles).collect()
}

fn of_sharing(seen: &Sharing) -> Value {
    let stretch = |it: &SharedStretch| json!({"from": it.from, "to": it.to, "hits": it.hits, "saved_tokens": it.saved_tokens});
    json!({
        "block_size": seen.block_size,
        "hit_share": seen.hit_share(),
        "hit_tokens": seen.hit_tokens,
        "prompt_tokens": seen.prompt_tokens,
        "requests_with_hit": seen.requests_with_hit,
        "blocks": seen.blocks,
        "stretches": seen.stretches.iter().map(stretch).collect::<Vec<_>>(),
    })
}
