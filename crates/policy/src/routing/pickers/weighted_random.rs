//! `weighted-random`: good instances more often than bad ones.
//!
//! **Prefers** each instance with a probability proportional to its total score; if all scores are
//! zero, every instance with the same.
//!
//! **Reads** total scores only.
//!
//! **Parameters** none.
//!
//! **Origin** llm-d's weighted-random picker: it avoids the herding of several routers that see the
//! same stale signals.

use crate::prelude::*;

/// How `weighted-random` introduces itself.
pub const SPEC: Spec<dyn Picker> = Spec {
    name: "weighted-random",
    help: "Picks at random, with probability proportional to the total score",
    ..Spec::built_by(|_, _| Box::new(WeightedRandom))
};

/// An instance at random, in proportion to its total score.
#[derive(Clone, Copy, Debug)]
pub struct WeightedRandom;

impl Picker for WeightedRandom {
    fn pick(&mut self, scores: &Totals, dice: &mut Dice) -> usize {
        let total: f64 = scores.iter().sum();
        if total <= 0.0 {
            return dice.below(scores.len());
        }
        let mut left = dice.unit() * total;
        let mut last = 0;
        for (index, score) in scores.iter().enumerate().filter(|(_, score)| **score > 0.0) {
            if left < *score {
                return index;
            }
            left -= score;
            last = index;
        }
        // Rounding may leave a crumb; it belongs to the last instance that could have been taken.
        last
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::view::examples::dice;

    fn shares(scores: &[f64]) -> Vec<u32> {
        let scores = Totals::from(scores.to_vec());
        let mut picked = vec![0; scores.len()];
        for key in 0..10_000 {
            picked[WeightedRandom.pick(&scores, &mut dice(key))] += 1;
        }
        picked
    }

    #[test]
    fn shares_are_proportional_to_scores() {
        let picked = shares(&[0.1, 0.0, 0.3]);
        assert_eq!(picked[1], 0);
        assert!((2_350..2_650).contains(&picked[0]), "{picked:?}");
    }

    #[test]
    fn without_any_score_the_choice_is_uniform() {
        assert!(shares(&[0.0; 4]).iter().all(|n| (2_350..2_650).contains(n)));
    }
}
