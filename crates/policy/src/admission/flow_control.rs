//! `flow-control`: requests wait at the gateway while the cluster is saturated.
//!
//! **Prefers** important classes: whenever the cluster is not saturated, the most important class
//! with a waiting request lets one go, and it is routed with what the gateway sees then. Within a
//! class, `strict` takes the first request of all tenants, `round-robin` the first of the next
//! tenant, in the order in which tenants first came. At most one request goes when one arrives and
//! one every millisecond. A class whose queue is full turns away newcomers, and whoever has waited
//! for longer than `ttl` is turned away.
//!
//! **Reads** with `utilization` the requests waiting at each instance and its KV utilization
//! (polled): saturation is the mean over instances of the larger of the two, each as a share of its
//! threshold, and 1 for an instance whose values are older than `staleness`. With the others the
//! router's own counts (live): `requests` and `tokens` are all that is in flight as a share of what
//! may be, `hybrid` is the mean over instances of the larger share. Tokens are those of prompts
//! without a first token, less what was expected to be cached. The cluster is saturated from 1 on.
//!
//! **Parameters** `detector` and its thresholds; `max-waiting` (requests): the most of all classes
//! together, and one per class, named like it: the most of the class; `ttl` (s); `fairness`;
//! `order` within a tenant: `fcfs`, or the earliest TTFT target of the class (`slo-deadline`).
//!
//! **Origin** llm-d's flow control with its `utilization-detector` and `concurrency-detector`
//! (llm-d-router ebab687, August 2026), with a priority band for each class. Limits in bytes and
//! the eviction of running requests are left out. Its `edf` order is `fcfs`, as all requests have
//! the same time to live.

use crate::prelude::*;
use blis_core::TenantId;
use std::collections::{BTreeMap, BTreeSet};

/// How `flow-control` introduces itself.
pub const SPEC: Spec<dyn Admission> = Spec {
    name: "flow-control",
    help: "Holds requests at the gateway while the cluster is saturated; releases them by class",
    params: &[
        Param::choice("detector", &["utilization", "requests", "tokens", "hybrid"])
            .help("What saturation is measured by"),
        Param::log("queue-threshold", 1.0..=1e9, 5.0, "requests")
            .help("Waiting requests at which an instance is saturated")
            .only_if("detector", &["utilization"]),
        Param::float("kv-threshold", 0.01..=1.0, 0.8, "of all blocks")
            .help("KV utilization at which an instance is saturated")
            .only_if("detector", &["utilization"]),
        Param::log("staleness", 0.001..=1e9, 200.0, "ms")
            .help("Age from which an instance's metrics count as saturated")
            .only_if("detector", &["utilization"]),
        Param::log("max-concurrency", 1.0..=1e9, 100.0, "requests")
            .help("Requests in flight at which an instance is saturated")
            .only_if("detector", &["requests", "hybrid"]),
        Param::log("max-tokens", 1.0..=1e12, 1e6, "tokens")
            .help("Prompt tokens in flight at which an instance is saturated")
            .only_if("detector", &["tokens", "hybrid"]),
        Param::int("max-waiting", 1..=1_000_000_000, 1_000_000_000, "requests")
            .help("Most requests that wait at the gateway"),
        most(SloClass::Critical, "Most critical requests that wait at the gateway"),
        most(SloClass::Standard, "Most standard requests that wait at the gateway"),
        most(SloClass::Sheddable, "Most sheddable requests that wait at the gateway"),
        most(SloClass::Batch, "Most batch requests that wait at the gateway"),
        most(SloClass::Background, "Most background requests that wait at the gateway"),
        Param::log("ttl", 0.001..=86_400.0, 60.0, "s").help("Longest wait at the gateway"),
        Param::choice("fairness", &["strict", "round-robin"])
            .help("Take the first of all tenants, or tenants in turn"),
        Param::choice("order", &["fcfs", "slo-deadline"])
            .help("Release by arrival, or by TTFT target"),
    ],
    needs: |values| {
        let polled = values.choice("detector") == "utilization";
        Needs { load: polled, kv: polled, ..Needs::NONE }
    },
    ..Spec::built_by(|values, cluster| Box::new(FlowControl::new(values, cluster)))
};

const fn most(class: SloClass, help: &'static str) -> Param {
    Param::int(class.name(), 1..=1_000_000_000, 5_000, "requests").help(help)
}

/// How full an instance is: the larger of waiting requests and KV utilization, each as a share of
/// its threshold.
pub(crate) fn fullness(view: &InstanceView, queue_threshold: f64, kv_threshold: f64) -> f64 {
    let queue = f64::from(view.queue_depth) / queue_threshold;
    queue.max(view.kv_utilization / kv_threshold)
}

/// How saturation is measured.
#[derive(Clone, Copy, Debug)]
enum Detector {
    Utilization { queue: f64, kv: f64, staleness: Span },
    Concurrency { requests: f64, tokens: f64 },
}

impl Detector {
    fn new(values: &Values) -> Detector {
        let counted = |kinds: &[&str], name: &str| {
            let counts = kinds.contains(&values.choice("detector"));
            if counts { values.float(name) } else { f64::INFINITY }
        };
        if values.choice("detector") == "utilization" {
            return Detector::Utilization {
                queue: values.float("queue-threshold"),
                kv: values.float("kv-threshold"),
                staleness: Span::from_secs_f64(values.float("staleness") / 1e3),
            };
        }
        Detector::Concurrency {
            requests: counted(&["requests", "hybrid"], "max-concurrency"),
            tokens: counted(&["tokens", "hybrid"], "max-tokens"),
        }
    }

    /// From 1 on nothing is released.
    fn saturation(self, cluster: &ClusterView<'_>) -> f64 {
        cluster.mean(|view| match self {
            Detector::Utilization { queue, kv, staleness } => {
                let polled = [view.as_of, view.kv_as_of];
                let stale = |at: &Time| *at + staleness < cluster.now;
                if polled.iter().flatten().any(stale) { 1.0 } else { fullness(view, queue, kv) }
            }
            Detector::Concurrency { requests, tokens } => {
                let share = f64::from(view.in_flight) / requests;
                share.max(math::float(view.unstarted_tokens) / tokens)
            }
        })
    }
}

/// The requests of a class that wait.
#[derive(Clone, Debug, Default)]
struct Band {
    most: usize,
    len: usize,
    /// By tenant, in the order in which they go; no tenant is without a request.
    flows: BTreeMap<usize, BTreeSet<(Time, RequestId)>>,
    /// Which tenant had a turn last.
    last: Option<usize>,
}

impl Band {
    fn remove(&mut self, waits: &Waits, request: RequestId) {
        let flow = self.flows.get_mut(&waits.tenant).expect("it waits");
        flow.remove(&(waits.due, request));
        if flow.is_empty() {
            self.flows.remove(&waits.tenant);
        }
        self.len -= 1;
        if self.len == 0 {
            self.last = None;
        }
    }

    /// Who goes next.
    fn next(&mut self, in_turn: bool) -> Option<RequestId> {
        let first = |(tenant, flow): (&usize, &BTreeSet<(Time, RequestId)>)| {
            flow.first().map(|&(due, request)| (due, request, *tenant))
        };
        let next = if in_turn {
            let behind = |last| self.flows.iter().find(|(tenant, _)| **tenant > last);
            self.last.and_then(behind).or_else(|| self.flows.iter().next()).and_then(first)
        } else {
            self.flows.iter().filter_map(first).min()
        };
        next.map(|(_, request, tenant)| {
            self.last = Some(tenant);
            request
        })
    }
}

/// A request that waits.
#[derive(Clone, Copy, Debug)]
struct Waits {
    class: usize,
    tenant: usize,
    due: Time,
    expires: Time,
}

/// Queues at the gateway.
#[derive(Clone, Debug)]
pub struct FlowControl {
    detector: Detector,
    most: usize,
    ttl: Span,
    in_turn: bool,
    /// What orders requests within a tenant, by class; `None`: when they came to wait.
    targets: Option<PerClass<Option<Span>>>,
    bands: PerClass<Band>,
    /// Tenants by the order in which they first came: their ids may be others in a replay.
    tenants: BTreeMap<TenantId, usize>,
    /// In the order in which they came to wait, which is that of their expiry.
    waiting: BTreeMap<RequestId, Waits>,
    held: u64,
    expired: u64,
}

impl FlowControl {
    fn new(values: &Values, cluster: &Cluster) -> FlowControl {
        let count = |name: &str| usize::try_from(values.int(name)).unwrap_or(usize::MAX);
        let band = |class: SloClass| Band { most: count(class.name()), ..Band::default() };
        FlowControl {
            detector: Detector::new(values),
            most: count("max-waiting"),
            ttl: Span::from_secs_f64(values.float("ttl")),
            in_turn: values.choice("fairness") == "round-robin",
            targets: (values.choice("order") == "slo-deadline").then_some(cluster.ttft_targets),
            bands: SloClass::ALL.map(band),
            tenants: BTreeMap::new(),
            waiting: BTreeMap::new(),
            held: 0,
            expired: 0,
        }
    }

    fn remove(&mut self, request: RequestId) {
        if let Some(waits) = self.waiting.remove(&request) {
            self.bands[waits.class].remove(&waits, request);
        }
    }
}

impl Admission for FlowControl {
    fn admit(
        &mut self,
        request: &RequestView<'_>,
        cluster: &ClusterView<'_>,
        _: &mut Dice,
    ) -> Verdict {
        let (class, known) = (request.class.index(), self.tenants.len());
        let tenant = *self.tenants.entry(request.tenant).or_insert(known);
        let band = &mut self.bands[class];
        if self.waiting.len() >= self.most || band.len >= band.most {
            return Verdict::Reject(SPEC.name);
        }
        if self.waiting.is_empty() && self.detector.saturation(cluster) < 1.0 {
            return Verdict::Admit;
        }
        let due = match self.targets {
            Some(targets) => targets[class].map_or(Time::NEVER, |target| request.arrival + target),
            None => cluster.now,
        };
        band.flows.entry(tenant).or_default().insert((due, request.id));
        band.len += 1;
        let expires = cluster.now + self.ttl;
        self.waiting.insert(request.id, Waits { class, tenant, due, expires });
        self.held += 1;
        Verdict::Wait
    }

    fn release(&mut self, cluster: &ClusterView<'_>) -> Option<(RequestId, Verdict)> {
        let (&first, waits) = self.waiting.first_key_value()?;
        if waits.expires <= cluster.now {
            self.expired += 1;
            self.remove(first);
            return Some((first, Verdict::Reject(SPEC.name)));
        }
        if self.detector.saturation(cluster) >= 1.0 {
            return None;
        }
        let next = self.bands.iter_mut().find_map(|band| band.next(self.in_turn))?;
        self.remove(next);
        Some((next, Verdict::Admit))
    }

    fn given_up(&mut self, request: RequestId) {
        self.remove(request);
    }

    fn firings(&self, firings: &mut Firings) {
        firings.add(SPEC.name, "held", self.held);
        firings.add(SPEC.name, "expired", self.expired);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::classes::values;
    use crate::view::examples::{NOTHING, cluster, dice, instances, request};

    fn gate(given: &[(&'static str, &'static str)]) -> FlowControl {
        let mut cluster = Cluster::SMALL;
        cluster.ttft_targets[SloClass::Critical.index()] = Some(Span::from_micros(5_000));
        FlowControl::new(&values(SPEC.params, given), &cluster)
    }

    fn saturation(given: &[(&'static str, &'static str)], views: &[InstanceView]) -> f64 {
        gate(given).detector.saturation(&ClusterView { now: ms(300), ..cluster(views) })
    }

    fn ms(ms: u64) -> Time {
        Time::from_nanos(ms * 1_000_000)
    }

    /// What becomes of request `id` of a class and a tenant at an instant, in ms.
    fn ask(
        gate: &mut FlowControl,
        (id, class, tenant): (u64, SloClass, u32),
        now: u64,
        views: &[InstanceView],
    ) -> Verdict {
        let tenant = TenantId(tenant);
        let request =
            RequestView { id: RequestId(id), arrival: ms(now), class, tenant, ..request(&NOTHING) };
        let view = ClusterView { now: ms(now), ..cluster(views) };
        gate.admit(&request, &view, &mut dice(0))
    }

    /// Everybody who is released by an idle cluster, in order.
    fn released(gate: &mut FlowControl, now: u64) -> Vec<u64> {
        let views = instances(&[0]);
        let view = ClusterView { now: ms(now), ..cluster(&views) };
        std::iter::from_fn(|| gate.release(&view)).map(|(request, _)| request.0).collect()
    }

    #[test]
    fn saturation_is_that_of_the_detectors_of_llm_d() {
        let view = |queue_depth, kv_utilization, in_flight, unstarted_tokens| InstanceView {
            queue_depth,
            in_flight,
            unstarted_tokens,
            kv_utilization,
            ..instances(&[0])[0]
        };
        let views = [view(3, 0.2, 60, 100), view(0, 0.64, 20, 900)];
        // max(3/5, 0.25) and 0.64/0.8.
        assert!((saturation(&[], &views) - 0.7).abs() < 1e-12);
        let requests = [("detector", "requests"), ("max-concurrency", "100")];
        assert!((saturation(&requests, &views) - 0.4).abs() < 1e-12, "80 of 200");
        let tokens = [("detector", "tokens"), ("max-tokens", "1000")];
        assert!((saturation(&tokens, &views) - 0.5).abs() < 1e-12, "1000 of 2000");
        let hybrid = [("detector", "hybrid"), requests[1], tokens[1]];
        assert!((saturation(&hybrid, &views) - 0.75).abs() < 1e-12, "0.6 and 0.9");
        let polled = |at: u64| [InstanceView { as_of: Some(ms(at)), ..views[0] }];
        assert!((saturation(&[], &polled(100)) - 0.6).abs() < 1e-12, "200 ms old");
        assert!((saturation(&[], &polled(99)) - 1.0).abs() < 1e-12, "older");
    }

    #[test]
    fn whoever_finds_a_saturated_cluster_waits_and_classes_go_by_importance() {
        let mut gate = gate(&[("detector", "requests"), ("max-concurrency", "10")]);
        let full = instances(&[10]);
        assert_eq!(ask(&mut gate, (0, SloClass::Batch, 0), 0, &instances(&[9])), Verdict::Admit);
        for (id, class) in [SloClass::Batch, SloClass::Standard, SloClass::Critical]
            .into_iter()
            .chain([SloClass::Standard])
            .enumerate()
        {
            assert_eq!(ask(&mut gate, (id as u64, class, 0), 0, &full), Verdict::Wait);
        }
        assert_eq!(gate.release(&cluster(&full)), None);
        // A newcomer does not overtake those who wait, but for its class.
        assert_eq!(ask(&mut gate, (4, SloClass::Critical, 0), 1, &instances(&[0])), Verdict::Wait);
        assert_eq!(released(&mut gate, 1), [2, 4, 1, 3, 0]);
    }

    #[test]
    fn strict_takes_the_first_of_all_tenants_and_round_robin_tenants_in_turn() {
        let order = |fairness| {
            let given = [("detector", "requests"), ("fairness", fairness)];
            let mut gate = gate(&given);
            for (id, tenant) in (0..).zip([7, 7, 7, 3, 5, 3]) {
                ask(&mut gate, (id, SloClass::Standard, tenant), id, &instances(&[100]));
            }
            released(&mut gate, 10)
        };
        assert_eq!(order("strict"), [0, 1, 2, 3, 4, 5]);
        assert_eq!(order("round-robin"), [0, 3, 4, 1, 5, 2], "tenants 7, 3, 5, 7, 3, 7");
    }

    #[test]
    fn an_order_by_target_lets_overdue_requests_go_first_and_those_without_a_target_last() {
        let mut gate = gate(&[("detector", "requests"), ("order", "slo-deadline")]);
        let full = instances(&[100]);
        for (id, class) in (0..).zip([SloClass::Standard, SloClass::Standard, SloClass::Critical]) {
            ask(&mut gate, (id, class, 0), id, &full);
        }
        assert_eq!(released(&mut gate, 5), [2, 0, 1]);
    }

    #[test]
    fn full_queues_and_expired_requests_are_turned_away_and_those_who_gave_up_are_forgotten() {
        let mut gate = gate(&[
            ("detector", "requests"),
            ("standard", "2"),
            ("max-waiting", "3"),
            ("ttl", "0.01"),
        ]);
        let full = instances(&[100]);
        let mut at = |id, class, now| ask(&mut gate, (id, class, 0), now, &full);
        let reject = Verdict::Reject("flow-control");
        assert_eq!(at(0, SloClass::Standard, 0), Verdict::Wait);
        assert_eq!(at(1, SloClass::Standard, 0), Verdict::Wait);
        assert_eq!(at(2, SloClass::Standard, 0), reject, "its class is full");
        assert_eq!(at(3, SloClass::Batch, 5), Verdict::Wait);
        assert_eq!(at(4, SloClass::Critical, 5), reject, "all are full");
        gate.given_up(RequestId(0));
        let view = ClusterView { now: ms(10), ..cluster(&full) };
        assert_eq!(gate.release(&view), Some((RequestId(1), reject)), "after 10 ms");
        assert_eq!(gate.release(&view), None);
        assert_eq!(released(&mut gate, 10), [3]);
    }
}
