//! Metrics of a run by name, as studies and searches ask for them.
//!
//! A name is one of [the table](blis_metrics::metric), for all requests (`ttft_p99`) or for those
//! of one service class (`critical.ttft_p99`) or tenant (`tenants.acme.ttft_p99`).
//! `mechanisms.queue_depth.swayed` is how often a mechanism of a policy acted.

use blis_core::SloClass;
use blis_core::math::float;
use blis_metrics::metric::{
    self, Better, CAPACITY, Definition, FEWEST_INSTANCES, Kind, MECHANISM, Mean,
    Value::{Counted, OfCluster, OfRequests, Searched},
};
use blis_metrics::{Report, Section};
use blis_scenario::Row;
use blis_scenario::problem::{hint, unknown};

/// A metric of all requests, of those of a class or a tenant, or of the whole cluster.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Metric {
    class: Option<SloClass>,
    what: &'static Definition,
    /// Which mechanism it counts, as `policy.mechanism`, or the tenant whose requests it is of.
    named: Option<Name>,
}

/// A name, short enough to be copied about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Name {
    text: [u8; LONGEST_NAME],
    length: usize,
}

const LONGEST_NAME: usize = 64;
/// How the counts of mechanisms are called, and numbers of one tenant.
const MECHANISMS: &str = "mechanisms.";
const TENANTS: &str = "tenants.";
/// Whose mechanisms the host counts, whatever the policy.
const HOST: [&str; 4] = ["admission", "order", "preempt", "routing"];

impl Name {
    /// `name` with hyphens for underscores, as claims have no hyphens.
    fn new(name: &str) -> Result<Name, String> {
        let name = name.replace('_', "-");
        let mut text = [0; LONGEST_NAME];
        let Some(room) = text.get_mut(..name.len()) else {
            return Err(format!("`{name}` has more than {LONGEST_NAME} letters"));
        };
        room.copy_from_slice(name.as_bytes());
        Ok(Name { text, length: name.len() })
    }

    /// The mechanism called `name`, with hyphens or underscores.
    fn of_mechanism(name: &str) -> Result<Name, String> {
        let name = name.replace('_', "-");
        let Some((policy, _)) = name.rsplit_once('.').filter(|(_, what)| !what.is_empty()) else {
            return Err(format!("`{name}` is not `policy.mechanism`, e.g. `queue_depth.swayed`"));
        };
        let kinds = blis_policy::kinds();
        let entries = kinds.iter().flat_map(|kind| kind.entries.iter().map(|entry| entry.name));
        let known: Vec<&str> = entries.chain(HOST).collect();
        if !known.contains(&policy) {
            let hint = hint(policy, known.iter().copied());
            return Err(format!("unknown policy `{policy}`{hint}"));
        }
        Name::new(&name)
    }

    fn text(&self) -> &str {
        std::str::from_utf8(&self.text[..self.length]).expect("made from text")
    }
}

impl Metric {
    /// The highest rate at which SLOs are met, which a search finds.
    pub const CAPACITY: Metric = Metric::plain(&CAPACITY);
    /// The fewest instances that meet SLOs, which a search finds.
    pub const FEWEST_INSTANCES: Metric = Metric::plain(&FEWEST_INSTANCES);

    const fn plain(what: &'static Definition) -> Metric {
        Metric { class: None, what, named: None }
    }

    /// The metric called `name`.
    ///
    /// # Errors
    /// What is wrong with the name, and the nearest known one.
    pub fn parse(name: &str) -> Result<Metric, String> {
        if let Some(mechanism) = name.strip_prefix(MECHANISMS) {
            let named = Some(Name::of_mechanism(mechanism)?);
            return Ok(Metric { named, ..Metric::plain(&MECHANISM) });
        }
        if let Some((tenant, rest)) = name.strip_prefix(TENANTS).and_then(|it| it.rsplit_once('.'))
        {
            let metric = Metric::parse(rest)?;
            return match metric.what.value {
                OfRequests(_) => Ok(Metric { named: Some(Name::new(tenant)?), ..metric }),
                _ => Err(format!("`{rest}` exists for the whole cluster only")),
            };
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
            format!("{}; docs/reference/metrics.md has all", unknown("number", rest, &names))
        })?;
        match (class, what.value) {
            (Some(class), OfCluster(_) | Searched) => {
                let class = class.name();
                Err(format!(
                    "`{rest}` exists for the whole cluster only; write it without \
                    `{class}.`"
                ))
            }
            _ => Ok(Metric { class, ..Metric::plain(what) }),
        }
    }

    /// Whether it is found by a search rather than in a run.
    pub fn is_searched(&self) -> bool {
        matches!(self.what.value, Searched)
    }

    /// Its value in a run; `None` if there is no sample.
    pub fn of_run(&self, row: &Row) -> Option<f64> {
        let Some(tenant) = self.tenant() else { return self.of(&row.report) };
        let place = row.tenants.iter().position(|name| name.replace('_', "-") == tenant.text())?;
        self.of_requests(&row.report.tenants.get(place)?.1)
    }

    /// The class whose requests it is of.
    pub(crate) fn class(&self) -> Option<SloClass> {
        self.class
    }

    /// The tenant whose requests it is of, with hyphens for underscores.
    pub(crate) fn tenant_name(&self) -> Option<&str> {
        self.tenant().map(Name::text)
    }

    fn tenant(&self) -> Option<&Name> {
        self.named.as_ref().filter(|_| matches!(self.what.value, OfRequests(_)))
    }

    /// Its value in a report, which does not know tenants by name; `None` if there is no sample.
    pub fn of(&self, report: &Report) -> Option<f64> {
        match (self.class, self.what.value) {
            _ if self.tenant().is_some() => None,
            (_, OfCluster(value)) => value(report),
            (_, Searched) => None,
            (_, Counted) => {
                let mechanism = self.named.as_ref()?;
                Some(float(report.mechanisms.get(mechanism.text()).copied().unwrap_or(0)))
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
        let named = self.named.as_ref().map(|name| name.text().replace('-', "_"));
        match (self.class, named) {
            (_, Some(tenant)) if self.tenant().is_some() => {
                format!("{TENANTS}{tenant}.{}", self.what.name)
            }
            (_, Some(mechanism)) => format!("{MECHANISMS}{mechanism}"),
            (None, None) => self.what.name.to_owned(),
            (Some(class), None) => format!("{}.{}", class.name(), self.what.name),
        }
    }

    /// The same number of the requests of `class`; `None` if it is one of the whole cluster.
    pub fn of_class(&self, class: SloClass) -> Option<Metric> {
        let exists = matches!(self.what.value, OfRequests(_)) && self.named.is_none();
        exists.then_some(Metric { class: Some(class), ..*self })
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
    fn a_tenant_has_its_own_numbers_under_its_name() {
        let metric = Metric::parse("tenants.acme_2.ttft_p99").expect("known");
        assert_eq!(Metric::parse(&metric.name()), Ok(metric), "it reads back");
        let refusal = Metric::parse("tenants.acme.hit_rate").expect_err("of no tenant");
        assert_eq!(refusal, "`hit_rate` exists for the whole cluster only");
        assert_eq!(metric.of(&Report::default()), None, "a report has no names of tenants");
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
