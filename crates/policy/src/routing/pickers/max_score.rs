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
    fn pick(&mut self, scores: &[f64], dice: &mut Dice) -> usize {
        let higher = |a: f64, b: f64| if b > a { b } else { a };
        let highest = scores.iter().copied().fold(f64::NEG_INFINITY, higher);
        #[expect(clippy::float_cmp, reason = "a tie is exact equality: nearly equal scores differ")]
        let is_best = |(_, score): &(usize, &f64)| **score == highest;
        let best = scores.iter().enumerate().filter(is_best).map(|(index, _)| index);
        self.ties.choose(best, dice)
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
            assert_eq!(picker.pick(&[0.5, 0.5 + f64::EPSILON, 0.5], &mut dice(key)), 1);
        }
    }

    #[test]
    fn exact_ties_are_spread_evenly_or_go_to_the_first_as_asked() {
        let mut picked = [0_u32; 3];
        for key in 0..2_000 {
            picked[MaxScore { ties: Ties::Random }.pick(&[0.7, 0.1, 0.7], &mut dice(key))] += 1;
            let first = MaxScore { ties: Ties::LowestIndex }.pick(&[0.1, 0.7, 0.7], &mut dice(key));
            assert_eq!(first, 1);
        }
        assert_eq!(picked[1], 0);
        assert!((900..1_100).contains(&picked[0]), "{picked:?}");
    }
}
