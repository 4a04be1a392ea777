//! From facts to numbers: collects a run and reports it at its end.
//!
//! The simulator tells [`Summary`] every fact; the edge asks for the [`Report`]. What only needs to
//! be added up is added up as it happens; of each request that ran, one row is kept, because
//! percentiles need them all, until there are too many (`large.rs`). It must never look at anything
//! but facts.

mod curves;
mod decomposition;
mod large;
mod over_time;
mod saturation;
mod sections;
mod steady;
mod tally;

use crate::end::RunEnd;
use crate::fact::{Fact, Listener, Record, Stage, Status};
use crate::report::{Decomposition, Distributions, EngineTime, Latency, Report, Saturation};
use crate::sample::{Groups, WeightedSamples, float_sum};
use crate::slo::SloTargets;
use blis_core::math::float;
use blis_core::{InstanceId, RequestId, SloClass, Span, Time};
use large::{By, Large};
use saturation::Course;
use std::collections::BTreeMap;
use std::ops::Range;
use tally::{CacheTally, StepTally, Tally};

/// Stands for "never" where a time or span is kept as plain nanoseconds.
const NEVER: u64 = u64::MAX;
const CLASSES: usize = SloClass::ALL.len();

/// Listens to a run and reports its numbers.
///
/// Costs 80 bytes for each request that ran and 24 for each that arrived, up to 500,000 of them,
/// plus the distinct inter-token gaps.
#[derive(Debug, Default)]
pub struct Summary {
    targets: SloTargets,
    rows: Vec<Row>,
    /// Inter-token gaps in ns, by instance and class.
    gaps: WeightedSamples<CLASSES>,
    /// Whether several tokens of a request were handed out at once.
    drafts: bool,
    cluster: Tally,
    classes: [Tally; CLASSES],
    tenants: Vec<Tally>,
    instances: Vec<Instance>,
    cache: CacheTally,
    /// Arrival of each request that is kept, by id, in ns.
    arrivals: Vec<u64>,
    /// Requests that have arrived, and when the last of them did, in ns.
    arrived: u64,
    last_arrival: u64,
    /// The last arrival that was no later round of a session, in ns.
    last_opening: u64,
    /// Arrival to first scheduling of each request that is kept, or to its being turned away, by
    /// id, in ns.
    delays: Vec<u64>,
    /// When requests left, in ns, and how many did.
    closings: Vec<u64>,
    closed: u64,
    /// The most requests of which all rows are kept, if not the usual number; for tests.
    most_rows: Option<usize>,
    /// What is kept of requests instead of all rows, if those are too many.
    large: Option<Box<Large>>,
    /// Sum of the times between arrival and close, in ns.
    time_in_system: u128,
    /// Whether the distributions of latencies are reported.
    curves: bool,
    /// Requests that arrived before are not counted.
    from: Time,
    /// The pools, if there are several.
    pools: Vec<Pool>,
}

/// A pool of instances.
#[derive(Clone, Debug, Default)]
struct Pool {
    name: String,
    members: Range<usize>,
    requests: Tally,
}

/// What percentiles need of a request that was scheduled. Spans are in ns.
#[derive(Clone, Copy, Debug)]
struct Row {
    e2e: u64,
    /// The parts of its time to first token, in the order of a request's life.
    split: [u64; 6],
    request: u32,
    tenant: u32,
    instance: u32,
    output_tokens: u32,
    class: SloClass,
    first_token: bool,
    /// Whether it arrived when requests were counted.
    counts: bool,
}

#[derive(Clone, Debug, Default)]
struct Instance {
    requests: Tally,
    steps: StepTally,
    sent: u64,
}

/// The latencies of a group of requests.
#[derive(Clone, Copy, Debug, Default)]
struct Latencies {
    ttft: Latency,
    e2e: Latency,
    delay: Latency,
}

impl Summary {
    /// A listener that judges requests by `targets`.
    pub fn new(targets: SloTargets) -> Summary {
        Summary { targets, ..Summary::default() }
    }

    /// The same, but counts only requests that arrive at `from` or later, and rates are per second
    /// after it. What has no requests (steps, blocks, saturation) is that of the whole run.
    #[must_use]
    pub fn counting_from(self, from: Time) -> Summary {
        Summary { from, ..self }
    }

    /// The same, but reports the distributions of latencies as well.
    #[must_use]
    pub fn with_curves(self) -> Summary {
        Summary { curves: true, ..self }
    }

    /// The same, of a cluster whose instances are in these pools: names and numbers of instances.
    /// The first ids are those of the first pool.
    #[must_use]
    pub fn by_pool(self, pools: Vec<(String, usize)>) -> Summary {
        if pools.len() < 2 {
            return self;
        }
        let mut next = 0;
        let pool = |(name, size)| {
            let members = next..next + size;
            next = members.end;
            Pool { name, members, requests: Tally::default() }
        };
        Summary { pools: pools.into_iter().map(pool).collect(), ..self }
    }

    /// The numbers of the run that ended so.
    pub fn finish(mut self, end: &RunEnd) -> Report {
        let instances = self.instances.len().max(end.instances as usize);
        self.instances.resize_with(instances, Instance::default);
        let whole = end.ended_at.since(Time::ZERO);
        let elapsed = end.ended_at.saturating_since(self.from);
        saturation::sort_runs(&mut self.closings);
        let steady = self.steady();
        let over_time = if self.curves { self.over_time() } else { None };
        // What was needed only for that: all rows, those before the warm-up first.
        self.rows.retain(|row| row.counts);
        let cluster_latencies = self.latencies(1, By::Cluster)[0];
        let itl = self.per_token(self.gaps.all().latency(), &self.cluster);
        let cluster = self.cluster.section(&cluster_latencies, itl, elapsed);
        let by_class = Groups::of(&self.rows, CLASSES, |row| row.class.index());
        let classes = self.class_sections(&cluster, elapsed);
        let split = decomposition::split_of(&self.rows, 0..self.rows.len());
        let split = self.whole_split(split, None, &cluster.ttft);
        let ran = !self.rows.is_empty();
        let instances = self.instance_sections(elapsed, whole);
        let (arrivals, every) = (self.arrival_period(), self.every());
        let course = Course::new(arrivals, &self.delays, &self.closings, every);
        let load = course.judge().filter(|_| ran);
        let overloaded_from = (load == Some(Saturation::Overloaded))
            .then(|| course.overloaded_from(instances.len()))
            .flatten();
        Report {
            tenants: self.tenant_sections(&cluster_latencies, elapsed),
            engine_time: EngineTime::mean(&instances),
            pools: self.pool_sections(&instances, elapsed),
            instances,
            kv: self.kv_section(),
            routing: self.routing_section(),
            decomposition: Decomposition {
                classes: self.class_splits(&by_class, &classes, split),
                cluster: split,
            },
            classes,
            jain_fairness: self.fairness(),
            saturation: load,
            overloaded_from_s: overloaded_from.map(|at| Span::from_nanos(at).as_secs_f64()),
            mean_in_system: per(float_sum(self.time_in_system), float(whole.as_nanos())),
            offered_per_sec: self.offered(),
            large: self.large.is_some(),
            mechanisms: BTreeMap::new(),
            duration_s: whole.as_secs_f64(),
            steady,
            curves: self
                .curves
                .then(|| Distributions { over_time, ..self.distributions(&by_class) }),
            cluster,
        }
    }

    fn instance(&mut self, instance: InstanceId) -> &mut Instance {
        at_index(&mut self.instances, instance.index())
    }

    fn scheduled(&mut self, at: Time, request: RequestId) {
        if let Some(open) = self.large.as_mut().and_then(|large| large.open(request))
            && open.delay == NEVER
        {
            open.delay = at.as_nanos().saturating_sub(open.arrival);
        }
        let Some(place) = self.place(request) else { return };
        if let (Some(delay), Some(arrival)) = (self.delays.get_mut(place), self.arrivals.get(place))
            && *delay == NEVER
        {
            *delay = at.as_nanos().saturating_sub(*arrival);
        }
    }

    fn closed(&mut self, at: Time, status: Status, record: &Record<'_>) {
        let attained = match (status, record.ttft, record.e2e) {
            (Status::Finished, Some(ttft), Some(e2e)) => {
                let in_time = record.deadline.is_none_or(|deadline| e2e <= deadline);
                in_time && self.targets.of(record.class).attained(ttft, e2e, record.output_tokens)
            }
            _ => false,
        };
        let promised = record.deadline.is_some() || !self.targets.of(record.class).is_empty();
        let attained = promised.then_some(attained);
        if self.closed.is_multiple_of(self.every()) {
            self.closings.push(at.as_nanos());
        }
        self.closed += 1;
        self.time_in_system += u128::from(at.saturating_since(record.arrival).as_nanos());
        let counts = record.arrival >= self.from;
        if counts {
            self.cluster.close(status, record, attained);
            self.classes[record.class.index()].close(status, record, attained);
            at_index(&mut self.tenants, record.tenant.0 as usize).close(status, record, attained);
            if let Some(instance) = record.instance {
                self.instance(instance).requests.close(status, record, attained);
                let index = instance.index();
                if let Some(pool) = self.pools.iter_mut().find(|p| p.members.contains(&index)) {
                    pool.requests.close(status, record, attained);
                }
            }
            self.cache.close(record);
        }
        let place = self.place(record.request);
        let waited = place.and_then(|place| self.delays.get_mut(place));
        let delay = match &mut self.large {
            Some(large) => large.close(record.request),
            None => waited.as_deref().copied().unwrap_or(NEVER),
        };
        // Whoever gives up after having been scheduled has waited no longer than that.
        let gone =
            matches!(status, Status::Rejected(_) | Status::Unservable | Status::Abandoned(_));
        if let Some(waited) = waited.filter(|waited| gone && **waited == NEVER) {
            *waited = at.saturating_since(record.arrival).as_nanos();
        }
        if let (Status::Abandoned(Stage::Waiting | Stage::Loading), Some(instance)) =
            (status, record.instance)
        {
            self.instance(instance).steps.left(at);
        }
        let (Some(instance), true) = (record.instance, delay != NEVER) else { return };
        let row = Row {
            e2e: record.e2e.map_or(NEVER, Span::as_nanos),
            split: record.split.parts().map(|(_, span)| span.as_nanos()),
            request: u32::try_from(record.request.0).expect("rows of so many do not fit memory"),
            tenant: record.tenant.0,
            instance: instance.0,
            output_tokens: record.output_tokens,
            class: record.class,
            first_token: record.ttft.is_some(),
            counts,
        };
        if self.large.is_some() {
            self.count_row(&row, delay);
        }
        if place.is_some() {
            self.rows.push(row);
        }
    }
}

impl Listener for Summary {
    fn wants_details(&self) -> bool {
        false
    }

    fn hear(&mut self, at: Time, fact: &Fact<'_>) {
        match *fact {
            Fact::Arrived { round, .. } => {
                self.keep_few();
                let arrival = at.as_nanos();
                if self.arrived.is_multiple_of(self.every()) {
                    self.arrivals.push(arrival);
                    self.delays.push(NEVER);
                }
                if round == 0 {
                    self.last_opening = arrival;
                }
                if let Some(large) = &mut self.large {
                    large.arrive(arrival);
                }
                (self.arrived, self.last_arrival) = (self.arrived + 1, arrival);
            }
            Fact::Routed { request, instance, .. } => {
                let arrival = match &mut self.large {
                    Some(large) => large.open(request).map(|open| open.arrival),
                    None => self.arrivals.get(dense(request)).copied(),
                };
                let counts = arrival.is_none_or(|arrival| arrival >= self.from.as_nanos());
                self.instance(instance).sent += u64::from(counts);
            }
            Fact::Enqueued { instance, .. } => self.instance(instance).steps.joined(at),
            Fact::Scheduled { request, instance, .. } => {
                self.scheduled(at, request);
                self.instance(instance).steps.left(at);
            }
            Fact::Preempted { instance, lost_tokens, ended, .. } => {
                self.cache.lost_tokens += u64::from(lost_tokens);
                if !ended {
                    self.instance(instance).steps.joined(at);
                }
            }
            Fact::Evicted { instance, blocks } => {
                self.instance(instance).steps.evicted_blocks += u64::from(blocks);
            }
            Fact::Steps { instance, .. } => self.instance(instance).steps.ran(fact),
            Fact::Tokens { instance, class, early, gap, count, tokens } => {
                self.drafts |= tokens > count;
                if !early {
                    self.gaps.push(gap.as_nanos(), count, instance.0, class.index());
                }
                // The instance is known even if no request was heard to be sent there.
                self.instance(instance);
            }
            Fact::Offloaded { instance, .. }
            | Fact::Reloading { instance, .. }
            | Fact::Stalled { instance, .. } => {
                self.instance(instance).steps.tier.hear(fact);
            }
            Fact::Closed { status, ref record } => self.closed(at, status, record),
            // A request that waits for its blocks has not left the queue until it is scheduled.
            Fact::Admitted { .. }
            | Fact::Considered { .. }
            | Fact::Formed { .. }
            | Fact::FirstToken { .. }
            | Fact::Overran { .. }
            | Fact::Offloading { .. }
            | Fact::Sample { .. }
            | Fact::Dropped { .. }
            | Fact::Reloaded { .. }
            | Fact::Unloaded { .. } => {}
        }
    }
}

impl Row {
    /// Time to first token in ns; only of a row that has one.
    fn ttft(&self) -> u64 {
        self.split.iter().sum()
    }
}

impl Latencies {
    /// Those of `rows`; `delays` are those of all requests, by id.
    fn of<'a>(rows: impl Iterator<Item = &'a Row>, delays: &[u64]) -> Latencies {
        let room = rows.size_hint().0;
        let [mut ttft, mut e2e, mut delay] = [(); 3].map(|()| Vec::with_capacity(room));
        for row in rows {
            if row.first_token {
                ttft.push(row.ttft());
            }
            if row.e2e != NEVER {
                e2e.push(row.e2e);
            }
            delay.push(delays[row.request as usize]);
        }
        Latencies {
            ttft: Latency::of_nanos(&ttft),
            e2e: Latency::of_nanos(&e2e),
            delay: Latency::of_nanos(&delay),
        }
    }
}

/// A share; absent if there is nothing to share.
fn per(part: f64, whole: f64) -> Option<f64> {
    (whole > 0.0).then(|| part / whole)
}

/// Jain's index (sum x)^2 / (n sum x^2); absent if all are zero.
fn jain(shares: impl Iterator<Item = f64> + Clone) -> Option<f64> {
    let n = float(shares.clone().count() as u64);
    let sum: f64 = shares.clone().sum();
    per(sum * sum, n * shares.map(|x| x * x).sum::<f64>())
}

/// The entry at `index` of a table over dense ids, which grows as ids are seen.
fn at_index<T: Default>(table: &mut Vec<T>, index: usize) -> &mut T {
    if table.len() <= index {
        table.resize_with(index + 1, T::default);
    }
    &mut table[index]
}

fn dense(request: RequestId) -> usize {
    dense_count(request.0)
}

fn dense_count(count: u64) -> usize {
    usize::try_from(count).unwrap_or(usize::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_row_stays_small() {
        assert!(size_of::<Row>() <= 80, "{} bytes", size_of::<Row>());
    }
}
