//! Metrics of a run by name, as studies and searches ask for them.
//!
//! A name is one of [the table](blis_metrics::metric), for all requests (`ttft_p99`) or for those
//! of one service class (`critical.ttft_p99`). `mechanisms.queue_depth.swayed` is how often a
//! mechanism of a policy acted.

use blis_core::SloClass;
use blis_core::math::float;
use blis_metrics::metric::{
    self, Better, CAPACITY, Definition, FEWEST_INSTANCES, Kind, MECHANISM, Mean,
    Value::{Counted, OfCluster, OfRequests, Searched},
};
use blis_metrics::{Report, Section};
use blis_scenario::problem::{hint, unknown};

/// A metric of all requests, of those of a class, or of the whole cluster.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Metric {
    class: Option<SloClass>,
    what: &'static Definition,
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

impl Metric {
    /// The highest rate at which SLOs are met, which a search finds.
    pub const CAPACITY: Metric = Metric { class: None, what: &CAPACITY, mechanism: None };
    /// The fewest instances that meet SLOs, which a search finds.
    pub const FEWEST_INSTANCES: Metric =
        Metric { class: None, what: &FEWEST_INSTANCES, mechanism: None };

    /// The metric called `name`.
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
                let found =
                    SloClass::from_name(class).ok_or_else(|| unknown("class", class, &known))?;
                (Some(found), rest)
            }
        };
        if [&CAPACITY, &FEWEST_INSTANCES].iter().any(|what| what.name == rest) {
            return Err(format!(
                "`{rest}` takes a search over many runs: use `blis capacity`, or a study with \
                 `capacity: {{slo: [...]}}`"
            ));
        }
        let what = metric::find(rest).ok_or_else(|| {
            let names: Vec<&str> = metric::all().map(|what| what.name).collect();
            unknown("number", rest, &names)
        })?;
        match (class, what.value) {
            (Some(class), OfCluster(_) | Searched) => {
                let class = class.name();
                Err(format!(
                    "`{rest}` exists for the whole cluster only; write it without \
                    `{class}.`"
                ))
            }
            _ => Ok(Metric { class, what, mechanism: None }),
        }
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

    /// Its value for some of the requests of a run; `None` if it is one of the whole cluster, or
    /// there is no sample.
    pub(crate) fn of_requests(&self, requests: &Section) -> Option<f64> {
        match self.what.value {
            OfRequests(value) => value(requests),
            _ => None,
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

    /// Whether less of it is better; `None` if neither is.
    pub fn less_is_better(&self) -> Option<bool> {
        match self.what.better {
            Better::Less => Some(true),
            Better::More => Some(false),
            Better::Neither => None,
        }
    }

    /// How it is averaged over workloads; `None` for what grows with the length of a run.
    pub fn mean(&self) -> Option<Mean> {
        self.what.mean()
    }

    /// Whether only its ratios mean something: latencies and rates, which are above 0 wherever
    /// there is a sample that is worth looking at.
    pub fn is_ratio(&self) -> bool {
        self.mean() == Some(Mean::Geometric)
    }

    /// Whether it is a latency of requests.
    pub fn is_latency(&self) -> bool {
        self.what.kind == Kind::Latency
    }

    /// What it is, in a few words.
    pub fn about(&self) -> &'static str {
        self.what.about
    }

    /// Its unit; empty for counts and shares.
    pub fn unit(&self) -> &'static str {
        self.what.unit()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_name_of_the_table_reads_back() {
        for definition in metric::all() {
            let name = definition.name;
            assert_eq!(Metric::parse(name).expect("known").name(), name);
        }
        assert_eq!(
            Metric::parse("critical.ttft_p99_ms").expect("its key").name(),
            "critical.ttft_p99"
        );
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
    fn wrong_names_are_told_with_the_nearest() {
        let refusal = |name: &str| Metric::parse(name).expect_err("unknown");
        assert!(
            refusal("ttft_p98").starts_with("unknown number `ttft_p98`, did you mean `ttft_p9")
        );
        assert!(refusal("critcal.ttft_p99").starts_with("unknown class `critcal`, did you mean"));
        assert_eq!(
            refusal("critical.hit_rate"),
            "`hit_rate` exists for the whole cluster only; write it without `critical.`"
        );
    }
}
