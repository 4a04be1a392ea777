//! `on-evict`: blocks are copied out when they are dropped.
//!
//! **Prefers** to copy nothing that the GPU can keep. The step that needs the room waits for the
//! copy, because the block cannot be overwritten before.
//!
//! **Reads** nothing.
//!
//! **Parameters** none.
//!
//! **Origin** victim caches; what swapping to disk does.

use crate::prelude::*;

/// How `on-evict` introduces itself.
pub const SPEC: Spec<dyn Offload> = Spec {
    name: "on-evict",
    help: "Copies blocks to the CPU tier when they are evicted; the step waits",
    ..Spec::built_by(|_, _| Box::new(OnEvict))
};

/// Copies victims.
#[derive(Clone, Copy, Debug)]
pub struct OnEvict;

impl Offload for OnEvict {
    fn copies_on_evict(&self) -> bool {
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::view::MemoryView;

    #[test]
    fn only_what_is_dropped_is_copied() {
        let full = MemoryView { total: 10, in_use: 5, idle: 5 };
        assert!(OnEvict.copies_on_evict() && !OnEvict.copies_on_release());
        assert_eq!(OnEvict.idle_blocks_to_copy(&full), 0);
    }
}
