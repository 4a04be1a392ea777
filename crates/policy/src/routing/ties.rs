//! How equally good instances are told apart.
//!
//! Used by `least-loaded` and `max-score`. The random choice comes from the request's own dice and
//! is drawn only if there is a tie, so breaking ties never disturbs anything else.

use blis_core::{Dice, Param, Values};

/// The parameter `ties`, whose value [`Ties::of`] reads.
pub const PARAM: Param =
    Param::choice("ties", &["random", "lowest-index"]).help("How to break ties");

/// How equally good instances are told apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ties {
    /// Each with the same chance.
    Random,
    /// The first.
    LowestIndex,
}

impl Ties {
    /// The value of the parameter [`PARAM`].
    pub fn of(values: &Values) -> Ties {
        if values.choice(PARAM.name) == "random" { Ties::Random } else { Ties::LowestIndex }
    }

    /// One of the indices of `best`.
    ///
    /// # Panics
    /// If `best` is empty: there is always an instance.
    pub fn choose(self, mut best: impl Iterator<Item = usize> + Clone, dice: &mut Dice) -> usize {
        let skip = match self {
            Ties::LowestIndex => 0,
            Ties::Random => match best.clone().count() {
                0 | 1 => 0,
                tied => dice.below(tied),
            },
        };
        best.nth(skip).expect("one instance at least is as good as the best")
    }
}
