//! Did the cluster keep up? The rule is documented at [`Saturation`].
//!
//! Only the summary calls it, once at the end of a run.

use crate::report::Saturation;
use blis_core::Span;
use blis_core::math::float;

/// Fewer arrivals than this say nothing about growth.
const ARRIVALS_MIN: u64 = 30;
/// Growth by more than this share of the arrivals is overload.
const OVERLOAD_SHARE: f64 = 0.05;
/// How many standard deviations of a random walk make growth significant.
const SIGNIFICANT: f64 = 2.0;

/// Judges by the times of `arrivals` (ascending) and `departures` (in any order), in ns, by how
/// many requests were `waiting` to be scheduled at the last arrival and by the `median` time in
/// the system of finished requests.
pub(super) fn judge(
    arrivals: &[u64],
    mut departures: Vec<u64>,
    waiting: usize,
    median: Option<Span>,
) -> Option<Saturation> {
    let (&first, &last) = (arrivals.first()?, arrivals.last()?);
    sort_runs(&mut departures);
    let filled = first.saturating_add(median.unwrap_or(Span::ZERO).as_nanos());
    let line = fit(arrivals, &departures, filled.max(first + (last - first) / 2));
    if line.n < ARRIVALS_MIN || first == last {
        let overloaded = float(waiting as u64) > 0.5 * float(arrivals.len() as u64);
        let enough = arrivals.len() as u64 >= ARRIVALS_MIN;
        return Some(if overloaded && enough {
            Saturation::Overloaded
        } else {
            Saturation::Stable
        });
    }
    let m = float(line.n);
    let noise = SIGNIFICANT * (m * (line.gap_variation() + 1.0)).sqrt();
    Some(match line.growth() {
        growth if growth <= noise => Saturation::Stable,
        growth if growth <= OVERLOAD_SHARE * m => Saturation::Backlogged,
        _ => Saturation::Overloaded,
    })
}

/// Sorts a list made of a few ascending runs, one per instance, by merging them.
#[expect(clippy::stable_sort_primitive, reason = "only the stable sort makes use of runs")]
fn sort_runs(times: &mut [u64]) {
    times.sort();
}

/// Sums for a straight line through N(t), in seconds since the window's first arrival, and for
/// the gaps between arrivals.
#[derive(Clone, Copy, Debug, Default)]
struct Line {
    n: u64,
    t: f64,
    t2: f64,
    x: f64,
    tx: f64,
    last: f64,
    gaps2: f64,
}

/// Follows N(t) at the arrivals from `start` on.
fn fit(arrivals: &[u64], departures: &[u64], start: u64) -> Line {
    let mut line = Line::default();
    let skip = arrivals.partition_point(|&arrival| arrival < start);
    let Some(&origin) = arrivals.get(skip) else { return line };
    let mut left = departures.partition_point(|&departure| departure <= origin);
    for (before, &arrival) in (skip..).zip(&arrivals[skip..]) {
        while departures.get(left).is_some_and(|&departure| departure <= arrival) {
            left += 1;
        }
        // A request that leaves as it arrives is among those that left but not yet among those
        // before.
        let inside = float(before.saturating_sub(left) as u64);
        let t = Span::from_nanos(arrival - origin).as_secs_f64();
        line.add(t, inside);
    }
    line
}

impl Line {
    fn add(&mut self, t: f64, inside: f64) {
        self.n += 1;
        self.t += t;
        self.t2 += t * t;
        self.x += inside;
        self.tx += t * inside;
        self.gaps2 += (t - self.last) * (t - self.last);
        self.last = t;
    }

    /// Rise of the fitted line over the window.
    fn growth(&self) -> f64 {
        let n = float(self.n);
        let spread = n * self.t2 - self.t * self.t;
        if spread > 0.0 { (n * self.tx - self.t * self.x) / spread * self.last } else { 0.0 }
    }

    /// Squared coefficient of variation of the gaps between arrivals.
    fn gap_variation(&self) -> f64 {
        let gaps = float(self.n.saturating_sub(1));
        if self.last > 0.0 {
            (gaps * self.gaps2 / (self.last * self.last) - 1.0).max(0.0)
        } else {
            0.0
        }
    }
}
