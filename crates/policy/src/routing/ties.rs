//! How equally good instances are told apart.
//!
//! Used by every policy that takes the least or the most of something. The random choice comes from
//! the request's own dice and is drawn only if there is a tie, so breaking ties never disturbs
//! anything else.

use crate::view::{ClusterView, InstanceView};
use blis_core::{Dice, InstanceId, Param, Values};

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

    /// The instance of which `of` is the least.
    ///
    /// # Panics
    /// If there is no instance.
    pub fn least<T: Ord + Copy>(
        self,
        cluster: &ClusterView<'_>,
        dice: &mut Dice,
        of: impl Fn(&InstanceView) -> T + Copy,
    ) -> InstanceId {
        let all = cluster.instances.iter().map(of);
        let least = all.clone().min().expect("there is an instance");
        let best = all.enumerate().filter(|(_, amount)| *amount == least).map(|(index, _)| index);
        cluster.instances[self.choose(best, dice)].id
    }

    /// One of the indices of `best`.
    ///
    /// # Panics
    /// If `best` is empty: there is always an instance.
    pub fn choose(self, mut best: impl Iterator<Item = usize> + Clone, dice: &mut Dice) -> usize {
        let skip = self.skip(best.clone().count(), dice);
        best.nth(skip).expect("one instance at least is as good as the best")
    }

    /// How many of `tied` instances, in order, are passed over before the one that is taken.
    pub fn skip(self, tied: usize, dice: &mut Dice) -> usize {
        match self {
            Ties::Random if tied > 1 => dice.below(tied),
            _ => 0,
        }
    }
}
