//! What the time to first token is made of, on average and at its 99th percentile.
//!
//! Only the summary calls it, once at the end of a run.

use super::Row;
use crate::report::{Latency, SplitMs, SplitStats};
use crate::sample::float_sum;
use blis_core::math::{count, float};

/// The split of the rows at `members`, whose time to first token is `ttft`; `None` without a first
/// token.
pub(super) fn split_of(
    rows: &[Row],
    members: impl Iterator<Item = usize>,
    ttft: &Latency,
) -> Option<SplitStats> {
    let p99_ms = ttft.p99_ms?;
    let started = members.filter(|&i| rows[i].first_token);
    let mut ranked: Vec<(u64, usize)> = started.map(|i| (rows[i].ttft(), i)).collect();
    let last = ranked.len().checked_sub(1)?;

    // The rows of those ranked between the 98.5th and the 99.5th percentile, by two selections.
    let (low, high) = around_p99(last);
    ranked.select_nth_unstable(high);
    ranked[..=high].select_nth_unstable(low);
    let tail = mean_split(ranked[low..=high].iter().map(|&(_, i)| &rows[i]))?;
    // If the tail's time is zero, so is the percentile, and there is nothing to scale.
    let scale = if tail.total() > 0.0 { p99_ms / tail.total() } else { 1.0 };
    Some(SplitStats {
        mean: mean_split(ranked.iter().map(|&(_, i)| &rows[i]))?,
        p99: scaled(&tail, scale),
    })
}

/// The first and last rank to look at, of ranks from 0 to `last`.
fn around_p99(last: usize) -> (usize, usize) {
    let rank = |share: f64| share * float(last as u64);
    let index = |rank: f64| usize::try_from(count(rank)).unwrap_or(last).min(last);
    let nearest = index(rank(0.99));
    let low = index(rank(0.985).ceil()).min(nearest);
    let high = index(rank(0.995).floor()).max(nearest);
    (low, high)
}

fn mean_split<'a>(rows: impl Iterator<Item = &'a Row>) -> Option<SplitMs> {
    let mut sums = [0_u128; 6];
    let mut n = 0_u64;
    for row in rows {
        n += 1;
        for (sum, &part) in sums.iter_mut().zip(&row.split) {
            *sum += u128::from(part);
        }
    }
    if n == 0 {
        return None;
    }
    let [gateway, queue, reload, prefill, recompute, output] =
        sums.map(|sum| float_sum(sum) / float(n) / 1e6);
    Some(SplitMs { gateway, queue, reload, prefill, recompute, output })
}

fn scaled(split: &SplitMs, scale: f64) -> SplitMs {
    let SplitMs { gateway, queue, reload, prefill, recompute, output } = *split;
    SplitMs {
        gateway: gateway * scale,
        queue: queue * scale,
        reload: reload * scale,
        prefill: prefill * scale,
        recompute: recompute * scale,
        output: output * scale,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::summary::Latencies;
    use blis_core::SloClass;

    fn split(rows: &[Row]) -> Option<SplitStats> {
        split_of(rows, 0..rows.len(), &Latencies::of(rows.iter()).ttft)
    }

    fn row(split: [u64; 6]) -> Row {
        Row {
            e2e: 0,
            delay: 0,
            split,
            tenant: 0,
            instance: 0,
            class: SloClass::Standard,
            first_token: true,
        }
    }

    #[test]
    fn the_ranks_looked_at_always_hold_the_one_nearest_to_p99() {
        for last in 0..5_000 {
            let (low, high) = around_p99(last);
            let nearest = usize::try_from(count(0.99 * float(last as u64))).unwrap();
            assert!(low <= nearest && nearest <= high && high <= last, "{low} {high} of {last}");
        }
        assert_eq!(around_p99(10_000), (9_850, 9_950));
    }

    #[test]
    fn the_tail_is_made_of_what_the_slow_requests_spent() {
        // 200 requests: prefill is 1 ms for all, the slowest four waited 9 ms besides.
        let rows: Vec<Row> = (0..200)
            .map(|i| row([0, if i % 50 == 0 { 9_000_000 } else { 0 }, 0, 1_000_000, 0, 0]))
            .collect();
        let split = split(&rows).unwrap();
        assert!((split.mean.total() - 1.18).abs() < 1e-12, "{:?}", split.mean);
        assert!((split.p99.queue - 9.0).abs() < 1e-9, "{:?}", split.p99);
        assert!((split.p99.prefill - 1.0).abs() < 1e-9, "{:?}", split.p99);
    }

    #[test]
    fn requests_without_a_first_token_have_no_split() {
        let waiting = Row { first_token: false, ..row([1; 6]) };
        assert_eq!(split(&[waiting]), None);
        assert_eq!(split(&[]), None);
        let zero = split(&[row([0; 6])]).unwrap();
        assert!(zero.p99.total().abs() < f64::EPSILON);
    }
}
