//! When requests come: the rate, its peaks, and how regular it is.
//!
//! All in constant memory. Peaks are the most in any window that starts at a multiple of 10 ms.

use blis_core::math::float;
use blis_core::{Span, Time};

/// A slot of the windows that slide: 10 ms.
const SLOT: u64 = 10_000_000;
/// Slots that are remembered: 10 s.
const SLOTS: usize = 1_000;
const SLOTS_PER_SECOND: usize = 100;
const SECOND: u64 = 1_000_000_000;
/// Fewer windows than this say nothing about how counts vary.
const FEWEST_WINDOWS: u64 = 10;
/// Bins of the timeline; when they do not reach far enough, pairs of them become one.
const BINS: usize = 4_096;
/// The first width of a bin: about a millisecond, as a power of two of nanoseconds.
const FIRST_SHIFT: u32 = 20;

/// When requests come.
#[derive(Clone, Debug, PartialEq)]
pub struct Arrivals {
    /// The first arrival.
    pub first: Time,
    /// The last arrival.
    pub last: Time,
    /// Requests per second from the first to the last; absent if that is no time.
    pub rate: Option<f64>,
    /// Coefficient of variation of the times between arrivals: 0 for a clock, 1 for Poisson.
    pub gap_cv: Option<f64>,
    /// The highest rate over 1 s, in requests per second; absent if there is no second.
    pub peak_1s: Option<f64>,
    /// The highest rate over 10 s, in requests per second; absent if there are no ten seconds.
    pub peak_10s: Option<f64>,
    /// Variance over mean of the number of arrivals in a second: 1 for Poisson at a steady rate.
    pub dispersion_1s: Option<f64>,
    /// The same in ten seconds: more than over 1 s if the rate itself changes slowly.
    pub dispersion_10s: Option<f64>,
    /// How many come when.
    pub timeline: Timeline,
}

/// How many arrivals there are in equal stretches of time, from the first arrival on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Timeline {
    width: u64,
    /// From the first arrival to the last.
    span: u64,
    counts: Vec<u64>,
}

impl Timeline {
    /// Requests per second in `columns` stretches of nearly equal length; fewer if there is not
    /// enough time for so many.
    pub fn rates(&self, columns: usize) -> Vec<f64> {
        let bins = self.counts.len();
        let columns = columns.clamp(1, bins);
        (0..columns)
            .map(|column| {
                let (from, to) = (column * bins / columns, (column + 1) * bins / columns);
                // The last bin may reach beyond the last arrival.
                let end = (to as u64 * self.width).min(self.span.max(1));
                let nanos = end - from as u64 * self.width;
                let count: u64 = self.counts[from..to].iter().sum();
                float(count) / Span::from_nanos(nanos.max(1)).as_secs_f64()
            })
            .collect()
    }
}

/// Counts arrivals.
#[derive(Clone, Debug, Default)]
pub(super) struct ArrivalCount {
    /// `None` until there is an arrival.
    seen: Option<Seen>,
}

#[derive(Clone, Debug)]
struct Seen {
    first: Time,
    last: Time,
    gaps: Moments,
    recent: Recent,
    seconds: Windows,
    tens: Windows,
    shift: u32,
    bins: Vec<u64>,
}

impl ArrivalCount {
    /// The next arrival, no earlier than the one before.
    pub(super) fn see(&mut self, at: Time) {
        let seen = self.seen.get_or_insert_with(|| Seen::new(at));
        let since_first = at.saturating_since(seen.first).as_nanos();
        // The first arrival ends no gap.
        if seen.recent.any {
            seen.gaps.add(at.saturating_since(seen.last).as_secs_f64());
        }
        seen.last = at;
        seen.recent.see(since_first / SLOT);
        seen.seconds.see(since_first / SECOND);
        seen.tens.see(since_first / (10 * SECOND));
        seen.bin(since_first);
    }

    pub(super) fn finish(self) -> Option<Arrivals> {
        let Seen { first, last, gaps, recent, seconds, tens, shift, mut bins } = self.seen?;
        let span = last.saturating_since(first).as_nanos();
        let used = usize::try_from(span >> shift).unwrap_or(BINS - 1) + 1;
        bins.truncate(used);
        let rate = (span > 0).then(|| float(gaps.count) / Span::from_nanos(span).as_secs_f64());
        Some(Arrivals {
            first,
            last,
            rate,
            gap_cv: gaps.variance().filter(|_| gaps.mean > 0.0).map(|v| v.sqrt() / gaps.mean),
            peak_1s: (span >= SECOND).then(|| float(recent.most_1s)),
            peak_10s: (span >= 10 * SECOND).then(|| float(recent.most_10s) / 10.0),
            dispersion_1s: seconds.dispersion(),
            dispersion_10s: tens.dispersion(),
            timeline: Timeline { width: 1 << shift, span, counts: bins },
        })
    }
}

impl Seen {
    fn new(first: Time) -> Seen {
        Seen {
            first,
            last: first,
            gaps: Moments::default(),
            recent: Recent::new(),
            seconds: Windows::default(),
            tens: Windows::default(),
            shift: FIRST_SHIFT,
            bins: vec![0; BINS],
        }
    }

    fn bin(&mut self, since_first: u64) {
        while since_first >> self.shift >= BINS as u64 {
            for at in 0..BINS / 2 {
                self.bins[at] = self.bins[2 * at] + self.bins[2 * at + 1];
            }
            self.bins[BINS / 2..].fill(0);
            self.shift += 1;
        }
        let bin = usize::try_from(since_first >> self.shift).unwrap_or(BINS - 1);
        self.bins[bin] += 1;
    }
}

/// Count, mean and variance of numbers that come one by one.
#[derive(Clone, Copy, Debug, Default)]
struct Moments {
    count: u64,
    mean: f64,
    squares: f64,
}

impl Moments {
    fn add(&mut self, value: f64) {
        self.count += 1;
        let before = value - self.mean;
        self.mean += before / float(self.count);
        self.squares += before * (value - self.mean);
    }

    fn variance(&self) -> Option<f64> {
        (self.count > 1).then(|| self.squares / float(self.count))
    }
}

/// The arrivals of the last 10 s, slot by slot, and the most that there ever were.
#[derive(Clone, Debug)]
struct Recent {
    any: bool,
    slots: Vec<u32>,
    now: u64,
    in_1s: u64,
    in_10s: u64,
    most_1s: u64,
    most_10s: u64,
}

impl Recent {
    fn new() -> Recent {
        let slots = vec![0; SLOTS];
        Recent { any: false, slots, now: 0, in_1s: 0, in_10s: 0, most_1s: 0, most_10s: 0 }
    }

    fn see(&mut self, slot: u64) {
        self.any = true;
        if slot - self.now >= SLOTS as u64 {
            self.slots.fill(0);
            (self.in_1s, self.in_10s, self.now) = (0, 0, slot);
        }
        while self.now < slot {
            self.now += 1;
            let place = self.place(0);
            self.in_10s -= u64::from(self.slots[place]);
            self.slots[place] = 0;
            self.in_1s -= u64::from(self.slots[self.place(SLOTS_PER_SECOND)]);
        }
        let place = self.place(0);
        self.slots[place] += 1;
        self.in_1s += 1;
        self.in_10s += 1;
        self.most_1s = self.most_1s.max(self.in_1s);
        self.most_10s = self.most_10s.max(self.in_10s);
    }

    /// Where the slot so many before the present one is kept.
    fn place(&self, before: usize) -> usize {
        let now = usize::try_from(self.now % SLOTS as u64).unwrap_or(0);
        (now + SLOTS - before) % SLOTS
    }
}

/// Counts in windows that follow one another.
#[derive(Clone, Copy, Debug, Default)]
struct Windows {
    window: u64,
    count: u64,
    sum: f64,
    squares: f64,
}

impl Windows {
    fn see(&mut self, window: u64) {
        if window != self.window {
            // Windows without an arrival add nothing to either sum.
            self.sum += float(self.count);
            self.squares += float(self.count) * float(self.count);
            (self.window, self.count) = (window, 0);
        }
        self.count += 1;
    }

    /// Variance over mean of the counts in all windows but the last, which may not be full.
    fn dispersion(&self) -> Option<f64> {
        if self.window < FEWEST_WINDOWS {
            return None;
        }
        let windows = float(self.window);
        let mean = self.sum / windows;
        Some((self.squares / windows - mean * mean).max(0.0) / mean)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use blis_core::Dice;
    use blis_core::random::Purpose;

    fn arrivals(times: &[u64]) -> Arrivals {
        let mut count = ArrivalCount::default();
        for &nanos in times {
            count.see(Time::from_nanos(nanos));
        }
        count.finish().expect("there are arrivals")
    }

    fn poisson(rate: f64, requests: usize) -> Vec<u64> {
        let mut dice = Dice::new(8, Purpose::Arrival, 0);
        let mut now = 0;
        (0..requests)
            .map(|_| {
                now += Span::from_secs_f64(dice.exponential() / rate).as_nanos();
                now
            })
            .collect()
    }

    #[track_caller]
    fn near(found: Option<f64>, expected: f64, error: f64) {
        let found = found.expect("there are enough arrivals");
        assert!((found - expected).abs() <= error * expected, "{found}, not {expected}");
    }

    #[test]
    fn a_clock_has_no_variation_and_the_rate_that_it_ticks_at() {
        let times: Vec<u64> = (0..5_000).map(|i| 7_000 + i * 20_000_000).collect();
        let found = arrivals(&times);
        near(found.rate, 50.0, 1e-9);
        assert!(found.gap_cv < Some(1e-6) && found.dispersion_1s < Some(1e-6));
        assert_eq!((found.peak_1s, found.peak_10s), (Some(50.0), Some(50.0)));
        assert_eq!(found.first, Time::from_nanos(7_000));
    }

    #[test]
    fn poisson_arrivals_have_a_variation_and_a_dispersion_of_one() {
        let found = arrivals(&poisson(40.0, 80_000));
        near(found.rate, 40.0, 0.02);
        near(found.gap_cv, 1.0, 0.02);
        near(found.dispersion_1s, 1.0, 0.1);
        near(found.dispersion_10s, 1.0, 0.25);
    }

    #[test]
    fn peaks_are_those_of_the_busiest_windows() {
        let times = poisson(30.0, 3_000);
        let found = arrivals(&times);
        for (peak, slots, seconds) in [(found.peak_1s, 100, 1.0), (found.peak_10s, 1_000, 10.0)] {
            let slot = |nanos: &u64| (nanos - times[0]) / SLOT;
            let in_window = |last: u64| {
                times.iter().filter(|at| (slot(at) + slots > last) && slot(at) <= last).count()
            };
            let most = times.iter().map(|at| in_window(slot(at))).max().unwrap();
            near(peak, float(most as u64) / seconds, 1e-12);
        }
        assert_eq!(arrivals(&[0, 1_000]).peak_1s, None, "there is no second");
        let sparse: Vec<u64> = (0..30).map(|i| i * 60 * SECOND).collect();
        assert_eq!(arrivals(&sparse).peak_10s, Some(0.1), "windows do not outlast a silence");
    }

    #[test]
    fn the_timeline_holds_every_arrival_however_long_it_gets() {
        for (rate, requests) in [(1e5, 3_000), (50.0, 20_000), (1e-3, 2_000)] {
            let times = poisson(rate, requests);
            let found = arrivals(&times);
            assert_eq!(found.timeline.counts.iter().sum::<u64>(), requests as u64);
            let rates = found.timeline.rates(20);
            assert_eq!(rates.len(), 20);
            let mean = rates.iter().sum::<f64>() / 20.0;
            assert!((mean / rate - 1.0).abs() < 0.1, "{mean} and {rate}");
        }
        let once = arrivals(&[5]);
        assert_eq!((once.timeline.rates(20).len(), once.rate, once.gap_cv), (1, None, None));
    }
}
