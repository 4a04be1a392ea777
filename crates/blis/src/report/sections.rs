//! `--format blis`: sections with flat JSON objects, the layout that existing scripts read.

use crate::report::Finished;
use blis_core::math::float;
use blis_metrics::{Latency, Report, Section};
use blis_scenario::RunResult;
use blis_scenario::json::Fields;
use serde_json::Value;
use std::fmt::Write;

/// Whether the decision trace is summarised.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Decisions {
    /// It is.
    Summarised,
    /// It is not.
    Hidden,
}

/// The result of one run.
pub(crate) fn sections(finished: &Finished<'_>, decisions: Decisions) -> String {
    let report = &finished.result.report;
    let mut text = String::new();
    if report.instances.len() > 1 {
        for instance in &report.instances {
            let name = format!("instance_{}", instance.instance.0);
            // Scripts take a block for granted to have latencies.
            if instance.requests.completed > 0 {
                block(&mut text, flat(&name, &instance.requests, report.duration_s));
            }
        }
    }
    block(&mut text, cluster(finished.result));
    if let Some(fitness) = &finished.fitness {
        line(&mut text, format_args!("=== Fitness Evaluation ==="));
        line(&mut text, format_args!("Score: {:.6}", fitness.score));
        for (key, component) in &fitness.components {
            line(&mut text, format_args!("  {key}: {component:.6}"));
        }
    }
    anomalies(&mut text, finished);
    cache(&mut text, report);
    classes(&mut text, report);
    if decisions == Decisions::Summarised {
        trace_summary(&mut text, report);
    }
    text
}

fn line(text: &mut String, line: std::fmt::Arguments<'_>) {
    writeln!(text, "{line}").expect("writing to a string cannot fail");
}

fn block(text: &mut String, object: Fields) {
    line(text, format_args!("=== Simulation Metrics ==="));
    let json = serde_json::to_string_pretty(&object.into_value())
        .expect("plain values can be written as JSON");
    line(text, format_args!("{json}"));
}

/// The flat object of the whole cluster, which is there whatever happened, and how the run ended.
pub(crate) fn cluster(result: &RunResult) -> Fields {
    let mut fields = flat("cluster", &result.report.cluster, result.report.duration_s);
    fields.text("end", result.outcome.end.name());
    fields
}

/// The flat object of a group of requests, with the keys and the order that scripts know.
fn flat(name: &str, section: &Section, duration_s: f64) -> Fields {
    let mut fields = Fields::default();
    fields.text("instance_id", name);
    fields.count("completed_requests", section.completed);
    fields.count("still_queued", section.still_queued);
    fields.count("still_running", section.still_running);
    // All that arrived: the sum of the three above, the two below, `dropped_unservable`, and
    // `timed_out_requests`, which is there if somebody gave up.
    fields.count("injected_requests", section.offered);
    fields.count("rejected_requests", section.rejected);
    fields.count("in_transit", section.in_transit);
    fields.count("total_input_tokens", section.total_input_tokens);
    fields.count("total_output_tokens", section.total_output_tokens);
    number(&mut fields, "vllm_estimated_duration_s", Some(duration_s));
    number(&mut fields, "responses_per_sec", section.responses_per_sec);
    number(&mut fields, "tokens_per_sec", section.tokens_per_sec);
    for (name, latency) in [("e2e", &section.e2e), ("ttft", &section.ttft), ("itl", &section.itl)] {
        for (statistic, value) in statistics(latency) {
            number(&mut fields, &format!("{name}_{statistic}_ms"), value);
        }
    }
    number(&mut fields, "scheduling_delay_p99_ms", section.scheduling_delay.p99_ms);
    fields.count("preemption_count", section.preemptions);
    fields.count("dropped_unservable", section.unservable);
    if section.abandoned > 0 {
        fields.count("timed_out_requests", section.abandoned);
    }
    fields
}

fn statistics(latency: &Latency) -> [(&'static str, Option<f64>); 4] {
    [
        ("mean", latency.mean_ms),
        ("p90", latency.p90_ms),
        ("p95", latency.p95_ms),
        ("p99", latency.p99_ms),
    ]
}

/// Adds a number, if there is one. Whole numbers are written without a fraction.
fn number(fields: &mut Fields, name: &str, value: Option<f64>) {
    let Some(value) = value else { return };
    let whole = blis_core::math::count(value);
    if float(whole).to_bits() == value.to_bits() {
        fields.value(name, Value::from(whole));
    } else {
        fields.number(name, Some(value));
    }
}

fn anomalies(text: &mut String, finished: &Finished<'_>) {
    let report = &finished.result.report;
    let Section { rejected, unservable, abandoned, .. } = report.cluster;
    let blocked = blocked_instances(report);
    if rejected + unservable + abandoned + blocked + finished.inversions.unwrap_or(0) == 0 {
        return;
    }
    line(text, format_args!("=== Anomaly Counters ==="));
    if let Some(inversions) = finished.inversions {
        line(text, format_args!("Priority Inversions: {inversions}"));
    }
    line(text, format_args!("HOL Blocking Events: {blocked}"));
    line(text, format_args!("Rejected Requests: {rejected}"));
    line(text, format_args!("Dropped Unservable: {unservable}"));
    if abandoned > 0 {
        line(text, format_args!("Timed Out Requests: {abandoned}"));
    }
}

/// Instances whose mean queue is more than twice as long as the mean over instances.
fn blocked_instances(report: &Report) -> u64 {
    let depths: Vec<f64> =
        report.instances.iter().map(|i| i.mean_queue_depth.unwrap_or(0.0)).collect();
    let mean = depths.iter().sum::<f64>() / float(depths.len().max(1) as u64);
    let blocked = depths.iter().filter(|&&depth| depths.len() > 1 && depth > 2.0 * mean).count();
    blocked as u64
}

fn cache(text: &mut String, report: &Report) {
    let completed = float(report.cluster.completed);
    let preemptions = float(report.cluster.preemptions);
    let preemption_rate = if completed > 0.0 { preemptions / completed } else { 0.0 };
    let hit_rate = report.kv.hit_rate.unwrap_or(0.0);
    // Where nothing is offloaded, nothing comes back too soon.
    let thrashing = report.kv.tier.thrashing_rate.unwrap_or(0.0);
    if preemption_rate + hit_rate + thrashing > 0.0 {
        line(text, format_args!("=== KV Cache Metrics ==="));
        line(text, format_args!("Preemption Rate: {preemption_rate:.4}"));
        line(text, format_args!("Cache Hit Rate: {hit_rate:.4}"));
        line(text, format_args!("KV Thrashing Rate: {thrashing:.4}"));
    }
}

fn classes(text: &mut String, report: &Report) {
    let mut classes: Vec<_> = report
        .classes
        .iter()
        .filter(|(_, section)| section.ttft.mean_ms.is_some())
        .map(|(class, section)| (class.name(), section))
        .collect();
    if classes.len() < 2 {
        return;
    }
    classes.sort_unstable_by_key(|&(name, _)| name);
    line(text, format_args!("=== Per-SLO Metrics ==="));
    for (name, section) in classes {
        line(text, format_args!("  {name}:"));
        let micros = |ms: Option<f64>| ms.unwrap_or(0.0) * 1e3;
        for (label, latency) in [("TTFT: ", &section.ttft), ("E2E:  ", &section.e2e)] {
            let (mean, p99, samples) =
                (micros(latency.mean_ms), micros(latency.p99_ms), latency.samples);
            line(text, format_args!("    {label}mean={mean:.2} p99={p99:.2} (n={samples})"));
        }
    }
}

fn trace_summary(text: &mut String, report: &Report) {
    let sent = &report.routing.sent;
    let admitted: u64 = sent.iter().sum();
    let rejected = report.cluster.rejected;
    line(text, format_args!("=== Trace Summary ==="));
    line(text, format_args!("Total Decisions: {}", admitted + rejected));
    line(text, format_args!("  Admitted: {admitted}"));
    line(text, format_args!("  Rejected: {rejected}"));
    line(text, format_args!("Unique Targets: {}", sent.iter().filter(|&&n| n > 0).count()));
    if admitted > 0 {
        line(text, format_args!("Target Distribution:"));
        let mut targets: Vec<(String, u64)> =
            sent.iter().enumerate().map(|(i, &n)| (format!("instance_{i}"), n)).collect();
        targets.sort_unstable();
        for (name, count) in targets.iter().filter(|(_, count)| *count > 0) {
            line(text, format_args!("  {name}: {count}"));
        }
    }
}
