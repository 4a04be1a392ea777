//! `max-score`: the best instance.
//!
//! **Prefers** the highest total score.
//!
//! **Reads** total scores only.
//!
//! **Parameters** `ties`: which of several instances with exactly the highest score is taken.
//!
//! **Origin** llm-d's max-score picker, which also spreads ties at random.

use crate::prelude::*;
use crate::routing::ties::{self, Ties};

/// How `max-score` introduces itself.
pub const SPEC: Spec<dyn Picker> = Spec {
    name: "max-score",
    help: "Picks the instance with the highest total score",
    params: &[ties::PARAM],
    ..Spec::built_by(|values, _| Box::new(MaxScore { ties: Ties::of(values) }))
};

/// The instance with the highest total score.
#[derive(Clone, Copy, Debug)]
pub struct MaxScore {
    ties: Ties,
}

impl Picker for MaxScore {
    fn pick(&mut self, scores: &Totals, dice: &mut Dice) -> usize {
        // A tie is exact equality: nearly equal scores differ.
        scores.pick_highest(|ties| self.ties.skip(ties, dice))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::view::examples::dice;

    #[test]
    fn the_highest_score_wins_however_small_the_lead() {
        let mut picker = MaxScore { ties: Ties::Random };
        for key in 0..50 {
            assert_eq!(picker.pick(&vec![0.5, 0.5 + f64::EPSILON, 0.5].into(), &mut dice(key)), 1);
        }
    }

    #[test]
    fn exact_ties_are_spread_evenly_or_go_to_the_first_as_asked() {
        let mut picked = [0_u32; 3];
        let [ends, last] = [[0.7, 0.1, 0.7], [0.1, 0.7, 0.7]].map(|all| Totals::from(all.to_vec()));
        for key in 0..2_000 {
            picked[MaxScore { ties: Ties::Random }.pick(&ends, &mut dice(key))] += 1;
            let first = MaxScore { ties: Ties::LowestIndex }.pick(&last, &mut dice(key));
            assert_eq!(first, 1);
        }
        assert_eq!(picked[1], 0);
        assert!((900..1_100).contains(&picked[0]), "{picked:?}");
    }
}
