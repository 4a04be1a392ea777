//! Exact statistics of whole-number samples: mean, maximum, percentiles by linear interpolation.
//!
//! The summary collects samples during the run and asks at its end. Nothing here is approximate
//! and nothing is sorted as a whole: a percentile needs one or two order statistics, and those are
//! found by counting samples into buckets that are fine enough for only a few to be looked at.

use crate::report::Latency;
use blis_core::math::{count, float};
use blis_core::random::mix;
use hashbrown::HashTable;

/// With fewer samples than this, sorting beats counting.
const FEW: usize = 512;
/// Buckets split every power of two into `1 << BUCKET_BITS`.
const BUCKET_BITS: u32 = 6;
const BUCKETS: usize = 64 << BUCKET_BITS;
/// Weighted samples are not compacted before there are this many entries: 4 MiB with 5 columns.
const COMPACT_FROM: usize = 1 << 17;
/// 0, 1, ..., 100.
const EVERY_PERCENT: [f64; 101] = every_percent();

const fn every_percent() -> [f64; 101] {
    let mut percents = [0.0; 101];
    let mut index = 1;
    while index < percents.len() {
        percents[index] = percents[index - 1] + 1.0;
        index += 1;
    }
    percents
}

/// Samples that come many at a time, for statistics over all of them, by tag and by column.
///
/// An entry is a value, a tag, and how often the value occurred in each of `COLUMNS` columns: a
/// step of an instance (the tag) gives the same inter-token gap to requests of several classes
/// (the columns). Equal entries are merged from time to time, so that memory is bounded by the
/// number of distinct (value, tag) pairs, not by the length of the run.
#[derive(Clone, Debug)]
pub(crate) struct WeightedSamples<const COLUMNS: usize> {
    entries: Vec<Entry<COLUMNS>>,
    compact_at: usize,
    compact_from: usize,
}

#[derive(Clone, Copy, Debug)]
struct Entry<const COLUMNS: usize> {
    value: u64,
    tag: u32,
    counts: [u32; COLUMNS],
}

impl<const COLUMNS: usize> Default for WeightedSamples<COLUMNS> {
    fn default() -> WeightedSamples<COLUMNS> {
        WeightedSamples::compacting_from(COMPACT_FROM)
    }
}

impl<const COLUMNS: usize> WeightedSamples<COLUMNS> {
    fn compacting_from(compact_from: usize) -> WeightedSamples<COLUMNS> {
        WeightedSamples { entries: Vec::new(), compact_at: compact_from, compact_from }
    }

    /// Adds `count` samples of `value` with `tag` to `column`.
    ///
    /// # Panics
    /// If there is no such column.
    pub(crate) fn push(&mut self, value: u64, count: u64, tag: u32, column: usize) {
        let mut rest = count;
        while rest > 0 {
            let part = u32::try_from(rest).unwrap_or(u32::MAX);
            rest -= u64::from(part);
            // The columns of one step come one after the other.
            if let Some(last) = self.entries.last_mut()
                && (last.value, last.tag) == (value, tag)
                && let Some(sum) = last.counts[column].checked_add(part)
            {
                last.counts[column] = sum;
                continue;
            }
            let mut counts = [0; COLUMNS];
            counts[column] = part;
            self.entries.push(Entry { value, tag, counts });
        }
        if self.entries.len() >= self.compact_at {
            self.compact();
        }
    }

    /// All samples.
    pub(crate) fn all(&self) -> Distribution<impl Weighted + use<'_, COLUMNS>> {
        Distribution::new(self.entries.iter().map(|entry| (entry.value, entry.weight())))
    }

    /// The samples of one column.
    pub(crate) fn column(&self, column: usize) -> Distribution<impl Weighted + use<'_, COLUMNS>> {
        let one = move |entry: &Entry<COLUMNS>| (entry.value, u64::from(entry.counts[column]));
        Distribution::new(self.entries.iter().map(one))
    }

    /// The latency of each of `groups` groups, where `group` says to which a tag belongs.
    ///
    /// # Panics
    /// If a sample belongs to none of them.
    pub(crate) fn latency_by_tag(
        &self,
        groups: usize,
        group: impl Fn(usize) -> usize,
    ) -> Vec<Latency> {
        let members = Groups::of(&self.entries, groups, |entry| group(entry.tag as usize));
        (0..groups)
            .map(|group| {
                let entries = members.members(group).map(|index| &self.entries[index]);
                Distribution::new(entries.map(|entry| (entry.value, entry.weight()))).latency()
            })
            .collect()
    }

    fn compact(&mut self) {
        // Where entries are kept, by a hash: sorting them takes ten times as long.
        let mut places: HashTable<usize> = HashTable::new();
        let mut kept = 0;
        for at in 0..self.entries.len() {
            let next = self.entries[at];
            if places.find(next.hash(), |&place| self.entries[place].absorb(&next)).is_none() {
                places.insert_unique(next.hash(), kept, |&place| self.entries[place].hash());
                self.entries[kept] = next;
                kept += 1;
            }
        }
        self.entries.truncate(kept);
        self.compact_at = self.compact_from.max(2 * self.entries.len());
    }
}

impl<const COLUMNS: usize> Entry<COLUMNS> {
    fn hash(&self) -> u64 {
        mix(u64::from(self.tag), self.value)
    }

    fn weight(&self) -> u64 {
        self.counts.iter().map(|&count| u64::from(count)).sum()
    }

    /// Adds the counts of `other`, unless its value or tag differ or they do not fit.
    fn absorb(&mut self, other: &Entry<COLUMNS>) -> bool {
        if (self.value, self.tag) != (other.value, other.tag) {
            return false;
        }
        let mut sums = self.counts;
        for (sum, &count) in sums.iter_mut().zip(&other.counts) {
            let Some(fits) = sum.checked_add(count) else { return false };
            *sum = fits;
        }
        self.counts = sums;
        true
    }
}

/// Items by group, without moving them.
#[derive(Clone, Debug)]
pub(crate) struct Groups {
    starts: Vec<usize>,
    order: Vec<usize>,
}

impl Groups {
    /// `items` in `groups` groups, where `group` says which an item belongs to.
    pub(crate) fn of<T>(items: &[T], groups: usize, group: impl Fn(&T) -> usize) -> Groups {
        let mut starts = vec![0; groups + 1];
        for item in items {
            starts[group(item) + 1] += 1;
        }
        for i in 0..groups {
            starts[i + 1] += starts[i];
        }
        let mut next = starts.clone();
        let mut order = vec![0; items.len()];
        for (index, item) in items.iter().enumerate() {
            let place = &mut next[group(item)];
            order[*place] = index;
            *place += 1;
        }
        Groups { starts, order }
    }

    /// The indices of the items of a group, ascending.
    pub(crate) fn members(&self, group: usize) -> impl ExactSizeIterator<Item = usize> + Clone {
        self.order[self.starts[group]..self.starts[group + 1]].iter().copied()
    }
}

/// A sum of nanoseconds that may exceed 64 bits, as a float.
#[expect(clippy::cast_precision_loss, reason = "output only; 53 bits are enough")]
pub(crate) fn float_sum(sum: u128) -> f64 {
    sum as f64
}

/// Values with weights, looked through once; statistics may look a second time.
pub(crate) struct Distribution<I> {
    items: I,
    total: u64,
    sum: u128,
    max: u64,
    /// Weight by bucket; empty if there are few items.
    buckets: Vec<u64>,
}

/// Values with their weights.
pub(crate) trait Weighted: ExactSizeIterator<Item = (u64, u64)> + Clone {}

impl<I: ExactSizeIterator<Item = (u64, u64)> + Clone> Weighted for I {}

impl Latency {
    /// The latency with these samples in nanoseconds.
    pub fn of_nanos(values: &[u64]) -> Latency {
        distribution(values).latency()
    }
}

/// The distribution of `values`.
pub(crate) fn distribution(values: &[u64]) -> Distribution<impl Weighted> {
    Distribution::new(values.iter().map(|&value| (value, 1)))
}

impl<I: Weighted> Distribution<I> {
    pub(crate) fn new(items: I) -> Distribution<I> {
        let mut buckets = vec![0; if items.len() < FEW { 0 } else { BUCKETS }];
        let (mut total, mut sum, mut max) = (0, 0_u128, 0);
        for (value, weight) in items.clone() {
            if weight == 0 {
                continue;
            }
            total += weight;
            sum += u128::from(value) * u128::from(weight);
            max = max.max(value);
            if let Some(bucket) = buckets.get_mut(bucket(value)) {
                *bucket += weight;
            }
        }
        Distribution { items, total, sum, max, buckets }
    }

    /// The latency whose samples, in nanoseconds, these are.
    pub(crate) fn latency(self) -> Latency {
        let (samples, max) = (self.total, float(self.max));
        let mean = float_sum(self.sum) / float(samples);
        let Some(percentiles) = self.percentiles([50.0, 90.0, 95.0, 99.0]) else {
            return Latency::default();
        };
        let [p50_ms, p90_ms, p95_ms, p99_ms] = percentiles.map(|nanos| Some(nanos / 1e6));
        let [mean_ms, max_ms] = [mean, max].map(|nanos| Some(nanos / 1e6));
        Latency { samples, mean_ms, p50_ms, p90_ms, p95_ms, p99_ms, max_ms }
    }

    /// The percentiles 0 to 100; `None` without a sample.
    pub(crate) fn curve(self) -> Option<[f64; 101]> {
        self.percentiles(EVERY_PERCENT)
    }

    /// The percentiles (0..=100): with the samples in ascending order, the value at rank
    /// `percent / 100 * (n - 1)`, interpolated linearly. `None` without a sample.
    fn percentiles<const N: usize>(self, percents: [f64; N]) -> Option<[f64; N]> {
        let last = self.total.checked_sub(1)?;
        let places = percents.map(|percent| {
            let rank = percent / 100.0 * float(last);
            let below = count(rank.floor()).min(last);
            (below, (below + 1).min(last), rank - float(below))
        });
        let mut ranks: Vec<u64> = places.iter().flat_map(|&(low, high, _)| [low, high]).collect();
        ranks.sort_unstable();
        ranks.dedup();
        let found = self.order_statistics(&ranks);
        let at = |rank: u64| {
            float(found[ranks.binary_search(&rank).expect("every rank asked for is in the list")])
        };
        Some(places.map(|(low, high, fraction)| at(low) + fraction * (at(high) - at(low))))
    }

    /// The values at `ranks` (from 0, ascending, below the total weight) of the samples in
    /// ascending order.
    fn order_statistics(self, ranks: &[u64]) -> Vec<u64> {
        let mut before = self.buckets;
        let counted = !before.is_empty();
        let wanted = cumulate(&mut before, ranks);
        let mut near = Vec::new();
        if counted {
            keep(self.items, |value| wanted[bucket(value)], &mut near);
        } else {
            near.extend(self.items);
        }
        near.sort_unstable_by_key(|&(value, _)| value);
        let mut found = Vec::with_capacity(ranks.len());
        let mut passed = 0;
        let mut current = BUCKETS;
        for (value, weight) in near {
            if counted && bucket(value) != current {
                current = bucket(value);
                passed = before[current];
            }
            passed += weight;
            while ranks.get(found.len()).is_some_and(|&rank| rank < passed) {
                found.push(value);
            }
        }
        found
    }
}

/// Appends the items whose value is `wanted` to `kept`.
fn keep<I: Iterator<Item = (u64, u64)>>(
    items: I,
    wanted: impl Fn(u64) -> bool,
    kept: &mut Vec<(u64, u64)>,
) {
    // Which items are wanted is as good as random, so a branch would be mispredicted: every item
    // is written down, and overwritten by the next if it was not wanted.
    let mut page = [(0, 0); 256];
    let mut filled = 0;
    for (value, weight) in items {
        page[filled] = (value, weight);
        filled += usize::from(wanted(value));
        if filled == page.len() {
            kept.extend_from_slice(&page);
            filled = 0;
        }
    }
    kept.extend_from_slice(&page[..filled]);
}

/// Turns the weight in each bucket into the weight before it, and marks the buckets that hold one
/// of `ranks`.
fn cumulate(weights: &mut [u64], ranks: &[u64]) -> Vec<bool> {
    let mut wanted = vec![false; weights.len()];
    let mut passed = 0;
    let mut next = 0;
    for (weight, wanted) in weights.iter_mut().zip(&mut wanted) {
        let end = passed + *weight;
        *weight = passed;
        while ranks.get(next).is_some_and(|&rank| rank < end) {
            *wanted = true;
            next += 1;
        }
        passed = end;
    }
    wanted
}

/// The bucket of a value: its binary exponent and leading bits, so that buckets are in the order
/// of values and about 1.6 % wide, whatever the scale.
fn bucket(value: u64) -> usize {
    usize::try_from(bucket_of(value, BUCKET_BITS)).expect("there are 4096 buckets")
}

/// The bucket of a value where every power of two is split into `1 << bits`.
#[inline]
pub(crate) fn bucket_of(value: u64, bits: u32) -> u64 {
    let shift = ((value >> bits) | 1).ilog2();
    let leading = value >> shift;
    // Above the smallest values `leading` has its top bit set, which counts as one exponent.
    (u64::from(shift) << bits) + leading
}

/// The middle of the values of that bucket.
pub(crate) fn middle_of(bucket: u64, bits: u32) -> u64 {
    let shift = (bucket >> bits).saturating_sub(1);
    let leading = bucket - (shift << bits);
    (leading << shift) + ((1 << shift) >> 1)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn by_sorting(values: &[u64], percent: f64) -> Option<f64> {
        let mut sorted = values.to_vec();
        sorted.sort_unstable();
        let rank = percent / 100.0 * float(sorted.len().checked_sub(1)? as u64);
        let low = usize::try_from(count(rank.floor())).unwrap();
        let high = (low + 1).min(sorted.len() - 1);
        let (a, b) = (float(sorted[low]), float(sorted[high]));
        Some(a + (rank - rank.floor()) * (b - a))
    }

    const PERCENTS: [f64; 8] = [0.0, 1.0, 33.3, 50.0, 90.0, 95.0, 99.0, 100.0];

    fn check(values: &[u64]) -> Result<(), TestCaseError> {
        let expected: Vec<_> = PERCENTS.iter().map(|&p| by_sorting(values, p)).collect();
        let found = distribution(values).percentiles(PERCENTS);
        prop_assert_eq!(found.map(Vec::from), expected.into_iter().collect());
        Ok(())
    }

    type Push = (u64, u64, u32, usize);

    fn expanded(pushes: &[Push], keep: impl Fn(&Push) -> bool) -> Vec<u64> {
        let kept = pushes.iter().filter(|push| keep(push));
        kept.flat_map(|&(value, count, ..)| (0..count).map(move |_| value)).collect()
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]

        #[test]
        fn percentiles_of_few_samples_are_those_of_the_sorted_list(
            values in prop::collection::vec(0_u64..1_000, 0..40),
        ) {
            check(&values)?;
        }

        #[test]
        fn percentiles_of_many_samples_are_those_of_the_sorted_list(
            values in prop::collection::vec(prop_oneof![0_u64..200, 1_000_000_u64..9_000_000,
                0_u64..1 << 50], FEW..3_000),
        ) {
            check(&values)?;
        }

        #[test]
        fn weighted_samples_are_like_their_expansion(
            pushes in prop::collection::vec(
                (0_u64..3_000_000_000, 0_u64..5, 0_u32..3, 0_usize..2), 0..1_500),
            coarse in 1_u64..1_000_000_000,
        ) {
            let coarsened = |(value, n, tag, column): Push| (value / coarse, n, tag, column);
            let pushes: Vec<Push> = pushes.into_iter().map(coarsened).collect();
            let mut samples = WeightedSamples::<2>::compacting_from(64);
            for &(value, count, tag, column) in &pushes {
                samples.push(value, count, tag, column);
            }
            let plain = expanded(&pushes, |_| true);
            let (found, expected) = (samples.all(), distribution(&plain));
            prop_assert_eq!(found.percentiles(PERCENTS), expected.percentiles(PERCENTS));
            prop_assert_eq!(samples.all().latency(), Latency::of_nanos(&plain));
            for (tag, found) in (0..).zip(samples.latency_by_tag(3, |tag| tag)) {
                let plain = expanded(&pushes, |push| push.2 == tag);
                prop_assert_eq!(found, Latency::of_nanos(&plain));
            }
            for (group, found) in (0..).zip(samples.latency_by_tag(2, |tag| tag / 2)) {
                let plain = expanded(&pushes, |push| push.2 / 2 == group);
                prop_assert_eq!(found, Latency::of_nanos(&plain));
            }
            for column in 0..2 {
                let plain = expanded(&pushes, |push| push.3 == column);
                prop_assert_eq!(samples.column(column).curve(), distribution(&plain).curve());
            }
        }

        #[test]
        fn buckets_are_in_the_order_of_values(
            a in any::<u64>(), b in any::<u64>(), scale in 0_u32..64,
        ) {
            let (a, b) = (a >> scale, b >> scale);
            prop_assert!(bucket(a.min(b)) <= bucket(a.max(b)));
            prop_assert!(bucket(a) < BUCKETS);
        }
    }

    #[test]
    fn without_a_sample_there_is_no_statistic() {
        let absent = Latency::default();
        assert_eq!(Latency::of_nanos(&[]), absent);
        let none = WeightedSamples::<2>::default();
        assert_eq!((none.all().curve(), none.column(1).latency()), (None, absent));
        assert_eq!(none.latency_by_tag(2, |tag| tag), [absent, absent]);
    }

    #[test]
    fn one_sample_is_every_percentile() {
        let all = Latency::of_nanos(&[7_000_000]);
        assert_eq!(all.samples, 1);
        for value in [all.mean_ms, all.p50_ms, all.p90_ms, all.p95_ms, all.p99_ms, all.max_ms] {
            assert_eq!(value, Some(7.0), "{all:?}");
        }
    }

    #[test]
    fn percentiles_interpolate_between_ranks() {
        let found = distribution(&[40, 10, 30, 20]).percentiles([50.0, 90.0]);
        assert_eq!(found, Some([25.0, 37.0]));
    }

    #[test]
    fn memory_is_bounded_by_distinct_values() {
        let mut samples = WeightedSamples::<1>::compacting_from(64);
        for i in 0..100_000_u64 {
            samples.push(i % 50, 3, 0, 0);
        }
        assert!(samples.entries.len() <= 100, "{} entries", samples.entries.len());
        assert_eq!(samples.all().total, 300_000);
    }

    #[test]
    fn counts_beyond_32_bits_are_kept() {
        let mut samples = WeightedSamples::<1>::compacting_from(1);
        samples.push(5, u64::from(u32::MAX) * 3, 0, 0);
        samples.push(9, 1, 0, 0);
        assert_eq!(samples.all().total, u64::from(u32::MAX) * 3 + 1);
        assert_eq!(samples.all().percentiles([100.0]), Some([9.0]));
    }
}
