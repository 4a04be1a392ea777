//! Numbers of a run by name, for those who choose which to look at: studies and searches.
//!
//! A name is that of the number, for all requests (`ttft_p99`) or for those of one service class
//! (`critical.ttft_p99`). Latencies are in milliseconds. `mechanisms.queue_depth.swayed` is how
//! often a mechanism of a policy acted.

use crate::capacity::Vary;
use blis_core::SloClass;
use blis_core::math::float;
use blis_metrics::{Latency, Report, Section};
use blis_scenario::problem::{hint, quoted};

/// A number of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Metric {
    class: Option<SloClass>,
    what: &'static What,
    /// Which mechanism, if it is the count of one.
    mechanism: Option<Mechanism>,
}

/// `policy.mechanism`, short enough to be copied about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Mechanism {
    text: [u8; LONGEST_MECHANISM],
    length: usize,
}

const LONGEST_MECHANISM: usize = 64;
/// How the counts of mechanisms are called.
const MECHANISMS: &str = "mechanisms.";
/// Whose mechanisms the host counts, whatever the policy.
const HOST: [&str; 4] = ["admission", "order", "preempt", "routing"];

impl Mechanism {
    /// The mechanism called `name`, with hyphens or underscores.
    fn parse(name: &str) -> Result<Mechanism, String> {
        let name = name.replace('_', "-");
        let Some((policy, _)) = name.rsplit_once('.').filter(|(_, what)| !what.is_empty()) else {
            return Err(format!("`{name}` is not `policy.mechanism`, e.g. `queue_depth.swayed`"));
        };
        let kinds = blis_policy::kinds();
        let entries = kinds.iter().flat_map(|kind| kind.entries.iter().map(|entry| entry.name));
        let known: Vec<&str> = entries.chain(HOST).collect();
        let mut text = [0; LONGEST_MECHANISM];
        let fits = name.len() <= LONGEST_MECHANISM;
        if !fits || !known.contains(&policy) {
            let hint = hint(policy, known.iter().copied());
            return Err(format!("unknown policy `{policy}`{hint}"));
        }
        text[..name.len()].copy_from_slice(name.as_bytes());
        Ok(Mechanism { text, length: name.len() })
    }

    fn name(&self) -> &str {
        std::str::from_utf8(&self.text[..self.length]).expect("made from text")
    }
}

/// What a number is, whosever it is.
#[derive(Debug)]
struct What {
    name: &'static str,
    unit: &'static str,
    value: Value,
}

impl PartialEq for What {
    fn eq(&self, other: &What) -> bool {
        self.name == other.name
    }
}

impl Eq for What {}

/// How a number is found.
#[derive(Clone, Copy, Debug)]
enum Value {
    /// Among those of a group of requests.
    OfRequests(fn(&Section) -> Option<f64>),
    /// Among those of the whole cluster.
    OfCluster(fn(&Report) -> Option<f64>),
    /// Among the counts of mechanisms.
    Counted,
    /// In no run: by a search over many.
    Searched,
}

use Value::{Counted, OfCluster, OfRequests, Searched};

static MECHANISM: What = what("mechanisms", "", Counted);
static CAPACITY: What = what("capacity", "/s", Searched);
static FEWEST_INSTANCES: What = what("fewest_instances", "", Searched);

const fn what(name: &'static str, unit: &'static str, value: Value) -> What {
    What { name, unit, value }
}

/// The statistics of a latency.
macro_rules! latency {
    ($name:literal, $field:ident) => {
        [
            what(concat!($name, "_mean"), "ms", OfRequests(|s| mean(&s.$field))),
            what(concat!($name, "_p50"), "ms", OfRequests(|s| s.$field.p50_ms)),
            what(concat!($name, "_p90"), "ms", OfRequests(|s| s.$field.p90_ms)),
            what(concat!($name, "_p95"), "ms", OfRequests(|s| s.$field.p95_ms)),
            what(concat!($name, "_p99"), "ms", OfRequests(|s| s.$field.p99_ms)),
            what(concat!($name, "_max"), "ms", OfRequests(|s| s.$field.max_ms)),
        ]
    };
}

static TTFT: [What; 6] = latency!("ttft", ttft);
static E2E: [What; 6] = latency!("e2e", e2e);
static ITL: [What; 6] = latency!("itl", itl);

static OTHERS: [What; 23] = [
    what("offered", "", OfRequests(|s| Some(float(s.offered)))),
    what("admitted", "", OfRequests(|s| Some(float(s.admitted())))),
    what("completed", "", OfRequests(|s| Some(float(s.completed)))),
    what("rejected", "", OfRequests(|s| Some(float(s.rejected)))),
    what("abandoned", "", OfRequests(|s| Some(float(s.abandoned)))),
    what("preemptions", "", OfRequests(|s| Some(float(s.preemptions)))),
    what("responses_per_sec", "/s", OfRequests(|s| s.responses_per_sec)),
    what("tokens_per_sec", "/s", OfRequests(|s| s.tokens_per_sec)),
    what("goodput_per_sec", "/s", OfRequests(|s| s.goodput_per_sec)),
    what("slo_attainment", "", OfRequests(|s| s.slo_attainment)),
    what("steady_responses_per_sec", "/s", OfCluster(|r| r.steady.responses_per_sec)),
    what("steady_tokens_per_sec", "/s", OfCluster(|r| r.steady.tokens_per_sec)),
    what("jain_fairness", "", OfCluster(|r| r.jain_fairness)),
    what("hit_rate", "", OfCluster(|r| r.kv.hit_rate)),
    what("phantom_hit_rate", "", OfCluster(|r| r.kv.phantom_hit_rate)),
    what("missed_hit_rate", "", OfCluster(|r| r.kv.missed_hit_rate)),
    what("evicted_blocks", "", OfCluster(|r| Some(float(r.kv.evicted_blocks)))),
    what("lost_tokens", "", OfCluster(|r| Some(float(r.kv.lost_tokens)))),
    what("offloaded_blocks", "", OfCluster(|r| Some(float(r.kv.tier.offloaded_blocks)))),
    what("reloaded_blocks", "", OfCluster(|r| Some(float(r.kv.tier.reloaded_blocks)))),
    what("transfer_stall", "ms", OfCluster(|r| Some(r.kv.tier.transfer_stall_ms))),
    what("thrashing_rate", "", OfCluster(|r| r.kv.tier.thrashing_rate)),
    what("routing_balance", "", OfCluster(|r| r.routing.jain_balance)),
];

fn mean(latency: &Latency) -> Option<f64> {
    latency.mean_ms
}

fn all() -> impl Iterator<Item = &'static What> {
    TTFT.iter().chain(&E2E).chain(&ITL).chain(&OTHERS)
}

impl Metric {
    /// The number called `name`.
    ///
    /// # Errors
    /// What is wrong with the name, and the nearest known one.
    pub fn parse(name: &str) -> Result<Metric, String> {
        if let Some(mechanism) = name.strip_prefix(MECHANISMS) {
            let mechanism = Some(Mechanism::parse(mechanism)?);
            return Ok(Metric { class: None, what: &MECHANISM, mechanism });
        }
        let (class, rest) = match name.split_once('.') {
            None => (None, name),
            Some((class, rest)) => {
                let known = SloClass::ALL.map(SloClass::name);
                let found = SloClass::from_name(class).ok_or_else(|| {
                    let hint = hint(class, known);
                    format!("unknown class `{class}`{hint}; known: {}", quoted(&known))
                })?;
                (Some(found), rest)
            }
        };
        if [&CAPACITY, &FEWEST_INSTANCES].iter().any(|what| what.name == rest) {
            return Err(format!(
                "`{rest}` is found by a search over many runs; studies that say what must hold, \
                 with `capacity: {{slo: [...]}}`, have it, and `blis capacity`"
            ));
        }
        let names: Vec<&str> = all().map(|what| what.name).collect();
        let what = all().find(|what| what.name == rest).ok_or_else(|| {
            let hint = hint(rest, names.iter().copied());
            format!("unknown number `{rest}`{hint}; known: {}", quoted(&names))
        })?;
        match (class, what.value) {
            (Some(class), OfCluster(_) | Searched) => {
                let class = class.name();
                Err(format!("`{rest}` is one of the whole cluster; write it without `{class}.`"))
            }
            _ => Ok(Metric { class, what, mechanism: None }),
        }
    }

    /// The number that a search for capacities finds.
    pub fn searched(vary: Vary) -> Metric {
        let what = match vary {
            Vary::Rate => &CAPACITY,
            Vary::Instances => &FEWEST_INSTANCES,
        };
        Metric { class: None, what, mechanism: None }
    }

    /// Whether it is found by a search rather than in a run.
    pub fn is_searched(&self) -> bool {
        matches!(self.what.value, Searched)
    }

    /// Its value in a run; `None` if there is no sample.
    pub fn of(&self, report: &Report) -> Option<f64> {
        match (self.class, self.what.value) {
            (_, OfCluster(value)) => value(report),
            (_, Searched) => None,
            (_, Counted) => {
                let mechanism = self.mechanism.as_ref()?;
                Some(float(report.mechanisms.get(mechanism.name()).copied().unwrap_or(0)))
            }
            (None, OfRequests(value)) => value(&report.cluster),
            (Some(wanted), OfRequests(value)) => {
                let section = report.classes.iter().find(|(class, _)| *class == wanted);
                section.and_then(|(_, section)| value(section))
            }
        }
    }

    /// Its name.
    pub fn name(&self) -> String {
        if let Some(mechanism) = &self.mechanism {
            return format!("{MECHANISMS}{}", mechanism.name().replace('-', "_"));
        }
        match self.class {
            None => self.what.name.to_owned(),
            Some(class) => format!("{}.{}", class.name(), self.what.name),
        }
    }

    /// The same number of the requests of `class`; `None` if it is one of the whole cluster.
    pub fn of_class(&self, class: SloClass) -> Option<Metric> {
        matches!(self.what.value, OfRequests(_)).then(|| Metric { class: Some(class), ..*self })
    }

    /// Whether less of it is better; `None` if that cannot be said.
    pub fn less_is_better(&self) -> Option<bool> {
        match self.what.name {
            "completed" | "admitted" | "slo_attainment" | "jain_fairness" | "hit_rate" => {
                Some(false)
            }
            "rejected" | "preemptions" | "phantom_hit_rate" | "missed_hit_rate"
            | "evicted_blocks" | "lost_tokens" | "thrashing_rate" => Some(true),
            _ if self.what.unit == "/s" => Some(false),
            _ if self.what.unit == "ms" => Some(true),
            _ => None,
        }
    }

    /// Whether only its ratios mean something: latencies and rates, which are above 0 wherever
    /// there is a sample that is worth looking at.
    pub fn is_ratio(&self) -> bool {
        let latency = TTFT.iter().chain(&E2E).chain(&ITL).any(|what| what == self.what);
        latency || self.what.unit == "/s"
    }

    /// Whether it is a share of something: from 0 to 1, whatever the length of a run.
    pub fn is_share(&self) -> bool {
        self.what.name.ends_with("_rate")
            || matches!(self.what.name, "slo_attainment" | "jain_fairness" | "routing_balance")
    }

    /// Its unit; empty for counts and shares.
    pub fn unit(&self) -> &'static str {
        self.what.unit
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_name_is_known_once_and_reads_back() {
        let mut names: Vec<&str> = all().map(|what| what.name).collect();
        for name in &names {
            assert_eq!(Metric::parse(name).expect("known").name(), *name);
        }
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), 41);
    }

    #[test]
    fn a_class_has_its_own_numbers() {
        let mut critical = Section { completed: 3, ..Section::default() };
        critical.ttft.p99_ms = Some(7.0);
        let mut report =
            Report { classes: vec![(SloClass::Critical, critical)], ..Report::default() };
        report.cluster.completed = 5;
        report.kv.hit_rate = Some(0.25);
        let of = |name: &str| Metric::parse(name).expect("known").of(&report);
        assert_eq!(of("critical.completed"), Some(3.0));
        assert_eq!(of("critical.ttft_p99"), Some(7.0));
        assert_eq!(of("completed"), Some(5.0));
        assert_eq!(of("hit_rate"), Some(0.25));
        assert_eq!(of("batch.completed"), None, "there was no request of that class");
        assert_eq!(of("ttft_p99"), None, "no sample, no number");
    }

    #[test]
    fn a_mechanism_is_counted_under_the_name_of_its_policy() {
        let mut report = Report::default();
        report.mechanisms.insert("queue-depth.swayed".to_owned(), 7);
        let metric = Metric::parse("mechanisms.queue_depth.swayed").expect("known");
        assert_eq!(metric.of(&report), Some(7.0));
        assert_eq!(Metric::parse(&metric.name()), Ok(metric), "it reads back");
        assert_eq!(Metric::parse("mechanisms.queue-depth.swayed"), Ok(metric));
        let never = Metric::parse("mechanisms.slo_gated.rejected").expect("known");
        assert_eq!(never.of(&report), Some(0.0), "what did not act acted 0 times");
        let refusal = |name: &str| Metric::parse(name).expect_err("unknown");
        let nearest = "unknown policy `queue-dept`, did you mean `queue-depth`?";
        assert_eq!(refusal("mechanisms.queue_dept.swayed"), nearest);
        assert!(refusal("mechanisms.swayed").contains("is not `policy.mechanism`"));
    }

    #[test]
    fn latencies_should_be_low_and_throughput_high() {
        let better = |name: &str| Metric::parse(name).expect("known").less_is_better();
        assert_eq!(["ttft_p99", "critical.e2e_mean", "preemptions"].map(better), [Some(true); 3]);
        assert_eq!(["tokens_per_sec", "hit_rate", "batch.completed"].map(better), [Some(false); 3]);
        assert_eq!(["offered", "offloaded_blocks"].map(better), [None; 2]);
    }

    #[test]
    fn wrong_names_are_told_with_the_nearest() {
        let refusal = |name: &str| Metric::parse(name).expect_err("unknown");
        assert!(
            refusal("ttft_p98").starts_with("unknown number `ttft_p98`, did you mean `ttft_p9")
        );
        assert!(refusal("critcal.ttft_p99").starts_with("unknown class `critcal`, did you mean"));
        assert_eq!(
            refusal("critical.hit_rate"),
            "`hit_rate` is one of the whole cluster; write it without `critical.`"
        );
    }
}
