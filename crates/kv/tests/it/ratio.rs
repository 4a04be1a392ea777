//! Fractions, for answers without rounding.

use std::cmp::Ordering;
use std::ops::{Add, Div, Mul, Sub};

/// A fraction in lowest terms; the denominator is above 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Ratio {
    above: i128,
    below: i128,
}

impl Ratio {
    pub(crate) const ZERO: Ratio = Ratio { above: 0, below: 1 };

    pub(crate) fn new(above: i128, below: i128) -> Ratio {
        let divisor = common_divisor(above.abs(), below.abs()) * below.signum();
        Ratio { above: above / divisor, below: below / divisor }
    }
}

fn common_divisor(a: i128, b: i128) -> i128 {
    if b == 0 { a } else { common_divisor(b, a % b) }
}

impl Add for Ratio {
    type Output = Ratio;
    fn add(self, other: Ratio) -> Ratio {
        Ratio::new(self.above * other.below + other.above * self.below, self.below * other.below)
    }
}

impl Sub for Ratio {
    type Output = Ratio;
    fn sub(self, other: Ratio) -> Ratio {
        self + Ratio { above: -other.above, ..other }
    }
}

impl Mul for Ratio {
    type Output = Ratio;
    fn mul(self, other: Ratio) -> Ratio {
        Ratio::new(self.above * other.above, self.below * other.below)
    }
}

impl Div for Ratio {
    type Output = Ratio;
    fn div(self, other: Ratio) -> Ratio {
        Ratio::new(self.above * other.below, self.below * other.above)
    }
}

impl PartialOrd for Ratio {
    fn partial_cmp(&self, other: &Ratio) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Ratio {
    fn cmp(&self, other: &Ratio) -> Ordering {
        (self.above * other.below).cmp(&(other.above * self.below))
    }
}
