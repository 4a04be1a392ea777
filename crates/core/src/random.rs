//! Random streams, named by purpose and keyed by index, never by draw order.
//!
//! Every draw is a function of (seed, purpose, key): arrivals and lengths are the same under every
//! policy (common random numbers), and no policy can disturb another's draws. The generator is
//! xoshiro256++ by name: the facade generators of `rand` promise no stable output.

use crate::math::{float, ln, pow};
use rand_core::{Rng, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;

/// A stream of random numbers for one purpose and one key.
#[derive(Clone, Debug)]
pub struct Dice {
    generator: Xoshiro256PlusPlus,
}

/// What a stream is for. The numbers are part of the meaning of a seed: never renumber.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u64)]
pub enum Purpose {
    /// Gaps between arrivals.
    Arrival = 1,
    /// Prompt lengths.
    InputLength = 2,
    /// Output lengths.
    OutputLength = 3,
    /// A router's random choice, including ties.
    Routing = 4,
    /// An admission policy's random choice.
    Admission = 5,
    /// Which sessions or requests a sample keeps.
    Sampling = 6,
    /// Phases of the pollers of instance signals.
    SignalPhase = 7,
    /// How many rounds a session has.
    Rounds = 8,
    /// How long a client thinks before its next round.
    Think = 9,
    /// What an optimiser proposes.
    Search = 10,
    /// How wrong a latency prediction of the gateway is.
    Prediction = 11,
    /// Which replica of the gateway a request comes to.
    Gateway = 12,
    /// How much of a draft is accepted.
    Acceptance = 13,
    /// Which values a bootstrap draws.
    Resampling = 20,
    /// In which order the components of a strategy are added.
    Permutation = 21,
}

impl Dice {
    /// The stream of `purpose` and `key` under `seed`.
    pub fn new(seed: u64, purpose: Purpose, key: u64) -> Dice {
        let mixed = mix(mix(seed ^ 0x9E37_79B9_7F4A_7C15, purpose as u64), key);
        Dice { generator: Xoshiro256PlusPlus::seed_from_u64(mixed) }
    }

    /// Uniform over all 64-bit values.
    pub fn bits(&mut self) -> u64 {
        self.generator.next_u64()
    }

    /// Uniform in 0 <= x < 1, with 53 random bits.
    pub fn unit(&mut self) -> f64 {
        float(self.bits() >> 11) / float(1 << 53)
    }

    /// Uniform in 0 < x <= 1, safe to take the logarithm of.
    pub fn unit_open(&mut self) -> f64 {
        (float(self.bits() >> 11) + 1.0) / float(1 << 53)
    }

    /// Uniform in 0..n, by multiplication; the bias is below n / 2^64.
    ///
    /// # Panics
    /// If `n` is 0.
    pub fn below(&mut self, n: usize) -> usize {
        assert!(n > 0, "cannot choose among nothing");
        let wide = u128::from(self.bits()) * n as u128;
        usize::try_from(wide >> 64).expect("the product's high half is below n")
    }

    /// Exponential with mean 1.
    pub fn exponential(&mut self) -> f64 {
        -ln(self.unit_open())
    }

    /// Standard normal, by the polar method.
    pub fn normal(&mut self) -> f64 {
        loop {
            let u = 2.0 * self.unit() - 1.0;
            let v = 2.0 * self.unit() - 1.0;
            let s = u * u + v * v;
            if s > 0.0 && s < 1.0 {
                return u * libm::sqrt(-2.0 * ln(s) / s);
            }
        }
    }

    /// Gamma with the given shape (> 0) and mean `shape`, by Marsaglia and Tsang.
    pub fn gamma(&mut self, shape: f64) -> f64 {
        if shape < 1.0 {
            let boost = pow(self.unit_open(), 1.0 / shape);
            return self.gamma(shape + 1.0) * boost;
        }
        let offset = shape - 1.0 / 3.0;
        let scale = 1.0 / libm::sqrt(9.0 * offset);
        loop {
            let x = self.normal();
            let root = 1.0 + scale * x;
            if root <= 0.0 {
                continue;
            }
            let cube = root * root * root;
            let u = self.unit_open();
            if u < 1.0 - 0.0331 * x * x * x * x
                || ln(u) < 0.5 * x * x + offset * (1.0 - cube + ln(cube))
            {
                return offset * cube;
            }
        }
    }
}

/// Folds `value` into `state`: the high and low halves of a 128-bit product, xored. Good avalanche,
/// one multiply.
#[expect(clippy::cast_possible_truncation, reason = "the two halves of the product are wanted")]
pub const fn mix(state: u64, value: u64) -> u64 {
    let product = (state ^ 0x2D35_8DCC_AA6C_78A5) as u128 * (value ^ 0x8BB8_4B93_962E_ACC9) as u128;
    (product as u64) ^ ((product >> 64) as u64) ^ value.rotate_left(32)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_keys_give_equal_draws_and_different_keys_do_not() {
        let draw = |seed, purpose, key| Dice::new(seed, purpose, key).bits();
        assert_eq!(draw(1, Purpose::Arrival, 7), draw(1, Purpose::Arrival, 7));
        assert_ne!(draw(1, Purpose::Arrival, 7), draw(2, Purpose::Arrival, 7));
        assert_ne!(draw(1, Purpose::Arrival, 7), draw(1, Purpose::InputLength, 7));
        assert_ne!(draw(1, Purpose::Arrival, 7), draw(1, Purpose::Arrival, 8));
    }

    #[test]
    fn first_draws_of_neighbouring_keys_are_uniform() {
        let n = 100_000;
        let mean =
            (0..n).map(|key| Dice::new(42, Purpose::Arrival, key).unit()).sum::<f64>() / float(n);
        assert!((mean - 0.5).abs() < 0.005, "mean of first draws is {mean}");
    }

    #[test]
    fn samplers_have_the_right_mean_and_variance() {
        let check = |name: &str, mean: f64, variance: f64, draw: &mut dyn FnMut(u64) -> f64| {
            let n = 200_000;
            let samples: Vec<f64> = (0..n).map(draw).collect();
            let m = samples.iter().sum::<f64>() / float(n);
            let v = samples.iter().map(|x| (x - m) * (x - m)).sum::<f64>() / float(n);
            assert!((m - mean).abs() < 0.02 * (1.0 + mean), "{name}: mean {m}, expected {mean}");
            assert!((v / variance - 1.0).abs() < 0.05, "{name}: variance {v}, expected {variance}");
        };
        let dice = |key| Dice::new(3, Purpose::Arrival, key);
        check("exponential", 1.0, 1.0, &mut |k| dice(k).exponential());
        check("normal", 0.0, 1.0, &mut |k| dice(k).normal());
        check("gamma 0.25", 0.25, 0.25, &mut |k| dice(k).gamma(0.25));
        check("gamma 4", 4.0, 4.0, &mut |k| dice(k).gamma(4.0));
    }

    #[test]
    fn below_reaches_every_value_and_no_other() {
        let mut dice = Dice::new(1, Purpose::Routing, 0);
        let mut seen = [0_u32; 5];
        for _ in 0..10_000 {
            seen[dice.below(5)] += 1;
        }
        assert!(seen.iter().all(|&n| (1_800..2_200).contains(&n)), "{seen:?}");
    }
}
