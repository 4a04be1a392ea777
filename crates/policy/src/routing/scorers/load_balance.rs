//! `load-balance`: how empty an instance is, on its own scale.
//!
//! **Prefers** little load: 1 / (1 + load).
//!
//! **Reads** `queue_depth` and `running` (as old as the last poll) and `unseen` (live).
//!
//! **Parameters** none.
//!
//! **Origin** the Go BLIS scorer of that name. Unlike `queue-depth` it does not look at the other
//! instances, and it hardly tells two busy instances apart.

use crate::prelude::*;
use crate::routing::scorers::plain::{Absolute, Score};

/// How `load-balance` introduces itself.
pub const SPEC: Spec<dyn Scorer> = Spec {
    name: "load-balance",
    alias: Some("lb"),
    help: "Prefers instances with few waiting and running requests (absolute scale)",
    needs: |_| Needs { load: true, ..Needs::NONE },
    ..Spec::built_by(|_, _| Absolute::<LoadBalance>::boxed())
};

/// 1 / (1 + load).
#[derive(Clone, Copy, Debug)]
pub struct LoadBalance;

impl Score for LoadBalance {
    fn score(view: &InstanceView) -> f64 {
        1.0 / (1.0 + f64::from(view.load()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::view::examples::scores;

    #[test]
    fn the_score_is_one_when_idle_and_halves_with_the_first_request() {
        assert_eq!(
            scores(&mut *Absolute::<LoadBalance>::boxed(), &[], &[0, 1, 3]),
            [1.0, 0.5, 0.25]
        );
    }
}
