//! What a run, or several that differ in their seed, gave.

use crate::model::{Block, Document, Table};
use crate::text::{counted, grouped, listed, percent, plain, whole};
use blis_core::SloClass;
use blis_core::math::float;
use blis_lab::Interval;
use blis_lab::counterfactual::Regret;
use blis_lab::verdict::bound;
use blis_metrics::{InstanceSection, Report, Saturation, Section, SloTarget, SplitStats};
use blis_scenario::json::present;
use blis_scenario::scenario::Workload;
use blis_scenario::{Plan, Row, RunResult};
use blis_sim::End;
use blis_workload::{Mix, Rate};
use serde_json::{Map, Value, json};

/// Clusters of more instances than this show a summary of their instances.
const INSTANCES_SHOWN: usize = 16;
/// So many tenants have a table; one is the cluster itself, and many would drown it.
const TENANTS_SHOWN: usize = 16;
/// What an overloaded cluster means for its numbers.
pub const OVERLOADED: &str =
    "overloaded: requests arrive faster than they are served, so latencies grow with the run";

/// A finished run and all that there is to tell about it.
#[derive(Debug)]
pub struct Finished<'a> {
    /// The scenario.
    pub plan: &'a Plan,
    /// The run.
    pub result: &'a RunResult,
    /// Seconds on the clock; absent where only the simulation matters.
    pub wall_seconds: Option<f64>,
    /// CPU seconds.
    pub cpu_seconds: Option<f64>,
    /// Priority inversions, where they were counted.
    pub inversions: Option<u64>,
    /// The score, if one was asked for.
    pub fitness: Option<Fitness>,
    /// What a sample of its routing decisions cost, if that was asked for.
    pub regret: Option<Regret>,
}

/// A score and the components it is made of.
#[derive(Clone, Debug, PartialEq)]
pub struct Fitness {
    /// The weighted sum.
    pub score: f64,
    /// Each component, by name.
    pub components: Vec<(&'static str, f64)>,
}

/// The name of a column, its number, and how that is shown.
type Column<T> = (&'static str, fn(&T) -> Option<f64>, fn(Option<f64>) -> String);

const OF_CLASS: [Column<Section>; 9] = [
    ("offered", |section| Some(float(section.offered)), whole),
    ("admitted", |section| Some(float(admitted(section))), whole),
    ("completed", |section| Some(float(section.completed)), whole),
    ("abandoned", |section| Some(float(section.abandoned)), whole),
    ("good/s", |section| section.goodput_per_sec, plain),
    ("SLO met", |section| section.slo_attainment, percent),
    ("TTFT p50, ms", |section| section.ttft.p50_ms, plain),
    ("TTFT p99, ms", |section| section.ttft.p99_ms, plain),
    ("E2E p99, ms", |section| section.e2e.p99_ms, plain),
];

const OF_TENANT: [Column<Section>; 6] = [
    OF_CLASS[0],
    OF_CLASS[2],
    ("tokens/s", |section| section.tokens_per_sec, plain),
    OF_CLASS[6],
    OF_CLASS[7],
    OF_CLASS[8],
];

const OF_INSTANCE: [Column<InstanceSection>; 7] = [
    ("requests", |section| Some(float(section.requests.offered)), whole),
    ("busy", |section| section.utilization, percent),
    ("running", |section| section.mean_batch, plain),
    ("waiting", |section| section.mean_queue_depth, plain),
    ("peak blocks", |section| Some(f64::from(section.peak_blocks_in_use)), whole),
    ("TTFT p99, ms", |section| section.requests.ttft.p99_ms, plain),
    ("E2E p99, ms", |section| section.requests.e2e.p99_ms, plain),
];

const OF_RUN: [Column<Report>; 8] = [
    ("completed", |report| Some(float(report.cluster.completed)), plain),
    ("requests/s", |report| report.cluster.responses_per_sec, plain),
    ("good/s", |report| report.cluster.goodput_per_sec, plain),
    ("TTFT mean, ms", |report| report.cluster.ttft.mean_ms, plain),
    ("TTFT p99, ms", |report| report.cluster.ttft.p99_ms, plain),
    ("ITL mean, ms", |report| report.cluster.itl.mean_ms, plain),
    ("E2E p99, ms", |report| report.cluster.e2e.p99_ms, plain),
    ("hit rate", |report| report.kv.hit_rate, percent),
];

fn admitted(section: &Section) -> u64 {
    section.offered - section.rejected - section.unservable
}

/// A row of such columns behind `name`.
fn row<T>(name: impl Into<String>, columns: &[Column<T>], of: &T) -> Vec<String> {
    let cells = columns.iter().map(|(_, get, show)| show(get(of)));
    std::iter::once(name.into()).chain(cells).collect()
}

fn header<T>(first: &'static str, columns: &[Column<T>]) -> Vec<&'static str> {
    std::iter::once(first).chain(columns.iter().map(|(name, ..)| *name)).collect()
}

/// The result of one run.
pub fn one(finished: &Finished<'_>) -> Document {
    let report = &finished.result.report;
    let name = finished.plan.name.as_deref().map_or_else(String::new, |name| format!("{name}: "));
    let requests = counted(report.cluster.offered, "request");
    let mut blocks = vec![
        Block::List(about(finished.plan).chain([facts(finished)]).collect()),
        Block::prose(counts(finished)),
        latencies(&report.cluster).into(),
    ];
    if !report.classes.is_empty() {
        blocks.push(classes(finished).into());
    }
    if (2..=TENANTS_SHOWN).contains(&report.tenants.len()) {
        let sections = finished.result.tenants.iter().zip(&report.tenants);
        let rows = sections.map(|(name, (_, section))| row(name.clone(), &OF_TENANT, section));
        blocks.push(Table::new("", header("tenant", &OF_TENANT), rows).into());
    }
    blocks.extend(report.decomposition.cluster.as_ref().map(|stats| breakdown(stats).into()));
    blocks.push(Block::List(memory(finished)));
    blocks.push(instances(report).into());
    blocks.extend(finished.fitness.as_ref().map(|fitness| Block::prose(score(fitness))));
    blocks.extend(finished.regret.as_ref().map(|regret| Block::prose(regretted(regret))));
    blocks.extend(warnings(finished));
    let title = format!("{name}{requests} on {}", cluster(finished.plan));
    Document::new(title, blocks, object(finished))
}

/// The results of several runs that differ in their seed, which took so long together.
pub fn many(runs: &[Finished<'_>], wall_seconds: f64, cpu_seconds: Option<f64>) -> Document {
    let Some(first) = runs.first() else { return Document::default() };
    let shown = |run: &Finished<'_>| {
        let end = run.result.outcome.end.name().to_owned();
        let mut cells = row(run.result.seed.to_string(), &OF_RUN, &run.result.report);
        cells.push(end);
        cells
    };
    let mut rows: Vec<Vec<String>> = runs.iter().map(shown).collect();
    let interval = |(_, get, _): &Column<Report>| {
        let values: Option<Vec<f64>> = runs.iter().map(|run| get(&run.result.report)).collect();
        values.and_then(|values| Interval::of(&values, true))
    };
    for (name, part) in [
        ("mean", (|it| it.mean) as fn(Interval) -> f64),
        ("95 % from", |it| it.low),
        ("to", |it| it.high),
    ] {
        let cells = OF_RUN.iter().map(|column| column.2(interval(column).map(part)));
        rows.push(std::iter::once(name.to_owned()).chain(cells).chain([String::new()]).collect());
    }
    let mut names = header("seed", &OF_RUN);
    names.push("end");
    let about = about(first.plan).chain([format!("{wall_seconds:.2} s of wall time")]).collect();
    let mut run = Map::new();
    run.insert("scenario_hash".to_owned(), first.plan.hash().into());
    run.insert("version".to_owned(), env!("CARGO_PKG_VERSION").into());
    run.insert("wall_seconds".to_owned(), wall_seconds.into());
    run.extend(cpu_seconds.map(|cpu| ("cpu_seconds".to_owned(), cpu.into())));
    Document::new(
        format!("{} of {}", counted(runs.len() as u64, "run"), cluster(first.plan)),
        vec![Block::List(about), Table::new("", names, rows).into()],
        json!({"run": run, "replications": runs.iter().map(object).collect::<Vec<Value>>()}),
    )
}

/// The numbers of a run, for programs.
fn object(finished: &Finished<'_>) -> Value {
    let mut row = Row::of(finished.plan, finished.result);
    row.run.wall_seconds = finished.wall_seconds;
    row.run.cpu_seconds = finished.cpu_seconds;
    let mut all = row.printed(finished.plan);
    if let Some(Fitness { score, components }) = &finished.fitness {
        let mut fields = Map::from_iter([("score".to_owned(), json!(score))]);
        fields.extend(components.iter().map(|(key, part)| ((*key).to_owned(), json!(part))));
        all["fitness"] = json!(fields);
    }
    if let Some(regret) = &finished.regret {
        let summary = regret.share().and(regret.summary());
        all["counterfactual"] = present(json!({
            "decisions": regret.decisions,
            "sampled": regret.tried.len(),
            "regret_share": summary.and(regret.share()),
            "regret_mean_ms": summary.map(|(mean, ..)| mean),
            "regret_p90_ms": summary.map(|(_, p90, _)| p90),
            "regret_max_ms": summary.map(|(.., max)| max),
            "score_regret_max": regret.greatest_score_regret(),
        }));
    }
    all
}

fn cluster(plan: &Plan) -> String {
    let machine = match (&plan.hardware, plan.parallel) {
        (Some(gpu), Some(parallel)) => format!(" ({gpu}, {parallel})"),
        _ => String::new(),
    };
    format!("{} of {}{machine}", counted(plan.instances.into(), "instance"), plan.model)
}

/// What was run: the policies, the engine, and what is sent if that are sessions.
fn about(plan: &Plan) -> impl Iterator<Item = String> {
    [Some(strategy(plan)), Some(engine(plan)), sessions(plan)].into_iter().flatten()
}

/// The engine's settings, and where its step times come from.
fn engine(plan: &Plan) -> String {
    let engine = &plan.engine;
    let tokens = grouped(engine.max_num_scheduled_tokens.into());
    let running = grouped(engine.max_num_running_reqs.into());
    let scheduling = if engine.async_scheduling { "async" } else { "synchronous" };
    let latency = match plan.latency_kind() {
        "profile" => "fitted profile",
        "operators" => "measured operators",
        "roofline" => "roofline",
        "coefficients" => "fitted coefficients",
        "constant" => "constant",
        other => other,
    };
    format!(
        "token budget {tokens}, at most {running} running, {scheduling} scheduling; step times: \
         {latency}"
    )
}

/// How many sessions arrive and how many requests that makes; `None` if no sessions arrive at a
/// steady rate.
pub fn sessions(plan: &Plan) -> Option<String> {
    let Workload::Mix(mix @ Mix { rate: Rate::Steady(rate), .. }) = &plan.workload else {
        return None;
    };
    if !mix.has_sessions() {
        return None;
    }
    let sessions = format!("{} sessions/s", bound(*rate));
    let all = mix.requests_per_arrival().map(|each| {
        format!("{sessions} of {} requests each = {} requests/s", bound(each), bound(rate * each))
    });
    Some(all.unwrap_or(sessions))
}

fn strategy(plan: &Plan) -> String {
    let (admission, priority) = (&plan.policies.admission, &plan.policies.priority);
    let (routing, scheduler) = (plan.routing(), plan.scheduler());
    format!("admission {admission}, routing {routing}, scheduler {scheduler}, priority {priority}")
}

fn facts(finished: &Finished<'_>) -> String {
    let outcome = &finished.result.outcome;
    let simulated = outcome.ended_at.as_secs_f64();
    let wall = finished.wall_seconds.filter(|&wall| wall > 0.0).map_or_else(String::new, |wall| {
        format!(" in {wall:.2} s ({} x real time)", plain(simulated / wall))
    });
    format!(
        "{simulated:.1} simulated seconds{wall}, {}, seed {}, scenario {}",
        counted(outcome.events, "event"),
        finished.result.seed,
        finished.plan.hash()
    )
}

/// Whether requests of `class` have a target; if not, all of them are good.
fn has_target(finished: &Finished<'_>, class: SloClass) -> bool {
    *finished.plan.slo.of(class) != SloTarget::default()
}

fn counts(finished: &Finished<'_>) -> String {
    let report = &finished.result.report;
    let cluster = &report.cluster;
    let promised = report.classes.iter().any(|&(class, _)| has_target(finished, class));
    let rate = |name: &str, value: Option<f64>| value.map(|v| format!("{} {name}", plain(v)));
    let left = |name: &str, count: u64| (count > 0).then(|| format!("{} {name}", grouped(count)));
    listed([
        Some(format!("{} completed", grouped(cluster.completed))),
        left("rejected", cluster.rejected),
        left("unservable", cluster.unservable),
        left("abandoned", cluster.abandoned),
        left("in transit", cluster.in_transit),
        left("waiting", cluster.still_queued),
        left("running", cluster.still_running),
        rate("requests/s offered", report.offered_per_sec),
        rate("served", cluster.responses_per_sec),
        rate("tokens/s", cluster.tokens_per_sec),
        rate("good requests/s", cluster.goodput_per_sec.filter(|_| promised)),
        left("preemptions", cluster.preemptions),
        report.saturation.map(|saturation| match saturation {
            Saturation::Growing => {
                "growing (too short to tell whether it is overloaded)".to_owned()
            }
            known => known.name().to_owned(),
        }),
    ])
}

fn latencies(section: &Section) -> Table {
    let rows = [("TTFT", &section.ttft), ("ITL", &section.itl), ("E2E", &section.e2e)];
    let rows = rows.map(|(name, latency)| {
        let [mean, p50, p90, p95, p99, max] = [
            latency.mean_ms,
            latency.p50_ms,
            latency.p90_ms,
            latency.p95_ms,
            latency.p99_ms,
            latency.max_ms,
        ]
        .map(plain);
        [name.to_owned(), mean, p50, p90, p95, p99, max]
    });
    Table::new("", ["latency, ms", "mean", "p50", "p90", "p95", "p99", "max"], rows)
}

fn classes(finished: &Finished<'_>) -> Table {
    let report = &finished.result.report;
    let some_gave_up = report.cluster.abandoned > 0;
    let is_shown = |column: &&Column<Section>| column.0 != "abandoned" || some_gave_up;
    let columns: Vec<Column<Section>> = OF_CLASS.iter().filter(is_shown).copied().collect();
    let rows = report.classes.iter().map(|(class, section)| {
        let mut section = section.clone();
        if !has_target(finished, *class) {
            (section.goodput_per_sec, section.slo_attainment) = (None, None);
        }
        row(class.name(), &columns, &section)
    });
    Table::new("", header("class", &columns), rows)
}

fn breakdown(stats: &SplitStats) -> Table {
    let names = stats.mean.parts().map(|(name, _)| name);
    let header = std::iter::once("TTFT breakdown, ms").chain(names).chain(["total"]);
    let rows = [("mean", &stats.mean), ("p99", &stats.p99)].map(|(name, split)| {
        let parts = split.parts().map(|(_, ms)| plain(ms));
        let parts = std::iter::once(name.to_owned()).chain(parts);
        parts.chain([plain(split.total())]).collect::<Vec<_>>()
    });
    Table::new("", header, rows)
}

/// KV memory, cache, CPU tier and how evenly requests were spread.
fn memory(finished: &Finished<'_>) -> Vec<String> {
    let report = &finished.result.report;
    let (kv, routing) = (&report.kv, &report.routing);
    let blocks = finished.plan.engine.total_kv_blocks;
    let peak = report.instances.iter().map(|instance| instance.peak_blocks_in_use).max();
    let in_use = f64::from(peak.unwrap_or(0)) / f64::from(blocks);
    let share = |name: &str, value: Option<f64>| value.map(|v| format!("{name} {}", percent(v)));
    let cache = listed([
        share("hit rate", kv.hit_rate),
        share("phantom", kv.phantom_hit_rate),
        share("missed", kv.missed_hit_rate),
        Some(format!("{} evicted", counted(kv.evicted_blocks, "block"))),
    ]);
    let mut lines = vec![
        format!(
            "KV memory: {} blocks per instance, at most {} in use, {}",
            grouped(blocks.into()),
            percent(in_use),
            counted(report.cluster.preemptions, "preemption"),
        ),
        format!("KV cache: {cache}"),
    ];
    if let Some(given) = &finished.plan.engine.tier {
        let (blocks, tier) = (given.blocks, &kv.tier);
        let dropped = tier.abandoned_blocks;
        let share = tier.transfer_stall_share;
        let share = share.map_or_else(String::new, |it| format!(" ({} of busy)", percent(it)));
        let peak = f64::from(tier.peak_cpu_blocks) / f64::from(blocks);
        lines.push(listed([
            Some(format!("CPU tier: {} blocks per instance", grouped(blocks.into()))),
            Some(format!("at most {} in use", percent(peak))),
            Some(format!("{} offloaded", grouped(tier.offloaded_blocks))),
            (dropped > 0).then(|| format!("{} abandoned", grouped(dropped))),
            Some(format!("{} reloaded", grouped(tier.reloaded_blocks))),
            tier.thrashing_rate.map(|rate| format!("thrashing {}", percent(rate))),
            Some(format!("steps stalled {} ms{share}", plain(tier.transfer_stall_ms))),
        ]));
    }
    if let (true, Some(most), Some(jain)) =
        (report.instances.len() > 1, routing.max_over_mean, routing.jain_balance)
    {
        lines.push(format!("routing: most loaded / mean {most:.3}, Jain's index {jain:.4}"));
    }
    lines
}

fn instances(report: &Report) -> Table {
    let all = &report.instances;
    let header = header("instance", &OF_INSTANCE);
    if all.len() <= INSTANCES_SHOWN {
        let rows = all.iter().map(|one| row(one.instance.0.to_string(), &OF_INSTANCE, one));
        return Table::new("", header, rows);
    }
    let mean = |values: &[f64]| values.iter().sum::<f64>() / float(values.len() as u64);
    let least = |values: &[f64]| values.iter().copied().fold(f64::INFINITY, f64::min);
    let most = |values: &[f64]| values.iter().copied().fold(0.0, f64::max);
    let folds = [("min", least as fn(&[f64]) -> f64), ("mean", mean), ("max", most)];
    let rows = folds.map(|(name, fold)| {
        let cells = OF_INSTANCE.iter().map(|(_, get, show)| {
            let values: Vec<f64> = all.iter().filter_map(get).collect();
            show((!values.is_empty()).then(|| fold(&values)))
        });
        std::iter::once(name.to_owned()).chain(cells).collect::<Vec<_>>()
    });
    Table::new("", header, rows)
}

fn score(fitness: &Fitness) -> String {
    let parts = fitness.components.iter().map(|(key, part)| Some(format!("{key} {part:.4}")));
    format!("fitness: {:.6} ({})", fitness.score, listed(parts))
}

/// What a sample of routing decisions cost, in words.
pub fn regretted(regret: &Regret) -> String {
    let (Some(share), Some((mean, p90, max))) = (regret.share(), regret.summary()) else {
        return "counterfactual decisions: no routing decision had an alternative".to_owned();
    };
    let score = regret.greatest_score_regret();
    let score =
        score.map_or_else(String::new, |it| format!("; by the router's scores {it:.3} at most"));
    format!(
        "counterfactual decisions: {} of {} routing decisions were tried elsewhere, {:.0} % had a \
         better instance; the first token came {mean:.2} ms later than there on average, {p90:.2} \
         ms at p90, {max:.2} ms at most{score}",
        regret.tried.len(),
        regret.decisions,
        100.0 * share,
    )
}

fn warnings(finished: &Finished<'_>) -> Vec<Block> {
    let report = &finished.result.report;
    let overloaded = report.saturation == Some(Saturation::Overloaded);
    let interrupted = finished.result.outcome.end == End::Interrupted;
    let unservable = report.cluster.unservable;
    let own = [
        overloaded.then(|| Block::warning(OVERLOADED, "lower the rate, or add instances")),
        (unservable > 0).then(|| {
            let text = format!(
                "{} can never fit the KV memory of an instance",
                counted(unservable, "request")
            );
            Block::warning(text, "raise `--total-kv-blocks` or shorten the prompts")
        }),
        interrupted.then(|| Block::warning("interrupted: only a part was simulated", "")),
    ];
    let others = finished.result.warnings(finished.plan);
    own.into_iter()
        .flatten()
        .chain(others.into_iter().map(|text| Block::warning(text, "")))
        .collect()
}
