//! What the time to first token is made of, on average and at its 99th percentile.
//!
//! Only the summary calls it, once at the end of a run.

use super::Row;
use crate::report::{SplitMs, SplitStats};
use crate::sample::float_sum;
use blis_core::math::{count, float};

/// The split of the rows at `members`; `None` without a first token.
pub(super) fn split_of(rows: &[Row], members: impl Iterator<Item = usize>) -> Option<SplitStats> {
    let started = members.filter(|&i| rows[i].first_token);
    let mut ranked: Vec<(u64, usize)> = started.map(|i| (rows[i].ttft(), i)).collect();
    let last = ranked.len().checked_sub(1)?;
    let rank = 0.99 * float(last as u64);
    let low = usize::try_from(count(rank.floor())).unwrap_or(last).min(last);
    let high = (low + 1).min(last);
    ranked.select_nth_unstable(high);
    ranked[..=high].select_nth_unstable(low);
    let split = |rank: usize| rows[ranked[rank].1].split.map(|part| float(part) / 1e6);
    let share = rank - float(low as u64);
    let (below, above) = (split(low), split(high));
    let at_rank = |part: usize| below[part] + share * (above[part] - below[part]);
    Some(SplitStats {
        mean: mean_split(ranked.iter().map(|&(_, i)| &rows[i]))?,
        p99: of_parts([0, 1, 2, 3, 4, 5].map(at_rank)),
    })
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
    Some(mean_of(sums, n))
}

/// The mean of `n` splits whose parts add up to `sums`.
pub(super) fn mean_of(sums: [u128; 6], n: u64) -> SplitMs {
    of_parts(sums.map(|sum| float_sum(sum) / float(n) / 1e6))
}

pub(super) fn of_parts(parts: [f64; 6]) -> SplitMs {
    let [gateway, queue, reload, prefill, recompute, output] = parts;
    SplitMs { gateway, queue, reload, prefill, recompute, output }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::summary::Latencies;
    use blis_core::SloClass;

    fn split(rows: &[Row]) -> Option<SplitStats> {
        split_of(rows, 0..rows.len())
    }

    fn row(split: [u64; 6]) -> Row {
        Row {
            e2e: 0,
            split,
            request: 0,
            tenant: 0,
            instance: 0,
            output_tokens: 0,
            class: SloClass::Standard,
            first_token: true,
            counts: true,
        }
    }

    #[test]
    fn the_split_at_p99_adds_up_to_it_and_leaves_constants_alone() {
        for length in [1_u64, 2, 3, 50, 199, 1_000] {
            let waits = (0..length).map(|i| (i * 7_919) % 1_009 * 1_000);
            let rows: Vec<Row> =
                waits.map(|wait| row([7_000, wait, 0, wait * 3, 0, 500])).collect();
            let latencies = Latencies::of(rows.iter(), &[0]);
            let p99 = split(&rows).expect("they have first tokens").p99;
            assert!((p99.total() - latencies.ttft.p99_ms.unwrap()).abs() < 1e-9, "{p99:?}");
            assert!((p99.gateway - 0.007).abs() < 1e-12 && (p99.output - 0.000_5).abs() < 1e-12);
        }
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
