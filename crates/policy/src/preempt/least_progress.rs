//! `least-progress`: the request that has generated the fewest tokens.
//!
//! **Prefers** to take back the blocks of whoever has told its client least: fewest generated
//! tokens, then fewest computed ones, then scheduled last. Answers that are nearly done get done;
//! the one that is furthest is never preempted, so there always is one that ends.
//!
//! **Reads** generated and computed tokens, and the running order (live; the engine asks itself).
//! What is left of an answer is not known.
//!
//! **Parameters** none.
//!
//! **Origin** least attained service, turned round: who has attained most goes on.

use crate::prelude::*;

/// How `least-progress` introduces itself.
pub const SPEC: Spec<dyn Preempt> = Spec {
    name: "least-progress",
    help: "Preempts the running request that has generated the fewest tokens",
    ..Spec::built_by(|_, _| Box::new(LeastProgress))
};

/// The fewest generated tokens, then the fewest computed ones, then the last.
#[derive(Clone, Copy, Debug)]
pub struct LeastProgress;

impl Preempt for LeastProgress {
    fn victim(&self, running: &[RunningView]) -> usize {
        let progress = |view: &RunningView| (view.generated, view.computed_tokens);
        super::last_least(running, |a, b| progress(a).cmp(&progress(b)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::view::examples::running;

    fn victim(progress: &[(u32, u32)]) -> usize {
        let view = |&(generated, computed_tokens): &(u32, u32)| RunningView {
            computed_tokens,
            generated,
            ..running()
        };
        LeastProgress.victim(&progress.iter().map(view).collect::<Vec<_>>())
    }

    #[test]
    fn the_fewest_generated_tokens_go_first_whatever_the_prompt() {
        assert_eq!(victim(&[(7, 100), (3, 9_000), (50, 60)]), 1);
    }

    #[test]
    fn of_those_the_fewest_computed_tokens_then_the_last() {
        assert_eq!(victim(&[(0, 100), (0, 32), (0, 64), (4, 5)]), 1);
        assert_eq!(victim(&[(0, 32), (0, 32), (0, 64)]), 1);
    }
}
