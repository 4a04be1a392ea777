//! `fewest-blocks`: the request that holds the fewest KV blocks.
//!
//! **Prefers** to lose as little KV as it can: whoever holds the fewest blocks, of equals the one
//! scheduled last. If that does not make room enough, the next one goes as well. The request that
//! holds the most is never preempted, so there always is one that ends. (Preempting whoever frees
//! the most takes fewer victims, but two long prompts can then throw each other out for ever.)
//!
//! **Reads** the blocks that each request holds, shared ones included, and the running order (live;
//! the engine asks itself).
//!
//! **Parameters** none.
//!
//! **Origin** ours: the cheapest victim to compute again, if nothing of it stays cached.

use crate::prelude::*;

/// How `fewest-blocks` introduces itself.
pub const SPEC: Spec<dyn Preempt> = Spec {
    name: "fewest-blocks",
    help: "Preempts the running request that holds the fewest KV blocks",
    ..Spec::built_by(|_, _| Box::new(FewestBlocks))
};

/// The fewest blocks, then the last.
#[derive(Clone, Copy, Debug)]
pub struct FewestBlocks;

impl Preempt for FewestBlocks {
    fn victim(&self, running: &[RunningView]) -> usize {
        super::last_least(running, |a, b| a.blocks.cmp(&b.blocks))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::view::examples::running;

    fn victim(blocks: &[u32]) -> usize {
        let views: Vec<RunningView> =
            blocks.iter().map(|&blocks| RunningView { blocks, ..running() }).collect();
        FewestBlocks.victim(&views)
    }

    #[test]
    fn the_fewest_blocks_go_first_and_of_equals_the_last() {
        assert_eq!(victim(&[9, 2, 30]), 1);
        assert_eq!(victim(&[9, 2, 2, 30]), 2);
        assert_eq!(victim(&[4]), 0);
    }
}
