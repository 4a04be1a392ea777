//! The course of a run: what it was like in each sixtieth of it.
//!
//! Only the summary calls it, once at the end of a run and only if distributions are asked for.

use super::Summary;
use crate::report::OverTime;
use blis_core::Span;
use blis_core::math::float;

/// How many requests were somewhere, on average over each part of a run.
#[derive(Clone, Debug)]
struct Level {
    end: u64,
    /// By how much the averages of the parts change, and by how much those of all later ones.
    here: Vec<f64>,
    later: Vec<f64>,
}

impl Level {
    fn new(end: u64) -> Level {
        Level { end, here: vec![0.0; OverTime::PARTS], later: vec![0.0; OverTime::PARTS + 1] }
    }

    /// So many more, from `at` on.
    fn add(&mut self, at: u64, more: f64) {
        if at < self.end {
            let exact = float(at) / float(self.end) * float(OverTime::PARTS as u64);
            let part = part(at, self.end);
            self.here[part] += more * (float(part as u64 + 1) - exact);
            self.later[part + 1] += more;
        }
    }

    fn parts(&self) -> Vec<f64> {
        let mut before = 0.0;
        let part = |(here, later): (&f64, &f64)| {
            before += later;
            rounded((before + here).max(0.0))
        };
        self.here.iter().zip(&self.later).map(part).collect()
    }
}

/// The part of a run that ends at `end` in which `at` lies.
fn part(at: u64, end: u64) -> usize {
    let part = u128::from(at) * OverTime::PARTS as u128 / u128::from(end.max(1));
    usize::try_from(part).unwrap_or(usize::MAX).min(OverTime::PARTS - 1)
}

/// Through text, because that is rounded in the same way everywhere.
fn rounded(value: f64) -> f64 {
    format!("{value:.2e}").parse().expect("what was formatted is a number")
}

impl Summary {
    /// The course of the run, whose closings are in order.
    pub(super) fn over_time(&self) -> Option<OverTime> {
        let end = *self.closings.last().or(self.arrivals.last())?;
        let (mut waiting, mut inside) = (Level::new(end), Level::new(end));
        let every = float(self.every());
        for (&arrival, &delay) in self.arrivals.iter().zip(&self.delays) {
            inside.add(arrival, every);
            waiting.add(arrival, every);
            waiting.add(arrival.saturating_add(delay), -every);
        }
        for &closing in &self.closings {
            inside.add(closing, -every);
        }
        let mut ttfts = vec![(0.0, 0_u64); OverTime::PARTS];
        for row in self.rows.iter().filter(|row| row.first_token) {
            let (sum, count) = &mut ttfts[part(self.arrivals[self.row_place(row)], end)];
            *sum += float(row.ttft());
            *count += 1;
        }
        let mean =
            |(sum, count): (f64, u64)| (count > 0).then(|| rounded(sum / float(count) / 1e6));
        let waits = waiting.parts();
        let running = inside.parts().into_iter().zip(&waits);
        Some(OverTime {
            seconds: Span::from_nanos(end).as_secs_f64(),
            ttft_ms: ttfts.into_iter().map(mean).collect(),
            running: running.map(|(inside, waits)| rounded((inside - waits).max(0.0))).collect(),
            waiting: waits,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_level_is_the_average_of_each_part() {
        let mut level = Level::new(600);
        // One from 15 to 35, and another from 30 on.
        for (at, more) in [(15, 1.0), (35, -1.0), (30, 1.0), (600, -1.0)] {
            level.add(at, more);
        }
        let parts = level.parts();
        assert_eq!(parts[..5], [0.0, 0.5, 1.0, 1.5, 1.0]);
        assert!(parts[5..].iter().all(|&part| (part - 1.0).abs() < 1e-9), "{parts:?}");
        assert_eq!((part(0, 600), part(599, 600), part(600, 600)), (0, 59, 59));
    }
}
