//! Did the cluster keep up? The rule is documented at [`Saturation`].
//!
//! Only the summary calls it, once at the end of a run.

use super::NEVER;
use crate::report::Saturation;
use blis_core::Span;
use blis_core::math::float;

/// Fewer arrivals than this say nothing about growth.
const ARRIVALS_MIN: usize = 30;
/// Growth by more than this share of the arrivals is overload; so long a wait is a backlog.
const OVERLOAD_SHARE: f64 = 0.05;
/// Arrivals after which even a queue at 99 % load, 1 / (1 - 0.99)^2, has forgotten how long it was.
const LONGEST_MEMORY: f64 = 10_000.0;
/// How many standard deviations of a random walk make growth significant.
const SIGNIFICANT: f64 = 2.0;

/// How requests came and left.
pub(super) struct Course<'a> {
    /// When they arrived, in ns, ascending.
    arrivals: &'a [u64],
    /// When they were scheduled or turned away, in ns, ascending.
    exits: Vec<u64>,
    /// When they left the cluster, in ns, ascending.
    closings: &'a [u64],
    /// How many requests each of these stands for.
    every: f64,
}

impl Course<'_> {
    /// Of the requests that came at `arrivals` (ascending) and waited so long until they were
    /// scheduled or turned away (`NEVER`: still), in ns, and left at `closings` (ascending). Each
    /// stands for `every`.
    pub(super) fn new<'a>(
        arrivals: &'a [u64],
        waits: &[u64],
        closings: &'a [u64],
        every: u64,
    ) -> Course<'a> {
        let ends = arrivals.iter().zip(waits).filter(|&(_, &wait)| wait != NEVER);
        let mut exits: Vec<u64> = ends.map(|(arrival, wait)| arrival + wait).collect();
        sort_runs(&mut exits);
        Course { arrivals, exits, closings, every: float(every) }
    }

    /// Whether the cluster kept up.
    pub(super) fn judge(&self) -> Option<Saturation> {
        let Course { arrivals, exits, closings, every } = self;
        let (&first, &last) = (arrivals.first()?, arrivals.last()?);
        let start = first + (last - first) / 2;
        let waiting = fit(arrivals, exits, start);
        if waiting.n < ARRIVALS_MIN as u64 || first == last {
            let waiting = arrivals.len() - exits.partition_point(|&exit| exit <= last);
            let most = 2 * waiting > arrivals.len() && arrivals.len() >= ARRIVALS_MIN;
            return most.then_some(Saturation::Overloaded);
        }
        let m = float(waiting.n) * every;
        // A queue that keeps up forgets: it wanders no further than in so many arrivals.
        let steps = m.min(LONGEST_MEMORY);
        // The gap to the next but `every` varies less, as sums do.
        let noise = SIGNIFICANT * (steps * (waiting.gap_variation() * every + 1.0)).sqrt();
        let much = noise.max(OVERLOAD_SHARE * m);
        // By Little's law, mean wait / window = mean queue / arrivals in the window.
        let standing = waiting.x * every / float(waiting.n) > OVERLOAD_SHARE * m;
        let growth = waiting.growth() * every;
        let inside = || fit(arrivals, closings, start).growth() * every;
        Some(if growth > much {
            Saturation::Overloaded
        } else if growth > noise || standing || inside() > much {
            Saturation::Growing
        } else {
            Saturation::Stable
        })
    }

    /// When fewer than `instances` waited last, in ns: when the last request came that found it so.
    pub(super) fn overloaded_from(&self, instances: usize) -> Option<u64> {
        let found = |&(before, &arrival): &(usize, &u64)| {
            let waiting =
                before.saturating_sub(self.exits.partition_point(|&exit| exit <= arrival));
            float(waiting as u64) * self.every < float(instances as u64)
        };
        self.arrivals.iter().enumerate().rev().find(found).map(|(_, &arrival)| arrival)
    }
}

/// Sorts a list made of a few ascending runs, one per instance, by merging them.
#[expect(clippy::stable_sort_primitive, reason = "only the stable sort makes use of runs")]
pub(super) fn sort_runs(times: &mut [u64]) {
    times.sort();
}

/// Sums for a straight line through the number of requests that have come and not left, in seconds
/// since the window's first arrival, and for the gaps between arrivals.
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

/// Follows how many have come and not left, at the arrivals from `start` on.
fn fit(arrivals: &[u64], exits: &[u64], start: u64) -> Line {
    let mut line = Line::default();
    let skip = arrivals.partition_point(|&arrival| arrival < start);
    let Some(&origin) = arrivals.get(skip) else { return line };
    let mut left = exits.partition_point(|&exit| exit <= origin);
    for (before, &arrival) in (skip..).zip(&arrivals[skip..]) {
        while exits.get(left).is_some_and(|&exit| exit <= arrival) {
            left += 1;
        }
        // A request that is scheduled as it arrives has left but is not yet among those before.
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

#[cfg(test)]
mod tests {
    use super::*;

    fn judge(arrivals: &[u64], waits: &[u64], stays: &[u64]) -> Option<Saturation> {
        let mut closings: Vec<u64> =
            arrivals.iter().zip(stays).map(|(at, stay)| at + stay).collect();
        closings.sort_unstable();
        Course::new(arrivals, waits, &closings, 1).judge()
    }

    /// Ten thousand arrivals, one a second, of which each waits and stays so many seconds.
    fn verdict(wait: impl Fn(u64) -> u64, stay: impl Fn(u64) -> u64) -> Option<Saturation> {
        let seconds = |of: &dyn Fn(u64) -> u64| -> Vec<u64> {
            (0..10_000).map(|number| of(number) * 1_000_000_000).collect()
        };
        judge(&seconds(&|number| number), &seconds(&wait), &seconds(&stay))
    }

    #[test]
    fn a_queue_that_grows_is_overload_and_one_that_stands_is_not_stable() {
        assert_eq!(verdict(|_| 0, |_| 9), Some(Saturation::Stable));
        assert_eq!(verdict(|_| 100, |_| 100), Some(Saturation::Stable));
        let stands = verdict(|_| 1_000, |_| 1_000);
        assert_eq!(stands, Some(Saturation::Growing), "built up before the window");
        assert_eq!(verdict(|number| number / 2, |number| number), Some(Saturation::Overloaded));
    }

    #[test]
    fn batches_that_grow_while_nobody_waits_are_not_stable() {
        let batches = |stay: &dyn Fn(u64) -> u64| verdict(|_| 0, stay);
        let growing = Some(Saturation::Growing);
        assert_eq!(batches(&|number| 3 + number / 10), growing, "a tenth more than can be served");
        assert_eq!(batches(&|number| 3 + number), growing, "twice as many");
        assert_eq!(batches(&|_| 9_000), growing, "they still fill up");
        assert_eq!(batches(&|number| 3 + number / 50), Some(Saturation::Stable), "not by 5 %");
        for stay in [3, 300, 2_000] {
            assert_eq!(batches(&|number| stay.min(3 + number)), Some(Saturation::Stable), "full");
        }
    }

    #[test]
    fn a_run_that_is_too_short_to_tell_has_no_verdict() {
        assert_eq!(judge(&[], &[], &[]), None);
        assert_eq!(judge(&[5; 20], &[9; 20], &[9; 20]), None);
        assert_eq!(judge(&[5; 40], &[0; 40], &[9; 40]), None, "all at one instant, and all served");
        assert_eq!(
            judge(&[5; 40], &[9; 40], &[9; 40]),
            Some(Saturation::Overloaded),
            "none was served"
        );
    }
}
