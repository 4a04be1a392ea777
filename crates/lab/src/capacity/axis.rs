//! The ladder that is climbed: each rung is harder than the one below it.
//!
//! Rungs do not depend on where a search starts, so that seeds, strategies and repeated searches
//! meet at the same scenarios, whose runs are then shared.

use super::Vary;
use blis_core::math::{count, float, ln, pow};

/// Rates from one in a million seconds to ten million a second.
const DECADES: (i64, i64) = (-6, 7);
/// The most instances that are tried.
pub(super) const MOST_INSTANCES: i64 = 1_024;

/// A ladder.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Axis {
    vary: Vary,
    /// Rungs from a rate to ten times as much.
    per_decade: i64,
}

impl Axis {
    /// A ladder whose rungs are half of `precision` apart.
    pub(super) fn new(vary: Vary, precision: f64) -> Axis {
        let rungs = std::f64::consts::LN_10 / ln(1.0 + 0.5 * precision);
        Axis { vary, per_decade: whole(rungs.ceil()) }
    }

    /// The value at `rung`: a rate to four digits, or a number of instances.
    pub(super) fn value(&self, rung: i64) -> f64 {
        match self.vary {
            Vary::Rate => {
                let rate = pow(10.0, signed(rung) / signed(self.per_decade));
                format!("{rate:.3e}").parse().expect("a number reads back")
            }
            Vary::Instances => signed(-rung),
        }
    }

    /// The rung nearest to `value`.
    pub(super) fn rung(&self, value: f64) -> i64 {
        let rung = match self.vary {
            Vary::Rate => {
                let decades = ln(value.max(1e-300)) / std::f64::consts::LN_10;
                rounded(decades * signed(self.per_decade))
            }
            Vary::Instances => -rounded(value),
        };
        rung.clamp(self.lowest(), self.highest())
    }

    /// The easiest rung.
    pub(super) fn lowest(&self) -> i64 {
        match self.vary {
            Vary::Rate => DECADES.0 * self.per_decade,
            Vary::Instances => -MOST_INSTANCES,
        }
    }

    /// The hardest rung.
    pub(super) fn highest(&self) -> i64 {
        match self.vary {
            Vary::Rate => DECADES.1 * self.per_decade,
            Vary::Instances => -1,
        }
    }

    /// The rung that is about twice as hard, or half as hard for a negative `direction`.
    pub(super) fn doubled(&self, rung: i64, direction: i64) -> i64 {
        let factor = if direction > 0 { 2.0 } else { 0.5 };
        let factor = if self.vary == Vary::Rate { factor } else { 1.0 / factor };
        let next = self.rung(self.value(rung) * factor);
        // Half of one instance is one instance.
        if next == rung { (rung + direction).clamp(self.lowest(), self.highest()) } else { next }
    }

    pub(super) fn vary(&self) -> Vary {
        self.vary
    }
}

/// A small whole number as a float.
fn signed(number: i64) -> f64 {
    let size = float(number.unsigned_abs());
    if number < 0 { -size } else { size }
}

fn whole(size: f64) -> i64 {
    i64::try_from(count(size)).unwrap_or(i64::MAX)
}

fn rounded(value: f64) -> i64 {
    let size = whole(value.abs().round());
    if value < 0.0 { -size } else { size }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rungs_are_half_a_precision_apart_and_read_back() {
        let axis = Axis::new(Vary::Rate, 0.02);
        let mut last = axis.value(-900);
        for rung in -899..900 {
            let value = axis.value(rung);
            let step = value / last - 1.0;
            assert!(step > 0.008 && step < 0.012, "{last} to {value}");
            assert_eq!(axis.rung(value), rung, "{value}");
            last = value;
        }
        assert!((axis.value(0) - 1.0).abs() < 1e-12);
        let twice = axis.value(axis.doubled(0, 1));
        assert!((twice - 2.0).abs() < 0.02, "{twice}");
    }

    #[test]
    fn fewer_instances_are_harder() {
        let axis = Axis::new(Vary::Instances, 0.02);
        let rungs = [-4, -3, -2, -1].map(|rung| axis.value(rung).to_string());
        assert_eq!(rungs, ["4", "3", "2", "1"]);
        assert_eq!((axis.doubled(-4, 1), axis.doubled(-4, -1)), (-2, -8));
        assert_eq!((axis.doubled(-1, 1), axis.doubled(-1, -1)), (-1, -2));
        assert_eq!(axis.rung(1e9), -MOST_INSTANCES);
    }
}
