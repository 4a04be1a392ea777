//! How values are spread, in constant memory: a histogram whose buckets grow with the values.
//!
//! Values below 256 have a bucket each; above, an octave (a doubling) has 128 buckets of equal
//! width. So a quantile is wrong by at most half a bucket, less than 0.4 %, and the least, the
//! greatest and the mean are exact.

use blis_core::math::{count, float};

/// The relative error of a quantile, at most.
pub const QUANTILE_ERROR: f64 = 1.0 / 256.0;

/// Buckets of an octave, as a power of two.
const BITS: u32 = 7;
/// The first `2 << BITS` values have a bucket each; each of the octaves above has `1 << BITS`.
const BUCKETS: usize = (65 - BITS as usize) << BITS;

/// How values are spread. Quantiles are those of the nearest rank, within [`QUANTILE_ERROR`].
#[derive(Clone, Debug, PartialEq)]
pub struct Spread {
    /// How many values.
    pub count: u64,
    /// Their sum.
    pub sum: u128,
    /// Their mean.
    pub mean: f64,
    /// The least.
    pub min: u64,
    /// A tenth is no greater.
    pub p10: u64,
    /// The median.
    pub p50: u64,
    /// Nine tenths are no greater.
    pub p90: u64,
    /// All but one in a hundred are no greater.
    pub p99: u64,
    /// The greatest.
    pub max: u64,
    buckets: Vec<Bar>,
}

/// How many values lie within some bounds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bar {
    /// The least value of the bar.
    pub from: u64,
    /// The greatest.
    pub to: u64,
    /// How many values.
    pub count: u64,
}

impl Spread {
    /// The values in at most `most` rows (at least 3), for a histogram. All rows of an octave have
    /// the same width, as fine as the number of rows allows; the first row starts at
    /// the least value and the last one ends at the greatest, also where single ones lie far out.
    ///
    /// # Panics
    /// If fewer than 3 rows are asked for.
    pub fn bars(&self, most: usize) -> Vec<Bar> {
        assert!(most >= 3, "a histogram has rows");
        let (low, high) = (self.quantile(0.01), self.quantile(0.99));
        let scales = (0..=BITS).rev().map(Scale::Parts).chain((2..=64).map(Scale::Octaves));
        let fits = |scale: &Scale| scale.rows(low, high).take(most + 1).count() <= most;
        // 64 octaves in a row hold every value, so one of the scales always fits.
        let scale = scales.into_iter().find(fits).unwrap_or(Scale::Octaves(64));
        let mut rows: Vec<Bar> = scale.rows(low, high).collect();
        for bucket in &self.buckets {
            let row = rows.partition_point(|row| row.to < bucket.from).min(rows.len() - 1);
            rows[row].count += bucket.count;
        }
        let last = rows.len() - 1;
        (rows[0].from, rows[last].to) = (self.min, self.max);
        rows
    }

    fn quantile(&self, share: f64) -> u64 {
        let rank = count((share * float(self.count)).ceil()).clamp(1, self.count);
        let mut below = 0;
        for bucket in &self.buckets {
            below += bucket.count;
            if below >= rank {
                let middle = bucket.from + (bucket.to - bucket.from) / 2;
                return middle.clamp(self.min, self.max);
            }
        }
        self.max
    }
}

/// How wide the rows of a histogram are.
#[derive(Clone, Copy, Debug)]
enum Scale {
    /// An octave has so many rows, as a power of two.
    Parts(u32),
    /// A row has so many octaves.
    Octaves(u32),
}

impl Scale {
    /// The rows from the one that holds `low` to the one that holds `high`.
    fn rows(self, low: u64, high: u64) -> impl Iterator<Item = Bar> {
        let mut next = Some(self.row(low));
        std::iter::from_fn(move || {
            let row = next?;
            next = (row.to < high).then(|| self.row(row.to + 1));
            Some(row)
        })
    }

    /// The empty row that holds `value`.
    fn row(self, value: u64) -> Bar {
        let octave = value.max(1).ilog2();
        let (from, width) = match self {
            _ if value == 0 => (0, 1),
            Scale::Parts(bits) => {
                let width = (1_u64 << octave) >> bits.min(octave);
                (value - value % width, width)
            }
            Scale::Octaves(count) => {
                let first = octave - octave % count;
                let from = 1_u64 << first;
                let to = 1_u128 << (first + count).min(64);
                (from, u64::try_from(to - u128::from(from)).unwrap_or(u64::MAX))
            }
        };
        Bar { from, to: from.saturating_add(width - 1), count: 0 }
    }
}

/// Counts values.
#[derive(Clone, Debug, Default)]
pub(super) struct Histogram {
    count: u64,
    sum: u128,
    min: u64,
    max: u64,
    /// Empty until there is a value.
    buckets: Vec<u64>,
}

impl Histogram {
    pub(super) fn add(&mut self, value: u64) {
        if self.count == 0 {
            (self.min, self.max) = (value, value);
            self.buckets = vec![0; BUCKETS];
        }
        self.count += 1;
        self.sum += u128::from(value);
        self.min = self.min.min(value);
        self.max = self.max.max(value);
        self.buckets[bucket(value)] += 1;
    }

    /// How the values are spread; `None` if there was none.
    pub(super) fn spread(self) -> Option<Spread> {
        if self.count == 0 {
            return None;
        }
        let filled = self.buckets.iter().enumerate().filter(|(_, count)| **count > 0);
        let buckets = filled.map(|(index, &count)| Bar { count, ..bounds(index) }).collect();
        let mut spread = Spread {
            count: self.count,
            sum: self.sum,
            mean: mean(self.sum, self.count),
            min: self.min,
            max: self.max,
            buckets,
            p10: 0,
            p50: 0,
            p90: 0,
            p99: 0,
        };
        spread.p10 = spread.quantile(0.10);
        spread.p50 = spread.quantile(0.50);
        spread.p90 = spread.quantile(0.90);
        spread.p99 = spread.quantile(0.99);
        Some(spread)
    }
}

#[expect(clippy::cast_precision_loss, reason = "a mean is for people; 15 digits are enough")]
fn mean(sum: u128, count: u64) -> f64 {
    sum as f64 / count as f64
}

fn bucket(value: u64) -> usize {
    let shift = value.max(1).ilog2().saturating_sub(BITS);
    let within = usize::try_from(value >> shift).unwrap_or(usize::MAX);
    ((shift as usize) << BITS) + within
}

/// The bounds of a bucket.
fn bounds(index: usize) -> Bar {
    let shift = (index >> BITS).saturating_sub(1);
    let from = ((index - (shift << BITS)) as u64) << shift;
    Bar { from, to: from + ((1 << shift) - 1), count: 0 }
}

#[cfg(test)]
mod tests {
    use super::*;
    use blis_core::Dice;
    use blis_core::random::Purpose;

    fn spread(values: &[u64]) -> Spread {
        let mut histogram = Histogram::default();
        for &value in values {
            histogram.add(value);
        }
        histogram.spread().expect("there are values")
    }

    #[test]
    fn every_value_is_within_its_bucket_and_buckets_do_not_overlap() {
        let powers = (0..64).flat_map(|bit| {
            let power = 1_u64 << bit;
            [power - 1, power, power + power / 3, power + (power - 1)]
        });
        for value in powers.chain(0..2_000).chain([u64::MAX]) {
            let Bar { from, to, .. } = bounds(bucket(value));
            assert!((from..=to).contains(&value), "{value} in {from}..={to}");
            assert!(float(to - from) <= float(from) / 128.0, "{from}..={to} is narrow");
        }
        for index in 1..BUCKETS {
            assert_eq!(bounds(index - 1).to + 1, bounds(index).from, "bucket {index}");
        }
        assert_eq!(bucket(u64::MAX), BUCKETS - 1);
    }

    #[test]
    fn quantiles_are_those_of_the_sorted_values_within_the_error_that_is_stated() {
        let mut dice = Dice::new(3, Purpose::InputLength, 0);
        let mut values: Vec<u64> =
            (0..20_000).map(|_| count(30.0 * blis_core::math::exp(dice.normal() * 2.0))).collect();
        let found = spread(&values);
        values.sort_unstable();
        for (share, quantile) in
            [(0.1, found.p10), (0.5, found.p50), (0.9, found.p90), (0.99, found.p99)]
        {
            let exact = float(values[usize::try_from(count(share * 20_000.0)).unwrap() - 1]);
            let error = (float(quantile) - exact).abs();
            assert!(error <= QUANTILE_ERROR * exact, "{share}: {quantile}, not {exact}");
        }
        assert_eq!((found.min, found.max), (values[0], values[19_999]));
        assert_eq!(found.sum, values.iter().map(|&value| u128::from(value)).sum());
        assert!(found.max > 256, "the test is about wide buckets, too");
    }

    #[test]
    fn the_rows_of_a_histogram_hold_every_value_once() {
        let mut dice = Dice::new(4, Purpose::InputLength, 0);
        for scale in [0.01, 0.3, 1.0, 4.0] {
            let values: Vec<u64> = (0..3_000)
                .map(|_| count(500.0 * blis_core::math::exp(dice.normal() * scale)))
                .collect();
            let found = spread(&values);
            let bars = found.bars(12);
            assert!((1..=12).contains(&bars.len()), "{} rows for {scale}", bars.len());
            assert!(scale < 0.1 || bars.len() > 5, "{} rows for {scale}", bars.len());
            assert_eq!(bars.iter().map(|bar| bar.count).sum::<u64>(), 3_000);
            for pair in bars.windows(2) {
                assert_eq!(pair[0].to + 1, pair[1].from);
            }
            for bar in &bars[1..bars.len() - 1] {
                let inside = values.iter().filter(|value| (bar.from..=bar.to).contains(value));
                assert_eq!(inside.count() as u64, bar.count, "{bar:?}");
            }
        }
    }

    #[test]
    fn one_value_is_one_row() {
        let found = spread(&[512; 9]);
        assert_eq!((found.p10, found.p50, found.p99), (512, 512, 512));
        let bars = found.bars(12);
        assert_eq!(bars.len(), 1);
        assert!(bars[0].from <= 512 && bars[0].to >= 512 && bars[0].count == 9);
        assert_eq!(spread(&[0, u64::MAX]).bars(3).iter().map(|bar| bar.count).sum::<u64>(), 2);
    }
}
