//! `power-of-two`: the less loaded of two instances drawn at random.
//!
//! **Prefers** the least load among a few instances that the request's dice draw; of equals the
//! first drawn.
//!
//! **Reads** `queue_depth` and `running` (as old as the last poll) and `unseen` (live), of the
//! instances drawn only.
//!
//! **Parameters** `choices`: how many different instances are drawn; 1 is `random`, all of them is
//! `least-loaded`.
//!
//! **Origin** the power of two choices (Mitzenmacher): most of the gain of looking at all, and no
//! herd of requests on the one instance that an old signal calls idle.

use crate::prelude::*;

/// The most instances that are drawn.
const MOST: usize = 16;

/// How `power-of-two` introduces itself.
pub const SPEC: Spec<dyn Router> = Spec {
    name: "power-of-two",
    help: "Draws two instances at random and picks the less loaded one",
    params: &[
        Param::int("choices", 1..=MOST as u64, 2, "instances").help("Number of instances drawn")
    ],
    needs: |_| Needs { load: true, ..Needs::NONE },
    ..Spec::built_by(|values, _| {
        let choices = usize::try_from(values.int("choices")).unwrap_or(MOST);
        Box::new(PowerOfTwo { choices, decided: false, by_load: 0 })
    })
};

/// The least loaded of a few instances drawn at random.
#[derive(Clone, Copy, Debug)]
pub struct PowerOfTwo {
    choices: usize,
    /// Whether loads decided the last choice.
    decided: bool,
    by_load: u64,
}

impl Router for PowerOfTwo {
    fn route(&mut self, _: &RequestView<'_>, cluster: &ClusterView<'_>, dice: &mut Dice) -> Choice {
        let mut drawn = [0; MOST];
        let drawn = draw(cluster.instances.len(), self.choices, dice, &mut drawn);
        let load = |at: &usize| cluster.instances[*at].load();
        let best = drawn.iter().copied().min_by_key(load).expect("one at least is drawn");
        self.decided = drawn.iter().any(|at| load(at) > load(&best));
        Choice::because(SPEC.name, cluster.instances[best].id)
    }

    fn sent(&mut self, _: &RequestView<'_>, _: InstanceId, _: Time) {
        self.by_load += u64::from(self.decided);
    }

    fn firings(&self, firings: &mut Firings) {
        firings.add(SPEC.name, "by-load", self.by_load);
    }
}

/// `count` different numbers below `n`, or all of them, by Floyd's method: a draw each.
fn draw<'a>(n: usize, count: usize, dice: &mut Dice, drawn: &'a mut [usize; MOST]) -> &'a [usize] {
    let count = count.min(n).min(MOST);
    for (at, last) in (n - count..n).enumerate() {
        let number = dice.below(last + 1);
        drawn[at] = if drawn[..at].contains(&number) { last } else { number };
    }
    &drawn[..count]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::view::examples::{NOTHING, cluster, dice, instances, request};

    fn sent(choices: usize, loads: &[u32]) -> Vec<u32> {
        let mut router = PowerOfTwo { choices, decided: false, by_load: 0 };
        let views = instances(loads);
        let mut sent = vec![0; loads.len()];
        for key in 0..6_000 {
            let choice = router.route(&request(&NOTHING), &cluster(&views), &mut dice(key));
            sent[choice.instance.index()] += 1;
        }
        sent
    }

    #[test]
    fn two_choices_never_take_the_busiest_and_take_others_by_their_rank() {
        // Of the 6 pairs of 4 instances, the best is in 3, the second best wins 2, the third 1.
        let sent = sent(2, &[5, 1, 9, 3]);
        assert_eq!(sent[2], 0);
        for (at, share) in [(1, 3), (3, 2), (0, 1)] {
            assert!(sent[at].abs_diff(1_000 * share) < 150, "{sent:?}");
        }
    }

    #[test]
    fn one_choice_is_random_and_all_choices_are_least_loaded() {
        assert!(sent(1, &[5, 1, 9]).iter().all(|n| (1_800..2_200).contains(n)));
        assert_eq!(sent(3, &[5, 1, 9]), [0, 6_000, 0]);
        assert_eq!(sent(16, &[5, 1, 9]), [0, 6_000, 0]);
    }

    #[test]
    fn numbers_drawn_are_different_and_all_are_drawn_alike() {
        let mut seen = [0_u32; 5];
        for key in 0..5_000 {
            let mut drawn = [0; MOST];
            let drawn = draw(5, 3, &mut dice(key), &mut drawn);
            assert!(drawn[0] != drawn[1] && drawn[1] != drawn[2] && drawn[0] != drawn[2]);
            for at in drawn {
                seen[*at] += 1;
            }
        }
        assert!(seen.iter().all(|n| (2_850..3_150).contains(n)), "{seen:?}");
    }
}
