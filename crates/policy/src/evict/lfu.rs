//! `lfu`: the cached blocks that were used least often.
//!
//! **Prefers** to drop the run that the fewest requests have used since it was computed; of equals,
//! the one that was released first.
//!
//! **Reads** how often a run was used (live; the engine asks itself). A preempted request that
//! comes back uses its blocks again.
//!
//! **Parameters** none.
//!
//! **Origin** least frequently used, by counts that last as long as the block does. Nothing ages,
//! so what was popular once stays for long.

use crate::prelude::*;

/// How `lfu` introduces itself.
pub const SPEC: Spec<dyn Evict> = Spec {
    name: "lfu",
    help: "Evicts the least frequently used blocks",
    ..Spec::built_by(|_, _| Box::new(Lfu))
};

/// A run is worth its uses. Whoever uses a run uses what it continues, so a prefix has no fewer.
#[derive(Clone, Copy, Debug)]
pub struct Lfu;

impl Evict for Lfu {
    fn worth(&self, ended: &UseView) -> f64 {
        f64::from(ended.uses)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::view::examples::used;

    #[test]
    fn a_run_that_was_used_more_often_is_worth_more_and_nothing_else_counts() {
        let worth = |uses, worth| Lfu.worth(&UseView { uses, worth, upto: uses, ..used() });
        assert!(worth(1, 0.0) < worth(2, 0.0) && worth(2, 0.0) < worth(u32::MAX, 0.0));
        assert_eq!(worth(3, 0.0).to_bits(), worth(3, 99.0).to_bits());
    }
}
