//! Whether the run came to a steady state, and what it did then.
//!
//! Only the summary calls it, once at the end of a run.

use super::{NEVER, Summary, per};
use crate::report::Steady;
use crate::steady::{movement, warm_up};
use blis_core::Span;
use blis_core::math::float;

/// Sessions that all begin within this part of the arrivals begin at once.
const AT_ONCE: u64 = 10;

impl Summary {
    /// Judges all rows, warm-up included.
    pub(super) fn steady(&self) -> Steady {
        let (times, ttfts) = self.first_tokens();
        let cut = warm_up(&ttfts);
        // What never settles is judged by its second half.
        let from = cut.unwrap_or(ttfts.len() / 2);
        let moves = times.get(from).and_then(|&from| movement(&self.inside(from)));
        let (responses, tokens) = self.throughput();
        Steady {
            warmup_s: cut.map(|cut| match cut {
                0 => 0.0,
                cut => Span::from_nanos(times[cut]).as_secs_f64(),
            }),
            drift: moves.map(|found| found.drift),
            drift_error: moves.map(|found| found.error),
            batch_correlation: moves.map(|found| found.correlation),
            responses_per_sec: responses,
            tokens_per_sec: tokens,
        }
    }

    /// How many requests each arrival of the arrival period from `from` on finds inside, itself
    /// included: waiting or running.
    fn inside(&self, from: u64) -> Vec<f64> {
        let arrivals = self.arrival_period();
        let skip = arrivals.partition_point(|&arrival| arrival < from);
        let mut gone = 0;
        let inside = |(before, &arrival): (usize, &u64)| {
            while self.closings.get(gone).is_some_and(|&end| end <= arrival) {
                gone += 1;
            }
            float((before + 1).saturating_sub(gone) as u64)
        };
        (skip..).zip(&arrivals[skip..]).map(inside).collect()
    }

    /// Arrivals and times to first token of those that have one, both in ns and in order of
    /// arrival.
    fn first_tokens(&self) -> (Vec<u64>, Vec<f64>) {
        let mut by_id = vec![NEVER; self.arrivals.len()];
        for row in self.rows.iter().filter(|row| row.first_token) {
            by_id[self.row_place(row)] = row.ttft();
        }
        by_id.truncate(self.arrival_period().len());
        let with = |(&arrival, ttft): (&u64, u64)| (ttft != NEVER).then(|| (arrival, float(ttft)));
        self.arrivals.iter().zip(by_id).filter_map(with).unzip()
    }

    /// The arrivals of the arrival period: from the first request until the last session begins.
    /// Later rounds that come after it are fewer and fewer, and the later the slower the cluster
    /// is, so that they say nothing about how it keeps up. Where all sessions begin at once, as
    /// those of a fixed number of users do, all arrivals are meant.
    pub(super) fn arrival_period(&self) -> &[u64] {
        let (Some(&first), Some(&last)) = (self.arrivals.first(), self.arrivals.last()) else {
            return &[];
        };
        let opening = self.last_opening.saturating_sub(first);
        if opening * AT_ONCE < last - first {
            return &self.arrivals;
        }
        &self.arrivals[..self.arrivals.partition_point(|&arrival| arrival <= self.last_opening)]
    }

    /// Requests and output tokens per second of those that finished in the second half of the
    /// arrival period: neither while the cluster fills nor while it drains.
    fn throughput(&self) -> (Option<f64>, Option<f64>) {
        let (Some(&first), Some(&last)) =
            (self.arrival_period().first(), self.arrival_period().last())
        else {
            return (None, None);
        };
        let middle = first + last.saturating_sub(first) / 2;
        let (mut requests, mut tokens) = (0, 0);
        for row in self.rows.iter().filter(|row| row.e2e != NEVER) {
            let finished = self.arrivals[self.row_place(row)].saturating_add(row.e2e);
            if middle < finished && finished <= last {
                requests += self.every();
                tokens += self.every() * u64::from(row.output_tokens);
            }
        }
        let seconds = Span::from_nanos(last.saturating_sub(middle)).as_secs_f64();
        (per(float(requests), seconds), per(float(tokens), seconds))
    }
}
