//! What is kept of a run with too many requests to keep a row of each.
//!
//! Up to 500,000 requests everything is exact. Beyond that, latencies are counted in buckets: their
//! percentiles are within 0.1 %, while means, maxima and counts stay exact. Rows are kept of every
//! 16th request, later of every 32nd and so on, for what is judged by the course of the run.

use super::tally::Tally;
use super::{Latencies, NEVER, Row, Summary, decomposition, dense_count};
use crate::report::{Latency, SplitStats};
use crate::sample::{Distribution, Groups, bucket_of, float_sum, middle_of};
use blis_core::math::float;
use blis_core::{RequestId, SloClass, Span};
use std::collections::VecDeque;

/// Requests up to which all rows are kept.
const MOST_ROWS: usize = 500_000;
/// Of every so many requests one is kept after that.
const FIRST_EVERY: u64 = 16;
/// Buckets split every power of two into `1 << FINE_BITS`: half a bucket is at most 0.1 %.
const FINE_BITS: u32 = 9;
/// Values that are written down before equal ones are counted together.
const UNSORTED: usize = 1 << 16;

/// Time to first token, time to the last, and time until scheduled, where a request has them.
type Measures<T> = [T; 3];

/// What a group of requests has in common.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum By {
    Cluster,
    Class,
    Tenant,
    Instance,
    Pool,
}

/// The counts.
#[derive(Debug, Default)]
pub(super) struct Large {
    /// Rows are kept of every so many requests.
    every: u64,
    /// All requests that came before there were too many, and the others that have not ended: in
    /// order of arrival, with some among them that have.
    early: Vec<Open>,
    open: VecDeque<Open>,
    /// Requests that have ended and are not in `open` any more.
    gone: usize,
    by_instance: Measures<Histogram>,
    /// `None` as long as there is one tenant.
    by_tenant: Option<Measures<Histogram>>,
    /// Requests with a first token by class, and the sums of the parts of their times to it.
    splits: [(u64, [u128; 6]); SloClass::ALL.len()],
}

/// A request that has arrived, in ns.
#[derive(Clone, Copy, Debug)]
pub(super) struct Open {
    /// When; `NEVER` if it has ended.
    pub(super) arrival: u64,
    /// Until it was first scheduled; `NEVER` if it was not.
    pub(super) delay: u64,
}

/// How often values occurred, by group and class.
#[derive(Clone, Debug, Default)]
struct Histogram {
    bins: Vec<Bin>,
    sorted: usize,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Bin {
    group: u32,
    bucket: u16,
    class: u8,
    count: u32,
}

/// The exact sum of values, their number, and the greatest.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Moments {
    sum: u128,
    count: u64,
    max: u64,
}

impl Summary {
    /// Rows are kept of every so many requests.
    pub(super) fn every(&self) -> u64 {
        self.large.as_ref().map_or(1, |large| large.every)
    }

    /// Where a request is among those that are kept, if it is.
    pub(super) fn place(&self, request: RequestId) -> Option<usize> {
        let every = self.every();
        (every == 1 || request.0.is_multiple_of(every)).then(|| dense_count(request.0 / every))
    }

    /// Where the request of a row is.
    pub(super) fn row_place(&self, row: &Row) -> usize {
        dense_count(u64::from(row.request) / self.every())
    }

    /// Requests per second from the first arrival to the last.
    pub(super) fn offered(&self) -> Option<f64> {
        let first = self.arrivals.first()?;
        let seconds = Span::from_nanos(self.last_arrival - first).as_secs_f64();
        super::per(float(self.arrived - 1), seconds)
    }

    /// Makes sure that there is room for another request.
    pub(super) fn keep_few(&mut self) {
        let most = self.most_rows.unwrap_or(MOST_ROWS);
        let most = if self.large.is_none() { most } else { most / 8 };
        if self.arrivals.len() < most {
            return;
        }
        let factor = if self.large.is_none() { FIRST_EVERY } else { 2 };
        if self.large.is_none() {
            let both = self.arrivals.iter().zip(&self.delays);
            let early = both.map(|(&arrival, &delay)| Open { arrival, delay }).collect();
            self.large = Some(Box::new(Large { every: 1, early, ..Large::default() }));
            for row in std::mem::take(&mut self.rows) {
                self.count_row(&row, self.delays[row.request as usize]);
                if u64::from(row.request).is_multiple_of(factor) {
                    self.rows.push(row);
                }
            }
        }
        let every = self.every() * factor;
        self.rows.retain(|row| u64::from(row.request).is_multiple_of(every));
        for list in [&mut self.arrivals, &mut self.delays, &mut self.closings] {
            let mut place = 0..;
            list.retain(|_| place.next().is_some_and(|place: u64| place.is_multiple_of(factor)));
            list.shrink_to_fit();
        }
        if let Some(large) = &mut self.large {
            large.every = every;
        }
    }

    /// Counts a request that has ended.
    pub(super) fn count_row(&mut self, row: &Row, delay: u64) {
        let Some(large) = self.large.as_mut().filter(|_| row.counts) else { return };
        let ttft = row.first_token.then(|| row.ttft());
        let measures = [ttft, Some(row.e2e).filter(|&e2e| e2e != NEVER), Some(delay)];
        large.count(row, measures);
        let instance = row.instance as usize;
        let pool = self.pools.iter_mut().find(|pool| pool.members.contains(&instance));
        let groups = [
            &mut self.cluster,
            &mut self.classes[row.class.index()],
            &mut self.tenants[row.tenant as usize],
            &mut self.instances[instance].requests,
        ];
        for group in groups.into_iter().chain(pool.map(|pool| &mut pool.requests)) {
            for (moments, value) in group.moments.iter_mut().zip(measures) {
                if let Some(value) = value {
                    moments.add(value);
                }
            }
        }
    }

    /// The latencies of each of `groups` groups by the counts.
    pub(super) fn counted_latencies(&self, large: &Large, groups: usize, by: By) -> Vec<Latencies> {
        let (histograms, one_tenant) = match (by, &large.by_tenant) {
            (By::Tenant, Some(by_tenant)) => (by_tenant, false),
            _ => (&large.by_instance, true),
        };
        let group = |bin: &Bin| match by {
            By::Cluster => 0,
            By::Class => usize::from(bin.class),
            By::Tenant if one_tenant => 0,
            By::Tenant | By::Instance => bin.group as usize,
            By::Pool => self.home(bin.group as usize),
        };
        let tally = |group: usize| match by {
            By::Cluster => &self.cluster,
            By::Class => &self.classes[group],
            By::Tenant => &self.tenants[group],
            By::Instance => &self.instances[group].requests,
            By::Pool => &self.pools[group].requests,
        };
        let counted = histograms.each_ref().map(|histogram| histogram.latencies(groups, group));
        let latencies = |group: usize| {
            let Tally { moments, .. } = tally(group);
            let [ttft, e2e, delay] = [0, 1, 2].map(|at| moments[at].correct(counted[at][group]));
            Latencies { ttft, e2e, delay }
        };
        (0..groups).map(latencies).collect()
    }

    /// The split of the rows that are kept, made one of all requests, or of all of a class, whose
    /// times to first token are `ttft`.
    pub(super) fn whole_split(
        &self,
        split: Option<SplitStats>,
        class: Option<SloClass>,
        ttft: &Latency,
    ) -> Option<SplitStats> {
        let Some(large) = &self.large else { return split };
        let SplitStats { p99, .. } = split?;
        let (mut count, mut sums) = (0, [0; 6]);
        let wanted = |index: &usize| class.is_none_or(|class| class.index() == *index);
        for index in (0..large.splits.len()).filter(wanted) {
            let (requests, parts) = &large.splits[index];
            count += requests;
            sums = [0, 1, 2, 3, 4, 5].map(|part| sums[part] + parts[part]);
        }
        let scale = super::per(ttft.p99_ms?, p99.total()).unwrap_or(1.0);
        let p99 = decomposition::of_parts(p99.parts().map(|(_, ms)| ms * scale));
        Some(SplitStats { mean: decomposition::mean_of(sums, count), p99 })
    }
}

impl Large {
    pub(super) fn arrive(&mut self, arrival: u64) {
        self.open.push_back(Open { arrival, delay: NEVER });
    }

    /// A request that has not ended.
    pub(super) fn open(&mut self, request: RequestId) -> Option<&mut Open> {
        let id = dense_count(request.0);
        match id.checked_sub(self.early.len()) {
            None => self.early.get_mut(id),
            Some(late) => self.open.get_mut(late.checked_sub(self.gone)?),
        }
    }

    /// A request has ended; returns how long it had waited.
    pub(super) fn close(&mut self, request: RequestId) -> u64 {
        let Some(open) = self.open(request) else { return NEVER };
        open.arrival = NEVER;
        let delay = open.delay;
        while self.open.pop_front_if(|open| open.arrival == NEVER).is_some() {
            self.gone += 1;
        }
        delay
    }

    fn count(&mut self, row: &Row, measures: Measures<Option<u64>>) {
        let class = row.class.index();
        if row.first_token {
            let (count, sums) = &mut self.splits[class];
            *count += 1;
            for (sum, part) in sums.iter_mut().zip(row.split) {
                *sum += u128::from(part);
            }
        }
        if row.tenant != 0 && self.by_tenant.is_none() {
            self.by_tenant = Some(self.by_instance.each_ref().map(Histogram::of_one_group));
        }
        let histograms = self.by_instance.iter_mut().zip(measures).map(|both| (both, row.instance));
        let by_tenant = self.by_tenant.iter_mut().flatten().zip(measures);
        for ((histogram, value), group) in
            histograms.chain(by_tenant.map(|both| (both, row.tenant)))
        {
            if let Some(value) = value {
                histogram.add(group, class, value);
            }
        }
    }
}

impl Histogram {
    fn add(&mut self, group: u32, class: usize, value: u64) {
        let bucket = u16::try_from(bucket_of(value, FINE_BITS)).expect("there are 28,672 buckets");
        let class = u8::try_from(class).expect("there are few classes");
        self.bins.push(Bin { group, bucket, class, count: 1 });
        if self.bins.len() >= self.sorted + UNSORTED {
            self.compact();
        }
    }

    /// Counts equal values together.
    fn compact(&mut self) {
        // Sorted before but for the end, of which only the stable sort makes use.
        self.bins.sort_by_key(Bin::place);
        self.bins.dedup_by(|next, kept| {
            let sum = kept.count.checked_add(next.count).filter(|_| kept.place() == next.place());
            kept.count = sum.unwrap_or(kept.count);
            sum.is_some()
        });
        self.sorted = self.bins.len();
        self.bins.reserve_exact(UNSORTED);
    }

    /// The same values, all of one group and class.
    fn of_one_group(&self) -> Histogram {
        let one = |bin: &Bin| Bin { group: 0, class: 0, ..*bin };
        let mut histogram = Histogram { bins: self.bins.iter().map(one).collect(), sorted: 0 };
        histogram.compact();
        histogram
    }

    /// The latency of each of `groups` groups, where `group` says to which a bin belongs.
    fn latencies(&self, groups: usize, group: impl Fn(&Bin) -> usize) -> Vec<Latency> {
        let members = Groups::of(&self.bins, groups, group);
        let latency = |group| {
            let bins = members.members(group).map(|index| &self.bins[index]);
            let value = |bin: &Bin| middle_of(bin.bucket.into(), FINE_BITS);
            Distribution::new(bins.map(|bin| (value(bin), u64::from(bin.count)))).latency()
        };
        (0..groups).map(latency).collect()
    }
}

impl Bin {
    fn place(&self) -> (u32, u16, u8) {
        (self.group, self.bucket, self.class)
    }
}

impl Moments {
    fn add(&mut self, value: u64) {
        self.sum += u128::from(value);
        self.count += 1;
        self.max = self.max.max(value);
    }

    /// A latency with the exact mean and maximum.
    fn correct(&self, counted: Latency) -> Latency {
        if self.count == 0 {
            return counted;
        }
        let max = float(self.max) / 1e6;
        let Latency { samples, p50_ms, p90_ms, p95_ms, p99_ms, .. } = counted;
        let [p50_ms, p90_ms, p95_ms, p99_ms] =
            [p50_ms, p90_ms, p95_ms, p99_ms].map(|ms| ms.map(|ms| ms.min(max)));
        let mean_ms = Some(float_sum(self.sum) / float(self.count) / 1e6);
        Latency { samples, mean_ms, p50_ms, p90_ms, p95_ms, p99_ms, max_ms: Some(max) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::end::{End, RunEnd};
    use crate::fact::{Fact, Listener, Record, Status};
    use crate::record::TtftSplit;
    use crate::report::Report;
    use blis_core::random::Purpose;
    use blis_core::{Dice, InstanceId, TenantId, Time};

    /// The report of 40,000 requests, one a millisecond, that keeps at most so many rows.
    fn report(most_rows: usize) -> Report {
        let pools = vec![("a".to_owned(), 3), ("b".to_owned(), 2)];
        let mut summary = Summary::default().by_pool(pools).counting_from(Time::from_micros(9_000));
        summary.most_rows = Some(most_rows);
        for id in 0..40_000_u32 {
            let mut dice = Dice::new(3, Purpose::Sampling, id.into());
            let mut span = |mean: f64| Span::from_nanos_f64(mean * dice.exponential());
            let [queue, prefill, decode] = [span(2e6), span(3e7), span(1e9)];
            let (request, instance) = (RequestId(id.into()), InstanceId(id % 7 % 5));
            let class = SloClass::ALL[id as usize % 2];
            let arrival = Time::from_micros(1_000 * u64::from(id));
            let record = Record {
                request,
                name: None,
                arrival,
                class,
                tenant: TenantId(id / 30_000),
                session: None,
                round: 0,
                deadline: None,
                patience: None,
                instance: Some(instance),
                input_tokens: 10,
                output_tokens: 10,
                cached_tokens: Some(0),
                expected_cached_tokens: None,
                preemptions: 0,
                ttft: Some(queue + prefill),
                e2e: Some(queue + prefill + decode),
                split: TtftSplit { queue, prefill, ..TtftSplit::default() },
            };
            let arrived = Fact::Arrived { request, class, input_tokens: 10, round: 0 };
            let (cached_tokens, total_tokens) = (0, 10);
            let scheduled = Fact::Scheduled { request, instance, cached_tokens, total_tokens };
            let closed = Fact::Closed { status: Status::Finished, record };
            summary.hear(arrival, &arrived);
            summary.hear(arrival + queue, &scheduled);
            summary.hear(arrival + queue + prefill + decode, &closed);
        }
        let ended_at = Time::from_micros(60_000_000);
        summary.finish(&RunEnd { ended_at, end: End::Drained, instances: 5 })
    }

    #[test]
    fn percentiles_of_counted_latencies_are_within_a_thousandth_and_the_rest_is_exact() {
        let (exact, counted) = (report(usize::MAX), report(1_000));
        assert!(counted.large && !exact.large);
        let all = |report: &Report| -> Vec<Latency> {
            let classes = report.classes.iter().map(|(_, section)| section);
            let tenants = report.tenants.iter().map(|(_, section)| section);
            let instances = report.instances.iter().map(|one| &one.requests);
            let pools = report.pools.iter().map(|one| &one.requests);
            let groups = classes.chain(tenants).chain(instances).chain(pools);
            let latencies = [&report.cluster].into_iter().chain(groups);
            latencies.flat_map(|one| [one.ttft, one.e2e, one.scheduling_delay]).collect()
        };
        let (exact_all, counted_all) = (all(&exact), all(&counted));
        assert_eq!(exact_all.len(), 3 * (1 + 2 + 2 + 5 + 2));
        for (exact, counted) in exact_all.into_iter().zip(counted_all) {
            let same = |one: &Latency| (one.samples, one.mean_ms, one.max_ms);
            assert_eq!(same(&exact), same(&counted));
            let percentiles = |one: &Latency| [one.p50_ms, one.p90_ms, one.p95_ms, one.p99_ms];
            for (exact, counted) in percentiles(&exact).into_iter().zip(percentiles(&counted)) {
                let (exact, counted) = (exact.unwrap(), counted.unwrap());
                assert!((counted / exact - 1.0).abs() <= 0.001, "{counted} for {exact}");
            }
        }
        let [exact_split, split] = [&exact, &counted].map(|one| one.decomposition.cluster.unwrap());
        assert_eq!(exact_split.mean, split.mean);
        assert!((split.p99.total() - counted.cluster.ttft.p99_ms.unwrap()).abs() < 1e-9);
        assert_eq!(exact.saturation, counted.saturation);
        assert_eq!(exact.offered_per_sec, counted.offered_per_sec);
        let steady = [&exact, &counted].map(|one| one.steady.responses_per_sec.unwrap());
        assert!((steady[1] / steady[0] - 1.0).abs() < 0.1, "{steady:?}");
    }
}
