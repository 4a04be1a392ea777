//! Relations between runs that must hold whatever the numbers are.

use crate::worlds::in_random_worlds;
use blis_sim::Pace;
use proptest::prelude::*;

#[test]
fn fast_forward_tells_the_same_facts_as_stepping() {
    let coverage = in_random_worlds(1_500, |world| {
        let fast = world.run();
        let slow = world.paced(Pace::Stepwise).run();
        for (a, b) in fast.facts.iter().zip(&slow.facts) {
            prop_assert_eq!(a, b, "the first fact that differs");
        }
        prop_assert_eq!(fast.facts.len(), slow.facts.len());
        prop_assert_eq!(&fast.closed, &slow.closed);
        prop_assert_eq!(&fast.outcome, &slow.outcome);
        Ok(fast)
    });
    coverage.guard(0.05);
}
