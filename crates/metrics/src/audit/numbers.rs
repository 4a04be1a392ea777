//! Checks of a finished report: numbers that no run could have.
//!
//! Whoever prints a report calls it first; a NaN would otherwise be written as `null`.

use super::{AuditReport, Place, Violation};
use crate::report::{
    Curves, Decomposition, Distributions, EngineTime, InstanceSection, KvSection, Latency,
    OverTime, Report, RoutingSection, Section, SplitStats, Steady, TierSection,
};
use blis_core::{InstanceId, Time};

/// How far a sum of floats may be off, relatively.
const ROUNDING: f64 = 1e-9;

/// What is wrong with the numbers of `report` (I1, I7, I20), at most 20 findings.
pub fn check_report(report: &Report) -> Vec<Violation> {
    let mut check = Check { log: AuditReport::default() };
    let Report {
        cluster,
        classes,
        tenants,
        instances,
        pools,
        engine_time,
        kv,
        routing,
        decomposition,
        jain_fairness,
        saturation: _,
        overloaded_from_s,
        mean_in_system,
        offered_per_sec,
        duration_s,
        mechanisms: _,
        steady,
        curves,
        large: _,
    } = report;
    check.section("cluster", cluster);
    for (class, section) in classes {
        check.section(class.name(), section);
    }
    for (tenant, section) in tenants {
        check.section(&format!("tenant {}", tenant.0), section);
    }
    for instance in instances {
        check.instance(instance);
    }
    for pool in pools {
        check.section(&format!("pool {}", pool.name), &pool.requests);
        check.share(&format!("pool {} utilization", pool.name), pool.utilization);
    }
    check.engine_time("cluster", *engine_time);
    check.aggregation(report);
    check.kv(kv);
    check.routing(routing, cluster);
    check.decomposition(decomposition, report);
    check.share("jain_fairness", *jain_fairness);
    check.number("mean_in_system", *mean_in_system);
    check.number("offered_per_sec", *offered_per_sec);
    check.number("duration_s", Some(*duration_s));
    check.number("overloaded_from_s", *overloaded_from_s);
    let Steady {
        warmup_s,
        drift,
        drift_error,
        batch_correlation,
        responses_per_sec,
        tokens_per_sec,
    } = *steady;
    for value in [warmup_s, drift.map(f64::abs), drift_error, responses_per_sec, tokens_per_sec] {
        check.number("steady", value);
    }
    check.share("batch_correlation", batch_correlation.map(f64::abs));
    if let Some(Distributions { cluster, classes, over_time }) = curves {
        check.over_time(over_time.as_ref());
        for curves in classes.iter().map(|(_, curves)| curves).chain([cluster]) {
            check.curves(curves);
        }
    }
    check.log.first
}

struct Check {
    log: AuditReport,
}

impl Check {
    fn over_time(&mut self, over_time: Option<&OverTime>) {
        let Some(OverTime { seconds, ttft_ms, waiting, running }) = over_time else { return };
        let all = ttft_ms.iter().copied().chain(waiting.iter().chain(running).copied().map(Some));
        for value in all.chain([Some(*seconds)]) {
            self.number("over_time", value);
        }
    }

    fn curves(&mut self, curves: &Curves) {
        let Curves { ttft_ms, itl_ms, e2e_ms } = curves;
        for (name, curve) in [("ttft_ms", ttft_ms), ("itl_ms", itl_ms), ("e2e_ms", e2e_ms)] {
            let whole = curve.is_empty() || curve.len() == 101;
            let rises = curve.is_sorted() && curve.iter().all(|ms| ms.is_finite() && *ms >= 0.0);
            self.holds(whole && rises, "I20", || format!("the curve of {name} is {curve:?}"));
        }
    }

    fn holds(&mut self, holds: bool, invariant: &'static str, what: impl FnOnce() -> String) {
        self.log.check(holds, invariant, Place::run(Time::ZERO), what);
    }

    fn number(&mut self, name: &str, value: Option<f64>) {
        let fine = value.is_none_or(|value| value.is_finite() && value >= 0.0);
        self.holds(fine, "I20", || format!("{name} is {value:?}"));
    }

    fn share(&mut self, name: &str, value: Option<f64>) {
        let fine = value.is_none_or(|value| (0.0..=1.0 + ROUNDING).contains(&value));
        self.holds(fine, "I20", || format!("{name} is {value:?}, not a share"));
    }

    fn latency(&mut self, name: &str, latency: &Latency) {
        let Latency { samples, mean_ms, p50_ms, p90_ms, p95_ms, p99_ms, max_ms } = *latency;
        let percentiles = [p50_ms, p90_ms, p95_ms, p99_ms, max_ms];
        for value in percentiles.into_iter().chain([mean_ms]) {
            self.number(name, value);
        }
        let ascending = percentiles.is_sorted();
        self.holds(ascending, "I20", || format!("{name}: percentiles descend: {latency:?}"));
        let whole = percentiles.iter().all(|value| value.is_some() == (samples > 0));
        self.holds(whole, "I20", || format!("{name}: some percentiles are absent: {latency:?}"));
    }

    fn section(&mut self, name: &str, section: &Section) {
        let Section { ttft, e2e, itl, scheduling_delay, .. } = section;
        let latencies =
            [("ttft", ttft), ("e2e", e2e), ("itl", itl), ("scheduling_delay", scheduling_delay)];
        for (quantity, latency) in latencies {
            self.latency(&format!("{name} {quantity}"), latency);
        }
        self.number(name, section.responses_per_sec);
        self.number(name, section.tokens_per_sec);
        self.number(name, section.goodput_per_sec);
        self.share(&format!("{name} slo_attainment"), section.slo_attainment);
        let [offered, endings @ ..] = counts(section);
        self.holds(offered == endings.iter().sum::<u64>(), "I1", || {
            format!("{name}: {offered} arrived, but endings are {endings:?}")
        });
        let has_samples = e2e.mean_ms.is_some() == (section.completed > 0);
        self.holds(has_samples, "I20", || {
            format!("{name}: {} completed, but E2E is {:?}", section.completed, e2e.mean_ms)
        });
    }

    fn instance(&mut self, instance: &InstanceSection) {
        let name = format!("instance {}", instance.instance.0);
        self.section(&name, &instance.requests);
        self.share(&format!("{name} utilization"), instance.utilization);
        self.engine_time(&name, instance.engine_time);
        self.number(&name, instance.mean_batch);
        self.number(&name, instance.mean_step_tokens);
        self.number(&name, instance.mean_queue_depth);
        self.tier(&name, &instance.tier);
    }

    fn engine_time(&mut self, name: &str, time: Option<EngineTime>) {
        let Some(EngineTime { gpu_bound, host_bound }) = time else { return };
        for part in [gpu_bound, host_bound, gpu_bound + host_bound] {
            self.share(&format!("engine time of {name}"), Some(part));
        }
    }

    /// Sums of groups are the cluster's.
    fn aggregation(&mut self, report: &Report) {
        let cluster = counts(&report.cluster);
        let classes = sum(report.classes.iter().map(|(_, section)| section));
        let tenants = sum(report.tenants.iter().map(|(_, section)| section));
        self.holds(classes == cluster && tenants == cluster, "I7", || {
            format!("cluster {cluster:?}, sum of classes {classes:?}, of tenants {tenants:?}")
        });
        let tokens = |section: &Section| section.total_output_tokens;
        let instances: u64 = report.instances.iter().map(|i| tokens(&i.requests)).sum();
        let pools: u64 = report.pools.iter().map(|pool| tokens(&pool.requests)).sum();
        let total = tokens(&report.cluster);
        let whole = instances == total && (report.pools.is_empty() || pools == total);
        self.holds(whole, "I7", || {
            format!(
                "the cluster generated {total} tokens, its instances {instances}, pools {pools}"
            )
        });
        let tiers = report.instances.iter().map(|instance| &instance.tier);
        let (out, back) = tiers.fold((0, 0), |(out, back), tier| {
            (out + tier.offloaded_blocks, back + tier.reloaded_blocks)
        });
        let tier = &report.kv.tier;
        let whole = (tier.offloaded_blocks, tier.reloaded_blocks);
        self.holds((out, back) == whole, "I7", || {
            format!(
                "{whole:?} blocks left for the CPU tiers and came back, of instances {out}, {back}"
            )
        });
        let ids = (0..).map(InstanceId);
        let dense = ids.zip(&report.instances).all(|(id, instance)| id == instance.instance);
        self.holds(dense, "I7", || "instances are not listed by id".to_owned());
    }

    fn kv(&mut self, kv: &KvSection) {
        self.share("hit_rate", kv.hit_rate);
        self.share("phantom_hit_rate", kv.phantom_hit_rate);
        self.share("missed_hit_rate", kv.missed_hit_rate);
        self.tier("the CPU tier", &kv.tier);
    }

    fn tier(&mut self, name: &str, tier: &TierSection) {
        self.share(&format!("thrashing_rate of {name}"), tier.thrashing_rate);
        self.number(&format!("transfer_stall_ms of {name}"), Some(tier.transfer_stall_ms));
        self.share(&format!("transfer_stall_share of {name}"), tier.transfer_stall_share);
    }

    fn routing(&mut self, routing: &RoutingSection, cluster: &Section) {
        self.number("max_over_mean", routing.max_over_mean);
        self.share("jain_balance", routing.jain_balance);
        let sent: u64 = routing.sent.iter().sum();
        self.holds(sent <= cluster.offered, "I7", || {
            format!("{sent} requests routed, {} arrived", cluster.offered)
        });
    }

    fn decomposition(&mut self, decomposition: &Decomposition, report: &Report) {
        if let Some(split) = &decomposition.cluster {
            self.split("cluster", split, &report.cluster.ttft);
        }
        for (class, split) in &decomposition.classes {
            let section = report.classes.iter().find(|(same, _)| same == class);
            match section {
                Some((_, section)) => self.split(class.name(), split, &section.ttft),
                None => self.holds(false, "I7", || format!("{} has no section", class.name())),
            }
        }
    }

    fn split(&mut self, name: &str, split: &SplitStats, ttft: &Latency) {
        for (split, total) in [(split.mean, ttft.mean_ms), (split.p99, ttft.p99_ms)] {
            for (part, ms) in split.parts() {
                self.number(&format!("{name} {part}"), Some(ms));
            }
            let near = |total: f64| (split.total() - total).abs() <= ROUNDING * total.max(1.0);
            self.holds(total.is_some_and(near), "I20", || {
                format!("{name}: {split:?} does not add up to {total:?}")
            });
        }
    }
}

/// Arrivals, then all ways to end.
fn counts(section: &Section) -> [u64; 8] {
    [
        section.offered,
        section.completed,
        section.rejected,
        section.unservable,
        section.abandoned,
        section.in_transit,
        section.still_queued,
        section.still_running,
    ]
}

fn sum<'a>(sections: impl Iterator<Item = &'a Section>) -> [u64; 8] {
    let mut total = [0; 8];
    for section in sections {
        for (total, n) in total.iter_mut().zip(counts(section)) {
            *total += n;
        }
    }
    total
}
