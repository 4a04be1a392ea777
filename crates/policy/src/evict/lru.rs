//! `lru`: the cached blocks that were used longest ago.
//!
//! **Prefers** to drop the run that was released first, from its end: a prefix outlives what
//! continues it.
//!
//! **Reads** the order of release (live; the engine asks itself).
//!
//! **Parameters** none.
//!
//! **Origin** vLLM's free block queue.

use crate::contract::{Evict, IdleRuns};
use crate::spec::Spec;
use crate::view::Needs;
use blis_core::runs::RunId;

/// How `lru` introduces itself.
pub const SPEC: Spec<dyn Evict> = Spec {
    name: "lru",
    alias: None,
    help: "Drops the cached blocks that were used longest ago",
    params: &[],
    needs: Needs::NONE,
    build: |_, _| Box::new(Lru),
};

/// The run that was released first.
#[derive(Clone, Copy, Debug)]
pub struct Lru;

impl Evict for Lru {
    fn victim(&mut self, idle: &dyn IdleRuns) -> RunId {
        idle.oldest()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::view::examples::prompt;
    use blis_core::runs::RunTree;

    struct Idle(RunId);

    impl IdleRuns for Idle {
        fn oldest(&self) -> RunId {
            self.0
        }
    }

    #[test]
    fn the_victim_is_the_run_that_was_released_first() {
        let mut tree = RunTree::default();
        tree.insert(None, prompt(&[1, 2]).prompt_blocks(16), 0, ());
        let oldest = tree.insert(None, prompt(&[3]).prompt_blocks(16), 0, ());
        assert_eq!(Lru.victim(&Idle(oldest)), oldest);
    }
}
