//! The table of metrics: the numbers of a run that are known by name.
//!
//! Studies, searches, the views of the ledger, the help and the reference page come from it. To add
//! a metric, add a field to `report.rs`, compute it in `summary`, and add a line here.

use crate::report::{Report, Section};
use blis_core::math::{exp, float, ln};

/// A metric.
#[derive(Clone, Copy, Debug)]
pub struct Definition {
    /// What it is called.
    pub name: &'static str,
    /// Its key in JSON: within a group of requests, or from the top if there is only one of the
    /// whole cluster. Empty if it is not there.
    pub key: &'static str,
    /// What kind of number it is.
    pub kind: Kind,
    /// Which way is better.
    pub better: Better,
    /// What it is, in a few words.
    pub about: &'static str,
    /// Where it is found.
    pub value: Value,
}

/// Where a metric is found.
#[derive(Clone, Copy, Debug)]
pub enum Value {
    /// Among the numbers of a group of requests: all of them, or those of a class.
    OfRequests(fn(&Section) -> Option<f64>),
    /// Among those of the whole cluster.
    OfCluster(fn(&Report) -> Option<f64>),
    /// Among the counts of mechanisms.
    Counted,
    /// In no run: by a search over many.
    Searched,
}

/// What kind of number a metric is, which decides its unit and its mean over workloads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// How many; the longer the run, the more.
    Count,
    /// Milliseconds in all; the longer the run, the more.
    Total,
    /// From 0 to 1, whatever the length of a run.
    Share,
    /// Per second.
    Rate,
    /// Milliseconds of a request.
    Latency,
}

/// Which way a metric is better.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Better {
    /// Less is better.
    Less,
    /// More is better.
    More,
    /// Neither is.
    Neither,
}

/// How the values of several workloads become one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mean {
    /// Of latencies and rates: 10 % less counts the same on every workload, however long or short
    /// its times are.
    Geometric,
    /// Of shares, which can be 0.
    Arithmetic,
}

impl PartialEq for Definition {
    fn eq(&self, other: &Definition) -> bool {
        self.name == other.name
    }
}

impl Eq for Definition {}

impl Definition {
    /// Its unit; empty for counts and shares.
    pub const fn unit(&self) -> &'static str {
        match self.kind {
            Kind::Count | Kind::Share => "",
            Kind::Rate => "/s",
            Kind::Total | Kind::Latency => "ms",
        }
    }

    /// How it is averaged over workloads; `None` for what grows with the length of a run.
    pub const fn mean(&self) -> Option<Mean> {
        match self.kind {
            Kind::Rate | Kind::Latency => Some(Mean::Geometric),
            Kind::Share => Some(Mean::Arithmetic),
            Kind::Count | Kind::Total => None,
        }
    }

    const fn count(self, better: Better, about: &'static str) -> Definition {
        Definition { kind: Kind::Count, better, about, ..self }
    }

    const fn share(self, better: Better, about: &'static str) -> Definition {
        Definition { kind: Kind::Share, better, about, ..self }
    }

    const fn rate(self, about: &'static str) -> Definition {
        Definition { kind: Kind::Rate, better: More, about, ..self }
    }

    const fn latency(self, about: &'static str) -> Definition {
        Definition { kind: Kind::Latency, better: Less, about, ..self }
    }
}

impl Mean {
    /// What it is called.
    pub fn name(self) -> &'static str {
        match self {
            Mean::Geometric => "geometric mean",
            Mean::Arithmetic => "mean",
        }
    }

    /// That of `values`.
    pub fn over(self, values: &[f64]) -> f64 {
        let count = float(values.len() as u64);
        match self {
            Mean::Arithmetic => values.iter().sum::<f64>() / count,
            // A rate of 0 anywhere is a failure, not a number without a logarithm.
            Mean::Geometric if values.iter().any(|value| *value <= 0.0) => 0.0,
            Mean::Geometric => exp(values.iter().map(|value| ln(*value)).sum::<f64>() / count),
        }
    }
}

use Better::{Less, More, Neither};

const fn found(name: &'static str, key: &'static str, value: Value) -> Definition {
    Definition { name, key, kind: Kind::Count, better: Neither, about: "", value }
}

type OfSection = fn(&Section) -> Option<f64>;
type OfReport = fn(&Report) -> Option<f64>;

const fn requests(name: &'static str, key: &'static str, value: OfSection) -> Definition {
    found(name, key, Value::OfRequests(value))
}

const fn cluster(name: &'static str, key: &'static str, value: OfReport) -> Definition {
    found(name, key, Value::OfCluster(value))
}

/// The statistics of a latency.
macro_rules! latency {
    ($name:ident, $about:literal) => {
        [
            latency!($name, "mean", mean_ms, $about, "mean"),
            latency!($name, "p50", p50_ms, $about, "median"),
            latency!($name, "p90", p90_ms, $about, "90th percentile"),
            latency!($name, "p95", p95_ms, $about, "95th percentile"),
            latency!($name, "p99", p99_ms, $about, "99th percentile"),
            latency!($name, "max", max_ms, $about, "maximum"),
        ]
    };
    ($name:ident, $statistic:literal, $field:ident, $about:literal, $words:literal) => {
        requests(
            concat!(stringify!($name), "_", $statistic),
            concat!(stringify!($name), "_", $statistic, "_ms"),
            |s| s.$name.$field,
        )
        .latency(concat!($about, ": ", $words))
    };
}

static REQUESTS: [Definition; 7] = [
    requests("offered", "injected_requests", |s| Some(float(s.offered)))
        .count(Neither, "requests that arrived"),
    requests("admitted", "", |s| Some(float(s.admitted())))
        .count(More, "requests that were neither rejected nor too large to be served"),
    requests("completed", "completed_requests", |s| Some(float(s.completed)))
        .count(More, "requests all of whose tokens left the server"),
    requests("rejected", "rejected_requests", |s| Some(float(s.rejected)))
        .count(Less, "requests refused by admission"),
    requests("refused_share", "", Section::refused_share)
        .share(Less, "share of the requests that arrived and were refused by admission"),
    requests("abandoned", "abandoned_requests", |s| Some(float(s.abandoned)))
        .count(Less, "requests whose clients gave up before the first token"),
    requests("preemptions", "preemption_count", |s| Some(float(s.preemptions)))
        .count(Less, "times that a running request was preempted"),
];

// ttft_mean, ttft_p50, ttft_p90, ttft_p95, ttft_p99, ttft_max; the same of itl and e2e.
static TTFT: [Definition; 6] = latency!(ttft, "time to first token");
static ITL: [Definition; 6] = latency!(itl, "time between two tokens of a request");
static E2E: [Definition; 6] = latency!(e2e, "arrival to last token");

static RATES: [Definition; 4] = [
    requests("responses_per_sec", "responses_per_sec", |s| s.responses_per_sec)
        .rate("completed requests per second of the run"),
    requests("tokens_per_sec", "tokens_per_sec", |s| s.tokens_per_sec)
        .rate("output tokens per second of the run"),
    requests("goodput_per_sec", "goodput_per_sec", |s| s.goodput_per_sec)
        .rate("requests that met all their latency targets, per second of the run"),
    requests("slo_attainment", "slo_attainment", |s| s.slo_attainment)
        .share(More, "share of the offered requests that met all their latency targets"),
];

static CLUSTER: [Definition; 14] = [
    cluster("steady_responses_per_sec", "steady.responses_per_sec", |r| r.steady.responses_per_sec)
        .rate("completed requests per second in the second half of the arrivals"),
    cluster("steady_tokens_per_sec", "steady.tokens_per_sec", |r| r.steady.tokens_per_sec)
        .rate("output tokens per second in the second half of the arrivals"),
    Definition {
        kind: Kind::Total,
        better: More,
        about: "time until an overloaded cluster's queue grows for good",
        ..cluster("time_to_overload", "", |r| r.overloaded_from_s.map(|s| 1e3 * s))
    },
    cluster("jain_fairness", "cluster.jain_fairness", |r| r.jain_fairness)
        .share(More, "Jain's index over tenants of completed / offered: 1 is fair"),
    cluster("hit_rate", "kv.hit_rate", |r| r.kv.hit_rate)
        .share(More, "share of the prompt tokens that were found in the prefix cache"),
    cluster("phantom_hit_rate", "kv.phantom_hit_rate", |r| r.kv.phantom_hit_rate)
        .share(Less, "share of the cached tokens expected by the router that were not there"),
    cluster("missed_hit_rate", "kv.missed_hit_rate", |r| r.kv.missed_hit_rate)
        .share(Less, "share of the cached tokens found that the router did not know of"),
    cluster("evicted_blocks", "kv.evicted_blocks", |r| Some(float(r.kv.evicted_blocks)))
        .count(Less, "cached blocks dropped to make room"),
    cluster("lost_tokens", "kv.lost_tokens", |r| Some(float(r.kv.lost_tokens)))
        .count(Less, "computed tokens whose KV was lost to preemption"),
    cluster("offloaded_blocks", "kv.offloaded_blocks", |r| Some(float(r.kv.tier.offloaded_blocks)))
        .count(Neither, "blocks copied to the CPU tier"),
    cluster("reloaded_blocks", "kv.reloaded_blocks", |r| Some(float(r.kv.tier.reloaded_blocks)))
        .count(Neither, "blocks copied back"),
    Definition {
        kind: Kind::Total,
        better: Less,
        about: "time that steps waited for copies",
        ..cluster("transfer_stall", "kv.transfer_stall_ms", |r| Some(r.kv.tier.transfer_stall_ms))
    },
    cluster("thrashing_rate", "kv.thrashing_rate", |r| r.kv.tier.thrashing_rate)
        .share(Less, "share of the offloaded blocks copied back within the thrashing window"),
    cluster("routing_balance", "routing.jain_balance", |r| r.routing.jain_balance)
        .share(Neither, "Jain's index over instances of the requests sent there: 1 is even"),
];

/// How often a mechanism of a policy acted.
pub static MECHANISM: Definition = found("mechanisms", "mechanisms", Value::Counted)
    .count(Neither, "how often a mechanism of a policy acted");
/// What a search over rates finds.
pub static CAPACITY: Definition = found("capacity", "", Value::Searched)
    .rate("the highest rate at which the SLOs are met; of studies that ask for it");
/// What a search over numbers of instances finds.
pub static FEWEST_INSTANCES: Definition = found("fewest_instances", "", Value::Searched)
    .count(Less, "the fewest instances that meet the SLOs; of studies that ask for it");

/// All metrics that are found in a run by name, in the order of reports.
pub fn all() -> impl Iterator<Item = &'static Definition> {
    REQUESTS.iter().chain(&TTFT).chain(&ITL).chain(&E2E).chain(&RATES).chain(&CLUSTER)
}

/// The metric called `name`, which may also be its last key in JSON, e.g. `injected_requests`.
pub fn find(name: &str) -> Option<&'static Definition> {
    let last = |key: &str| !key.is_empty() && key.rsplit('.').next() == Some(name);
    all().find(|one| one.name == name).or_else(|| all().find(|one| last(one.key)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_metric_has_one_name_and_what_it_is() {
        let mut names: Vec<&str> = all().map(|one| one.name).collect();
        assert!(all().all(|one| !one.about.is_empty() && find(one.name) == Some(one)));
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), all().count());
    }

    #[test]
    fn keys_of_json_are_names_too_where_they_are_no_other_name() {
        for (key, name) in [
            ("injected_requests", "offered"),
            ("preemption_count", "preemptions"),
            ("ttft_p99_ms", "ttft_p99"),
            ("jain_balance", "routing_balance"),
            ("responses_per_sec", "responses_per_sec"),
        ] {
            assert_eq!(find(key).expect(key).name, name);
        }
        assert_eq!(find(""), None);
    }

    #[test]
    fn latencies_and_losses_should_be_low_and_throughput_high() {
        let better = |name: &str| find(name).expect("known").better;
        assert_eq!(["ttft_p99", "e2e_mean", "abandoned", "transfer_stall"].map(better), [Less; 4]);
        assert_eq!(["tokens_per_sec", "hit_rate", "completed"].map(better), [More; 3]);
        assert_eq!(["offered", "offloaded_blocks"].map(better), [Neither; 2]);
    }

    #[test]
    fn the_mean_of_latencies_and_rates_is_geometric_and_that_of_shares_is_not() {
        let mean = |name: &str| find(name).expect("known").mean();
        assert_eq!(["ttft_p99", "tokens_per_sec"].map(mean), [Some(Mean::Geometric); 2]);
        assert_eq!(["slo_attainment", "hit_rate"].map(mean), [Some(Mean::Arithmetic); 2]);
        assert_eq!(["completed", "preemptions", "transfer_stall"].map(mean), [None; 3]);
        assert!((Mean::Geometric.over(&[10.0, 1000.0]) - 100.0).abs() < 1e-9);
        assert!((Mean::Arithmetic.over(&[0.0, 0.5]) - 0.25).abs() < 1e-12);
        assert!(Mean::Geometric.over(&[10.0, 0.0]).abs() <= 0.0, "a failure somewhere is one");
    }
}
