//! `--format json`: one object with everything.

use crate::report::Finished;
use crate::report::fitness::Fitness;
use crate::report::numbers::Fields;
use blis_metrics::{
    Decomposition, InstanceSection, KvSection, Report, RoutingSection, SplitStats, TierSection,
};
use serde_json::Value;

/// The result of one run.
pub(crate) fn object(finished: &Finished<'_>) -> Value {
    let report = &finished.result.report;
    let mut all = Fields::default();
    all.value("run", run(finished));
    all.value("cluster", cluster(report));
    let mut classes = Fields::default();
    for (class, section) in &report.classes {
        let mut fields = Fields::default();
        fields.section(section);
        classes.value(class.name(), fields.into_value());
    }
    all.value("classes", classes.into_value());
    let mut tenants = Fields::default();
    for ((_, section), name) in report.tenants.iter().zip(&finished.result.tenants) {
        let mut fields = Fields::default();
        fields.section(section);
        tenants.value(name, fields.into_value());
    }
    all.value("tenants", tenants.into_value());
    all.value("instances", report.instances.iter().map(instance).collect::<Vec<Value>>());
    all.value("kv", kv(&report.kv));
    all.value("routing", routing(&report.routing));
    all.value("decomposition", decomposition(&report.decomposition));
    let mut mechanisms = Fields::default();
    for (name, times) in &report.mechanisms {
        mechanisms.value(name, *times);
    }
    all.value("mechanisms", mechanisms.into_value());
    if let Some(score) = &finished.fitness {
        all.value("fitness", fitness(score));
    }
    all.into_value()
}

/// The results of several runs that differ in their seed.
pub(crate) fn replications(runs: &[Finished<'_>], wall: f64, cpu: Option<f64>) -> Value {
    let mut run = Fields::default();
    if let Some(first) = runs.first() {
        run.text("scenario_hash", first.plan.hash());
    }
    run.text("version", env!("CARGO_PKG_VERSION"));
    run.number("wall_seconds", Some(wall));
    run.number("cpu_seconds", cpu);
    let mut all = Fields::default();
    all.value("run", run.into_value());
    all.value("replications", runs.iter().map(object).collect::<Vec<Value>>());
    all.into_value()
}

fn run(finished: &Finished<'_>) -> Value {
    let outcome = &finished.result.outcome;
    let mut fields = Fields::default();
    fields.count("seed", finished.result.seed);
    fields.text("scenario_hash", finished.plan.hash());
    fields.text("version", env!("CARGO_PKG_VERSION"));
    fields.number("simulated_seconds", Some(outcome.ended_at.as_secs_f64()));
    fields.number("wall_seconds", finished.wall_seconds);
    fields.number("cpu_seconds", finished.cpu_seconds);
    fields.count("events", outcome.events);
    fields.number("saturation_per_sec", finished.plan.saturation);
    fields.text("end", outcome.end.name());
    fields.into_value()
}

fn cluster(report: &Report) -> Value {
    let mut fields = Fields::default();
    fields.section(&report.cluster);
    fields.number("offered_per_sec", report.offered_per_sec);
    fields.number("jain_fairness", report.jain_fairness);
    if let Some(saturation) = report.saturation {
        fields.text("saturation", saturation.name());
    }
    fields.number("mean_in_system", report.mean_in_system);
    fields.into_value()
}

fn instance(section: &InstanceSection) -> Value {
    let InstanceSection {
        instance,
        requests,
        steps,
        utilization,
        mean_batch,
        mean_step_tokens,
        mean_queue_depth,
        peak_blocks_in_use,
        evicted_blocks,
        tier,
    } = section;
    let mut fields = Fields::default();
    fields.text("instance_id", format!("instance_{}", instance.0));
    fields.section(requests);
    fields.count("steps", *steps);
    fields.number("utilization", *utilization);
    fields.number("mean_batch", *mean_batch);
    fields.number("mean_step_tokens", *mean_step_tokens);
    fields.number("mean_queue_depth", *mean_queue_depth);
    fields.count("peak_blocks_in_use", u64::from(*peak_blocks_in_use));
    fields.count("evicted_blocks", *evicted_blocks);
    add_tier(&mut fields, tier);
    fields.into_value()
}

fn add_tier(fields: &mut Fields, section: &TierSection) {
    let TierSection {
        offloaded_blocks,
        abandoned_blocks,
        reloaded_blocks,
        thrashing_rate,
        transfer_stall_ms,
        transfer_stall_share,
        peak_cpu_blocks,
    } = section;
    fields.count("offloaded_blocks", *offloaded_blocks);
    fields.count("abandoned_blocks", *abandoned_blocks);
    fields.count("reloaded_blocks", *reloaded_blocks);
    fields.number("thrashing_rate", *thrashing_rate);
    fields.number("transfer_stall_ms", Some(*transfer_stall_ms));
    fields.number("transfer_stall_share", *transfer_stall_share);
    fields.count("peak_cpu_blocks", u64::from(*peak_cpu_blocks));
}

fn kv(section: &KvSection) -> Value {
    let KvSection {
        hit_rate,
        phantom_hit_rate,
        missed_hit_rate,
        cached_tokens,
        prompt_tokens,
        evicted_blocks,
        lost_tokens,
        tier,
    } = section;
    let mut fields = Fields::default();
    fields.number("hit_rate", *hit_rate);
    fields.number("phantom_hit_rate", *phantom_hit_rate);
    fields.number("missed_hit_rate", *missed_hit_rate);
    fields.count("cached_tokens", *cached_tokens);
    fields.count("prompt_tokens", *prompt_tokens);
    fields.count("evicted_blocks", *evicted_blocks);
    fields.count("lost_tokens", *lost_tokens);
    add_tier(&mut fields, tier);
    fields.into_value()
}

fn routing(section: &RoutingSection) -> Value {
    let RoutingSection { sent, max_over_mean, jain_balance } = section;
    let mut fields = Fields::default();
    fields.value("sent", sent.clone());
    fields.number("max_over_mean", *max_over_mean);
    fields.number("jain_balance", *jain_balance);
    fields.into_value()
}

fn decomposition(decomposition: &Decomposition) -> Value {
    let mut fields = Fields::default();
    if let Some(stats) = &decomposition.cluster {
        split(stats, &mut fields);
    }
    let mut classes = Fields::default();
    for (class, stats) in &decomposition.classes {
        let mut fields = Fields::default();
        split(stats, &mut fields);
        classes.value(class.name(), fields.into_value());
    }
    if !classes.is_empty() {
        fields.value("classes", classes.into_value());
    }
    fields.into_value()
}

fn split(stats: &SplitStats, fields: &mut Fields) {
    for (name, split) in [("mean_ms", &stats.mean), ("p99_ms", &stats.p99)] {
        let mut parts = Fields::default();
        for (part, ms) in split.parts() {
            parts.number(part, Some(ms));
        }
        fields.value(name, parts.into_value());
    }
}

/// The score of a run.
fn fitness(fitness: &Fitness) -> Value {
    let mut fields = Fields::default();
    fields.number("score", Some(fitness.score));
    for (key, component) in &fitness.components {
        fields.number(key, Some(*component));
    }
    fields.into_value()
}

/// A value as indented text with a final newline.
pub(crate) fn text(value: &Value) -> String {
    let text = serde_json::to_string_pretty(value);
    let mut text = text.expect("plain values can be written as JSON");
    text.push('\n');
    text
}
