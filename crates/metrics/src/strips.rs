//! What instances did over time, in few bins however long the run is.

use crate::fact::{Fact, Listener};
use crate::sample::float_sum;
use blis_core::math::float;
use blis_core::{InstanceId, Span, Time};

/// Most bins; beyond that each becomes twice as wide.
const MOST: u64 = 128;
const NARROWEST: Span = Span::from_micros(1_000);

/// What an instance did in a bin.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Moment {
    /// When the bin begins, in seconds.
    pub at: f64,
    /// Shares of the time, in the order of [`Strips::TIMES`]; the rest was idle.
    pub times: [f64; 4],
    /// Means while steps were under way, in the order of [`Strips::LEVELS`].
    pub levels: [f64; 3],
}

/// Sums over the nanoseconds of a bin.
#[derive(Clone, Copy, Debug, Default)]
struct Bin {
    times: [u64; 4],
    levels: [u128; 3],
    stepping: u64,
}

/// Hears the steps of a run and adds them up over time.
#[derive(Clone, Debug)]
pub struct Strips {
    width: Span,
    instances: Vec<Vec<Bin>>,
}

impl Default for Strips {
    fn default() -> Strips {
        Strips { width: NARROWEST, instances: Vec::new() }
    }
}

impl Strips {
    /// What the time goes to: steps with prefill, steps without, the host while the GPU has nothing
    /// to do, and copies that steps wait for.
    pub const TIMES: [&'static str; 4] = ["prefill", "decode", "host", "stalled"];
    /// What is there: requests, and blocks that they hold.
    pub const LEVELS: [&'static str; 3] = ["waiting", "running", "blocks"];

    /// What each instance did, in order of time.
    pub fn instances(&self) -> impl Iterator<Item = Vec<Moment>> {
        let width = self.width.as_nanos();
        let moment = move |(number, bin): (u64, &Bin)| {
            let [prefill, decode, host, stalled] = bin.times;
            // Nor has the GPU anything to do while a step waits for copies.
            let times = [prefill, decode, host.saturating_sub(stalled), stalled];
            let mean = |sum: u128| float_sum(sum) / float(bin.stepping.max(1));
            Moment {
                at: float(number * width) / 1e9,
                times: times.map(|nanos| float(nanos) / float(width)),
                levels: bin.levels.map(mean),
            }
        };
        self.instances.iter().map(move |bins| (0..).zip(bins).map(moment).collect())
    }

    /// Lets `add` add the part of `from..to` in each bin to it.
    fn spread(&mut self, instance: InstanceId, from: Time, to: Time, add: impl Fn(&mut Bin, u64)) {
        while to.as_nanos() > MOST * self.width.as_nanos() {
            self.widen();
        }
        let index = instance.index();
        self.instances.resize_with(self.instances.len().max(index + 1), Vec::new);
        let (bins, width) = (&mut self.instances[index], self.width.as_nanos());
        let (mut from, to) = (from.as_nanos(), to.as_nanos());
        while from < to {
            let bin = from / width;
            let end = to.min((bin + 1) * width);
            let place = usize::try_from(bin).expect("there are few");
            bins.resize_with(bins.len().max(place + 1), Bin::default);
            add(&mut bins[place], end - from);
            from = end;
        }
    }

    fn widen(&mut self) {
        self.width = self.width * 2;
        for bins in &mut self.instances {
            let both = bins.chunks(2).map(|pair| pair.iter().fold(Bin::default(), Bin::plus));
            *bins = both.collect();
        }
    }
}

impl Bin {
    fn plus(mut self, other: &Bin) -> Bin {
        for (sum, more) in self.times.iter_mut().zip(other.times) {
            *sum += more;
        }
        for (sum, more) in self.levels.iter_mut().zip(other.levels) {
            *sum += more;
        }
        self.stepping += other.stepping;
        self
    }
}

impl Listener for Strips {
    fn hear(&mut self, at: Time, fact: &Fact<'_>) {
        match *fact {
            Fact::Steps { instance, count, duration, gpu, batch, blocks_in_use, .. } => {
                let busy = gpu.min(duration).as_nanos();
                let kind = usize::from(batch.prefill_tokens == 0);
                let levels = [batch.waiting, batch.running, blocks_in_use].map(u128::from);
                self.spread(instance, at - duration * count, at, |bin, nanos| {
                    let computed = u128::from(nanos) * u128::from(busy);
                    let computed = computed / u128::from(duration.as_nanos().max(1));
                    let computed = u64::try_from(computed).expect("no more than all");
                    bin.times[kind] += computed;
                    bin.times[2] += nanos - computed;
                    bin.stepping += nanos;
                    for (sum, level) in bin.levels.iter_mut().zip(levels) {
                        *sum += level * u128::from(nanos);
                    }
                });
            }
            Fact::Stalled { instance, span } => {
                self.spread(instance, at, at + span, |bin, nanos| bin.times[3] += nanos);
            }
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fact::Batch;

    #[test]
    fn wider_bins_have_the_same_time_in_them() {
        let mut strips = Strips::default();
        let instance = InstanceId(1);
        let batch = Batch { decode_seqs: 3, running: 3, ..Batch::default() };
        // Half of each step is host time; a second of steps, a second without.
        for second in [1, 3, 5, 900] {
            let (duration, gpu) = (Span::from_micros(10_000), Span::from_micros(5_000));
            let (count, ahead, blocks_in_use) = (100, Span::ZERO, 7);
            let steps = Fact::Steps { instance, count, duration, ahead, gpu, batch, blocks_in_use };
            strips.hear(Time::from_micros(second * 1_000_000), &steps);
        }
        let all: Vec<Vec<Moment>> = strips.instances().collect();
        assert!(all[0].is_empty() && all[1].len() as u64 <= MOST, "{}", all[1].len());
        let width = strips.width.as_secs_f64();
        let sum = |at: usize| all[1].iter().map(|moment| moment.times[at] * width).sum::<f64>();
        let near = |found: f64, expected: f64| (found - expected).abs() < 1e-6;
        assert!(near(sum(0), 0.0) && near(sum(1), 2.0) && near(sum(2), 2.0) && near(sum(3), 0.0));
        let mut busy = all[1].iter().filter(|moment| moment.times[1] > 0.0);
        assert!(busy.all(|it| near(it.levels[1], 3.0) && near(it.levels[2], 7.0)));
    }
}
