//! The units of signals, and what becomes of them.

use std::fmt;

/// Exponents of the base units.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Unit([i16; 4]);

const NAMES: [&str; 4] = ["tokens", "requests", "blocks", "ms"];

/// A number without a unit, such as a share.
pub const PLAIN: Unit = Unit([0; 4]);
/// Tokens.
pub const TOKENS: Unit = Unit([1, 0, 0, 0]);
/// Requests.
pub const REQUESTS: Unit = Unit([0, 1, 0, 0]);
/// KV blocks.
pub const BLOCKS: Unit = Unit([0, 0, 1, 0]);
/// Milliseconds.
pub const MS: Unit = Unit([0, 0, 0, 1]);

impl Unit {
    /// Whether it counts tokens or measures time, which grow further than counts of other things.
    pub(super) const fn is_an_amount(self) -> bool {
        self.0[0] != 0 || self.0[3] != 0
    }

    /// The unit of a product.
    #[must_use]
    pub fn times(self, other: Unit) -> Unit {
        Unit(std::array::from_fn(|at| self.0[at] + other.0[at]))
    }

    /// The unit of a quotient.
    #[must_use]
    pub fn over(self, other: Unit) -> Unit {
        Unit(std::array::from_fn(|at| self.0[at] - other.0[at]))
    }
}

/// `tokens x requests`, `ms / tokens`, `no unit`.
impl fmt::Display for Unit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let side = |sign: i16| {
            let times = |(name, power): (&&str, &i16)| {
                vec![(*name).to_owned(); usize::try_from(power * sign).unwrap_or(0)]
            };
            NAMES.iter().zip(&self.0).flat_map(times).collect::<Vec<String>>().join(" x ")
        };
        match (side(1), side(-1)) {
            (above, below) if above.is_empty() && below.is_empty() => f.write_str("no unit"),
            (above, below) if below.is_empty() => f.write_str(&above),
            (above, below) if above.is_empty() => write!(f, "1 / {below}"),
            (above, below) => write!(f, "{above} / {below}"),
        }
    }
}
