//! `random`: any of the best instances, with the same chance.
//!
//! **Prefers** none of the `top` instances with the highest total scores to another.
//!
//! **Reads** total scores only.
//!
//! **Parameters** `top`: how many of the best are drawn from; `auto` is all of them, so that only
//! filters matter. Of instances with equal scores the first count as better.
//!
//! **Origin** llm-d's random picker, which draws from all; drawing from a few trades some score for
//! less herding on stale signals.

use crate::prelude::*;

/// How `random` introduces itself.
pub const SPEC: Spec<dyn Picker> = Spec {
    name: "random",
    help: "Picks uniformly among the instances with the highest total scores",
    params: &[Param::int_or_auto("top", 1..=1_000_000, "instances")
        .help("Number of best instances to draw from; auto: all")],
    ..Spec::built_by(|values, _| {
        let top = values.int_or_auto("top");
        let top = top.map_or(usize::MAX, |top| usize::try_from(top).unwrap_or(usize::MAX));
        Box::new(Random { top, order: Vec::new() })
    })
};

/// Any of the best instances.
#[derive(Clone, Debug)]
pub struct Random {
    top: usize,
    /// Kept to save an allocation.
    order: Vec<usize>,
}

impl Picker for Random {
    fn pick(&mut self, scores: &Totals, dice: &mut Dice) -> usize {
        if self.top >= scores.len() {
            return dice.below(scores.len());
        }
        let Random { top, order } = self;
        order.clear();
        order.extend(0..scores.len());
        let better =
            |a: &usize, b: &usize| scores[*b].total_cmp(&scores[*a]).then_with(|| a.cmp(b));
        order.select_nth_unstable_by(*top - 1, better);
        // Selecting leaves the best in any order; the draw must not depend on it.
        order[..*top].sort_unstable();
        order[dice.below(*top)]
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::view::examples::dice;

    fn picked(top: usize, scores: &[f64]) -> Vec<u32> {
        let mut picker = Random { top, order: Vec::new() };
        let scores = Totals::from(scores.to_vec());
        let mut picked = vec![0; scores.len()];
        for key in 0..6_000 {
            picked[picker.pick(&scores, &mut dice(key))] += 1;
        }
        picked
    }

    #[test]
    fn the_best_few_are_taken_equally_often_and_the_others_never() {
        let picked = picked(2, &[0.1, 0.9, 0.5, 0.4]);
        assert_eq!((picked[0], picked[3]), (0, 0));
        assert!((2_800..3_200).contains(&picked[1]), "{picked:?}");
    }

    #[test]
    fn without_a_limit_scores_do_not_matter() {
        assert!(picked(usize::MAX, &[0.0, 1.0, 0.0]).iter().all(|n| (1_800..2_200).contains(n)));
    }

    #[test]
    fn of_equal_scores_the_first_are_the_best() {
        let picked = picked(2, &[0.5; 4]);
        assert_eq!((picked[2], picked[3]), (0, 0));
        assert!(picked[0] > 0 && picked[1] > 0);
    }
}
