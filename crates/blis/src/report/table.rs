//! `--format table`: the result for people, within 100 columns.

use crate::report::Finished;
use crate::report::fitness::Fitness;
use blis_core::SloClass;
use blis_core::math::float;
use blis_lab::Interval;
use blis_metrics::{
    InstanceSection, Latency, Report, Saturation, Section, SloTarget, SplitStats, TierSection,
};
use blis_sim::End;
use comfy_table::{CellAlignment, ContentArrangement, LineStyle, Table, TableStyle};
use std::io::IsTerminal;

/// Clusters of more instances than this show a summary of their instances.
const INSTANCES_SHOWN: usize = 16;
/// So many tenants have a table; one is the cluster itself, and many would drown it.
const TENANTS_SHOWN: usize = 16;
const WIDTH: u16 = 100;
/// What an overloaded cluster means for its numbers.
pub(crate) const OVERLOADED: &str =
    "overloaded: requests come faster than they are served, so latencies grow with the run";

/// The result of one run.
pub(crate) fn one(finished: &Finished<'_>) -> String {
    let report = &finished.result.report;
    let mut parts = vec![headline(finished), counts(finished), latencies(&report.cluster)];
    if !report.classes.is_empty() {
        parts.push(classes(finished));
    }
    if (2..=TENANTS_SHOWN).contains(&report.tenants.len()) {
        parts.push(tenants(finished));
    }
    if let Some(stats) = &report.decomposition.cluster {
        parts.push(decomposition(stats));
    }
    parts.push(cache_and_routing(finished));
    parts.push(instances(report));
    if let Some(fitness) = &finished.fitness {
        parts.push(score(fitness));
    }
    let warnings = warnings(finished);
    if !warnings.is_empty() {
        parts.push(warnings);
    }
    parts.join("\n")
}

/// The results of several runs that differ in their seed.
pub(crate) fn many(runs: &[Finished<'_>], wall_seconds: f64) -> String {
    let Some(first) = runs.first() else { return String::new() };
    let mut table = table(&[
        "seed",
        "done",
        "req/s",
        "good/s",
        "TTFT mean",
        "TTFT p99",
        "ITL mean",
        "E2E p99",
        "hit rate",
        "end",
    ]);
    for run in runs {
        let Report { cluster, kv, .. } = &run.result.report;
        table.add_row(vec![
            run.result.seed.to_string(),
            grouped(cluster.completed),
            plain(cluster.responses_per_sec),
            plain(cluster.goodput_per_sec),
            plain(cluster.ttft.mean_ms),
            plain(cluster.ttft.p99_ms),
            plain(cluster.itl.mean_ms),
            plain(cluster.e2e.p99_ms),
            percent(kv.hit_rate),
            run.result.outcome.end.name().to_owned(),
        ]);
    }
    add_intervals(&mut table, runs);
    let head = bold(&format!("{} runs of {}", runs.len(), cluster_name(first)));
    format!("{head}\n{}\nwall {wall_seconds:.2} s\n\n{}\n", strategy(first), table.trim_fmt())
}

/// The mean of each number over the runs, and the half-width of its 95 % confidence interval.
fn add_intervals(table: &mut Table, runs: &[Finished<'_>]) {
    let numbers: [fn(&Report) -> Option<f64>; 8] = [
        |report| Some(float(report.cluster.completed)),
        |report| report.cluster.responses_per_sec,
        |report| report.cluster.goodput_per_sec,
        |report| report.cluster.ttft.mean_ms,
        |report| report.cluster.ttft.p99_ms,
        |report| report.cluster.itl.mean_ms,
        |report| report.cluster.e2e.p99_ms,
        |report| report.kv.hit_rate,
    ];
    let intervals = numbers.map(|number| {
        let values: Option<Vec<f64>> = runs.iter().map(|run| number(&run.result.report)).collect();
        values.and_then(|values| Interval::of(&values))
    });
    let mut mean = vec!["mean".to_owned()];
    let mut spread = vec!["± 95 %".to_owned()];
    for (column, interval) in intervals.iter().enumerate() {
        let show = if column + 1 == intervals.len() { percent } else { plain };
        mean.push(show(interval.map(|interval| interval.mean)));
        spread.push(show(interval.map(|interval| interval.half_width)));
    }
    table.add_row(mean);
    table.add_row(spread);
}

fn headline(finished: &Finished<'_>) -> String {
    let (plan, outcome) = (finished.plan, &finished.result.outcome);
    let name = plan.name.as_deref().map_or_else(String::new, |name| format!("{name}: "));
    let first = format!(
        "{name}{} requests on {}",
        grouped(finished.result.report.cluster.offered),
        cluster_name(finished)
    );
    let simulated = outcome.ended_at.as_secs_f64();
    let wall = finished.wall_seconds.filter(|&wall| wall > 0.0).map_or_else(String::new, |wall| {
        format!(" in {wall:.2} s ({} x real time)", plain(Some(simulated / wall)))
    });
    let facts = wrapped(&[
        format!("{simulated:.1} simulated seconds{wall}"),
        format!("{} events", grouped(outcome.events)),
        format!("seed {}", finished.result.seed),
        format!("scenario {}", plan.hash()),
    ]);
    format!("{}\n{}\n{facts}\n", bold(&first), strategy(finished))
}

fn cluster_name(finished: &Finished<'_>) -> String {
    let plan = finished.plan;
    let instances = if plan.instances == 1 { "instance" } else { "instances" };
    let machine = match (&plan.hardware, plan.tp) {
        (Some(gpu), Some(tp)) => format!(" ({gpu}, tp {tp})"),
        _ => String::new(),
    };
    format!("{} {instances} of {}{machine}", grouped(plan.instances.into()), plan.model)
}

fn strategy(finished: &Finished<'_>) -> String {
    let plan = finished.plan;
    wrapped(&[
        format!("admission {}", plan.policies.admission),
        format!("routing {}", plan.routing()),
        format!("scheduler {}", plan.scheduler()),
        format!("priority {}", plan.policies.priority),
    ])
}

/// Items separated by commas, in lines of at most [`WIDTH`] columns where they fit.
pub(crate) fn wrapped(items: &[String]) -> String {
    let mut lines: Vec<String> = Vec::new();
    for item in items {
        match lines.last_mut() {
            Some(line) if line.len() + item.len() + 2 <= WIDTH.into() => {
                line.push_str(", ");
                line.push_str(item);
            }
            _ => lines.push(item.clone()),
        }
    }
    lines.join(",\n")
}

fn counts(finished: &Finished<'_>) -> String {
    let report = &finished.result.report;
    let cluster = &report.cluster;
    let promised = report.classes.iter().any(|&(class, _)| has_target(finished, class));
    let rate = |name: &str, value: Option<f64>| value.map(|v| format!("{} {name}", plain(Some(v))));
    let left = |name: &str, count: u64| (count > 0).then(|| format!("{} {name}", grouped(count)));
    let items: Vec<String> = [
        Some(format!("{} completed", grouped(cluster.completed))),
        left("rejected", cluster.rejected),
        left("unservable", cluster.unservable),
        left("abandoned", cluster.abandoned),
        left("in transit", cluster.in_transit),
        left("queued", cluster.still_queued),
        left("running", cluster.still_running),
        rate("requests/s offered", report.offered_per_sec),
        rate("served", cluster.responses_per_sec),
        rate("tokens/s", cluster.tokens_per_sec),
        rate("good requests/s", cluster.goodput_per_sec.filter(|_| promised)),
        left("preemptions", cluster.preemptions),
        report.saturation.map(|saturation| saturation.name().to_owned()),
    ]
    .into_iter()
    .flatten()
    .collect();
    format!("{}\n", wrapped(&items))
}

fn latencies(section: &Section) -> String {
    let mut table = table(&["latency, ms", "mean", "p50", "p90", "p95", "p99", "max"]);
    for (name, latency) in [("TTFT", &section.ttft), ("ITL", &section.itl), ("E2E", &section.e2e)] {
        let Latency { samples: _, mean_ms, p50_ms, p90_ms, p95_ms, p99_ms, max_ms } = *latency;
        let mut row = vec![name.to_owned()];
        row.extend([mean_ms, p50_ms, p90_ms, p95_ms, p99_ms, max_ms].map(plain));
        table.add_row(row);
    }
    format!("{}\n", table.trim_fmt())
}

/// Whether requests of `class` were promised anything; if not, all of them are good.
fn has_target(finished: &Finished<'_>, class: SloClass) -> bool {
    *finished.plan.slo.of(class) != SloTarget::default()
}

/// The column behind those of offered, admitted and completed requests.
const AFTER_COMPLETED: usize = 4;

fn classes(finished: &Finished<'_>) -> String {
    let report = &finished.result.report;
    let mut names = vec![
        "class",
        "offered",
        "admitted",
        "completed",
        "good/s",
        "SLO met",
        "TTFT p50",
        "TTFT p99",
        "E2E p99",
    ];
    let some_gave_up = report.cluster.abandoned > 0;
    if some_gave_up {
        names.insert(AFTER_COMPLETED, "abandoned");
    }
    let mut table = table(&names);
    for (class, section) in &report.classes {
        let promised = has_target(finished, *class);
        let mut row = vec![
            class.name().to_owned(),
            grouped(section.offered),
            grouped(section.admitted()),
            grouped(section.completed),
            plain(section.goodput_per_sec.filter(|_| promised)),
            percent(section.slo_attainment.filter(|_| promised)),
            plain(section.ttft.p50_ms),
            plain(section.ttft.p99_ms),
            plain(section.e2e.p99_ms),
        ];
        if some_gave_up {
            row.insert(AFTER_COMPLETED, grouped(section.abandoned));
        }
        table.add_row(row);
    }
    format!("{}\n", table.trim_fmt())
}

fn tenants(finished: &Finished<'_>) -> String {
    let result = finished.result;
    let mut table =
        table(&["tenant", "offered", "completed", "tokens/s", "TTFT p50", "TTFT p99", "E2E p99"]);
    for (name, (_, section)) in result.tenants.iter().zip(&result.report.tenants) {
        table.add_row(vec![
            name.escape_debug().to_string(),
            grouped(section.offered),
            grouped(section.completed),
            plain(section.tokens_per_sec),
            plain(section.ttft.p50_ms),
            plain(section.ttft.p99_ms),
            plain(section.e2e.p99_ms),
        ]);
    }
    format!("{}\n", table.trim_fmt())
}

fn decomposition(stats: &SplitStats) -> String {
    let mut header = vec!["TTFT is, ms".to_owned()];
    header.extend(stats.mean.parts().map(|(name, _)| name.to_owned()));
    header.push("total".to_owned());
    let names: Vec<&str> = header.iter().map(String::as_str).collect();
    let mut table = table(&names);
    for (name, split) in [("mean", &stats.mean), ("p99", &stats.p99)] {
        let mut row = vec![name.to_owned()];
        row.extend(split.parts().map(|(_, ms)| plain(Some(ms))));
        row.push(plain(Some(split.total())));
        table.add_row(row);
    }
    format!("{}\n", table.trim_fmt())
}

fn cache_and_routing(finished: &Finished<'_>) -> String {
    let report = &finished.result.report;
    let (kv, routing) = (&report.kv, &report.routing);
    let blocks = finished.plan.engine.total_kv_blocks;
    let peak = report.instances.iter().map(|instance| instance.peak_blocks_in_use).max();
    let in_use = f64::from(peak.unwrap_or(0)) / f64::from(blocks);
    let preemptions = report.cluster.preemptions;
    let share =
        |name: &str, value: Option<f64>| value.map(|_| format!("{name} {}", percent(value)));
    let cache: Vec<String> = [
        share("hit rate", kv.hit_rate),
        share("phantom", kv.phantom_hit_rate),
        share("missed", kv.missed_hit_rate),
        Some(format!("{} blocks evicted", grouped(kv.evicted_blocks))),
    ]
    .into_iter()
    .flatten()
    .collect();
    let mut text = format!(
        "KV memory: {} blocks an instance, at most {} in use, {} preemptions\nKV cache: {}\n",
        grouped(blocks.into()),
        percent(Some(in_use)),
        grouped(preemptions),
        cache.join(", ")
    );
    if let Some(tier) = &finished.plan.engine.tier {
        text.push_str(&cpu_tier(tier.blocks, &kv.tier));
    }
    if report.instances.len() > 1
        && let (Some(most), Some(jain)) = (routing.max_over_mean, routing.jain_balance)
    {
        let line = format!("routing: most loaded / mean {most:.3}, Jain's index {jain:.4}\n");
        text.push_str(&line);
    }
    text
}

/// What the CPU tiers did, of `blocks` blocks each.
fn cpu_tier(blocks: u32, tier: &TierSection) -> String {
    let count = |name: &str, count: u64| Some(format!("{} {name}", grouped(count)));
    let dropped = tier.abandoned_blocks;
    let peak = f64::from(tier.peak_cpu_blocks) / f64::from(blocks);
    let stall = format!(
        "steps stalled {} ms{}",
        plain(Some(tier.transfer_stall_ms)),
        tier.transfer_stall_share
            .map_or_else(String::new, |share| format!(" ({} of busy)", percent(Some(share))))
    );
    let items: Vec<String> = [
        Some(format!("CPU tier: {} blocks an instance", grouped(blocks.into()))),
        Some(format!("at most {} in use", percent(Some(peak)))),
        count("offloaded", tier.offloaded_blocks),
        count("abandoned", dropped).filter(|_| dropped > 0),
        count("reloaded", tier.reloaded_blocks),
        tier.thrashing_rate.map(|rate| format!("thrashing {}", percent(Some(rate)))),
        Some(stall),
    ]
    .into_iter()
    .flatten()
    .collect();
    format!("{}\n", wrapped(&items))
}

fn instances(report: &Report) -> String {
    let mut table = table(&[
        "instance",
        "requests",
        "busy",
        "batch",
        "queue",
        "peak blocks",
        "TTFT p99",
        "E2E p99",
    ]);
    let sections = &report.instances;
    if sections.len() <= INSTANCES_SHOWN {
        for section in sections {
            let mut row = vec![section.instance.0.to_string()];
            row.extend(CELLS.map(|(get, show)| show(get(section))));
            table.add_row(row);
        }
        return format!("{}\n", table.trim_fmt());
    }
    let mean = |values: &[f64]| values.iter().sum::<f64>() / float(values.len() as u64);
    let least = |values: &[f64]| values.iter().copied().fold(f64::INFINITY, f64::min);
    let most = |values: &[f64]| values.iter().copied().fold(0.0, f64::max);
    let folds = [("min", least as fn(&[f64]) -> f64), ("mean", mean), ("max", most)];
    for (name, fold) in folds {
        let mut row = vec![name.to_owned()];
        row.extend(CELLS.map(|(get, show)| {
            let values: Vec<f64> = sections.iter().filter_map(get).collect();
            show((!values.is_empty()).then(|| fold(&values)))
        }));
        table.add_row(row);
    }
    format!("{}\n", table.trim_fmt())
}

/// A number of an instance, and how it is shown.
type Cell = (fn(&InstanceSection) -> Option<f64>, fn(Option<f64>) -> String);

const CELLS: [Cell; 7] = [
    (|section| Some(float(section.requests.offered)), whole),
    (|section| section.utilization, percent),
    (|section| section.mean_batch, plain),
    (|section| section.mean_queue_depth, plain),
    (|section| Some(f64::from(section.peak_blocks_in_use)), whole),
    (|section| section.requests.ttft.p99_ms, plain),
    (|section| section.requests.e2e.p99_ms, plain),
];

fn score(fitness: &Fitness) -> String {
    let parts: Vec<String> =
        fitness.components.iter().map(|(key, part)| format!("{key} {part:.4}")).collect();
    format!("fitness: {:.6} ({})\n", fitness.score, parts.join(", "))
}

fn warnings(finished: &Finished<'_>) -> String {
    let report = &finished.result.report;
    let overloaded = report.saturation == Some(Saturation::Overloaded);
    let interrupted = finished.result.outcome.end == End::Interrupted;
    let unservable = report.cluster.unservable;
    let lines = [
        overloaded.then(|| OVERLOADED.to_owned()),
        (unservable > 0).then(|| {
            format!("{} requests can never fit the KV memory of an instance", grouped(unservable))
        }),
        interrupted.then(|| "interrupted: this is the part that was simulated".to_owned()),
    ];
    let others = finished.result.warnings(finished.plan);
    let line = |text: String| format!("{} {}\n", warning("warning:"), folded(&text));
    lines.into_iter().flatten().chain(others).map(line).collect::<Vec<_>>().concat()
}

/// `text` in lines that leave room for a label before the first.
fn folded(text: &str) -> String {
    const ROOM: usize = 88;
    let mut lines: Vec<String> = vec![String::new()];
    for word in text.split(' ') {
        match lines.last_mut() {
            Some(line) if line.is_empty() => line.push_str(word),
            Some(line) if line.chars().count() + word.chars().count() < ROOM => {
                line.push(' ');
                line.push_str(word);
            }
            _ => lines.push(word.to_owned()),
        }
    }
    lines.join("\n  ")
}

/// A table without vertical lines: the first column to the left, numbers to the right.
pub(crate) fn table(header: &[&str]) -> Table {
    let mut table = Table::new();
    table
        .load_style(TableStyle::new().header_separator(LineStyle::none().fill('─').junction('─')))
        .set_content_arrangement(ContentArrangement::Dynamic)
        .set_width(WIDTH)
        .set_header(header.to_vec());
    for column in table.column_iter_mut() {
        column.set_padding((0, 2));
        column.set_cell_alignment(CellAlignment::Right);
    }
    if let Some(first) = table.column_mut(0) {
        first.set_cell_alignment(CellAlignment::Left);
    }
    table
}

/// About four significant digits; a dash where there is no number.
pub(crate) fn plain(value: Option<f64>) -> String {
    match value {
        None => "-".to_owned(),
        Some(value) if value < 9.995 => format!("{value:.2}"),
        Some(value) if value < 999.95 => format!("{value:.1}"),
        Some(value) if value < 1e9 => grouped(blis_core::math::count(value)),
        Some(value) => format!("{value:.3e}"),
    }
}

fn whole(value: Option<f64>) -> String {
    value.map_or_else(|| "-".to_owned(), |value| grouped(blis_core::math::count(value)))
}

pub(crate) fn percent(value: Option<f64>) -> String {
    value.map_or_else(|| "-".to_owned(), |value| format!("{:.1} %", value * 100.0))
}

/// A count with commas between thousands.
pub(crate) fn grouped(count: u64) -> String {
    let digits = count.to_string();
    let mut text = String::new();
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

pub(crate) fn bold(text: &str) -> String {
    paint(text, "1")
}

fn warning(text: &str) -> String {
    paint(text, "1;33")
}

/// Colour only for people: on a terminal, and unless they asked for none.
fn paint(text: &str, code: &str) -> String {
    let wanted = std::io::stdout().is_terminal() && std::env::var_os("NO_COLOR").is_none();
    if wanted { format!("\x1b[{code}m{text}\x1b[0m") } else { text.to_owned() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_have_about_four_digits() {
        for (value, text) in [
            (0.0, "0.00"),
            (1.234, "1.23"),
            (9.999, "10.0"),
            (123.45, "123.5"),
            (999.96, "1,000"),
            (1_234_567.0, "1,234,567"),
            (3.121_54e12, "3.122e12"),
        ] {
            assert_eq!(plain(Some(value)), text);
        }
        assert_eq!(plain(None), "-");
    }

    #[test]
    fn long_lists_are_wrapped_between_items() {
        let items = vec!["x".repeat(60), "y".repeat(30), "z".repeat(30)];
        let text = wrapped(&items);
        assert_eq!(text.lines().count(), 2);
        assert!(text.lines().all(|line| line.len() <= WIDTH.into()));
    }
}
