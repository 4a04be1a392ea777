//! `--format blis`: sections with flat JSON objects, the layout that existing scripts read.

use crate::run::Finished;
use blis_core::math::{count, float};
use blis_metrics::{Report, Section};
use blis_scenario::RunResult;
use blis_scenario::json::present;
use serde_json::{Value, json};
use std::fmt::{Arguments, Write};

/// Whether the decision trace is summarised.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Decisions {
    /// It is.
    Summarised,
    /// It is not.
    Hidden,
}

/// The result of one run.
pub fn sections(finished: &Finished<'_>, decisions: Decisions) -> String {
    let report = &finished.result.report;
    let mut text = Text(String::new());
    if report.instances.len() > 1 {
        for instance in &report.instances {
            let name = format!("instance_{}", instance.instance.0);
            // Scripts take a block for granted to have latencies.
            if instance.requests.completed > 0 {
                text.block(&flat(&name, &instance.requests, report.duration_s));
            }
        }
    }
    text.block(&cluster(finished.result));
    if let Some(fitness) = &finished.fitness {
        text.line(format_args!("=== Fitness Evaluation ==="));
        text.line(format_args!("Score: {:.6}", fitness.score));
        for (key, component) in &fitness.components {
            text.line(format_args!("  {key}: {component:.6}"));
        }
    }
    anomalies(&mut text, finished);
    cache(&mut text, report);
    classes(&mut text, report);
    if decisions == Decisions::Summarised {
        trace_summary(&mut text, report);
        if let Some(regret) = &finished.regret {
            let (mean, _, max) = regret.summary().unwrap_or_default();
            text.line(format_args!("Mean Regret: {mean:.6}\nMax Regret: {max:.6}"));
        }
    }
    text.0
}

struct Text(String);

impl Text {
    fn line(&mut self, line: Arguments<'_>) {
        writeln!(self.0, "{line}").expect("writing to a string cannot fail");
    }

    fn block(&mut self, object: &Value) {
        let json = serde_json::to_string_pretty(object);
        let json = json.expect("plain values can be written as JSON");
        self.line(format_args!("=== Simulation Metrics ===\n{json}"));
    }
}

/// The flat object of the whole cluster, which is there whatever happened, and how the run ended.
pub fn cluster(result: &RunResult) -> Value {
    let mut object = flat("cluster", &result.report.cluster, result.report.duration_s);
    object["end"] = result.outcome.end.name().into();
    object
}

/// The flat object of a group of requests, with the keys and the order that scripts know.
fn flat(name: &str, section: &Section, duration_s: f64) -> Value {
    let Section { e2e, ttft, itl, .. } = section;
    present(json!({
        "instance_id": name,
        "completed_requests": section.completed,
        "still_queued": section.still_queued,
        "still_running": section.still_running,
        // As the Go program counts: what reached an instance, so neither `rejected_requests` nor
        // `in_transit`.
        "injected_requests": section.offered - section.rejected - section.in_transit,
        "rejected_requests": section.rejected,
        "in_transit": section.in_transit,
        "total_input_tokens": section.total_input_tokens,
        "total_output_tokens": section.total_output_tokens,
        "vllm_estimated_duration_s": number(Some(duration_s)),
        "responses_per_sec": number(section.responses_per_sec),
        "tokens_per_sec": number(section.tokens_per_sec),
        "e2e_mean_ms": number(e2e.mean_ms),
        "e2e_p90_ms": number(e2e.p90_ms),
        "e2e_p95_ms": number(e2e.p95_ms),
        "e2e_p99_ms": number(e2e.p99_ms),
        "ttft_mean_ms": number(ttft.mean_ms),
        "ttft_p90_ms": number(ttft.p90_ms),
        "ttft_p95_ms": number(ttft.p95_ms),
        "ttft_p99_ms": number(ttft.p99_ms),
        "itl_mean_ms": number(itl.mean_ms),
        "itl_p90_ms": number(itl.p90_ms),
        "itl_p95_ms": number(itl.p95_ms),
        "itl_p99_ms": number(itl.p99_ms),
        "scheduling_delay_p99_ms": number(section.scheduling_delay.p99_ms),
        "preemption_count": section.preemptions,
        "dropped_unservable": section.unservable,
        "timed_out_requests": Some(section.abandoned).filter(|&count| count > 0),
    }))
}

/// A number; whole numbers are written without a fraction.
fn number(value: Option<f64>) -> Value {
    let Some(value) = value else { return Value::Null };
    let whole = count(value);
    if float(whole).to_bits() == value.to_bits() { whole.into() } else { value.into() }
}

fn anomalies(text: &mut Text, finished: &Finished<'_>) {
    let report = &finished.result.report;
    let Section { rejected, unservable, abandoned, .. } = report.cluster;
    let blocked = blocked_instances(report);
    if rejected + unservable + abandoned + blocked + finished.inversions.unwrap_or(0) == 0 {
        return;
    }
    text.line(format_args!("=== Anomaly Counters ==="));
    if let Some(inversions) = finished.inversions {
        text.line(format_args!("Priority Inversions: {inversions}"));
    }
    text.line(format_args!("HOL Blocking Events: {blocked}"));
    text.line(format_args!("Rejected Requests: {rejected}"));
    text.line(format_args!("Dropped Unservable: {unservable}"));
    if abandoned > 0 {
        text.line(format_args!("Timed Out Requests: {abandoned}"));
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

fn cache(text: &mut Text, report: &Report) {
    let completed = float(report.cluster.completed);
    let preemptions = float(report.cluster.preemptions);
    let preemption_rate = if completed > 0.0 { preemptions / completed } else { 0.0 };
    let hit_rate = report.kv.hit_rate.unwrap_or(0.0);
    // Where nothing is offloaded, nothing comes back too soon.
    let thrashing = report.kv.tier.thrashing_rate.unwrap_or(0.0);
    if preemption_rate + hit_rate + thrashing > 0.0 {
        text.line(format_args!("=== KV Cache Metrics ==="));
        text.line(format_args!("Preemption Rate: {preemption_rate:.4}"));
        text.line(format_args!("Cache Hit Rate: {hit_rate:.4}"));
        text.line(format_args!("KV Thrashing Rate: {thrashing:.4}"));
    }
}

fn classes(text: &mut Text, report: &Report) {
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
    text.line(format_args!("=== Per-SLO Metrics ==="));
    for (name, section) in classes {
        text.line(format_args!("  {name}:"));
        let micros = |ms: Option<f64>| ms.unwrap_or(0.0) * 1e3;
        for (label, latency) in [("TTFT: ", &section.ttft), ("E2E:  ", &section.e2e)] {
            let (mean, p99, samples) =
                (micros(latency.mean_ms), micros(latency.p99_ms), latency.samples);
            text.line(format_args!("    {label}mean={mean:.2} p99={p99:.2} (n={samples})"));
        }
    }
}

fn trace_summary(text: &mut Text, report: &Report) {
    let sent = &report.routing.sent;
    let admitted: u64 = sent.iter().sum();
    let rejected = report.cluster.rejected;
    text.line(format_args!("=== Trace Summary ==="));
    text.line(format_args!("Total Decisions: {}", admitted + rejected));
    text.line(format_args!("  Admitted: {admitted}"));
    text.line(format_args!("  Rejected: {rejected}"));
    text.line(format_args!("Unique Targets: {}", sent.iter().filter(|&&n| n > 0).count()));
    if admitted > 0 {
        text.line(format_args!("Target Distribution:"));
        let mut targets: Vec<(String, u64)> =
            sent.iter().enumerate().map(|(i, &n)| (format!("instance_{i}"), n)).collect();
        targets.sort_unstable();
        for (name, count) in targets.iter().filter(|(_, count)| *count > 0) {
            text.line(format_args!("  {name}: {count}"));
        }
    }
}
