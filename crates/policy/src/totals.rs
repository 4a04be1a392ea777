//! A number for each instance, kept so that the highest are found without a look at each.
//!
//! Of every stretch of instances the highest number is kept beside them. To change one number costs
//! a look at its stretch at most, and to find the highest a look at one number a stretch.

use std::ops::Deref;

/// Instances in a stretch: about the square root of a large cluster.
const STRETCH: usize = 32;

/// A number for each instance, none of them NaN.
#[derive(Clone, Debug, Default)]
pub struct Totals {
    values: Vec<f64>,
    /// The highest of each stretch.
    peaks: Vec<f64>,
}

impl Totals {
    /// Makes them `size` numbers and lets `write` write all of them.
    pub fn fill(&mut self, size: usize, write: impl FnOnce(&mut [f64])) {
        self.values.resize(size, 0.0);
        write(&mut self.values);
        self.peaks.resize(size.div_ceil(STRETCH), 0.0);
        for (peak, values) in self.peaks.iter_mut().zip(self.values.chunks(STRETCH)) {
            *peak = highest(values);
        }
    }

    /// Replaces one of them.
    pub fn set(&mut self, index: usize, value: f64) {
        let before = std::mem::replace(&mut self.values[index], value);
        let stretch = index / STRETCH;
        let peak = self.peaks[stretch];
        if value >= peak {
            self.peaks[stretch] = value;
        } else if before >= peak {
            self.peaks[stretch] = highest(self.stretch(stretch));
        }
    }

    /// The highest; negative infinity if there is none.
    pub fn highest(&self) -> f64 {
        highest(&self.peaks)
    }

    /// The place of one that has the highest; told how many have, `choose` says which, from 0.
    ///
    /// # Panics
    /// If there are not so many.
    pub fn pick_highest(&self, choose: impl FnOnce(usize) -> usize) -> usize {
        let highest = self.highest();
        let stretches = || self.peaks.iter().enumerate().filter(|(_, peak)| **peak >= highest);
        let ties =
            |stretch| self.stretch(stretch).iter().filter(|value| **value >= highest).count();
        let mut n = choose(stretches().map(|(stretch, _)| ties(stretch)).sum());
        for (stretch, _) in stretches() {
            for (place, _) in (stretch * STRETCH..)
                .zip(self.stretch(stretch))
                .filter(|(_, value)| **value >= highest)
            {
                if n == 0 {
                    return place;
                }
                n -= 1;
            }
        }
        panic!("fewer instances than that have the highest number")
    }

    /// Whether other places have numbers of `bound` at least than those of `others`, as many, that
    /// have `other_bound` at least.
    pub fn differ(&self, bound: f64, others: &Totals, other_bound: f64) -> bool {
        self.peaks.iter().zip(&others.peaks).enumerate().any(|(stretch, (peak, other_peak))| {
            (*peak >= bound || *other_peak >= other_bound)
                && differ(self.stretch(stretch), bound, others.stretch(stretch), other_bound)
        })
    }

    fn stretch(&self, stretch: usize) -> &[f64] {
        let first = stretch * STRETCH;
        &self.values[first..self.values.len().min(first + STRETCH)]
    }
}

impl From<Vec<f64>> for Totals {
    fn from(values: Vec<f64>) -> Totals {
        let mut totals = Totals::default();
        totals.fill(values.len(), |all| all.copy_from_slice(&values));
        totals
    }
}

impl Deref for Totals {
    type Target = [f64];

    fn deref(&self) -> &[f64] {
        &self.values
    }
}

/// The greatest of `values`, four at a time: over a thousand instances this is what a decision
/// costs.
pub(crate) fn highest(values: &[f64]) -> f64 {
    let higher = |a: f64, b: f64| if b > a { b } else { a };
    let mut lanes = [f64::NEG_INFINITY; 4];
    let (fours, rest) = values.as_chunks::<4>();
    for four in fours {
        for (lane, value) in lanes.iter_mut().zip(four) {
            *lane = higher(*lane, *value);
        }
    }
    lanes.iter().chain(rest).copied().fold(f64::NEG_INFINITY, higher)
}

/// Whether other places have `values` of `bound` at least than have `others` of `other_bound`.
pub(crate) fn differ(values: &[f64], bound: f64, others: &[f64], other_bound: f64) -> bool {
    // Counted to the end, not looked for: without a way out it takes several at a time.
    let both = values.iter().zip(others);
    both.filter(|(a, b)| (**a >= bound) != (**b >= other_bound)).count() > 0
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn the_highest_are_found_whatever_was_changed(
            start in prop::collection::vec(0..9_u8, 1..100),
            changes in prop::collection::vec((0..100_usize, 0..12_u8), 0..60),
        ) {
            let mut plain: Vec<f64> = start.iter().map(|value| f64::from(*value)).collect();
            let mut totals = Totals::from(plain.clone());
            for (place, value) in changes {
                let place = place % plain.len();
                plain[place] = f64::from(value);
                totals.set(place, f64::from(value));
                let highest = plain.iter().copied().fold(f64::NEG_INFINITY, f64::max);
                prop_assert_eq!(totals.highest().to_bits(), highest.to_bits());
                let tied = (0..plain.len()).filter(|place| plain[*place] >= highest);
                let count = tied.clone().count();
                for (n, place) in tied.enumerate() {
                    let picked = totals.pick_highest(|ties| {
                        assert_eq!(ties, count);
                        n
                    });
                    prop_assert_eq!(picked, place);
                }
                for bound in [highest, highest - 1.0, highest - 3.5] {
                    let start: Vec<f64> = start.iter().map(|value| f64::from(*value)).collect();
                    let both = plain.iter().zip(&start);
                    let differ = both.filter(|(a, b)| (**a >= bound) != (**b >= 5.0)).count() > 0;
                    prop_assert_eq!(totals.differ(bound, &start.into(), 5.0), differ);
                }
            }
            prop_assert_eq!(&totals[..], &plain[..]);
        }
    }
}
