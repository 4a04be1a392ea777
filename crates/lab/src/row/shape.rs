//! The names and the order of a run's numbers in JSON: described once, for writing and for reading.
//!
//! Every struct is destructured without `..`, so that a new number makes its function decide how it
//! is called.

use super::{Row, RunNumbers};
use crate::json::Shape;
use blis_core::{InstanceId, SloClass, TenantId};
use blis_metrics::{
    Curves, Decomposition, Distributions, EngineTime, InstanceSection, KvSection, Latency, Report,
    RoutingSection, Saturation, Section, SplitMs, SplitStats, Steady, TierSection,
};

/// All of a row.
pub(super) fn row<S: Shape>(shape: &mut S, row: &mut Row) {
    numbers(shape, row);
    if shape.has("warnings", !row.warnings.is_empty()) {
        shape.plain_at("warnings", &mut row.warnings);
    }
}

/// What a report of the run shows as well.
pub(super) fn numbers<S: Shape>(shape: &mut S, row: &mut Row) {
    let Row { run: ran, report, tenants: names, warnings: _ } = row;
    shape.group_at("run", |shape| run(shape, ran));
    shape.group_at("cluster", |shape| cluster(shape, report));
    let Report {
        cluster: _,
        classes,
        tenants,
        instances,
        engine_time: _,
        kv,
        routing,
        decomposition,
        jain_fairness: _,
        saturation: _,
        mean_in_system: _,
        offered_per_sec: _,
        duration_s: _,
        mechanisms,
        steady,
        curves,
    } = report;
    by_class(shape, classes, section);
    let sections = std::mem::take(tenants).into_iter().map(|(_, section)| section);
    let mut named: Vec<(String, Section)> =
        std::mem::take(names).into_iter().zip(sections).collect();
    shape.named_at("tenants", &mut named, section);
    for (id, (name, section)) in (0..).zip(named) {
        names.push(name);
        tenants.push((TenantId(id), section));
    }
    shape.list_at("instances", instances, instance);
    shape.group_at("kv", |shape| self::kv(shape, kv));
    shape.group_at("routing", |shape| self::routing(shape, routing));
    shape.group_at("decomposition", |shape| self::decomposition(shape, decomposition));
    shape.counts_at("mechanisms", mechanisms);
    shape.group_at("steady", |shape| self::steady(shape, steady));
    if shape.has("curves", curves.is_some()) {
        let curves = curves.get_or_insert_default();
        shape.group_at("curves", |shape| distributions(shape, curves));
    }
}

fn steady<S: Shape>(shape: &mut S, steady: &mut Steady) {
    let Steady { warmup_s, ttft_half_width, batch_correlation, responses_per_sec, tokens_per_sec } =
        steady;
    shape.number_at("warmup_s", warmup_s);
    shape.number_at("ttft_half_width", ttft_half_width);
    shape.number_at("batch_correlation", batch_correlation);
    shape.number_at("responses_per_sec", responses_per_sec);
    shape.number_at("tokens_per_sec", tokens_per_sec);
}

fn run<S: Shape>(shape: &mut S, run: &mut RunNumbers) {
    let RunNumbers {
        seed,
        scenario_hash,
        version,
        simulated_seconds,
        wall_seconds,
        cpu_seconds,
        events,
        saturation_per_sec,
        end,
    } = run;
    shape.count_at("seed", seed);
    shape.text_at("scenario_hash", scenario_hash);
    shape.text_at("version", version);
    always(shape, "simulated_seconds", simulated_seconds);
    shape.number_at("wall_seconds", wall_seconds);
    shape.number_at("cpu_seconds", cpu_seconds);
    shape.count_at("events", events);
    shape.number_at("saturation_per_sec", saturation_per_sec);
    shape.text_at("end", end);
}

fn cluster<S: Shape>(shape: &mut S, report: &mut Report) {
    section(shape, &mut report.cluster);
    shape.number_at("offered_per_sec", &mut report.offered_per_sec);
    shape.number_at("jain_fairness", &mut report.jain_fairness);
    if shape.has("saturation", report.saturation.is_some()) {
        let mut name = report.saturation.map_or("", Saturation::name).to_owned();
        shape.text_at("saturation", &mut name);
        report.saturation = Saturation::from_name(&name);
    }
    shape.number_at("mean_in_system", &mut report.mean_in_system);
    engine_time(shape, &mut report.engine_time);
}

/// What the time of engines went to; left out if the host took none of it.
fn engine_time<S: Shape>(shape: &mut S, time: &mut Option<EngineTime>) {
    if shape.has("host_bound", time.is_some()) {
        let EngineTime { gpu_bound, host_bound } = time.get_or_insert_default();
        always(shape, "gpu_bound", gpu_bound);
        always(shape, "host_bound", host_bound);
    }
}

/// A number that there always is.
fn always<S: Shape>(shape: &mut S, name: &str, value: &mut f64) {
    let mut number = Some(*value);
    shape.number_at(name, &mut number);
    *value = number.unwrap_or_default();
}

/// A count of 32 bits.
fn short<S: Shape>(shape: &mut S, name: &str, value: &mut u32) {
    let mut count = u64::from(*value);
    shape.count_at(name, &mut count);
    *value = u32::try_from(count).unwrap_or(u32::MAX);
}

/// What there is of each class. Classes that are not known are skipped.
fn by_class<S: Shape, T: Default>(
    shape: &mut S,
    items: &mut Vec<(SloClass, T)>,
    pass: impl Fn(&mut S, &mut T),
) {
    let named = std::mem::take(items).into_iter();
    let mut named = named.map(|(class, item)| (class.name().to_owned(), item)).collect();
    shape.named_at("classes", &mut named, pass);
    let known = |(name, item): (String, T)| Some((SloClass::from_name(&name)?, item));
    *items = named.into_iter().filter_map(known).collect();
}

fn section<S: Shape>(shape: &mut S, section: &mut Section) {
    let Section {
        injected,
        completed,
        rejected,
        unservable,
        abandoned,
        in_transit,
        still_queued,
        still_running,
        preemption_count,
        total_input_tokens,
        total_output_tokens,
        ttft,
        e2e,
        itl,
        scheduling_delay,
        responses_per_sec,
        tokens_per_sec,
        goodput_per_sec,
        slo_attainment,
    } = section;
    shape.count_at("injected_requests", injected);
    shape.count_at("completed_requests", completed);
    shape.count_at("rejected_requests", rejected);
    shape.count_at("unservable_requests", unservable);
    // Absent where nobody gave up, as in all runs whose clients wait for ever.
    if shape.has("abandoned_requests", *abandoned > 0) {
        shape.count_at("abandoned_requests", abandoned);
    }
    shape.count_at("in_transit", in_transit);
    shape.count_at("still_queued", still_queued);
    shape.count_at("still_running", still_running);
    shape.count_at("preemption_count", preemption_count);
    shape.count_at("total_input_tokens", total_input_tokens);
    shape.count_at("total_output_tokens", total_output_tokens);
    shape.number_at("responses_per_sec", responses_per_sec);
    shape.number_at("tokens_per_sec", tokens_per_sec);
    shape.number_at("goodput_per_sec", goodput_per_sec);
    shape.number_at("slo_attainment", slo_attainment);
    latency(shape, "ttft", ttft);
    latency(shape, "itl", itl);
    latency(shape, "e2e", e2e);
    latency(shape, "scheduling_delay", scheduling_delay);
}

/// The statistics of a latency, e.g. `ttft_mean_ms` to `ttft_max_ms`, and of how many samples.
fn latency<S: Shape>(shape: &mut S, name: &str, latency: &mut Latency) {
    let Latency { samples, mean_ms, p50_ms, p90_ms, p95_ms, p99_ms, max_ms } = latency;
    for (statistic, value) in [
        ("mean", mean_ms),
        ("p50", p50_ms),
        ("p90", p90_ms),
        ("p95", p95_ms),
        ("p99", p99_ms),
        ("max", max_ms),
    ] {
        shape.number_at(&format!("{name}_{statistic}_ms"), value);
    }
    let counted = format!("{name}_samples");
    if shape.has(&counted, *samples > 0) {
        shape.count_at(&counted, samples);
    }
}

fn instance<S: Shape>(shape: &mut S, section: &mut InstanceSection) {
    const PREFIX: &str = "instance_";
    let InstanceSection {
        instance,
        requests,
        steps,
        utilization,
        engine_time,
        mean_batch,
        mean_step_tokens,
        mean_queue_depth,
        peak_blocks_in_use,
        evicted_blocks,
        tier,
    } = section;
    let mut name = format!("{PREFIX}{}", instance.0);
    shape.text_at("instance_id", &mut name);
    let number = name.strip_prefix(PREFIX).and_then(|number| number.parse().ok());
    *instance = number.map_or(*instance, InstanceId);
    self::section(shape, requests);
    shape.count_at("steps", steps);
    shape.number_at("utilization", utilization);
    self::engine_time(shape, engine_time);
    shape.number_at("mean_batch", mean_batch);
    shape.number_at("mean_step_tokens", mean_step_tokens);
    shape.number_at("mean_queue_depth", mean_queue_depth);
    short(shape, "peak_blocks_in_use", peak_blocks_in_use);
    shape.count_at("evicted_blocks", evicted_blocks);
    self::tier(shape, tier);
}

fn tier<S: Shape>(shape: &mut S, section: &mut TierSection) {
    let TierSection {
        offloaded_blocks,
        abandoned_blocks,
        reloaded_blocks,
        thrashing_rate,
        transfer_stall_ms,
        transfer_stall_share,
        peak_cpu_blocks,
    } = section;
    shape.count_at("offloaded_blocks", offloaded_blocks);
    shape.count_at("abandoned_blocks", abandoned_blocks);
    shape.count_at("reloaded_blocks", reloaded_blocks);
    shape.number_at("thrashing_rate", thrashing_rate);
    always(shape, "transfer_stall_ms", transfer_stall_ms);
    shape.number_at("transfer_stall_share", transfer_stall_share);
    short(shape, "peak_cpu_blocks", peak_cpu_blocks);
}

fn kv<S: Shape>(shape: &mut S, section: &mut KvSection) {
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
    shape.number_at("hit_rate", hit_rate);
    shape.number_at("phantom_hit_rate", phantom_hit_rate);
    shape.number_at("missed_hit_rate", missed_hit_rate);
    shape.count_at("cached_tokens", cached_tokens);
    shape.count_at("prompt_tokens", prompt_tokens);
    shape.count_at("evicted_blocks", evicted_blocks);
    shape.count_at("lost_tokens", lost_tokens);
    self::tier(shape, tier);
}

fn routing<S: Shape>(shape: &mut S, section: &mut RoutingSection) {
    let RoutingSection { sent, max_over_mean, jain_balance } = section;
    shape.plain_at("sent", sent);
    shape.number_at("max_over_mean", max_over_mean);
    shape.number_at("jain_balance", jain_balance);
}

fn decomposition<S: Shape>(shape: &mut S, decomposition: &mut Decomposition) {
    let Decomposition { cluster, classes } = decomposition;
    if shape.has("mean_ms", cluster.is_some()) {
        split(shape, cluster.get_or_insert_default());
    }
    if shape.has("classes", !classes.is_empty()) {
        by_class(shape, classes, split);
    }
}

fn split<S: Shape>(shape: &mut S, stats: &mut SplitStats) {
    let SplitStats { mean, p99 } = stats;
    for (name, split) in [("mean_ms", mean), ("p99_ms", p99)] {
        let SplitMs { gateway, queue, reload, prefill, recompute, output } = split;
        shape.group_at(name, |shape| {
            always(shape, "gateway", gateway);
            always(shape, "queue", queue);
            always(shape, "reload", reload);
            always(shape, "prefill", prefill);
            always(shape, "recompute", recompute);
            always(shape, "output", output);
        });
    }
}

fn distributions<S: Shape>(shape: &mut S, distributions: &mut Distributions) {
    let Distributions { cluster, classes } = distributions;
    curves(shape, cluster);
    if shape.has("classes", !classes.is_empty()) {
        by_class(shape, classes, curves);
    }
}

fn curves<S: Shape>(shape: &mut S, curves: &mut Curves) {
    let Curves { ttft_ms, itl_ms, e2e_ms } = curves;
    for (name, curve) in [("ttft_ms", ttft_ms), ("itl_ms", itl_ms), ("e2e_ms", e2e_ms)] {
        if shape.has(name, !curve.is_empty()) {
            shape.plain_at(name, curve);
        }
    }
}
