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

use crate::prelude::*;

/// How `lru` introduces itself.
pub const SPEC: Spec<dyn Evict> = Spec {
    name: "lru",
    help: "Evicts the least recently used blocks",
    ..Spec::built_by(|_, _| Box::new(Lru))
};

/// All runs are worth the same, so that the order of release decides.
#[derive(Clone, Copy, Debug)]
pub struct Lru;

impl Evict for Lru {
    fn worth(&self, _ended: &UseView) -> f64 {
        0.0
    }

    fn is_indifferent(&self) -> bool {
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::view::examples::used;
    use blis_core::SloClass;

    #[test]
    fn all_runs_are_worth_the_same() {
        let often = UseView { uses: 99, class: SloClass::Critical, ..used() };
        assert_eq!(Lru.worth(&often).to_bits(), Lru.worth(&used()).to_bits());
    }
}
